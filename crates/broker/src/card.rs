//! A card: one session as a reader outside sees it. The board, the command line and the stream
//! show this and nothing else.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;

use qd_harness::Harness;
use qd_harness::usage::Sum;
use qd_session::Session;
use qd_session::decision::{By, Decided, Decision, Scope, Standing, Subject};
use qd_session::id::{ProcessKey, RequestKey, RuleName, SessionId};
use qd_session::moment::{Source, Timestamp};
use qd_session::monitor::{Activity, Latest, Monitor, Open, RequestKind, Stage};
use qd_session::operator::layer::{self, Icon, Layers};
use qd_session::operator::{AgentState, SubState};
use qd_session::policy::{Origin, Preset};
use qd_session::view::monitor::{MonitorView, view, view_driven};
use ring::digest;
use serde::Serialize;

use crate::budgets::{self, Work};
use crate::desk::{Capabilities, Desk, OpenRequest, Reach, is_cut};
use crate::driving::{self, DriveView};
use crate::rules::{self, Ruling};
use crate::session_key::session_id;
use crate::terminal::Terminal;
use crate::vital::VitalSigns;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Card {
    pub session_id: SessionId,
    pub harness: Harness,
    /// The agent's own id for the session.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub vendor_id: Arc<str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transcript: Option<String>,
    /// The session that this one went on from: resuming may fork.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<SessionId>,
    /// The client's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// How that stands to the versions that were tested, for a person: `tested`, `newer than tested
    /// (2.1.325 to 2.1.326)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version_note: Option<String>,
    /// The client's permission mode, in its own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// What is answered for it without the operator; none where all is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicyView>,
    /// How to go on with it in a terminal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume_command: Option<String>,
    /// The process that carries it, where one is known.
    #[serde(rename = "where", skip_serializing_if = "Option::is_none")]
    pub place: Option<ProcessView>,
    /// The other processes that have the same session open.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schema(required = false))]
    pub also_open_in: Vec<ProcessView>,
    pub agent_state: AgentState,
    /// A domain layer's; else the sub-state has one of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub icon: Option<Icon>,
    pub monitor_view: MonitorView,
    pub usage: UsageView,
    /// What can be done with it from here.
    pub capabilities: Capabilities,
    /// What its agents wait for a person for.
    pub requests: Vec<RequestView>,
    pub subagents: Vec<SubagentView>,
    /// The operator has put it into History.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "schema", schema(required = false))]
    pub archived: bool,
    /// We started it, and its state is known, not believed.
    pub driven: bool,
    /// Of a driven session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drive: Option<DriveView>,
    pub started_at: Timestamp,
    pub last_signal: Timestamp,
    /// Signals nobody understood.
    pub unrecognised: u32,
}

/// What holds for a session by the operator's rules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PolicyView {
    /// What is allowed where no rule says anything, as it is effective: a repository may lower it.
    pub preset: Preset,
    /// Whose preset it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Origin>,
    /// Rules that hold, of all layers.
    pub rules: usize,
    /// A file of the project says that it may not run without asking.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "schema", schema(required = false))]
    pub yolo_forbidden: bool,
}

/// Where a session runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ProcessView {
    pub pid: u32,
    /// The terminal that shows it: `/dev/pts/3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tty: Option<String>,
    /// The pane of tmux it sits in: `work:2.1`, or `%3` where the name is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tmux: Option<String>,
    /// What draws that terminal, where it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct UsageView {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// What it has cost so far, where its files tell.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub spent: Option<SpentView>,
}

/// Tokens and money, under the names that the usage report has. A session's usage holds all of
/// it or nothing, so nothing of it is promised.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SpentView {
    #[cfg_attr(feature = "schema", schema(required = false))]
    pub input_tokens: u64,
    #[cfg_attr(feature = "schema", schema(required = false))]
    pub output_tokens: u64,
    #[cfg_attr(feature = "schema", schema(required = false))]
    pub cache_creation_tokens: u64,
    #[cfg_attr(feature = "schema", schema(required = false))]
    pub cache_read_tokens: u64,
    #[cfg_attr(feature = "schema", schema(required = false))]
    pub total_tokens: u64,
    #[cfg_attr(feature = "schema", schema(required = false))]
    pub cost_usd: f64,
    /// A part of the money is a guess: the price of a model is not known.
    #[cfg_attr(feature = "schema", schema(required = false))]
    pub estimated: bool,
}

