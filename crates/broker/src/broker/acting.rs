//! What the operator does to sessions: the broker's half that asks the desk.

use std::sync::Arc;

use qd_harness::Harness;
use qd_harness::waiting_hook::{WaitingHook, Wants};
use qd_session::decision::{Command, Decision, Link, Record};
use qd_session::id::{DecisionId, SessionId, Way};
use qd_session::moment::Timestamp;
use qd_session::monitor::{AgentEvent, Fact};

use super::{Broker, Output};
use crate::desk::{Answering, Carried, Commanding, Declined, DeskOutput, Reach, Taken, Task};
use crate::hook_intake::{FrameId, HookReply};
use crate::limits::HOLD_MS;

/// A forwarder whose frame the journal has, and that stays.
#[derive(Debug, Clone, Copy)]
pub struct Staying<'a> {
    pub harness: Harness,
    pub frame: FrameId,
    /// How the agent was started, in its own word; none where it does not say.
    pub entry: Option<&'a str>,
    pub payload: &'a [u8],
}

impl Broker {
    /// A record of the past, in the chain's order, before any session is restored.
    pub fn recall_record(&mut self, record: &Record) {
        self.desk.recall(record);
    }

    /// All records were told; the next one follows this.
    pub fn follow_records(&mut self, last: Link) {
        self.desk.follow(last);
    }

    /// A forwarder waits from now on, or again.
    pub fn arrived(&mut self, now: Timestamp, staying: &Staying<'_>) -> Vec<Output> {
        let mut outputs = Vec::new();
        let Staying { harness, frame, entry, payload } = *staying;
        let hook = WaitingHook::read(harness, payload);
        let found = hook.and_then(|hook| {
            let id = self.found.get(&(harness, hook.session.clone()))?.clone();
            Some((id, hook.wants))
        });
        let Some((id, wants)) = found.filter(|(id, wants)| self.may_stay(id, wants, entry)) else {
            outputs.push(Output::Release(frame));
            return outputs;
        };
        if let (Harness::ClaudeCode, Wants::Answer(asked)) = (harness, &wants)
            && !asked.agent.is_main()
        {
            self.desk.hold_until(now.plus_ms(HOLD_MS), frame);
        }
        let mut desk_outputs = Vec::new();
        self.desk.arrived(frame, &id, wants, &mut desk_outputs);
        self.pass_on(desk_outputs, &mut outputs);
        self.show(now, &id, &mut outputs);
        outputs
    }

    /// Whether it does the agent no harm to wait. Claude Code without a terminal denies what no
    /// hook answers, so there nothing is gained by waiting unless somebody asked for it. The
    /// dialogs of its subagents, and all of Codex, come only after the hook: it stays while
    /// somebody looks at the board, and not for long. On Codex's daemon there is a better way.
    fn may_stay(&self, id: &SessionId, wants: &Wants, entry: Option<&str>) -> bool {
        let Some(tracked) = self.roster.get(id) else { return false };
        match (tracked.harness, wants) {
            (Harness::ClaudeCode, wants) => {
                let of_subagent = match wants {
                    Wants::Answer(asked) => !asked.agent.is_main(),
                    Wants::Prompt => false,
                };
                let in_terminal = entry.is_none_or(|entry| entry == TERMINAL);
                in_terminal && (!of_subagent || self.is_operator_present)
            }
            (Harness::Codex, Wants::Answer(_)) => {
                tracked.reach == Reach::Nowhere && self.is_operator_present
            }
            (
                Harness::Codex
                | Harness::GeminiCli
                | Harness::KiloCode
                | Harness::Cline
                | Harness::Opencode
                | Harness::Acp,
                _,
            ) => false,
        }
    }

    /// Lets those go that have kept their agents from asking elsewhere for long enough.
    pub(super) fn release_due(&mut self, now: Timestamp, outputs: &mut Vec<Output>) {
        let mut desk_outputs = Vec::new();
        let sessions = self.desk.release_due(now, &mut desk_outputs);
        self.pass_on(desk_outputs, outputs);
        sessions.iter().for_each(|id| self.show(now, id, outputs));
    }

