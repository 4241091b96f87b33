//! What `onbeat export` writes and refuses, by its options.

use std::fs;

use onbeat_shared::log::{Class, sample, sample_users};

use super::*;

fn args(log: &Path, format: Format, table: Table) -> Args {
    Args {
        log: log.to_owned(),
        tool: None,
        format,
        table,
        partition_by: Vec::new(),
        recorded_text: None,
        output: None,
        force: false,
        range: None,
        goals: GoalFlags::default(),
        slices: SliceFlags::default(),
    }
}

#[test]
fn text_goes_to_stdout_and_files_are_never_replaced_unasked() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("run.beat");
    fs::write(&log, sample::log(1, 20)).expect("room");
    let mut csv = Vec::new();
    run(&args(&log, Format::Csv, Table::Requests), &mut csv).expect("a table");
    assert_eq!(csv.iter().filter(|&&byte| byte == b'\n').count(), 21);

    let file = folder.path().join("requests.csv");
    let mut to_file = args(&log, Format::Csv, Table::Requests);
    to_file.output = Some(file.clone());
    let mut nothing = Vec::new();
    run(&to_file, &mut nothing).expect("a new file");
    assert!(nothing.is_empty());
    assert_eq!(fs::read(&file).expect("the file"), csv);
    let error = run(&to_file, &mut nothing).expect_err("it exists");
    assert!(error.to_string().contains("--force"), "{error}");
    fs::write(&file, "x".repeat(100_000)).expect("room");
    to_file.force = true;
    run(&to_file, &mut nothing).expect("replaced");
    assert_eq!(fs::read(&file).expect("the file"), csv);
}

#[test]
fn only_a_regular_file_is_replaced_and_only_by_a_whole_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("run.beat");
    fs::write(&log, sample::log(1, 20)).expect("room");
    let (kept, link) = (folder.path().join("kept"), folder.path().join("link"));
    fs::write(&kept, "older").expect("room");
    std::os::unix::fs::symlink(&kept, &link).expect("a link");
    let mut forced = args(&log, Format::Csv, Table::Requests);
    forced.force = true;
    for place in [&link, Path::new("/dev/full"), folder.path()] {
        forced.output = Some(place.to_owned());
        let error = run(&forced, &mut Vec::new()).expect_err("no regular file");
        assert!(error.to_string().contains("not a regular file"), "{error}");
        assert!(fs::symlink_metadata(place).is_ok(), "{} is gone", place.display());
    }
    assert_eq!(fs::read(&kept).expect("still there"), b"older");
    forced.output = Some(kept);
    run(&forced, &mut Vec::new()).expect("replaced");
    assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 3, "nothing beside it");
}

#[test]
fn the_log_itself_is_never_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("profile_export.jsonl");
    fs::write(&log, sample::log(1, 20)).expect("room");
    let mut forced = args(&log, Format::Csv, Table::Requests);
    forced.force = true;
    for (tool, output) in
        [(None, log.as_path()), (Some(Tool::VllmBench), &log), (Some(Tool::Aiperf), folder.path())]
    {
        (forced.tool, forced.output) = (tool, Some(output.to_owned()));
        let error = run(&forced, &mut Vec::new()).expect_err("it is the input");
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("--force replaces no input"), "{error}");
    }
    assert_eq!(fs::read(&log).expect("still there"), sample::log(1, 20));
    assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 1);
}

#[test]
fn parquet_needs_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("run.beat");
    fs::write(&log, sample::log(1, 20)).expect("room");
    let mut parquet = args(&log, Format::Parquet, Table::Chunks);
    let error = run(&parquet, &mut Vec::new()).expect_err("no file named");
    assert_eq!(error.exit_code(), 2);
    let file = folder.path().join("chunks.parquet");
    parquet.output = Some(file.clone());
    run(&parquet, &mut Vec::new()).expect("a file");
    let bytes = fs::read(&file).expect("the file");
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
}

