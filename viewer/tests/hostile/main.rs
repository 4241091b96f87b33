//! Logs that were damaged in thousands of ways: each opens or is refused with words.
//!
//! Ten thousand logs are made from two small sound ones, of a trace's requests and of users: bits
//! flipped, numbers set to their extremes, blocks cut, doubled, swapped and mixed; in most of them
//! the checksums are made right again, so that the damage reaches what reads it. None may crash the
//! viewer, take a second of its thread's time to open, or 256 MiB more memory than a sound one; of
//! some, every panel is drawn, from afar and from near, as plots and as tables. `ONBEAT_HOSTILE=N`
//! makes N logs, `ONBEAT_HOSTILE_SEED=S` others, and of `ONBEAT_HOSTILE_DRAWN=D` one is drawn. A
//! failure names the seed of its log. One test in a process of its own, as peak memory is a
//! process's.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use crc32fast::Hasher;
use eframe::egui::{Context, Pos2, RawInput, Rect, vec2};
use onbeat_shared::dice::Dice;
use onbeat_shared::log::{sample, sample_users};
use onbeat_shared::units::RunNanos;
use onbeat_viewer::app::{Start, ViewerApp};
use onbeat_viewer::derive::Derived;
use onbeat_viewer::load;
use onbeat_viewer::opened::OpenedRun;
use onbeat_viewer::panels::PANELS;
use onbeat_viewer::state::{Choices, Scale, TimeRange};
use onbeat_viewer::tabs::{OpenTab, Tab};

/// Logs that are made unless the environment says otherwise.
const LOGS: u64 = 10_000;
/// Of so many one is drawn in every panel.
const DRAWN: u64 = 300;
/// The most memory that damage may cost.
const MEMORY_MOST: u64 = 256 << 20;
const FILE_HEADER: usize = 64;
const BLOCK_HEADER: usize = 32;

#[test]
fn damaged_logs_open_or_are_refused() {
    let number = |name: &str, otherwise| {
        std::env::var(name).ok().map_or(otherwise, |text| text.parse().expect("a number"))
    };
    let (logs, first) = (number("ONBEAT_HOSTILE", LOGS), number("ONBEAT_HOSTILE_SEED", 0));
    let drawn = number("ONBEAT_HOSTILE_DRAWN", DRAWN).max(1);
    let sound = [sample::log(7, 60), sample_users::log(7, 6)];
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("hostile.beat");
    let beside = Arc::new(open(&path, &sound[0]).expect("a sound log"));
    for bytes in &sound {
        let opened = open(&path, bytes).expect("a sound log");
        draw(opened, &beside);
    }
    let before = high_water();
    let (mut opened, mut refused) = (0_u64, 0_u64);
    for seed in first..first + logs {
        let bytes = mutated(&sound, seed);
        // What a panic says does not name the log; this does.
        let naming = Naming(seed);
        let begin = cpu_ns();
        match open(&path, &bytes) {
            Some(run) => {
                let took = cpu_ns() - begin;
                assert!(took < 1_000_000_000, "seed {seed}: {took} ns to open");
                opened += 1;
                if seed.is_multiple_of(drawn) {
                    draw(run, &beside);
                }
            }
            None => refused += 1,
        }
        let more = high_water().zip(before).map(|(now, before)| now.saturating_sub(before));
        assert!(more.is_none_or(|more| more < MEMORY_MOST), "seed {seed}: {more:?} bytes more");
        drop(naming);
    }
    assert!(opened > logs / 4, "only {opened} of {logs} opened: the damage is too coarse");
    assert!(refused > 0, "nothing was refused");
}

/// Says which log it was when a test panics.
struct Naming(u64);

impl Drop for Naming {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let seed = self.0;
            let again = format!("ONBEAT_HOSTILE_SEED={seed} ONBEAT_HOSTILE=1");
            println!("to see it again: {again} ONBEAT_HOSTILE_DRAWN=1");
        }
    }
}

