//! What is written together, and the one batch on its way.

use std::future::pending;
use std::io;
use std::time::Duration;

use qd_broker::desk::{Errand, Taken};
use qd_broker::driving::Job;
use qd_broker::news::BoardNews as News;
use qd_broker::survey::Survey;
use qd_broker::{NotFound, Output};
use qd_hook_wire::FrameId;
use qd_session::event::Entry;
use qd_session::id::{AgentId, ProcessKey, SessionId};
use qd_sources::hook_intake;
use qd_store::{Batch, Journal, Receipt, Written};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::handle::{self, ArchiveReply, Delivered, SpawnReply, Waited};

/// Entries, changes and waiting senders of one batch. Far more than come during one sync; beyond it the
/// disk is slow and the sources wait.
const PENDING_ITEMS_MAX: usize = 16_384;

/// Bytes of the hooks and entries in one batch: less than half of what the journal takes at once, so
/// that what one more input brings still fits.
const PENDING_BYTES_MAX: usize = 6 << 20;

/// Between two tries of a journal that cannot be written, as on a full disk.
const JOURNAL_RETRY_EVERY: Duration = Duration::from_secs(1);

/// A batch, and everything that has to wait until it is on disk.
#[derive(Debug, Default)]
pub struct Pending {
    pub batch: Batch,
    pub news: Vec<News>,
    pub acks: Vec<oneshot::Sender<Delivered>>,
    /// Forwarders that wait, with their frames.
    pub waits: Vec<(Box<hook_intake::Frame>, oneshot::Sender<Waited>)>,
    pub dismissals: Vec<oneshot::Sender<Result<(), NotFound>>>,
    /// Those who want to know which sessions were put into History, or back.
    pub archives: Vec<(Vec<SessionId>, ArchiveReply)>,
    /// Frames from the socket.
    pub frames: Vec<FrameId>,
    /// Frames from the spool.
    pub spooled: Option<hook_intake::Batch>,
    /// Processes whose terminal somebody should look up.
    pub locate: Vec<ProcessKey>,
    /// Folders whose repositories somebody should read.
    pub survey: Vec<Survey>,
    /// Agents of sessions whose server somebody should ask what they wait for.
    pub looks: Vec<(SessionId, AgentId)>,
    /// To be carried once their records are on disk.
    pub errands: Vec<Errand>,
    /// Forwarders that nobody needs any more.
    pub releases: Vec<FrameId>,
    /// For runners, once the entries that ordered them are on disk.
    pub jobs: Vec<Job>,
    /// Those who want to know their new session.
    pub spawns: Vec<(SessionId, SpawnReply)>,
    /// Decisions whose outcome is known.
    pub settled: Vec<Taken>,
    /// Of the hooks and entries in it.
    pub bytes: usize,
}

impl Pending {
    pub fn take(&mut self, output: Output) {
        match output {
            Output::Found { session, harness, vendor_id } => {
                self.batch.aliases.push(qd_store::Alias {
                    harness: harness.name().to_owned(),
                    vendor_id: vendor_id.to_string(),
                    session,
                });
            }
            Output::Append(entry) => {
                self.bytes += spelled_len(&entry);
                self.batch.entries.push(entry);
            }
            Output::Show(card) => self.news.push(News::Shown(card)),
            Output::Locate(process) => self.locate.push(process),
            Output::Survey(survey) => self.survey.push(survey),
            Output::LookInto { session, agent } => self.looks.push((session, agent)),
            Output::Record(record) => self.batch.records.push(*record),
            Output::Carry(errand) => self.errands.push(*errand),
            Output::Release(frame) => self.releases.push(frame),
            Output::Settled(taken) => self.settled.push(taken),
            Output::Run(job) => self.jobs.push(*job),
            Output::Changed(shown) => self.news.push(News::Changed(shown)),
            Output::Streamed(event) => self.news.push(News::Streamed(event)),
            Output::Remove(session) => self.news.push(News::Removed(session)),
        }
    }

    /// Whether more may be taken in.
    pub fn has_room(&self) -> bool {
        let items = self.batch.entries.len() + self.news.len() + self.acks.len() + self.waits.len();
        items < PENDING_ITEMS_MAX && self.bytes < PENDING_BYTES_MAX
    }

    pub fn has_spooled(&self) -> bool {
        self.spooled.is_some()
    }