#[test]
fn a_file_that_cannot_be_made_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("run.beat");
    fs::write(&log, sample::log(1, 20)).expect("room");
    let mut args = args(&log, Format::Jsonl, Table::Requests);
    args.output = Some(folder.path().join("none/requests.jsonl"));
    let error = run(&args, &mut Vec::new()).expect_err("no such folder");
    assert!(error.to_string().contains("there is no folder"), "{error}");
    assert!(error.to_string().contains("mkdir -p"), "{error}");
}

#[test]
fn aiperfs_files_go_into_a_folder_all_or_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("run.beat");
    fs::write(&log, sample::log(1, 20)).expect("room");
    let mut args = args(&log, Format::Csv, Table::Requests);
    args.tool = Some(Tool::Aiperf);
    args.slices = SliceFlags { slice_duration: Some(0.25) };
    assert_eq!(run(&args, &mut Vec::new()).expect_err("no folder").exit_code(), 2);
    let place = folder.path().join("new/artifacts");
    args.output = Some(place.clone());
    let mut out = Vec::new();
    run(&args, &mut out).expect("files");
    assert!(out.is_empty());
    assert_eq!(fs::read_dir(&place).expect("made").count(), 5);
    let lines = fs::read_to_string(place.join("profile_export.jsonl")).expect("a file");
    assert_eq!(lines.lines().count(), 20);
    // One that is there already keeps all others from being written.
    for name in ["profile_export.jsonl", "profile_export_aiperf.json"] {
        fs::remove_file(place.join(name)).expect("it was there");
    }
    let error = run(&args, &mut out).expect_err("three are there");
    assert!(error.to_string().contains("--force"), "{error}");
    assert_eq!(fs::read_dir(&place).expect("made").count(), 3);
    args.force = true;
    run(&args, &mut out).expect("replaced");
    assert_eq!(fs::read_dir(&place).expect("made").count(), 5);
}

#[test]
fn kv_cache_testers_files_are_of_runs_with_users_all_or_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("run.beat");
    fs::write(&log, sample::log(1, 20)).expect("room");
    let mut args = args(&log, Format::Csv, Table::Requests);
    args.tool = Some(Tool::KvCacheTester);
    assert_eq!(run(&args, &mut Vec::new()).expect_err("no folder").exit_code(), 2);
    let place = folder.path().join("results");
    args.output = Some(place.clone());
    let error = run(&args, &mut Vec::new()).expect_err("no users");
    assert!(error.to_string().contains("not driven by users"), "{error}");
    assert!(!place.exists());
    fs::write(&log, sample_users::log(1, 6)).expect("room");
    run(&args, &mut Vec::new()).expect("files");
    assert_eq!(fs::read_dir(&place).expect("made").count(), 10);
    let table = place.join("summary_trace_replay.csv");
    let written = fs::read(&table).expect("a table");
    fs::remove_file(place.join("detailed_results.csv")).expect("it was there");
    let error = run(&args, &mut Vec::new()).expect_err("the others are there");
    assert!(error.to_string().contains("--force"), "{error}");
    assert!(!place.join("detailed_results.csv").exists());
    args.force = true;
    run(&args, &mut Vec::new()).expect("replaced");
    assert_eq!(fs::read(&table).expect("a table"), written);
}

