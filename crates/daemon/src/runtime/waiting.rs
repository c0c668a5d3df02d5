//! The forwarders that wait for a reply, each by the id of its frame.
//!
//! Knows connections and not requests: who may answer what is decided elsewhere. A forwarder that
//! comes back on a new connection takes the place of the old one.

use std::collections::BTreeMap;

use tokio::sync::oneshot;

use qd_hook_wire::{FrameId, HookReply};
use qd_host::processes::Process;

/// Forwarders that wait at once: each idle session has one and each open request another. A quarter
/// of the file descriptors that a program may have; who comes then is released.
pub const WAITERS_MAX: usize = 256;

#[derive(Debug, Default)]
pub struct Waiting {
    waiters: BTreeMap<FrameId, Waiter>,
    arrivals: u64,
}

#[derive(Debug)]
struct Waiter {
    arrival: Arrival,
    /// The process at the other end, where it was seen.
    peer: Option<Process>,
    connection: oneshot::Sender<Told>,
}

/// Which of the connections under one id is meant; later ones are higher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Arrival(u64);

/// What goes to a waiting forwarder, and whom to tell what became of it. Dropped, it has failed.
#[derive(Debug)]
pub struct Told {
    pub reply: HookReply,
    pub outcome: oneshot::Sender<ReplyOutcome>,
}

impl Told {
    /// For one that nobody asks after.
    pub(super) fn release() -> Self {
        Self { reply: HookReply::release(), outcome: oneshot::channel().0 }
    }
}

/// What became of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyOutcome {
    /// The forwarder said that it has it whole.
    Delivered,
    /// It surely did not arrive: nobody waited, or the connection broke before it was sent.
    Failed,
    /// It was sent whole, and the forwarder did not say that it has it: it may be gone, or come
    /// back on another connection.
    Lost,
}

/// The outcome of a reply, once it is known.
#[derive(Debug)]
pub struct ReplyReceipt(oneshot::Receiver<ReplyOutcome>);

impl ReplyReceipt {
    pub async fn outcome(self) -> ReplyOutcome {
        self.0.await.unwrap_or(ReplyOutcome::Failed)
    }
}

impl Waiting {
    /// A forwarder is there whose frame the journal has. None if too many wait already, or another
    /// process waits under that id: then it is to be released.
    pub fn arrived(
        &mut self,
        frame: FrameId,
        peer: Option<Process>,
    ) -> Option<(Arrival, oneshot::Receiver<Told>)> {
        match self.waiters.get(&frame) {
            Some(waiter) if waiter.peer != peer => return None,
            None if self.waiters.len() >= WAITERS_MAX => return None,
            Some(_) | None => {}
        }
        self.arrivals += 1;
        let (arrival, (connection, told)) = (Arrival(self.arrivals), oneshot::channel());
        self.waiters.insert(frame, Waiter { arrival, peer, connection });
        Some((arrival, told))
    }

    /// Sends the reply. The forwarder does not wait any more after that, whatever the outcome; if
    /// it was not delivered it may arrive again.
    pub fn answer(&mut self, frame: FrameId, reply: HookReply) -> ReplyReceipt {
        let (outcome, receipt) = oneshot::channel();
        if let Some(waiter) = self.waiters.remove(&frame) {
            // A connection that has closed drops it, which says that it failed.
            let _ = waiter.connection.send(Told { reply, outcome });
        }
        ReplyReceipt(receipt)
    }

    /// Whether somebody waits under that id now.
    pub fn has(&self, frame: FrameId) -> bool {
        self.waiters.contains_key(&frame)
    }

    /// Lets a forwarder go without an answer.
    pub fn release(&mut self, frame: FrameId) {
        drop(self.answer(frame, HookReply::release()));
    }

    /// The connection has ended. True if nobody waits under that id any more, and did until now.
    pub fn gone(&mut self, frame: FrameId, arrival: Arrival) -> bool {
        let is_last = self.waiters.get(&frame).is_some_and(|waiter| waiter.arrival == arrival);
        is_last && self.waiters.remove(&frame).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: FrameId = FrameId(7);

    fn text(told: &Told) -> String {
        String::from_utf8(told.reply.bytes()).expect("ours")
    }

    #[tokio::test]
    async fn an_answer_reaches_the_one_who_waits_and_its_outcome_the_one_who_answered() {
        for outcome in [ReplyOutcome::Delivered, ReplyOutcome::Failed] {
            let mut waiting = Waiting::default();
            let (arrival, told) = waiting.arrived(FRAME, None).expect("room");
            let receipt = waiting.answer(FRAME, HookReply::print("yes").expect("short"));
            let told = told.await.expect("told");
            assert_eq!(text(&told), "qd1 reply exit=0 out=3 err=0\nyes");
            told.outcome.send(outcome).expect("somebody asks");
            assert_eq!(receipt.outcome().await, outcome);
            assert!(waiting.waiters.is_empty());
            assert!(!waiting.gone(FRAME, arrival), "it was answered");
        }
    }

    #[tokio::test]
    async fn an_answer_that_nobody_takes_has_failed() {
        let mut waiting = Waiting::default();
        let reply = || HookReply::print("yes").expect("short");
        let nobody = waiting.answer(FRAME, reply());
        assert_eq!(nobody.outcome().await, ReplyOutcome::Failed, "nobody was there");

        let (_, told) = waiting.arrived(FRAME, None).expect("room");
        drop(told);
        let closed = waiting.answer(FRAME, reply());
        assert_eq!(closed.outcome().await, ReplyOutcome::Failed, "it was closed before");

        let (_, told) = waiting.arrived(FRAME, None).expect("room");
        let broken = waiting.answer(FRAME, reply());
        drop(told.await.expect("told"));
        assert_eq!(broken.outcome().await, ReplyOutcome::Failed, "it was closed meanwhile");
    }

    #[tokio::test]
    async fn who_comes_back_takes_the_old_place_and_the_old_connection_ends_in_silence() {
        let mut waiting = Waiting::default();
        let (old, old_told) = waiting.arrived(FRAME, None).expect("room");
        let (new, new_told) = waiting.arrived(FRAME, None).expect("room");
        assert!(old_told.await.is_err(), "it is told nothing");
        assert!(!waiting.gone(FRAME, old), "the new one still waits");
        waiting.release(FRAME);
        assert_eq!(new_told.await.expect("told").reply, HookReply::release());
        assert!(!waiting.gone(FRAME, new));
    }

    #[test]
    fn another_process_does_not_take_the_place_of_one_that_waits() {
        let process = |pid| Some(Process { pid, start: 1 });
        let mut waiting = Waiting::default();
        let (_, mut told) = waiting.arrived(FRAME, process(1)).expect("room");
        assert!(waiting.arrived(FRAME, process(2)).is_none());
        assert!(waiting.arrived(FRAME, None).is_none());
        assert!(told.try_recv().is_err_and(|why| why == oneshot::error::TryRecvError::Empty));
        assert!(waiting.arrived(FRAME, process(1)).is_some());
    }

    #[tokio::test]
    async fn the_number_is_bounded_and_those_who_go_make_room() {
        let mut waiting = Waiting::default();
        let id = |n: usize| FrameId(n as u128);
        let all: Vec<_> =
            (0..WAITERS_MAX).map(|n| waiting.arrived(id(n), None).expect("room")).collect();
        assert!(waiting.arrived(id(WAITERS_MAX), None).is_none());
        assert!(waiting.arrived(id(0), None).is_some(), "who comes back had a place");
        assert!(waiting.gone(id(1), all[1].0));
        assert!(waiting.arrived(id(WAITERS_MAX), None).is_some());
    }
}
