//! What is written together, and how it is spelled.

use qd_session::decision::{Link, Record};
use qd_session::event::{Entry, VERSION};
use qd_session::id::SessionId;
use qd_session::limits::RECORD_BYTES_MAX;
use qd_session::snapshot::Snapshot;
use serde::Serialize;

use crate::limits::{
    BATCH_BYTES_MAX, BATCH_ITEMS_MAX, DELIVERY_BYTES_MAX, ENTRY_BYTES_MAX, ENTRY_DEPTH_MAX,
    KEY_BYTES_MAX, META_VALUE_BYTES_MAX, SNAPSHOT_BYTES_MAX, SNAPSHOT_DEPTH_MAX,
};
use crate::{Error, Result};

/// One transaction's worth: written whole or not at all. So a transcript's offset can go with the
/// entries that were read up to it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Batch {
    pub entries: Vec<Entry>,
    /// Records of decisions, which follow the last one written; else the batch is refused.
    pub records: Vec<Record>,
    pub aliases: Vec<Alias>,
    pub meta: Vec<MetaChange>,
    /// What the entries were made of. If one of these was delivered before, nothing of the batch
    /// is written again.
    pub deliveries: Vec<Delivery>,
}

/// What a sender that may deliver twice delivered. The id is remembered for long; the body, which
/// nobody here looks into, for as long as a restart may need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    pub id: String,
    pub body: Vec<u8>,
}

/// A vendor's id that finds one of our sessions. The last one written wins.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Alias {
    pub harness: String,
    pub vendor_id: String,
    pub session: SessionId,
}

/// A small fact of the program's own, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetaChange {
    Set { key: String, value: String },
    Removed { key: String },
}

impl From<Vec<Entry>> for Batch {
    fn from(entries: Vec<Entry>) -> Self {
        Self { entries, ..Self::default() }
    }
}

impl Batch {
    /// Takes out the entries that can never be written, and says whose they are. They are ours, so
    /// it is a fault of ours that there are any; it must not cost the others theirs.
    pub fn sift(&mut self) -> Vec<SessionId> {
        let mut lost = Vec::new();
        self.entries.retain(|entry| {
            let is_kept = spelled_entry(entry).is_ok();
            if !is_kept {
                lost.push(entry.session.clone());
            }
            is_kept
        });
        lost
    }
}

/// A batch ready for the database. Spelling it is the caller's work, so the writer only writes.
#[derive(Debug)]
pub(crate) struct Encoded {
    pub entries: Vec<(SessionId, String)>,
    pub records: Vec<EncodedRecord>,
    pub aliases: Vec<Alias>,
    pub meta: Vec<MetaChange>,
    pub deliveries: Vec<Delivery>,
    pub bytes: usize,
}

#[derive(Debug)]
pub(crate) struct EncodedRecord {
    /// The one it follows.
    pub after: Link,
    pub link: Link,
    pub line: String,
}

impl Encoded {
    pub fn of(batch: &Batch) -> Result<Self> {
        within("a batch's entries", batch.entries.len(), BATCH_ITEMS_MAX)?;
        within("a batch's records", batch.records.len(), BATCH_ITEMS_MAX)?;
        within("a batch's aliases", batch.aliases.len(), BATCH_ITEMS_MAX)?;
        within("a batch's meta changes", batch.meta.len(), BATCH_ITEMS_MAX)?;
        within("a batch's deliveries", batch.deliveries.len(), BATCH_ITEMS_MAX)?;
        let mut bytes = checked_keys(batch)?;
        let mut entries = Vec::with_capacity(batch.entries.len());
        for entry in &batch.entries {
            let body = spelled_entry(entry)?;
            bytes += body.len();
            within("a batch", bytes, BATCH_BYTES_MAX)?;
            entries.push((entry.session.clone(), body));
        }
        let mut records = Vec::with_capacity(batch.records.len());
        for record in &batch.records {
            let line = record.line();
            bytes += within("a record", line.len(), RECORD_BYTES_MAX)?;
            within("a batch", bytes, BATCH_BYTES_MAX)?;
            let after = Link { seq: record.seq.saturating_sub(1), hash: record.prev };
            records.push(EncodedRecord { after, link: record.link(), line });
        }
        Ok(Self {
            entries,
            records,
            aliases: batch.aliases.clone(),
            meta: batch.meta.clone(),
            deliveries: batch.deliveries.clone(),
            bytes,
        })
    }
}

fn spelled_entry(entry: &Entry) -> Result<String> {
    within("a session's id", entry.session.as_str().len(), KEY_BYTES_MAX)?;
    if !(1..=VERSION).contains(&entry.version) {
        return Err(Error::UnknownVersion(entry.version));
    }
    spelled("an entry", entry, ENTRY_BYTES_MAX, ENTRY_DEPTH_MAX)
}

pub(crate) fn spelled_snapshot(snapshot: &Snapshot) -> Result<String> {
    within("a session's id", snapshot.session.id().as_str().len(), KEY_BYTES_MAX)?;
    spelled("a snapshot", snapshot, SNAPSHOT_BYTES_MAX, SNAPSHOT_DEPTH_MAX)
}

/// The length of everything but the entries, each part within its limit.
fn checked_keys(batch: &Batch) -> Result<usize> {
    let mut bytes = 0;
    for Delivery { id, body } in &batch.deliveries {
        bytes += within("a delivery's id", id.len(), KEY_BYTES_MAX)?;
        bytes += within("a delivery", body.len(), DELIVERY_BYTES_MAX)?;
    }
    for Alias { harness, vendor_id, session } in &batch.aliases {
        bytes += within("a harness's name", harness.len(), KEY_BYTES_MAX)?;
        bytes += within("a vendor's id", vendor_id.len(), KEY_BYTES_MAX)?;
        bytes += within("a session's id", session.as_str().len(), KEY_BYTES_MAX)?;
    }
    for change in &batch.meta {
        match change {
            MetaChange::Set { key, value } => {
                bytes += within("a meta key", key.len(), KEY_BYTES_MAX)?;
                bytes += within("a meta value", value.len(), META_VALUE_BYTES_MAX)?;
            }
            MetaChange::Removed { key } => {
                bytes += within("a meta key", key.len(), KEY_BYTES_MAX)?;
            }
        }
    }
    within("a batch", bytes, BATCH_BYTES_MAX)
}

fn within(what: &'static str, len: usize, max: usize) -> Result<usize> {
    if len > max { Err(Error::TooLong { what, len, max }) } else { Ok(len) }
}

fn spelled(
    what: &'static str,
    record: &impl Serialize,
    bytes_max: usize,
    depth_max: usize,
) -> Result<String> {
    let body = serde_json::to_string(record)
        .map_err(|error| Error::NotJson { what, reason: error.to_string() })?;
    within(what, body.len(), bytes_max)?;
    let depth = depth(&body);
    if depth > depth_max {
        return Err(Error::TooDeep { what, depth, max: depth_max });
    }
    Ok(body)
}

/// How deep the text nests. Brackets inside strings do not count.
fn depth(json: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => skip_string(&mut bytes),
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

fn skip_string(bytes: &mut std::str::Bytes<'_>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::depth;

    #[test]
    fn depth_counts_brackets_outside_strings() {
        assert_eq!(depth("1"), 0);
        assert_eq!(depth(r#"{"a":[{}],"b":1}"#), 3);
        assert_eq!(depth(r#"{"a":"[[[\"[[\\"}"#), 1);
    }
}