/// The run of a log and all of its numbers, or `None` when it is refused.
fn open(path: &Path, bytes: &[u8]) -> Option<OpenedRun> {
    fs::write(path, bytes).expect("written");
    match load::open(path, &|_| true) {
        Ok(opened) => {
            opened.report();
            Some(opened)
        }
        Err(problem) => {
            assert!(!problem.found().is_empty() && !problem.remedy().is_empty());
            None
        }
    }
}

/// A way to look at a run, and what makes a run be looked at so.
type Look = (&'static str, fn(&mut Choices));

const LOOKS: [Look; 4] = [
    ("all of it", |_| {}),
    ("its end from as near as can be, and a request", |choices| {
        choices.zoom(1e30, choices.view().end);
        choices.cursor = Some(choices.view().start);
        choices.requests.chosen = Some(0);
        choices.requests.details = true;
        choices.scale = if choices.scale == Scale::Log { Scale::Linear } else { Scale::Log };
    }),
    ("its middle, of failures only", |choices| {
        choices.fit_whole();
        choices.zoom_here(1e6);
        choices.type_filter("!ok");
    }),
    ("a half of it, as tables", |choices| {
        choices.clear_filter();
        choices.fit_whole();
        let whole = choices.view();
        let half = RunNanos(whole.start.0.midpoint(whole.end.0));
        choices.choose(TimeRange::between(whole.start, half));
        choices.fit();
        PANELS.iter().for_each(|panel| choices.toggle_tables(panel.plots));
    }),
];

/// Draws every panel in each of these ways, each question answered at once, with a sound run open
/// beside it to be compared with.
fn draw(opened: OpenedRun, beside: &Arc<OpenedRun>) {
    let ctx = Context::default();
    let mut app = ViewerApp::new(&ctx, Start { inline: true, ..Start::default() });
    app.tabs.add(OpenTab::new(Derived::inline(Arc::clone(beside)), None));
    app.tabs.add(OpenTab::new(Derived::inline(Arc::new(opened)), None));
    for (words, choose) in LOOKS {
        let Some(Tab::Open(tab)) = app.tabs.shown_mut() else { panic!("a tab is open") };
        choose(&mut tab.choices);
        for (place, panel) in PANELS.iter().enumerate() {
            let told = Drawing(panel.name, words);
            app.show_panel(place);
            let screen_rect = Some(Rect::from_min_size(Pos2::ZERO, vec2(1_280.0, 800.0)));
            let input = RawInput { screen_rect, ..RawInput::default() };
            let mut output = ctx.run_ui(input, |ui| app.show(ui));
            output.textures_delta.clear();
            let drawn = ctx.tessellate(output.shapes, output.pixels_per_point);
            assert!(!drawn.is_empty(), "{} is drawn", panel.name);
            drop(told);
        }
    }
}

/// Says what was drawn when a test panics.
struct Drawing(&'static str, &'static str);

impl Drop for Drawing {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("while {} was drawn, with {} in sight", self.0, self.1);
        }
    }
}

/// A log with one to four kinds of damage, decided by the seed alone.
fn mutated(sound: &[Vec<u8>; 2], seed: u64) -> Vec<u8> {
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x6F6E_6265_6174);
    let mut bytes = sound[dice.place(2)].clone();
    let other = &sound[dice.place(2)];
    for _ in 0..1 + dice.place(4) {
        match dice.place(9) {
            0 => flip(&mut bytes, &mut dice),
            1 => bytes.truncate(dice.place(bytes.len() + 1)),
            2 => swap_blocks(&mut bytes, other, &mut dice),
            3 => block_header(&mut bytes, &mut dice),
            4 => letters(&mut bytes, &mut dice),
            _ => extremes(&mut bytes, &mut dice),
        }
    }
    bytes
}

/// Bits, wherever; no checksum is mended.
fn flip(bytes: &mut [u8], dice: &mut Dice) {
    for _ in 0..1 + dice.place(8) {
        if !bytes.is_empty() {
            let place = dice.place(bytes.len());
            bytes[place] ^= 1 << dice.place(8);
        }
    }
}

