//! Conversations of agents, in the JSON that kv-cache-tester replays: a file, or a folder of them.
//!
//! The files of a folder are read in parallel, by a bounded number of threads, and joined in order
//! of their names, so that the trace does not depend on the threads. Old releases are read too:
//! without scope, times or types, with a sub-agent first, or with more ids than tokens. What does
//! not fit is an error that names file, place in the JSON, field, what was found and what would be
//! right.

mod file;
mod given;
mod object;
mod place;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use onbeat_shared::counted::{agreeing, counted};
use onbeat_shared::foreign::{shown, shown_path};
use onbeat_shared::trace::agentic::{Agentic, Word};
use onbeat_shared::trace::blocks::{BLOCK_IDS_MAX, BlockIds};
use onbeat_shared::trace::record::Record;
use onbeat_shared::trace::recorded::{File, Recorded};
use onbeat_shared::trace::session::SessionNames;
use onbeat_shared::trace::{Format, Source, Trace, Warning};
use onbeat_shared::units::SessionIndex;

use crate::limits::REQUESTS_MAX;
use crate::trace::agentic::file::{Found, Odd};
use crate::trace::columns::Digest;
use crate::trace::{TraceError, TraceOptions};

/// Most threads that read: more would wait for the disk, or for each other's memory.
const READERS_MAX: usize = 8;
/// A reader's stack: sub-agents are nested by recursion.
const READER_STACK_BYTES: usize = 8 << 20;

/// Reads the conversations of these files, which lie in the folder `path` or are it.
pub(crate) fn load(
    path: &Path,
    files: &[PathBuf],
    options: &TraceOptions,
) -> Result<Trace, TraceError> {
    let digest = Digest::of_files(path, files.to_vec())?;
    let found = read_all(path, files, options)?;
    let mut joined = Joined::default();
    for (number, (found, file)) in found.into_iter().zip(files).enumerate() {
        joined.add(path, file, number, found)?;
    }
    joined.agentic.calls.shrink_to_fit();
    if joined.records.is_empty() {
        return Err(TraceError::file(path, "has conversations, but no request in any of them"));
    }
    let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let source = Source {
        name,
        sha256: digest.finish()?,
        format: Format::Agentic,
        rows: joined.records.len() as u64,
        bytes: joined.bytes,
    };
    Ok(joined.finish(source, path.is_dir()))
}

/// Reads files in parallel; the answer is in their order, and so is the error.
fn read_all(
    path: &Path,
    files: &[PathBuf],
    options: &TraceOptions,
) -> Result<Vec<Found>, TraceError> {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let readers = processors.min(READERS_MAX).min(files.len());
    let next = AtomicUsize::new(0);
    let slots: Vec<Mutex<Option<Result<Found, TraceError>>>> =
        files.iter().map(|_file| Mutex::new(None)).collect();
    let read = || {
        while let Some(place) =
            Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&p| p < files.len())
        {
            let found = file::read(&files[place], options.block_tokens);
            let failed = found.is_err();
            *slots[place].lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
            if failed {
                // Files before this one are under way already; later ones do not matter.
                next.store(files.len(), Ordering::Relaxed);
            }
        }
    };
    thread::scope(|scope| {
        for number in 0..readers {
            let builder = thread::Builder::new()
                .name(format!("onbeat-read-{number}"))
                .stack_size(READER_STACK_BYTES);
            let started = builder.spawn_scoped(scope, read);
            started.map_err(|error| TraceError::io("start a thread to read", path, error))?;
        }
        Ok(())
    })?;
    let found =
        slots.into_iter().map(|slot| slot.into_inner().unwrap_or_else(PoisonError::into_inner));
    // A slot is empty only behind one that holds an error.
    found.flatten().collect()
}

/// The conversations of all files so far.
#[derive(Debug, Default)]
struct Joined {
    agentic: Agentic,
    words: HashMap<String, Word>,
    records: Vec<Record>,
    blocks: BlockIds,
    names: Vec<String>,
    files: Vec<File>,
    block_tokens: Option<(u32, PathBuf)>,
    odd: Odd,
    bytes: u64,
}

