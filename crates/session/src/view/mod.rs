//! Other shapes of the same truth.

pub mod monitor;
