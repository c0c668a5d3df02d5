//! Retention, in small steps between the groups.
//!
//! An entry goes when a snapshot covers it and it is beyond what is kept. Where no snapshot covers
//! the oldest, one is folded first. Nothing here is waited for, so nothing here is synced: the
//! next group's sync takes it along, and a crash only means doing it again.

use std::collections::BTreeSet;

use qd_session::snapshot::Snapshot;
use rusqlite::{Connection, params};

use crate::batch::spelled_snapshot;
use crate::decision_log::link;
use crate::fold::Folded;
use crate::group::Group;
use crate::limits::{
    DELIVERIES_MAX, DELIVERY_BODIES_BYTES_MAX, DELIVERY_BODIES_MAX, FORGET_STEP, SLACK_DIVISOR,
    UPKEEP_STEP,
};
use crate::memory::Memory;
use crate::tally::Row;
use crate::{Error, Result, Settings};

#[derive(Debug, Default)]
pub(crate) struct Upkeep {
    /// Between "too many" and "few enough again".
    shrinking: bool,
    forgetting: bool,
    dropping: bool,
    /// Sessions whose snapshot would be too long: their entries stay, until the next start.
    unfoldable: BTreeSet<Row>,
    /// Entries up to here are all of such sessions.
    passed_over: u64,
}

/// The next thing to do, the most local first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chore {
    /// This session has more entries than are kept of one.
    ThinOut(Row),
    /// There are more entries than are kept in all.
    DropOldest,
    ForgetSessions,
    ForgetDeliveries,
    ForgetBodies,
    DropRecords,
}

impl Upkeep {
    pub fn next(&mut self, memory: &Memory, settings: &Settings) -> Option<Chore> {
        let entries = memory.tallies.entries();
        let above = |count, limit| count > Settings::with_slack(limit);
        self.shrinking = above(entries, settings.entries_max)
            || self.shrinking && entries > settings.entries_max;
        let sessions = memory.tallies.sessions().len();
        self.forgetting = above(sessions, settings.sessions_max)
            || self.forgetting && sessions > settings.sessions_max;
        if let Some(row) = memory.tallies.crowded().find(|row| !self.unfoldable.contains(row)) {
            return Some(Chore::ThinOut(row));
        }
        if self.shrinking && self.passed_over < memory.last {
            return Some(Chore::DropOldest);
        }
        if self.forgetting {
            return Some(Chore::ForgetSessions);
        }
        let deliveries_max = DELIVERIES_MAX + UPKEEP_STEP as u64;
        if memory.deliveries > deliveries_max {
            return Some(Chore::ForgetDeliveries);
        }
        let bodies_max = DELIVERY_BODIES_MAX + UPKEEP_STEP as u64;
        let bytes_max = DELIVERY_BODIES_BYTES_MAX;
        let bytes_max = bytes_max + bytes_max / SLACK_DIVISOR as u64;
        if memory.delivery_bodies > bodies_max || memory.delivery_bytes > bytes_max {
            return Some(Chore::ForgetBodies);
        }
        let bytes_max = settings.records_bytes_max;
        self.dropping = above(memory.records as usize, settings.records_max)
            || memory.ends.bytes > bytes_max + bytes_max / SLACK_DIVISOR as u64
            || self.dropping && is_over(memory, settings);
        self.dropping.then_some(Chore::DropRecords)
    }

    /// One small transaction.
    pub fn run(
        &mut self,
        chore: Chore,
        connection: &mut Connection,
        memory: &mut Memory,
        settings: &Settings,
    ) -> Result<()> {
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        let outcome = self.step(chore, connection, memory, settings);
        connection.pragma_update(None, "synchronous", "FULL")?;
        outcome
    }

    fn step(
        &mut self,
        chore: Chore,
        connection: &mut Connection,
        memory: &mut Memory,
        settings: &Settings,
    ) -> Result<()> {
        let mut group = Group::begin(connection, memory)?;
        match chore {
            Chore::ThinOut(row) => self.thin_out(&mut group, row, settings)?,
            Chore::DropOldest => self.drop_oldest(&mut group, settings)?,
            Chore::ForgetSessions => forget_sessions(&mut group, settings)?,
            Chore::ForgetDeliveries => forget_deliveries(&mut group)?,
            Chore::ForgetBodies => forget_bodies(&mut group)?,
            Chore::DropRecords => drop_records(&mut group, settings)?,
        }
        group.commit()
    }

