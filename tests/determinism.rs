//! Same seed, same bytes, on any number of cores; another seed, other bytes.

use std::collections::BTreeMap;

use onbeat::run::CoreChoice;
use tests::{Scenario, mooncake};

/// What the server received, by request: digest of the body.
fn bodies(seed: u64, cores: u16) -> BTreeMap<String, [u8; 32]> {
    let mut scenario = Scenario::new(&mooncake(24, 1, 1_300, 2));
    scenario.config.render.seed = seed;
    scenario.config.cores = CoreChoice::Count(cores);
    let outcome = scenario.run();
    let digests: BTreeMap<_, _> = outcome
        .served
        .into_iter()
        .map(|served| {
            let id = served.request_id.expect("every request has an id");
            // The first half names the run; the second is the place in the plan.
            let place = id.rsplit('-').next().expect("two halves").to_owned();
            (place, served.body_digest)
        })
        .collect();
    assert_eq!(digests.len(), 24, "ids are unique");
    digests
}

#[test]
fn the_same_seed_sends_the_same_bytes_on_any_number_of_cores() {
    let first = bodies(7, 1);
    assert_eq!(first, bodies(7, 1));
    let allowed = onbeat::replayer::affinity::allowed_cpus().expect("the system says");
    if allowed.len() >= 2 {
        assert_eq!(first, bodies(7, 2));
    }
    let other = bodies(8, 1);
    assert!(first.iter().all(|(place, digest)| other[place] != *digest));
}
