//! The JSON of `vllm bench serve --save-result --save-detailed`: lists with one entry a request.
//!
//! Seconds throughout. A failed request has zeros in the lists and its reason in `errors`. Without
//! `start_times`, which older versions do not write, nobody knows when a request left.

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use serde::{Deserialize, Deserializer};

use super::ImportError;
use super::facts::{Facts, Failure, Request, of_seconds, of_tokens};

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    date: Option<String>,
    /// Seconds from the first sending to the end.
    #[serde(default)]
    duration: Option<f64>,
    #[serde(default)]
    model_id: Option<String>,
    #[serde(default)]
    endpoint_type: Option<String>,
    #[serde(default, deserialize_with = "listed")]
    input_lens: Vec<Option<f64>>,
    #[serde(default, deserialize_with = "listed")]
    output_lens: Vec<Option<f64>>,
    ttfts: Option<Vec<Option<f64>>>,
    itls: Option<Vec<Option<Vec<Option<f64>>>>>,
    #[serde(default, deserialize_with = "listed")]
    start_times: Vec<Option<f64>>,
    #[serde(default, deserialize_with = "listed")]
    queue_times: Vec<Option<f64>>,
    #[serde(default, deserialize_with = "listed")]
    latencies: Vec<Option<f64>>,
    #[serde(default, deserialize_with = "listed")]
    errors: Vec<Option<String>>,
}

/// A list, and none where there is `null` instead of one.
fn listed<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

pub(super) fn facts(bytes: &[u8]) -> Result<Facts, ImportError> {
    let document: Document = serde_json::from_slice(bytes)
        .or_else(|_| serde_json::from_slice(&without_nan(bytes)))
        .map_err(|error| refused(&error))?;
    let (Some(ttfts), Some(itls)) = (&document.ttfts, &document.itls) else {
        return Err(ImportError::new(
            "it has no `ttfts` and `itls`: only the totals were saved; run vllm bench with \
             --save-detailed",
        ));
    };
    let mut facts = Facts {
        unix_of_zero: None,
        model: document.model_id.clone().unwrap_or_default(),
        endpoint: document.endpoint_type.clone().unwrap_or_default(),
        ..Facts::default()
    };
    let mut without_gaps = false;
    for (place, ttft) in ttfts.iter().enumerate() {
        let itls = itls.get(place).and_then(Option::as_deref).unwrap_or_default();
        let gap = |gap: &Option<f64>| gap.and_then(of_seconds);
        let itls = itls.iter().map(gap).collect::<Option<Vec<_>>>();
        without_gaps |= itls.is_none();
        let session = facts.session(&format!("request_{place}"));
        let request = document.request(place, session, *ttft, itls);
        facts.push(request)?;
    }
    // Its clock's zero is any; the file is dated when the run has ended.
    let ended = document.date.as_deref().and_then(unix_ns);
    let duration = document.duration.and_then(of_seconds).map_or(0, i128::from);
    let zero = document.start_times.iter().flatten().copied().fold(f64::INFINITY, f64::min);
    let zero = of_seconds(zero).map_or(0, i128::from);
    facts.unix_of_zero = ended.map(|unix| unix - duration - zero);
    facts.warnings = vec![
        "vllm bench's file has no schedule, host stalls, cached tokens, first bytes or \
         connections, and dates of no time zone."
            .to_owned(),
    ];
    if without_gaps {
        let words = "some times between tokens are no numbers: between the first and the last \
                     token of their requests nothing is known";
        facts.warnings.push(words.to_owned());
    }
    if document.start_times.iter().all(Option::is_none) {
        let words = "it does not say when requests were sent (no `start_times`): all stand at \
                     zero, and no figure over time means anything";
        facts.warnings.push(words.to_owned());
    }
    Ok(facts)
}

/// Why a file is no result.
fn refused(error: &serde_json::Error) -> ImportError {
    let words = error.to_string();
    if words.starts_with("trailing characters") {
        return ImportError::new(
            "it has more than one result (vllm bench's --append-result); keep each in a file of \
             its own",
        );
    }
    let cut = if error.is_eof() { "; the file is cut off" } else { "" };
    ImportError::new(format!("not a result of vllm bench: {words}{cut}"))
}

impl Document {
    /// The request at a place. `gaps` are between its chunks (ns), if all of them are known.
    fn request(
        &self,
        place: usize,
        session: u32,
        ttft: Option<f64>,
        gaps: Option<Vec<i64>>,
    ) -> Request {
        let seconds =
            |list: &[Option<f64>]| list.get(place).copied().flatten().and_then(of_seconds);
        let tokens = |list: &[Option<f64>]| list.get(place).copied().flatten().and_then(of_tokens);
        let sent = seconds(&self.start_times).unwrap_or(0);
        let words = self.errors.get(place).and_then(Option::as_deref).unwrap_or_default();
        let failed = !words.is_empty();
        let latency = seconds(&self.latencies).filter(|&latency| latency > 0);
        let mut chunks = Vec::new();
        if let Some(ttft) = ttft.filter(|&ttft| ttft > 0.0).and_then(of_seconds) {
            let mut at = sent.saturating_add(ttft);
            chunks.push((at, 1));
            let last = latency.map(|latency| sent.saturating_add(latency));
            match gaps {
                Some(gaps) => chunks.extend(gaps.into_iter().map(|gap| {
                    at = at.saturating_add(gap);
                    (at, 1)
                })),
                None => chunks.extend(last.filter(|&last| last > at).map(|last| (last, 1))),
            }
        }
        let completion = tokens(&self.output_lens);
        Request {
            row: place as u64 + 1,
            session,
            due: seconds(&self.queue_times).map(|queued| sent.saturating_sub(queued)),
            sent,
            done: latency.map(|latency| sent.saturating_add(latency)),
            input: tokens(&self.input_lens),
            completion: completion.filter(|&tokens| tokens > 0 && !failed),
            failure: failed.then(|| Failure::of(status_in(words), words)),
            chunks,
            ..Request::default()
        }
    }
}

/// The status that an error's words name, as `"Error: 429 Too Many Requests"` does.
fn status_in(words: &str) -> Option<u16> {
    let numbers = words.split(|byte: char| !byte.is_ascii_digit());
    let numbers = numbers.filter(|digits| digits.len() == 3);
    numbers.filter_map(|digits| digits.parse().ok()).find(|status| (300..600).contains(status))
}

/// `20260102-030405` as nanoseconds since 1970; the file has the machine's own time, of which the
/// zone is not told, so it is taken as UTC.
fn unix_ns(date: &str) -> Option<i128> {
    let civil = DateTime::strptime("%Y%m%d-%H%M%S", date).ok()?;
    let zoned = civil.to_zoned(TimeZone::UTC).ok()?;
    Some(zoned.timestamp().as_nanosecond())
}

/// The document with `NaN` and `Infinity`, which Python writes and JSON does not know, as nulls.
fn without_nan(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let (mut in_text, mut at) = (false, 0);
    while at < bytes.len() {
        let rest = &bytes[at..];
        let word = ["NaN", "-Infinity", "Infinity"]
            .into_iter()
            .find(|word| !in_text && rest.starts_with(word.as_bytes()));
        if let Some(word) = word {
            out.extend_from_slice(b"null");
            at += word.len();
            continue;
        }
        if in_text && rest[0] == b'\\' {
            out.extend_from_slice(&rest[..rest.len().min(2)]);
            at += 2;
            continue;
        }
        in_text ^= rest[0] == b'"';
        out.push(rest[0]);
        at += 1;
    }
    out
}
