//! One transaction: the jobs of a group, in the order they were queued.

use qd_session::id::SessionId;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use crate::batch::{Alias, Delivery, Encoded, EncodedRecord, MetaChange};
use crate::fold::{Damage, DamagedRecord};
use crate::job::{Answer, Job, Kept, Written};
use crate::limits::{ALIASES_MAX, META_ROWS_MAX, SET_ASIDE_RECORDS_MAX};
use crate::memory::Memory;
use crate::tally::Row;
use crate::{Error, Result};

pub(crate) struct Group<'a> {
    transaction: Transaction<'a>,
    /// Ahead of the disk until the commit; whoever drops a group without one reads it again.
    memory: &'a mut Memory,
}

impl<'a> Group<'a> {
    pub fn begin(connection: &'a mut Connection, memory: &'a mut Memory) -> Result<Self> {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        Ok(Self { transaction, memory })
    }

    pub fn apply(&mut self, job: &Job) -> Result<Answer> {
        match job {
            Job::Write(batch, _) => self.write(batch),
            Job::Snapshot { session, upto, body, .. } => self.take_snapshot(session, *upto, body),
            Job::SetAside(records, _) => {
                self.set_aside(records)?;
                Ok(Answer::Done)
            }
            Job::Tidy(_) | Job::Check(_) => Ok(Answer::Done),
        }
    }

    pub fn commit(self) -> Result<()> {
        self.transaction
            .prepare_cached("UPDATE sequence SET last = ?1")?
            .execute(params![self.memory.last])?;
        Ok(self.transaction.commit()?)
    }

    fn write(&mut self, batch: &Encoded) -> Result<Answer> {
        if let Some(refusal) = self.refusal(batch)? {
            return Ok(Answer::Refused(refusal));
        }
        if self.is_known(&batch.deliveries)? {
            return Ok(Answer::Written(Written::Repeated));
        }
        for delivery in &batch.deliveries {
            self.keep_delivery(delivery)?;
        }
        let begin = self.memory.last + 1;
        for (session, body) in &batch.entries {
            let row = self.row(session)?;
            let seq = self.memory.last + 1;
            self.transaction
                .prepare_cached("INSERT INTO entry (seq, session, body) VALUES (?1, ?2, ?3)")?
                .execute(params![seq, row, body])?;
            self.memory.last = seq;
            self.memory.tallies.appended(row, 1, seq);
        }
        self.write_records(&batch.records)?;
        for alias in &batch.aliases {
            self.write_alias(alias)?;
        }
        for change in &batch.meta {
            self.write_meta(change)?;
        }
        Ok(Answer::Written(Written::Fresh(begin..self.memory.last + 1)))
    }

    /// Why the whole batch cannot be taken. Counted exactly only when it is close.
    fn refusal(&self, batch: &Encoded) -> Result<Option<Error>> {
        if self.memory.aliases + batch.aliases.len() as u64 > ALIASES_MAX {
            let mut known = self.transaction.prepare_cached(
                "SELECT count(*) FROM alias WHERE harness = ?1 AND vendor_id = ?2",
            )?;
            let mut count = self.memory.aliases;
            for Alias { harness, vendor_id, .. } in &batch.aliases {
                count +=
                    1 - known.query_row(params![harness, vendor_id], |row| row.get::<_, u64>(0))?;
            }
            if count > ALIASES_MAX {
                return Ok(Some(Error::TooMany { what: "vendor ids", max: ALIASES_MAX }));
            }
        }
        if self.memory.meta_rows + batch.meta.len() as u64 > META_ROWS_MAX {
            let mut known =
                self.transaction.prepare_cached("SELECT count(*) FROM meta WHERE key = ?1")?;
            let mut count = self.memory.meta_rows;
            for change in &batch.meta {
                let MetaChange::Set { key, .. } = change else { continue };
                count += 1 - known.query_row(params![key], |row| row.get::<_, u64>(0))?;
            }
            if count > META_ROWS_MAX {
                return Ok(Some(Error::TooMany { what: "meta rows", max: META_ROWS_MAX }));
            }
        }
        let mut last = self.memory.ends.last;
        for EncodedRecord { after, link, .. } in &batch.records {
            if *after != last {
                return Ok(Some(Error::RecordApart { seq: link.seq, last: last.seq }));
            }
            last = *link;
        }
        Ok(None)
    }

    fn write_records(&mut self, records: &[EncodedRecord]) -> Result<()> {
        let Some(newest) = records.last() else { return Ok(()) };
        let sql = "INSERT INTO decisions (seq, hash, line) VALUES (?1, ?2, ?3)";
        let mut insert = self.transaction.prepare_cached(sql)?;
        for EncodedRecord { link, line, .. } in records {
            insert.execute(params![link.seq, link.hash.to_string(), line])?;
            self.memory.ends.bytes += line.len() as u64;
        }
        self.memory.records += records.len() as u64;
        self.memory.ends.last = newest.link;
        self.memory.ends.keep(&self.transaction)
    }

