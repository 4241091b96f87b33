//! The page around the charts: its head, its tables, its style and its script, in one file.
//!
//! Nothing is fetched: the style and the script are in the page, and its own policy forbids it to
//! ask anybody for anything. Without the script the page shows everything but what needs a
//! pointer. What is in it comes from the caller; every text of theirs is escaped here.

use std::fmt::{self, Write};

use serde::Serialize;

use super::chart::{Chart, ChartData, Span};
use super::still::Still;
use super::timeline::{Timeline, TimelineData};
use super::words::{Shown, rounded, script_json};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// Letters of a value that stay on one line.
const NOWRAP: usize = 33;
/// What the page itself may do.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
                      base-uri 'none'; form-action 'none'";

/// All that a page shows.
#[derive(Clone, Debug)]
pub(super) struct Page {
    /// Its title.
    pub(super) title: String,
    /// What is under it.
    pub(super) lead: String,
    /// Whether the measurement is valid, and why not.
    pub(super) verdict: Verdict,
    /// What became of gates, if there were any.
    pub(super) gates: Option<Verdict>,
    /// Tables of facts and numbers.
    pub(super) cards: Vec<Card>,
    /// What a reader must know.
    pub(super) notes: Vec<String>,
    /// Groups of charts.
    pub(super) dashboards: Vec<Dashboard>,
    /// The time they are about.
    pub(super) span: Span,
    /// What a slot of that is called.
    pub(super) slot: &'static str,
    /// The numbers behind the charts.
    pub(super) numbers: Option<Numbers>,
}

/// Whether all is well: with the measurement, or with what was asked of it.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    /// It is.
    pub(super) held: bool,
    /// In a line.
    pub(super) words: String,
    /// Why, or why not.
    pub(super) reasons: Vec<String>,
}

impl Verdict {
    fn draw(&self, out: &mut String) -> fmt::Result {
        let class = if self.held { "verdict" } else { "verdict not" };
        write!(out, "<div class=\"{class}\"><b>{}</b>", Paragraph(&self.words))?;
        for reason in &self.reasons {
            write!(out, "<p>{}</p>", Paragraph(reason))?;
        }
        out.push_str("</div>\n");
        Ok(())
    }
}

/// Names and values.
#[derive(Clone, Debug, Default)]
pub(super) struct Card {
    /// What they are about.
    pub(super) title: &'static str,
    /// The pairs.
    pub(super) rows: Vec<(String, String)>,
}

impl Card {
    /// One with nothing in it yet.
    pub(super) const fn new(title: &'static str) -> Self {
        Self { title, rows: Vec::new() }
    }

    /// Adds a pair.
    pub(super) fn add(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.rows.push((name.into(), value.into()));
    }
}

/// A group of charts.
#[derive(Clone, Debug, Default)]
pub(super) struct Dashboard {
    /// Its place in the page's links.
    pub(super) id: &'static str,
    /// Its title.
    pub(super) title: &'static str,
    /// What is to be known.
    pub(super) note: String,
    /// Charts over periods.
    pub(super) charts: Vec<Chart>,
    /// Charts over values.
    pub(super) stills: Vec<Still>,
    /// A table under them.
    pub(super) table: Option<Numbers>,
    /// The users, in one of them.
    pub(super) timeline: Option<Timeline>,
}

/// A table, row by row.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers {
    /// The heads of its columns.
    pub(super) heads: Vec<&'static str>,
    /// Its cells.
    pub(super) rows: Vec<Vec<String>>,
    /// Whether they are words rather than numbers.
    pub(super) is_words: bool,
}

impl Numbers {
    fn draw(&self, out: &mut String) -> fmt::Result {
        let class = if self.is_words { "wide words" } else { "wide" };
        write!(out, "<div class=\"{class}\"><table><tr>")?;
        self.heads.iter().try_for_each(|head| write!(out, "<th>{}</th>", Shown(head)))?;
        out.push_str("</tr>\n");
        for row in &self.rows {
            out.push_str("<tr>");
            row.iter().try_for_each(|cell| write!(out, "<td>{}</td>", Paragraph(cell)))?;
            out.push_str("</tr>\n");
        }
        out.push_str("</table></div>\n");
        Ok(())
    }
}

/// What the script reads.
#[derive(Serialize)]
struct Data<'a> {
    span: (f64, f64),
    slot: &'a str,
    slots: Vec<(f64, f64)>,
    charts: Vec<ChartData<'a>>,
    timeline: Option<TimelineData>,
}

impl Page {
    /// The page as text.
    ///
    /// # Errors
    /// Never: a String takes everything.
    pub(super) fn text(&self) -> Result<String, fmt::Error> {
        let mut out = String::new();
        self.head(&mut out)?;
        self.facts(&mut out)?;
        let mut number = 0;
        for dashboard in &self.dashboards {
            let Dashboard { id, title, note, charts, stills, table, timeline } = dashboard;
            write!(out, "<section id=\"{id}\"><h2>{}</h2>", Shown(title))?;
            if !note.is_empty() {
                write!(out, "<p class=\"dim\">{}</p>", Paragraph(note))?;
            }
            out.push('\n');
            for chart in charts {
                chart.draw(number, &self.span, &mut out)?;
                number += 1;
            }
            if !stills.is_empty() {
                out.push_str("<div class=\"stills\">\n");
                stills.iter().try_for_each(|still| still.draw(&mut out))?;
                out.push_str("</div>\n");
            }
            if let Some(table) = table.as_ref().filter(|table| !table.rows.is_empty()) {
                table.draw(&mut out)?;
            }
            if let Some(timeline) = timeline {
                timeline.draw(&self.span, &mut out)?;
            }
            out.push_str("</section>\n");
        }
        self.foot(&mut out)?;
        Ok(out)
    }

