//! Files that go with traces and are none: RAGPulse's tables of pieces, ServeGen's client profiles.
//!
//! Whoever opens one is told what it is, what is in it, and what to open instead. ServeGen's
//! profiles are fitted distributions, from which a generator draws requests: rates and shapes can
//! be read off, requests cannot.

use std::collections::BTreeMap;
use std::path::Path;

use onbeat_shared::counted::counted;
use serde::Serialize;

use crate::trace::TraceError;
use crate::trace::error::Fault;
use crate::trace::scan::{Members, shown};
use crate::trace::whole::bytes_of;
use crate::trace::{lines, ragpulse};

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A table of the lengths of RAGPulse's pieces.
    Pieces,
    /// ServeGen: how often a client asks, by window of time.
    Rates,
    /// ServeGen: how long a client's requests and answers are, by window of time.
    Lengths,
}

/// What is in such a file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Material {
    /// The file's name.
    pub name: String,
    /// What it is, in a sentence.
    pub what: String,
    /// What to do instead of replaying it.
    pub instead: String,
    /// Figures, each with its name.
    pub facts: Vec<(String, String)>,
}

/// Seconds of one of ServeGen's windows.
const WINDOW_S: f64 = 600.0;

impl Kind {
    /// A row of a table without header, of which this is the first line.
    pub(crate) fn of_table_row(line: &[u8]) -> Option<Self> {
        let fields: Vec<&[u8]> = line.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).collect();
        let number = |place: usize| number(fields[place]).is_some();
        let numbers = fields.len() == 6 && [0, 1, 2, 4, 5].into_iter().all(number);
        (numbers && [&b""[..], b"Gamma", b"Weibull"].contains(&fields[3])).then_some(Self::Rates)
    }

    /// An object that starts a file, of which `line` is the first line.
    pub(crate) fn of_object(text: &[u8], line: &[u8]) -> Option<Self> {
        let row = |end: &[u8]| Members::of(line).any(|member| member.key.ends_with(end));
        if row(b"token_length") && row(b"_id") && !row(b"hash_ids") {
            return Some(Self::Pieces);
        }
        let first = Members::of(text).next()?;
        let own = Members::of(first.value).next()?;
        let digits = !first.key.is_empty() && first.key.iter().all(u8::is_ascii_digit);
        let is_count = own.key.ends_with(b"_tokens") || own.key.ends_with(b"_count");
        (digits && is_count && own.value.starts_with(b"\"{")).then_some(Self::Lengths)
    }

    /// What such a file is, and what to do instead of replaying it.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Pieces => {
                "a table of RAGPulse's pieces and their lengths, not a trace; the trace is \
                 0_trace.jsonl beside it"
            }
            Self::Rates => {
                "a ServeGen client profile (arrival rates by window), not a trace; let ServeGen \
                 generate requests from it and write them as Mooncake or BurstGPT rows"
            }
            Self::Lengths => {
                "a ServeGen client profile (distributions of lengths by window), not a trace; let \
                 ServeGen generate requests from it and write them as Mooncake or BurstGPT rows"
            }
        }
    }

    /// Reads what can be said of such a file.
    pub(crate) fn describe(self, path: &Path) -> Result<Material, TraceError> {
        let facts = match self {
            Self::Pieces => pieces(path)?,
            Self::Rates => rates(path)?,
            Self::Lengths => profile(path)?,
        };
        let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
        let (what, instead) = self.words().split_once("; ").unwrap_or((self.words(), ""));
        Ok(Material { name, what: what.to_owned(), instead: instead.to_owned(), facts })
    }
}

type Facts = Vec<(String, String)>;

fn fact(name: &str, words: String) -> (String, String) {
    (name.to_owned(), words)
}

fn number(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.trim().parse().ok().filter(|number: &f64| number.is_finite())
}

fn pieces(path: &Path) -> Result<Facts, TraceError> {
    let mut weights = BTreeMap::new();
    let (mut count, mut total) = (0_u64, 0_u64);
    lines::for_each_line(path, |line, bytes| {
        let (_, length) = ragpulse::piece(bytes).map_err(|fault| TraceError::Row {
            path: path.to_owned(),
            line,
            fault,
        })?;
        *weights.entry(f64::from(length).to_bits()).or_insert(0.0) += 1.0;
        count += 1;
        total += u64::from(length);
        Ok(())
    })?;
    let lengths = spread(&weights).unwrap_or_else(|| "unknown".to_owned());
    Ok(vec![
        fact("pieces", format!("{count}, of {} in all", counted(total, "token"))),
        fact("lengths", format!("tokens {lengths}")),
    ])
}

