//! Connections that end while requests need them: nothing is lost, nothing is sent thrice, and
//! every request has one end.

use std::io::Read;
use std::sync::Mutex;

use onbeat_shared::log::{Class, DoneFlags};
use onbeat_shared::run::Run;
use tests::scripted::{LAST_ANSWER, Scripted, answer, good_stream, request};
use tests::{Scenario, drivers, ends, mooncake};

fn classes(run: &Run) -> Vec<&'static str> {
    (0..run.plan.len()).map(|i| run.requests.class(i).map_or("open", Class::name)).collect()
}

#[test]
fn requests_due_while_idle_connections_close_are_all_answered() {
    for driver in drivers() {
        // Each connection lives for one answer and some silence; hundreds close as others are due.
        let server = Scripted::start(|number, mut stream| {
            let patience = std::time::Duration::from_millis(20 + (number as u64 * 7) % 90);
            let _ = stream.set_read_timeout(Some(patience));
            while request(&mut stream).is_some() {
                answer(&mut stream, &good_stream());
            }
        });
        let mut scenario = Scenario::new(&mooncake(400, 1, 10, 2));
        scenario.config.driver = Some(driver);
        scenario.config.warm_connections = Some(60);
        let run = ends(move || scenario.run_against(server.address));
        assert_eq!(classes(&run), ["ok"; 400]);
        assert!(run.warnings.is_empty(), "{:?}", run.warnings);
    }
}

#[test]
fn words_on_an_idle_connection_are_nobodys_answer() {
    // What a proxy says before it closes a connection on which nothing was asked.
    let server = Scripted::start(|number, mut stream| {
        if (1..4).contains(&number) {
            answer(&mut stream, b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n");
            return;
        }
        while request(&mut stream).is_some() {
            answer(&mut stream, &good_stream());
        }
    });
    let mut scenario = Scenario::new(&mooncake(5, 10, 10, 2));
    scenario.config.warm_connections = Some(3);
    let run = ends(move || scenario.run_against(server.address));
    assert_eq!(classes(&run), ["ok"; 5]);
}

#[test]
fn connections_given_up_while_they_open_end_their_requests_by_name() {
    for driver in drivers() {
        // Nothing opens within a nanosecond, but some open before that is noticed.
        let server = Scripted::start(|_, mut stream| {
            if request(&mut stream).is_some() {
                answer(&mut stream, LAST_ANSWER);
            }
        });
        // The first ten find connections open and leave slots behind; the burst opens hundreds.
        let trace: String = (0..500)
            .map(|row| {
                let at = if row < 10 { row * 5 } else { 300 };
                format!(
                    "{{\"timestamp\":{at},\"input_length\":5,\"output_length\":2,\
                     \"hash_ids\":[{row}]}}\n"
                )
            })
            .collect();
        let mut scenario = Scenario::new(&trace);
        scenario.config.driver = Some(driver);
        scenario.config.warm_connections = Some(10);
        scenario.config.limits.connect_ns = Some(1);
        let run = ends(move || scenario.run_against(server.address));
        let classes = classes(&run);
        assert!(classes.iter().all(|class| ["ok", "connect_timeout"].contains(class)));
        assert!(classes.contains(&"connect_timeout"), "{classes:?}");
    }
}