#[test]
fn an_export_that_fails_leaves_the_files_of_the_one_before() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("run.beat");
    let mut args = args(&log, Format::Csv, Table::Requests);
    args.force = true;
    for (tool, last) in [
        (Tool::KvCacheTester, "trace_replay_rate_limiting.html"),
        (Tool::Aiperf, "profile_export_aiperf.json"),
    ] {
        let place = folder.path().join(last).with_extension("d");
        (args.tool, args.output) = (Some(tool), Some(place.clone()));
        fs::write(&log, sample_users::log(1, 6)).expect("room");
        run(&args, &mut Vec::new()).expect("files");
        let files = || {
            let text = |name: &String| fs::read(place.join(name)).unwrap_or_default();
            files_below(&place).into_iter().map(|name| (text(&name), name)).collect::<Vec<_>>()
        };
        // The last file finds no name for what is to replace it.
        let own = std::process::id();
        let others = (1..=1_000).map(|number| format!("{last}.{own}-{number}.part"));
        let taken: Vec<_> = std::iter::once(format!("{last}.{own}.part")).chain(others).collect();
        taken.iter().for_each(|name| fs::write(place.join(name), "").expect("room"));
        let before = files();
        fs::write(&log, sample_users::log(2, 9)).expect("room");
        run(&args, &mut Vec::new()).expect_err("the last one cannot be written");
        assert_eq!(files(), before, "{last}");
        taken.iter().for_each(|name| fs::remove_file(place.join(name)).expect("there"));
        run(&args, &mut Vec::new()).expect("files");
        assert_ne!(files(), before, "{last}");
    }
}

#[test]
fn vllms_json_goes_to_stdout_or_a_file_and_has_no_slices() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("run.beat");
    fs::write(&log, sample::log(1, 20)).expect("room");
    let mut args = args(&log, Format::Csv, Table::Requests);
    args.tool = Some(Tool::VllmBench);
    let mut out = Vec::new();
    run(&args, &mut out).expect("JSON");
    let json: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
    assert_eq!(json["num_prompts"], 20);
    let file = folder.path().join("bench.json");
    args.output = Some(file.clone());
    run(&args, &mut Vec::new()).expect("a file");
    assert_eq!(fs::read(&file).expect("the file"), out);
    args.slices = SliceFlags { slice_duration: Some(1.0) };
    let error = run(&args, &mut out).expect_err("slices");
    assert!(error.to_string().contains("--as aiperf"), "{error}");
}
#[test]
fn histograms_and_timelines_go_to_stdout_or_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("run.beat");
    fs::write(&log, sample::log(1, 20)).expect("room");
    for (tool, start) in [(Tool::Hdr, "#[Histogram log"), (Tool::ChromeTrace, "[\n{")] {
        let mut args = args(&log, Format::Csv, Table::Requests);
        args.tool = Some(tool);
        let mut out = Vec::new();
        run(&args, &mut out).expect("text");
        assert!(out.starts_with(start.as_bytes()), "{}", String::from_utf8_lossy(&out));
        let file = folder.path().join(start.len().to_string());
        args.output = Some(file.clone());
        run(&args, &mut Vec::new()).expect("a file");
        assert_eq!(fs::read(&file).expect("the file"), out);
        args.slices = SliceFlags { slice_duration: Some(0.1) };
        args.force = true;
        assert_eq!(run(&args, &mut out).is_ok(), tool == Tool::Hdr, "only it has intervals");
    }
}

#[test]
fn a_table_in_parts_is_files_of_its_owner_all_or_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("run.beat");
    fs::write(&log, sample::log(4, 200)).expect("room");
    let mut args = args(&log, Format::Csv, Table::Requests);
    args.partition_by = vec!["run".to_owned(), "outcome".to_owned()];
    let place = folder.path().join("runs");
    args.output = Some(place.clone());
    let error = run(&args, &mut Vec::new()).expect_err("no Parquet");
    assert!(error.to_string().contains("--format parquet"), "{error}");
    args.format = Format::Parquet;
    run(&args, &mut Vec::new()).expect("files");
    let id = Run::read(&sample::log(4, 200)).expect("a log").manifest.run_id;
    let ok = place.join(format!("run={id}/outcome=ok/part-0.parquet"));
    let written = fs::read(&ok).expect("the file");
    assert!(written.starts_with(b"PAR1"));
    // One that is there already keeps all others from being written.
    let around = place.join(format!("run={id}"));
    let folders = fs::read_dir(around).expect("made").map(|entry| entry.expect("one").path());
    let other = folders.map(|folder| folder.join("part-0.parquet")).find(|path| *path != ok);
    let other = other.expect("some requests failed");
    fs::remove_file(&other).expect("it was there");
    let error = run(&args, &mut Vec::new()).expect_err("one is there");
    assert!(error.to_string().contains("--force"), "{error}");
    assert!(!other.exists());
    args.force = true;
    run(&args, &mut Vec::new()).expect("replaced");
    assert!(other.exists());
    args.partition_by = vec!["e2e_ms".to_owned()];
    let error = run(&args, &mut Vec::new()).expect_err("fractions");
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().starts_with("--partition-by: e2e_ms has fractions"), "{error}");
}

