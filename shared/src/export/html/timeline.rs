//! The users of a run over time, as SVG: a row each, with their lives and their requests.
//!
//! A row has a line from the user's start to its end, a bar for each request from its sending to
//! its end, a thin one while the user was kept back, a dot at its end, and letters where something
//! happened to the user (S started, C completed, T truncated). What there is too much of
//! is left out evenly and said by whoever makes the rows. The bars of one kind are one path, and
//! the script finds what lies under the pointer in [`TimelineData`], so that a page with tens of
//! thousands of requests still scrolls.

use std::fmt::{self, Write};

use serde::Serialize;

use super::chart::{FOOT, LEFT, Span, WIDTH, close_frame, draw_times, open_plot};
use super::words::{Short, Shown, rounded};
use crate::foreign::shown;

/// Rows up to which each has room for comfortable reading.
const ROOMY_ROWS: usize = 60;
/// Most letters of a name that fit beside a row.
const NAME_LETTERS: usize = 16;

/// The users and what they did.
#[derive(Clone, Debug, Default)]
pub(super) struct Timeline {
    /// One per user, from the top.
    pub(super) rows: Vec<Row>,
    /// Their requests.
    pub(super) marks: Vec<Mark>,
    /// Words that marks point to.
    pub(super) words: Vec<String>,
    /// What is to be known before reading it.
    pub(super) note: String,
}

/// One user.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    /// Its name.
    pub(super) name: String,
    /// What it played.
    pub(super) trace: String,
    /// When it was there, in seconds from zero.
    pub(super) life: (f64, f64),
    /// What happened to it: when, a letter, and in words.
    pub(super) events: Vec<(f64, Event, String)>,
    /// From when until when it was kept back.
    pub(super) waits: Vec<(f64, f64)>,
    /// Whether it is a sub-agent.
    pub(super) is_sub_agent: bool,
}

/// What can happen to a user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Started,
    Completed,
    Truncated,
}

impl Event {
    const fn letter(self) -> char {
        match self {
            Self::Started => 'S',
            Self::Completed => 'C',
            Self::Truncated => 'T',
        }
    }
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Mark {
    /// Its user's row.
    pub(super) row: usize,
    /// When its turn had come, in seconds from zero.
    pub(super) due_s: f64,
    /// When it left.
    pub(super) sent_s: f64,
    /// When it ended; for one that did not, when the log ends.
    pub(super) end_s: f64,
    /// How it ended.
    pub(super) end: MarkEnd,
    /// To its first token.
    pub(super) ttft_s: Option<f64>,
    /// Prompt tokens.
    pub(super) input: Option<u64>,
    /// Completion tokens.
    pub(super) output: Option<u64>,
    /// What is said about it: a place in [`Timeline::words`].
    pub(super) words: Option<usize>,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarkEnd {
    Ok,
    Failed,
    /// The run's end cut it off.
    Cut,
}

impl MarkEnd {
    const ALL: [Self; 3] = [Self::Ok, Self::Cut, Self::Failed];

    const fn class(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "bad",
            Self::Cut => "cut",
        }
    }
}

/// What the script shows beside the pointer: columns, one entry per request.
#[derive(Debug, Serialize)]
pub(super) struct TimelineData {
    row_height: f64,
    names: Vec<String>,
    row: Vec<usize>,
    due: Vec<f64>,
    sent: Vec<f64>,
    end: Vec<f64>,
    ttft: Vec<Option<f64>>,
    input: Vec<Option<u64>>,
    output: Vec<Option<u64>>,
    said: Vec<Option<usize>>,
    kind: Vec<&'static str>,
    words: Vec<String>,
}

impl Timeline {
    /// For the script.
    pub(super) fn data(&self) -> TimelineData {
        let millis = |seconds: f64| rounded((seconds * 1e3).round() / 1e3);
        let name = |row: &Row| format!("{} · {}", shown(&row.name), shown(&row.trace));
        let marks = &self.marks;
        TimelineData {
            row_height: self.row_height(),
            names: self.rows.iter().map(name).collect(),
            row: marks.iter().map(|mark| mark.row).collect(),
            due: marks.iter().map(|mark| millis(mark.due_s)).collect(),
            sent: marks.iter().map(|mark| millis(mark.sent_s)).collect(),
            end: marks.iter().map(|mark| millis(mark.end_s)).collect(),
            ttft: marks.iter().map(|mark| mark.ttft_s.map(rounded)).collect(),
            input: marks.iter().map(|mark| mark.input).collect(),
            output: marks.iter().map(|mark| mark.output).collect(),
            said: marks.iter().map(|mark| mark.words).collect(),
            kind: marks.iter().map(|mark| mark.end.class()).collect(),
            words: self.words.iter().map(|words| shown(words)).collect(),
        }
    }

