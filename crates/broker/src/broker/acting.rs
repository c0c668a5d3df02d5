//! What the operator does to sessions: the broker's half that asks the desk.

use std::sync::Arc;

use qd_harness::Harness;
use qd_harness::waiting_hook::{Asked, Heard, WaitingHook, Wants};
use qd_hook_wire::{FrameId, HookReply};
use qd_session::decision::{Command, Decision, Link, Record};
use qd_session::event::{Entry, Event};
use qd_session::id::{AgentId, DecisionId, SessionId, Way};
use qd_session::machine::Tools;
use qd_session::moment::Timestamp;
use qd_session::monitor::{AgentEvent, Fact};
use qd_session::policy::{Layer, Preset};

use super::{Broker, Output};
use crate::card::RECORDED;
use crate::desk::{
    Answering, Carried, Commanding, Declined, DeskOutput, Expecting, Reach, Taken, Task,
};
use crate::rules;
use crate::viewing::Viewing;

/// How long the hook of a request may keep its agent from asking in the terminal, while the
/// operator looks at its card: those of Claude Code's subagents are waited for before any dialog
/// shows.
const HOLD_MS: u64 = 30_000;

/// How long a hook that only a rule may answer stays for it. Files of a repository are read
/// meanwhile, which takes a millisecond; a call of some megabytes takes a while to be judged on a
/// busy machine, and must not get past a rule because of it. Its agent waits; Gemini CLI does so
/// for 15 seconds.
const RULING_MS: u64 = 10_000;

