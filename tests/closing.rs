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
