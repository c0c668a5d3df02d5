//! What was said in a session that its client keeps in a database.

use std::io::ErrorKind;
use std::path::PathBuf;

use qd_harness::conversation::{Conversation, Entry};
use qd_harness::opencode::{PartSaid, conversation};
use qd_session::moment::Timestamp;
use qd_store::OpencodeDatabase;

use super::Unread;

/// Rows of a session in a client's database that are read for its transcript, the last. A turn
/// writes some ten.
const TRANSCRIPT_ROWS_MAX: usize = 5_000;

/// The last entries of a session, from the first of these databases that knows it.
pub fn entries(databases: &[PathBuf], session: &str) -> Result<Vec<Entry>, Unread> {
    let mut failed = None;
    for path in databases.iter().filter(|path| path.is_file()) {
        match read(path, session) {
            Ok(entries) if entries.is_empty() => {}
            Ok(entries) => return Ok(entries),
            Err(error) => failed = Some(error),
        }
    }
    match failed {
        Some(error) => Err(Unread::Unreadable(match error.is_temporary() {
            true => ErrorKind::WouldBlock,
            false => ErrorKind::InvalidData,
        })),
        None => Err(Unread::NoTranscript),
    }
}

fn read(path: &std::path::Path, session: &str) -> Result<Vec<Entry>, qd_store::Error> {
    let mut said = Conversation::default();
    OpencodeDatabase::open(path)?.parts_of(session, TRANSCRIPT_ROWS_MAX, |part| {
        let at = Timestamp(u64::try_from(part.created_ms).unwrap_or(0));
        let row = PartSaid { id: part.id, at, part: part.part, message: part.message };
        conversation(&row).into_iter().for_each(|entry| said.push(entry));
    })?;
    Ok(said.into_entries())
}