/// A forwarder whose frame the journal has, and that stays.
#[derive(Debug, Clone, Copy)]
pub struct Staying<'a> {
    pub harness: Harness,
    pub frame: FrameId,
    /// How the agent was started, in its own word; none where it does not say.
    pub entry: Option<&'a str>,
    /// The process that ran the hook.
    pub pid: Option<u64>,
    pub heard: Heard<'a>,
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

    /// Where several processes have the session open, a main agent is known by its process.
    fn name_terminal(&self, id: &SessionId, pid: u64, asked: &mut Asked) {
        let Some(tracked) = self.roster.get(id).filter(|_| asked.agent.is_main()) else { return };
        if tracked.session.peek().monitor().terminals().any(|other| other == pid) {
            asked.agent = AgentId::terminal(pid);
        }
    }

    /// A forwarder waits from now on, or again.
    pub fn arrived(&mut self, now: Timestamp, staying: &Staying<'_>) -> Vec<Output> {
        let mut outputs = Vec::new();
        let Staying { harness, frame, entry, pid, heard } = *staying;
        let hook = WaitingHook::read(harness, heard);
        let found = hook.and_then(|hook| {
            let id = self.found.get(&(harness, hook.session.clone()))?.clone();
            let mut wants = hook.wants;
            if let (Wants::Answer(asked), Some(pid)) = (&mut wants, pid) {
                self.name_terminal(&id, pid, asked);
            }
            Some((id, wants))
        });
        let stay = found.as_ref().map_or(Stay::No, |(id, wants)| self.stay(id, wants, entry));
        let Some((id, wants)) = found.filter(|_| stay != Stay::No) else {
            outputs.push(Output::Release(frame));
            return outputs;
        };
        match stay {
            Stay::ForRule => {
                self.ruling.let_pass(frame);
                self.desk.hold_until(now.plus_ms(RULING_MS), frame);
            }
            Stay::AWhile => self.desk.hide_dialog_until(now.plus_ms(HOLD_MS), frame),
            Stay::ForAnswer | Stay::No => {}
        }
        let mut desk_outputs = Vec::new();
        match wants {
            Wants::Verdict(asked) => {
                let cwd = self.folder(&id);
                match self.desk.open_unasked(now, frame, &id, harness, asked) {
                    Some(key) => self.judge_later(now, key, cwd.as_ref(), &mut outputs),
                    None => outputs.push(Output::Release(frame)),
                }
                return outputs;
            }
            Wants::Answer(_) | Wants::Prompt => {
                self.desk.arrived(frame, &id, wants, &mut desk_outputs);
            }
        }
        self.pass_on(desk_outputs, &mut outputs);
        self.rule_on(now, &id, &mut outputs);
        self.show(now, &id, &mut outputs);
        outputs
    }

    /// How long it does the agent no harm to wait. Claude Code without a terminal denies what no
    /// hook answers: it waits for a person only where its project has it so. The dialogs of its
    /// subagents, and all of Codex, come only after the hook, which hides them from whoever sits in
    /// front of the terminal: it stays while the operator looks at the card, and not for long. On
    /// Codex's daemon there is a better way. A rule answers them all.
    fn stay(&self, id: &SessionId, wants: &Wants, entry: Option<&str>) -> Stay {
        let Some(tracked) = self.roster.get(id) else { return Stay::No };
        let in_terminal = entry.is_none_or(|entry| entry == TERMINAL);
        // What we drive asks its driver.
        if tracked.reach == Reach::Driver {
            return Stay::No;
        }
        match (tracked.harness, wants) {
            (Harness::ClaudeCode, Wants::Prompt) if in_terminal => Stay::ForAnswer,
            (Harness::ClaudeCode, Wants::Answer(_)) if !in_terminal => {
                let (layer, cwd) = (tracked.session.layer(), tracked.session.folder());
                match self.ruling.effective_in(cwd.as_deref(), &layer).waits_headless() {
                    true => Stay::ForAnswer,
                    false => Stay::ForRule,
                }
            }
            (Harness::ClaudeCode, Wants::Answer(asked)) => match asked.agent.is_main() {
                true => Stay::ForAnswer,
                false if self.viewing.has(id) => Stay::AWhile,
                false => Stay::ForRule,
            },
            (Harness::Codex, Wants::Answer(_)) => match (tracked.reach, self.viewing.has(id)) {
                (Reach::Server | Reach::Driver | Reach::Recording, _) => Stay::No,
                (Reach::Nowhere, true) => Stay::AWhile,
                (Reach::Nowhere, false) => Stay::ForRule,
            },
            (Harness::GeminiCli, Wants::Verdict(_)) => Stay::ForRule,
            (
                Harness::ClaudeCode
                | Harness::Codex
                | Harness::GeminiCli
                | Harness::KiloCode
                | Harness::Cline
                | Harness::Opencode
                | Harness::Acp
                | Harness::Native,
                _,
            ) => Stay::No,
        }
    }

    /// Lets those go that have kept their agents from asking elsewhere for long enough.
    pub(super) fn release_due(&mut self, now: Timestamp, outputs: &mut Vec<Output>) {
        let mut desk_outputs = Vec::new();
        let sessions = self.desk.release_due(now, &mut desk_outputs);
        self.pass_on(desk_outputs, outputs);
        sessions.iter().for_each(|id| self.show(now, id, outputs));
    }

    /// Sends answers again whose fate nobody knows.
    pub(super) fn send_again(&mut self, now: Timestamp, outputs: &mut Vec<Output>) {
        let mut desk_outputs = Vec::new();
        let reach =
            |id: &SessionId| self.roster.get(id).map_or(Reach::Nowhere, |tracked| tracked.reach);
        self.desk.take_up_due(now, reach, &mut desk_outputs);
        self.pass_on(desk_outputs, outputs);
    }

    /// A session is in reach: what was answered and may not have arrived is sent once more. Codex's
    /// hooks go, as they would have if its daemon had been known when they came.
    pub(super) fn take_up(
        &mut self,
        now: Timestamp,
        id: &SessionId,
        reach: Reach,
        outputs: &mut Vec<Output>,
    ) {
        let mut desk_outputs = Vec::new();
        let harness = self.roster.get(id).map(|tracked| tracked.harness);
        if (harness, reach) == (Some(Harness::Codex), Reach::Server) {
            self.desk.release_hooks(now, id, &mut desk_outputs);
        }
        self.desk.take_up_all(now, id, reach, &mut desk_outputs);
        self.pass_on(desk_outputs, outputs);
    }

    /// After a start, once all sessions and decisions are there: what was answered and is not
    /// waited for any more is closed.
    pub fn close_past(&mut self, now: Timestamp) -> Vec<Output> {
        let (mut desk_outputs, mut outputs) = (Vec::new(), Vec::new());
        let is_driven = |id: &SessionId| {
            self.roster.get(id).is_some_and(|tracked| tracked.reach == Reach::Driver)
        };
        self.desk.close_past(now, is_driven, &mut desk_outputs);
        self.pass_on(desk_outputs, &mut outputs);
        outputs
    }

    /// A forwarder that an answer did not reach is there again: it gets it now.
    pub fn came_back(&mut self, frame: FrameId) -> Vec<Output> {
        let (mut desk_outputs, mut outputs) = (Vec::new(), Vec::new());
        self.desk.came_back(frame, &mut desk_outputs);
        self.pass_on(desk_outputs, &mut outputs);
        outputs
    }

    /// A forwarder has gone, by itself or before an answer reached it.
    pub fn left(&mut self, now: Timestamp, frame: FrameId) -> Vec<Output> {
        let mut outputs = Vec::new();
        self.ruling.forget(frame);
        if let Some(session) = self.desk.left(now, frame) {
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
        if let Some(session) = &session {
            self.note_watcher(session);
        }
        let (mut desk_outputs, mut outputs) = (Vec::new(), Vec::new());
        let taken = self.desk.answer(now, answering, reach, &mut desk_outputs);
        self.pass_on(desk_outputs, &mut outputs);
        self.carry_to_machines(now, &mut outputs);
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
        if self.reach(&commanding.session) == Reach::Driver {
            return self.command_driven(now, commanding);
        }
        let session = commanding.session.clone();
        let (mut desk_outputs, mut outputs) = (Vec::new(), Vec::new());
        let taken = match self.task(&commanding) {
            Ok(Plan::Task(task)) => self.desk.command(now, commanding, task, &mut desk_outputs),
            Ok(Plan::Answer(answering)) => {
                self.desk.answer(now, *answering, self.reach(&session), &mut desk_outputs)
            }
            Ok(Plan::Preset(preset, task)) => {
                let taken = self.desk.command(now, commanding, *task, &mut desk_outputs);
                // Its record comes first in the chain.
                self.pass_on(std::mem::take(&mut desk_outputs), &mut outputs);
                if taken.is_ok() {
                    self.choose_preset(now, &session, preset, &mut outputs);
                }
                taken
            }
            Err(declined) => Err(declined),
        };
        self.pass_on(desk_outputs, &mut outputs);
        self.show(now, &session, &mut outputs);
        (taken, outputs)
    }

    /// How a command is carried out, or why it cannot be.
    fn task(&self, commanding: &Commanding) -> Result<Plan, Declined> {
        match &commanding.command {
            Command::Policy { preset } => {
                self.may_have(&commanding.session, *preset)?;
                Ok(Plan::Preset(*preset, Box::new(Task::Keep)))
            }
            Command::Yolo { on } => self.yolo(&commanding.session, *on),
            Command::Prompt { .. }
            | Command::Interrupt
            | Command::Stop
            | Command::Focus
            | Command::Resume
            | Command::Pause
            | Command::Retry { .. }
            | Command::Dismiss => {
                self.errand(commanding).map_err(|why| Declined::Impossible { why })
            }
        }
    }

    /// A session's preset is kept here, and holds where its requests can be answered.
    fn may_have(&self, session: &SessionId, preset: Option<Preset>) -> Result<(), Declined> {
        let unknown = || Declined::Impossible { why: "no such session is known".to_owned() };
        let tracked = self.roster.get(session).ok_or_else(unknown)?;
        let (layer, cwd) = (tracked.session.layer(), tracked.session.folder());
        let effective = self.ruling.effective_in(cwd.as_deref(), &layer);
        match preset == Some(Preset::Yolo) && effective.is_yolo_forbidden() {
            true => Err(Declined::Forbidden { why: YOLO_FORBIDDEN.to_owned() }),
            false => Ok(()),
        }
    }

    /// Codex on its daemon has a switch of its own; others are answered yes. Off is off: neither
    /// the client nor our rules let everything happen after it.
    fn yolo(&self, session: &SessionId, on: bool) -> Result<Plan, Declined> {
        let unknown = || Declined::Impossible { why: "no such session is known".to_owned() };
        let tracked = self.roster.get(session).ok_or_else(unknown)?;
        let (harness, session) = (tracked.harness, session.clone());
        let has_switch = harness == Harness::Codex && tracked.reach == Reach::Server;
        if on {
            self.may_have(&session, Some(Preset::Yolo))?;
            if let Some(why) = self.capabilities(tracked).why.remove("canYolo") {
                return Err(Declined::Impossible { why });
            }
            return Ok(match has_switch {
                true => Plan::Task(Task::Yolo { harness, session }),
                false => Plan::Preset(Some(Preset::Yolo), Box::new(Task::Keep)),
            });
        }
        let known = tracked.session.peek();
        let own = known.preset();
        let (as_session, as_project) = (rules::layer(&known), Layer::default());
        let mode = |layer| self.ruling.effective(&known, layer).mode();
        let preset = match own {
            Some(Preset::Manual | Preset::Careful | Preset::AutoEdit) => own,
            // Where its project has it on, off is a choice of the session's own.
            Some(Preset::Yolo) | None => {
                (mode(&as_project) == Preset::Yolo).then_some(Preset::Manual)
            }
        };
        let before = known.asked_before().map(str::to_owned);
        let expecting = match before.is_some() || mode(&as_session) == Preset::Yolo {
            true => Expecting::Either,
            false => Expecting::Yolo,
        };
        let task = match has_switch {
            true => Task::EndYolo { harness, session, before, expecting },
            false => Task::Keep,
        };
        Ok(Plan::Preset(preset, Box::new(task)))
    }

    fn errand(&self, commanding: &Commanding) -> Result<Plan, String> {
        let session = &commanding.session;
        let tracked = self.roster.get(session).ok_or("no such session is known")?;
        if tracked.reach == Reach::Recording {
            return Err(RECORDED.to_owned());
        }
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
                let mut held = self.desk.of_session(session);
                let (request, _) =
                    held.find(|(_, open)| open.can_end_turn()).ok_or("nothing of it waits here")?;
                let answer = Decision::Deny { message: None, interrupt: true };
                let Commanding { decision, by, key, .. } = commanding.clone();
                let request = request.clone();
                let (rule, revision) = (None, None);
                let answering = Answering { decision, request, by, rule, answer, revision, key };
                Ok(Plan::Answer(Box::new(answering)))
            }
            Command::Stop => {
                if let Some(why) = refused("canStop") {
                    return Err(why);
                }
                let mut carriers = tracked.session.carriers();
                let process = carriers.next().ok_or("no process of it is known")?.clone();
                Ok(Plan::Task(Task::End { process }))
            }
            Command::Focus => {
                let mut carriers = tracked.session.carriers();
                let pane = carriers.find_map(|carrier| self.terminals.get(carrier)?.tmux.clone());
                let pane = pane.ok_or("it is in no tmux pane that is known")?;
                Ok(Plan::Task(Task::Focus { pane }))
            }
            Command::Resume => Err("go on with it in a terminal: `qd resume`".to_owned()),
            Command::Dismiss | Command::Yolo { .. } | Command::Policy { .. } => {
                Err("that is not carried anywhere".to_owned())
            }
            Command::Pause | Command::Retry { .. } => Err(NOT_OURS.to_owned()),
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
        let session = session.filter(|id| self.roster.contains_key(id));
        if let (Some(id), Carried::Switched { before }) = (&session, carried) {
            let event = Event::ClientYolo { before: before.clone() };
            self.journal(id, Entry::new(id.clone(), now, event), &mut outputs);
        }
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

    /// What the operator looks at has perhaps changed. Dialogs that were hidden for a card which is
    /// not looked at any more are let through.
    pub fn set_viewing(&mut self, now: Timestamp, viewing: Viewing) -> Vec<Output> {
        self.viewing = viewing;
        let (mut desk_outputs, mut outputs) = (Vec::new(), Vec::new());
        let viewing = &self.viewing;
        let sessions =
            self.desk.show_dialogs(now, |session| !viewing.has(session), &mut desk_outputs);
        self.pass_on(desk_outputs, &mut outputs);
        sessions.iter().for_each(|session| self.show(now, session, &mut outputs));
        outputs
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
        let session = tracked.session.peek();
        self.desk.look(now, tracked.harness, &session, &mut desk_outputs);
        let is_ours = session.machine().is_some_and(|it| it.setup().tools == Tools::Ours);
        drop(session);
        self.pass_on(desk_outputs, outputs);
        self.look_into(id, outputs);
        match is_ours {
            // Rules were asked before it asked.
            true => self.desk.judged_all(id),
            false => self.rule_on(now, id, outputs),
        }
    }

    /// Codex's daemon tells everybody that a thread waits, and what for only those who ask.
    pub(super) fn look_into(&mut self, id: &SessionId, outputs: &mut Vec<Output>) {
        let on_daemon = self.roster.get(id).is_some_and(|tracked| {
            tracked.harness == Harness::Codex && tracked.reach == Reach::Server
        });
        if on_daemon {
            let agents = self.desk.take_unknown(id).into_iter();
            outputs.extend(agents.map(|agent| Output::LookInto { session: id.clone(), agent }));
        }
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

    pub(super) fn pass_on(&mut self, desk_outputs: Vec<DeskOutput>, outputs: &mut Vec<Output>) {
        for output in desk_outputs {
            match output {
                DeskOutput::Record(record) => outputs.push(Output::Record(record)),
                DeskOutput::Carry(errand) if matches!(errand.task, Task::Drive { .. }) => {
                    self.drives.errands.push(*errand);
                }
                DeskOutput::Carry(errand) => outputs.push(Output::Carry(errand)),
                DeskOutput::Release(frame) => outputs.push(Output::Release(frame)),
            }
        }
    }

    /// The agent's own id of a session, for those who carry errands to its server.
    pub fn named_on_server(&self, id: &SessionId) -> Option<(Harness, Arc<str>)> {
        let tracked = self.roster.get(id)?;
        Some((tracked.harness, tracked.vendor_id.clone()))
    }
}

const NOT_OURS: &str = "somebody else started it: only its own client can do that";

/// `CLAUDE_CODE_ENTRYPOINT` of a session that somebody sits in front of.
const TERMINAL: &str = "cli";

const YOLO_FORBIDDEN: &str = "a file of its project forbids YOLO";

enum Plan {
    Task(Task),
    Answer(Box<Answering>),
    /// It is kept here, and what else there is to do.
    Preset(Option<Preset>, Box<Task>),
}

/// How long a forwarder may stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stay {
    No,
    /// While rules are asked.
    ForRule,
    /// [`HOLD_MS`].
    AWhile,
    /// Until it is answered.
    ForAnswer,
}
