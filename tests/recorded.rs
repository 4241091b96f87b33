//! What a trace recorded of its requests reaches the server as it stands, and waits as recorded.

use std::sync::{Arc, Mutex};

use onbeat::plan::{Arrivals, Factor, Pattern, Synthesis};
use onbeat::render::{Context, When};
use onbeat_shared::log::Class;
use onbeat_shared::trace::decimal::Ratio;
use tests::scripted::{Scripted, answer, good_stream, request};
use tests::{Scenario, drivers};

/// The bodies a server saw of a trace, sorted, with the requests rendered at the time `when`.
fn bodies(trace: &str, when: When, budget: Option<u64>) -> Vec<String> {
    let mut scenario = Scenario::new(trace);
    scenario.config.render.when = when;
    scenario.config.render.budget_bytes = budget;
    carried_out(scenario).0
}

/// The bodies a server saw in a scenario, sorted, and when they were due.
fn carried_out(scenario: Scenario) -> (Vec<String>, Vec<Option<i64>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let writing = Arc::clone(&seen);
    let server = Scripted::start(move |_, mut stream| {
        while let Some(bytes) = request(&mut stream) {
            let text = String::from_utf8(bytes).expect("UTF-8");
            let (_, body) = text.split_once("\r\n\r\n").expect("a head and a body");
            writing.lock().expect("nobody panics with it").push(body.to_owned());
            answer(&mut stream, &good_stream());
        }
    });
    let run = scenario.run_against(server.address);
    for request in 0..run.plan.len() {
        assert_eq!(run.requests.class(request), Some(Class::Ok), "{:?}", run.error_text(request));
    }
    let mut bodies = seen.lock().expect("nobody panics with it").clone();
    bodies.sort_unstable();
    (bodies, run.plan.iter().map(|row| row.due.map(|due| due.0)).collect())
}

#[test]
fn texts_messages_and_bodies_arrive_as_recorded() {
    let trace = concat!(
        "{\"timestamp\":0,\"text_input\":\"q\\\"b\\\\n\\u0000 \\u00e9\",\"output_length\":1}\n",
        "{\"timestamp\":40,\"payload\":{\"prompt\": \"x\", \"n\" : [1]}}\n",
        "{\"timestamp\":80,\"messages\":[{\"role\":\"system\",\"content\":\"s\"}],",
        "\"output_length\":2,\"extra\":{\"top_k\":7}}\n",
    );
    let mut expected = [
        "{\"messages\":[{\"role\":\"user\",\"content\":\"q\\\"b\\\\n\\u0000 \u{e9}\"}],\"model\":\
         \"default\",\"stream\":true,\"max_completion_tokens\":1,\"stream_options\":\
         {\"include_usage\":true}}",
        "{\"prompt\": \"x\", \"n\" : [1]}",
        "{\"messages\":[{\"role\":\"system\",\"content\":\"s\"}],\"model\":\"default\",\"stream\":\
         true,\"max_completion_tokens\":2,\"top_k\":7,\"stream_options\":{\"include_usage\":true}}",
    ];
    expected.sort_unstable();
    for when in [When::All, When::Ahead] {
        assert_eq!(bodies(trace, when, None), expected, "{when:?}");
    }
}

#[test]
fn lines_that_are_bodies_arrive_as_they_stand_when_due() {
    let lines = [
        "{\"model\":\"m\", \"prompt\" : \"\\u00e9\",\"n\":1.0}",
        "{\"model\":\"m\",\"prompt\":[1,2],\"stream\":true }",
        "{\"prompt\":\"z\",\"model\":\"m\"}",
    ];
    let mut expected = lines.to_vec();
    expected.sort_unstable();
    let mut scenario = Scenario::new(&lines.join("\n"));
    let rate = Ratio { numerator: 50, denominator: 1 };
    scenario.config.plan.arrivals = Some(Arrivals { rate, pattern: Pattern::Constant });
    let (bodies, dues) = carried_out(scenario);
    assert_eq!(bodies, expected);
    assert_eq!(dues, [0, 20_000_000, 40_000_000].map(Some));
    let timed = lines.map(|line| line.replacen('{', "{\"timestamp\":7.5,", 1));
    let (bodies, dues) = carried_out(Scenario::new(&timed.join("\n")));
    assert_eq!(
        (bodies, dues),
        (expected.iter().map(|&line| line.to_owned()).collect(), vec![Some(0); 3])
    );
}