    fn row_height(&self) -> f64 {
        if self.rows.len() <= ROOMY_ROWS { 17.0 } else { 12.0 }
    }

    #[expect(clippy::cast_precision_loss, reason = "rows of a page, at most thousands")]
    fn middle(&self, row: usize) -> f64 {
        (row as f64 + 0.5) * self.row_height()
    }

    /// Draws it.
    pub(super) fn draw(&self, span: &Span, out: &mut String) -> fmt::Result {
        out.push_str("<figure class=\"chart timeline\" data-timeline=\"1\"><figcaption>");
        write!(out, "<b>Users</b> <small>{}</small>", Shown(&self.note))?;
        out.push_str(
            "<span class=\"legend\"><span class=\"key ok\">request, ok</span>\
             <span class=\"key bad\">failed</span><span class=\"key cut\">cut off</span>\
             <span class=\"key wait\">waiting for admission</span>\
             <span class=\"key life\">S started · C completed · T truncated</span></span>\
             </figcaption><div class=\"scroll\">",
        );
        let height = self.middle(self.rows.len().max(1)) - 0.5 * self.row_height();
        write!(
            out,
            "<svg class=\"frame\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
             aria-label=\"Users\">"
        )?;
        self.draw_names(out)?;
        open_plot(0.0, height, out)?;
        self.draw_lives(span, out)?;
        self.draw_requests(span, out)?;
        out.push_str("</svg>");
        self.draw_events(span, out)?;
        close_frame(0.0, height, out)?;
        write!(out, "<svg class=\"frame times\" viewBox=\"0 0 {WIDTH} {FOOT}\">")?;
        draw_times(span, 0.0, 4.0, out)?;
        out.push_str("</svg></div></figure>\n");
        Ok(())
    }

    fn draw_names(&self, out: &mut String) -> fmt::Result {
        let class = if self.rows.len() <= ROOMY_ROWS { "names" } else { "names dense" };
        write!(out, "<g class=\"{class}\">")?;
        for (place, row) in self.rows.iter().enumerate() {
            let name: String = row.name.chars().take(NAME_LETTERS).collect();
            let class = if row.is_sub_agent { " class=\"sub\"" } else { "" };
            write!(
                out,
                "<text{class} x=\"{}\" y=\"{:.1}\">{}<title>{} · {}</title></text>",
                LEFT - 8.0,
                self.middle(place) + 3.5,
                Shown(&name),
                Shown(&row.name),
                Shown(&row.trace)
            )?;
        }
        out.push_str("</g>");
        Ok(())
    }

    fn draw_lives(&self, span: &Span, out: &mut String) -> fmt::Result {
        out.push_str("<path class=\"life\" d=\"");
        for (place, row) in self.rows.iter().enumerate() {
            let (from, to) = (span.x(row.life.0), span.x(row.life.1));
            let y = self.middle(place);
            write!(out, "M{} {}H{}", Short(from, 2), Short(y, 1), Short(to, 2))?;
        }
        out.push_str("\"/>");
        Ok(())
    }