/// Percentiles of values with weights; `None` when no weight is above zero. Values are not negative
/// and stand as their bits, whose order is theirs.
fn spread(weights: &BTreeMap<u64, f64>) -> Option<String> {
    let total: f64 = weights.values().sum();
    if total <= 0.0 {
        return None;
    }
    let values: Vec<f64> = weights.keys().map(|&bits| f64::from_bits(bits)).collect();
    let quantile = |share: f64| {
        let mut sum = 0.0;
        let mut below = |weight: &f64| {
            sum += weight;
            sum < share * total
        };
        let place = weights.values().take_while(|weight| below(weight)).count();
        values[place.min(values.len() - 1)]
    };
    let mean = values.iter().zip(weights.values()).map(|(own, weight)| own * weight).sum::<f64>();
    let places = if values.iter().all(|value| value.fract() == 0.0) { 0 } else { 3 };
    Some(format!(
        "p10 {:.places$}, p50 {:.places$}, p90 {:.places$}, p99 {:.places$}, max {:.places$}, mean \
         {:.places$}",
        quantile(0.1),
        quantile(0.5),
        quantile(0.9),
        quantile(0.99),
        values.last().copied().unwrap_or(0.0),
        mean / total
    ))
}

fn rates(path: &Path) -> Result<Facts, TraceError> {
    let (mut windows, mut used, mut requests, mut most) = (0_u64, 0_u64, 0.0_f64, 0.0_f64);
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    let mut variations = Vec::new();
    lines::for_each_line(path, |line, bytes| {
        let fields: Vec<&[u8]> = bytes.split(|&byte| byte == b',').collect();
        let field = |place: usize| fields.get(place).copied().unwrap_or_default().trim_ascii();
        let row = |name: &'static str, place: usize| {
            number(field(place)).filter(|&number| number >= 0.0).ok_or_else(|| {
                let fault = Fault::field(name, shown(field(place)), "a number, 0 or more");
                TraceError::Row { path: path.to_owned(), line, fault }
            })
        };
        let (rate, variation) = (row("rate", 1)?, row("CV", 2)?);
        row("start", 0)?;
        windows += 1;
        if rate > 0.0 {
            used += 1;
            requests += rate * WINDOW_S;
            most = most.max(rate);
            variations.push(variation);
            *kinds.entry(String::from_utf8_lossy(field(3)).into_owned()).or_insert(0) += 1;
        }
        Ok(())
    })?;
    variations.sort_unstable_by(f64::total_cmp);
    let named = |(kind, count): (&String, &u64)| {
        let kind = if kind.is_empty() { "no pattern" } else { kind };
        format!("{kind} in {count}")
    };
    let kinds: Vec<String> = kinds.iter().map(named).collect();
    let mean = if used > 0 { requests / WINDOW_S / used as f64 } else { 0.0 };
    let mut facts = vec![fact(
        "arrivals",
        format!(
            "{} of {WINDOW_S:.0} s, {used} with requests; in those {mean:.4} a \
             second on average and {most:.4} at most; about {requests:.0} requests in all",
            counted(windows, "window")
        ),
    )];
    if let (Some(first), Some(last)) = (variations.first(), variations.last()) {
        let middle = variations[variations.len() / 2];
        facts.push(fact(
            "bursts",
            format!(
                "CV of gaps {first:.2} to {last:.2}, median {middle:.2}, so an index of dispersion \
                 that tends to {:.2} (CV squared); arrivals are {}",
                middle * middle,
                kinds.join(", ")
            ),
        ));
    }
    facts.push(fact("lengths", "in the file with -dataset.json instead of -trace.csv".to_owned()));
    Ok(facts)
}