    /// A forwarder has gone by itself.
    pub fn left(&mut self, now: Timestamp, frame: FrameId) -> Vec<Output> {
        let mut outputs = Vec::new();
        if let Some(session) = self.desk.left(frame) {
            self.show(now, &session, &mut outputs);
        }
        outputs
    }

    /// Somebody answers a request.
    pub fn answer(
        &mut self,
        now: Timestamp,
        answering: Answering,
    ) -> (Result<Taken, Declined>, Vec<Output>) {
        let session = self.desk.session_of(&answering.request).cloned();
        let reach = session.as_ref().map_or(Reach::Nowhere, |id| self.reach(id));
        let (mut desk_outputs, mut outputs) = (Vec::new(), Vec::new());
        let taken = self.desk.answer(now, answering, reach, &mut desk_outputs);
        self.pass_on(desk_outputs, &mut outputs);
        if let Some(session) = session {
            self.show(now, &session, &mut outputs);
        }
        (taken, outputs)
    }

    /// Somebody wants something of a session.
    pub fn command(
        &mut self,
        now: Timestamp,
        commanding: Commanding,
    ) -> (Result<Taken, Declined>, Vec<Output>) {
        let session = commanding.session.clone();
        let (mut desk_outputs, mut outputs) = (Vec::new(), Vec::new());
        let taken = match self.task(&commanding) {
            Ok(Plan::Task(task)) => self.desk.command(now, commanding, task, &mut desk_outputs),
            Ok(Plan::Answer(answering)) => {
                self.desk.answer(now, *answering, self.reach(&session), &mut desk_outputs)
            }
            Err(why) => Err(Declined::Impossible { why: why.to_owned() }),
        };
        self.pass_on(desk_outputs, &mut outputs);
        self.show(now, &session, &mut outputs);
        (taken, outputs)
    }

    /// How a command is carried out, or why it cannot be.
    fn task(&self, commanding: &Commanding) -> Result<Plan, String> {
        let session = &commanding.session;
        let tracked = self.roster.get(session).ok_or("no such session is known")?;
        let capabilities = self.capabilities(tracked);
        let refused = |name: &str| capabilities.why.get(name).cloned();
        let (harness, on_server) = (tracked.harness, tracked.reach == Reach::Server);
        match &commanding.command {
            Command::Prompt { text } => {
                if let Some(frame) = self.desk.prompter(session) {
                    let reply = HookReply::rewake(text.trim()).ok_or("the prompt is too long")?;
                    return Ok(Plan::Task(Task::Reply { frame, reply }));
                }
                if let Some(why) = refused("canPrompt") {
                    return Err(why);
                }
                let (session, text) = (session.clone(), text.clone());
                Ok(Plan::Task(Task::Prompt { harness, session, text }))
            }
            Command::Interrupt => {
                if let Some(why) = refused("canInterrupt") {
                    return Err(why);
                }
                if on_server {
                    let session = session.clone();
                    return Ok(Plan::Task(Task::Interrupt { harness, session }));
                }
                let mut held = self.desk.of_session(session).filter(|(_, open)| open.is_held());
                let (request, _) = held.next().ok_or("nothing of it waits here")?;
                let answer = Decision::Deny { message: None, interrupt: true };
                let Commanding { decision, by, key, .. } = commanding.clone();
                let request = request.clone();
                let answering = Answering { decision, request, by, rule: None, answer, key };
                Ok(Plan::Answer(Box::new(answering)))
            }
            Command::Stop => {
                if let Some(why) = refused("canStop") {
                    return Err(why);
                }
                let mut carriers = tracked.session.monitor().carriers();
                let process = carriers.next().ok_or("no process of it is known")?.clone();
                Ok(Plan::Task(Task::End { process }))
            }
            Command::Yolo { on } => match refused("canYolo") {
                Some(why) => Err(why),
                None => {
                    let session = session.clone();
                    Ok(Plan::Task(Task::Yolo { harness, session, on: *on }))
                }
            },
            Command::Focus => {
                let mut carriers = tracked.session.monitor().carriers();
                let pane = carriers.find_map(|carrier| self.terminals.get(carrier)?.tmux.clone());
                let pane = pane.ok_or("it is in no tmux pane that is known")?;
                Ok(Plan::Task(Task::Focus { pane }))
            }
            Command::Resume => Err("go on with it in a terminal: `qd resume`".to_owned()),
            Command::Dismiss => Err("a dismissal is not carried anywhere".to_owned()),
        }
    }

