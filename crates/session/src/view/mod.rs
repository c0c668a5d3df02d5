//! Other shapes of the same truth.

pub mod manager;
pub mod monitor;