impl Joined {
    fn add(
        &mut self,
        path: &Path,
        file: &Path,
        number: usize,
        mut found: Found,
    ) -> Result<(), TraceError> {
        let all_ids = self.blocks.len() + found.blocks.len();
        if self.records.len() + found.records.len() > REQUESTS_MAX || all_ids > BLOCK_IDS_MAX {
            let right = format!(
                "holds more than {REQUESTS_MAX} requests or {BLOCK_IDS_MAX} block ids; give a \
                 folder with fewer files"
            );
            return Err(TraceError::file(path, right));
        }
        if let Some(tokens) = found.block_tokens {
            let (before, first) =
                self.block_tokens.get_or_insert_with(|| (tokens, file.to_owned()));
            if *before != tokens {
                let words = format!(
                    "field \"block_size\": found {tokens}; right would be {before}, as in {} \
                     (--isl-block-size names one size for all files)",
                    shown_path(first)
                );
                return Err(TraceError::file(file, words));
            }
        }
        let count = |len: usize| u32::try_from(len).expect("bounded by REQUESTS_MAX");
        let (records, sessions) = (count(self.records.len()), count(self.names.len()));
        let groups = count(self.agentic.groups.len());
        let name = file.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
        self.files.push(File { name, first_record: records });
        place::shift(&mut found.agentic, records, groups, sessions, count(number));
        self.rename(file, &mut found.agentic)?;
        let first_block = self.blocks.len() as u64;
        for record in &mut found.records {
            record.session = SessionIndex(record.session.0 + sessions);
            record.first_block += first_block;
        }
        let ids = count(found.blocks.len());
        found.blocks.slice(0, ids).iter().for_each(|id| self.blocks.push(id));
        self.records.append(&mut found.records);
        self.names.append(&mut found.names);
        self.agentic.conversations.append(&mut found.agentic.conversations);
        self.agentic.groups.append(&mut found.agentic.groups);
        self.agentic.calls.append(&mut found.agentic.calls);
        self.odd.add(&found.odd);
        self.bytes += found.bytes;
        Ok(())
    }

    /// Numbers a file's words as all files' words are.
    fn rename(&mut self, file: &Path, own: &mut Agentic) -> Result<(), TraceError> {
        let mut numbers = Vec::with_capacity(own.words.len());
        for text in own.words.drain(..) {
            if let Some(&word) = self.words.get(&text) {
                numbers.push(word);
                continue;
            }
            let word = u16::try_from(self.agentic.words.len()).map(Word).map_err(|_too_many| {
                TraceError::file(file, "names a model too many; right would be at most 65,536")
            })?;
            self.agentic.words.push(text.clone());
            self.words.insert(text, word);
            numbers.push(word);
        }
        let new = |word: &mut Word| *word = numbers[usize::from(word.0)];
        own.conversations.iter_mut().flat_map(|own| &mut own.models).for_each(new);
        for group in &mut own.groups {
            group.models.iter_mut().chain(&mut group.kind).chain(&mut group.status).for_each(new);
        }
        own.calls.iter_mut().filter_map(|call| call.model.as_mut()).for_each(new);
        Ok(())
    }

    fn finish(mut self, source: Source, is_folder: bool) -> Trace {
        let mut warnings = self.odd.warnings();
        let renamed = unique(&mut self.names);
        if renamed > 0 {
            warnings.push(Warning {
                line: None,
                rows: renamed,
                words: format!(
                    "{} {} called as another one is; #2 and so on is added",
                    counted(renamed, "session"),
                    agreeing(renamed, "is", "are")
                ),
            });
        }
        let (block_tokens, _) =
            self.block_tokens.unwrap_or((Format::Agentic.block_tokens(), PathBuf::new()));
        let mut trace = Trace {
            source,
            records: self.records,
            blocks: self.blocks,
            block_tokens,
            sessions: SessionNames::Named(self.names),
            recorded: Recorded {
                files: if is_folder { self.files } else { Vec::new() },
                duration_ns: self.agentic.calls.iter().map(|call| call.api_ns).collect(),
                first_token_ns: self.agentic.calls.iter().map(|call| call.first_token_ns).collect(),
                agentic: Some(self.agentic),
                ..Recorded::default()
            },
            warnings,
        };
        trace.warnings.extend(repeats(&trace));
        trace
    }
}