/// What a model said that it used, for a session of our own.
fn used_by(session: &Session) -> Option<SpentView> {
    let used = session.logbook()?.used();
    (used.tokens() > 0).then(|| SpentView {
        input_tokens: used.input_tokens,
        output_tokens: used.output_tokens,
        cache_creation_tokens: used.cache_written_tokens,
        cache_read_tokens: used.cache_read_tokens,
        total_tokens: used.tokens(),
        cost_usd: used.micro_usd as f64 / 1e6,
        estimated: false,
    })
}

impl From<&Sum> for SpentView {
    fn from(sum: &Sum) -> Self {
        Self {
            input_tokens: sum.tokens.input,
            output_tokens: sum.tokens.output,
            cache_creation_tokens: sum.tokens.cache_written(),
            cache_read_tokens: sum.tokens.cache_read,
            total_tokens: sum.tokens.total(),
            cost_usd: sum.dollars,
            estimated: sum.is_estimate,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RequestView {
    /// The public id, by which it is answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<RequestKey>,
    /// The agent's own.
    pub request_id: String,
    pub kind: RequestKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<serde_json::Value>))]
    pub input: Option<serde_json::Value>,
    /// The daemon has not all of the input or the text, so that nobody can read here what would run.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "schema", schema(required = false))]
    pub cut: bool,
    /// Changes with the tool, the text and the input. An answer that names another one is refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    pub since: Timestamp,
    /// How an answer would reach the agent: `hook`, `codex`, `opencode`; `recording`, where there
    /// is none to be reached. None: not from here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub way: Option<&'static str>,
    /// Why it cannot be answered from here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why_not: Option<String>,
    /// Its agent shows no dialog of its own until then, because it waits for an answer from here; it
    /// does so earlier if nobody looks at this card any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden_until: Option<Timestamp>,
    /// Whether a denial from here may say why.
    pub takes_words: bool,
    /// Whether it can be allowed from here with another input than the one it asked with.
    pub takes_changes: bool,
    /// How far beyond this once it can be allowed from here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schema(required = false))]
    pub scopes: Vec<Scope>,
    /// What "always" would keep, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schema(required = false))]
    pub suggestions: Vec<String>,
    /// The modes that may follow a plan, in the client's words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", schema(required = false))]
    pub modes: Vec<&'static str>,
    /// The answer under way, or the last one that did not arrive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnswerView>,
}

/// How far an answer has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum AnswerState {
    /// Written down, and not taken yet.
    Sending,
    /// The agent's side has it; the request closes when the agent goes on.
    Delivered,
    /// It did not arrive, and the request is open again.
    Failed,
    /// Nobody knows whether it arrived.
    Unclear,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AnswerView {
    pub decision: Decision,
    pub state: AnswerState,
    pub by: By,
    /// The rule that gave it, if no person did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<RuleName>,
    pub at: Timestamp,
    /// Why it did not arrive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SubagentView {
    pub agent_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    pub activity: &'static str,
}

