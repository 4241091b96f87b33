//! The app without a window: opened, clicked, dragged and read through its accessibility tree, and
//! its panels compared with kept pictures.
//!
//! One binary, because linking the renderer is what takes time. Runs come from the sample generator
//! of `onbeat_shared`. Nothing needs a display or a GPU: pictures are drawn by a software Vulkan, and
//! the real binary opens its window in an X server without a screen; without these the tests say so.

mod open;
mod panels;
mod pictures;
mod plots;
mod stage;
mod window;
