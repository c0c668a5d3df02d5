//! What a loop with a driven session tells others: its log, and spans to a real collector.

mod exporting;
mod log;
mod logging;
mod world;