impl Card {
    /// The card of a session; none for one that does not exist yet.
    pub fn of(now: Timestamp, known: &Known<'_>, around: &Surroundings<'_>) -> Option<Self> {
        let Surroundings { layers, terminals, desk, ruling, vitals, today } = around;
        let Known { session, harness, vendor_id, spent, reach, work } = *known;
        let monitor = session.monitor();
        let about = monitor.about();
        let (ruled, _) = desk.ruled(now, session.id(), ruling.may_answer(session));
        let mut agent_state = session.resolve_but(now, &ruled)?;
        ruling.call(
            now,
            session,
            &budgets::spent(now, session, spent, *today, work),
            work,
            &mut agent_state,
        );
        agent_state.heed(now, &vitals.of(session), vitals.stalled_after_ms);
        let text = |part: Option<&Option<Box<Latest<Arc<str>>>>>| {
            part.and_then(Option::as_ref).map(|known| known.value.to_string())
        };
        let usage = about.and_then(|about| about.usage.as_ref()).map(|usage| &usage.value);
        let cwd = text(about.map(|about| &about.cwd));
        let version = text(about.map(|about| &about.version));
        let facts = layer::Known {
            state: &agent_state,
            monitor,
            harness: harness.name(),
            project: cwd.as_deref(),
        };
        let mut holders = holders(monitor, terminals);
        let stepped = session.machine().map_or(Timestamp::ZERO, |machine| machine.since());
        let agent_state_is_ended = agent_state.state == SubState::SESSION_ENDED;
        let icon = layers.dress(&facts).and_then(|dress| dress.put_on(&mut agent_state));
        Some(Self {
            session_id: session.id().clone(),
            harness,
            vendor_id: vendor_id.clone(),
            title: monitor.title().map(str::to_owned),
            cwd,
            branch: text(about.map(|about| &about.branch)),
            transcript: text(about.map(|about| &about.transcript)),
            forked_from: text(about.map(|about| &about.forked_from))
                .map(|vendor_id| session_id(harness, &vendor_id)),
            version_note: version.as_deref().and_then(|version| harness.tested().note(version)),
            version,
            mode: text(about.map(|about| &about.mode)),
            policy: PolicyView::of(session, ruling),
            resume_command: match reach {
                Reach::Nowhere | Reach::Server | Reach::Driver => harness.resume_command(vendor_id),
                Reach::Recording => None,
            },
            place: holders.pop_front(),
            also_open_in: holders.into(),
            agent_state,
            icon,
            monitor_view: session.machine().map_or_else(|| view(monitor), view_driven),
            usage: UsageView {
                model: usage.and_then(|usage| usage.model.as_deref()).map(str::to_owned),
                context_tokens: usage.and_then(|usage| usage.context_tokens),
                context_window: usage.and_then(|usage| usage.context_window),
                spent: spent.map(SpentView::from).or_else(|| used_by(session)),
            },
            capabilities: around.capabilities(
                session,
                harness,
                vendor_id,
                reach,
                agent_state_is_ended,
            ),
            requests: session
                .open_requests()
                .into_iter()
                .filter(|open| open.stage == Stage::Waiting && !ruled.contains(open.id))
                .map(|open| RequestView::of(&open, desk, session.id(), harness, reach))
                .collect(),
            subagents: monitor
                .working_subagents()
                .into_iter()
                .map(|agent| SubagentView {
                    agent_id: agent.id.as_str().to_owned(),
                    kind: agent
                        .subagent
                        .as_ref()
                        .and_then(|known| known.value.as_deref())
                        .map(str::to_owned),
                    activity: activity_name(&agent.activity(monitor.last_end())),
                })
                .collect(),
            archived: session.is_archived(),
            driven: session.machine().is_some(),
            drive: DriveView::of(session, ruling),
            started_at: started_at(monitor),
            last_signal: monitor.last_signal().max(stepped),
            unrecognised: monitor.unrecognised(),
        })
    }

    /// When it ended, if it did.
    pub fn ended(&self) -> Option<Timestamp> {
        (self.agent_state.state == SubState::SESSION_ENDED).then_some(self.agent_state.since)
    }

    /// Of all that a reader would look up for: two cards that differ in any of it have different
    /// ones, also where an agent tries to make them alike.
    pub fn fingerprint(&self) -> Fingerprint {
        let Self {
            session_id,
            harness,
            vendor_id,
            title,
            cwd,
            branch,
            transcript,
            forked_from,
            version,
            version_note: _,
            mode,
            policy,
            resume_command: _,
            place,
            also_open_in,
            agent_state,
            icon,
            monitor_view,
            usage,
            capabilities,
            requests,
            subagents,
            archived,
            driven,
            drive,
            started_at: _,
            last_signal: _,
            unrecognised,
        } = self;
        let AgentState {
            group,
            state,
            label,
            core_label,
            urgency,
            confidence,
            source,
            rule,
            context,
            since,
            evidence: _,
        } = agent_state;
        let who = (session_id, harness, vendor_id, title, cwd, branch, transcript, forked_from);
        let what = (mode, policy, place, icon, monitor_view, usage, capabilities, requests);
        let more = (also_open_in, subagents, archived, driven, drive, version, unrecognised);
        let state = (group, state, label, core_label, urgency);
        let why = (confidence, source, rule, context, since);
        Fingerprint::of(&(who, what, more, state, why))
    }
}

