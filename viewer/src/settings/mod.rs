//! What the viewer remembers between its windows, and how that is written down.
//!
//! One small JSON file with a version. Pure: text in, [`Settings`] out, and back. A file that makes
//! no sense gives the defaults and a sentence about it, never an error: nobody should lose a window
//! to a typo. Whatever is read is cut to bounds, since anyone may have written it. Reading and
//! writing the file is [`store`]'s.

pub mod store;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::arguments::ThemeChoice;
use crate::tiles::Saved;

/// The version of the file that this viewer writes.
const VERSION: u32 = 1;
/// A larger file is not ours.
pub const BYTES_MAX: usize = 256 * 1024;
/// Runs remembered.
pub const RECENT_MAX: usize = 12;
/// The longest path remembered: no system has longer ones.
const PATH_BYTES_MAX: usize = 4_096;
/// Tables whose columns are remembered, columns of each, and the longest name of any.
const TABLES_MAX: usize = 64;
const COLUMNS_MAX: usize = 128;
const NAME_BYTES_MAX: usize = 128;
/// How small and how large everything may be drawn.
const SCALES: std::ops::RangeInclusive<f32> = 0.5..=3.0;

/// What is remembered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// The file's version; also its mark.
    #[serde(rename = "onbeat_viewer_settings")]
    version: u32,
    /// Colours.
    pub theme: ThemeChoice,
    /// How large everything is drawn, 1 being usual.
    pub scale: f32,
    /// Panels that are seen at once.
    pub layout: Saved,
    /// Whether lists of files begin with the newest.
    pub newest_first: bool,
    /// The folder files were last opened from.
    pub folder: Option<PathBuf>,
    /// Runs opened last, the latest first.
    pub recent: Vec<PathBuf>,
    /// The columns shown of each table, in their order, by the table's name.
    pub columns: BTreeMap<String, Vec<String>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            version: VERSION,
            theme: ThemeChoice::System,
            scale: 1.0,
            layout: Saved::default(),
            newest_first: true,
            folder: None,
            recent: Vec::new(),
            columns: BTreeMap::new(),
        }
    }
}

/// Why a file's settings are not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// It makes no sense.
    Damaged(String),
    /// A later viewer wrote it; it must not be written over.
    Newer(u32),
}

impl Settings {
    /// Settings from the text of a file.
    ///
    /// # Errors
    /// Why they are not used.
    pub fn parse(text: &[u8]) -> Result<Self, Unusable> {
        if text.len() > BYTES_MAX {
            let words = format!("it has more than {} KiB", BYTES_MAX / 1024);
            return Err(Unusable::Damaged(words));
        }
        // A later version may have other types in it, so the version is looked at first.
        #[derive(Deserialize)]
        struct Mark {
            onbeat_viewer_settings: Option<u32>,
        }
        let damaged = |error: serde_json::Error| Unusable::Damaged(error.to_string());
        let mark: Mark = serde_json::from_slice(text).map_err(damaged)?;
        match mark.onbeat_viewer_settings {
            Some(version) if version > VERSION => return Err(Unusable::Newer(version)),
            Some(_) => {}
            None => return Err(Unusable::Damaged("onbeat_viewer_settings is missing".to_owned())),
        }
        let mut settings: Self = serde_json::from_slice(text).map_err(damaged)?;
        settings.bound();
        Ok(settings)
    }

    /// The text of a file.
    #[must_use]
    pub fn text(&self) -> String {
        let mut bounded = self.clone();
        bounded.bound();
        // Paths that are no text were cut out, and nothing else in it can fail to be written.
        let mut text = serde_json::to_string_pretty(&bounded).unwrap_or_default();
        text.push('\n');
        text
    }

    fn bound(&mut self) {
        self.version = VERSION;
        self.scale = if self.scale.is_finite() {
            self.scale.clamp(*SCALES.start(), *SCALES.end())
        } else {
            1.0
        };
        let mut seen = Vec::new();
        self.recent.retain(|path| {
            let keep = is_text(path) && path.is_absolute() && !seen.contains(path);
            seen.push(path.clone());
            keep
        });
        self.recent.truncate(RECENT_MAX);
        self.folder = self.folder.take().filter(|folder| is_text(folder) && folder.is_absolute());
        while self.columns.len() > TABLES_MAX {
            self.columns.pop_last();
        }
        let fits = |name: &String| name.len() <= NAME_BYTES_MAX;
        self.columns.retain(|table, _| fits(table));
        for columns in self.columns.values_mut() {
            columns.retain(fits);
            columns.truncate(COLUMNS_MAX);
        }
    }
}

