//! What can go wrong with processes.

use std::io;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("more than {} processes are observed", crate::processes::PROCESSES_MAX)]
    ProcessesTooMany,
    #[error("cannot start to observe processes")]
    Processes { source: io::Error },
}
