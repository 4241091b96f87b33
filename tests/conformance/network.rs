//! Cases of group G: connections, framing, limits and errors, where a script alone does not say it.

use std::net::Shutdown;
use std::process::Command;

use onbeat_shared::log::{Class, DoneFlags, Outcome as End};
use onbeat_shared::metrics::{ReportOptions, report};
use onbeat_shared::run::Run;
use rustls::version::TLS13;
use tests::scripted::{Deaf, answer, good_stream, request};
use tests::secured::{Authority, VALID, serve};

use crate::case::{Case, MILLI};
use crate::found::{Findings, flat};
use crate::product::{Replayed, Told, Written, command, read, replay, replay_words, text};
use crate::server::{NO_PYTHON, Odd};
use crate::wire::{DRIVERS, lone, play, script, scripts, scripts_with};

fn classes(run: &Run) -> Vec<Option<Class>> {
    (0..run.plan.len()).map(|i| run.requests.class(i)).collect()
}

/// G05: a connection that its server closes while it waits costs no request, and nothing of its
/// time.
pub(crate) fn stale(case: &Case, found: &mut Findings) {
    scripts(case, &[("g05", Class::Ok, "")], found);
    let text = script(&case.file("g05.srv")).replace("conn 1\n", "conn 2\n");
    let options = ["--max-connections", "1"];
    let Some(played) = play(&case.cases, &text, &lone(2, 80, 2), &options) else {
        return found.skip(NO_PYTHON);
    };
    let run = played.replayed.log();
    for i in 0..2 {
        let ready = run.requests.intended(i);
        found.same(format!("request {i} may leave when it is due"), &run.plan[i].due, &ready);
    }
    let bodies: Vec<usize> = played.seen.iter().map(|(_, seen)| seen.body.len()).collect();
    found.holds("both bodies whole", bodies.len() == 2 && bodies[0] == bodies[1], bodies.len());
}

/// G10: odd values of `Retry-After` are text; a proxy's page is quoted in part; an empty success
/// is none.
pub(crate) fn odd_errors(case: &Case, found: &mut Findings) {
    let said = [
        ("g10a", Class::Http429, "retry-after Wed, 21 Oct 2099 07:28:00 GMT"),
        ("g10b", Class::Http429, "retry-after -5"),
        ("g10c", Class::Http429, "retry-after 1e9"),
        ("g10d", Class::Http5xx, "<html>\\u{1b}[2Jxxx"),
        ("g10e", Class::EmptyAnswer, ""),
    ];
    scripts(case, &said, found);
    let text = script(&case.file("g10d.srv"));
    let Some(played) = play(&case.cases, &text, &lone(1, 0, 2), &[]) else {
        return found.skip(NO_PYTHON);
    };
    let quoted = played.replayed.log().error_text(0).unwrap_or_default();
    found.holds("1 KiB of the page at most", quoted.len() <= 1_024, quoted.len());
    let Told { out, err, .. } = &played.replayed.told;
    found.holds(
        "no escape byte on the terminal",
        !out.contains('\x1b') && !err.contains('\x1b'),
        "one",
    );
}

/// G11: a redirect is an answer, and nobody goes where it leads.
pub(crate) fn redirect(case: &Case, found: &mut Findings) {
    scripts(case, &[("g11", Class::HttpRedirect, "redirect 307 to /v2")], found);
    let text = script(&case.file("g11.srv"));
    let Some(played) = play(&case.cases, &text, &lone(2, 5, 2), &[]) else {
        return found.skip(NO_PYTHON);
    };
    let followed = played.seen.iter().any(|(_, seen)| seen.line.contains("/v2"));
    found.holds("no request to where it leads", !followed, "one");
}

/// G13: `localhost` is found by either family, once: later connections know the way.
pub(crate) fn localhost(case: &Case, found: &mut Findings) {
    for address in ["::1", "127.0.0.1"] {
        let text = script(&case.file("g13.srv"));
        let Some(server) = Odd::play_at(&case.cases, &text, address) else {
            return found.skip(NO_PYTHON);
        };
        let trace = Written::new("trace.jsonl", lone(3, 5, 2));
        let url = format!("http://localhost:{}", server.port());
        let options = ["--connection-reuse-strategy", "never"];
        let replayed = replay(&trace.path, &url, &options);
        let run = replayed.log();
        found.same(format!("classes at {address}"), &vec![Some(Class::Ok); 3], &classes(run));
        let told = run.manifest.config["addresses"].to_string();
        found.holds("the address in the run's record", told.contains(address), told);
    }
}

