//! Which frames were taken already.
//!
//! Pure. Only what the journal holds counts as taken: a frame between the socket and the journal
//! is *in flight*, and its copy in the spool must stay until that is settled.

use std::collections::{BTreeSet, VecDeque};

use qd_hook_wire::FrameId;

use super::spool::BATCH_FRAMES_MAX;

/// Frames taken from sockets and not yet in the journal. One group commit holds a few hundred;
/// beyond this the daemon is behind, and a refused forwarder spools instead.
pub const IN_FLIGHT_MAX: usize = 4_096;

/// Frame ids remembered after they were taken. More than the journal remembers: it refuses a batch
/// with a frame that it knows, and with it the others of that batch.
const KNOWN_IDS_MAX: usize = qd_store::limits::DELIVERIES_MAX as usize + 4 * BATCH_FRAMES_MAX;

/// The ids of the frames taken lately. After a restart it is filled from the journal, or a frame
/// that was journaled and not acknowledged would be taken twice.
#[derive(Debug, Default)]
pub struct KnownIds {
    in_flight: BTreeSet<FrameId>,
    taken: BTreeSet<FrameId>,
    /// The same ids as `taken`, oldest first.
    order: VecDeque<FrameId>,
}

/// What to do with a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Take it; it is in flight from now on.
    New,
    /// Somebody is at it: neither take it nor throw its copy away.
    InFlight,
    /// The journal has it: acknowledge and forget.
    Taken,
    /// Too many are in flight: refuse, the forwarder keeps it on disk.
    Full,
}

impl KnownIds {
    /// Remembers what the journal says was taken, oldest first.
    pub fn restored(ids: impl IntoIterator<Item = FrameId>) -> Self {
        let mut known = Self::default();
        ids.into_iter().for_each(|id| known.settle(id));
        known
    }

    pub fn admit(&mut self, id: FrameId) -> Admission {
        if self.taken.contains(&id) {
            Admission::Taken
        } else if self.in_flight.contains(&id) {
            Admission::InFlight
        } else if self.in_flight.len() >= IN_FLIGHT_MAX {
            Admission::Full
        } else {
            self.in_flight.insert(id);
            Admission::New
        }
    }

    /// The journal has it.
    pub fn settle(&mut self, id: FrameId) {
        self.in_flight.remove(&id);
        if self.taken.insert(id) {
            self.order.push_back(id);
        }
        if self.order.len() > KNOWN_IDS_MAX {
            let oldest = self.order.pop_front();
            oldest.map(|id| self.taken.remove(&id));
        }
    }

    /// The journal could not take it; the next copy is as good as new.
    pub fn abandon(&mut self, id: FrameId) {
        self.in_flight.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_new_in_flight_and_taken() {
        let mut known = KnownIds::restored([FrameId(1)]);
        assert_eq!(known.admit(FrameId(1)), Admission::Taken);
        assert_eq!(known.admit(FrameId(2)), Admission::New);
        assert_eq!(known.admit(FrameId(2)), Admission::InFlight);
        known.abandon(FrameId(2));
        assert_eq!(known.admit(FrameId(2)), Admission::New);
        known.settle(FrameId(2));
        assert_eq!(known.admit(FrameId(2)), Admission::Taken);
    }

    #[test]
    fn both_memories_are_bounded() {
        let mut known = KnownIds::default();
        for id in 0..IN_FLIGHT_MAX as u128 {
            assert_eq!(known.admit(FrameId(id)), Admission::New);
        }
        assert_eq!(known.admit(FrameId(u128::MAX)), Admission::Full);
        for id in 0..=KNOWN_IDS_MAX as u128 {
            known.settle(FrameId(id));
        }
        assert_eq!((known.taken.len(), known.order.len()), (KNOWN_IDS_MAX, KNOWN_IDS_MAX));
        assert_eq!(known.admit(FrameId(0)), Admission::New, "the oldest is forgotten");
        assert_eq!(known.admit(FrameId(1)), Admission::Taken);
    }
}
