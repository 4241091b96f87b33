//! Placeholder header, replaced by the real module.
