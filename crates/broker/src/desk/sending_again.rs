//! Answers in doubt: they were sent, and nobody said what became of them.
//!
//! A forwarder that got nothing comes back by itself. A client's own server does not, and takes a
//! second copy without harm: it answers that nobody waits for it. So there an answer is sent again
//! while its request is open. What may have arrived before is never called failed because a later
//! copy was turned away.

use qd_session::decision::{Decided, Subject};
use qd_session::id::{DecisionId, RequestKey, SessionId};
use qd_session::moment::Timestamp;

use super::{Desk, DeskOutput, Errand, Reach, recorded, task_of};

/// How long after an answer that may have arrived or not it is sent again, the first time: time for
/// the agent's own signals to say that it arrived.
const AGAIN_MS: u64 = 5_000;

/// How often that time is doubled. A server that hangs is asked every five minutes in the end.
const AGAIN_DOUBLINGS_MAX: u32 = 6;

/// How often an answer was sent that may have arrived, and when it is sent next.
#[derive(Debug, Default)]
pub struct Doubt {
    sent: u32,
    due: Option<Timestamp>,
}

impl Doubt {
    pub(super) fn set_back(&mut self, by_ms: u64) {
        self.due = self.due.map(|due| due.minus_ms(by_ms));
    }
}

impl Desk {
    /// A session is in reach, perhaps again. What it waits for and was answered is sent once more;
    /// what it waits for no more is closed.
    pub fn take_up_all(
        &mut self,
        now: Timestamp,
        session: &SessionId,
        reach: Reach,
        outputs: &mut Vec<DeskOutput>,
    ) {
        let unsettled = self.book.unsettled().filter(|one| one.subject.session() == session);
        let requests: Vec<RequestKey> =
            unsettled.filter_map(|one| one.subject.request().cloned()).collect();
        for request in requests {
            match self.open.contains_key(&request) {
                true => self.send_again(&request, reach, outputs),
                false => outputs.extend(self.book.closed(now, &request).into_iter().map(recorded)),
            }
        }
    }

    /// After a start, once all sessions are there: closes what their agents wait for no more, and
    /// gives up commands that a kill cut off. Sessions that we drive are taken up by themselves.
    pub fn close_past(
        &mut self,
        now: Timestamp,
        is_driven: impl Fn(&SessionId) -> bool,
        outputs: &mut Vec<DeskOutput>,
    ) {
        let is_past = |one: &&Decided| match one.subject.request() {
            Some(request) => !self.open.contains_key(request) && !is_driven(one.subject.session()),
            None => true,
        };
        let past: Vec<Subject> =
            self.book.unsettled().filter(is_past).map(|one| one.subject.clone()).collect();
        for subject in past {
            let records = match subject.request() {
                Some(request) => self.book.closed(now, request),
                None => self.book.lost(now, subject.decision()),
            };
            outputs.extend(records.into_iter().map(recorded));
        }
    }

    /// Sends again what is due, where `reach` still leads to its agent.
    pub fn take_up_due(
        &mut self,
        now: Timestamp,
        reach: impl Fn(&SessionId) -> Reach,
        outputs: &mut Vec<DeskOutput>,
    ) {
        let mut due = Vec::new();
        for (decision, doubt) in &mut self.doubts {
            if doubt.due.take_if(|at| *at <= now).is_some() {
                due.push(decision.clone());
            }
        }
        for decision in due {
            let subject = self.book.decision(&decision).map(|one| &one.subject);
            let session = subject.map(|subject| subject.session().clone());
            let request = subject.and_then(|subject| subject.request().cloned());
            if let (Some(session), Some(request)) = (session, request) {
                self.send_again(&request, reach(&session), outputs);
            }
        }
    }

    /// When the next one is sent again.
    pub fn next_again(&self) -> Option<Timestamp> {
        self.doubts.values().filter_map(|doubt| doubt.due).min()
    }

    /// Whether an earlier copy of it may have arrived.
    pub(super) fn is_doubted(&self, decision: &DecisionId) -> bool {
        self.doubts.contains_key(decision)
    }

    /// Nobody can say whether it arrived. It is sent again after a while, if it is still open then.
    pub(super) fn doubt(&mut self, now: Timestamp, decision: &DecisionId) {
        let doubt = self.doubts.entry(decision.clone()).or_default();
        doubt.due = Some(now.plus_ms(AGAIN_MS << doubt.sent.min(AGAIN_DOUBLINGS_MAX)));
        doubt.sent += 1;
    }

    /// Settled ones are in doubt no more.
    pub(super) fn forget_doubts(&mut self) {
        let book = &self.book;
        self.doubts
            .retain(|decision, _| book.decision(decision).is_some_and(|it| !it.is_settled()));
    }

    fn send_again(&mut self, key: &RequestKey, reach: Reach, outputs: &mut Vec<DeskOutput>) {
        let Some(decided) = self.book.answer_to(key) else { return };
        let Subject::Answer(offer) = &decided.subject else { return };
        let decision = offer.decision.clone();
        let waits = self.open.get(key);
        let Some(task) =
            waits.and_then(|waits| task_of(waits, &offer.answer, offer.rule.as_ref(), reach))
        else {
            return;
        };
        if self.book.sent_again(&decision) {
            // The machine of a session that we drive knows whether it was told.
            if reach == Reach::Server {
                self.doubts.entry(decision.clone()).or_default();
            }
            outputs.push(DeskOutput::Carry(Box::new(Errand { decision, task })));
        }
    }
}
