//! Opens a result of another load generator as a run.
//!
//! Which tools, and what their files have, is `onbeat_shared::import`'s; here the bytes are read
//! and what is wrong with them becomes a [`Problem`]. Such a file is read whole: it is text of
//! which every number is needed, and nobody follows it while it grows.

use std::path::Path;

use onbeat_shared::import::{self, HEAD_BYTES, ImportError};

use crate::opened::{OpenedRun, Stand};
use crate::problem::{Kind, Problem};
use crate::source::Source;

/// The largest such file that is read: it is in memory whole, beside the run that is made of it.
const LARGEST: u64 = 4 << 30;
/// Bytes that are read between two reports of progress.
const PIECE: usize = 16 << 20;
/// Share of the progress that is reading the bytes.
const READING: f32 = 0.4;

/// Whose result a file is, if it is one.
///
/// # Errors
/// A [`Problem`] when it cannot be read.
pub(crate) fn kind(source: &mut Source, path: &Path) -> Result<Option<import::Kind>, Problem> {
    let mut head = Vec::new();
    let read = source.read(0, HEAD_BYTES, &mut head);
    read.map_err(|error| Problem::of_io(path, &error))?;
    Ok(import::Kind::of(&head))
}

/// Reads a result. `progress` hears a share from 0 to 1; its answer `false` stops the work.
///
/// # Errors
/// A [`Problem`] that says where the file is not as it should be.
pub(crate) fn open(
    kind: import::Kind,
    source: &mut Source,
    path: &Path,
    progress: &dyn Fn(f32) -> bool,
) -> Result<OpenedRun, Problem> {
    let wrong =
        |words: String| Problem::new(path, Kind::Import { tool: kind.tool().to_owned(), words });
    let length = source.length();
    if length > LARGEST {
        return Err(wrong(format!("it has {length} bytes, and at most {LARGEST} are read")));
    }
    let mut bytes = Vec::new();
    let mut piece = Vec::new();
    while (bytes.len() as u64) < length {
        if !progress(READING * bytes.len() as f32 / length as f32) {
            return Err(Problem::new(path, Kind::Cancelled));
        }
        let read = source.read(bytes.len() as u64, PIECE, &mut piece);
        read.map_err(|error| Problem::of_io(path, &error))?;
        if piece.is_empty() {
            return Err(Problem::new(path, Kind::Shrank));
        }
        bytes.extend_from_slice(&piece);
    }
    let name = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
    let further = |share: f32| progress(READING + (1.0 - READING) * share);
    match import::read(kind, &name, &bytes, &further) {
        Ok(run) => Ok(OpenedRun::standing(path.to_owned(), length, run, Stand::Complete)),
        Err(ImportError::Cancelled) => Err(Problem::new(path, Kind::Cancelled)),
        Err(error @ ImportError::Wrong { .. }) => Err(wrong(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::load;

    const RESULT: &str = "{\"metadata\":{\"request_start_ns\":1000,\"request_end_ns\":9000},\
                          \"metrics\":{}}\n";

    #[test]
    fn results_open_like_logs_and_damaged_ones_say_where() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("profile_export.jsonl");
        fs::write(&path, RESULT.repeat(3)).expect("written");
        let opened = load::open(&path, &|_| true).expect("a run");
        assert_eq!(opened.run.requests.len(), 3);
        assert_eq!(import::measured_by(&opened.run), Some("AIPerf"));
        fs::write(&path, format!("{RESULT}{{\"metadata\": 7}}\n")).expect("written");
        let problem = load::open(&path, &|_| true).expect_err("no record");
        assert!(problem.found().contains("AIPerf") && problem.found().contains("line 2"));
        fs::write(&path, RESULT).expect("written");
        let stopped = load::open(&path, &|_| false).expect_err("stopped");
        assert_eq!(stopped.kind, Kind::Cancelled);
    }
}
