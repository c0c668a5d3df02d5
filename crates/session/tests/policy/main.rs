//! Policy: what rules say to requests, and what no rule can do.

mod file;
mod properties;
mod table;
mod world;
