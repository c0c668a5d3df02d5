//! This machine, as every room that acts may need it: files that anybody may have made, read within
//! bounds; processes, found and followed; the operator's own settings; the time.

pub mod bounded_file;
mod error;
pub mod layers_file;
pub mod links;
pub mod policy_file;
pub mod private_places;
pub mod process_table;
pub mod processes;
pub mod supervised;

use std::time::{SystemTime, UNIX_EPOCH};

use qd_session::moment::Timestamp;

pub use error::Error;

/// The time of day.
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
