//! One file that is written anew for each input, and what must hold however it is read.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use onbeat::trace::{self, TraceError, TraceOptions};
use onbeat_shared::dice::Dice;
use onbeat_shared::trace::{Format, Trace};

use super::{agreement, grammar};
use crate::fuzz::{Subject, memory, mutation};

/// A folder with one file, in memory where the system has room for files there.
pub(super) struct Place {
    folder: tempfile::TempDir,
}

/// Traces of text.
pub(super) struct Texts {
    place: Place,
}

/// Formats that the user may say a file of text has.
const NAMED: [Format; 8] = [
    Format::Mooncake,
    Format::Bailian,
    Format::RawPayload,
    Format::AzureCsv,
    Format::BurstGpt,
    Format::Agentic,
    Format::RagPulse,
    Format::Otel,
];

impl Place {
    pub(super) fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let folder =
            if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        Self { folder: folder.expect("a temporary folder") }
    }

    /// Writes the file.
    pub(super) fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, bytes).expect("room for a small file");
        path
    }
}

impl Texts {
    pub(super) fn new() -> Self {
        Self { place: Place::new() }
    }
}

impl Subject for Texts {
    fn generate(&mut self, dice: &mut Dice, out: &mut Vec<u8>) {
        let text = grammar::file(dice);
        if dice.below(40) == 0 {
            let mut packer = GzEncoder::new(out, Compression::fast());
            packer.write_all(text.as_bytes()).expect("memory takes it");
            packer.finish().expect("memory takes it");
        } else {
            out.extend_from_slice(text.as_bytes());
        }
    }

    fn judge(&mut self, input: &[u8]) -> Result<(), String> {
        let mut dice = mutation::dice_of(input);
        let path = self.place.write("t.jsonl", input);
        let mut options = TraceOptions { lenient: dice.below(8) == 0, ..TraceOptions::default() };
        if dice.below(8) == 0 {
            options.format = Some(NAMED[dice.place(NAMED.len())]);
        }
        memory::within(|| {
            let read = read(&path, &options);
            fair(&path, input, &read)?;
            match &read {
                Ok(trace) => agreement::check(input, trace),
                Err(error) => agreement::check_refusal(input, error),
            }
        })
    }
}

/// Reads a trace and all that it holds of its requests.
pub(super) fn read(path: &Path, options: &TraceOptions) -> Result<Trace, TraceError> {
    let mut trace = trace::read(path, options)?;
    trace::load_prompts(path, &mut trace, &|_record| true, u64::MAX)?;
    Ok(trace)
}

/// What must hold of any trace or refusal.
pub(super) fn fair(
    path: &Path,
    input: &[u8],
    read: &Result<Trace, TraceError>,
) -> Result<(), String> {
    let trace = match read {
        Err(error) => return told(path, input, error),
        Ok(trace) => trace,
    };
    if trace.source.rows != trace.records.len() as u64 || trace.source.bytes != input.len() as u64 {
        return Err(format!("{:?} of {} records", trace.source, trace.records.len()));
    }
    let mut text = Vec::new();
    for (place, record) in (0..).zip(&trace.records) {
        let ids = trace.blocks_of(record).iter().count();
        if ids != record.block_count as usize {
            return Err(format!("{ids} ids of {record:?}"));
        }
        text.clear();
        trace.recorded.append_text(place, &mut text);
        if text.len() != trace.recorded.text_len(place) || std::str::from_utf8(&text).is_err() {
            return Err(format!("record {place}: its text {:?}", text.escape_ascii().to_string()));
        }
        let _name = trace.session_name(record.session);
    }
    Ok(())
}

/// A refusal names the file and a line that it has, in printable words.
fn told(path: &Path, input: &[u8], error: &TraceError) -> Result<(), String> {
    let words = error.to_string();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if !words.contains(&*name) || words.chars().any(char::is_control) || words.len() > 4_096 {
        return Err(format!("its words: {words:?}"));
    }
    let lines = memchr_count(input) + 1;
    match error {
        TraceError::Io { .. } => Err(format!("the system is blamed: {words}")),
        TraceError::Row { line, .. } if (*line == 0 || *line > lines) && !is_packed(input) => {
            Err(format!("line {line} of {lines}: {words}"))
        }
        _ => Ok(()),
    }
}

fn memchr_count(input: &[u8]) -> u64 {
    input.iter().filter(|&&byte| byte == b'\n').count() as u64
}

/// Whether a file is compressed, by its first bytes.
pub(super) fn is_packed(input: &[u8]) -> bool {
    input.starts_with(b"\x1f\x8b")
        || input.starts_with(b"\x28\xb5\x2f\xfd")
        || (input.len() > 3 && input[0] & 0xf0 == 0x50 && input[1..4] == *b"\x2a\x4d\x18")
}
