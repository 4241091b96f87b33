//! What the replay bench measures: the cases, their sizes, and the engine's options in each.

use super::schedule::Shape;

/// What a case is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// How late requests arrive.
    Lateness,
    /// How long a burst takes to leave.
    Burst,
    /// How fast streamed answers are read.
    Streams,
    /// How many requests a second can be sent.
    Rate,
}

/// What is measured.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) kind: Kind,
    pub(crate) shape: Shape,
    /// Requests a second; where rates are searched, the first.
    pub(crate) rate: f64,
    pub(crate) count: usize,
    /// How long one rate is tried.
    pub(crate) seconds: f64,
    /// Words of a prompt.
    pub(crate) input_tokens: usize,
    /// Content events of an answer.
    pub(crate) chunks: usize,
    pub(crate) connections: usize,
    pub(crate) pairs: usize,
    pub(crate) engine_options: Vec<String>,
}

impl Case {
    fn lateness(shape: Shape, rate: f64, count: usize) -> Self {
        Self {
            kind: Kind::Lateness,
            shape,
            rate,
            count,
            seconds: 0.0,
            input_tokens: 20,
            chunks: 1,
            connections: 256,
            pairs: 5,
            engine_options: vec!["--pacing".to_owned(), "spin".to_owned()],
        }
    }

    /// One pair that takes a second.
    pub(crate) fn tiny() -> Vec<Self> {
        vec![Self { pairs: 1, ..Self::lateness(Shape::Constant, 200.0, 100) }]
    }

    /// What `--bench` measures.
    pub(crate) fn measured() -> Vec<Self> {
        let mut cases = Vec::new();
        for shape in [Shape::Constant, Shape::Poisson, Shape::Burst] {
            for (rate, count) in [(1_000.0, 4_000), (10_000.0, 40_000), (50_000.0, 100_000)] {
                cases.push(Self::lateness(shape, rate, count));
            }
        }
        let whole = Self::lateness(Shape::Constant, 1e12, 1_000);
        cases.push(Self { kind: Kind::Burst, connections: 1_000, ..whole.clone() });
        let streams = Self { kind: Kind::Streams, count: 10_000, chunks: 128, ..whole };
        cases.push(Self { connections: 64, ..streams });
        for (input_tokens, rate, seconds) in
            [(10, 20_000.0, 1.0), (6_500, 4_000.0, 1.0), (209_000, 100.0, 2.0)]
        {
            let base = Self::lateness(Shape::Constant, rate, 0);
            cases.push(Self { kind: Kind::Rate, input_tokens, seconds, ..base });
        }
        cases
    }

    pub(crate) fn name(&self) -> String {
        match self.kind {
            Kind::Lateness => format!("lateness-{}-{}", self.shape.name(), self.rate),
            Kind::Burst => format!("burst-{}", self.count),
            Kind::Streams => format!("streams-{}", self.chunks),
            Kind::Rate => format!("rate-{}", self.body_bytes()),
        }
    }

    /// Bytes of the body Onbeat sends for this case: five a word and the JSON around them.
    pub(crate) fn body_bytes(&self) -> usize {
        128 + self.input_tokens * 5 + self.chunks.to_string().len()
    }
}