/// Enough of a hash of a value to tell it from every other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint([u8; 16]);

impl Fingerprint {
    fn of(value: &impl Serialize) -> Self {
        let mut hash = Hashing(digest::Context::new(&digest::SHA256));
        serde_json::to_writer(&mut hash, value).expect("a card is JSON, and hashing does not fail");
        let mut kept = [0; 16];
        kept.copy_from_slice(&hash.0.finish().as_ref()[..16]);
        Self(kept)
    }
}

struct Hashing(digest::Context);

impl io::Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The processes that have the session open, first the one whose state is shown.
fn holders(monitor: &Monitor, terminals: &BTreeMap<ProcessKey, Terminal>) -> VecDeque<ProcessView> {
    let known = monitor.carriers().filter_map(|key| ProcessView::of(key, terminals.get(key)));
    let mut holders: VecDeque<ProcessView> = known.collect();
    let asks = monitor.open_requests().find(|open| open.stage == Stage::Waiting);
    let shown = asks.map_or(&monitor.main_agent().id, |open| open.agent);
    let is_shown = |holder: &ProcessView| {
        let pid = u64::from(holder.pid);
        shown.terminal_pid().map_or(monitor.terminals().all(|other| other != pid), |it| it == pid)
    };
    if let Some(at) = holders.iter().position(is_shown) {
        holders.swap(0, at);
    }
    holders
}

impl ProcessView {
    fn of(key: &ProcessKey, terminal: Option<&Terminal>) -> Option<Self> {
        let (pid, _) = key.as_str().split_once(':')?;
        let Terminal { tty, tmux, program } = terminal.cloned().unwrap_or_default();
        let tmux = tmux.map(|pane| pane.name.unwrap_or(pane.id));
        Some(Self { pid: pid.parse().ok()?, tty, tmux, program })
    }
}

/// A session, and what is known of it that it does not tell itself.
#[derive(Debug)]
pub struct Known<'a> {
    pub session: &'a Session,
    pub harness: Harness,
    pub vendor_id: &'a Arc<str>,
    /// What it has cost so far.
    pub spent: Option<&'a Sum>,
    pub reach: Reach,
    pub work: &'a Work,
}

/// What a card shows beside its session.
#[derive(Debug)]
pub struct Surroundings<'a> {
    pub layers: &'a Layers,
    pub terminals: &'a BTreeMap<ProcessKey, Terminal>,
    pub desk: &'a Desk,
    pub ruling: &'a Ruling,
    pub vitals: &'a VitalSigns,
    /// What all sessions have cost on the operator's day.
    pub today: Option<&'a Sum>,
}

