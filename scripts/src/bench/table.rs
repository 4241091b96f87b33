//! Lines of results → the table of every bar, as Markdown.
//!
//! A pure function of the lines and the list of bars: what is not in the lines is "not measured",
//! never zero. The README's table is written by this, between two marks.

use serde_json::Value;

use super::bars::{Bound, Check, Row, Scale};

/// Around the table in the README.
const MARKS: [&str; 2] = ["<!-- bench table -->", "<!-- end of bench table -->"];

/// Lines of a file of results.
pub(super) fn parse(text: &str) -> Result<Vec<Value>, String> {
    let line = |(number, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|error| format!("line {}: {error}", number + 1))
    };
    text.lines().enumerate().map(line).collect()
}

/// The machine in words, then one row for each bar.
pub(super) fn markdown(lines: &[Value], rows: &[Row]) -> String {
    let mut text = String::new();
    if let Some(machine) = lines.iter().find(|line| line["bench"] == "machine") {
        text.push_str(&machine_words(machine));
        text.push_str("\n\n");
    }
    text.push_str("| figure | bar | measured | |\n|---|---|---|---|\n");
    for row in rows {
        let (measured, verdict) = outcome(lines, row);
        let bars: Vec<String> = row.checks.iter().map(|check| bar(check, row.unit)).collect();
        text.push_str(&format!(
            "| {} | {} | {measured} | {verdict} |\n",
            row.what,
            bars.join(", ")
        ));
    }
    text
}

/// Every ratio of every case, for results that are compared with each other and with no bar.
pub(super) fn ratios(lines: &[Value]) -> String {
    let mut text = String::from("| case | ratios |\n|---|---|\n");
    for line in lines {
        let members = line.as_object().into_iter().flatten();
        let ratio = |(key, value): (&String, &Value)| {
            let name = key.strip_prefix("ratio_")?;
            Some(format!("{name} {}", value.as_f64().map_or("unknown".to_owned(), number)))
        };
        let mut ratios: Vec<String> = members.filter_map(ratio).collect();
        if let Some(why) = line["skipped"].as_str() {
            ratios = vec![format!("skipped: {why}")];
        }
        // Other benches have their whole result in their line, which was printed.
        if !ratios.is_empty() {
            let name = name_of(line).unwrap_or_default();
            text.push_str(&format!("| {name} | {} |\n", ratios.join(", ")));
        }
    }
    text
}

/// The README with another table between its marks.
pub(super) fn replaced(readme: &str, table: &str) -> Result<String, String> {
    let [open, close] = MARKS;
    let found = readme.split_once(open).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(close)?;
        Some(format!("{before}{open}\n\n{table}\n{close}{after}"))
    });
    found.ok_or_else(|| format!("README.md has no `{open}` with a `{close}` behind it"))
}

fn machine_words(machine: &Value) -> String {
    let text = |key: &str| machine[key].as_str().unwrap_or("unknown").to_owned();
    let kind = match machine["virtual"].as_bool() {
        Some(true) => "a virtual machine",
        Some(false) => "no virtual machine",
        None => "virtual or not is unknown",
    };
    format!(
        "Measured {}: {}, {} CPUs, Linux {}, {kind}; {}, revision {}.",
        text("date"),
        text("cpu"),
        machine["cpus"],
        text("kernel"),
        text("onbeat"),
        text("revision"),
    )
}

/// What was measured, and whether that meets the bar.
fn outcome(lines: &[Value], row: &Row) -> (String, String) {
    // The last line of a name counts: a case that was run again.
    let Some(line) = lines.iter().rev().find(|line| name_of(line) == Some(&row.case)) else {
        return ("not measured".to_owned(), String::new());
    };
    if let Some(why) = line["skipped"].as_str() {
        return (format!("skipped: {why}"), String::new());
    }
    let values: Vec<Option<f64>> = row.checks.iter().map(|check| value(line, check)).collect();
    let measured: Vec<String> = values.iter().map(|value| shown(*value, row.unit)).collect();
    let beside = row.beside.iter().filter_map(|(key, words)| {
        line[key].as_f64().map(|value| format!("{}{words}", number(value)))
    });
    let beside: Vec<String> = beside.collect();
    let mut text = measured.join(", ");
    if !beside.is_empty() {
        text.push_str(&format!(" ({})", beside.join(", ")));
    }
    let bounds = row.checks.iter().map(|check| check.bound);
    (text, verdict(&bounds.zip(values).collect::<Vec<_>>()))
}

fn name_of(line: &Value) -> Option<&str> {
    line["case"].as_str().or_else(|| line["bench"].as_str())
}

fn value(line: &Value, check: &Check) -> Option<f64> {
    let value = line[&check.key].as_f64()?;
    match check.scale {
        Scale::Plain => Some(value),
        Scale::Inverse => (value > 0.0).then(|| 1.0 / value),
    }
}

/// The worst of a row's checks, in words; empty where there is no bar.
fn verdict(checks: &[(Bound, Option<f64>)]) -> String {
    let mut worst: f64 = 0.0;
    let mut bars = 0;
    for (bound, value) in checks {
        if *bound == Bound::Told {
            continue;
        }
        bars += 1;
        let Some(value) = value else { return "unknown".to_owned() };
        worst = worst.max(match *bound {
            Bound::Most(most) => excess(*value - most, most),
            Bound::Least(least) => excess(least - *value, least),
            Bound::Within(from, to) => excess(from - *value, from).max(excess(*value - to, to)),
            Bound::Told => 0.0,
        });
    }
    match (bars, worst > 0.0) {
        (0, _) => String::new(),
        (_, false) => "met".to_owned(),
        (_, true) if worst.is_finite() => format!("missed by {:.0} %", (worst * 100.0).max(1.0)),
        (_, true) => "missed".to_owned(),
    }
}