/// A run of a killed sender, of which two requests are in flight, with one success and one failure.
fn killed() -> Run {
    let mut sample = sample::Sample::new();
    for (sent, end) in [(0, Some(Class::Ok)), (1, Some(Class::Http429)), (2, None), (3, None)] {
        let request = sample.send(sent);
        if let Some(class) = end {
            sample.done(request, 1_000_000, class);
        }
    }
    sample.closed = false;
    Run::read(&sample.bytes()).expect("a log")
}

#[test]
fn what_a_log_lacks_is_said() {
    let mut args = args(Path::new("run.beat"), Format::Csv, Table::Requests);
    let whole = Run::read(&sample::log(1, 20)).expect("a log");
    assert_eq!(lacks(&args, &whole), Vec::<String>::new());
    let said = lacks(&args, &killed());
    assert!(said.len() == 1 && said[0].starts_with("the log has no footer"), "{said:?}");
    for tool in [Tool::Aiperf, Tool::VllmBench] {
        args.tool = Some(tool);
        assert_eq!(
            lacks(&args, &killed())[1],
            "2 requests were sent and have no end in the log: as neither a success nor a failure, \
             they are left out"
        );
    }
    args.range = parse_range("0.000000003..").ok();
    assert!(lacks(&args, &killed())[1].starts_with("1 request was sent and has no end"));
    (args.tool, args.range) = (None, parse_range("1000..").ok());
    let said = lacks(&args, &whole);
    assert_eq!(said, ["no request was sent in --range, and the files have none"]);
    args.range = parse_range("..1000").ok();
    assert_eq!(lacks(&args, &whole), Vec::<String>::new());
    // All behind a damaged mark decodes, and yet somebody has written into the file.
    let mut marked = sample::log(1, 20);
    marked[0] ^= 1;
    let said = lacks(&args, &Run::read(&marked).expect("readable"));
    assert!(said.len() == 1 && said[0].contains("file header is damaged"), "{said:?}");
    let mut damaged = sample::log(1, 20);
    let place = damaged.len() * 9 / 10;
    damaged[place] ^= 1;
    let said = lacks(&args, &Run::read(&damaged).expect("readable"));
    assert!(said.iter().any(|words| words.contains("are damaged and were refused")), "{said:?}");
}

#[test]
fn a_place_that_cannot_be_written_is_refused_before_the_log_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut args = args(&folder.path().join("no.beat"), Format::Csv, Table::Requests);
    let mut told = |tool, output: &Path| {
        (args.tool, args.output) = (tool, Some(output.to_owned()));
        run(&args, &mut Vec::new()).expect_err("refused").to_string()
    };
    let place = folder.path().join("none/requests.csv");
    for tool in [None, Some(Tool::VllmBench), Some(Tool::Hdr), Some(Tool::ChromeTrace)] {
        assert!(told(tool, folder.path()).contains("is a folder"));
        assert!(told(tool, &place).contains("there is no folder"));
        assert!(told(tool, Path::new("-")).contains("stdout"));
    }
}

