//! What the desk knows of a request that rules may answer.

use std::collections::BTreeSet;
use std::sync::Arc;

use qd_harness::Harness;
use qd_harness::waiting_hook::Asked;
use qd_hook_wire::FrameId;
use qd_session::decision::{Decided, Decision, Offer, Shown, Standing, Subject};
use qd_session::id::{RequestId, RequestKey, SessionId};
use qd_session::machine::ToolCall;
use qd_session::moment::Timestamp;
use qd_session::monitor::{Ask, RequestKind};
use qd_session::policy;

use super::{Answering, Desk, DeskOutput, Judged, Post, Reach, Waits, recorded, revision_of};

/// How long a request that a rule has answered needs nobody, although its agent has not gone on.
/// An agent takes an answer in some ten milliseconds; one that has not taken it by then waits.
const RULED_MS: u64 = 10_000;

/// How long a new request needs nobody where rules may answer it and have not been asked: the time
/// until its hook is here and its folder is read, with room for a busy machine.
const JUDGING_MS: u64 = 400;

/// Whether the rules of a session could answer anything at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rules {
    MayAnswer,
    AskAll,
}

/// A request, as the policy is asked about it.
#[derive(Debug)]
pub struct Case {
    pub session: SessionId,
    /// In its client's words; empty if the client does not tell.
    pub tool: String,
    pub input: Option<Arc<str>>,
    /// The forwarder that stays for its answer.
    pub frame: Option<FrameId>,
    /// Something of the input was too long and has not been seen.
    is_cut: bool,
    /// Its agent asked nobody.
    pub is_unasked: bool,
}

impl Case {
    /// The same as the policy takes it, made in that folder.
    pub fn asked<'a>(&'a self, cwd: Option<&'a str>) -> policy::Asked<'a> {
        let (input, is_cut) = (self.input.as_deref(), self.is_cut);
        policy::Asked { tool: &self.tool, input, cwd, is_cut, ..Default::default() }
    }
}

impl Desk {
    /// The permissions that a session waits for, that an answer can reach, and that were not taken
    /// here before. A hook is there to be answered; a server's request may still be under review,
    /// so that has to be in `waiting`.
    pub fn take_unjudged(
        &mut self,
        session: &SessionId,
        reach: Reach,
        waiting: &BTreeSet<RequestId>,
    ) -> Vec<RequestKey> {
        let mut unjudged = Vec::new();
        for key in self.keys_of(session) {
            if self.book.answer_to(&key).is_some() {
                continue;
            }
            let Some(waits) = self.open.get_mut(&key) else { continue };
            let is_due = waits.hook.is_some()
                || waits.way(reach).is_some() && waiting.contains(&waits.request);
            if waits.shown.kind == RequestKind::Permission
                && waits.judged == Judged::NotYet
                && is_due
                && !waits.needs_person(reach)
            {
                waits.judged = Judged::Soon;
                unjudged.push(key);
            }
        }
        unjudged
    }

    /// Other rules hold for a session: what waits is judged again.
    pub fn judge_again(&mut self, session: &SessionId) {
        for key in self.keys_of(session) {
            if let Some(waits) = self.open.get_mut(&key) {
                waits.judged = Judged::NotYet;
            }
        }
    }

    /// The policy has said what it says.
    pub fn judged(&mut self, key: &RequestKey) {
        if let Some(waits) = self.open.get_mut(key) {
            waits.judged = Judged::Done;
        }
    }

    /// What a session asks now has been judged.
    pub fn judged_all(&mut self, session: &SessionId) {
        for key in self.keys_of(session) {
            self.judged(&key);
        }
    }

    pub fn case(&self, key: &RequestKey) -> Option<Case> {
        let waits = self.open.get(key)?;
        let hook = waits.hook.as_ref();
        Some(Case {
            session: waits.session.clone(),
            tool: waits.shown.tool.as_ref().map(ToString::to_string).unwrap_or_default(),
            input: hook.map(|(_, asked)| asked.whole_input()).or_else(|| waits.ask.input.clone()),
            frame: hook.map(|(frame, _)| *frame),
            is_cut: hook.is_some_and(|(_, asked)| asked.is_cut),
            is_unasked: waits.is_unasked,
        })
    }

    /// A rule's answer as its agent takes it: one that takes no words is only told no.
    pub fn fitted(&self, mut answering: Answering, reach: Reach) -> Answering {
        let takes_words =
            self.open.get(&answering.request).is_some_and(|waits| waits.takes_words(reach));
        if let Decision::Deny { message, .. } = &mut answering.answer
            && !takes_words
        {
            *message = None;
        }
        answering
    }

