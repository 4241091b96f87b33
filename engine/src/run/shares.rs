//! A shard's part of the limits that hold for a whole run: together all shards have no more.
//!
//! What is a limit of one process or machine (memory, cores, time, lateness, failures in a row) is
//! not divided, and neither is a rate that sessions arrive at: its draws are those of the whole
//! run, and each shard sends its own sessions of them. 0 is no limit, and stays none.

use crate::error::EngineError;
use crate::plan::Shard;
use crate::policy::options::UserOptions;
use crate::run::RunConfig;

/// Divides what the user gave for the whole run.
///
/// # Errors
/// When there is not enough of something for each shard.
pub(super) fn settle(config: &mut RunConfig) -> Result<(), EngineError> {
    let Some(shard) = config.shard.filter(|shard| shard.count() > 1) else { return Ok(()) };
    let share = |option: &str, all: usize| -> Result<usize, String> {
        Ok(usize::try_from(shard.share_of(option, all as u64)?).unwrap_or(usize::MAX))
    };
    let divided = |config: &mut RunConfig| -> Result<(), String> {
        if let Some(most) = &mut config.max_connections {
            *most = share("--max-connections", *most)?;
        }
        if let Some(warm) = &mut config.warm_connections {
            *warm = usize::try_from(shard.share(*warm as u64)).unwrap_or(usize::MAX);
        }
        Ok(())
    };
    divided(config).map_err(EngineError::Usage)
}

/// Divides what a user-driven run may have.
///
/// # Errors
/// When there is not enough of something for each shard.
pub(super) fn of_users(options: &mut UserOptions, shard: Shard) -> Result<(), EngineError> {
    let divided = |options: &mut UserOptions| -> Result<(), String> {
        let limits = &mut options.limits;
        let counts = [
            ("--start-users", &mut options.start_users),
            ("--max-users", &mut options.max_users),
            ("--max-concurrent-requests", &mut limits.concurrent),
            ("--max-prefill-concurrent", &mut limits.prefill),
            ("--max-decode-concurrent", &mut limits.decode),
        ];
        for (option, count) in counts.into_iter().filter(|(_, count)| **count > 0) {
            let own = shard.share_of(option, u64::from(*count))?;
            *count = u32::try_from(own).expect("a part of it");
        }
        let tokens = [
            ("--itpm-budget", &mut limits.input_per_minute),
            ("--otpm-budget", &mut limits.output_per_minute),
            ("--max-new-tokens-per-period", &mut options.new_tokens_per_period),
            ("--max-working-set-tokens", &mut options.working_set_tokens),
        ];
        for (option, count) in tokens.into_iter().filter(|(_, count)| **count > 0) {
            *count = shard.share_of(option, *count)?;
        }
        Ok(())
    };
    divided(options).map_err(EngineError::Usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares(options: &UserOptions, count: u32) -> Result<Vec<UserOptions>, EngineError> {
        let own = |index| {
            let mut own = options.clone();
            let shard = Shard::new(index, count).expect("a part");
            of_users(&mut own, shard).map(|()| own)
        };
        (0..count).map(own).collect()
    }

    #[test]
    fn users_and_budgets_of_all_shards_are_those_of_the_run() {
        let mut options = UserOptions { start_users: 6, ..UserOptions::default() };
        options.limits.input_per_minute = 1_001;
        let own = shares(&options, 4).expect("enough for all");
        let users: Vec<u32> = own.iter().map(|own| own.max_users).collect();
        assert_eq!(users, [13, 13, 12, 12]);
        assert_eq!(own.iter().map(|own| own.start_users).sum::<u32>(), 6);
        assert_eq!(own.iter().map(|own| own.limits.concurrent).sum::<u32>(), 50);
        assert_eq!(own.iter().map(|own| own.limits.input_per_minute).sum::<u64>(), 1_001);
        let tokens = options.new_tokens_per_period;
        assert_eq!(own.iter().map(|own| own.new_tokens_per_period).sum::<u64>(), tokens);
        // What is no limit stays none.
        assert!(own.iter().all(|own| own.limits.prefill == 0 && own.working_set_tokens == 0));
    }

    #[test]
    fn a_limit_too_small_for_all_shards_is_refused_with_what_would_do() {
        let words = shares(&UserOptions::default(), 4).expect_err("one user").to_string();
        assert!(words.contains("--start-users 1 is for all 4 shards together"), "{words}");
        assert!(words.contains("give 4 or more"), "{words}");
    }
}
