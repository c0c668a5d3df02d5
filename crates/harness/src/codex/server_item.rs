//! Turns and items of the app-server, for threads that somebody subscribed to.

use qd_session::id::CallId;
use qd_session::moment::Timestamp;
use qd_session::monitor::Fact;

use super::ending::End;
use super::failure::failure;
use super::mark::Mark;
use super::thread::Thread;
use super::wire;
use crate::excerpt;

impl Thread {
    pub fn turn_completed(
        &mut self,
        mark: Mark,
        told: &wire::Params,
        resets_at: Option<Timestamp>,
    ) {
        let Some(turn) = &told.turn else { return };
        let items = turn.items.as_deref().unwrap_or_default();
        let said = items.iter().rev().filter(|item| item.kind() == "agentMessage");
        let end = match turn.status.as_deref() {
            Some("failed") => End::Failed(failure(turn.error.as_ref(), resets_at)),
            Some("interrupted") => End::Interrupted,
            Some(_) | None => {
                let asked = |item: &&wire::Item| item.delivery.as_deref() != Some("async");
                let last_message = said.clone().find(asked).and_then(wire::Item::said);
                End::Completed { last_message }
            }
        };
        self.end(mark, turn.id.as_deref(), end);
    }

    pub fn item_started(&mut self, mark: Mark, turn: Option<&str>, item: Option<&wire::Item>) {
        let Some(item) = item else { return };
        match item.kind().as_str() {
            "userMessage" => self.prompted(mark, turn, item.said().as_deref()),
            "agentMessage" | "reasoning" | "plan" | "hookPrompt" => self.llm(mark, turn),
            "contextCompaction" => {
                if self.at_work(mark, turn) {
                    self.tell(mark, Fact::CompactionStarted);
                }
            }
            "enteredReviewMode" | "exitedReviewMode" => {}
            kind => {
                let Some(id) = item.id.as_deref() else { return };
                let tool = item.tool.as_deref().unwrap_or(kind);
                self.start_tool(mark, turn, Self::call(id, tool, item.command_line()));
            }
        }
    }

    pub fn item_completed(&mut self, mark: Mark, turn: Option<&str>, item: Option<&wire::Item>) {
        let Some(item) = item else { return };
        match item.kind().as_str() {
            "agentMessage" => {
                self.llm(mark, turn);
                self.said(turn, item);
            }
            "plan" => {
                self.llm(mark, turn);
                self.turn.plan = item.text.as_deref().map(excerpt::input);
            }
            "userMessage" | "reasoning" | "hookPrompt" => self.llm(mark, turn),
            "contextCompaction" => self.compaction_ended(mark),
            "enteredReviewMode" | "exitedReviewMode" => {}
            _ => {
                let Some(id) = item.id.as_deref().map(CallId::new) else { return };
                self.calls.returned(&id, item.exit_code());
                self.end_tool(mark, turn, &id, item.is_ok());
            }
        }
    }

    /// A `Stop` hook that sends the agent on says so here, and nowhere sooner.
    pub fn hook_ran(&mut self, mark: Mark, turn: Option<&str>, run: Option<&wire::HookRun>) {
        let stop = run.is_some_and(|run| {
            run.event_name.as_deref() == Some("stop") && run.status.as_deref() == Some("blocked")
        });
        if stop {
            self.llm(mark, turn);
        }
    }
}