    pub fn is_empty(&self) -> bool {
        self.batch_is_empty()
            && self.news.is_empty()
            && self.acks.is_empty()
            && self.waits.is_empty()
            && self.dismissals.is_empty()
            && self.archives.is_empty()
            && self.locate.is_empty()
            && self.survey.is_empty()
            && self.looks.is_empty()
            && self.errands.is_empty()
            && self.releases.is_empty()
            && self.settled.is_empty()
            && self.jobs.is_empty()
            && self.spawns.is_empty()
            && self.spooled.is_none()
    }

    pub fn batch_is_empty(&self) -> bool {
        let Batch { entries, records, aliases, meta, deliveries } = &self.batch;
        entries.is_empty()
            && records.is_empty()
            && aliases.is_empty()
            && meta.is_empty()
            && deliveries.is_empty()
    }

    pub fn entries(&self) -> usize {
        self.batch.entries.len()
    }
}

/// How long the journal will spell it.
fn spelled_len(entry: &Entry) -> usize {
    struct Length(usize);
    impl io::Write for Length {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut length = Length(0);
    // One that cannot be spelled is told by the journal.
    let _ = serde_json::to_writer(&mut length, entry);
    length.0
}

/// The batch on its way to the disk, or the one that waits to be tried again.
#[derive(Debug, Default)]
pub enum Writing {
    #[default]
    Idle,
    Sent {
        receipt: Receipt<Written>,
        pending: Box<Pending>,
    },
    Waiting {
        until: Instant,
        pending: Box<Pending>,
    },
}

#[derive(Debug)]
pub enum Outcome {
    Written(Box<Pending>),
    /// Not now, but perhaps later. Those who waited were told that it was not taken.
    Delayed(qd_store::Error),
    /// It is time to try again.
    Retry,
    /// It will never be written, whatever the disk does.
    Impossible(Box<Pending>, qd_store::Error),
    /// The journal can take nothing more at all.
    Broken(qd_store::Error),
}

/// The batch is at fault, not the journal.
fn is_of_its_own(error: &qd_store::Error) -> bool {
    use qd_store::Error;
    matches!(
        error,
        Error::TooLong { .. }
            | Error::TooDeep { .. }
            | Error::NotJson { .. }
            | Error::TooMany { .. }
            | Error::UnknownVersion(_)
    )
}

impl Writing {
    pub fn is_idle(&self) -> bool {
        matches!(self, Self::Idle)
    }

    pub fn begin(&mut self, journal: &Journal, pending: Pending) {
        self.send(journal, Box::new(pending));
    }

    /// Tries what waits again.
    pub fn again(&mut self, journal: &Journal) {
        if let Self::Waiting { pending, .. } = std::mem::take(self) {
            self.send(journal, pending);
        }
    }

    fn send(&mut self, journal: &Journal, pending: Box<Pending>) {
        *self = match journal.try_write(&pending.batch) {
            Some(receipt) => Self::Sent { receipt, pending },
            None => Self::Waiting { until: Instant::now() + JOURNAL_RETRY_EVERY, pending },
        };
    }

    /// What becomes of it; never, while there is nothing. May be dropped and asked again.
    pub async fn settled(&mut self) -> Outcome {
        match self {
            Self::Idle => pending().await,
            Self::Waiting { until, .. } => {
                tokio::time::sleep_until(*until).await;
                Outcome::Retry
            }
            Self::Sent { receipt, .. } => {
                let written = receipt.await;
                let Self::Sent { mut pending, .. } = std::mem::take(self) else {
                    unreachable!("it was just sent");
                };
                match written {
                    // Nobody but us writes deliveries, and we know which we have.
                    Ok(Written::Fresh(_) | Written::Repeated) => Outcome::Written(pending),
                    Err(error) if is_of_its_own(&error) => Outcome::Impossible(pending, error),
                    Err(error) if !error.is_temporary() => Outcome::Broken(error),
                    Err(error) => {
                        // A forwarder does not wait for a disk: its own copy goes to the spool.
                        for ack in pending.acks.drain(..) {
                            handle::answer(ack, Delivered::Refused);
                        }
                        for (_, wait) in pending.waits.drain(..) {
                            handle::answer(wait, Waited::Refused);
                        }
                        let until = Instant::now() + JOURNAL_RETRY_EVERY;
                        *self = Self::Waiting { until, pending };
                        Outcome::Delayed(error)
                    }
                }
            }
        }
    }
}
