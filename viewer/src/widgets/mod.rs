//! The pieces panels are made of: time plots, tables, headline cards, switches.
//!
//! Each draws plain values it is given and gives every part of itself an accessible name. None of
//! them knows a run, and none computes more than where its pixels go.

pub mod axis;
pub mod canvas;
pub mod card;
pub mod choice;
pub mod clip;
pub mod copy;
pub mod grid;
pub mod legend;
pub mod rule;
pub mod scroll_bar;
pub mod stale;
pub mod switch;
pub mod table;
pub mod time_plot;
pub mod time_scale;
pub mod xy_plot;