fn profile(path: &Path) -> Result<Facts, TraceError> {
    let (text, _) = bytes_of(path)?;
    let windows: BTreeMap<String, BTreeMap<String, String>> = serde_json::from_slice(&text)
        .map_err(|error| TraceError::file(path, format!("is no profile of ServeGen: {error}")))?;
    let mut fields: BTreeMap<&str, (u64, BTreeMap<u64, f64>)> = BTreeMap::new();
    for (window, members) in &windows {
        for (name, text) in members {
            let shares = shares(text).ok_or_else(|| TraceError::Entry {
                path: path.to_owned(),
                at: format!("{window}.{name}"),
                fault: Fault::line(shown(text.as_bytes()), "counts and shares, like {57: 1.0}"),
            })?;
            let (used, all) = fields.entry(name).or_default();
            *used += u64::from(!shares.is_empty());
            for (value, share) in shares {
                *all.entry(value).or_insert(0.0) += share;
            }
        }
    }
    let mut facts = vec![fact("windows", windows.len().to_string())];
    for (name, (used, weights)) in fields {
        let words = spread(&weights).unwrap_or_else(|| "unknown".to_owned());
        facts.push(fact(
            name,
            format!("{words} ({}, all alike in weight)", counted(used, "window")),
        ));
    }
    facts.push(fact("arrivals", "in the file with -trace.csv instead of -dataset.json".to_owned()));
    Ok(facts)
}

/// The values (as bits) and shares of a dictionary as Python writes it: `{57: 0.5, 60: 0.5}`.
fn shares(text: &str) -> Option<Vec<(u64, f64)>> {
    let inside = text.trim().strip_prefix('{')?.strip_suffix('}')?.trim();
    if inside.is_empty() {
        return Some(Vec::new());
    }
    let pair = |pair: &str| {
        let (value, share) = pair.split_once(':')?;
        let known = |text: &str| {
            let number: f64 = text.trim().parse().ok()?;
            (number.is_finite() && number >= 0.0).then_some(number.abs())
        };
        Some((known(value)?.to_bits(), known(share)?))
    };
    inside.split(',').map(pair).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn described(name: &str, text: &str) -> Result<Material, String> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join(name);
        fs::write(&path, text).expect("written");
        let line = text.lines().next().unwrap_or_default().as_bytes();
        let kind = Kind::of_table_row(line).or_else(|| Kind::of_object(text.as_bytes(), line));
        kind.expect(name).describe(&path).map_err(|error| error.to_string())
    }

    #[test]
    fn a_table_of_pieces_says_where_the_trace_is() {
        let rows = "{\"passage_id\": 0, \"token_length\": 84}\n\
                    {\"passage_id\": 1, \"token_length\": 16}\n\n";
        let found = described("2_passages.jsonl", rows).expect("reads");
        assert!(found.instead.contains("0_trace.jsonl"), "{found:?}");
        assert_eq!(found.facts[0].1, "2, of 100 tokens in all");
        let words = described("2.jsonl", &rows.replace("16", "-1")).expect_err("negative");
        assert!(words.contains("line 2: field \"token_length\": found -1"), "{words}");
    }

    #[test]
    fn a_profile_of_rates_gives_what_it_expects() {
        let found = described("t.csv", "0,0,0,,0,0\n600,0.5,2,Gamma,1,2\n1200,0.1,1,Weibull,1,2\n");
        let found = found.expect("reads");
        assert!(found.facts[0].1.contains("3 windows of 600 s, 2 with requests"), "{found:?}");
        assert!(found.facts[0].1.contains("about 360 requests"), "{found:?}");
        assert!(found.facts[1].1.contains("Gamma in 1, Weibull in 1"), "{found:?}");
        assert!(described("t.csv", "0,0,0,,0,0\n600,x,2,Gamma,1,2\n").is_err());
    }

    #[test]
    fn a_profile_of_lengths_is_read_as_python_writes_it() {
        let text = r#"{"0": {"input_tokens": "{}", "output_tokens": "{}"},
            "600": {"input_tokens": "{10: 0.5, 30: 0.5}", "output_tokens": "{7: 1.0}",
            "reason_ratio": "{0.25: 1.0, 0.5: 0.0}"}}"#;
        let found = described("d.json", text).expect("reads");
        assert_eq!(found.facts[1].0, "input_tokens");
        assert!(found.facts[1].1.contains("max 30, mean 20 (1 window,"), "{found:?}");
        assert!(found.facts[3].1.contains("p50 0.250"), "{found:?}");
        let words = described("d.json", &text.replace("7: 1.0", "7= 1.0")).expect_err("no pair");
        assert!(words.contains("d.json#600.output_tokens: found {7= 1.0}"), "{words}");
    }
}