impl Odd {
    fn add(&mut self, other: &Self) {
        self.no_output += other.no_output;
        self.empty_prompts += other.empty_prompts;
        self.surplus_ids += other.surplus_ids;
        self.empty_conversations += other.empty_conversations;
        self.absolute_groups += other.absolute_groups;
    }

    fn warnings(&self) -> Vec<Warning> {
        let kinds = [
            (self.no_output, "request", "out 0; one token is asked for"),
            (self.empty_prompts, "request", "in 0: an empty prompt, which many servers refuse"),
            (self.surplus_ids, "request", "more hash_ids than in has blocks; those are cut off"),
            (self.empty_conversations, "conversation", "no requests"),
            (
                self.absolute_groups,
                "sub-agent",
                "requests whose t counts from the conversation's start; it is taken so",
            ),
        ];
        let warning = |(rows, noun, what)| {
            let words = format!("{} {} {what}", counted(rows, noun), agreeing(rows, "has", "have"));
            Warning { line: None, rows, words }
        };
        kinds.into_iter().filter(|(rows, _, _)| *rows > 0).map(warning).collect()
    }
}

/// Makes all names different; gives how many were changed.
fn unique(names: &mut [String]) -> u64 {
    let mut seen: HashMap<String, u32> = HashMap::new();
    let mut changed = 0;
    for name in names {
        let count = seen.entry(name.clone()).or_insert(0);
        *count += 1;
        if *count > 1 {
            *name = format!("{name}#{count}");
            changed += 1;
        }
    }
    changed
}

/// Tells of conversations that ask for the same as another one.
fn repeats(trace: &Trace) -> Option<Warning> {
    let agentic = trace.recorded.agentic.as_ref()?;
    let of = |place: usize| {
        let range = &agentic.conversations[place].records;
        &trace.records[range.start as usize..range.end as usize]
    };
    let same = |a: &Record, b: &Record| {
        let lengths = |record: &Record| (record.at, record.input_tokens, record.output_tokens);
        lengths(a) == lengths(b)
            && trace.blocks_of(a).len() == trace.blocks_of(b).len()
            && trace.blocks_of(a).common_prefix(trace.blocks_of(b)) == trace.blocks_of(a).len()
    };
    let mut kinds: HashMap<(usize, u64), Vec<usize>> = HashMap::new();
    let (mut rows, mut example) = (0_u64, None);
    for place in (0..agentic.conversations.len()).filter(|&place| !of(place).is_empty()) {
        let tokens = of(place).iter().map(|record| u64::from(record.input_tokens)).sum();
        let kind = kinds.entry((of(place).len(), tokens)).or_default();
        let first = kind
            .iter()
            .copied()
            .find(|&first| of(first).iter().zip(of(place)).all(|(first, own)| same(first, own)));
        match first {
            Some(first) => {
                rows += 1;
                example.get_or_insert((first, place));
            }
            None => kind.push(place),
        }
    }
    let (first, second) = example?;
    let id = |place: usize| shown(&agentic.conversations[place].id);
    let words = format!(
        "{rows} of {} {} for the same as another one ({} is {} again)",
        counted(agentic.conversations.len() as u64, "conversation"),
        agreeing(rows, "asks", "ask"),
        id(second),
        id(first)
    );
    Some(Warning { line: None, rows, words })
}

#[cfg(test)]
mod tests;
