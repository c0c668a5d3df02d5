//! `codex exec --json`: one thread on standard output, without ids but for the first line.
//!
//! Nobody is ever asked here. An interrupt writes no line: the process's end tells.

use std::sync::Arc;

use qd_session::monitor::Fact;

use super::ending::End;
use super::failure::failure;
use super::handler::Handler;
use super::mark::Mark;
use super::roster::Role;
use super::thread::Thread;
use super::wire;
use crate::excerpt;
use crate::signal::Signal;

/// Most streams whose thread is remembered: runs at the same time.
const STREAMS_MAX: usize = 256;

impl Handler {
    pub(super) fn handle_exec(&mut self, signal: &Signal<'_>) {
        let Some(event) = self.parsed::<wire::ExecEvent>(signal) else { return };
        let stream = signal.file.unwrap_or_default();
        if let Some(id) = event.thread_id.as_deref() {
            self.introduce(signal.at, id, Role::Session);
            if self.streams.len() == STREAMS_MAX && !self.streams.contains_key(stream) {
                self.streams.pop_first();
            }
            self.streams.insert(Arc::from(stream), Arc::from(id));
        }
        let Some(id) = self.streams.get(stream).cloned() else {
            return self.not_understood(signal, None);
        };
        let resets_at = self.limit_resets_at;
        let mark = Mark::arrival(signal);
        let Some(thread) = self.roster.thread(signal.at, &id) else { return };
        let understood = match event.r#type.as_deref().unwrap_or_default() {
            "turn.failed" => {
                let failure = failure(event.error.as_ref(), resets_at);
                thread.end(mark, None, End::Failed(failure));
                true
            }
            _ => thread.take_exec(mark, &event),
        };
        thread.turn.heard.exec = true;
        if !understood {
            self.not_understood(signal, Some(&id));
        }
    }
}

impl Thread {
    fn take_exec(&mut self, mark: Mark, event: &wire::ExecEvent) -> bool {
        match event.r#type.as_deref().unwrap_or_default() {
            "thread.started" => {
                self.exists(mark);
                // A run is one turn, and begins with it.
                self.begin_turn(mark, None);
            }
            "turn.started" => self.begin_turn(mark, None),
            "turn.completed" => {
                if self.turn.open {
                    self.end(mark, None, End::Completed { last_message: None });
                }
            }
            "item.started" | "item.updated" | "item.completed" => {
                let Some(item) = &event.item else { return false };
                let over = event.r#type.as_deref() == Some("item.completed");
                self.exec_item(mark, item, over);
            }
            // Said of each try; the last one is followed by the turn's failure.
            "error" => {
                if self.turn.open {
                    let message = event.message.as_deref().map(excerpt::label);
                    self.tell(mark, Fact::LlmRetrying { message });
                }
            }
            _ => return false,
        }
        true
    }

    fn exec_item(&mut self, mark: Mark, item: &wire::Item, over: bool) {
        match item.kind().as_str() {
            "agentMessage" => {
                self.llm(mark, None);
                self.said(None, item);
            }
            "reasoning" => self.llm(mark, None),
            // Warnings at the start, and a list that the agent keeps for itself.
            "error" | "todoList" => {}
            kind => {
                // Counted from zero in every run, and not the model's own ids.
                let Some(id) = item.id.as_deref() else { return };
                let command = item.command_line();
                let id = self.calls.of_exec(id, command.as_deref());
                if over {
                    self.calls.returned(&id, item.exit_code());
                    self.end_tool(mark, None, &id, item.is_ok());
                } else if self.calls.find(&id).is_none() {
                    self.start_tool(mark, None, Self::call(id.as_str(), kind, command));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use qd_session::monitor::Activity;

    use super::super::story::story;
    use crate::signal::Channel;

    #[test]
    fn a_run_is_told_from_its_output_alone() {
        story()
            .exec(0, r#"{"type":"thread.started","thread_id":"T"}"#)
            .exec(10, r#"{"type":"turn.started"}"#)
            .exec(20, r#"{"type":"item.completed","item":{"id":"item_0","type":"error","message":"hooks"}}"#)
            .exec(100, r#"{"type":"item.started","item":{"id":"item_1","type":"command_execution","command":"/bin/bash -lc 'ls'","status":"in_progress"}}"#)
            .exec(200, r#"{"type":"item.completed","item":{"id":"item_1","type":"command_execution","exit_code":3,"status":"failed"}}"#)
            .exec(300, r#"{"type":"item.completed","item":{"id":"item_2","type":"agent_message","text":"All done."}}"#)
            .exec(400, r#"{"type":"turn.completed","usage":{"input_tokens":4800}}"#)
            .signal(500, Channel::Process, None, br#"{"sessionId":"T","exited":true}"#)
            .check(&[
                "0 thinking",
                "100 acting",
                "200 thinking",
                "400 task_complete",
                "500 session_ended",
            ]);
    }

    #[test]
    fn a_command_that_others_have_named_is_the_same_one() {
        let story = story()
            .exec(0, r#"{"type":"thread.started","thread_id":"T"}"#)
            .line(10, "session_meta", r#"{"id":"T","source":"exec"}"#)
            .line(100, "response_item", r#"{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"sleep 30\"}","call_id":"c1"}"#)
            .exec(200, r#"{"type":"item.started","item":{"id":"item_1","type":"command_execution","command":"/bin/bash -lc 'sleep 30'","status":"in_progress"}}"#)
            .exec(300, r#"{"type":"item.completed","item":{"id":"item_1","type":"command_execution","command":"/bin/bash -lc 'sleep 30'","exit_code":0,"status":"completed"}}"#)
;
        let monitor = story.monitor();
        let calls: Vec<&str> =
            monitor.main_agent().tools.iter().map(|span| span.call.as_str()).collect();
        assert_eq!(calls, ["c1"]);
        assert_eq!(monitor.activity(), Activity::Thinking);
    }

    #[test]
    fn a_failed_run_says_why_and_a_retry_is_work() {
        story()
            .exec(0, r#"{"type":"thread.started","thread_id":"T"}"#)
            .exec(10, r#"{"type":"turn.started"}"#)
            .exec(100, r#"{"type":"error","message":"Reconnecting... 1/2"}"#)
            .exec(900, r#"{"type":"turn.failed","error":{"message":"exceeded retry limit, last status: 429 Too Many Requests"}}"#)
            .check(&["0 thinking", "100 retrying", "900 usage_limit"]);
    }

    #[test]
    fn a_line_before_the_first_names_nobody() {
        story().exec(0, r#"{"type":"turn.started"}"#).check_at(1_000, &[]);
    }
}
