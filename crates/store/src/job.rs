//! What the writer is asked to do, and what it answers.

use std::ops::Range;

use qd_session::id::SessionId;

use crate::batch::Encoded;
use crate::fold::DamagedRecord;
use crate::receipt::Reply;
use crate::{Error, Result};

/// What became of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    /// Its entries have these numbers.
    Fresh(Range<u64>),
    /// It was delivered before; nothing was written again.
    Repeated,
}

impl Written {
    /// The number of its last entry.
    pub fn last(&self) -> Option<u64> {
        match self {
            Self::Fresh(numbers) => numbers.clone().last(),
            Self::Repeated => None,
        }
    }
}

/// What became of a snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    Taken,
    /// There is one that goes further, up to here; it stays.
    Superseded {
        upto: u64,
    },
}

/// Something for the writer to do.
#[derive(Debug)]
pub(crate) enum Job {
    Write(Encoded, Reply<Written>),
    Snapshot {
        session: SessionId,
        upto: u64,
        body: String,
        reply: Reply<Kept>,
    },
    SetAside(Vec<DamagedRecord>, Reply<()>),
    /// Prune until there is nothing to prune.
    Tidy(Reply<()>),
    /// See that the journal lies where it should.
    Check(Reply<()>),
}

/// What the writer did, to be told once it is on disk.
#[derive(Debug)]
pub(crate) enum Answer {
    Written(Written),
    Kept(Kept),
    Done,
    /// This job alone was not done, and changed nothing.
    Refused(Error),
}

impl Job {
    pub fn bytes(&self) -> usize {
        match self {
            Self::Write(batch, _) => batch.bytes,
            Self::Snapshot { body, .. } => body.len(),
            Self::SetAside(records, _) => {
                records.iter().map(|record| record.reason.len() + size_of_val(record)).sum()
            }
            Self::Tidy(_) | Self::Check(_) => 0,
        }
    }

    pub fn entries(&self) -> usize {
        match self {
            Self::Write(batch, _) => batch.entries.len() + batch.records.len(),
            Self::SetAside(records, _) => records.len(),
            Self::Snapshot { .. } | Self::Tidy(_) | Self::Check(_) => 1,
        }
    }

    /// Tells whoever waits. The answer is of the job's own kind: `Group::apply` gave it.
    pub fn settle(self, outcome: Result<Answer>) {
        let outcome = match outcome {
            Ok(Answer::Refused(error)) => Err(error),
            Ok(answer) => Ok(answer),
            Err(error) => Err(error),
        };
        match (self, outcome) {
            (Self::Write(_, reply), Ok(Answer::Written(written))) => reply.answer(Ok(written)),
            (Self::Snapshot { reply, .. }, Ok(Answer::Kept(kept))) => reply.answer(Ok(kept)),
            (
                Self::SetAside(_, reply) | Self::Tidy(reply) | Self::Check(reply),
                Ok(Answer::Done),
            ) => {
                reply.answer(Ok(()));
            }
            (Self::Write(_, reply), Err(error)) => reply.answer(Err(error)),
            (Self::Snapshot { reply, .. }, Err(error)) => reply.answer(Err(error)),
            (Self::SetAside(_, reply) | Self::Tidy(reply) | Self::Check(reply), Err(error)) => {
                reply.answer(Err(error));
            }
            (job, Ok(answer)) => unreachable!("{job:?} was answered with {answer:?}"),
        }
    }
}
