//! `session/update`: what an agent tells while it works, one kind at a time.

use qd_session::id::AgentId;
use qd_session::monitor::{Fact, Usage};

use super::quirks::Quirks;
use super::request::Request;
use super::session::{Replay, Session, configured};
use super::wire::{PlanEntry, Update};
use crate::excerpt;
use crate::outbox::Outbox;

/// Most to-do items whose end is remembered, so that each is told once.
const TASKS_MAX: usize = 128;

impl Session {
    /// Takes one update in. False if its kind is unknown: that changes nothing.
    pub fn update(&mut self, update: &Update, quirks: Quirks, out: &mut Outbox) -> bool {
        let kind = update.session_update.as_deref().unwrap_or_default();
        match kind {
            "user_message_chunk"
            | "agent_message_chunk"
            | "agent_thought_chunk"
            | "tool_call"
            | "tool_call_update"
            | "plan" => {
                if !self.replays(out.at()) {
                    self.work(kind, update, quirks, out);
                }
            }
            "available_commands_update" => {
                if matches!(self.replay, Replay::Trailing { .. }) {
                    self.replay = Replay::Live;
                }
            }
            "current_mode_update" => {
                if let Some(mode) = &update.current_mode_id {
                    out.tell(Fact::ModeChanged { mode: mode.as_str().into() });
                }
            }
            "config_option_update" => {
                configured(update.config_options.as_deref().unwrap_or_default(), out);
            }
            "session_info_update" => {
                if let Some(title) = update.call.title.as_deref().and_then(excerpt::about) {
                    out.tell(Fact::TitleKnown { title, custom: false });
                }
            }
            "usage_update" => tell_usage(update, out),
            "compaction_update" => compaction(update.call.status.as_deref(), out),
            "state_update" => self.stated(update, out),
            "notice" | "compaction_summary_chunk" => {}
            _ => return false,
        }
        true
    }

    /// The kinds that are work, when they are not a replay.
    fn work(&mut self, kind: &str, update: &Update, quirks: Quirks, out: &mut Outbox) {
        match kind {
            "agent_message_chunk" => self.spoke(update, quirks, out),
            "agent_thought_chunk" => self.thought(out),
            "tool_call" | "tool_call_update" => self.called(update, out),
            "plan" => self.planned(update.entries.as_deref().unwrap_or_default(), out),
            // Our own prompt, echoed.
            _ => {}
        }
    }

    fn spoke(&mut self, update: &Update, quirks: Quirks, out: &mut Outbox) {
        let text = update.content.as_ref().and_then(|content| content.get("text")?.as_str());
        let text = text.unwrap_or_default();
        if let Some(mode) = quirks.mode_in(text) {
            out.tell(Fact::ModeChanged { mode: mode.into() });
        } else if self.turn.works(out.at()) && self.turn.say(text, update.message_id.as_deref()) {
            out.tell(Fact::LlmStarted);
        }
    }

    fn thought(&mut self, out: &mut Outbox) {
        if self.turn.works(out.at()) && self.turn.think() {
            out.tell(Fact::LlmStarted);
        }
    }

    fn called(&mut self, update: &Update, out: &mut Outbox) {
        let status = update.call.status.as_deref();
        let announces = update.session_update.as_deref() == Some("tool_call");
        let Some(call) = self.calls.learn(&update.call, update.content.as_ref()) else { return };
        let (agent, id) = (call.agent.clone(), call.id.clone());
        match status {
            Some("completed" | "failed") => {
                call.end(status == Some("completed"), out);
                // A subagent is known by the call that started it.
                self.end_subagent(&AgentId::sub(id.as_str()), out);
                if !self.calls.running(&agent) && agent.is_main() {
                    self.turn.batch_ended(out.at());
                }
            }
            Some(_) | None => {
                // An update without a status only adds to what is known, unless it comes first.
                let begins = status.is_some() || announces || !call.started;
                if !begins || call.ended || call.refused || !self.turn.works(out.at()) {
                    return;
                }
                let first = !call.started;
                call.start(out);
                if agent.is_main() && first {
                    self.turn.act();
                }
                self.begin_subagent(&agent, out);
            }
        }
    }

    fn planned(&mut self, entries: &[PlanEntry], out: &mut Outbox) {
        for entry in entries {
            let (Some(content), Some("completed")) = (&entry.content, entry.status.as_deref())
            else {
                continue;
            };
            if self.tasks_done.contains(content) || self.tasks_done.len() == TASKS_MAX {
                continue;
            }
            self.tasks_done.push(content.clone());
            out.tell(Fact::TaskCompleted { subject: excerpt::about(content) });
        }
    }

    /// The version 2 draft says outright what version 1 leaves to be inferred.
    fn stated(&mut self, update: &Update, out: &mut Outbox) {
        match update.state.as_deref() {
            Some("running") => {
                self.turn.works(out.at());
                self.resolve_unnamed(out);
                out.tell(Fact::LlmStarted);
            }
            Some("idle") => {
                let ending = self.turn.end(update.stop_reason.as_deref());
                self.end_turn(ending, out);
            }
            Some("requires_action") if self.requests.is_empty() => {
                self.open(Request::unnamed(), out);
            }
            Some(_) | None => {}
        }
    }
}

fn tell_usage(update: &Update, out: &mut Outbox) {
    let model = update.call.meta.as_ref().and_then(|meta| meta.claude_model.as_deref());
    let usage = Usage {
        model: model.map(Into::into),
        context_tokens: update.used,
        context_window: update.size,
    };
    out.tell(Fact::UsageReported { usage });
}

fn compaction(status: Option<&str>, out: &mut Outbox) {
    match status {
        Some("in_progress") => out.tell(Fact::CompactionStarted),
        Some("completed" | "failed" | "cancelled") => out.tell(Fact::CompactionEnded),
        Some(_) | None => {}
    }
}