/// G14: literal addresses, slashes at ends, paths and upper-case schemes arrive as they should. A
/// query belongs to the endpoint's path, and a base URL with one is refused with these words: it
/// may be a secret.
pub(crate) fn urls(case: &Case, found: &mut Findings) {
    let text = script(&case.file("g14.srv"));
    let endpoint = ["--endpoint", "/v1/chat/completions?api-version=2"];
    let plain = "POST /v1/chat/completions HTTP/1.1";
    let asked: [(&str, &str, &[&str], &str); 5] = [
        ("::1", "http://[::1]:PORT/v1", &[], plain),
        ("127.0.0.1", "http://127.0.0.1:PORT/v1/", &[], plain),
        ("127.0.0.1", "HTTP://127.0.0.1:PORT", &[], plain),
        (
            "127.0.0.1",
            "http://127.0.0.1:PORT/base/path/",
            &[],
            "POST /base/path/v1/chat/completions HTTP/1.1",
        ),
        (
            "127.0.0.1",
            "http://127.0.0.1:PORT",
            &endpoint,
            "POST /v1/chat/completions?api-version=2 HTTP/1.1",
        ),
    ];
    for (address, url, options, line) in asked {
        let Some(server) = Odd::play_at(&case.cases, &text, address) else {
            return found.skip(NO_PYTHON);
        };
        let trace = Written::new("trace.jsonl", lone(1, 0, 2));
        let url = url.replace("PORT", &server.port().to_string());
        let replayed = replay(&trace.path, &url, options);
        found.same(format!("{url}: classes"), &vec![Some(Class::Ok)], &classes(replayed.log()));
        let seen = server.seen();
        let Some((_, seen)) = seen.first() else { continue };
        found.same(format!("{url}: request line"), line, &seen.line);
        let host = if address == "::1" { "[::1]" } else { address };
        let host = format!("{host}:{}", server.port());
        found.same(format!("{url}: Host"), &Some(host.as_str()), &seen.header("host"));
    }
    let trace = Written::new("trace.jsonl", lone(1, 0, 2));
    let told = replay(&trace.path, "http://127.0.0.1:9/v1?api-version=2", &[]).told;
    found.holds("a query in a base URL refused", told.code != Some(0), format!("{:?}", told.code));
    found.says("the refusal", &told.err, &["has a query", "--endpoint"]);
}

/// G15: another protocol is named, with its first bytes, and is not asked for ever.
pub(crate) fn other_protocols(case: &Case, found: &mut Findings) {
    let said = [
        ("g15a", Class::NotHttp, "the server speaks HTTP/2; its first bytes: 00 00 12 04"),
        ("g15b", Class::NotHttp, "the server speaks TLS; its first bytes: 15 03 01 00 02 02 46"),
        ("g15c", Class::NotHttp, "not HTTP; its first bytes: 53 53 48 2d 32 2e 30 2d 78 0d 0a"),
    ];
    scripts(case, &said, found);
    let text = script(&case.file("g15a.srv"));
    let Some(played) = play(&case.cases, &text, &lone(2_000, 5, 2), &[]) else {
        return found.skip(NO_PYTHON);
    };
    let told = &played.replayed.told;
    found.same("exit code", &Some(3), &told.code);
    found.says("what is told", &told.err, &["the run is given up", "another protocol"]);
    found.says("the summary", &flat(&told.out), &["the server speaks HTTP/2"]);
    let sent = played.seen.len();
    found.holds("an end after few requests", sent < 1_000, sent);
    let run = played.replayed.log();
    found.holds("a whole log", run.is_whole(), "a part of one");
    let never = classes(run).iter().filter(|class| **class == Some(Class::NotReached)).count();
    found.same("requests that are told never to have left", &(2_000 - sent), &never);
}

/// Runs a shell's lines in a network of their own; `None` where that is not allowed.
fn in_own_network(lines: &str, words: &[&str], found: &mut Findings) -> Option<Told> {
    let program = std::env::current_exe().expect("this program has a path");
    let probe = Command::new("unshare").args(["-rn", "true"]).output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        found.skip("a network of its own is not allowed here");
        return None;
    }
    let output = Command::new("unshare")
        .args(["-rn", "sh", "-c", lines, "sh"])
        .arg(program)
        .args(words)
        .output()
        .expect("it was there a moment ago");
    Some(Told::of(&output))
}

