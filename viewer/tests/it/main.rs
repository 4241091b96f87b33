//! The app without a window: opened, clicked, dragged and read through its accessibility tree, and
//! its panels compared with kept pictures.
//!
//! One binary, because linking the renderer is what takes time. Runs come from the sample generator
//! of `onbeat_shared`. Nothing needs a display or a GPU: pictures are drawn by a software Vulkan,
//! and the real binary opens its window in an X server without a screen; where these are missing,
//! the tests say so and pass.

mod growing;
mod open;
mod panels;
mod pictures;
mod plots;
mod screenshots;
mod shell;
mod stage;
#[cfg(target_os = "linux")]
mod window;
mod xy_plots;
