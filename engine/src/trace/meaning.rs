//! Which options mean something for which traces, in one table.
//!
//! An option that changes nothing is no error, since one command line is often used for several
//! traces; but whoever typed it waits for what it does, so it is told, before anything is sent.
//! What contradicts a trace is refused, and elsewhere.

use onbeat_shared::trace::recorded::Content;
use onbeat_shared::trace::{Format, Trace};

/// What was typed of options that mean nothing for some traces, by their long names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Given {
    /// Those of the table: see [`options_with_meaning`].
    pub options: Vec<&'static str>,
    /// Those of the schedule, which a trace that users replay has none of.
    pub of_schedule: Vec<&'static str>,
    /// Those of users, who replay agentic traces only.
    pub of_users: Vec<String>,
    /// What of those changes nothing even there, in words.
    pub in_vain: Vec<String>,
}

/// An option and where it means something.
#[derive(Clone, Copy, Debug)]
struct Meaning {
    /// Its long name.
    option: &'static str,
    /// The formats for which it can change what is sent.
    formats: &'static [Format],
    /// Whether it is about bodies that are written here, so that rows with whole bodies are out of
    /// its reach in any format.
    of_bodies: bool,
}

/// Formats whose rows are not whole bodies, of those that can be replayed.
const WRITTEN: &[Format] = &[
    Format::Bailian,
    Format::Mooncake,
    Format::Baseten,
    Format::AzureCsv,
    Format::BurstGpt,
    Format::RagPulse,
    Format::Agentic,
];
/// Those of them that are sent on a schedule.
const SCHEDULED: &[Format] = &[
    Format::Bailian,
    Format::Mooncake,
    Format::Baseten,
    Format::AzureCsv,
    Format::BurstGpt,
    Format::RagPulse,
];
/// Those of them that have lengths that can be multiplied.
const MULTIPLIED: &[Format] =
    &[Format::Bailian, Format::Mooncake, Format::Baseten, Format::AzureCsv, Format::BurstGpt];
/// Those whose sessions can have several turns.
const WITH_TURNS: &[Format] =
    &[Format::Bailian, Format::Mooncake, Format::Baseten, Format::BurstGpt, Format::RagPulse];
/// Those whose blocks have a size of the user's choice.
const WITH_BLOCKS: &[Format] =
    &[Format::Bailian, Format::Mooncake, Format::Baseten, Format::Agentic];

const TABLE: [Meaning; 20] = [
    Meaning::of_bodies("--model", WRITTEN),
    Meaning::of_bodies("--extra-inputs", WRITTEN),
    Meaning::of_bodies("--no-streaming", WRITTEN),
    Meaning::of_bodies("--no-include-usage", WRITTEN),
    Meaning::of_bodies("--per-chunk-usage", WRITTEN),
    Meaning::of_bodies("--use-legacy-max-tokens", SCHEDULED),
    Meaning::of_bodies("--temperature", WRITTEN),
    Meaning::of_bodies("--top-p", WRITTEN),
    Meaning::of_bodies("--top-k", WRITTEN),
    Meaning::of_bodies("--repetition-penalty", WRITTEN),
    Meaning::of_bodies("--max-osl", SCHEDULED),
    Meaning::of_bodies("--synthesis-output-len-multiplier", MULTIPLIED),
    Meaning::of_bodies("--context-mode", WITH_TURNS),
    Meaning::of_rows("--max-isl", SCHEDULED),
    Meaning::of_rows("--isl-block-size", WITH_BLOCKS),
    Meaning::of_rows("--lenient", &[Format::Bailian, Format::Mooncake]),
    Meaning::of_rows("--session-key", &[Format::Baseten]),
    Meaning::of_rows("--omit-kv-hints", &[Format::Baseten]),
    Meaning::of_rows("--no-force-min-tokens", &[Format::Baseten]),
    Meaning::of_rows("--replay-cancellations", &[Format::Baseten]),
];

impl Meaning {
    const fn of_bodies(option: &'static str, formats: &'static [Format]) -> Self {
        Self { option, formats, of_bodies: true }
    }

    const fn of_rows(option: &'static str, formats: &'static [Format]) -> Self {
        Self { option, formats, of_bodies: false }
    }
}

/// The long names of all options that mean something for some traces only.
pub fn options_with_meaning() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|meaning| meaning.option)
}

/// Says which of the `given` options, by their long names, change nothing for a trace, and why.
#[must_use]
pub fn without_meaning(given: &Given, trace: &Trace) -> Vec<String> {
    let mut said = in_table(&given.options, trace);
    let change = |count: usize| if count == 1 { "changes" } else { "change" };
    if trace.recorded.agentic.is_none() {
        if let count @ 1.. = given.of_users.len() {
            let (names, change) = (given.of_users.join(", "), change(count));
            let format = trace.source.format;
            said.push(format!(
                "{names} {change} nothing: users replay agentic traces, and this is {format}"
            ));
        }
        return said;
    }
    if let count @ 1.. = given.of_schedule.len() {
        let (names, change) = (given.of_schedule.join(", "), change(count));
        said.push(format!(
            "{names} {change} nothing: users replay an agentic trace, each at its own pace, and no \
             schedule does; --start-users, --time-scale and --test-duration are for it"
        ));
    }
    said.extend(given.in_vain.iter().cloned());
    said
}

