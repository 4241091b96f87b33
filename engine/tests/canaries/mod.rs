//! Secrets that are given to the program in every way it takes them, and a server that repeats
//! them: none is found in anything that the program writes, at its most talkative.

mod server;

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use onbeat_shared::log::Class;
use onbeat_shared::run::Run;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::json;

use self::server::Parrot;
use super::text;

/// Names of headers that have carried keys, and some that nobody would think of.
const HEADERS: [&str; 22] = [
    "Api-Key",
    "X-Api-Key",
    "x-goog-api-key",
    "Ocp-Apim-Subscription-Key",
    "X-Auth-Token",
    "X-Amz-Security-Token",
    "Proxy-Authorization",
    "Cookie",
    "X-Custom",
    "X-Team",
    "User-Agent",
    "Accept",
    "Referer",
    "From",
    "X-Forwarded-For",
    "X-Tenant",
    "OpenAI-Organization",
    "anthropic-version",
    "X-SESSION-AFFINITY",
    "x-y",
    "Helicone-Auth",
    "X-Request-Trace",
];

/// What no file and no output may hold: all canaries have it.
const CANARY: &str = "CANARY";

/// Canary number `n`; each is told from the others where it is found.
fn canary(what: &str) -> String {
    format!("CANARY/{what}+7f3a==")
}

fn onbeat(folder: &Path, key: Option<&str>, words: &[String]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_onbeat"));
    match key {
        Some(key) => command.env("OPENAI_API_KEY", key),
        None => command.env_remove("OPENAI_API_KEY"),
    };
    command
        .args(words)
        .current_dir(folder)
        .env("RUST_BACKTRACE", "full")
        .env("RUST_LOG", "trace")
        .stdin(Stdio::null())
        .output()
        .expect("the binary was built")
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// Options that carry secrets, but for the key.
fn secrets(url: &str) -> Vec<String> {
    let mut all = words(&format!("--url {url} --ui simple --verbose"));
    for name in HEADERS {
        all.extend(["--header".to_owned(), format!("{name}: {}", canary(name))]);
    }
    let extra = json!({
        "api_key": canary("extra"),
        "user": canary("user"),
        "stop": [canary("stop")],
        "tools": [{"auth": {"bearer": canary("deep")}}],
    });
    all.extend(["--extra-inputs".to_owned(), extra.to_string()]);
    let query = format!("/v1/chat/completions?key={}&{}", canary("query"), canary("bare"));
    all.extend(["--endpoint".to_owned(), query]);
    let metrics = format!("{url}/{}/metrics?k={}", canary("path"), canary("scraped"));
    all.extend(["--scrape".to_owned(), metrics]);
    all
}

/// A trace whose prompts are somebody's.
fn write_trace(folder: &Path, rows: usize) {
    let row = |row: usize| {
        let prompt = format!("the patient {} \"of\" room {row}\nis {}", canary("prompt"), row);
        let messages = json!([{"role": "user", "content": prompt}]);
        json!({"timestamp": row * 15, "messages": messages, "output_length": 4}).to_string() + "\n"
    };
    let trace: String = (0..rows).map(row).collect();
    std::fs::write(folder.join("trace.jsonl"), trace).expect("the folder is writable");
}

/// Every file below a folder but those that were given to the program, with its bytes. A Parquet
/// file is there as text, too, since it is compressed.
fn artefacts(folder: &Path, given: &[&str]) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if path.is_dir() {
            found.extend(artefacts(&path, given));
        } else if !given.contains(&name.as_str()) {
            let mut bytes = std::fs::read(&path).expect("readable");
            if name.ends_with(".parquet") {
                let file = std::fs::File::open(&path).expect("readable");
                let reader = ParquetRecordBatchReaderBuilder::try_new(file).expect("Parquet");
                for batch in reader.build().expect("Parquet") {
                    bytes.extend(format!("{:?}", batch.expect("rows")).into_bytes());
                }
            }
            let mode = path.metadata().expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600, "{name} is for its owner only");
            found.push((name, bytes));
        }
    }
    found
}

/// What a canary is in capitals or not, in hexadecimal, and in Base64 wherever it begins.
const SPELLED: [&str; 6] = ["canary", "43414e415259", "43 41 4e", "Q0FOQV", "NBTkFS", "DQU5BU"];

/// Fails with the place if a canary is in `bytes`.
fn clean(name: &str, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for spelled in [CANARY].iter().chain(&SPELLED) {
        if let Some(at) = text.find(spelled) {
            let around = text[at..].chars().take(60).collect::<String>();
            panic!("{name} has {around:?}");
        }
    }
    assert!(name.ends_with(".beat") || name.ends_with("parquet") || !text.contains('\u{1b}'));
}

fn clean_output(name: &str, output: &Output) {
    clean(&format!("stdout of {name}"), &output.stdout);
    clean(&format!("stderr of {name}"), &output.stderr);
}

/// Everything that can be made of a run.
fn derive(folder: &Path, log: &str) {
    let lines = [
        "report LOG --verbose",
        "report LOG --format json",
        "report LOG --format html",
        "report LOG --html page.html",
        "export LOG --format csv --output r.csv",
        "export LOG --format jsonl --output r.jsonl",
        "export LOG --format parquet --output r.parquet",
        "export LOG --table chunks --format csv --output c.csv",
        "export LOG --table chunks --format parquet --output c.parquet",
        "export LOG --table scraped --format csv --output s.csv",
        "export LOG --as aiperf --output aiperf --slice-duration 0.05",
        "export LOG --as vllm-bench --output bench.json",
    ];
    for line in lines {
        let output = onbeat(folder, None, &words(&line.replace("LOG", log)));
        assert_eq!(output.status.code(), Some(0), "{line}: {}", text(&output.stderr));
        clean_output(line, &output);
    }
}