/// Whether a path can be written down: it is text, and not absurdly long.
fn is_text(path: &Path) -> bool {
    path.to_str().is_some_and(|text| !text.is_empty() && text.len() <= PATH_BYTES_MAX)
}

/// The recent runs to write: ours, then those that another window has added to the file since we
/// last read or wrote it. What we took out stays out.
#[must_use]
pub fn merged(ours: &[PathBuf], base: &[PathBuf], theirs: &[PathBuf]) -> Vec<PathBuf> {
    let added = theirs.iter().filter(|path| !base.contains(path) && !ours.contains(path));
    ours.iter().chain(added).take(RECENT_MAX).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(names: &[&str]) -> Vec<PathBuf> {
        names.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn what_is_written_is_read_again() {
        let mut settings = Settings {
            theme: ThemeChoice::Dark,
            scale: 1.3,
            newest_first: false,
            folder: Some("/runs".into()),
            recent: paths(&["/runs/b.beat", "/runs/ä a.beat"]),
            ..Settings::default()
        };
        let columns = vec!["ttft".to_owned(), "input".to_owned()];
        settings.columns.insert("requests".to_owned(), columns);
        assert_eq!(Settings::parse(settings.text().as_bytes()), Ok(settings));
        let defaults = Settings::default();
        assert_eq!(Settings::parse(defaults.text().as_bytes()), Ok(defaults));
    }

    #[test]
    fn what_is_missing_is_the_default_and_what_is_unknown_is_passed_over() {
        let text = br#"{"onbeat_viewer_settings": 1, "theme": "light", "shoe_size": 42}"#;
        let settings = Settings::parse(text).expect("good enough");
        assert_eq!(settings, Settings { theme: ThemeChoice::Light, ..Settings::default() });
    }

    #[test]
    fn damage_is_told_and_a_later_version_too() {
        for text in [
            "",
            "{",
            "[]",
            "null",
            "{}",
            "\u{0}\u{1}",
            r#"{"onbeat_viewer_settings": 1, "scale": "big"}"#,
            r#"{"onbeat_viewer_settings": -1}"#,
            r#"{"onbeat_viewer_settings": 1, "recent": 7}"#,
        ] {
            let found = Settings::parse(text.as_bytes());
            assert!(matches!(found, Err(Unusable::Damaged(_))), "{text}: {found:?}");
        }
        let deep = "[".repeat(BYTES_MAX - 100);
        assert!(Settings::parse(deep.as_bytes()).is_err());
        let large = vec![b' '; BYTES_MAX + 1];
        assert!(matches!(Settings::parse(&large), Err(Unusable::Damaged(_))));
        let later = br#"{"onbeat_viewer_settings": 2, "scale": "big"}"#;
        assert_eq!(Settings::parse(later), Err(Unusable::Newer(2)));
    }

    #[test]
    fn whatever_is_read_is_cut_to_bounds() {
        let mut settings = Settings { scale: 1e30, ..Settings::default() };
        settings.recent = (0..100).map(|i| PathBuf::from(format!("/runs/{i}.beat"))).collect();
        settings.recent.insert(0, PathBuf::from("relative.beat"));
        settings.recent.insert(0, PathBuf::from("/".repeat(PATH_BYTES_MAX + 1)));
        settings.recent.insert(3, PathBuf::from("/runs/0.beat"));
        for i in 0..200 {
            settings.columns.insert(format!("table {i}"), vec!["x".repeat(500), "y".into()]);
        }
        let text = serde_json::to_vec(&settings).expect("text");
        let read = Settings::parse(&text).expect("sound");
        assert_eq!(read.scale.to_bits(), 3.0_f32.to_bits());
        assert_eq!(read.recent.len(), RECENT_MAX);
        assert_eq!(read.recent[..2], paths(&["/runs/0.beat", "/runs/1.beat"]));
        assert_eq!(read.columns.len(), TABLES_MAX);
        assert!(read.columns.values().all(|columns| columns == &["y".to_owned()]));
    }

    #[test]
    fn two_windows_keep_each_others_runs() {
        let (a, b, c) = ("/a", "/b", "/c");
        // Both began with a; we opened b, the other window opened c.
        assert_eq!(merged(&paths(&[b, a]), &paths(&[a]), &paths(&[c, a])), paths(&[b, a, c]));
        // We cleared the list.
        assert_eq!(merged(&[], &paths(&[a]), &paths(&[a])), paths(&[]));
        assert_eq!(merged(&paths(&[a]), &[], &paths(&[a])), paths(&[a]));
    }
}