    fn head(&self, out: &mut String) -> fmt::Result {
        let title = Shown(&self.title);
        write!(
            out,
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
             <header><div class=\"top\"><h1>{title}</h1>\
             <button id=\"theme\" hidden>light / dark</button></div>\
             <p class=\"dim\">{}</p></header>\n",
            Paragraph(&self.lead)
        )
    }

    fn facts(&self, out: &mut String) -> fmt::Result {
        self.verdict.draw(out)?;
        self.gates.iter().try_for_each(|gates| gates.draw(out))?;
        out.push_str("<div class=\"cards\">\n");
        for card in self.cards.iter().filter(|card| !card.rows.is_empty()) {
            write!(out, "<div class=\"card\"><h3>{}</h3><table>", Shown(card.title))?;
            for (name, value) in &card.rows {
                let class = if name.starts_with(' ') { " class=\"sub\"" } else { "" };
                let long = if value.chars().count() > NOWRAP { " class=\"long\"" } else { "" };
                let (name, value) = (Shown(name.trim_start()), Paragraph(value));
                write!(out, "<tr><td{class}>{name}</td><td{long}>{value}</td></tr>")?;
            }
            out.push_str("</table></div>\n");
        }
        out.push_str("</div>\n");
        for note in &self.notes {
            writeln!(out, "<p class=\"dim\">{}</p>", Paragraph(note))?;
        }
        out.push_str("<nav>");
        for Dashboard { id, title, .. } in &self.dashboards {
            write!(out, "<a href=\"#{id}\">{}</a>", Shown(title))?;
        }
        out.push_str(
            "<span class=\"range\" id=\"range\"></span>\
             <button id=\"whole\" hidden>whole run</button></nav>\n",
        );
        Ok(())
    }

    fn foot(&self, out: &mut String) -> fmt::Result {
        if let Some(numbers) = &self.numbers {
            write!(out, "<details><summary>Numbers by {}</summary>", Shown(self.slot))?;
            numbers.draw(out)?;
            out.push_str("</details>\n");
        }
        let charts = self.dashboards.iter().flat_map(|dashboard| &dashboard.charts);
        let mut timelines = self.dashboards.iter().filter_map(|one| one.timeline.as_ref());
        let slots = self.span.slots.iter().map(|&(start, end)| (rounded(start), rounded(end)));
        let data = Data {
            span: (self.span.start_s, self.span.end_s),
            slot: self.slot,
            slots: slots.collect(),
            charts: charts.map(Chart::data).collect(),
            timeline: timelines.next().map(Timeline::data),
        };
        write!(
            out,
            "<footer>Made by onbeat {} from the run's log. Times are from the schedule's zero; \
             gaps are periods without data.</footer>\n</main>\n<div id=\"tip\" hidden></div>\n\
             <script type=\"application/json\" id=\"data\">{}</script>\n\
             <script>\n{SCRIPT}</script>\n</body>\n</html>\n",
            env!("CARGO_PKG_VERSION"),
            script_json(&data)?
        )
    }
}

/// Words of any length: like [`Shown`], word by word, so that only long words are cut.
struct Paragraph<'a>(&'a str);

impl fmt::Display for Paragraph<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, word) in self.0.split_whitespace().enumerate() {
            if place > 0 {
                out.write_char(' ')?;
            }
            Shown(word).fmt(out)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hostile(words: &str) -> Page {
        let mut card = Card::new("Run");
        card.add(words, words);
        let verdict =
            Verdict { held: false, words: words.to_owned(), reasons: vec![words.to_owned()] };
        Page {
            title: words.to_owned(),
            lead: words.to_owned(),
            gates: Some(verdict.clone()),
            verdict,
            cards: vec![card],
            notes: vec![words.to_owned()],
            dashboards: Vec::new(),
            span: Span { start_s: 0.0, end_s: 1.0, slots: vec![(0.0, 1.0)] },
            slot: "period",
            numbers: Some(Numbers {
                heads: vec!["n"],
                rows: vec![vec![words.to_owned()]],
                is_words: false,
            }),
        }
    }

    #[test]
    fn foreign_words_change_no_markup() {
        let count = |text: &str, what: &str| text.matches(what).count();
        let plain = hostile("name").text().expect("text");
        let words = "</title></script><script src=//x onload='1'><style>\"&\u{202e}\u{0}";
        let text = hostile(words).text().expect("text");
        for mark in ["<", "</", "<script", "<style", "</title", "\u{202e}", "\u{0}"] {
            assert_eq!(count(&text, mark), count(&plain, mark), "{mark:?}");
        }
    }

    #[test]
    fn the_page_asks_nobody_for_anything() {
        let text = hostile("name").text().expect("text");
        // The one address is the name of SVG's elements, which no browser fetches.
        let addresses: Vec<_> = text.match_indices("http").map(|(at, _)| &text[at..]).collect();
        for address in addresses {
            let known = ["http-equiv", "http://www.w3.org/2000/svg"];
            assert!(known.iter().any(|own| address.starts_with(own)), "{}", &address[..40]);
        }
        for asks in ["src=", "@import", "url(", "fetch(", "XMLHttp", "<link", "<img", "innerHTML"] {
            assert!(!text.contains(asks), "{asks}");
        }
        assert!(text.contains("default-src 'none'"));
    }
}
