//! Waiting on a core until an instant.