/// G16: local ports that run out are our trouble, counted as such, and first in the summary.
pub(crate) fn no_ports(_case: &Case, found: &mut Findings) {
    let trace = Written::new("trace.jsonl", lone(200, 1, 2));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let log = folder.path().join("run.beat");
    let lines = "ip link set lo up; \
        echo '40000 40099' > /proc/sys/net/ipv4/ip_local_port_range; \
        onbeat=$1; shift; \
        \"$onbeat\" onbeat mock --port 9000 --overhead-ms 3000 >/dev/null 2>&1 & mock=$!; \
        until \"$onbeat\" onbeat \"$@\"; code=$?; [ $code != 1 ]; do sleep 0.2; done; \
        kill $mock; exit $code";
    let words =
        replay_words(&trace.path, "http://127.0.0.1:9000", &log, &["--warm-connections", "1"]);
    let Some(told) = in_own_network(lines, &words, found) else { return };
    let Some(run) = read(&log) else {
        return found.wrong(format!("expected a log, found none: {}", told.err));
    };
    let of = |class| classes(&run).iter().filter(|it| **it == Some(class)).count();
    let (ours, ok) = (of(Class::ClientNoPort), of(Class::Ok));
    found.same("every request, by its end", &200, &(ours + ok));
    found.holds("about half without a port", (90..=150).contains(&ours), ours);
    let first = flat(&told.out.lines().take(6).collect::<Vec<_>>().join("\n"));
    let words = ["NOT HELD", "found no local port on this side"];
    found.says("the first lines of the summary", &first, &words);
    found.says("the summary", &flat(&told.out), &["client_no_port"]);
}

/// G18: without io_uring one line says why, and the run goes on with the other driver, or is
/// refused where that one was asked for.
pub(crate) fn no_uring(_case: &Case, found: &mut Findings) {
    let trace = Written::new("trace.jsonl", lone(3, 5, 2));
    let server = crate::server::Recorder::start();
    for (driver, error) in
        [("auto", "EPERM"), ("auto", "ENOSYS"), ("auto", "ENOMEM"), ("io_uring", "EPERM")]
    {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let log = folder.path().join("run.beat");
        let url = server.url();
        let words = replay_words(&trace.path, &url, &log, &["--driver", driver]);
        let plain = command(&words);
        let mut traced = Command::new("strace");
        traced
            .args(["-f", "-q", "-e", "trace=io_uring_setup", "-e"])
            .arg(format!("inject=io_uring_setup:error={error}"))
            .args(["-o", "/dev/null"])
            .arg(plain.get_program())
            .args(plain.get_args())
            .env_remove("OPENAI_API_KEY");
        let Ok(output) = traced.output() else {
            return found.skip("there is no strace that makes a system call fail");
        };
        let told = Told::of(&output);
        let what = format!("{driver} with {error}");
        found.says(format!("{what}: what is told"), &told.err, &["io_uring"]);
        let panicked = told.err.contains("panicked");
        found.holds(format!("{what}: no panic"), !panicked, &told.err);
        let Some(run) = read(&log) else {
            let refused = driver == "io_uring" && told.code.is_some_and(|code| code > 0);
            found.holds(format!("{what}: a run, or a refusal"), refused, &told.err);
            continue;
        };
        found.same(format!("{what}: classes"), &vec![Some(Class::Ok); 3], &classes(&run));
        found.same(
            format!("{what}: the driver in the record"),
            "epoll",
            run.manifest.driver.as_str(),
        );
    }
}

/// G24: what came before a reset is kept, with its times.
pub(crate) fn reset(case: &Case, found: &mut Findings) {
    scripts(case, &[("g24", Class::ResetMidAnswer, "reset after 2 content events")], found);
    let text = script(&case.file("g24.srv"));
    let Some(played) = play(&case.cases, &text, &lone(3, 5, 2), &[]) else {
        return found.skip(NO_PYTHON);
    };
    let run = played.replayed.log();
    for i in 0..3 {
        found.same(format!("token times of request {i}"), &2, &run.chunks.row(i).times().len());
        found.same(
            format!("end of request {i}"),
            &Some(End::Disconnected),
            &run.requests.outcome(i),
        );
    }
}

/// G26: a silent server is a timeout by the name of its limit, and as old as its schedule says.
pub(crate) fn silent(case: &Case, found: &mut Findings) {
    const LIMIT_MS: i64 = 300;
    let options = ["--first-byte-timeout-seconds", "0.3"];
    scripts_with(case, &[("g26", Class::FirstByteTimeout, "")], &options, found);
    let text = script(&case.file("g26.srv"));
    let Some(played) = play(&case.cases, &text, &lone(3, 5, 2), &options) else {
        return found.skip(NO_PYTHON);
    };
    let run = played.replayed.log();
    for i in 0..3 {
        let age = run.requests.done(i).zip(run.plan[i].due).map(|(done, due)| done.0 - due.0);
        let old = age.is_some_and(|age| age >= LIMIT_MS * MILLI);
        found.holds(format!("an age of request {i} from its time"), old, format!("{age:?}"));
    }
    let figures = report(run, &ReportOptions::default());
    found.same("timeouts", &3, &figures.outcomes.timeout);
    let adjusted = serde_json::to_value(figures.failures_as_infinite).expect("it is JSON");
    found.says("failures as never", &adjusted.to_string(), &["null"]);
    found.says("the summary", &played.replayed.told.out, &["timeout"]);
}

