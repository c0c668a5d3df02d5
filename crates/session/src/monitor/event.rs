//! Normalised events: what a handler says happened, in no vendor's words.
//!
//! The names are those of the seed's `AgentEvent`s where it has one. Serialised, an event is one
//! flat object: `{"type":"tool_started","at":…,"source":"hook","call":"…","tool":"Bash"}`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::{AgentId, CallId, ProcessKey, RequestId, ToolName};
use crate::moment::{Source, Stamp, Timestamp};

/// One fact about an observed session, with the time it happened (not the time we heard of it).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentEvent {
    pub at: Timestamp,
    /// The sender's counter, where it has one: orders what happened in the same millisecond.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub seq: u32,
    pub source: Source,
    #[serde(default, skip_serializing_if = "AgentId::is_main")]
    pub agent: AgentId,
    #[serde(flatten)]
    pub fact: Fact,
}

fn is_zero(seq: &u32) -> bool {
    *seq == 0
}

impl AgentEvent {
    /// A fact about the main agent.
    pub fn main(at: Timestamp, source: Source, fact: Fact) -> Self {
        Self { at, seq: 0, source, agent: AgentId::MAIN, fact }
    }

    pub fn stamp(&self) -> Stamp {
        Stamp { at: self.at, seq: self.seq, source: self.source }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Fact {
    /// The session exists and can be prompted.
    SessionStarted {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        process: Option<ProcessKey>,
    },
    /// Somebody wrote to the agent. In the middle of a turn this is a queued prompt or a steer.
    UserPrompt {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<Arc<str>>,
    },
    /// A new turn: whatever the agent waited for before it is settled.
    TurnStarted,
    /// The model was asked, or is known to be answering.
    LlmStarted,
    /// The model could not be reached; the client tries again by itself.
    LlmRetrying {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<Arc<str>>,
    },
    ToolStarted {
        call: CallId,
        tool: ToolName,
        /// What it is about: a command, a path, a query. Shortened by the handler.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        about: Option<Arc<str>>,
    },
    ToolCompleted {
        call: CallId,
        /// Whether the tool did its work. A command that returned an error may have.
        ok: bool,
        /// What its command returned, where the client tells.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
    },
    /// The agent wants to use a tool. Under review until a person is known to be needed.
    ApprovalRequested {
        request: RequestId,
        stage: Stage,
        #[serde(flatten)]
        ask: Ask,
    },
    ApprovalResolved {
        request: RequestId,
    },
    QuestionAsked {
        request: RequestId,
        #[serde(flatten)]
        ask: Ask,
    },
    QuestionAnswered {
        request: RequestId,
    },
    PlanProposed {
        request: RequestId,
        #[serde(flatten)]
        ask: Ask,
    },
    PlanResolved {
        request: RequestId,
    },
    CompactionStarted,
    CompactionEnded,
    /// Carried by the subagent's own id.
    SubagentStarted {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<Arc<str>>,
    },
    SubagentEnded,
    /// A to-do item was ticked off. Not a delivery: the turn goes on.
    TaskCompleted {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subject: Option<Arc<str>>,
    },
    /// The agent's loop ended by itself. Says nothing about success.
    TurnCompleted {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_message: Option<Arc<str>>,
        /// Background tasks and timers left, if the client tells: the session will wake itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        background: Option<u32>,
        /// The reply was cut by its length limit.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        cut_off: bool,
    },
    /// The turn ended because the model could not be used any more.
    TurnFailed {
        #[serde(flatten)]
        failure: Failure,
    },
    /// A person ended the turn.
    Interrupted,
    /// The session said goodbye, or its process was seen to exit.
    SessionEnded {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        process: Option<ProcessKey>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
    },
    ProcessSeen {
        process: ProcessKey,
    },
    ProcessGone {
        process: ProcessKey,
    },
    /// Somebody looked for the session's process and found none.
    ProcessMissing,
    UsageReported {
        #[serde(flatten)]
        usage: Usage,
    },
    TitleKnown {
        title: Arc<str>,
        /// Given by the operator: beats every title that was made up.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        custom: bool,
    },
    ModeChanged {
        mode: Arc<str>,
    },
    /// Where the session lives.
    PlaceKnown {
        #[serde(flatten)]
        place: Place,
    },
    /// A signal nobody understood: kept, counted, changes nothing.
    Unrecognised {
        text: Arc<str>,
    },
}

impl Fact {
    /// The name of the event, as on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::SessionStarted { .. } => "session_started",
            Self::UserPrompt { .. } => "user_prompt",
            Self::TurnStarted => "turn_started",
            Self::LlmStarted => "llm_started",
            Self::LlmRetrying { .. } => "llm_retrying",
            Self::ToolStarted { .. } => "tool_started",
            Self::ToolCompleted { .. } => "tool_completed",
            Self::ApprovalRequested { .. } => "approval_requested",
            Self::ApprovalResolved { .. } => "approval_resolved",
            Self::QuestionAsked { .. } => "question_asked",
            Self::QuestionAnswered { .. } => "question_answered",
            Self::PlanProposed { .. } => "plan_proposed",
            Self::PlanResolved { .. } => "plan_resolved",
            Self::CompactionStarted => "compaction_started",
            Self::CompactionEnded => "compaction_ended",
            Self::SubagentStarted { .. } => "subagent_started",
            Self::SubagentEnded => "subagent_ended",
            Self::TaskCompleted { .. } => "task_completed",
            Self::TurnCompleted { .. } => "turn_completed",
            Self::TurnFailed { .. } => "turn_failed",
            Self::Interrupted => "interrupted",
            Self::SessionEnded { .. } => "session_ended",
            Self::ProcessSeen { .. } => "process_seen",
            Self::ProcessGone { .. } => "process_gone",
            Self::ProcessMissing => "process_missing",
            Self::UsageReported { .. } => "usage_reported",
            Self::TitleKnown { .. } => "title_known",
            Self::ModeChanged { .. } => "mode_changed",
            Self::PlaceKnown { .. } => "place_known",
            Self::Unrecognised { .. } => "unrecognised",
        }
    }
}