    fn is_known(&self, deliveries: &[Delivery]) -> Result<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM delivered WHERE id = ?1)";
        let mut known = self.transaction.prepare_cached(sql)?;
        for delivery in deliveries {
            if known.query_row(params![delivery.id], |row| row.get(0))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn keep_delivery(&mut self, Delivery { id, body }: &Delivery) -> Result<()> {
        // Twice in one batch is once.
        let sql = "INSERT INTO delivered (id, body) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        let added = self.transaction.prepare_cached(sql)?.execute(params![id, body])? as u64;
        self.memory.deliveries += added;
        self.memory.delivery_bodies += added;
        self.memory.delivery_bytes += added * body.len() as u64;
        Ok(())
    }

    fn write_alias(&mut self, alias: &Alias) -> Result<()> {
        let row = self.row(&alias.session)?;
        let Alias { harness, vendor_id, .. } = alias;
        let changed = self
            .transaction
            .prepare_cached("UPDATE alias SET session = ?3 WHERE harness = ?1 AND vendor_id = ?2")?
            .execute(params![harness, vendor_id, row])?;
        if changed == 0 {
            self.transaction
                .prepare_cached(
                    "INSERT INTO alias (harness, vendor_id, session) VALUES (?1, ?2, ?3)",
                )?
                .execute(params![harness, vendor_id, row])?;
            self.memory.aliases += 1;
        }
        Ok(())
    }

    fn write_meta(&mut self, change: &MetaChange) -> Result<()> {
        match change {
            MetaChange::Set { key, value } => {
                let changed = self
                    .transaction
                    .prepare_cached("UPDATE meta SET value = ?2 WHERE key = ?1")?
                    .execute(params![key, value])?;
                if changed == 0 {
                    self.transaction
                        .prepare_cached("INSERT INTO meta (key, value) VALUES (?1, ?2)")?
                        .execute(params![key, value])?;
                    self.memory.meta_rows += 1;
                }
            }
            MetaChange::Removed { key } => {
                let removed = self
                    .transaction
                    .prepare_cached("DELETE FROM meta WHERE key = ?1")?
                    .execute(params![key])?;
                self.memory.meta_rows -= removed as u64;
            }
        }
        Ok(())
    }

    fn take_snapshot(&mut self, session: &SessionId, upto: u64, body: &str) -> Result<Answer> {
        let last = self.memory.last;
        if upto > last {
            // It would hide the entries that get these numbers later.
            return Ok(Answer::Refused(Error::SnapshotAhead { upto, last }));
        }
        let row = self.row(session)?;
        let known = self.memory.tallies.of(row).map_or(0, |tally| tally.upto);
        if upto < known {
            // What lies between may be pruned already: going back would lose it.
            return Ok(Answer::Kept(Kept::Superseded { upto: known }));
        }
        self.put_snapshot(row, upto, body)?;
        Ok(Answer::Kept(Kept::Taken))
    }

    pub fn put_snapshot(&mut self, row: Row, upto: u64, body: &str) -> Result<()> {
        self.transaction
            .prepare_cached("REPLACE INTO snapshot (session, upto, body) VALUES (?1, ?2, ?3)")?
            .execute(params![row, upto, body])?;
        self.memory.tallies.snapshot_taken(row, upto);
        Ok(())
    }

    /// Moves damaged records out of the way. One that is gone already is not an error.
    pub fn set_aside(&mut self, records: &[DamagedRecord]) -> Result<()> {
        for DamagedRecord { session, seq, damage, reason } in records {
            let Some(row) = self.memory.tallies.row(session) else { continue };
            let (copy, delete) = match damage {
                Damage::Entry => (
                    "INSERT INTO set_aside (seq, session, kind, body, reason)
                     SELECT seq, ?3, ?4, body, ?5 FROM entry WHERE session = ?1 AND seq = ?2",
                    "DELETE FROM entry WHERE session = ?1 AND seq = ?2",
                ),
                Damage::Snapshot => (
                    "INSERT INTO set_aside (seq, session, kind, body, reason)
                     SELECT upto, ?3, ?4, body, ?5 FROM snapshot WHERE session = ?1 AND upto = ?2",
                    "DELETE FROM snapshot WHERE session = ?1 AND upto = ?2",
                ),
            };
            let moved = self.transaction.prepare_cached(copy)?.execute(params![
                row,
                seq,
                session.as_str(),
                damage.to_string(),
                reason
            ])?;
            self.transaction.prepare_cached(delete)?.execute(params![row, seq])?;
            self.memory.set_aside += moved as u64;
            match damage {
                Damage::Entry => self.memory.tallies.removed(row, moved),
                Damage::Snapshot if moved > 0 => self.memory.tallies.snapshot_lost(row),
                Damage::Snapshot => {}
            }
        }
        self.trim_set_aside()
    }

    fn trim_set_aside(&mut self) -> Result<()> {
        let excess = self.memory.set_aside.saturating_sub(SET_ASIDE_RECORDS_MAX);
        if excess > 0 {
            let removed = self
                .transaction
                .prepare_cached(
                    "DELETE FROM set_aside WHERE id IN
                     (SELECT id FROM set_aside ORDER BY id LIMIT ?1)",
                )?
                .execute(params![excess])?;
            self.memory.set_aside -= removed as u64;
        }
        Ok(())
    }

    /// The session's row, made if it is new.
    fn row(&mut self, session: &SessionId) -> Result<Row> {
        if let Some(row) = self.memory.tallies.row(session) {
            return Ok(row);
        }
        let row = self.memory.tallies.next_row();
        self.transaction
            .prepare_cached("INSERT INTO session (id, name) VALUES (?1, ?2)")?
            .execute(params![row, session.as_str()])?;
        self.memory.tallies.add(row, session.clone());
        Ok(row)
    }

    pub fn parts(&mut self) -> (&Connection, &mut Memory) {
        (&self.transaction, self.memory)
    }
}
