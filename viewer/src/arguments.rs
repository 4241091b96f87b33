//! The command line: what to open, and whether to save a picture and leave.

use std::{fs, path::PathBuf, str::FromStr};

use clap::{Parser, ValueEnum};
use clap_complete::Shell;
use eframe::egui::ThemePreference;
use onbeat_shared::{foreign::shown_path, metrics::selection::parse_seconds};
use serde::{Deserialize, Serialize};

use crate::filter::Filter;
use crate::panels;

/// Shows what happened in an Onbeat run.
#[derive(Clone, Debug, Parser)]
#[command(name = "onbeat-viewer", version, about)]
pub struct Arguments {
    /// Run logs to open, or results of AIPerf, vllm bench or the Trace Replay Tester.
    #[arg(value_name = "RUN.beat")]
    pub runs: Vec<PathBuf>,
    /// Panel to show first: Overview, Latency, Distribution, Shape, Throughput, Cache, SLO,
    /// Lateness, Timeline, Users, Requests or Compare; `all` with --screenshot: a picture of each,
    /// in files of their own.
    #[arg(long, value_name = "NAME", value_parser = panel)]
    pub panel: Option<PanelChoice>,
    /// Colours [default: as chosen last, at first as the system has them].
    #[arg(long, value_enum)]
    pub theme: Option<ThemeChoice>,
    /// Size of the window in points.
    #[arg(long, value_name = "WxH", default_value = "1280x800")]
    pub size: Size,
    /// Range of time the numbers speak of, in seconds of the run, for example 12.5..20, or 12.5..
    /// for all from there on.
    #[arg(long, value_name = "A..B", value_parser = parse_seconds, allow_hyphen_values = true)]
    pub range: Option<(f64, f64)>,
    /// Which requests the numbers speak of, for example 'ttft > 500ms && input > 8k'.
    #[arg(long, value_name = "TEXT", value_parser = filter)]
    pub filter: Option<String>,
    /// Save a picture of the window once it is complete, and leave. No window is opened and no
    /// display needed; a file of this name is replaced.
    #[arg(long, value_name = "OUT.png")]
    pub screenshot: Option<PathBuf>,
    /// Pixels to a point in the picture, from 1 to 4.
    #[arg(long, value_name = "N", default_value_t = 1.0, value_parser = scale,
          requires = "screenshot")]
    pub scale: f32,
    /// Neither read nor write the settings of earlier windows; also meant by `--screenshot`.
    #[arg(long)]
    pub no_settings: bool,
    /// Print the completion script of a shell, and leave.
    #[arg(long, value_name = "SHELL", exclusive = true)]
    pub completions: Option<Shell>,
    /// Print the manual page, and leave.
    #[arg(long, exclusive = true)]
    pub man: bool,
}

impl Arguments {
    /// Refuses what makes no sense together, and to save the picture over a run that is to be
    /// shown.
    ///
    /// # Errors
    /// When `--screenshot` names one of the runs, by whatever path, or `--panel all` has no
    /// `--screenshot`.
    pub fn check(&self) -> Result<(), String> {
        let Some(picture) = &self.screenshot else {
            return match self.panel {
                Some(PanelChoice::All) => {
                    Err("--panel all is for pictures: add --screenshot OUT.png".to_owned())
                }
                _ => Ok(()),
            };
        };
        let own = fs::canonicalize(picture);
        let same = |run: &PathBuf| {
            own.as_ref().is_ok_and(|own| fs::canonicalize(run).is_ok_and(|run| run == *own))
        };
        if !self.runs.iter().any(same) {
            return Ok(());
        }
        let name = shown_path(picture);
        Err(format!("--screenshot {name} is a run that is to be shown; name another file"))
    }
}

/// Which panels the command line names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PanelChoice {
    /// The one at this place.
    One(usize),
    /// Each of them.
    All,
}

/// Which colours to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum ThemeChoice {
    /// As the system says.
    #[default]
    System,
    /// Dark on light.
    Light,
    /// Light on dark.
    Dark,
}

impl ThemeChoice {
    /// The choice in the window library's words.
    #[must_use]
    pub const fn preference(self) -> ThemePreference {
        match self {
            Self::System => ThemePreference::System,
            Self::Light => ThemePreference::Light,
            Self::Dark => ThemePreference::Dark,
        }
    }

    /// The choice from the window library's words.
    #[must_use]
    pub const fn of(preference: ThemePreference) -> Self {
        match preference {
            ThemePreference::System => Self::System,
            ThemePreference::Light => Self::Light,
            ThemePreference::Dark => Self::Dark,
        }
    }
}

/// A window's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Points across.
    pub width: u16,
    /// Points down.
    pub height: u16,
}

