//! A session as its client names it.

use std::sync::Arc;

use qd_harness::Harness;
use qd_session::fnv::{BASIS, fnv};
use qd_session::id::SessionId;

/// A client's session.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionKey {
    pub harness: Harness,
    /// As its client names it.
    pub session: Arc<str>,
}

/// Our id for a session that an agent named: the same whenever it is heard of again, also by a
/// daemon that lost its journal.
pub fn session_id(harness: Harness, vendor_id: &str) -> SessionId {
    let text = format!("{}/{vendor_id}", harness.id_seed());
    let bytes = text.as_bytes();
    let (high, low) = (fnv(BASIS, bytes), fnv(0x9ae1_6a3b_2f90_404f, bytes));
    SessionId::new(format!(
        "sess_{:08x}-{:04x}-8{:03x}-{:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        high & 0xfff,
        (low >> 48) & 0x3fff | 0x8000,
        low & 0xffff_ffff_ffff
    ))
}
