//! What can leave the viewer, and making it.
//!
//! An [`Order`] holds everything it needs: the run, the user's choices at that moment, where it
//! goes. It is carried out on a background thread, says how far it is, and stops when it is told.
//! Tables have the columns of `onbeat export`, pages the numbers of `onbeat report`; nothing is
//! computed here.

use std::{
    fs::File,
    io::{self, Write},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use eframe::egui::Vec2;
use onbeat_shared::{
    export::{self, Beside, Table, TextFormat, html},
    metrics::ReportOptions,
};

use super::file::{self, Refusal, Stopped};
use super::{panel_picture, png};
use crate::opened::OpenedRun;
use crate::panels::Other;
use crate::raster::Bitmap;
use crate::state::Choices;

/// What can be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// A picture of the shown panel.
    #[default]
    Panel,
    /// A picture of the window.
    Window,
    /// A row per request, as text.
    RequestsCsv,
    /// A row per request, in columns.
    RequestsParquet,
    /// A row per content event, as text.
    ChunksCsv,
    /// A row per content event, in columns.
    ChunksParquet,
    /// A page for a browser.
    Page,
}

impl Form {
    /// All of them, in the order of the list.
    pub const ALL: [Self; 7] = [
        Self::Panel,
        Self::Window,
        Self::RequestsCsv,
        Self::RequestsParquet,
        Self::ChunksCsv,
        Self::ChunksParquet,
        Self::Page,
    ];

    /// What it is called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Panel => "This panel as a picture (PNG)",
            Self::Window => "The window as a picture (PNG)",
            Self::RequestsCsv => "Requests as CSV",
            Self::RequestsParquet => "Requests as Parquet",
            Self::ChunksCsv => "Chunks as CSV",
            Self::ChunksParquet => "Chunks as Parquet",
            Self::Page => "A page for a browser (HTML)",
        }
    }

    /// What is in it.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Panel => "twice as fine as the screen, without bars",
            Self::Window => "as it is on the screen",
            Self::RequestsCsv | Self::RequestsParquet => {
                "a row per request, with the columns of `onbeat export`"
            }
            Self::ChunksCsv | Self::ChunksParquet => "a row per piece of their answers",
            Self::Page => "facts, numbers and charts in one file, with nothing to fetch",
        }
    }

    /// The end of its file's name.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Panel | Self::Window => "png",
            Self::RequestsCsv | Self::ChunksCsv => "csv",
            Self::RequestsParquet | Self::ChunksParquet => "parquet",
            Self::Page => "html",
        }
    }

    /// What its file's name says after the run's: the panel's name, or what is in it.
    #[must_use]
    pub fn subject(self, panel: &str) -> String {
        match self {
            Self::Panel => panel.to_lowercase(),
            Self::Window => "window".to_owned(),
            Self::RequestsCsv | Self::RequestsParquet => "requests".to_owned(),
            Self::ChunksCsv | Self::ChunksParquet => "chunks".to_owned(),
            Self::Page => "report".to_owned(),
        }
    }
}

/// Something to be written.
pub struct Order {
    /// What.
    pub form: Form,
    /// Where.
    pub path: PathBuf,
    /// Whether a file may be replaced.
    pub replace: bool,
    /// Runs that must not be.
    pub runs: Vec<PathBuf>,
    /// The run.
    pub opened: Arc<OpenedRun>,
    /// What the user chose about it.
    pub choices: Choices,
    /// Of which requests that is, in words.
    pub of: String,
    /// The other runs that are open.
    pub others: Vec<Other>,
    /// The place of the shown panel.
    pub panel: usize,
    /// Its size on the screen (points).
    pub size: Vec2,
    /// Whether it is drawn light on dark.
    pub dark: bool,
    /// The window's picture, if that is what is to be written.
    pub window: Option<Bitmap>,
}

/// Something that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Done {
    /// Where.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// Requests in it, if it is a table.
    pub requests: Option<u64>,
}

/// How far an order is, and whether it is still wanted. Shared with the window.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    all: AtomicU64,
    accepted: AtomicBool,
    stopped: AtomicBool,
}

impl Progress {
    /// How much is done, from 0 to 1; `None` if that cannot be told.
    #[must_use]
    pub fn share(&self) -> Option<f32> {
        let all = self.all.load(Ordering::Relaxed);
        let done = self.done.load(Ordering::Relaxed);
        (all > 0).then(|| done as f32 / all as f32)
    }

    /// Whether the file may be written where it should go.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.accepted.load(Ordering::Relaxed)
    }

    /// Asks it to stop.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    fn goes_on(&self) -> bool {
        !self.stopped.load(Ordering::Relaxed)
    }
}