/// How far beyond a bar, as a share of it; infinite where the bar is zero.
fn excess(beyond: f64, bar: f64) -> f64 {
    match beyond > 0.0 {
        true => beyond / bar.abs(),
        false => 0.0,
    }
}

fn bar(check: &Check, unit: &str) -> String {
    match check.bound {
        Bound::Most(most) => format!("\u{2264} {}{unit}", number(most)),
        Bound::Least(least) => format!("\u{2265} {}{unit}", number(least)),
        Bound::Within(from, to) => format!("{} to {}{unit}", number(from), number(to)),
        Bound::Told => "\u{2013}".to_owned(),
    }
}

fn shown(value: Option<f64>, unit: &str) -> String {
    value.map_or_else(|| "unknown".to_owned(), |value| format!("{}{unit}", number(value)))
}

/// Few digits, and thousands apart.
fn number(value: f64) -> String {
    if value.abs() < 100.0 {
        let text = format!("{value:.2}");
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) && !text.ends_with('-') {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::bars;

    fn table(lines: &str) -> String {
        markdown(&parse(lines).expect("lines of JSON"), &bars::rows())
    }

    fn row(table: &str, start: &str) -> String {
        let found = table.lines().find(|line| line.starts_with(&format!("| {start}")));
        found.expect("there is such a row").to_owned()
    }

    #[test]
    fn a_bar_is_met_missed_or_not_measured() {
        let table = table(
            r#"{"bench":"machine","date":"2026-01-02","cpu":"A","cpus":2,"virtual":true}
{"bench":"replay","case":"burst-1000","ratio_last_byte_left_us":1.5,"onbeat_last_byte_left_us":7500}
{"bench":"replay","case":"rate-139","ratio_highest":0.75}
{"bench":"replay","case":"rate-139","ratio_highest":0.85,"floor_highest_per_s":98765}
{"bench":"replay","case":"interference-disk","skipped":"strace is not installed"}
{"bench":"text","ns_per_item_median":0.4}"#,
        );
        assert!(table.starts_with("Measured 2026-01-02: A, 2 CPUs"), "{table}");
        let burst = row(&table, "1,000 due at once");
        assert!(burst.ends_with("| 1.5x (7,500 us) | missed by 20 % |"), "{burst}");
        let rate = row(&table, "highest rate, bodies of 100");
        assert!(rate.contains("98,765/s for the floor") && rate.ends_with("| met |"), "{rate}");
        assert!(row(&table, "prompt text").contains("2.5 GB/s"));
        assert!(row(&table, "a disk that hangs").contains("skipped: strace"));
        assert!(row(&table, "highest rate, bodies of 1 MiB").contains("not measured"));
    }

    #[test]
    fn a_zero_bar_and_an_unknown_value_are_no_pass() {
        let table = table(
            r#"{"bench":"replay","case":"render-ahead-mooncake","onbeat_underruns":3}
{"bench":"replay","case":"streams-128","ratio_chunks_per_s":null}
{"bench":"replay","case":"stall-20ms","ratio_reported":1.01}"#,
        );
        assert!(row(&table, "rendering ahead, Mooncake").ends_with("| missed |"));
        assert!(row(&table, "128-chunk").ends_with("| unknown | unknown |"));
        assert!(row(&table, "a process stopped").ends_with("| met |"));
    }

    #[test]
    fn the_default_pacing_and_the_memory_of_rendering_ahead_have_bars() {
        let table = table(
            r#"{"bench":"replay","case":"lateness-poisson-1000","ratio_arrival_p50_us":9}
{"bench":"replay","case":"lateness-poisson-1000-hybrid","ratio_arrival_p50_us":1.5,
"ratio_arrival_p90_us":1.5,"ratio_arrival_outside_p99_us":1.5}
{"bench":"replay","case":"render-ahead-agentic","ratio_peak_memory":0.9,"onbeat_budget_mib":224}"#
                .replace(",\n\"ratio", ",\"ratio")
                .as_str(),
        );
        let hybrid = row(&table, "arrivals, poisson, 1000/s, --pacing hybrid: p50");
        assert!(hybrid.ends_with("| missed by 20 % |"), "{hybrid}");
        let memory = row(&table, "rendering ahead, bodies of 3.6 MB at 20/s: peak memory");
        assert!(memory.ends_with("| \u{2264} 1x | 0.9x (224 MiB allowed) | met |"), "{memory}");
    }

    #[test]
    fn the_readme_keeps_everything_around_the_table() {
        let readme = format!("a\n{}\nold\n{}\nb\n", MARKS[0], MARKS[1]);
        let new = replaced(&readme, "| new |\n").expect("both marks");
        assert_eq!(new, format!("a\n{}\n\n| new |\n\n{}\nb\n", MARKS[0], MARKS[1]));
        assert_eq!(replaced(&new, "| new |\n").as_deref(), Ok(new.as_str()));
        assert!(replaced("no marks", "").is_err());
    }
}