#[test]
fn a_synthesised_prompt_has_the_length_that_was_planned() {
    let trace = concat!(
        "{\"timestamp\":0,\"input_length\":1300,\"output_length\":5,\"hash_ids\":[10,11,12]}\n",
        "{\"timestamp\":9,\"input_length\":1600,\"output_length\":3,\"hash_ids\":[10,11,20,21]}\n",
    );
    let mut scenario = Scenario::new(trace);
    scenario.config.plan.synthesis = Synthesis {
        prefix: Factor::parse("2").expect("a factor"),
        output: Factor::parse("3").expect("a factor"),
        ..Synthesis::NONE
    };
    let outcome = scenario.run();
    let mut served: Vec<_> = outcome.served.iter().map(|served| served.prompt_tokens).collect();
    served.sort_unstable();
    assert_eq!(served, [2324, 2624]);
    let planned: Vec<_> = outcome.run.plan.iter().map(|row| row.max_tokens).collect();
    assert_eq!(planned, [Some(15), Some(9)]);
    assert_eq!(outcome.run.plan[1].ideal_cached_tokens, Some(2048), "four blocks are shared");
}

#[test]
fn texts_that_memory_has_no_room_for_arrive_all_the_same() {
    // Twenty megabytes of text, and room for eight: the texts go through a file.
    let text = |row: usize| format!("row {row} ").repeat(150_000);
    let row =
        |row: usize| format!("{{\"timestamp\":{},\"text_input\":\"{}\"}}\n", row * 20, text(row));
    let trace: String = (10..30).map(row).collect();
    let bodies = bodies(&trace, When::Auto, Some(8 << 20));
    assert_eq!(bodies.len(), 20);
    for (row, body) in (10..).zip(&bodies) {
        let start = "{\"messages\":[{\"role\":\"user\",\"content\":\"";
        let (text, end) = (text(row), "\"}],\"model\":\"default\"");
        assert!(body.starts_with(&format!("{start}{text}{end}")), "row {row}");
    }
}

#[test]
fn a_turn_without_a_time_waits_its_delay_after_the_end_of_the_turn_before() {
    const DELAY_NS: i64 = 30_000_000;
    let trace = concat!(
        "{\"session_id\":\"a\",\"timestamp\":0,\"input_length\":20,\"output_length\":5}\n",
        "{\"session_id\":\"a\",\"delay\":30,\"input_length\":21,\"output_length\":5}\n",
        "{\"session_id\":\"a\",\"input_length\":22,\"output_length\":5}\n",
    );
    for driver in drivers() {
        let mut scenario = Scenario::new(trace);
        scenario.config.driver = Some(driver);
        scenario.config.render.context = Some(Context::Alone);
        let outcome = scenario.run();
        let (run, requests) = (&outcome.run, &outcome.run.requests);
        let thinks: Vec<_> = run.plan.iter().map(|row| (row.due.is_some(), row.think_ns)).collect();
        assert_eq!(thinks, [(true, None), (false, Some(DELAY_NS)), (false, Some(0))]);
        let sent = |at: usize| requests.sent(at).expect("it left").0;
        let done = |at: usize| requests.done(at).expect("it ended").0;
        assert!(sent(1) >= done(0) + DELAY_NS, "{} {}", sent(1), done(0));
        assert!(sent(2) >= done(1), "{} {}", sent(2), done(1));
        let prompts: Vec<_> = outcome.served.iter().map(|served| served.prompt_tokens).collect();
        assert_eq!(prompts, [20, 21, 22]);
    }
}
