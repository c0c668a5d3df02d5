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
use super::wire;
use crate::excerpt;

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
            "compacted" => self.compaction_ended(mark),
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
            self.compaction_ended(mark);
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
                self.turn.plan = item.text.as_deref().map(excerpt::input);
            }
            "hookPrompt" => self.llm(mark, turn),
            "contextCompaction" => {
                if let Some(ms) = started_at_ms.filter(|ms| *ms <= mark.at.0) {
                    let began = Mark { at: Timestamp(ms), ..mark };
                    self.tell(began, Fact::CompactionStarted);
                }
                self.compaction_ended(mark);
            }
            "subAgentActivity" | "enteredReviewMode" | "exitedReviewMode" => {}
            _ => self.tool_ran(mark, turn, item),
        }
    }

    /// The tool itself is through, so nobody is asked any more. The call is over when its output
    /// is written, unless it is a script's own call, whose output is never written.
    fn tool_ran(&mut self, mark: Mark, turn: Option<&str>, item: &wire::Item) {
        let Some(id) = item.id.as_deref().map(CallId::new) else { return };
        self.calls.returned(&id, item.exit_code());
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
                    text: item.said().as_deref().map(excerpt::input),
                    input: Some(excerpt::input(&questions.to_string())),
                });
            }
            _ => self.turn.said = item.said().map(|said| excerpt::ending(&said)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::story::{Story, story};
    use crate::signal::Channel;

    fn working() -> Story {
        story().rollout_begins(0)
    }

    fn ended(story: Story, at: u64, last: &str) -> Story {
        let line =
            format!(r#"{{"type":"task_complete","turn_id":"U","last_agent_message":{last}}}"#);
        story.line(at, "event_msg", &line)
    }

    #[test]
    fn a_turn_is_over_when_its_last_line_is_written() {
        ended(working(), 900, r#""Done.""#)
            .check_at(5_000, &["0 idle", "0 thinking", "1050 task_complete"]);
    }

    #[test]
    fn an_interrupt_stays_one_though_a_command_is_written_later() {
        working()
            .line(100, "response_item", r#"{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"sleep 30\"}","call_id":"c1"}"#)
            .line(800, "response_item", r#"{"type":"function_call_output","call_id":"c1","output":"aborted by user"}"#)
            .line(810, "event_msg", r#"{"type":"turn_aborted","turn_id":"U","reason":"interrupted"}"#)
            .line(3_300, "event_msg", r#"{"type":"item_completed","turn_id":"U","item":{"type":"CommandExecution","id":"c1","status":"failed","exit_code":-1}}"#)
            .check_at(20_000, &["0 idle", "0 thinking", "100 acting", "800 interrupted"]);
    }

    #[test]
    fn a_failed_turn_needs_the_operator_and_says_why() {
        working()
            .line(500, "event_msg", r#"{"type":"task_complete","turn_id":"U","error":{"message":"hit","codex_error_info":"usage_limit_exceeded"}}"#)
            .check(&["0 idle", "0 thinking", "500 usage_limit"]);
    }

    #[test]
    fn a_plan_waits_for_approval_until_the_next_turn() {
        let story = working()
            .line(300, "event_msg", r#"{"type":"item_completed","turn_id":"U","item":{"type":"Plan","id":"U-plan","text":"- one"}}"#);
        ended(story, 400, r#""Here it is.""#)
            .line(5_000, "event_msg", r#"{"type":"task_started","turn_id":"V"}"#)
            .check(&["0 idle", "0 thinking", "550 awaiting_approval", "5000 thinking"]);
    }

    #[test]
    fn a_question_that_did_not_stop_the_turn_waits_after_it() {
        let story = working()
            .line(300, "event_msg", r#"{"type":"item_completed","turn_id":"U","item":{"type":"AgentMessage","id":"c1","content":[{"type":"Text","text":"Which?"}],"delivery":"async","questions":[{"title":"Which?"}]}}"#);
        ended(story, 900, r#""I go on.""#)
            .check_at(5_000, &["0 idle", "0 thinking", "1050 awaiting_input"]);
    }

    #[test]
    fn what_was_delivered_stays_so_while_the_conversation_is_compacted() {
        ended(working(), 900, r#""Done.""#)
            .line(2_000, "event_msg", r#"{"type":"task_started","turn_id":"V"}"#)
            .line(2_150, "event_msg", r#"{"type":"token_count","info":null}"#)
            .line(3_500, "compacted", r#"{"message":"…"}"#)
            .line(
                3_600,
                "event_msg",
                r#"{"type":"task_complete","turn_id":"V","last_agent_message":null}"#,
            )
            .check_at(
                9_000,
                &[
                    "0 idle",
                    "0 thinking",
                    "1050 task_complete",
                    "2000 thinking",
                    "2150 compacting",
                    "3500 thinking",
                    "3750 task_complete",
                ],
            );
    }

    #[test]
    fn a_turn_without_a_prompt_compacts() {
        story()
            .line(0, "session_meta", r#"{"id":"T","source":"cli"}"#)
            .line(10, "event_msg", r#"{"type":"task_started","turn_id":"V"}"#)
            .line(150, "event_msg", r#"{"type":"token_count","info":null}"#)
            .line(1_500, "compacted", r#"{"message":"…"}"#)
            .line(
                1_600,
                "event_msg",
                r#"{"type":"task_complete","turn_id":"V","last_agent_message":null}"#,
            )
            .check_at(
                5_000,
                &["0 idle", "10 thinking", "150 compacting", "1500 thinking", "1750 idle"],
            );
    }

    #[test]
    fn a_goal_that_goes_on_is_not_a_delivery() {
        let story = working()
            .line(100, "response_item", r#"{"type":"function_call","name":"create_goal","arguments":"{}","call_id":"c1"}"#)
            .line(200, "response_item", r#"{"type":"function_call_output","call_id":"c1","output":"{\"goal\":{\"status\":\"active\"}}"}"#);
        ended(story, 900, r#""One step.""#)
            .line(950, "event_msg", r#"{"type":"task_started","turn_id":"V"}"#)
            .check_at(5_000, &["0 idle", "0 thinking", "100 acting", "200 thinking"]);
    }

    #[test]
    fn a_lost_last_line_is_made_up_for_by_silence() {
        working()
            .line(100, "event_msg", r#"{"type":"item_completed","turn_id":"U","item":{"type":"AgentMessage","id":"m","content":[{"type":"Text","text":"Done."}]}}"#)
            .line(110, "token_usage_record", r#"{"thread_id":"T","turn_id":"U","session_id":"T"}"#)
            .check_at(15_000, &["0 idle", "0 thinking", "10110 task_complete"]);
    }

    #[test]
    fn a_queued_prompt_follows_without_a_rest_between() {
        let story = ended(working(), 900, r#""Done.""#).line(
            937,
            "event_msg",
            r#"{"type":"task_started","turn_id":"V"}"#,
        );
        let next = r#"{"type":"task_complete","turn_id":"V","last_agent_message":"Done too."}"#;
        story
            .line(2_000, "event_msg", next)
            .check_at(5_000, &["0 idle", "0 thinking", "2150 task_complete"]);
    }

    #[test]
    fn a_turn_that_ended_long_ago_is_over_at_once() {
        let end = r#"{"timestamp":"2026-11-15T18:40:01.000Z","type":"event_msg","payload":{"type":"task_complete","turn_id":"U","last_agent_message":"Done."}}"#;
        working().signal(9_000, Channel::Transcript, Some("t.jsonl"), end.as_bytes()).check(&[
            "0 idle",
            "0 thinking",
            "9000 task_complete",
        ]);
    }

    #[test]
    fn a_line_of_an_older_turn_changes_nothing() {
        ended(working(), 900, r#""Done.""#)
            .line(1_000, "event_msg", r#"{"type":"item_completed","turn_id":"U","item":{"type":"AgentMessage","id":"m","content":[{"type":"Text","text":"late"}]}}"#)
            .check_at(5_000, &["0 idle", "0 thinking", "1050 task_complete"]);
    }
}