#[test]
fn several_files_go_into_no_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let (log, file) = (folder.path().join("run.beat"), folder.path().join("file"));
    fs::write(&log, sample_users::log(1, 6)).expect("room");
    fs::write(&file, "precious").expect("room");
    let mut args = args(&log, Format::Parquet, Table::Requests);
    for (tool, columns) in [(Some(Tool::Aiperf), 0), (Some(Tool::KvCacheTester), 0), (None, 1)] {
        args.tool = tool;
        args.partition_by = vec!["outcome".to_owned(); columns];
        args.force = true;
        for place in [file.clone(), file.join("below")] {
            args.output = Some(place);
            let error = run(&args, &mut Vec::new()).expect_err("a file").to_string();
            assert!(error.contains("is a file, and not a folder"), "{error}");
        }
    }
    assert_eq!(fs::read(&file).expect("there"), b"precious");
}

/// A log of requests that all ended alike, of a run of some name.
fn log_of_one(path: &Path, id: &str, class: Class) {
    let mut sample = sample::Sample::new();
    sample.manifest.run_id = id.to_owned();
    let request = sample.send(0);
    sample.done(request, 1_000_000, class);
    fs::write(path, sample.bytes()).expect("room");
}

fn files_below(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(around) = folders.pop() {
        for entry in fs::read_dir(around).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false => found.push(path.strip_prefix(folder).expect("below").to_owned()),
            }
        }
    }
    let mut found: Vec<String> =
        found.into_iter().map(|path| path.to_str().expect("ASCII").to_owned()).collect();
    found.sort();
    found
}

#[test]
fn parts_of_two_exports_are_never_read_as_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("run.beat");
    let place = folder.path().join("parts");
    let mut args = args(&log, Format::Parquet, Table::Requests);
    args.output = Some(place.clone());
    let exported = |args: &Args, id: &str, class: Class| {
        log_of_one(&log, id, class);
        run(args, &mut Vec::new()).map(|_code| ()).map_err(|error| error.to_string())
    };
    args.partition_by = vec!["outcome".to_owned()];
    exported(&args, "one", Class::Ok).expect("an empty folder");
    // Somebody else's files are nobody's business.
    for name in ["notes.txt", "outcome=ok/data_0.parquet", "mine/part-0.parquet"] {
        fs::create_dir_all(place.join(name).parent().expect("one")).expect("made");
        fs::write(place.join(name), "precious").expect("room");
    }
    let own = ["mine/part-0.parquet", "notes.txt", "outcome=ok/data_0.parquet"];
    let told = exported(&args, "two", Class::Http429).expect_err("it would be mixed");
    assert!(told.contains("has 1 file of an earlier export"), "{told}");
    assert!(told.contains("outcome=ok/part-0.parquet") && told.contains("--force"), "{told}");
    assert_eq!(files_below(&place).len(), 4, "nothing was written");
    args.force = true;
    exported(&args, "two", Class::Http429).expect("forced");
    let with = |part: &str| {
        let mut names: Vec<String> = own.iter().map(|name| (*name).to_owned()).collect();
        names.push(part.to_owned());
        names.sort();
        names
    };
    assert_eq!(files_below(&place), with("outcome=http_error/part-0.parquet"));
    exported(&args, "two", Class::ResetMidAnswer).expect("forced");
    assert!(!place.join("outcome=http_error").exists(), "it is empty");
    // Parts of another layout are another table, whatever is forced.
    args.partition_by = vec!["core".to_owned()];
    let told = exported(&args, "two", Class::Ok).expect_err("another layout");
    assert!(told.contains("of an export that was cut by outcome"), "{told}");
    assert_eq!(files_below(&place).len(), 4);
}

#[test]
fn parts_of_several_runs_lie_beside_each_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("run.beat");
    let place = folder.path().join("runs");
    let mut args = args(&log, Format::Parquet, Table::Requests);
    args.output = Some(place.clone());
    args.partition_by = vec!["run".to_owned(), "outcome".to_owned()];
    for (id, class, force) in
        [("a/1", Class::Ok, false), ("b", Class::Ok, false), ("a/1", Class::Http429, true)]
    {
        args.force = force;
        log_of_one(&log, id, class);
        run(&args, &mut Vec::new()).expect("beside, or forced");
    }
    assert_eq!(
        files_below(&place),
        ["run=a%2F1/outcome=http_error/part-0.parquet", "run=b/outcome=ok/part-0.parquet"]
    );
}

