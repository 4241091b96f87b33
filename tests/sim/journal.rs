//! What the simulated engine writes down, twice: with the log's own encoder, and in memory.
//!
//! Memory is plain and naive: one entry per request, filled as things happen. At the end the bytes
//! are read back with [`Run::read`] and every figure is compared.

use onbeat_shared::log::outcome::Class;
use onbeat_shared::log::record::{DoneFlags, Record};
use onbeat_shared::log::{
    BlockBuffer, Closing, Footer, Manifest, PlanRow, file_header_of, footer_block, manifest_block,
    plan_blocks, session_blocks,
};
use onbeat_shared::run::{End, Run, State};
use onbeat_shared::units::{CoreIndex, RequestIndex, RunNanos};

/// What is known of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) sent: Option<RunNanos>,
    pub(super) ready: Option<RunNanos>,
    pub(super) due: Option<RunNanos>,
    pub(super) sent_end: Option<RunNanos>,
    pub(super) first_byte: Option<RunNanos>,
    /// Times of its content events.
    pub(super) tokens: Vec<i64>,
    pub(super) ended: Option<(RunNanos, Class)>,
    status: Option<u16>,
    response_bytes: u64,
    flags: DoneFlags,
}

/// Both accounts of a run.
pub(super) struct Journal {
    head: Vec<u8>,
    blocks: Vec<u8>,
    cores: Vec<(BlockBuffer, u32)>,
    records: u64,
    /// By request.
    pub(super) known: Vec<Known>,
}

impl Journal {
    /// For so many cores, and a plan of these rows.
    pub(super) fn new(
        manifest: &Manifest,
        rows: &[PlanRow],
        sessions: &[String],
        cores: usize,
    ) -> Self {
        let mut head = file_header_of(manifest).to_vec();
        head.extend(manifest_block(manifest));
        head.extend(plan_blocks(rows.iter().copied()).flatten());
        head.extend(session_blocks(sessions).flatten());
        let known = if manifest.users.is_some() { 0 } else { rows.len() };
        Self {
            head,
            blocks: Vec::new(),
            cores: (0..cores).map(|_| (BlockBuffer::new(), 0)).collect(),
            records: 0,
            known: vec![Known::default(); known],
        }
    }

    /// One more fact.
    pub(super) fn push(&mut self, core: usize, record: &Record) {
        self.records += 1;
        if self.cores[core].0.push(record).is_err() {
            self.flush(core);
            self.cores[core].0.push(record).expect("an empty block has room");
        }
        self.remember(record);
    }

    /// Hands over what a core has.
    pub(super) fn flush(&mut self, core: usize) {
        let (block, sequence) = &mut self.cores[core];
        if !block.is_empty() {
            let number = CoreIndex(u16::try_from(core).expect("few cores"));
            self.blocks.extend_from_slice(block.seal(number, *sequence));
            *sequence += 1;
            block.clear();
        }
    }

    /// What is known of a request.
    pub(super) fn of(&mut self, request: RequestIndex) -> &mut Known {
        let place = request.as_usize();
        if place >= self.known.len() {
            self.known.resize(place + 1, Known::default());
        }
        &mut self.known[place]
    }

    fn remember(&mut self, record: &Record) {
        match *record {
            Record::Dispatch { request, sent, ready, due, .. } => {
                let known = self.of(request);
                assert_eq!(known.sent, None, "request {request:?} leaves twice");
                assert_eq!(known.ended, None, "request {request:?} leaves after its end");
                (known.sent, known.ready, known.due) = (Some(sent), Some(ready), due);
            }
            Record::SentEnd { request, time, .. } => self.of(request).sent_end = Some(time),
            Record::FirstByte { request, time } => {
                let first = self.of(request).first_byte.replace(time);
                assert_eq!(first, None, "request {request:?} has two first bytes");
            }
            Record::Chunk { request, time, .. } => self.of(request).tokens.push(time.0),
            Record::Done { request, time, class, status, response_bytes, flags, .. } => {
                let known = self.of(request);
                assert_eq!(known.ended, None, "request {request:?} ends twice");
                known.ended = Some((time, class));
                (known.status, known.response_bytes) = (status, response_bytes);
                known.flags = flags;
            }
            _ => {}
        }
    }

    /// The log's bytes, closed at `at`.
    pub(super) fn close(&mut self, at: RunNanos, interrupted: bool) -> Vec<u8> {
        for core in 0..self.cores.len() {
            self.flush(core);
        }
        let ended = self.known.iter().filter(|known| known.ended.is_some()).count();
        let mut out = self.head.clone();
        out.extend_from_slice(&self.blocks);
        out.extend(footer_block(&Footer {
            interrupted,
            complete: true,
            records: self.records,
            requests_done: ended as u64,
            lost_records: 0,
            closing: Closing { time_ns: at.0, unix_ns: 0 },
            cores: Vec::new(),
            trace_sha256: None,
            given_up: None,
        }));
        out
    }

    /// The log says what memory says.
    pub(super) fn agrees(&self, bytes: &[u8], interrupted: bool) {
        let run = Run::read(bytes).expect("the log reads back");
        let state = if interrupted { State::Interrupted } else { State::Finished };
        assert_eq!(run.state, state);
        assert_eq!(run.warnings, Vec::<String>::new());
        assert_eq!(run.requests.len(), self.known.len());
        for (i, known) in self.known.iter().enumerate() {
            let requests = &run.requests;
            let Some((ended, class)) = known.ended else { panic!("request {i} has no end") };
            assert_eq!(requests.end(i), End::Known(class), "request {i}");
            assert_eq!(requests.done(i), Some(ended), "request {i}");
            assert_eq!(requests.sent(i), known.sent, "request {i}");
            assert_eq!(requests.sent_end(i), known.sent_end, "request {i}");
            assert_eq!(requests.first_byte(i), known.first_byte, "request {i}");
            assert_eq!(requests.status(i), known.status, "request {i}");
            assert_eq!(requests.response_bytes(i), Some(known.response_bytes), "request {i}");
            assert_eq!(requests.flags(i), known.flags, "request {i}");
            assert_eq!(run.chunks.row(i).times(), known.tokens, "request {i}");
            if known.sent.is_some() {
                assert_eq!(requests.ready(i), known.ready, "request {i}");
                assert_eq!(requests.due(i), known.due, "request {i}");
            }
        }
    }
}
