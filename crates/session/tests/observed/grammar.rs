//! The small language of `spec/observed-session.md`: events by name, one second apart.

use std::sync::Arc;

use qd_session::id::{AgentId, CallId, ProcessKey, RequestId, ToolName};
use qd_session::moment::{Source, Timestamp};
use qd_session::monitor::{
    AgentEvent, Ask, Fact, Failure, FailureKind, Monitor, Place, Stage, Usage,
};

/// Every event a row may name. A session has one tool call, one request, one process.
pub const NAMES: [&str; 42] = [
    "session_started",
    "user_prompt",
    "turn_started",
    "llm_started",
    "llm_retrying",
    "tool_started",
    "tool_completed",
    "tool_failed",
    "approval_under_review",
    "approval_requested",
    "approval_resolved",
    "question_asked",
    "question_answered",
    "plan_proposed",
    "plan_resolved",
    "compaction_started",
    "compaction_ended",
    "task_completed",
    "turn_completed",
    "turn_completed_asking",
    "turn_completed_silently",
    "turn_completed_without_background",
    "turn_completed_with_background",
    "turn_failed",
    "turn_failed_unexplained",
    "turn_failed_limit",
    "turn_failed_auth",
    "turn_failed_server",
    "interrupted",
    "session_ended",
    "process_seen",
    "process_gone",
    "process_missing",
    "usage_reported",
    "title_known",
    "mode_changed",
    "place_known",
    "unrecognised",
    "sub:subagent_started",
    "sub:subagent_ended",
    "sub:tool_started",
    "sub:approval_requested",
];

fn text(text: &str) -> Option<Arc<str>> {
    Some(text.into())
}

fn ask(call: &str) -> Ask {
    Ask {
        call: Some(CallId::from(call)),
        tool: Some(ToolName::from("Bash")),
        text: text("may I?"),
        input: text("{\"command\":\"make\"}"),
    }
}

fn completed(last_message: Option<&str>, background: Option<u32>) -> Fact {
    Fact::TurnCompleted { last_message: last_message.map(Into::into), background, cut_off: false }
}

fn failed(kind: FailureKind) -> Fact {
    Fact::TurnFailed { failure: Failure { kind, message: text("no"), resets_at: None } }
}

/// The event a name stands for.
pub fn event(name: &str, at: Timestamp) -> AgentEvent {
    let (agent, name) = match name.strip_prefix("sub:") {
        Some(name) => (AgentId::sub("sub"), name),
        None => (AgentId::MAIN, name),
    };
    let owner = agent.as_str().to_owned();
    let call = CallId::from(format!("call-{owner}").as_str());
    let request = RequestId::from(format!("request-{owner}").as_str());
    let process = ProcessKey::from("42@7");
    let ask = ask(call.as_str());
    let fact = match name {
        "session_started" => Fact::SessionStarted { process: None },
        "user_prompt" => Fact::UserPrompt { text: text("build it") },
        "turn_started" => Fact::TurnStarted,
        "llm_started" => Fact::LlmStarted,
        "llm_retrying" => Fact::LlmRetrying { message: text("overloaded") },
        "tool_started" => {
            Fact::ToolStarted { call, tool: ToolName::from("Bash"), about: text("make") }
        }
        "tool_completed" => Fact::ToolCompleted { call, ok: true, exit_code: None },
        "tool_failed" => Fact::ToolCompleted { call, ok: false, exit_code: None },
        "approval_under_review" => {
            Fact::ApprovalRequested { request, stage: Stage::UnderReview, ask }
        }
        "approval_requested" => Fact::ApprovalRequested { request, stage: Stage::Waiting, ask },
        "approval_resolved" => Fact::ApprovalResolved { request },
        "question_asked" => Fact::QuestionAsked { request, ask },
        "question_answered" => Fact::QuestionAnswered { request },
        "plan_proposed" => Fact::PlanProposed { request, ask },
        "plan_resolved" => Fact::PlanResolved { request },
        "compaction_started" => Fact::CompactionStarted,
        "compaction_ended" => Fact::CompactionEnded,
        "task_completed" => Fact::TaskCompleted { subject: text("step 1") },
        "turn_completed" => completed(Some("All done."), Some(0)),
        "turn_completed_asking" => completed(Some("Which one do you want?"), None),
        "turn_completed_silently" => completed(None, None),
        "turn_completed_without_background" => completed(None, Some(0)),
        "turn_completed_with_background" => completed(Some("It runs in the background."), Some(1)),
        "turn_failed" => failed(FailureKind::Other),
        "turn_failed_unexplained" => Fact::TurnFailed { failure: Failure::UNEXPLAINED },
        "turn_failed_limit" => failed(FailureKind::UsageLimit),
        "turn_failed_auth" => failed(FailureKind::Auth),
        "turn_failed_server" => failed(FailureKind::Server),
        "interrupted" => Fact::Interrupted,
        "session_ended" => Fact::SessionEnded { process: None, exit_code: None },
        "process_seen" => Fact::ProcessSeen { process },
        "process_gone" => Fact::ProcessGone { process },
        "process_missing" => Fact::ProcessMissing,
        "usage_reported" => Fact::UsageReported { usage: Usage::default() },
        "title_known" => Fact::TitleKnown { title: "A title".into(), custom: false },
        "mode_changed" => Fact::ModeChanged { mode: "plan".into() },
        "place_known" => Fact::PlaceKnown { place: Place::default() },
        "unrecognised" => Fact::Unrecognised { text: "?".into() },
        "subagent_started" => Fact::SubagentStarted { kind: text("explore") },
        "subagent_ended" => Fact::SubagentEnded,
        other => panic!("no event is called {other:?}"),
    };
    AgentEvent { at, seq: 0, source: Source::Hook, agent, fact }
}

/// A session that heard of these events, one second apart, and the time of the last.
pub fn heard(names: &str) -> (Monitor, Timestamp) {
    let mut monitor = Monitor::default();
    let mut now = Timestamp(1_000_000);
    for name in names.split_whitespace() {
        match name.strip_prefix('+') {
            Some(wait) => now = now.plus_ms(wait_ms(wait)),
            None => {
                now = now.plus_ms(1_000);
                monitor.apply(&event(name, now));
            }
        }
    }
    (monitor, now)
}

fn wait_ms(text: &str) -> u64 {
    let (number, unit) = text.split_at(text.len() - 1);
    let number: u64 = number.parse().expect("a number before the unit");
    number
        * match unit {
            "s" => 1_000,
            "m" => 60_000,
            other => panic!("no unit is called {other:?}"),
        }
}
