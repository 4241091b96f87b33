//! Shows what happened in an Onbeat run: a window over `onbeat_shared`'s runs and numbers.
//!
//! ```text
//! file ─▶ mapped ─▶ load (thread) ─▶ opened ─▶ derive (threads) ─▶ series ─▶ panels ─▶ screen
//!                                                 ▲ questions                   │
//!                                                 └──── state (choices) ◀───────┘
//! ```
//!
//! The drawing code only looks up and draws; what takes longer is a question answered on a
//! background thread. It never needs the engine, the trace or the network, and writes nothing.
//! The library exists so that tests can drive the app without a window.

pub mod app;
pub mod arguments;
pub mod bars;
pub mod decimate;
pub mod derive;
pub mod keys;
pub mod load;
pub mod mapped;
pub mod opened;
pub mod panels;
pub mod problem;
pub mod quantity;
pub mod remarks;
pub mod screens;
pub mod screenshot;
pub mod series;
pub mod state;
pub mod tabs;
pub mod theme;
pub mod widgets;
