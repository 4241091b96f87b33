//! The app without a window: opened, clicked, dragged and read through its accessibility tree, and
//! its panels compared with kept pictures.
//!
//! One binary, because linking is what takes time. Runs come from the sample generator of
//! `onbeat_shared`. Nothing needs a display or a graphics card: pictures are painted by the
//! viewer's own rasteriser, and the real binary opens its window in an X server without a screen;
//! where there is none, that one test says so and passes.

mod cache;
mod compare;
mod exports;
mod extremes;
mod foreign;
mod grids;
mod growing;
mod lateness;
mod open;
mod panels;
mod pictures;
mod plots;
mod reach;
mod requests;
mod screenshots;
mod shell;
mod shell_pictures;
mod slo;
mod spread;
mod stage;
mod throughput;
mod timeline;
mod users;
#[cfg(target_os = "linux")]
mod window;
mod xy_plots;
