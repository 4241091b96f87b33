//! Shows what happened in an Onbeat run: a window over `onbeat_shared`'s runs and numbers.
//!
//! ```text
//! file ─▶ source ─▶ load (thread) ─▶ opened ─▶ derive (threads) ─▶ series ─▶ panels ─▶ screen
//!                                                 ▲ questions                   │
//!                                                 └──── state (choices) ◀───────┘
//! ```
//!
//! The drawing code only looks up and draws; what takes longer is a question answered on a
//! background thread. It never needs the engine, the trace or the network, and writes nothing by
//! itself but its own settings. The library exists so that tests can drive the app without a
//! window.

pub mod app;
pub mod arguments;
pub mod bars;
pub mod browse;
pub mod decimate;
pub mod derive;
pub mod dialog;
pub mod fate;
pub mod fields;
pub mod filter;
pub mod filter_line;
pub mod following;
pub mod headless;
pub mod icon;
mod imported;
pub mod keys;
pub mod load;
pub mod notice;
pub mod opened;
pub mod output;
pub mod page;
pub mod panels;
pub mod platform;
pub mod problem;
pub mod quantity;
pub mod raster;
pub mod real_path;
pub mod recent;
pub mod reference;
pub mod remarks;
pub mod screens;
pub mod screenshot;
pub mod selection;
pub mod series;
pub mod settings;
pub mod sheet;
pub mod source;
pub mod state;
pub mod tabs;
pub mod theme;
pub mod tiles;
pub mod top_bar;
pub mod typed_path;
pub mod widgets;
pub mod xy_view;