/// The smallest window in which every panel can be used.
const SMALLEST: Size = Size { width: 480, height: 360 };
/// The largest that graphics hardware is sure to draw.
const LARGEST: Size = Size { width: 8_192, height: 8_192 };

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{text:?} is no size; write width x height in points, from {}x{} to {}x{}, for \
                 example 1280x800",
                SMALLEST.width, SMALLEST.height, LARGEST.width, LARGEST.height
            )
        };
        let (width, height) = text.split_once(['x', 'X', '×']).ok_or_else(wrong)?;
        let number = |text: &str| text.trim().parse::<u16>().ok();
        let (width, height) = number(width).zip(number(height)).ok_or_else(wrong)?;
        let fits = (SMALLEST.width..=LARGEST.width).contains(&width)
            && (SMALLEST.height..=LARGEST.height).contains(&height);
        fits.then_some(Self { width, height }).ok_or_else(wrong)
    }
}

fn panel(name: &str) -> Result<PanelChoice, String> {
    if name.eq_ignore_ascii_case("all") {
        return Ok(PanelChoice::All);
    }
    panels::named(name).map(PanelChoice::One).ok_or_else(|| {
        let names: Vec<_> = panels::PANELS.iter().map(|panel| panel.name).collect();
        format!("there is no panel {name:?}; there are: {}", names.join(", "))
    })
}

fn filter(text: &str) -> Result<String, String> {
    Filter::parse(text).map(|_filter| text.to_owned()).map_err(|wrong| wrong.to_string())
}

fn scale(text: &str) -> Result<f32, String> {
    let scale = text.trim().parse().ok().filter(|scale| (1.0..=4.0).contains(scale));
    scale.ok_or_else(|| format!("{text:?} is no scale; write a number from 1 to 4, such as 2"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_never_replaces_a_run() {
        let folder = tempfile::tempdir().expect("a folder");
        let (run, other) = (folder.path().join("run.beat"), folder.path().join("out.png"));
        for path in [&run, &other] {
            fs::write(path, "x").expect("room");
        }
        let parse = |picture: &std::path::Path| {
            let words = ["onbeat-viewer", "--screenshot"].map(std::ffi::OsStr::new);
            Arguments::parse_from(words.into_iter().chain([picture.as_os_str(), run.as_os_str()]))
        };
        let again = folder.path().join(".").join("run.beat");
        for picture in [&run, &again] {
            let words = parse(picture).check().expect_err("it is the run");
            assert!(words.contains("run.beat is a run"), "{words}");
        }
        assert_eq!(parse(&other).check(), Ok(()));
        assert_eq!(parse(&folder.path().join("new.png")).check(), Ok(()));
    }

    #[test]
    fn all_panels_are_for_pictures() {
        let parse = |words: &[&str]| {
            Arguments::try_parse_from(["onbeat-viewer", "a.beat"].iter().chain(words))
        };
        let all = parse(&["--panel", "all"]).expect("words that are known");
        assert!(all.check().expect_err("no picture").contains("--screenshot"));
        let pictured = parse(&["--panel", "all", "--screenshot", "/nowhere/a.png"]);
        assert_eq!(pictured.expect("words that are known").check(), Ok(()));
        assert!(parse(&["--scale", "2"]).is_err(), "a window has its screen's scale");
    }

    #[test]
    fn the_declaration_is_sound() {
        use clap::CommandFactory as _;
        Arguments::command().debug_assert();
        let help = Arguments::command().render_long_help().to_string();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        for panel in panels::PANELS {
            assert!(help.contains(panel.name), "{} is not in the help", panel.name);
        }
    }

    #[test]
    fn sizes_and_panels_are_read_or_refused_with_an_example() {
        assert_eq!("1280x800".parse(), Ok(Size { width: 1280, height: 800 }));
        for wrong in ["", "1280", "axb", "10x10", "99999x800"] {
            let error = wrong.parse::<Size>().expect_err("no size");
            assert!(error.contains("for example 1280x800"), "{error}");
        }
        assert_eq!(panel("overview"), Ok(PanelChoice::One(0)));
        assert_eq!(panel("All"), Ok(PanelChoice::All));
        assert_eq!((scale("2"), scale(" 1.5 ")), (Ok(2.0), Ok(1.5)));
        assert_eq!(filter("ttft > 5ms"), Ok("ttft > 5ms".to_owned()));
        assert!(filter("ttft >").is_err());
        for wrong in ["0.5", "5", "NaN", "two"] {
            assert!(scale(wrong).expect_err("no scale").contains("from 1 to 4"));
        }
        assert!(panel("nonsense").expect_err("no panel").contains("Overview"));
    }
}