/// Numbers of a block's payload at the ends of what they can be.
fn extremes(bytes: &mut [u8], dice: &mut Dice) {
    let Some((from, to)) = any_block(bytes, dice) else { return };
    let payload = from + BLOCK_HEADER;
    for _ in 0..1 + dice.place(6) {
        let width = [1, 2, 4, 8][dice.place(4)];
        let places = (to - payload) / width;
        if places == 0 {
            continue;
        }
        let place = payload + width * dice.place(places);
        let value: u64 = match dice.place(7) {
            0 => 0,
            1 => u64::MAX,
            2 => i64::MAX.unsigned_abs(),
            3 => i64::MIN.unsigned_abs(),
            4 => u64::from(u32::MAX) << dice.place(33),
            5 => 1 << dice.place(64),
            _ => dice.roll(),
        };
        bytes[place..place + width].copy_from_slice(&value.to_le_bytes()[..width]);
    }
    seal(&mut bytes[from..to]);
}

/// What a block says of itself.
fn block_header(bytes: &mut [u8], dice: &mut Dice) {
    let Some((from, to)) = any_block(bytes, dice) else { return };
    let place = [8, 9, 10, 12, 16, 20, 24][dice.place(7)];
    let value = [0, 1, 255, u32::MAX, 2_047, 1 << 24][dice.place(6)];
    let width = [1, 2, 4][dice.place(3)];
    bytes[from + place..from + place + width].copy_from_slice(&value.to_le_bytes()[..width]);
    seal(&mut bytes[from..to]);
}

/// Bytes of text, such as the manifest's, as other bytes that text may have.
fn letters(bytes: &mut [u8], dice: &mut Dice) {
    let Some((from, to)) = any_block(bytes, dice) else { return };
    const LETTERS: &[u8] = b"09-.e\"{}[],:\\ntf\x00\xff\xc3\x1b";
    for _ in 0..1 + dice.place(12) {
        let place = from + BLOCK_HEADER;
        if place < to {
            let place = place + dice.place(to - place);
            bytes[place] = LETTERS[dice.place(LETTERS.len())];
        }
    }
    seal(&mut bytes[from..to]);
}

/// Blocks gone, twice, elsewhere, or another log's.
fn swap_blocks(bytes: &mut Vec<u8>, other: &[u8], dice: &mut Dice) {
    let Some((from, to)) = any_block(bytes, dice) else { return };
    match dice.place(4) {
        0 => drop(bytes.drain(from..to)),
        1 => {
            let block = bytes[from..to].to_vec();
            drop(bytes.splice(to..to, block));
        }
        2 => {
            let block: Vec<u8> = bytes.drain(from..to).collect();
            let place = any_block(bytes, dice).map_or(bytes.len(), |(from, _)| from);
            drop(bytes.splice(place..place, block));
        }
        _ => {
            if let Some((first, last)) = any_block(other, dice) {
                drop(bytes.splice(from..to, other[first..last].iter().copied()));
            }
        }
    }
}

/// Begin and end of one of the blocks.
fn any_block(bytes: &[u8], dice: &mut Dice) -> Option<(usize, usize)> {
    let mut blocks = Vec::new();
    let mut from = FILE_HEADER;
    while let Some(length) = bytes.get(from + 20..from + 24) {
        let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
        let to = from.saturating_add(BLOCK_HEADER).saturating_add(length);
        if to > bytes.len() {
            break;
        }
        blocks.push((from, to));
        from = to;
    }
    (!blocks.is_empty()).then(|| blocks[dice.place(blocks.len())])
}

/// Makes a block's checksum right.
fn seal(block: &mut [u8]) {
    let mut hasher = Hasher::new();
    hasher.update(&block[..28]);
    hasher.update(&block[BLOCK_HEADER..]);
    block[28..32].copy_from_slice(&hasher.finalize().to_le_bytes());
}

/// Most memory that this process has had (bytes); `None` where the system does not tell.
fn high_water() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib * 1_024)
}

/// Time that this thread has had a processor (ns), which no other program's work changes; 0 where
/// the system does not tell.
fn cpu_ns() -> u64 {
    let told = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    told.split_whitespace().next().and_then(|text| text.parse().ok()).unwrap_or(0)
}
