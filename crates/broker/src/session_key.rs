//! A session as its client names it.

use std::sync::Arc;

use qd_harness::Harness;

/// A client's session.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionKey {
    pub harness: Harness,
    /// As its client names it.
    pub session: Arc<str>,
}
