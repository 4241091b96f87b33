//! Requests before zero reach the server and no statistic.

use onbeat_shared::metrics::{ReportOptions, report};
use tests::{Scenario, drivers, mooncake};

#[test]
fn warm_up_requests_are_sent_first_and_counted_nowhere() {
    for driver in drivers() {
        let mut scenario = Scenario::new(&mooncake(4, 20, 600, 3));
        scenario.config.driver = Some(driver);
        scenario.config.plan.warm_up = 2;
        let outcome = scenario.run();
        let run = &outcome.run;
        assert_eq!(outcome.served.len(), 6, "two of them twice");
        assert_eq!((run.plan.len(), run.requests.len()), (4, 4));
        let warm_up = run.manifest.warm_up.as_ref().expect("it is told");
        assert_eq!(warm_up.ok, 2);
        let rows: Vec<_> = warm_up.requests.iter().map(|request| request.row).collect();
        assert_eq!(rows, [1, 2]);
        let [first, second] = &warm_up.requests[..] else { panic!("two were asked for") };
        assert!(first.done_ns <= second.sent_ns, "one after the other");
        assert!(first.first_token_ns.is_some() && second.status == Some(200));
        assert!(warm_up.started_unix_ns < run.started_unix_ns());
        let report = report(run, &ReportOptions::default());
        assert_eq!((report.schedule.planned, report.outcomes.ok), (4, 4));
        assert_eq!(report.latency.e2e_ms.expect("answers").count, 4);
        let told = report.run.warm_up.expect("it is reported");
        assert_eq!((told.requests, told.ok), (2, 2));
        // What the server was sent before zero are the bodies of the run.
        let prompts: Vec<_> = outcome.served.iter().map(|served| served.prompt_tokens).collect();
        assert_eq!(prompts, [600; 6]);
        assert_eq!(outcome.served[0].body_digest, outcome.served[2].body_digest);
    }
}

#[test]
fn more_warm_up_than_there_is_are_all_requests_once() {
    let mut scenario = Scenario::new(&mooncake(3, 10, 20, 2));
    scenario.config.plan.warm_up = 50;
    let outcome = scenario.run();
    assert_eq!(outcome.served.len(), 6);
    assert_eq!(outcome.run.manifest.warm_up.expect("it is told").requests.len(), 3);
}