    fn draw_requests(&self, span: &Span, out: &mut String) -> fmt::Result {
        let bar = |from: f64, to: f64, row: usize, out: &mut String| {
            let (from, to) = (span.x(from), span.x(to));
            let y = self.middle(row);
            write!(out, "M{} {}H{}", Short(from, 3), Short(y, 1), Short(to.max(from + 0.01), 3))
        };
        out.push_str("<path class=\"wait\" d=\"");
        for (place, row) in self.rows.iter().enumerate() {
            row.waits.iter().try_for_each(|&(from, to)| bar(from, to, place, out))?;
        }
        out.push_str("\"/>");
        for end in MarkEnd::ALL {
            let own = || self.marks.iter().filter(|mark| mark.end == end);
            write!(out, "<path class=\"request {}\" d=\"", end.class())?;
            own().try_for_each(|mark| bar(mark.sent_s, mark.end_s, mark.row, out))?;
            write!(out, "\"/><path class=\"end {}\" d=\"", end.class())?;
            own().try_for_each(|mark| bar(mark.end_s, mark.end_s, mark.row, out))?;
            out.push_str("\"/>");
        }
        Ok(())
    }

    fn draw_events(&self, span: &Span, out: &mut String) -> fmt::Result {
        out.push_str("<g class=\"events\">");
        for (place, row) in self.rows.iter().enumerate() {
            for (time_s, event, words) in &row.events {
                let (x, y) = (LEFT + span.x(*time_s), self.middle(place) + 3.5);
                let letter = event.letter();
                write!(
                    out,
                    "<text class=\"{letter}\" data-t=\"{}\" x=\"{x:.1}\" y=\"{y:.1}\">{letter}\
                     <title>{} {}</title></text>",
                    Short(*time_s, 3),
                    Shown(&row.name),
                    Shown(words)
                )?;
            }
        }
        out.push_str("</g>");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline() -> Timeline {
        let row = |name: &str, is_sub_agent| Row {
            name: name.to_owned(),
            trace: "trace_0001".to_owned(),
            life: (0.0, 40.0),
            events: vec![(0.0, Event::Started, "started".to_owned())],
            waits: vec![(9.0, 10.0)],
            is_sub_agent,
        };
        let mark = |row, end_s, end| Mark {
            row,
            due_s: 9.0,
            sent_s: 10.0,
            end_s,
            end,
            ttft_s: Some(0.25),
            input: Some(100),
            output: None,
            words: None,
        };
        Timeline {
            rows: vec![row("User-001", false), row("User-001-SA1", true)],
            marks: vec![mark(0, 20.0, MarkEnd::Ok), mark(1, 30.0, MarkEnd::Failed)],
            ..Timeline::default()
        }
    }

    fn drawn(timeline: &Timeline) -> String {
        let span = Span { start_s: 0.0, end_s: 40.0, slots: Vec::new() };
        let mut out = String::new();
        timeline.draw(&span, &mut out).expect("a String takes everything");
        out
    }

    #[test]
    fn a_request_is_a_bar_in_its_user_s_row() {
        let out = drawn(&timeline());
        // 850 units for 40 s, rows of 17 units.
        assert!(out.contains("<path class=\"request ok\" d=\"M212.5 8.5H425\"/>"), "{out}");
        assert!(out.contains("<path class=\"end ok\" d=\"M425 8.5H425.01\"/>"), "{out}");
        assert!(out.contains("<path class=\"request bad\" d=\"M212.5 25.5H637.5\"/>"), "{out}");
        let waits = "<path class=\"wait\" d=\"M191.25 8.5H212.5M191.25 25.5H212.5\"/>";
        assert!(out.contains(waits), "{out}");
        assert!(out.contains("viewBox=\"0 0 1000 34\""), "two rows: {out}");
    }

    #[test]
    fn names_are_text_whatever_they_are() {
        let mut hostile = timeline();
        hostile.rows[0].trace = "<script>alert(1)</script>".to_owned();
        hostile.rows[0].events[0].2 = "\"><img>".to_owned();
        let out = drawn(&hostile);
        assert!(!out.contains("<script") && !out.contains("<img"), "{out}");
        assert!(out.contains("&lt;script&gt;"), "{out}");
    }
}