#[test]
fn a_value_too_long_for_a_name_leaves_no_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("run.beat");
    let mut sample = sample::sample(4, 50);
    sample.sessions[2] = "x".repeat(400);
    fs::write(&log, sample.bytes()).expect("room");
    let mut args = args(&log, Format::Parquet, Table::Requests);
    args.output = Some(folder.path().join("parts"));
    args.partition_by = vec!["session".to_owned()];
    let error = run(&args, &mut Vec::new()).expect_err("too long");
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().contains("--partition-by: session has a value of 400"), "{error}");
    assert!(!folder.path().join("parts").exists());
}

#[test]
fn slices_of_an_earlier_export_do_not_stay_beside_another_runs_summary() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("run.beat");
    let place = folder.path().join("artifacts");
    fs::write(&log, sample::log(1, 20)).expect("room");
    let mut args = args(&log, Format::Csv, Table::Requests);
    (args.tool, args.output) = (Some(Tool::Aiperf), Some(place.clone()));
    args.slices = SliceFlags { slice_duration: Some(0.25) };
    run(&args, &mut Vec::new()).expect("files");
    for name in ["profile_export.jsonl", "profile_export_aiperf.json", "profile_export_aiperf.csv"]
    {
        fs::remove_file(place.join(name)).expect("it was there");
    }
    args.slices = SliceFlags::default();
    let error = run(&args, &mut Vec::new()).expect_err("slices are there").to_string();
    assert!(error.contains("timeslices.json exists") && error.contains("--force"), "{error}");
    assert_eq!(files_below(&place).len(), 2);
    args.force = true;
    run(&args, &mut Vec::new()).expect("forced");
    assert_eq!(
        files_below(&place),
        ["profile_export.jsonl", "profile_export_aiperf.csv", "profile_export_aiperf.json"]
    );
}

#[test]
fn a_range_chooses_requests() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("run.beat");
    fs::write(&log, sample::log(1, 200)).expect("room");
    let whole = Run::read(&sample::log(1, 200)).expect("a log");
    let range = parse_range("0.5..2").expect("a range");
    let chosen = Selection::new(&whole, Some(range)).requests().count();
    assert!((10..190).contains(&chosen), "{chosen}");
    let mut args = args(&log, Format::Csv, Table::Requests);
    args.range = Some(range);
    let mut out = Vec::new();
    run(&args, &mut out).expect("a table");
    assert_eq!(String::from_utf8(out).expect("text").lines().count(), 1 + chosen);
    args.tool = Some(Tool::VllmBench);
    let mut out = Vec::new();
    run(&args, &mut out).expect("JSON");
    let json: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
    assert_eq!(json["num_prompts"], chosen);
    args.tool = Some(Tool::Aiperf);
    args.output = Some(folder.path().join("artifacts"));
    run(&args, &mut Vec::new()).expect("files");
    let lines = fs::read_to_string(folder.path().join("artifacts/profile_export.jsonl"));
    assert_eq!(lines.expect("there").lines().count(), chosen);
    (args.tool, args.output) = (None, Some(folder.path().join("parts")));
    (args.format, args.partition_by) = (Format::Parquet, vec!["core".to_owned()]);
    run(&args, &mut Vec::new()).expect("files");
    for tool in [Tool::Hdr, Tool::KvCacheTester] {
        args.tool = Some(tool);
        args.partition_by.clear();
        let error = run(&args, &mut Vec::new()).expect_err("no requests").to_string();
        assert!(error.starts_with("--range chooses requests"), "{error}");
    }
}
