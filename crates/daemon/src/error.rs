//! What keeps the daemon from starting, or from going on.

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the journal: {0}")]
    Journal(#[source] qd_store::Error),
    #[error("nobody reads session files any more")]
    SourceGone,
    #[error(transparent)]
    Source(#[from] qd_sources::Error),
    #[error(transparent)]
    Host(#[from] qd_host::Error),
}
