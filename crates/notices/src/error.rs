//! What can go wrong with the files of notices.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {doing} {}", path.display())]
    Notices { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("the key in {} is none of ours: remove it, and devices subscribe again", path.display())]
    PushKey { path: PathBuf },
}