    fn thin_out(&mut self, group: &mut Group<'_>, row: Row, settings: &Settings) -> Result<()> {
        let (connection, memory) = group.parts();
        let Some(tally) = memory.tallies.of(row) else { return Ok(()) };
        let excess = tally.entries.saturating_sub(settings.entries_per_session_max);
        let removed = connection
            .prepare_cached(
                "DELETE FROM entry WHERE seq IN (SELECT seq FROM entry
                 WHERE session = ?1 AND seq <= ?2 ORDER BY seq LIMIT ?3)",
            )?
            .execute(params![row, tally.upto, excess.min(UPKEEP_STEP)])?;
        memory.tallies.removed(row, removed);
        if removed == 0 { self.fold_forward(group, row) } else { Ok(()) }
    }

    fn drop_oldest(&mut self, group: &mut Group<'_>, settings: &Settings) -> Result<()> {
        let (connection, memory) = group.parts();
        let excess = memory.tallies.entries().saturating_sub(settings.entries_max);
        let oldest: Vec<(u64, Row)> = connection
            .prepare_cached("SELECT seq, session FROM entry WHERE seq > ?1 ORDER BY seq LIMIT ?2")?
            .query_map(params![self.passed_over, excess.min(UPKEEP_STEP)], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?
            .collect::<rusqlite::Result<_>>()?;
        let mut delete = connection.prepare_cached("DELETE FROM entry WHERE seq = ?1")?;
        let mut uncovered = None;
        let mut removed_any = false;
        for &(seq, row) in &oldest {
            match memory.tallies.of(row) {
                Some(tally) if seq <= tally.upto => {
                    delete.execute(params![seq])?;
                    memory.tallies.removed(row, 1);
                    removed_any = true;
                }
                Some(_) if !self.unfoldable.contains(&row) => {
                    uncovered = uncovered.or(Some(row));
                }
                // No snapshot can be taken, or (which only damage can do) there is no session.
                Some(_) | None => {}
            }
        }
        drop(delete);
        match uncovered {
            Some(row) => self.fold_forward(group, row),
            None if removed_any => Ok(()),
            None => {
                self.passed_over = oldest.last().map_or(memory.last, |(seq, _)| *seq);
                Ok(())
            }
        }
    }

    /// Moves the session's snapshot on by one step.
    fn fold_forward(&mut self, group: &mut Group<'_>, row: Row) -> Result<()> {
        let (connection, memory) = group.parts();
        let Some(name) = memory.tallies.of(row).map(|tally| tally.name.clone()) else {
            return Ok(());
        };
        let before = memory.tallies.of(row).map_or(0, |tally| tally.upto);
        let mut folded = Folded::begin(connection, row, &name)?;
        folded.take_tail(connection, row, UPKEEP_STEP)?;
        group.set_aside(&folded.damaged)?;
        if folded.upto <= before && folded.damaged.is_empty() {
            // Nothing to fold although something was counted: never try for ever.
            self.unfoldable.insert(row);
            return Ok(());
        }
        match spelled_snapshot(&Snapshot::of(&folded.session)) {
            Ok(body) => group.put_snapshot(row, folded.upto, &body),
            Err(Error::TooLong { .. } | Error::TooDeep { .. }) => {
                self.unfoldable.insert(row);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

/// Those that nothing was written to for longest, each whole: half a tail would fold to a lie.
fn forget_sessions(group: &mut Group<'_>, settings: &Settings) -> Result<()> {
    let (connection, memory) = group.parts();
    let excess = memory.tallies.sessions().len().saturating_sub(settings.sessions_max);
    let mut oldest: Vec<(u64, Row)> =
        memory.tallies.sessions().map(|(row, tally)| (tally.last, row)).collect();
    oldest.sort_unstable();
    let mut removed = 0;
    for (_, row) in oldest.into_iter().take(excess.min(FORGET_STEP)) {
        removed += connection
            .prepare_cached("DELETE FROM entry WHERE session = ?1")?
            .execute(params![row])?;
        connection
            .prepare_cached("DELETE FROM snapshot WHERE session = ?1")?
            .execute(params![row])?;
        let aliases = connection
            .prepare_cached("DELETE FROM alias WHERE session = ?1")?
            .execute(params![row])?;
        memory.aliases -= aliases as u64;
        connection.prepare_cached("DELETE FROM session WHERE id = ?1")?.execute(params![row])?;
        memory.tallies.forget(row);
        if removed >= UPKEEP_STEP {
            break;
        }
    }
    Ok(())
}

fn forget_deliveries(group: &mut Group<'_>) -> Result<()> {
    let (connection, memory) = group.parts();
    let excess = memory.deliveries.saturating_sub(DELIVERIES_MAX).min(UPKEEP_STEP as u64);
    let removed = connection
        .prepare_cached(
            "DELETE FROM delivered WHERE n IN (SELECT n FROM delivered ORDER BY n LIMIT ?1)",
        )?
        .execute(params![excess])?;
    memory.deliveries -= removed as u64;
    Ok(())
}

/// The bodies kept are the newest, without gaps: as many, and as many bytes, as are kept.
fn forget_bodies(group: &mut Group<'_>) -> Result<()> {
    let (connection, memory) = group.parts();
    let sql = "SELECT n, octet_length(body) FROM delivered WHERE body IS NOT NULL ORDER BY n";
    let mut bodies = connection.prepare_cached(sql)?;
    let mut rows = bodies.query([])?;
    let mut last = None;
    while memory.delivery_bodies > DELIVERY_BODIES_MAX
        || memory.delivery_bytes > DELIVERY_BODIES_BYTES_MAX
    {
        let Some(row) = rows.next()? else {
            // Fewer than were counted, which only damage can do.
            (memory.delivery_bodies, memory.delivery_bytes) = (0, 0);
            break;
        };
        last = Some(row.get::<_, i64>(0)?);
        memory.delivery_bodies -= 1;
        memory.delivery_bytes = memory.delivery_bytes.saturating_sub(row.get(1)?);
    }
    drop(rows);
    let forget = "UPDATE delivered SET body = NULL WHERE body IS NOT NULL AND n <= ?1";
    connection.prepare_cached(forget)?.execute(params![last])?;
    Ok(())
}

/// The oldest records go; the hash of the last one that went stays, so that the chain can still be
/// followed from there.
fn drop_records(group: &mut Group<'_>, settings: &Settings) -> Result<()> {
    let (connection, memory) = group.parts();
    let sql = "SELECT seq, hash, octet_length(line) FROM decisions ORDER BY seq LIMIT ?1";
    let mut oldest = connection.prepare_cached(sql)?;
    let mut rows = oldest.query(params![UPKEEP_STEP])?;
    while is_over(memory, settings) {
        let Some(row) = rows.next()? else {
            // Fewer than were counted, which only damage can do, or as many as one step takes.
            break;
        };
        memory.ends.dropped = link(row.get(0)?, &row.get::<_, String>(1)?);
        memory.ends.bytes = memory.ends.bytes.saturating_sub(row.get(2)?);
        memory.records -= 1;
    }
    drop(rows);
    let dropped = memory.ends.dropped.seq;
    let delete = "DELETE FROM decisions WHERE seq <= ?1";
    connection.prepare_cached(delete)?.execute(params![dropped])?;
    let left = "SELECT EXISTS (SELECT 1 FROM decisions)";
    if !connection.prepare_cached(left)?.query_row([], |row| row.get(0))? {
        (memory.records, memory.ends.bytes) = (0, 0);
    }
    memory.ends.keep(connection)
}

fn is_over(memory: &Memory, settings: &Settings) -> bool {
    memory.records > settings.records_max as u64 || memory.ends.bytes > settings.records_bytes_max
}
