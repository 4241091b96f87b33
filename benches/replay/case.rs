//! What the replay bench compares: a case is a schedule and two parties that send it in turn.

use super::schedule::Shape;

/// What a case is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// How late requests leave and arrive.
    Lateness,
    /// How long a burst takes to leave.
    Burst,
    /// How fast streamed answers are read.
    Streams,
    /// How many requests a second can be sent.
    Rate,
    /// What the log says of a process that was stopped for a while.
    Stall,
    /// Whether requests are written in time while others are sent.
    RenderAhead,
}

/// What is measured.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) kind: Kind,
    pub(crate) name: String,
    pub(crate) shape: Shape,
    /// Requests a second; where rates are searched, the first.
    pub(crate) rate: f64,
    pub(crate) count: usize,
    /// How long one rate is tried.
    pub(crate) seconds: f64,
    /// Most tries of one search for a rate.
    pub(crate) tries: u32,
    /// Words of a prompt.
    pub(crate) input_tokens: usize,
    /// Whether every prompt has text of its own.
    pub(crate) own_prompts: bool,
    /// Content events of an answer.
    pub(crate) chunks: usize,
    pub(crate) connections: usize,
    pub(crate) pairs: usize,
    /// The one that is compared with, and the one that is compared.
    pub(crate) parties: [Party; 2],
}

/// Who sends.
#[derive(Clone, Debug)]
pub(crate) struct Party {
    /// What its numbers are called in a line of results.
    pub(crate) label: &'static str,
    pub(crate) program: Program,
    /// Options of the engine.
    pub(crate) options: Vec<String>,
    /// Most memory that it may take, in MiB, if that is limited.
    pub(crate) budget_mib: Option<u64>,
    /// Streams that are open meanwhile.
    pub(crate) traffic: Option<Traffic>,
    /// Its progress goes to a terminal.
    pub(crate) on_terminal: bool,
    /// The log's disk hangs for a while.
    pub(crate) disk_hangs: bool,
}

/// Which program sends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Floor,
    Engine,
    /// The engine of the revision that is compared with.
    Base,
    /// Another load generator, by the name of its script.
    Peer(String),
}

/// Streams that are opened before the schedule begins and stay open until it is over.
#[derive(Clone, Debug)]
pub(crate) struct Traffic {
    pub(crate) streams: usize,
    /// How many are opened a second.
    pub(crate) openings_per_s: f64,
    /// Events that the server sends together.
    pub(crate) events: usize,
    /// Whether they have text, and so give a record each.
    pub(crate) text: bool,
    /// How often a second it does so, over all streams.
    pub(crate) pushes_per_s: f64,
}

/// From the last opening to the schedule's begin, in seconds.
const SETTLE_S: f64 = 1.0;

impl Traffic {
    /// When the schedule begins, in nanoseconds from zero.
    #[expect(clippy::cast_possible_truncation, reason = "seconds, in nanoseconds")]
    pub(crate) fn lead_ns(&self) -> i64 {
        ((self.streams as f64 / self.openings_per_s + SETTLE_S) * 1e9) as i64
    }
}

impl Party {
    pub(crate) fn floor() -> Self {
        Self {
            label: "floor",
            program: Program::Floor,
            options: Vec::new(),
            budget_mib: None,
            traffic: None,
            on_terminal: false,
            disk_hangs: false,
        }
    }

    /// The engine, polling all the time as the floor does.
    pub(crate) fn engine(label: &'static str) -> Self {
        Self::paced(label, "spin")
    }

    fn paced(label: &'static str, pacing: &str) -> Self {
        let party = Self { label, program: Program::Engine, ..Self::floor() };
        party.with("--pacing", pacing)
    }

    pub(crate) fn base() -> Self {
        Self { label: "base", program: Program::Base, ..Self::engine("base") }
    }

    pub(crate) fn peer(name: &str) -> Self {
        let program = Program::Peer(name.to_owned());
        Self { label: "peer", program, options: Vec::new(), ..Self::floor() }
    }

    pub(crate) fn with(mut self, option: &str, value: &str) -> Self {
        self.options.extend([option.to_owned(), value.to_owned()]);
        self
    }

    /// Its requests rendered ahead, within so much memory of the whole process.
    pub(crate) fn ahead_within(self, budget_mib: u64) -> Self {
        let party = Self { budget_mib: Some(budget_mib), ..self };
        party.with("--render", "ahead").with("--render-budget", &format!("{budget_mib}MiB"))
    }

    pub(crate) fn amid(self, traffic: Traffic) -> Self {
        Self { traffic: Some(traffic), ..self }
    }

    /// Streams of others in this party's schedule.
    pub(crate) fn streams(&self) -> usize {
        self.traffic.as_ref().map_or(0, |traffic| traffic.streams)
    }
}

impl Case {
    /// The floor against the engine; `count` requests at `rate` a second.
    pub(crate) fn lateness(shape: Shape, rate: f64, count: usize) -> Self {
        Self {
            kind: Kind::Lateness,
            name: format!("lateness-{}-{rate}", shape.name()),
            shape,
            rate,
            count,
            seconds: 0.0,
            tries: 0,
            input_tokens: 20,
            own_prompts: false,
            chunks: 1,
            connections: 256,
            pairs: 5,
            parties: [Party::floor(), Party::engine("onbeat")],
        }
    }

    /// The same with the engine waiting in another way.
    pub(crate) fn paced(self, pacing: &str) -> Self {
        let name = format!("{}-{pacing}", self.name);
        self.between(&name, [Party::floor(), Party::paced("onbeat", pacing)])
    }

    /// The same between two parties.
    pub(crate) fn between(self, name: &str, parties: [Party; 2]) -> Self {
        Self { name: name.to_owned(), parties, ..self }
    }

    /// Due at one instant, answered with `chunks` events each.
    pub(crate) fn at_once(kind: Kind, name: String, count: usize, chunks: usize) -> Self {
        Self { kind, name, chunks, ..Self::lateness(Shape::Constant, 1e12, count) }
    }

    /// Searches for the highest rate with prompts of so many words; the figure is their median.
    pub(crate) fn highest(input_tokens: usize, start: f64, seconds: f64, tries: u32) -> Self {
        let base = Self::lateness(Shape::Constant, start, 0);
        let mut case = Self { kind: Kind::Rate, input_tokens, seconds, tries, pairs: 3, ..base };
        case.name = format!("rate-{}", case.body_bytes());
        case
    }

    /// Bytes of the body Onbeat sends for this case: five a word and the JSON around them.
    pub(crate) fn body_bytes(&self) -> usize {
        128 + self.input_tokens * 5 + self.chunks.to_string().len()
    }
}