impl Surroundings<'_> {
    /// What can be done with a session, and why not.
    pub fn capabilities(
        &self,
        session: &Session,
        harness: Harness,
        vendor_id: &str,
        reach: Reach,
        ended: bool,
    ) -> Capabilities {
        let mut can = match session.machine() {
            Some(machine) => driving::capabilities(harness, session, machine),
            None => self.capabilities_of_others(session, harness, vendor_id, reach, ended),
        };
        match self.no_archive(session, reach, ended) {
            None => can.can_archive = true,
            Some(why) => can.lacks("canArchive", why),
        }
        can
    }

    /// Why a session is not put into History: something of it is known to live.
    fn no_archive(&self, session: &Session, reach: Reach, ended: bool) -> Option<&'static str> {
        let id = session.id();
        if ended {
            None
        } else if session.machine().is_some() {
            Some("it has not ended; stop it first")
        } else if session.monitor().carriers().next().is_some() {
            Some("its process still runs; dismiss it instead")
        } else if reach == Reach::Server {
            Some("its server still has it; dismiss it instead")
        } else if self.desk.prompter(id).is_some()
            || self.desk.of_session(id).any(|(_, open)| open.way(reach).is_some())
        {
            Some("it can be answered from here; dismiss it instead")
        } else {
            None
        }
    }

    /// What can be done with a session that somebody else started.
    fn capabilities_of_others(
        &self,
        session: &Session,
        harness: Harness,
        vendor_id: &str,
        reach: Reach,
        ended: bool,
    ) -> Capabilities {
        let id = session.id();
        let on_server = reach == Reach::Server && !ended;
        let mut can = Capabilities::default();
        let mut asked = [false; 2];
        for (_, open) in self.desk.of_session(id) {
            let is_question = open.kind() == RequestKind::Question;
            asked[usize::from(is_question)] = true;
            if open.way(reach).is_some() {
                can.can_approve |= !is_question;
                can.can_answer |= is_question;
            }
            can.can_interrupt |= open.can_end_turn() && harness == Harness::ClaudeCode;
        }
        let in_terminal = "answer it where it was started";
        if !can.can_approve {
            can.lacks("canApprove", if asked[0] { in_terminal } else { "it asks for no approval" });
        }
        if !can.can_answer {
            can.lacks("canAnswer", if asked[1] { in_terminal } else { "it asks no question" });
        }
        match self.no_yolo(session, harness, reach, ended) {
            None => can.can_yolo = true,
            Some(why) => can.lacks("canYolo", why),
        }
        if reach == Reach::Recording {
            for name in ["canPrompt", "canInterrupt", "canStop", "canResume", "canFocus"] {
                can.lacks(name, RECORDED);
            }
            return can;
        }
        can.can_prompt = self.desk.prompter(id).is_some() || on_server;
        if !can.can_prompt {
            can.lacks("canPrompt", if ended { "it has ended" } else { NO_PROMPT });
        }
        can.can_interrupt |= on_server;
        if !can.can_interrupt {
            can.lacks("canInterrupt", if ended { "it has ended" } else { NO_INTERRUPT });
        }
        // The server's process carries other sessions, too.
        let alone = !matches!(harness, Harness::Opencode | Harness::KiloCode) && !on_server;
        can.can_stop = alone && !ended && session.monitor().carriers().next().is_some();
        if !can.can_stop {
            let why = match (ended, alone) {
                (true, _) => "it has ended",
                (false, true) => "no process of it is known",
                (false, false) => "its process carries other sessions, too; interrupt it",
            };
            can.lacks("canStop", why);
        }
        can.can_resume = ended && harness.resume_command(vendor_id).is_some();
        if !can.can_resume {
            can.lacks("canResume", if ended { NO_RESUME } else { "it has not ended" });
        }
        for name in ["canPause", "canRetry"] {
            can.lacks(name, "somebody else started it: only its own client can do that");
        }
        let panes = session.monitor().carriers().filter_map(|carrier| self.terminals.get(carrier));
        can.can_focus = !ended && panes.into_iter().any(|terminal| terminal.tmux.is_some());
        if !can.can_focus {
            can.lacks("canFocus", "it is in no tmux pane that is known");
        }
        can
    }
}

impl Surroundings<'_> {
    /// Why a session cannot be let run without asking. Where its client has no such switch its
    /// requests are answered yes, so there must be a way for answers.
    fn no_yolo(
        &self,
        session: &Session,
        harness: Harness,
        reach: Reach,
        ended: bool,
    ) -> Option<&'static str> {
        if ended {
            return Some("it has ended");
        }
        let layer = rules::layer(session);
        if self.ruling.effective(session, &layer).is_yolo_forbidden() {
            return Some("a file of its project forbids it");
        }
        match harness {
            Harness::ClaudeCode | Harness::Codex | Harness::Opencode | Harness::KiloCode
                if reach != Reach::Nowhere =>
            {
                None
            }
            Harness::ClaudeCode | Harness::Codex => {
                let evidence = session.monitor().evidence();
                let has_hooks = evidence.iter().any(|seen| seen.source == Source::Hook);
                (!has_hooks).then_some("no hook of it has been heard: see `qd hooks status`")
            }
            Harness::Opencode | Harness::KiloCode => Some("its server is not in reach"),
            Harness::GeminiCli | Harness::Cline | Harness::Acp | Harness::Native => {
                Some("its client takes no approval from outside")
            }
        }
    }
}

impl PolicyView {
    fn of(session: &Session, ruling: &Ruling) -> Option<Self> {
        let layer = rules::layer(session);
        let effective = ruling.effective(session, &layer);
        let rules = effective.rules().count();
        let (preset, from) = (effective.mode(), effective.mode_origin());
        let yolo_forbidden = effective.is_yolo_forbidden();
        let says_nothing =
            rules == 0 && preset == Preset::Manual && from.is_none() && !yolo_forbidden;
        (!says_nothing).then_some(Self { preset, from, rules, yolo_forbidden })
    }
}

