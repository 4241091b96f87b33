//! Which options of users were typed, whatever their values are.

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};

use super::UserFlags;

/// The long names of options that were typed, with their dashes. It declares no option: it has to
/// stand before those it looks at, which take their values out of what was matched.
#[derive(Clone, Debug, Default)]
pub(super) struct Given(pub Vec<String>);

impl Given {
    /// Whether the option of this name was typed.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|given| given == name)
    }
}

impl Args for Given {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

impl FromArgMatches for Given {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let declared = UserFlags::augment_args(Command::new("users"));
        let typed = |option: &&Arg| {
            matches.value_source(option.get_id().as_str()) == Some(ValueSource::CommandLine)
        };
        let name = |option: &Arg| format!("--{}", option.get_long().unwrap_or_default());
        Ok(Self(declared.get_arguments().filter(typed).map(name).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
