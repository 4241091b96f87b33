//! The reader as its callers see it: small files in, traces or words out.

use std::io::Write;

use onbeat_shared::trace::recorded::{Content, Said, SaidLengths};
use onbeat_shared::units::SessionIndex;
use proptest::prelude::{any, prop, prop_assert_eq, proptest};

use super::{Format, Trace, TraceOptions, load, load_prompts};

fn load_with(bytes: &[u8], options: &TraceOptions) -> Result<Trace, String> {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(bytes).expect("written");
    load(file.path(), options).map_err(|error| error.to_string())
}

fn loaded(text: &str) -> Trace {
    load_with(text.as_bytes(), &TraceOptions::default()).expect("a good trace")
}

fn refused(text: &str) -> String {
    load_with(text.as_bytes(), &TraceOptions::default()).expect_err("a bad trace")
}

fn times(trace: &Trace) -> Vec<i64> {
    trace.records.iter().map(|record| record.at.0).collect()
}

const GOOD: &str = r#"{"timestamp": 0, "input_length": 100, "output_length": 5, "hash_ids": [1]}"#;

#[test]
fn seconds_and_milliseconds_become_the_same_nanoseconds() {
    let bailian = loaded(
        "{\"chat_id\":159,\"parent_chat_id\":-1,\"timestamp\":61.114,\"input_length\":21,\
         \"output_length\":132,\"type\":\"text\",\"turn\":1,\"hash_ids\":[0,1]}\n\
         {\"chat_id\":160,\"parent_chat_id\":159,\"timestamp\":62.5,\"input_length\":36,\
         \"output_length\":80,\"turn\":2,\"hash_ids\":[0,1,2]}\n",
    );
    let mooncake = loaded(
        "{\"timestamp\":61114,\"input_length\":521,\"output_length\":132,\"hash_ids\":[0,1]}\n\
         {\"timestamp\":62500.000,\"input_length\":676,\"output_length\":80,\"hash_ids\":[0,2]}",
    );
    assert_eq!(times(&bailian), [61_114_000_000, 62_500_000_000]);
    assert_eq!(times(&mooncake), times(&bailian));
    assert_eq!((bailian.source.format, bailian.block_tokens), (Format::Bailian, 16));
    assert_eq!((mooncake.source.format, mooncake.block_tokens), (Format::Mooncake, 512));
    assert_eq!(bailian.sessions.len(), 1);
    assert_eq!(bailian.session_name(SessionIndex(0)), "159");
    assert_eq!(mooncake.session_name(SessionIndex(1)), "session_000001");
    assert_eq!(bailian.source.rows, 2);
    assert_eq!(bailian.blocks_of(&bailian.records[1]).iter().collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn a_named_format_is_never_guessed_from_content() {
    let row = "{\"chat_id\":1,\"timestamp\":61114,\"input_length\":1,\"output_length\":1}";
    let options = TraceOptions { format: Some(Format::Mooncake), ..TraceOptions::default() };
    let trace = load_with(row.as_bytes(), &options).expect("readable as Mooncake too");
    assert_eq!(times(&trace), [61_114_000_000]);
}

#[test]
fn line_ends_marks_and_blank_lines_do_not_matter() {
    let plain = loaded(&format!("{GOOD}\n{GOOD}\n"));
    let odd = loaded(&format!("\u{feff}\r\n{GOOD}\r\n \r\n{GOOD}"));
    assert_eq!(odd.records.iter().map(|record| record.row).collect::<Vec<_>>(), [2, 4]);
    assert_eq!(times(&odd), times(&plain));
    assert_eq!(odd.blocks, plain.blocks);
}

#[test]
fn broken_files_name_their_line() {
    for (text, words) in [
        (format!("{GOOD}\n\n{{\"timestamp\": 10, \"inp"), "line 3: found an unexpected end"),
        (format!("{GOOD},\n"), "line 1: found a comma after the object"),
        (format!("[{GOOD},\n{GOOD}]\n"), "line 1: found an array"),
        (format!("{GOOD}\n7\n"), "line 2: found 7"),
        (String::new(), "has no rows"),
        ("\n \n".to_owned(), "has no rows"),
    ] {
        let found = refused(&text);
        assert!(found.contains(words), "{text:?}: {found}");
    }
}

#[test]
fn wrong_values_name_field_found_and_right() {
    let row = |timestamp: &str, input: &str, output: &str, ids: &str| {
        format!(
            "{{\"timestamp\":{timestamp},\"input_length\":{input},\"output_length\":{output},\
             \"hash_ids\":{ids}}}"
        )
    };
    for (text, words) in [
        (row("NaN", "1", "1", "[1]"), "line 1: field \"timestamp\": found NaN"),
        (row("1e999", "1", "1", "[1]"), "field \"timestamp\": found 1e999"),
        (row("1e30", "1", "1", "[1]"), "field \"timestamp\": found 1e30; right would be a number"),
        (row("9223372036855", "1", "1", "[1]"), "within 292 years"),
        (
            row("0", "1", "1", "[1]") + "\n" + &row("null", "1", "1", "[1]"),
            "line 2: field \"timestamp\": found nothing",
        ),
        (row("[0]", "1", "1", "[1]"), "field \"timestamp\": found [0]"),
        (row("\"soon\"", "1", "1", "[1]"), "found \"soon\""),
        (row("0", "-1", "1", "[]"), "field \"input_length\": found -1"),
        (row("0", "1.5", "1", "[]"), "field \"input_length\": found 1.5"),
        (row("0", "4294967295", "1", "[]"), "tokens from 0 to 4294967294"),
        (row("0", "99999999999999999999", "1", "[]"), "field \"input_length\": found 9999"),
        (row("0", "1", "\"9\"", "[]"), "field \"output_length\": found \"9\""),
        (row("0", "1", "1", "[1.5]"), "field \"hash_ids\": found [1.5]"),
        (row("0", "20", "5", "[0,1]"), "found 2 ids of 512 tokens each, but input_length is 20"),
        (row("0", "20", "5", "[0,1]"), "right would be at most 1 id (--lenient"),
        (row("0", "0", "5", "[0]"), "found 1 id of 512 tokens each, but input_length is 0"),
        ("{\"timestamp\":0,\"output_length\":1,\"input_length\":null}".into(), "\"input_length\""),
        (
            "{\"chat_id\":\"a\",\"timestamp\":0,\"input_length\":1,\"output_length\":1}".into(),
            "field \"chat_id\": found \"a\"",
        ),
        (
            "{\"chat_id\":1,\"timestamp\":0,\"input_length\":1}".into(),
            "\"output_length\": found noth",
        ),
    ] {
        let found = refused(&text);
        assert!(found.contains(words), "{text}: {found}");
    }
}

#[test]
fn wrong_values_of_the_dialect_and_of_bodies_are_told_alike() {
    let row = "{\"timestamp\":0,\"input_length\":1}";
    for (text, words) in [
        (
            "{\"timestamp\":0,\"input_length\":5,\"text_input\":\"x\"}".into(),
            "field \"text_input\": found another way",
        ),
        ("{\"timestamp\":0,\"text_input\":\"\\ud83d\"}".into(), "line 1: found"),
        ("{\"timestamp\":0,\"text_input\":7}".into(), "field \"text_input\": found 7"),
        ("{\"timestamp\":0,\"messages\":[{}]}".into(), "found a message without role"),
        ("{\"timestamp\":0,\"payload\":{}}".into(), "field \"payload\": found {}"),
        (
            "{\"timestamp\":0,\"input_length\":1e-30}".into(),
            "field \"input_length\": found 1e-30; right would be a whole number",
        ),
        (
            "{\"timestamp\":0,\"input_length\":1,\"output_length\":5.0001}".into(),
            "field \"output_length\": found 5.0001",
        ),
        (
            "{\"model\":\"m\",\"prompt\":\"x\"}\n{\"model\":\"m\",\"prompt\":1,\"timestamp\":2}"
                .into(),
            "line 1: field \"timestamp\": found nothing",
        ),
        ("{\"timestamp\":0,\"text_input\":\"x\",\"tools\":[1]}".into(), "tools without messages"),
        ("{\"timestamp\":0,\"text_input\":\"x\",\"extra\":[1]}".into(), "field \"extra\""),
        ("{\"session_id\":1.5,\"timestamp\":0,\"input_length\":1}".into(), "field \"session_id\""),
        ("{\"session_id\":\"a\",\"delay\":-1,\"input_length\":1}".into(), "field \"delay\""),
        (
            row.to_owned() + "\n{\"session_id\":\"a\",\"delay\":1,\"input_length\":1}",
            "line 2: field \"timestamp\": found nothing; right would be a time in the first row of \
             every session",
        ),
        (
            "{\"timestamp\":0,\"text_input\":\"x\",\"hash_ids\":[1]}".into(),
            "field \"hash_ids\": found block ids beside text_input; right would be either hash_ids \
             with input_length, or text_input without them",
        ),
        (
            "{\"timestamp\":0,\"messages\":[{\"role\":\"user\"}],\"message_mode\":\"delta\"}"
                .into(),
            "field \"message_mode\": found \"delta\"; right would be no such member",
        ),
    ] {
        let found: String = refused(&text);
        assert!(found.contains(words), "{text}: {found}");
    }
}

#[test]
fn odd_but_usable_rows_are_counted() {
    let trace = loaded(
        "{\"timestamp\":0,\"timestamp\":9000,\"input_length\":0,\"output_length\":0}\n\
         {\"timestamp\":1,\"input_length\":512.0,\"output_length\":0,\"hash_ids\":[1]}\n\
         {\"timestamp\":-2,\"input_length\":5}\n",
    );
    assert_eq!(times(&trace), [9_000_000_000, 1_000_000, -2_000_000]);
    assert_eq!(trace.origin().map(|origin| origin.0), Some(-2_000_000));
    let outputs: Vec<_> = trace.records.iter().map(|record| record.output_tokens).collect();
    assert_eq!(outputs, [Some(1), Some(1), None]);
    let words: Vec<String> = trace.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(words.len(), 3, "{words:?}");
    assert!(words.iter().any(|words| words.starts_with("line 1: the key \"timestamp\"")));
    assert!(words.iter().any(|words| words.contains("output_length is 0") && words.contains("2 ")));
}

#[test]
fn lenient_reading_cuts_ids_that_do_not_fit() {
    let text = "{\"timestamp\":0,\"input_length\":20,\"output_length\":5,\"hash_ids\":[0,1]}";
    let options = TraceOptions { lenient: true, ..TraceOptions::default() };
    let trace = load_with(text.as_bytes(), &options).expect("lenient");
    assert_eq!(trace.blocks.len(), 1);
    assert!(trace.warnings[0].words.contains("cut off"));
}

#[test]
fn a_block_size_that_is_not_the_files_is_noticed() {
    let rows: String = (0..5)
        .map(|row| {
            format!(
                "{{\"timestamp\":{row},\"input_length\":1948,\"output_length\":5,\"hash_ids\":\
                 [1{row},2{row},3{row},4{row}]}}\n"
            )
        })
        .collect();
    let options = TraceOptions { block_tokens: Some(64), ..TraceOptions::default() };
    let trace = load_with(rows.as_bytes(), &options).expect("usable");
    let words = &trace.warnings[0].words;
    assert!(words.starts_with("ids cover 7x fewer tokens than input_length in 100% of rows"));
    assert!(words.contains("--isl-block-size 512"), "{words}");
    assert!(loaded(&rows).warnings.is_empty());
}

#[test]
fn a_unit_that_is_not_the_formats_is_noticed() {
    let rows = |start: u64| -> String {
        let row = |at| format!("{{\"timestamp\":{at},\"input_length\":1,\"output_length\":1}}\n");
        (start..start + 61).map(row).collect()
    };
    let unix = loaded(&rows(1_700_000_000));
    assert!(unix.warnings[0].words.contains("span 0.060 s for 61 rows; looks like Unix seconds"));
    let relative = loaded(&rows(0));
    assert!(relative.warnings[0].words.contains("looks like seconds"));
}

#[test]
fn times_written_as_texts_are_read_when_all_are() {
    let row = |at| format!("{{\"timestamp\":{at},\"input_length\":1,\"output_length\":1}}\n");
    let trace = loaded(&(row("\"1.5\"") + &row("\"2\"")));
    assert_eq!(times(&trace), [1_500_000, 2_000_000]);
    let words = refused(&(row("\"1.5\"") + &row("2")));
    assert!(words.contains("line 2: field \"timestamp\": found 2; right would be a text"));
}

proptest! {
    #[test]
    fn every_written_time_comes_back_to_the_nanosecond(
        nanos in prop::collection::vec(any::<i64>(), 1..20),
    ) {
        let line = |nanos: &i64| {
            let (sign, size) = (if *nanos < 0 { "-" } else { "" }, nanos.unsigned_abs());
            let (whole, part) = (size / 1_000_000, size % 1_000_000);
            format!("{{\"input_length\":1,\"timestamp\":{sign}{whole}.{part:06}}}\n")
        };
        let text: String = nanos.iter().map(line).collect();
        prop_assert_eq!(times(&loaded(&text)), nanos);
    }

    #[test]
    fn no_file_makes_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _trace = load_with(&bytes, &TraceOptions::default());
        let mut row = b"{\"chat_id\":1,\"timestamp\":".to_vec();
        row.extend_from_slice(&bytes);
        let _trace = load_with(&row, &TraceOptions::default());
    }
}

#[test]
fn the_dialect_has_sessions_delays_and_contents() {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    let text = "\
        {\"timestamp\":5,\"input_length\":3,\"output_length\":1}\n\
        {\"session_id\":\"m1\",\"timestamp\":10,\"input_length\":600,\"hash_ids\":[1,2]}\n\
        {\"session_id\":\"m1\",\"delay\":150.5,\"input_length\":100,\"output_length\":3}\n\
        {\"timestamp\":200,\"text_input\":\"a\\\"b\\u00e9\",\"extra\":{\"top_k\":7}}\n\
        {\"session_id\":7,\"timestamp\":9,\"messages\": [ {\"role\":\"user\"} ],\"tools\":[{}]}\n\
        {\"timestamp\":9,\"payload\":{\"x\": 1}}\n";
    file.write_all(text.as_bytes()).expect("written");
    let mut trace = load(file.path(), &TraceOptions::default()).expect("reads");
    let row = |at: usize| {
        let record = &trace.records[at];
        (trace.session_name(record.session), record.turn, record.at.0)
    };
    assert_eq!(row(0), ("session_000000".to_owned(), 0, 5_000_000));
    assert_eq!(row(1), ("m1".to_owned(), 0, 10_000_000));
    assert_eq!(row(2), ("m1".to_owned(), 1, 160_500_000), "its delay behind the turn before");
    assert_eq!(row(3).0, "session_000001");
    assert_eq!(row(4).0, "7");
    let recorded = &trace.recorded;
    assert_eq!(recorded.delay_ns, [None, None, Some(150_500_000), None, None, None]);
    let (words, prompt) = (Content::Words, Content::Prompt);
    let contents = [words, words, words, prompt, Content::Messages, Content::Body];
    assert_eq!(recorded.contents, contents);
    load_prompts(file.path(), &mut trace, &|record| record != 5, u64::MAX).expect("reads");
    let texts: Vec<&[u8]> = (0..6).map(|at| trace.recorded.texts.get(at)).collect();
    let expected = ["", "", "", "a\\\"b\u{e9}", "[ {\"role\":\"user\"} ]", ""];
    assert_eq!(texts, expected.map(str::as_bytes));
    let members: Vec<&[u8]> = (3..5).map(|at| trace.recorded.members.get(at)).collect();
    assert_eq!(members, [&b"null {\"top_k\":7}"[..], b"[{}] {}"]);
}

#[test]
fn lines_that_are_bodies_stay_as_they_are_but_for_their_time() {
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    let first = "{\"model\": \"m\", \"messages\" : [{\"role\":\"user\",\"content\":\"\\u00e9\"}], \
                 \"hash_ids\":[1.5]}";
    let text = "{\"model\": \"m\",\"timestamp\":1.5, \"messages\" : \
                [{\"role\":\"user\",\"content\":\"\\u00e9\"}], \"hash_ids\":[1.5]}\n\n\
                {\"messages\":[1],\"model\":\"m\",\"n\":1.0,\"timestamp\":1}\r\n";
    file.write_all(text.as_bytes()).expect("written");
    let mut trace = load(file.path(), &TraceOptions::default()).expect("reads");
    assert_eq!((trace.source.format, trace.source.rows), (Format::RawPayload, 2));
    assert_eq!(times(&trace), [1_500_000, 1_000_000]);
    assert_eq!((trace.sessions.len(), trace.blocks.len(), trace.records[1].row), (2, 0, 3));
    assert!(!trace.recorded.untimed && !trace.recorded.completions);
    load_prompts(file.path(), &mut trace, &|_| true, u64::MAX).expect("reads");
    let texts: Vec<&[u8]> = (0..2).map(|at| trace.recorded.texts.get(at)).collect();
    assert_eq!(texts, [first.as_bytes(), b"{\"messages\":[1],\"model\":\"m\",\"n\":1.0}"]);
    assert!(trace.recorded.members.get(0).is_empty());
}

/// What a body asks is the server's affair; only where it goes has to be known.
#[test]
fn a_body_of_any_kind_goes_where_the_user_says() {
    use crate::render::{Endpoint, RenderOptions, UrlText};

    let text = "{\"model\":\"m\",\"messages\":[],\"timestamp\":0}\n\
                {\"model\":\"m\",\"input\":[\"a\",\"b\"],\"timestamp\":1}\n\
                {\"model\":\"m\",\"prompt\":\"x\",\"timestamp\":2}\n";
    let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
    file.write_all(text.as_bytes()).expect("written");
    let mut trace = load(file.path(), &TraceOptions::default()).expect("reads");
    assert_eq!(trace.recorded.unsettled, Some(1));
    load_prompts(file.path(), &mut trace, &|_| true, u64::MAX).expect("reads");
    let second = std::str::from_utf8(trace.recorded.texts.get(1)).expect("text");
    assert_eq!(second, "{\"model\":\"m\",\"input\":[\"a\",\"b\"]}");
    let refused = RenderOptions::default().for_trace(&trace, true).expect_err("two ways");
    let words = refused.to_string();
    assert!(
        words.contains(": line 2: field \"messages\"") && words.contains("--endpoint PATH"),
        "{words}"
    );
    let path = Some(UrlText::new("/v1/embeddings"));
    let named = RenderOptions { path, ..RenderOptions::default() };
    assert!(named.for_trace(&trace, true).is_ok());
    let chat = RenderOptions { endpoint_named: true, ..RenderOptions::default() };
    assert_eq!(chat.for_trace(&trace, true).expect("chat").endpoint, Endpoint::Chat);
    assert_eq!(loaded("{\"model\":\"m\",\"prompt\":1}").recorded.unsettled, None);
}

#[test]
fn rows_without_times_are_told_and_stand_in_file_order() {
    let bodies = loaded("{\"model\":\"m\",\"prompt\":\"x\"}\n{\"model\":\"m\",\"prompt\":[1]}\n");
    assert!(bodies.recorded.untimed && bodies.recorded.completions);
    assert!(bodies.warnings[0].words.contains("--request-rate"), "{:?}", bodies.warnings);
    let rows = loaded(
        "{\"input_length\":5}\n{\"payload\":{\"a\":1},\"session_id\":\"s\"}\n\
         {\"session_id\":\"s\",\"delay\":2,\"payload\":{\"a\":2}}\n",
    );
    assert!(rows.recorded.untimed && !rows.recorded.completions);
    assert_eq!(times(&rows), [0, 0, 2_000_000]);
    assert_eq!(rows.recorded.delay_ns, [Some(0), Some(0), Some(2_000_000)]);
}

#[test]
fn files_that_are_not_what_they_are_called_are_told_as_what_they_are() {
    let refused = |ending: &str, bytes: &[u8], format: Option<Format>| {
        let mut file = tempfile::Builder::new().suffix(ending).tempfile().expect("a file");
        file.write_all(bytes).expect("written");
        let options = TraceOptions { format, ..TraceOptions::default() };
        load(file.path(), &options).map(|_| ()).map_err(|error| error.to_string())
    };
    let stream = b"\xff\xff\xff\xff\x10\0\0\0 and so on";
    let packed = zstd::encode_all(&b"PAR1\x15\x04\xff"[..], 1).expect("into memory");
    for (ending, bytes, format, words) in [
        (".arrow", &stream[..], None, "is an Arrow stream; right would be an Arrow file"),
        ("", &stream[..], None, "is an Arrow stream"),
        ("", &stream[..], Some(Format::Baseten), "is an Arrow stream"),
        ("", &stream[..], Some(Format::Mooncake), "is an Arrow stream"),
        (".parquet", b"", None, ".parquet: is empty; right would be a Parquet"),
        (".parquet", b"hello", None, "is no Parquet or Arrow file: it begins with \"hello\""),
        (".Parquet", b"PAR1", None, "cannot be read as Parquet"),
        (".parquet.zst", &packed[..], None, "is a Parquet file inside a compressed one"),
        ("", b"PAR1\xff", Some(Format::Agentic), "is a Parquet file, and agentic is JSON; leave"),
        ("", b"ARROW1\0", Some(Format::Mooncake), "is an Arrow file, and mooncake_trace is JSON"),
        ("", b"PAR1\xff", Some(Format::AzureCsv), "azure_csv is a CSV table"),
        ("", b"PK\x03\x04\xff", Some(Format::Otel), "is a zip archive; unpack it first"),
        (".csv", b"", None, "has no rows; right would be a header and rows"),
        (".csv.gz", b"time", None, "line 1: found the columns time; right would be TIMESTAMP"),
    ] {
        let found = refused(ending, bytes, format).expect_err(words);
        assert!(found.contains(words), "{ending} {format:?}: {found}\nlacks: {words}");
    }
    // What is in a file counts for more than its name.
    assert_eq!(refused(".parquet", GOOD.as_bytes(), None), Ok(()));
    assert_eq!(refused(".csv", GOOD.as_bytes(), None), Ok(()));
}

#[test]
fn output_lengths_that_rows_say_themselves_are_kept() {
    let trace = loaded(
        "{\"timestamp\":0,\"input_length\":1,\"extra\":{\"min_tokens\":3,\"max_tokens\":null}}\n\
         {\"timestamp\":0,\"input_length\":1,\"output_length\":9}\n\
         {\"timestamp\":0,\"payload\":{\"max_tokens\":5,\"max_tokens\":6,\"n\":{\"min_tokens\":1}}}\n",
    );
    let (none, six) = (SaidLengths::default(), Said::Tokens(6));
    let first = SaidLengths { min_tokens: Said::Tokens(3), max_tokens: Said::NoNumber, ..none };
    assert_eq!(trace.recorded.said, [first, none, SaidLengths { max_tokens: six, ..none }]);
    let body = loaded("{\"model\":\"m\",\"prompt\":\"x\",\"max_completion_tokens\":6}\n");
    assert_eq!(body.recorded.said_by(0), SaidLengths { max_completion_tokens: six, ..none });
    assert!(loaded("{\"timestamp\":0,\"text_input\":\"x\"}").recorded.said.is_empty());
}

#[test]
fn a_packed_file_reads_as_the_file_in_it() {
    let text = [GOOD, "", GOOD].join("\n");
    let bad = format!("{text}\n{{\"timestamp\":NaN}}\n");
    let table = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n\
                 5,ChatGPT,472,18,490,Conversation log\n";
    let gzip = |text: &str| {
        let fast = flate2::Compression::fast();
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), fast);
        encoder.write_all(text.as_bytes()).expect("into memory");
        encoder.finish().expect("into memory")
    };
    let zstd = |text: &str| zstd::encode_all(text.as_bytes(), 1).expect("into memory");
    for pack in [&gzip as &dyn Fn(&str) -> Vec<u8>, &zstd] {
        let plain = loaded(&text);
        let packed = load_with(&pack(&text), &TraceOptions::default()).expect("reads");
        assert_eq!(packed.records, plain.records);
        assert_eq!(packed.source.bytes, pack(&text).len() as u64);
        assert_ne!(packed.source.sha256, plain.source.sha256, "it is the file's as given");
        let words = |text: Result<Trace, String>| {
            let error = text.expect_err("a bad row");
            error.split_once("line 4").expect("the line of the text").1.to_owned()
        };
        let packed = words(load_with(&pack(&bad), &TraceOptions::default()));
        assert_eq!(packed, words(load_with(bad.as_bytes(), &TraceOptions::default())));
        let table = load_with(&pack(table), &TraceOptions::default()).expect("reads");
        assert_eq!(table.source.format, Format::BurstGpt);
        let none = load_with(&pack(""), &TraceOptions::default()).expect_err("nothing in it");
        assert!(none.contains("has no rows"), "{none}");
    }
}

#[test]
fn values_that_are_nested_too_deep_are_told_as_that() {
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for (row, field) in [
        (format!("{{\"timestamp\":0,\"messages\":{deep}}}"), "messages"),
        (format!("{{\"timestamp\":0,\"payload\":{{\"a\":{deep}}}}}"), "payload"),
        (format!("{{\"timestamp\":0,\"text_input\":\"a\",\"extra\":{{\"a\":{deep}}}}}"), "extra"),
    ] {
        let words = refused(&row);
        assert!(words.contains("nested deeper than 128 levels"), "{words}");
        assert!(words.contains(&format!("field {field:?}")), "{words}");
    }
}