    /// A rule has said yes or no to a call of a session that we drive, and nobody was asked.
    pub fn put_on_record(
        &mut self,
        now: Timestamp,
        session: &SessionId,
        call: &ToolCall,
        answering: Answering,
        outputs: &mut Vec<DeskOutput>,
    ) {
        let Answering { decision, request, by, rule, answer, revision: _, key } = answering;
        let (kind, input) = (RequestKind::Permission, call.arguments.to_string());
        let shown = Shown::new(kind, Some(call.name.clone()), None, Some(&input));
        let session = session.clone();
        let offer = Offer { decision, request, session, by, rule, shown, answer, key };
        outputs.push(recorded(self.book.ruled(now, offer)));
    }

    /// A forwarder wants to know whether a rule forbids what its agent is about to do without
    /// asking anybody. Nobody is shown that.
    pub fn open_unasked(
        &mut self,
        now: Timestamp,
        frame: FrameId,
        session: &SessionId,
        harness: Harness,
        asked: Asked,
    ) -> Option<RequestKey> {
        let request = RequestId::new(format!("{:032x}", frame.0));
        let key = RequestKey::of(session, &request, now);
        if !self.book.opened(&key) {
            return None;
        }
        let input = asked.whole_input();
        let shown =
            Shown::new(RequestKind::Permission, Some(asked.tool.clone()), None, Some(&input));
        let ask = Ask { tool: Some(asked.tool.clone()), input: Some(input), ..Ask::default() };
        let waits = Waits {
            session: session.clone(),
            harness,
            request,
            agent: asked.agent.clone(),
            revision: revision_of(RequestKind::Permission, &ask),
            was_replaced: false,
            ask,
            shown,
            hook: Some((frame, asked)),
            failed: None,
            opened_at: now,
            judged: Judged::Soon,
            is_unasked: true,
            is_looked_into: true,
        };
        self.posts.insert(frame, Post::Request(key.clone()));
        self.open.insert(key.clone(), waits);
        Some(key)
    }

    /// What nobody was asked is over with its verdict.
    pub fn close_unasked(
        &mut self,
        now: Timestamp,
        key: &RequestKey,
        outputs: &mut Vec<DeskOutput>,
    ) {
        if self.open.get(key).is_some_and(|waits| waits.is_unasked) {
            self.open.remove(key);
            self.posts.retain(|_, post| *post != Post::Request(key.clone()));
            outputs.extend(self.book.closed(now, key).into_iter().map(recorded));
        }
    }

    /// A forwarder need not stay, although what it asked is open.
    pub fn dismiss(&mut self, now: Timestamp, frame: FrameId, outputs: &mut Vec<DeskOutput>) {
        self.left(now, frame);
        outputs.push(DeskOutput::Release(frame));
    }

    /// The requests of a session that need nobody: a rule's answer is with the agent or on its way,
    /// or rules that may answer are about to be asked. And until when that is believed.
    pub fn ruled(
        &self,
        now: Timestamp,
        session: &SessionId,
        rules: Rules,
    ) -> (BTreeSet<RequestId>, Option<Timestamp>) {
        let until = |decided: &Decided| {
            let Subject::Answer(offer) = &decided.subject else { return None };
            let stands = match decided.standing {
                Standing::InFlight
                | Standing::Ending
                | Standing::Delivered { .. }
                | Standing::Confirmed { .. } => true,
                Standing::Unsettled
                | Standing::Failed { .. }
                | Standing::Overtaken
                | Standing::Unclear => false,
            };
            let until = decided.at.plus_ms(RULED_MS);
            (offer.rule.is_some() && stands && until > now).then_some(until)
        };
        let soon = |waits: &Waits| {
            let until = waits.opened_at.plus_ms(JUDGING_MS);
            let is_due = waits.shown.kind == RequestKind::Permission
                && waits.judged != Judged::Done
                && until > now;
            (rules == Rules::MayAnswer && is_due).then_some(until)
        };
        let ruled = self.of_session(session).filter_map(|(_, open)| {
            let until = match open.answer {
                Some(answer) => until(answer),
                None => soon(open.waits),
            };
            Some((open.request().clone(), until?))
        });
        let (requests, untils): (BTreeSet<_>, Vec<_>) = ruled.unzip();
        (requests, untils.into_iter().min())
    }

    pub(super) fn keys_of(&self, session: &SessionId) -> Vec<RequestKey> {
        let range = (session.clone(), RequestId::new(""))..;
        let known = self.keys.range(range).take_while(|((owner, _), _)| owner == session);
        known.map(|(_, key)| key.clone()).collect()
    }
}
