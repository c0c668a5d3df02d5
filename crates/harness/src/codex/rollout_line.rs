//! What the lines of a rollout say about their thread.

use qd_session::id::{CallId, ToolName};
use qd_session::moment::Timestamp;
use qd_session::monitor::{Ask, Fact, Usage};
use serde_json::value::RawValue;

use super::ending::End;
use super::failure::failure;
use super::hooks::STOP_SILENCE_WATCHED_MS;
use super::mark::Mark;
use super::thread::Thread;
use super::transcript::parse;
use super::{text, wire};

impl Thread {
    /// False if the line is of no kind we know.
    pub fn take_line(
        &mut self,
        mark: Mark,
        kind: &str,
        payload: &RawValue,
        resets_at: Option<Timestamp>,
    ) -> bool {
        match kind {
            "event_msg" => match parse::<wire::EventMsg>(payload) {
                Some(event) => return self.take_event(mark, event, resets_at),
                None => return false,
            },
            "response_item" => match parse::<wire::ResponseItem>(payload) {
                Some(item) => return self.take_response_item(mark, &item),
                None => return false,
            },
            "turn_context" => {
                let Some(context) = parse::<wire::Settings>(payload) else { return false };
                if self.at_work(mark, context.turn_id.as_deref()) {
                    self.turn.prompted = true;
                }
                self.apply_settings(mark, &context);
            }
            "compacted" => self.tell(mark, Fact::CompactionEnded),
            "token_usage_record" => {
                let called = self.calls.response_over();
                // A response without a call ends the turn. If its last line is lost, silence
                // stands for it.
                if self.turn.open && self.ending.is_none() && !called {
                    self.end_after(mark, STOP_SILENCE_WATCHED_MS, None, false);
                }
            }
            "retained_context" => {
                let Some(answer) = parse::<wire::Owned>(payload) else { return false };
                if let Some(call) = answer.call_id {
                    self.resolve_call(mark, &CallId::new(call));
                }
            }
            "world_state" | "inter_agent_communication_metadata" => {}
            _ => return false,
        }
        true
    }

    fn take_event(
        &mut self,
        mark: Mark,
        event: wire::EventMsg,
        resets_at: Option<Timestamp>,
    ) -> bool {
        let turn = event.turn_id.as_deref();
        match event.r#type.as_deref().unwrap_or_default() {
            "task_started" | "turn_started" => {
                self.begin_turn(mark, turn);
                if let Some(mode) = event.collaboration_mode_kind.as_deref() {
                    self.turn.plan_mode = mode == "plan";
                }
            }
            "task_complete" | "turn_complete" => {
                let end = match &event.error {
                    Some(error) => End::Failed(failure(Some(error), resets_at)),
                    None => End::Completed { last_message: event.last_agent_message.clone() },
                };
                self.tell_compaction_over(mark, turn);
                self.end(mark, turn, end);
            }
            "turn_aborted" => self.end(mark, turn, End::Interrupted),
            "item_completed" => {
                if let Some(item) = &event.item {
                    self.item_written(mark, turn, item, event.started_at_ms);
                }
            }
            "token_count" => self.tokens_counted(mark, event.info),
            "thread_settings_applied" => {
                if let Some(settings) = &event.thread_settings {
                    self.apply_settings(mark, settings);
                }
            }
            // Older clients wrote these; items tell the same.
            "user_message"
            | "agent_message"
            | "agent_reasoning"
            | "exec_command_begin"
            | "exec_command_end"
            | "patch_apply_begin"
            | "patch_apply_end"
            | "warning"
            | "error"
            | "thread_rolled_back"
            | "context_compacted"
            | "thread_goal_updated"
            | "thread_name_updated" => {}
            _ => return false,
        }
        true
    }

    fn tell_compaction_over(&mut self, mark: Mark, turn: Option<&str>) {
        if self.turn.compacting && turn == self.turn.id.as_deref() {
            self.tell(mark, Fact::CompactionEnded);
        }
    }

    fn tokens_counted(&mut self, mark: Mark, info: Option<wire::TokenInfo>) {
        // The model was asked in a turn that nobody prompted: that is how a compaction looks
        // from the outside until it is over.
        if self.turn.open && !self.turn.prompted && !self.turn.compacting && self.turn.id.is_some()
        {
            self.turn.compacting = true;
            let began = Mark { at: self.turn.began_at, ..mark };
            self.tell(began.then(), Fact::CompactionStarted);
        }
        let Some(info) = info else { return };
        let usage = Usage {
            model: None,
            context_tokens: info.last_token_usage.and_then(|tokens| tokens.total_tokens),
            context_window: info.model_context_window,
        };
        self.uses(mark, usage);
    }

    /// A thing the agent did or said, written when it was over.
    fn item_written(
        &mut self,
        mark: Mark,
        turn: Option<&str>,
        item: &wire::Item,
        started_at_ms: Option<u64>,
    ) {
        match item.kind().as_str() {
            "userMessage" => self.prompted(mark, turn, item.said().as_deref()),
            "agentMessage" => {
                self.speaks(mark, turn);
                self.said(turn, item);
            }
            "reasoning" => self.speaks(mark, turn),
            "plan" => {
                self.speaks(mark, turn);
                self.turn.plan = item.text.as_deref().map(text::input);
            }
            "hookPrompt" => self.llm(mark, turn),
            "contextCompaction" => {
                if let Some(ms) = started_at_ms.filter(|ms| *ms <= mark.at.0) {
                    let began = Mark { at: Timestamp(ms), ..mark };
                    self.tell(began, Fact::CompactionStarted);
                }
                self.tell(mark, Fact::CompactionEnded);
            }
            "subAgentActivity" | "enteredReviewMode" | "exitedReviewMode" => {}
            _ => self.tool_ran(mark, turn, item),
        }
    }

    /// The tool itself is through, so nobody is asked any more. The call is over when its output
    /// is written, unless it is a script's own call, whose output is never written.
    fn tool_ran(&mut self, mark: Mark, turn: Option<&str>, item: &wire::Item) {
        let Some(id) = item.id.as_deref().map(CallId::new) else { return };
        if self.calls.find(&id).is_some_and(|call| call.in_rollout && !call.ended) {
            self.resolve_call(mark, &id);
        } else {
            self.end_tool(mark, turn, &id, item.is_ok());
        }
    }

    /// Remembers what the agent said last, and what it asked without waiting.
    pub fn said(&mut self, turn: Option<&str>, item: &wire::Item) {
        if turn.is_some_and(|turn| self.is_over(turn)) {
            return;
        }
        match (&item.questions, item.delivery.as_deref()) {
            (Some(questions), Some("async")) if questions.is_array() => {
                self.turn.question = Some(Ask {
                    call: None,
                    tool: Some(ToolName::new("request_user_input_async")),
                    text: item.said().as_deref().map(text::input),
                    input: Some(text::input(&questions.to_string())),
                });
            }
            _ => self.turn.said = item.said().map(|said| text::last_message(&said).to_string()),
        }
    }
}
