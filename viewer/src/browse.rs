//! What is in a folder, for the dialog that opens runs: read on a thread of its own.
//!
//! A folder on a network may take seconds, so the window asks [`Look::poll`] once a frame and shows
//! what it has meanwhile. Only folders and files that the viewer may be able to open are listed,
//! and no more than [`ENTRIES_MAX`] of them; what was left out is counted. This module draws
//! nothing and opens no file.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::SystemTime,
};

use crossbeam::channel::{Receiver, TryRecvError, bounded};

/// Files and folders listed of one folder, at most.
pub const ENTRIES_MAX: usize = 20_000;
/// Endings of files that the viewer may be able to open.
pub const ENDINGS: [&str; 4] = ["beat", "jsonl", "json", "csv"];

/// A file or folder in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where it is.
    pub path: PathBuf,
    /// Its name, to be shown.
    pub name: String,
    /// The name as it is searched: without capitals.
    pub folded: String,
    /// Whether it is a folder.
    pub is_folder: bool,
    /// Its size, of a file that could be looked at.
    pub bytes: Option<u64>,
    /// When it was last changed.
    pub modified: Option<SystemTime>,
    /// How long ago that was, in words.
    pub age: String,
}

/// What is in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// The folder.
    pub folder: PathBuf,
    /// Folders and files that may be opened.
    pub entries: Vec<Entry>,
    /// Files of other kinds, which are not listed.
    pub others: usize,
    /// Whether there were more than can be listed.
    pub cut: bool,
}

/// What is at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A folder.
    Folder(Listing),
    /// A file.
    File(PathBuf),
    /// Nothing that could be looked at.
    Refused {
        /// The place.
        place: PathBuf,
        /// Why.
        words: String,
    },
}

/// A place that is being looked at.
#[derive(Debug)]
pub struct Look {
    place: PathBuf,
    result: Receiver<Found>,
    stopped: Arc<AtomicBool>,
}

impl Look {
    /// Starts to look at a place; `wake` is called once it is known what is there.
    #[must_use]
    pub fn start(place: PathBuf, wake: impl FnOnce() + Send + 'static) -> Self {
        let (sender, result) = bounded(1);
        let stopped = Arc::new(AtomicBool::new(false));
        let thread = thread::Builder::new().name("onbeat-browse".to_owned());
        let started = {
            let (place, stopped, sender) = (place.clone(), Arc::clone(&stopped), sender.clone());
            thread.spawn(move || {
                let found = look_at(&place, now(), &|| stopped.load(Ordering::Relaxed));
                // Nobody listens any more when another place was asked for meanwhile.
                let _ = sender.send(found);
                wake();
            })
        };
        if let Err(error) = started {
            let _ = sender.send(Found::Refused { place: place.clone(), words: error.to_string() });
        }
        Self { place, result, stopped }
    }

    /// The place.
    #[must_use]
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// What is there, once.
    #[must_use]
    pub fn poll(&self) -> Option<Found> {
        match self.result.try_recv() {
            Ok(found) => Some(found),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Found::Refused {
                place: self.place.clone(),
                words: "the viewer failed while reading it".to_owned(),
            }),
        }
    }
}

impl Drop for Look {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

/// Looks at a place on the calling thread. `now` is what ages are counted from; `stop` ends it
/// early, with what it has.
#[must_use]
pub fn look_at(place: &Path, now: SystemTime, stop: &dyn Fn() -> bool) -> Found {
    let refused =
        |error: &io::Error| Found::Refused { place: place.to_owned(), words: words(error) };
    match place.metadata() {
        Err(error) => refused(&error),
        Ok(metadata) if !metadata.is_dir() => Found::File(place.to_owned()),
        Ok(_) => match fs::read_dir(place) {
            Ok(entries) => Found::Folder(listing(place, entries, now, stop)),
            Err(error) => refused(&error),
        },
    }
}

fn listing(folder: &Path, found: fs::ReadDir, now: SystemTime, stop: &dyn Fn() -> bool) -> Listing {
    let (mut entries, mut others, mut cut) = (Vec::new(), 0, false);
    for entry in found.map_while(Result::ok) {
        if stop() {
            break;
        }
        let Some(entry) = looked_at(&entry, now) else {
            others += 1;
            continue;
        };
        if entries.len() == ENTRIES_MAX {
            cut = true;
            break;
        }
        entries.push(entry);
    }
    Listing { folder: folder.to_owned(), entries, others, cut }
}

/// An entry of a folder, if it is one that is listed.
fn looked_at(entry: &fs::DirEntry, now: SystemTime) -> Option<Entry> {
    let name = entry.file_name().to_string_lossy().into_owned();
    if name.starts_with('.') {
        return None;
    }
    let path = entry.path();
    let kind = entry.file_type().ok()?;
    // Only what may be listed is worth a question to a slow disk.
    if !kind.is_dir() && !kind.is_symlink() && !may_open(&path) {
        return None;
    }
    // Of a link, what it leads to.
    let metadata = path.metadata().ok()?;
    if !(metadata.is_dir() || metadata.is_file() && may_open(&path)) {
        return None;
    }
    let modified = metadata.modified().ok();
    Some(Entry {
        folded: name.to_lowercase(),
        name,
        path,
        is_folder: metadata.is_dir(),
        bytes: metadata.is_file().then_some(metadata.len()),
        modified,
        age: modified.map(|modified| age(modified, now)).unwrap_or_default(),
    })
}

/// Whether a file's name ends like one the viewer may be able to open.
#[must_use]
pub fn may_open(path: &Path) -> bool {
    path.extension()
        .and_then(|ending| ending.to_str())
        .is_some_and(|ending| ENDINGS.iter().any(|known| known.eq_ignore_ascii_case(ending)))
}

/// Puts folders first, then the newest or the first by name.
pub fn order(entries: &mut [Entry], newest_first: bool) {
    entries.sort_by(|a, b| {
        let by_kind = b.is_folder.cmp(&a.is_folder);
        let by_time = if newest_first { b.modified.cmp(&a.modified) } else { by_kind };
        by_kind.then(by_time).then_with(|| a.folded.cmp(&b.folded))
    });
}

/// What the operating system said, for people.
fn words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "There is nothing at this path.".to_owned(),
        io::ErrorKind::NotADirectory => "A part of this path is a file.".to_owned(),
        io::ErrorKind::PermissionDenied => "You may not look into this folder.".to_owned(),
        _ => crate::quantity::sentence(&error.to_string()),
    }
}