/// How far a permission has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// A rule, another hook or a reviewer may still decide: nobody is called yet.
    #[default]
    UnderReview,
    /// A person is needed.
    Waiting,
}

/// What a request shows the operator.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ask {
    /// The tool call it holds up. Its completion closes the request, whatever else is lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolName>,
    /// The question, the plan, the reason: what a person reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Arc<str>>,
    /// The vendor's own input, as JSON text: what is shown in full and sent back when changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<Arc<str>>,
}

/// Why a turn ended badly.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    pub kind: FailureKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Arc<str>>,
    /// When a usage limit ends, if the client tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<Timestamp>,
}

impl Failure {
    /// A turn failed, and the source does not say why.
    pub const UNEXPLAINED: Self = Self { kind: FailureKind::Other, message: None, resets_at: None };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    Other,
    Server,
    Auth,
    UsageLimit,
}

/// Where a session lives, as its client tells.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Place {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<Arc<str>>,
    /// The session file the client writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transcript: Option<Arc<str>>,
    /// The session that this one went on from, by the client's own id: resuming may fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<Arc<str>>,
    /// The client's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Arc<str>>,
}

impl Place {
    /// Takes in what is told. What of it is new, if anything.
    pub fn learn(&mut self, told: Self) -> Option<Self> {
        let mut news = Self::default();
        let parts = [
            (&mut self.cwd, told.cwd, &mut news.cwd),
            (&mut self.branch, told.branch, &mut news.branch),
            (&mut self.transcript, told.transcript, &mut news.transcript),
            (&mut self.forked_from, told.forked_from, &mut news.forked_from),
            (&mut self.version, told.version, &mut news.version),
        ];
        for (known, told, new) in parts {
            if told.is_some() && *known != told {
                known.clone_from(&told);
                *new = told;
            }
        }
        (news != Self::default()).then_some(news)
    }
}

/// What the agent's window holds now. Totals over time are the store's business.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_tokens: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
}