/// What cannot be done with a session that is played from a recording.
pub(crate) const RECORDED: &str = "this is a recording: there is no agent to be told";
const NO_RESUME: &str = "its client has no command that goes on with it";
const NO_PROMPT: &str = "no hook of it waits for a prompt; write in its terminal";
const NO_INTERRUPT: &str = "press Esc in its terminal: nothing reaches it from outside";

impl AnswerView {
    fn of(decided: &Decided) -> Option<Self> {
        let Subject::Answer(offer) = &decided.subject else { return None };
        let (state, why) = match &decided.standing {
            Standing::InFlight | Standing::Ending => (AnswerState::Sending, None),
            Standing::Delivered { .. } | Standing::Confirmed { .. } => {
                (AnswerState::Delivered, None)
            }
            Standing::Failed { why } => (AnswerState::Failed, Some(why.clone())),
            Standing::Unsettled | Standing::Unclear | Standing::Overtaken => {
                (AnswerState::Unclear, None)
            }
        };
        Some(Self {
            decision: offer.answer.clone(),
            state,
            by: offer.by.clone(),
            rule: offer.rule.clone(),
            at: decided.at,
            why,
        })
    }
}

/// The modes that Claude Code offers beside a plan.
const PLAN_MODES: [&str; 2] = ["acceptEdits", "default"];

impl RequestView {
    fn of(
        open: &Open<'_>,
        desk: &Desk,
        session: &SessionId,
        harness: Harness,
        reach: Reach,
    ) -> Self {
        let known = desk.of_session(session).find(|(_, known)| known.request() == open.id);
        let (key, known) = known.unzip();
        let way = known.as_ref().and_then(|known| known.way(reach));
        let is_plan = open.kind == RequestKind::Plan;
        let has_modes = is_plan && harness == Harness::ClaudeCode && way.is_some();
        let input = open.ask.input.as_deref().map(|text| {
            serde_json::from_str(text).unwrap_or_else(|_| serde_json::Value::from(text))
        });
        Self {
            request_id: open.id.to_string(),
            kind: open.kind,
            agent: (!open.agent.is_main()).then(|| open.agent.as_str().to_owned()),
            tool: open.ask.tool.as_ref().map(ToString::to_string),
            text: open.ask.text.as_deref().map(str::to_owned),
            cut: is_cut(open.ask) || known.as_ref().is_some_and(OpenRequest::is_cut),
            input,
            revision: known.as_ref().map(|known| known.revision().to_owned()),
            since: open.since.at,
            key: key.cloned(),
            way,
            why_not: match way {
                Some(_) => None,
                None => known.as_ref().map(|known| known.why_not(reach)),
            },
            hidden_until: known.as_ref().and_then(|known| known.hidden_until),
            takes_words: known.as_ref().is_some_and(|known| known.takes_words(reach)),
            takes_changes: known.as_ref().is_some_and(|known| known.takes_changes(reach)),
            scopes: known.as_ref().map(|known| known.scopes(reach)).unwrap_or_default(),
            suggestions: known.as_ref().map(|known| known.suggestions(reach)).unwrap_or_default(),
            modes: if has_modes { PLAN_MODES.to_vec() } else { Vec::new() },
            answer: known.and_then(|known| known.answer).and_then(AnswerView::of),
        }
    }
}

/// As far back as it is known: its first prompt, its start, or else the last that was heard.
fn started_at(monitor: &Monitor) -> Timestamp {
    let first_prompt = monitor.about().and_then(|about| about.first_prompt.as_ref());
    let start = monitor.last_start();
    match first_prompt {
        Some(prompt) => prompt.stamp.at,
        None if start.happened() => start.at,
        None => monitor.last_signal(),
    }
}

fn activity_name(activity: &Activity<'_>) -> &'static str {
    match activity {
        Activity::Starting => "starting",
        Activity::Thinking => "thinking",
        Activity::Acting(_) => "acting",
        Activity::Compacting => "compacting",
        Activity::Retrying(_) => "retrying",
        Activity::Idle(_) => "idle",
        Activity::Ended => "ended",
    }
}
