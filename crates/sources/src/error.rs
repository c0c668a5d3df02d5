//! What can go wrong with what agents leave and send, one variant for each thing that happened.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("a frame's header is longer than {} bytes", qd_hook_wire::HEADER_BYTES_MAX)]
    HeaderTooLong,
    #[error("a frame's header is not one of ours: {part}")]
    HeaderMalformed { part: &'static str },
    #[error("a frame announces {len} bytes; the longest has {}", qd_hook_wire::PAYLOAD_BYTES_MAX)]
    PayloadTooLong { len: u64 },
    #[error("a frame's payload does not match its checksum")]
    PayloadDamaged,
    #[error("a frame broke off after {bytes} bytes")]
    FrameHalf { bytes: usize },
    #[error("bytes follow the frame of a spool file")]
    FrameFollowed,
    #[error("the frame says another id than the name of its file")]
    FrameMisnamed,
    #[error("{} is no plain file", name)]
    NotAFile { name: String },
    #[error("cannot {doing} the spool at {}", path.display())]
    Spool { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("the spool at {} belongs to another user", path.display())]
    SpoolForeign { path: PathBuf },
    #[error("a daemon already listens at {}", path.display())]
    SocketTaken { path: PathBuf },
    #[error("cannot {doing} the socket {}", path.display())]
    Socket { doing: &'static str, path: PathBuf, source: io::Error },
    #[error("cannot {doing} the watch on session files")]
    Watch { doing: &'static str, source: io::Error },
    #[error("cannot start to look for the holders of sessions")]
    Holders { source: io::Error },
    #[error("{url} is no address of a server: http://[user:password@]host:port")]
    ServerUrl { url: String },
    #[error("cannot start to look for terminals")]
    Terminals { source: io::Error },
    #[error(transparent)]
    Host(#[from] qd_host::Error),
}
