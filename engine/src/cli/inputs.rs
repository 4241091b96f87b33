//! Keeps a command from writing over what it reads, whatever `--force` says.
//!
//! Two paths are the same file when they lead to the same device and inode, so links of both kinds
//! count. A trace that is a folder is all files in it. What is read beside a trace file (RAGPulse's
//! tables) counts as well.

use std::fs::{self, File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use onbeat_shared::foreign::shown_path;
use onbeat_shared::log::header::FILE_MARK;

use crate::error::EngineError;
use crate::trace;

/// Refuses an output that is one of the inputs. Inputs that are not there are left to who reads
/// them.
///
/// # Errors
/// When it is: with its name, as wrong usage.
pub(super) fn check_apart<'a>(
    output: &Path,
    inputs: impl IntoIterator<Item = &'a Path>,
) -> Result<(), EngineError> {
    let Ok(own) = fs::metadata(output) else { return Ok(()) };
    let mut read = inputs.into_iter().flat_map(files);
    if read.any(|input| fs::metadata(input).is_ok_and(|meta| is_same(&meta, &own))) {
        return Err(EngineError::Usage(format!(
            "{} is read by this command, and --force replaces no input; name another file with \
             --output",
            shown_path(output)
        )));
    }
    Ok(())
}

/// Refuses to replace, unasked, a file that is no run log.
///
/// # Errors
/// When it has bytes and does not begin like a log, or cannot be looked at.
pub(super) fn check_is_log(output: &Path) -> Result<(), EngineError> {
    // Whatever else there may be is never replaced.
    if !output.is_file() {
        return Ok(());
    }
    let failed = |error| EngineError::io("look at", output, error);
    let mut start = Vec::new();
    let file = File::open(output).map_err(failed)?;
    file.take(FILE_MARK.len() as u64).read_to_end(&mut start).map_err(failed)?;
    if start.is_empty() || start == FILE_MARK {
        return Ok(());
    }
    Err(EngineError::Usage(format!(
        "{} is no run log, and only an older log is replaced; name another file with --output",
        shown_path(output)
    )))
}

/// The file, or those of a folder, and what goes with a trace.
fn files(input: &Path) -> Vec<PathBuf> {
    let mut files = vec![input.to_owned()];
    let entries = fs::read_dir(input).into_iter().flatten().flatten();
    files.extend(entries.map(|entry| entry.path()));
    files.extend(trace::tables_beside(input));
    files
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_log_is_replaced_unasked() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x");
        assert!(check_is_log(&path).is_ok() && check_is_log(folder.path()).is_ok());
        fs::write(&path, "").expect("room");
        assert!(check_is_log(&path).is_ok());
        fs::write(&path, onbeat_shared::log::sample::log(1, 1)).expect("room");
        assert!(check_is_log(&path).is_ok());
        fs::write(&path, "precious").expect("room");
        let error = check_is_log(&path).expect_err("no log");
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().contains("is no run log"), "{error}");
    }

    #[test]
    fn an_output_is_no_input_by_whatever_name() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        for name in ["a.parquet", "other", "0_trace.jsonl", "1_sys_prompt.jsonl"] {
            fs::write(at(name), "x").expect("room");
        }
        std::os::unix::fs::symlink(at("a.parquet"), at("link")).expect("a link");
        fs::hard_link(at("a.parquet"), at("hard")).expect("a link");
        let apart = |output: &str, input: &Path| check_apart(&at(output), [input]);
        for output in ["a.parquet", "./a.parquet", "link", "hard"] {
            let error = apart(output, &at("a.parquet")).expect_err(output);
            assert_eq!(error.exit_code(), 2);
            assert!(error.to_string().contains("--force replaces no input"), "{error}");
        }
        assert!(apart("a.parquet", folder.path()).is_err(), "a file of a folder");
        assert!(apart("1_sys_prompt.jsonl", &at("0_trace.jsonl")).is_err(), "a table beside it");
        assert!(apart("other", &at("a.parquet")).is_ok());
        assert!(apart("none", &at("a.parquet")).is_ok() && apart("other", &at("none")).is_ok());
    }
}