#[test]
fn no_secret_and_no_prompt_is_in_anything_that_is_written() {
    let parrot = Parrot::start();
    let url = format!("http://{}", parrot.address);
    for way in ["environment", "option", "file"] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        write_trace(folder.path(), 24);
        let key = canary(way);
        std::fs::write(folder.path().join("key"), format!("{key}\n")).expect("writable");
        let mut line = words("replay trace.jsonl --output run.beat");
        line.extend(secrets(&url));
        match way {
            "option" => line.extend(["--api-key".to_owned(), key.clone()]),
            "file" => line.extend(words("--api-key-file key")),
            _ => {}
        }
        let before = parrot.heard().len();
        let output = onbeat(folder.path(), (way == "environment").then_some(key.as_str()), &line);
        clean_output(way, &output);
        let warned = text(&output.stderr).contains("--api-key shows in the list of processes");
        assert_eq!(warned, way == "option", "{}", text(&output.stderr));

        // They really left, and came back.
        let heard = parrot.heard()[before..].concat();
        let others = ["extra", "user", "stop", "deep", "query", "path", "scraped", way];
        for what in HEADERS.iter().copied().chain(others) {
            assert!(heard.contains(&canary(what)), "{what} was sent");
        }
        assert!(heard.contains("CANARY/prompt"), "prompts were sent");
        let run = Run::read(&std::fs::read(folder.path().join("run.beat")).expect("a log"));
        let run = run.expect("it reads");
        let texts: Vec<_> = (0..run.plan.len()).filter_map(|i| run.error_text(i)).collect();
        assert!(texts.iter().any(|text| text.contains("bad key ***")), "{texts:?}");
        let moved = Class::HttpRedirect;
        assert!((0..run.plan.len()).any(|i| run.requests.class(i) == Some(moved)));
        let manifest = serde_json::to_string(&run.manifest).expect("JSON");
        assert!(manifest.contains("/v1/chat/completions?key=[secret]&[secret]"), "{manifest}");
        assert!(manifest.contains("/[path]/[path]/metrics?k=[secret]"), "{manifest}");
        let servers = run.servers.as_deref().expect("it was scraped");
        let words: Vec<_> =
            servers.askings.iter().filter_map(|asking| asking.failure.as_deref()).collect();
        assert!(words.iter().any(|words| words.contains("no metrics: ")), "{words:?}");

        derive(folder.path(), "run.beat");
        let found = artefacts(folder.path(), &["trace.jsonl", "key"]);
        assert!(found.len() >= 9, "{}", found.len());
        found.iter().for_each(|(name, bytes)| clean(name, bytes));
    }
}

#[test]
fn no_secret_is_in_what_users_leave_in_their_folder() {
    let parrot = Parrot::start();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let traces = folder.path().join("traces");
    std::fs::create_dir(&traces).expect("writable");
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conversations");
    for file in std::fs::read_dir(ours).expect("they are in the repository") {
        let file = file.expect("an entry");
        std::fs::copy(file.path(), traces.join(file.file_name())).expect("copied");
    }
    let mut line = words("replay --trace-directory traces --output-dir results");
    line.extend(words("--start-users 3 --max-users 4 --test-duration 2 --assessment-period 1"));
    line.extend(secrets(&format!("http://{}", parrot.address)));
    let key = canary("environment");
    let output = onbeat(folder.path(), Some(&key), &line);
    clean_output("users", &output);
    let heard = parrot.heard().concat();
    for what in HEADERS.iter().copied().chain(["extra", "deep", "query", "environment"]) {
        assert!(heard.contains(&canary(what)), "{what} was sent: {}", text(&output.stderr));
    }
    let found = artefacts(&folder.path().join("results"), &[]);
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    for file in ["progress.json", "test_metadata.json", "detailed_results.csv", "index.html"] {
        assert!(names.contains(&file), "{file} is among {names:?}: {}", text(&output.stderr));
    }
    found.iter().for_each(|(name, bytes)| clean(name, bytes));
    // Whoever goes on finds them, and leaves none either.
    let mut line = words("replay --trace-directory traces --output-dir results --resume results");
    line.extend(words("--start-users 3 --max-users 4 --test-duration 1 --assessment-period 1"));
    line.extend(secrets(&format!("http://{}", parrot.address)));
    clean_output("users that go on", &onbeat(folder.path(), Some(&key), &line));
    let found = artefacts(&folder.path().join("results"), &[]);
    assert!(found.len() > names.len(), "a second log is there");
    found.iter().for_each(|(name, bytes)| clean(name, bytes));
}

#[test]
fn nothing_is_written_through_a_link() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| folder.path().join(name);
    write_trace(folder.path(), 2);
    let parrot = Parrot::start();
    let replay = format!("replay trace.jsonl --model m --url http://{} --output", parrot.address);
    assert!(
        onbeat(folder.path(), None, &words(&format!("{replay} run.beat"))).status.code() != Some(2)
    );
    std::fs::write(at("precious"), "precious").expect("writable");
    symlink(at("precious"), at("link")).expect("a link");
    symlink(at("nothing"), at("dangling")).expect("a link");
    for link in ["link", "dangling"] {
        for line in [
            format!("{replay} {link}"),
            format!("{replay} {link} --force"),
            format!("report run.beat --html {link}"),
            format!("report run.beat --html {link} --force"),
            format!("export run.beat --output {link}"),
            format!("export run.beat --output {link} --force"),
        ] {
            let output = onbeat(folder.path(), None, &words(&line));
            assert_eq!(output.status.code(), Some(2), "{line}: {}", text(&output.stderr));
        }
    }
    assert_eq!(std::fs::read(at("precious")).expect("there"), b"precious");
    assert!(!at("nothing").exists());
}