/// Carries an order out on the calling thread.
///
/// # Errors
/// Why nothing was written.
pub fn carry_out(order: &Order, progress: &Progress) -> Result<Done, Refusal> {
    let path = file::ended(&order.path, order.form.extension());
    let exists = file::check(&path, &order.runs)?;
    if exists && !order.replace {
        return Err(Refusal::Exists(path));
    }
    progress.accepted.store(true, Ordering::Relaxed);
    let write =
        |fill: &mut dyn FnMut(&File) -> io::Result<()>| file::write(&path, order.replace, fill);
    let mut requests = None;
    let bytes = match order.form {
        Form::Panel | Form::Window => {
            let drawn;
            let picture = match (&order.window, order.form) {
                (Some(window), Form::Window) => window,
                _ => {
                    let go_on = || progress.goes_on();
                    drawn = panel_picture::picture(order, &go_on).ok_or(Refusal::Stopped)?;
                    &drawn
                }
            };
            write(&mut |file| png::write(picture, file))?
        }
        Form::Page => write(&mut |file| page(order, &mut Stoppable { out: file, progress }))?,
        Form::RequestsCsv | Form::RequestsParquet | Form::ChunksCsv | Form::ChunksParquet => {
            let chosen = order.opened.chosen(&order.choices.selection());
            requests = Some(chosen.len() as u64);
            write(&mut |file| table(order, &chosen, file, progress))?
        }
    };
    Ok(Done { path, bytes, requests })
}

fn table(order: &Order, chosen: &[u32], file: &File, progress: &Progress) -> io::Result<()> {
    let run = &order.opened.run;
    let beside = Beside::goals(&order.choices.goals);
    progress.all.store(chosen.len() as u64, Ordering::Relaxed);
    let places = chosen.iter().map(|&place| {
        progress.done.fetch_add(1, Ordering::Relaxed);
        place as usize
    });
    let out = Stoppable { out: file, progress };
    let csv = TextFormat::Csv;
    match order.form {
        Form::RequestsParquet => {
            export::write_parquet_of(run, places, Table::Requests, &beside, out)
        }
        Form::ChunksParquet => export::write_parquet_of(run, places, Table::Chunks, &beside, out),
        Form::ChunksCsv => export::write_text_of(run, places, Table::Chunks, csv, &beside, out),
        Form::RequestsCsv | Form::Panel | Form::Window | Form::Page => {
            export::write_text_of(run, places, Table::Requests, csv, &beside, out)
        }
    }
}

fn page(order: &Order, out: &mut dyn Write) -> io::Result<()> {
    let opened = &order.opened;
    let selection = order.choices.selection();
    let goals = &order.choices.goals;
    let options = ReportOptions {
        slice_ns: html::slice_ns(&opened.run),
        slo: (!goals.list().is_empty()).then(|| goals.clone()),
        ..ReportOptions::default()
    };
    let report = opened.report_of(&selection, &options);
    if selection.is_everything() {
        html::write(&opened.run, &report, None, out)
    } else {
        html::write_part(&opened.run, &report, &order.of, out)
    }
}

/// A writer that fails once the user wants it to stop.
struct Stoppable<'a> {
    out: &'a File,
    progress: &'a Progress,
}

impl Write for Stoppable<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.progress.goes_on() { self.out.write(bytes) } else { Err(io::Error::other(Stopped)) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use eframe::egui::vec2;
    use onbeat_shared::{log::sample, run::Run};

    use super::*;

    fn order(form: Form, path: PathBuf) -> Order {
        let run = Run::read(&sample::log(5, 60)).expect("a readable log");
        let opened = Arc::new(OpenedRun::new(PathBuf::from("/runs/run.beat"), 0, run));
        Order {
            form,
            path,
            replace: false,
            runs: vec![opened.path.clone()],
            choices: Choices::new(opened.whole()),
            of: "the whole run".to_owned(),
            others: Vec::new(),
            panel: 0,
            size: vec2(900.0, 600.0),
            dark: false,
            window: None,
            opened,
        }
    }

    #[test]
    fn every_form_is_written_and_gets_its_end() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (place, form) in Form::ALL.into_iter().enumerate() {
            let path = folder.path().join(format!("{place}"));
            let mut order = order(form, path.clone());
            order.window = Some(Bitmap { width: 1, height: 1, pixels: vec![[1, 2, 3, 255]] });
            let progress = Progress::default();
            let done = carry_out(&order, &progress).expect("written");
            assert_eq!(done.path, path.with_extension(form.extension()), "{form:?}");
            let written = fs::metadata(&done.path).expect("there").len();
            assert!(written > 0 && written == done.bytes, "{form:?}");
            assert!(progress.is_accepted());
            if done.requests.is_some() {
                assert_eq!((done.requests, progress.share()), (Some(60), Some(1.0)));
            }
            let again = carry_out(&order, &Progress::default());
            assert_eq!(again, Err(Refusal::Exists(done.path)), "{form:?}");
        }
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), Form::ALL.len());
    }

    #[test]
    fn what_is_stopped_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for form in Form::ALL.into_iter().filter(|form| *form != Form::Window) {
            let path = folder.path().join("stopped").with_extension(form.extension());
            let progress = Progress::default();
            progress.stop();
            assert_eq!(carry_out(&order(form, path), &progress), Err(Refusal::Stopped), "{form:?}");
        }
        assert_eq!(fs::read_dir(folder.path()).expect("readable").count(), 0);
    }
}
