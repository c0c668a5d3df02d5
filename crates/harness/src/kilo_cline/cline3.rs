//! Cline 3, which says neither say nor ask: hooks, events of the agent, a result at the end.
//!
//! Without a terminal it asks nobody anything: a tool that would need leave fails.

use qd_session::id::{AgentId, CallId, ToolName};
use qd_session::moment::Timestamp;
use qd_session::monitor::{Fact, Failure, FailureKind};

use super::stream::{Facts, Phase, RESULT_GRACE_MS, Stream};
use super::wire::Line;
use crate::excerpt::{brief, ending};

impl Stream {
    /// `None` for a hook nobody knows.
    pub(super) fn hook_event(
        &mut self,
        at: Timestamp,
        line: &Line,
        facts: &mut Facts,
    ) -> Option<()> {
        self.name(line.task_id.clone());
        let subagent = line.parent_agent_id.as_ref().and(line.agent_id.as_deref());
        match (line.hook_event_name.as_deref()?, subagent) {
            ("agent_start", None) if self.phase != Phase::Working => self.begin(None, facts),
            ("agent_start", None) => {}
            ("agent_start", Some(id)) => {
                facts.push((AgentId::sub(id), Fact::SubagentStarted { kind: None }));
            }
            ("agent_end", Some(id)) => facts.push((AgentId::sub(id), Fact::SubagentEnded)),
            // The result follows; if it is lost, the turn is over all the same.
            ("agent_end", None) if self.phase == Phase::Working => {
                self.result_due = Some(at.plus_ms(RESULT_GRACE_MS));
            }
            ("agent_end", None) => {}
            ("tool_call", None) => {
                let call = CallId::new(line.tool_call_id.as_deref().unwrap_or("tool"));
                let tool = ToolName::new(line.tool_name.as_deref().unwrap_or("tool"));
                self.phase = Phase::Working;
                facts.extend(self.run(call, tool, None));
            }
            ("tool_result", None) => self.end_running(true, facts),
            // A subagent's tools are its own business: that it works is known.
            ("tool_call" | "tool_result", Some(_)) => {}
            _ => return None,
        }
        Some(())
    }

    pub(super) fn agent_event(&mut self, line: &Line, facts: &mut Facts) {
        let event = line.event.as_ref();
        let kind = event.and_then(|event| event.get("type")?.as_str());
        if kind == Some("iteration_start") {
            self.thinks(facts);
        }
    }

    pub(super) fn run_result(&mut self, line: &Line, facts: &mut Facts) {
        self.said = line.text.as_deref().map(ending).filter(|text| !text.is_empty());
        match line.finish_reason.as_deref() {
            Some("aborted" | "cancelled" | "canceled" | "interrupted") => {
                self.end(Phase::Paused, Fact::Interrupted, facts);
            }
            Some("error" | "failed") => {
                let message = line.text.as_deref().map(|text| brief(text, 2_000));
                let failure = Failure { kind: FailureKind::Other, message, resets_at: None };
                self.fail(failure, facts);
            }
            _ => self.complete(facts),
        }
    }
}