/// G27: a head that drips is no beginning, a slow healthy stream is let be, and a connection that
/// never opens ends at its own limit.
pub(crate) fn slow(case: &Case, found: &mut Findings) {
    let dripping = ["--first-byte-timeout-seconds", "0.5", "--idle-timeout-seconds", "30"];
    let text = script(&case.file("g27a.srv"));
    let healthy = script(&case.file("g27b.srv")).replace("sleep 1000", "sleep 50");
    for driver in DRIVERS {
        let options = [&["--driver", driver], &dripping[..]].concat();
        let Some(played) = play(&case.cases, &text, &lone(2, 5, 2), &options) else {
            return found.skip(NO_PYTHON);
        };
        let dripped = vec![Some(Class::FirstByteTimeout); 2];
        found.same("a dripped head", &dripped, &classes(played.replayed.log()));
        let options = [
            "--driver",
            driver,
            "--idle-timeout-seconds",
            "2",
            "--first-byte-timeout-seconds",
            "2",
        ];
        let Some(played) = play(&case.cases, &healthy, &lone(2, 5, 60), &options) else { return };
        let run = played.replayed.log();
        found.same("a healthy stream", &vec![Some(Class::Ok); 2], &classes(run));
        let took = run.requests.done(0).zip(run.requests.sent(0)).map(|(end, at)| end.0 - at.0);
        let longer = took.is_some_and(|took| took > 2_000 * MILLI);
        found.holds("a stream longer than its limits", longer, format!("{took:?}"));
        found.same("its content events", &60, &run.chunks.count(0));
    }
    // Two places: for the look whether anybody is there, and for the warm-up.
    let deaf = Deaf::with_room_for(2);
    let trace = Written::new("trace.jsonl", lone(3, 1, 2));
    let options = [
        "--connect-timeout-seconds",
        "0.3",
        "--warm-connections",
        "1",
        "--idle-timeout-seconds",
        "9",
        "--first-byte-timeout-seconds",
        "2",
    ];
    let replayed = replay(&trace.path, &format!("http://{}", deaf.address), &options);
    let ends = classes(replayed.log());
    let count = |class| ends.iter().filter(|end| **end == Some(class)).count();
    found.same("requests on the warm connection", &1, &count(Class::FirstByteTimeout));
    found.same("requests without one", &2, &count(Class::ConnectTimeout));
}

/// G28: a whole answer counts although TLS was not ended as it should be; its connection is not
/// used again.
pub(crate) fn no_goodbye(_case: &Case, found: &mut Findings) {
    let authority = Authority::new();
    let server = serve(authority.issue("localhost", VALID).config(&[&TLS13], None), |_, stream| {
        if request(stream).is_some() {
            answer(stream, &good_stream());
            let _ = stream.sock.shutdown(Shutdown::Both);
        }
    });
    let trace = Written::new("trace.jsonl", lone(3, 60, 2));
    let authority = authority.file();
    for driver in DRIVERS {
        let url = format!("https://localhost:{}", server.address.port());
        let options = ["--driver", driver, "--cacert", text(&authority)];
        let replayed: Replayed = replay(&trace.path, &url, &options);
        let run = replayed.log();
        found.same(format!("classes on {driver}"), &vec![Some(Class::Ok); 3], &classes(run));
        let reused = (0..3).filter(|&i| run.requests.connection_reused(i) == Some(true)).count();
        found.same(format!("connections used again on {driver}"), &0, &reused);
    }
}

/// G31: bytes behind an answer are nobody's: flagged, and the connection is given up.
pub(crate) fn stray(case: &Case, found: &mut Findings) {
    scripts(case, &[("g31", Class::Ok, "")], found);
    let text = script(&case.file("g31.srv"));
    let Some(played) = play(&case.cases, &text, &lone(3, 60, 2), &[]) else {
        return found.skip(NO_PYTHON);
    };
    let run = played.replayed.log();
    for i in 0..3 {
        let flagged = run.requests.flags(i).has(DoneFlags::STRAY_BYTES);
        found.holds(format!("request {i} flagged"), flagged, "no flag");
    }
}
