//! What is wrong with the daemon itself, now: for the doctor, `qd status` and the board.
//!
//! Each trouble is computed when somebody asks, and is gone when what it tells of is.

use std::path::Path;

use qd_sources::hook_intake::Losses;
use qd_store::Gap;
use rustix::process::{Resource, getrlimit};
use serde::{Deserialize, Serialize};
use tracing::warn;

use super::Runtime;

/// Something that keeps the board from being true or the journal from being whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Trouble {
    pub kind: TroubleKind,
    /// What happened, in a sentence.
    pub what: String,
    /// What to do about it.
    pub advice: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum TroubleKind {
    /// Nothing can be written.
    JournalUnwritable,
    /// The journal is not all that was written.
    JournalGap,
    /// It was taken away while the daemon ran, and written anew.
    JournalWrittenAnew,
    HooksDropped,
    WatchesExhausted,
    FewOpenFiles,
}

impl Runtime {
    pub(super) fn troubles(&self) -> Vec<Trouble> {
        let mut troubles = Vec::new();
        troubles.extend(self.health.journal_error.as_deref().map(unwritable));
        troubles.extend(gaps(&self.journal_path));
        let written_anew = self.journal.health().written_anew;
        troubles.extend((written_anew > 0).then(|| anew(written_anew)));
        troubles.extend(dropped(self.losses.1.since(self.losses.0)));
        troubles.extend(self.is_short_of_watches.then(short_of_watches));
        troubles.extend(open_files());
        troubles
    }

    /// Reads what forwarders could not keep. It is told while this daemon runs, and remembered as
    /// told for the next one.
    pub(super) fn count_losses(&mut self) {
        let losses = match self.spool.losses() {
            Ok(losses) => losses,
            Err(error) => return warn!(%error, "what forwarders lost cannot be read"),
        };
        if losses == self.losses.1 {
            return;
        }
        let Losses { superseded, full, unwritable } = losses.since(self.losses.1);
        warn!(superseded, full, unwritable, "hooks were dropped that forwarders could not keep");
        self.losses.1 = losses;
        let Losses { superseded, full, unwritable } = losses;
        let value = format!("{superseded} {full} {unwritable}");
        self.next.batch.meta.push(qd_store::MetaChange::Set { key: LOSSES_TOLD.into(), value });
    }
}

/// What the last daemon has told of.
pub(super) fn losses_told(journal: &qd_store::Journal) -> Losses {
    let told = journal.meta(LOSSES_TOLD).ok().flatten().unwrap_or_default();
    let mut numbers = told.split(' ').map(|number| number.parse().unwrap_or(0));
    let mut next = || numbers.next().unwrap_or(0);
    Losses { superseded: next(), full: next(), unwritable: next() }
}

fn unwritable(why: &str) -> Trouble {
    trouble(
        TroubleKind::JournalUnwritable,
        format!("The journal can't be written: {why}"),
        "Make room on the disk, or close the program that has the journal open. Hooks wait in the \
         spool meanwhile.",
    )
}

/// What the journal lacks. Also for those who look without a daemon.
pub fn gaps(journal: &Path) -> Vec<Trouble> {
    let list = Gap::list(journal);
    let gaps = match Gap::all(journal) {
        Ok(gaps) => gaps,
        Err(error) => {
            let what = format!("Whether the journal is whole can't be told: {error}");
            return vec![trouble(TroubleKind::JournalGap, what, "See the daemon's log.")];
        }
    };
    let told = gaps.into_iter().map(|gap| {
        let advice = format!("Once you know why: rm {}", list.display());
        trouble(TroubleKind::JournalGap, missing(&gap), advice)
    });
    told.collect()
}

/// In a sentence, with the place where the rest lies.
fn missing(gap: &Gap) -> String {
    let Gap { entries, records, set_aside, .. } = gap;
    let what = match (entries, records) {
        (0, 0) => "nobody knows how much".to_owned(),
        (entries, records) => format!("{entries} entries and {records} decisions"),
    };
    match set_aside.as_str() {
        "" => format!("The journal was taken away or replaced; missing: {what}"),
        place => format!("The journal was damaged and set aside as {place}; missing: {what}"),
    }
}

fn anew(count: u64) -> Trouble {
    let what = format!(
        "The journal was deleted or replaced while the daemon ran ({count}×). It was written anew \
         and nothing is lost"
    );
    let advice = "Find out which program did that: the journal belongs to Quarterdeck alone.";
    trouble(TroubleKind::JournalWrittenAnew, what, advice)
}

fn dropped(lost: Losses) -> Option<Trouble> {
    let Losses { superseded, full, unwritable } = lost;
    let what = format!(
        "While no daemon ran, {} hooks were dropped: {superseded} that newer ones of their session \
         superseded, {full} for want of space in the spool, {unwritable} that could not be written",
        lost.count()
    );
    let advice = "Run the daemon always: qd service install";
    (lost.count() > 0).then(|| trouble(TroubleKind::HooksDropped, what, advice))
}

fn short_of_watches() -> Trouble {
    trouble(
        TroubleKind::WatchesExhausted,
        "The kernel grants no more file watches: changes of session files are seen seconds later"
            .to_owned(),
        "sudo sysctl fs.inotify.max_user_watches=524288 fs.inotify.max_user_instances=1024",
    )
}

/// How many files may be open, where that is or soon will be too few.
fn open_files() -> Option<Trouble> {
    let limit = getrlimit(Resource::Nofile).current?;
    let open = std::fs::read_dir("/proc/self/fd");
    let what = match open.map(Iterator::count) {
        // Who cannot even list them has none left.
        Err(_) if cfg!(target_os = "linux") => format!("All {limit} files that may be open are"),
        Ok(open) if limit < OPEN_FILES_FEW || open as u64 > limit / 8 * 7 => {
            format!("{open} files are open, and no more than {limit} may be")
        }
        Ok(_) | Err(_) => return None,
    };
    let advice = "Raise the limit where the daemon is started: ulimit -n 4096 (in a service: \
                  LimitNOFILE=4096)";
    Some(trouble(TroubleKind::FewOpenFiles, what, advice))
}

fn trouble(kind: TroubleKind, what: String, advice: impl Into<String>) -> Trouble {
    Trouble { kind, what, advice: advice.into() }
}

/// With fewer a few dozen agents bring the daemon to its limit.
const OPEN_FILES_FEW: u64 = 256;

const LOSSES_TOLD: &str = "spool.losses_told";