/// A moment of the past: `just now`, `12 min ago`, `5 h ago`, `3 days ago`, `2026-03-14`.
fn age(then: SystemTime, now: SystemTime) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    // A clock that is a little behind another machine's is no reason for a strange word.
    let seconds = now.duration_since(then).map_or(0, |age| age.as_secs());
    match seconds {
        0..MINUTE => "just now".to_owned(),
        MINUTE..HOUR => format!("{} min ago", seconds / MINUTE),
        HOUR..DAY => format!("{} h ago", seconds / HOUR),
        DAY..604_800 => format!("{} ago", crate::quantity::counted(seconds / DAY, "day")),
        _ => date(then),
    }
}

/// The day, in Coordinated Universal Time: `2026-03-14`.
fn date(time: SystemTime) -> String {
    let since_1970 = time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let days = i64::try_from(since_1970 / 86_400).unwrap_or(i64::MAX / 2);
    // Years begin in March here, so that a leap day is a year's last (Howard Hinnant's method):
    // 719,468 days lie between the first of March of year 0 and 1970, an era has 146,097.
    let days = days.saturating_add(719_468);
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{}-{month:02}-{day:02}", year + era * 400 + next)
}

#[expect(clippy::disallowed_methods, reason = "a file's age for people to read measures nothing")]
fn now() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn ages_are_words() {
        let now = at(1_800_000_000);
        for (seconds, words) in [
            (0, "just now"),
            (59, "just now"),
            (60, "1 min ago"),
            (3_599, "59 min ago"),
            (3_600, "1 h ago"),
            (86_400, "1 day ago"),
            (3 * 86_400, "3 days ago"),
            (30 * 86_400, "2026-12-16"),
        ] {
            assert_eq!(age(now - Duration::from_secs(seconds), now), words);
        }
        assert_eq!(age(now + Duration::from_secs(9), now), "just now");
    }

    #[test]
    fn dates_are_the_calendars() {
        for (seconds, day) in [
            (0, "1970-01-01"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (1_709_164_800, "2024-02-29"),
            (1_735_603_200, "2024-12-31"),
            (4_107_542_400, "2100-03-01"),
        ] {
            assert_eq!(date(at(seconds)), day);
        }
    }

    #[test]
    fn a_folder_lists_folders_and_what_may_be_opened() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, seconds: u64| {
            let file = fs::File::create(folder.path().join(name)).expect("made");
            file.set_modified(at(seconds)).expect("set");
        };
        for (place, name) in
            ["b.beat", "A.BEAT", "c.jsonl", "notes.txt", ".hidden.beat", "d.csv"].iter().enumerate()
        {
            write(name, 1_000 + place as u64);
        }
        for name in ["zoo", ".git"] {
            fs::create_dir(folder.path().join(name)).expect("made");
        }
        let Found::Folder(mut listing) = look_at(folder.path(), at(2_000), &|| false) else {
            panic!("a folder")
        };
        assert_eq!((listing.others, listing.cut), (3, false));
        let names = |listing: &Listing| {
            listing.entries.iter().map(|entry| entry.name.clone()).collect::<Vec<_>>()
        };
        order(&mut listing.entries, true);
        assert_eq!(names(&listing), ["zoo", "d.csv", "c.jsonl", "A.BEAT", "b.beat"]);
        order(&mut listing.entries, false);
        assert_eq!(names(&listing), ["zoo", "A.BEAT", "b.beat", "c.jsonl", "d.csv"]);
        assert_eq!(listing.entries[1].age, "16 min ago");
        assert_eq!(listing.entries[1].bytes, Some(0));
        assert_eq!(listing.entries[0].bytes, None, "a folder has no size");
    }

    #[test]
    fn files_and_what_is_not_there_are_told_apart() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("run.beat");
        fs::write(&file, "x").expect("written");
        assert_eq!(look_at(&file, at(0), &|| false), Found::File(file.clone()));
        for place in [folder.path().join("missing"), file.join("inside")] {
            let found = look_at(&place, at(0), &|| false);
            let Found::Refused { words, .. } = found else { panic!("{found:?}") };
            assert!(words.ends_with('.'), "{words}");
        }
    }

    #[test]
    fn a_look_is_taken_in_the_background() {
        let folder = tempfile::tempdir().expect("a folder");
        let (sender, woken) = bounded(1);
        let look = Look::start(folder.path().to_owned(), move || {
            sender.send(()).expect("the test listens");
        });
        woken.recv().expect("it wakes us");
        let found = look.poll().expect("an answer");
        assert!(matches!(found, Found::Folder(listing) if listing.entries.is_empty()));
    }
}
