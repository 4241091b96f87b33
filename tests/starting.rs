//! What goes wrong before zero: it is said at once, nothing is sent, and nothing hangs.

use std::sync::Arc;
use std::sync::Mutex;

use onbeat::cli::progress::Quiet;
use onbeat::clock::monotonic_ns;
use onbeat::net::target::Target;
use onbeat::replayer::Stop;
use onbeat_shared::log::Class;
use tests::scripted::{Deaf, Scripted, answer, good_stream, request};
use tests::{Scenario, Stopper, drivers, ends, mooncake};

#[test]
fn nothing_leaves_before_zero_when_the_server_closes_connections_of_the_warm_up() {
    for driver in drivers() {
        let arrivals = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&arrivals);
        // The probe, three that stay, and many that are closed as soon as they are open.
        let server = Scripted::start(move |number, mut stream| {
            if number > 3 && number < 40 {
                return;
            }
            while request(&mut stream).is_some() {
                seen.lock().expect("nobody panics with it").push(monotonic_ns());
                answer(&mut stream, &good_stream());
            }
        });
        let mut scenario = Scenario::new(&mooncake(6, 1, 10, 2));
        scenario.config.driver = Some(driver);
        scenario.config.warm_connections = Some(39);
        let run = ends(move || scenario.run_against(server.address));
        let zero = run.anchors.iter().find(|anchor| anchor.time.0 == 0).expect("the zero anchor");
        let zero_ns = zero.monotonic_ns.expect("both clocks were read").cast_signed();
        let arrivals = arrivals.lock().expect("nobody panics with it");
        assert_eq!(arrivals.len(), 6);
        for (i, &arrived_ns) in arrivals.iter().enumerate() {
            assert!(arrived_ns >= zero_ns, "request {i} came {} ns early", zero_ns - arrived_ns);
        }
        for i in 0..6 {
            assert_eq!(run.requests.class(i), Some(Class::Ok));
            assert!(run.requests.sent(i) >= run.plan[i].due);
        }
        assert!(run.warnings.is_empty(), "{:?}", run.warnings);
    }
}

#[test]
fn a_warm_up_that_opens_nothing_ends_at_the_connect_limit() {
    for driver in drivers() {
        // Room for the probe only.
        let server = Deaf::with_room_for(1);
        let mut scenario = Scenario::new(&mooncake(3, 1, 10, 2));
        scenario.config.driver = Some(driver);
        scenario.config.warm_connections = Some(3);
        scenario.config.limits.connect_ns = Some(200_000_000);
        let log = scenario.log_path();
        let error = ends(move || {
            let mut watch = Stopper::after(u64::MAX, Stop::Now);
            scenario.run_watched(server.address, &mut watch).0.expect_err("nothing opened")
        });
        assert!(error.to_string().contains("timed out"), "{error}");
        assert!(!log.exists(), "a run that did not start leaves no log");
    }
}

#[test]
fn a_stop_during_the_warm_up_ends_it() {
    for driver in drivers() {
        let server = Deaf::with_room_for(1);
        let mut scenario = Scenario::new(&mooncake(3, 1, 10, 2));
        scenario.config.driver = Some(driver);
        scenario.config.warm_connections = Some(3);
        let error = ends(move || {
            // Asked three times between the stages, then by the warm-up.
            let mut watch = Impatient { patience: 5 };
            scenario.run_watched(server.address, &mut watch).0.expect_err("it was stopped")
        });
        assert!(error.to_string().contains("before anything was sent"), "{error}");
        assert_eq!(error.exit_code(), 130);
    }
}

#[test]
fn a_stop_while_the_plan_is_made_ends_it_with_the_stage() {
    for patience in 0..3 {
        let server = Deaf::with_room_for(1);
        let scenario = Scenario::new(&mooncake(3, 1, 10, 2));
        let log = scenario.log_path();
        let error = ends(move || {
            let mut watch = Impatient { patience };
            scenario.run_watched(server.address, &mut watch).0.expect_err("it was stopped")
        });
        assert_eq!(error.exit_code(), 130, "{error}");
        assert!(!log.exists(), "a run that did not start leaves no log");
    }
}

/// A user who stops a run before it starts, once asked more often than this.
struct Impatient {
    patience: u32,
}

impl onbeat::conductor::Watch for Impatient {
    fn say(&mut self, _words: &str) {}

    fn look(&mut self, _: i64, _: u64, _: &onbeat::replayer::counters::Snapshot) {}

    fn stop(&mut self) -> Stop {
        match self.patience.checked_sub(1) {
            Some(left) => {
                self.patience = left;
                Stop::No
            }
            None => Stop::Drain,
        }
    }
}

#[test]
fn a_run_that_is_refused_does_not_replace_the_log_before_it() {
    let precious = |scenario: &Scenario| {
        std::fs::write(scenario.log_path(), "precious").expect("the folder is writable");
        scenario.log_path()
    };
    let server = Scripted::start(|_, _| {});
    let target = Target::parse(&server.address.to_string()).expect("an address");
    // Its bodies do not fit.
    let mut scenario = Scenario::new(&mooncake(2, 1, 10_000, 1));
    scenario.config.overwrite = true;
    scenario.config.target = target;
    scenario.config.render.budget_bytes = Some(1_000);
    let log = precious(&scenario);
    let ran = onbeat::run::run(scenario.config.clone(), &mut Quiet::default());
    assert!(ran.is_err());
    assert_eq!(std::fs::read(&log).expect("still there"), b"precious");
    // No connection opens.
    let deaf = Deaf::with_room_for(1);
    let mut scenario = Scenario::new(&mooncake(2, 1, 10, 1));
    scenario.config.overwrite = true;
    scenario.config.limits.connect_ns = Some(100_000_000);
    let log = precious(&scenario);
    scenario.config.target = Target::parse(&deaf.address.to_string()).expect("an address");
    let config = scenario.config.clone();
    assert!(ends(move || onbeat::run::run(config, &mut Quiet::default())).is_err());
    assert_eq!(std::fs::read(&log).expect("still there"), b"precious");
}
