//! The app without a window: opened, clicked, dragged and read through its accessibility tree, and
//! its panels compared with kept pictures.
//!
//! One binary, because linking the renderer is what takes time. Runs come from the sample generator
//! of `onbeat_shared`; nothing here needs a display, a GPU, or (but for the pictures) Vulkan.

mod open;
mod panels;
mod pictures;
mod plots;
mod stage;