    /// What became of an errand.
    pub fn carried(
        &mut self,
        now: Timestamp,
        decision: &DecisionId,
        way: &Way,
        carried: &Carried,
    ) -> Vec<Output> {
        let (mut desk_outputs, mut outputs) = (Vec::new(), Vec::new());
        let session = self.desk.carried(now, decision, way, carried, &mut desk_outputs);
        self.pass_on(desk_outputs, &mut outputs);
        if let Some(standing) = self.desk.standing(decision) {
            let (decision, standing) = (decision.clone(), standing.clone());
            outputs.push(Output::Settled(Taken { decision, standing }));
        }
        if let Some(session) = session {
            self.show(now, &session, &mut outputs);
        }
        outputs
    }

    /// Whether a device of the operator is there: something that shows the board.
    pub fn set_presence(&mut self, present: bool) {
        self.is_operator_present = present;
    }

    /// Whose server is not in reach any more, as `holds` says, can be acted on no more through it.
    pub fn forget_unreached(
        &mut self,
        now: Timestamp,
        holds: impl Fn(Harness, &str) -> bool,
    ) -> Vec<Output> {
        let mut outputs = Vec::new();
        let reached = self.roster.iter_mut().filter(|(_, tracked)| {
            tracked.reach == Reach::Server && !holds(tracked.harness, &tracked.vendor_id)
        });
        let mut gone = Vec::new();
        for (id, tracked) in reached {
            tracked.reach = Reach::Nowhere;
            gone.push(id.clone());
        }
        gone.iter().for_each(|id| self.show(now, id, &mut outputs));
        outputs
    }

    fn reach(&self, id: &SessionId) -> Reach {
        self.roster.get(id).map_or(Reach::Nowhere, |tracked| tracked.reach)
    }

    /// The agent's own signals may have opened or closed requests, and ended a wait for a prompt.
    pub(super) fn look_at_requests(
        &mut self,
        now: Timestamp,
        id: &SessionId,
        outputs: &mut Vec<Output>,
    ) {
        let Some(tracked) = self.roster.get(id) else { return };
        let mut desk_outputs = Vec::new();
        self.desk.look(now, tracked.harness, &tracked.session, &mut desk_outputs);
        self.pass_on(desk_outputs, outputs);
    }

    /// A forwarder waits for a prompt that has come from elsewhere, or never will.
    pub(super) fn note_prompt(
        &mut self,
        id: &SessionId,
        event: &AgentEvent,
        outputs: &mut Vec<Output>,
    ) {
        let ends_wait = matches!(
            event.fact,
            Fact::UserPrompt { .. } | Fact::TurnStarted | Fact::SessionEnded { .. }
        );
        let after_it = |frame: FrameId| event.at.0 > frame.at_ms();
        if ends_wait && event.agent.is_main() && self.desk.prompter(id).is_some_and(after_it) {
            let mut desk_outputs = Vec::new();
            self.desk.prompted(id, &mut desk_outputs);
            self.pass_on(desk_outputs, outputs);
        }
    }

    fn pass_on(&mut self, desk_outputs: Vec<DeskOutput>, outputs: &mut Vec<Output>) {
        outputs.extend(desk_outputs.into_iter().map(|output| match output {
            DeskOutput::Record(record) => Output::Record(record),
            DeskOutput::Carry(errand) => Output::Carry(errand),
            DeskOutput::Release(frame) => Output::Release(frame),
        }));
    }

    /// The agent's own id of a session, for those who carry errands to its server.
    pub fn named_on_server(&self, id: &SessionId) -> Option<(Harness, Arc<str>)> {
        let tracked = self.roster.get(id)?;
        Some((tracked.harness, tracked.vendor_id.clone()))
    }
}

/// `CLAUDE_CODE_ENTRYPOINT` of a session that somebody sits in front of.
const TERMINAL: &str = "cli";

enum Plan {
    Task(Task),
    Answer(Box<Answering>),
}