/// Those that the table knows.
fn in_table(given: &[&str], trace: &Trace) -> Vec<String> {
    let format = trace.source.format;
    let whole = trace.recorded.contents.iter().filter(|&&content| content == Content::Body).count();
    let mut vain = Vec::new();
    let mut said = Vec::new();
    for meaning in TABLE.iter().filter(|meaning| given.contains(&meaning.option)) {
        if meaning.of_bodies && whole > 0 {
            vain.push(meaning.option);
        } else if !meaning.formats.contains(&format) {
            let names: Vec<&str> = meaning.formats.iter().map(|format| format.name()).collect();
            said.push(format!(
                "{} changes nothing: it is for {}, and this is {format}",
                meaning.option,
                names.join(", ")
            ));
        }
    }
    if !vain.is_empty() {
        let verb = if vain.len() == 1 { "changes" } else { "change" };
        let (vain, rows) = (vain.join(", "), trace.records.len());
        said.push(if whole == rows {
            format!(
                "{vain} {verb} nothing: the rows are whole bodies, which are sent as they stand"
            )
        } else {
            format!(
                "{vain} {verb} nothing in {whole} of {rows} rows: they are whole bodies, which are \
                 sent as they stand"
            )
        });
    }
    said
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::trace::{TraceOptions, load, read};

    fn told(rows: &str, given: &[&'static str]) -> Vec<String> {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(rows.as_bytes()).expect("written");
        let trace = load(file.path(), &TraceOptions::default()).expect("reads");
        without_meaning(&Given { options: given.to_vec(), ..Given::default() }, &trace)
    }

    const WORDS: &str = "{\"timestamp\":0,\"input_length\":5}\n";
    const PAYLOAD: &str = "{\"timestamp\":0,\"payload\":{\"model\":\"m\"}}\n";
    const RAW: &str = "{\"timestamp\":0,\"model\":\"m\",\"messages\":[1]}\n";

    #[test]
    fn options_that_do_not_touch_whole_bodies_are_told() {
        let given = ["--model", "--max-osl"];
        assert_eq!(told(WORDS, &given), [""; 0]);
        let all = "--model, --max-osl change nothing: the rows are whole bodies, which are sent as \
                   they stand";
        assert_eq!(told(RAW, &given), [all]);
        assert_eq!(told(PAYLOAD, &given), [all]);
        let mixed = [WORDS, PAYLOAD, PAYLOAD].concat();
        let some = told(&mixed, &["--extra-inputs"]);
        assert_eq!(some.len(), 1, "{some:?}");
        assert!(some[0].starts_with("--extra-inputs changes nothing in 2 of 3 rows: "), "{some:?}");
    }

    #[test]
    fn options_of_other_formats_are_told_with_theirs() {
        let given = ["--session-key", "--omit-kv-hints", "--lenient"];
        let words = told(WORDS, &given);
        assert_eq!(
            words,
            ["--session-key", "--omit-kv-hints"].map(|option| format!(
                "{option} changes nothing: it is for baseten_trace, and this is mooncake_trace"
            ))
        );
        assert_eq!(told(RAW, &["--max-isl", "--lenient", "--isl-block-size"]).len(), 3);
        let table = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46,1,1\n";
        let words = told(table, &["--context-mode", "--model", "--isl-block-size"]);
        assert_eq!(words.len(), 2, "{words:?}");
    }

    #[test]
    fn options_of_users_and_of_a_schedule_are_told_where_the_other_is_meant() {
        let given = Given {
            options: vec!["--max-isl"],
            of_schedule: vec!["--tile"],
            of_users: vec!["--recycle".to_owned(), "--max-users".to_owned()],
            in_vain: vec!["--fairness-window changes nothing".to_owned()],
        };
        let told = |name: &str, text: &str| {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("the folder is writable");
            without_meaning(&given, &read(&path, &TraceOptions::default()).expect("reads"))
        };
        let on_a_schedule = told("t.jsonl", WORDS);
        let words = "--recycle, --max-users change nothing: users replay agentic traces, and this \
                     is mooncake_trace";
        assert_eq!(on_a_schedule, [words]);
        let request = r#"{"t":0.0,"type":"n","in":70,"out":1,"hash_ids":[1]}"#;
        let conversation = format!(
            r#"{{"id":"a","block_size":64,"tool_tokens":0,"system_tokens":0,"requests":[{request}]}}"#
        );
        let by_users = told("t.json", &conversation);
        assert_eq!(by_users.len(), 3, "{by_users:?}");
        assert!(by_users[0].starts_with("--max-isl changes nothing: it is for "), "{by_users:?}");
        assert!(by_users[1].starts_with("--tile changes nothing: users replay"), "{by_users:?}");
        assert_eq!(by_users[2], given.in_vain[0]);
    }

    #[test]
    fn the_table_names_each_option_once_and_always_with_formats() {
        let mut names: Vec<&str> = options_with_meaning().collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TABLE.len());
        for meaning in TABLE {
            assert!(!meaning.formats.is_empty(), "{meaning:?}");
            let raw = meaning.formats.contains(&Format::RawPayload);
            assert!(!(raw && meaning.of_bodies), "{meaning:?}");
        }
    }
}
