//! Hooks and the notify program.
//!
//! Hooks carry no time and no number, may be switched to run side by side, and say nothing of a
//! failed turn: only of each model request that failed. Their session is always the root thread's;
//! a subagent's hooks name it.

use std::sync::Arc;

use qd_session::id::{CallId, ToolName};
use qd_session::monitor::{Ask, Fact, Place, Stage, Usage};
use serde_json::Value;

use super::call;
use super::ending::End;
use super::failure::failure;
use super::handler::Handler;
use super::mark::Mark;
use super::request::{
    HOOK_SILENCE_MS, HOOK_SILENCE_WATCHED_MS, Kind, QUESTION_SILENCE_MS, Request,
};
use super::roster::{Role, is_hidden_prompt};
use super::thread::Thread;
use super::wire;
use crate::excerpt;
use crate::signal::Signal;

/// The tool by which an agent asks and waits.
pub const QUESTION_TOOL: &str = "request_user_input";

/// A `Stop` hook may send the agent on, and what follows then comes at once. Where nobody tells
/// the end of a turn, this silence is the end.
const STOP_SILENCE_MS: u64 = 250;

/// The same where somebody does tell: another `Stop` hook may still be running the tests.
pub const STOP_SILENCE_WATCHED_MS: u64 = 10_000;

impl Handler {
    pub(super) fn handle_hook(&mut self, signal: &Signal<'_>) {
        let Some(hook) = self.parsed::<wire::Hook>(signal) else { return };
        let Some(session) = hook.session_id.as_deref().filter(|id| !id.is_empty()) else {
            return self.not_understood(signal, None);
        };
        self.introduce(signal.at, session, Role::Session);
        let mut id = session;
        if let Some(agent) = hook.agent_id.as_deref().filter(|agent| *agent != session) {
            self.introduce(signal.at, agent, Role::Subagent { session: Arc::from(session) });
            id = agent;
        }
        let mark = Mark::arrival(signal);
        let understood = match self.roster.thread(signal.at, id) {
            Some(thread) => thread.take_hook(mark, &hook),
            None => true,
        };
        if !understood {
            self.not_understood(signal, Some(session));
        }
    }

    pub(super) fn handle_notify(&mut self, signal: &Signal<'_>) {
        let Some(notify) = self.parsed::<wire::Notify>(signal) else { return };
        let Some(id) = notify.thread_id.as_deref() else {
            return self.not_understood(signal, None);
        };
        match notify.input_messages.as_deref().and_then(<[String]>::first) {
            Some(prompt) if is_hidden_prompt(prompt) => {
                self.introduce(signal.at, id, Role::Hidden);
            }
            Some(_) => self.introduce(signal.at, id, Role::Session),
            // A subagent has no prompt of a person; who it is, others tell.
            None => {}
        }
        let mark = Mark::arrival(signal);
        let Some(thread) = self.roster.thread(signal.at, id) else { return };
        let cwd = notify.cwd.as_deref().map(Arc::from);
        thread.lives_in(mark, Place { cwd, ..Place::default() });
        if notify.r#type.as_deref() == Some("agent-turn-complete") {
            let last_message = notify.last_assistant_message;
            thread.end(mark, notify.turn_id.as_deref(), End::Completed { last_message });
        }
    }
}

impl Thread {
    /// False if the hook is none we know.
    fn take_hook(&mut self, mark: Mark, hook: &wire::Hook) -> bool {
        let turn = hook.turn_id.as_deref();
        self.learn_from_hook(mark, hook);
        match hook.hook_event_name.as_deref().unwrap_or_default() {
            "SessionStart" => {
                self.exists(mark);
                // It fires with the first turn, not when the terminal opens.
                if self.never_worked() {
                    self.begin_turn(mark, None);
                }
            }
            "SessionEnd" => self.gone(mark, None, None),
            "UserPromptSubmit" => {
                self.begin_turn(mark, turn);
                self.prompted(mark, turn, hook.prompt.as_deref());
            }
            "PreToolUse" => self.before_tool(mark, turn, hook),
            "PermissionRequest" => self.permission_asked(mark, turn, hook),
            "PostToolUse" => self.after_tool(mark, turn, hook),
            "PreCompact" => {
                if self.at_work(mark, turn) {
                    self.tell(mark, Fact::CompactionStarted);
                }
            }
            "PostCompact" => {
                self.compaction_ended(mark);
                if hook.trigger.as_deref() == Some("manual") {
                    // No Stop hook follows a compaction that somebody asked for.
                    self.stopping(mark, turn, None);
                }
            }
            "SubagentStart" => {
                self.settings.agent_type = hook.agent_type.as_deref().map(excerpt::label);
                let kind = self.settings.agent_type.clone();
                self.tell(mark, Fact::SubagentStarted { kind });
            }
            "SubagentStop" => {
                self.tell(mark, Fact::SubagentEnded);
                self.stopping(mark, turn, hook.last_assistant_message.clone());
            }
            "PreModelRequest" => self.model_asked(mark, turn),
            "PostModelRequest" => self.model_answered(mark, turn, hook),
            // It comes before the rollout and the server say so.
            "Interrupt" => self.end(mark, turn, End::Interrupted),
            "Stop" => self.stopping(mark, turn, hook.last_assistant_message.clone()),
            _ => return false,
        }
        self.turn.heard.hooks = true;
        true
    }

    fn learn_from_hook(&mut self, mark: Mark, hook: &wire::Hook) {
        if let Some(mode) = hook.permission_mode.as_deref() {
            self.hook_mode(mark, mode);
        }
        let model = hook.model.as_deref().map(excerpt::label);
        self.uses(mark, Usage { model, ..Usage::default() });
        let place = Place {
            cwd: hook.cwd.as_deref().map(Arc::from),
            transcript: hook.transcript_path.as_deref().map(Arc::from),
            ..Place::default()
        };
        self.lives_in(mark, place);
    }

    fn before_tool(&mut self, mark: Mark, turn: Option<&str>, hook: &wire::Hook) {
        let Some(id) = hook.tool_use_id.as_deref() else { return };
        let tool = hook.tool_name.as_deref().unwrap_or_default();
        self.start_tool(mark, turn, Self::call(id, tool, command_of(hook)));
        if tool == QUESTION_TOOL {
            let input = hook.tool_input.as_ref().map_or("", |input| input.get());
            self.question_asked(mark, turn, id, input);
        }
    }

    /// A question holds up the turn, but outside plan mode Codex refuses to ask it.
    pub fn question_asked(&mut self, mark: Mark, turn: Option<&str>, call: &str, input: &str) {
        let stage = if self.turn.plan_mode { Stage::Waiting } else { Stage::UnderReview };
        let request = Request {
            id: self.request_id(call),
            kind: Kind::Question,
            stage,
            mark,
            due: Some(mark.due(QUESTION_SILENCE_MS)),
            ask: Ask {
                call: Some(CallId::new(call)),
                tool: Some(ToolName::new(QUESTION_TOOL)),
                text: question_text(input),
                input: Some(excerpt::input(input)),
            },
            command: None,
            made_up: false,
            settled: None,
            rpc: None,
        };
        self.ask(turn, request);
    }

    /// The hook names no call: it is the one that runs this command.
    fn permission_asked(&mut self, mark: Mark, turn: Option<&str>, hook: &wire::Hook) {
        let command = command_of(hook);
        let tool = hook.tool_name.as_deref().unwrap_or_default();
        let call = self.calls.running(tool, command.as_deref()).map(|call| call.id.clone());
        if turn.is_some_and(|turn| self.is_over(turn)) {
            return;
        }
        self.resolve_hints_of_scripts(mark, call.as_ref());
        let name = match &call {
            Some(call) => call.as_str().to_owned(),
            None => {
                format!("permission:{}", excerpt::label(command.as_deref().unwrap_or_default()))
            }
        };
        let wait_ms =
            if self.turn.heard.app_server { HOOK_SILENCE_WATCHED_MS } else { HOOK_SILENCE_MS };
        let due = (!self.settings.decides_alone()).then(|| mark.due(wait_ms));
        let input = hook.tool_input.as_ref().map(|input| input.get());
        let reason = input.and_then(|input| field(input, "description"));
        let request = Request {
            id: self.request_id(&name),
            kind: Kind::Approval,
            stage: Stage::UnderReview,
            mark,
            due,
            ask: Ask {
                call,
                tool: hook.tool_name.as_deref().map(ToolName::new),
                text: reason.or_else(|| command.clone()).as_deref().map(excerpt::input),
                input: input.map(excerpt::input),
            },
            command,
            made_up: false,
            settled: None,
            rpc: None,
        };
        self.ask(turn, request);
    }

    fn after_tool(&mut self, mark: Mark, turn: Option<&str>, hook: &wire::Hook) {
        let Some(id) = hook.tool_use_id.as_deref() else { return };
        let command = command_of(hook);
        let tool = hook.tool_name.as_deref();
        let done = self.requests.take_all(|request| {
            request.ask.call.is_none()
                && !request.made_up
                && request.command == command
                && request.ask.tool.as_ref().map(ToolName::as_str) == tool
        });
        self.resolve_all(mark, done);
        if let Some(response) = &hook.tool_response {
            self.goal_told(hook.tool_name.as_deref().unwrap_or_default(), response.get());
        }
        self.end_tool(mark, turn, &CallId::new(id), true);
    }

    /// The model is asked, so it has the results of all its calls. Where only hooks are heard,
    /// that is how an answer to a permission shows. A script may be asked about while it runs on.
    fn model_asked(&mut self, mark: Mark, turn: Option<&str>) {
        if !self.at_work(mark, turn) {
            return;
        }
        if self.turn.heard.only_hooks() && self.calls.open_scripts().is_empty() {
            let answered = self.requests.take_all(|request| request.mark.at <= mark.at);
            self.resolve_all(mark, answered);
            self.calls.response_over();
            for call in self.calls.end_answered() {
                self.end_call(mark, &call, true);
            }
        }
        self.tell(mark, Fact::LlmStarted);
    }

    fn model_answered(&mut self, mark: Mark, turn: Option<&str>, hook: &wire::Hook) {
        match hook.status.as_deref() {
            Some("failed") => {
                let text = hook.error.as_ref().map(|error| match error.as_str() {
                    Some(text) => text.to_owned(),
                    None => error.to_string(),
                });
                let error = wire::TurnError { message: text, ..wire::TurnError::default() };
                self.request_failed(mark, turn, failure(Some(&error), None));
            }
            Some("completed") if turn == self.turn.id.as_deref() => self.turn.failure = None,
            // The interrupt that cancelled it tells of itself.
            Some(_) | None => {}
        }
    }

    /// The tools of a goal answer with the goal.
    pub fn goal_told(&mut self, tool: &str, response: &str) {
        if !matches!(tool, "create_goal" | "update_goal" | "get_goal") {
            return;
        }
        let Ok(value) = serde_json::from_str::<Value>(response) else { return };
        // The hook gives an object, a rollout the text of one.
        let value = match value.as_str() {
            Some(inner) => serde_json::from_str(inner).unwrap_or_default(),
            None => value,
        };
        if let Some(status) = value.get("goal").and_then(|goal| goal.get("status")) {
            self.settings.goal_active = status.as_str() == Some("active");
        }
    }

    fn stopping(&mut self, mark: Mark, turn: Option<&str>, last_message: Option<String>) {
        let Some(id) = turn else {
            return self.end_after(mark, STOP_SILENCE_MS, last_message, false);
        };
        if self.is_over(id) || (self.turn.open && self.turn.began_at > mark.at) {
            return;
        }
        if self.turn.id.as_deref() != Some(id) {
            self.begin_turn(mark, turn);
        }
        let wait_ms =
            if self.turn.heard.knows_ends() { STOP_SILENCE_WATCHED_MS } else { STOP_SILENCE_MS };
        self.end_after(mark, wait_ms, last_message, false);
    }
}

/// What a hook's tool runs: shells and patches call it `command`.
fn command_of(hook: &wire::Hook) -> Option<String> {
    field(hook.tool_input.as_ref()?.get(), "command").as_deref().map(call::command)
}

fn field(json: &str, name: &str) -> Option<String> {
    let value: Value = serde_json::from_str(json).ok()?;
    value.get(name)?.as_str().map(str::to_owned)
}

/// The questions as a person reads them.
pub fn question_text(input: &str) -> Option<Arc<str>> {
    let value: Value = serde_json::from_str(input).ok()?;
    questions_text(value.get("questions")?)
}

pub fn questions_text(questions: &Value) -> Option<Arc<str>> {
    let lines: Vec<&str> = questions
        .as_array()?
        .iter()
        .filter_map(|one| one.get("question").or_else(|| one.get("title"))?.as_str())
        .collect();
    (!lines.is_empty()).then(|| excerpt::input(&lines.join("\n")))
}

#[cfg(test)]
mod tests {
    use super::super::story::{Story, story};
    use crate::signal::Channel;

    const TOUCH: &str = r#""tool_name":"Bash","tool_input":{"command":"touch /x"}"#;
    const TOUCH_CALL: &str =
        r#""tool_name":"Bash","tool_input":{"command":"touch /x"},"tool_use_id":"c1""#;

    fn permission_asked() -> Story {
        story()
            .hook(0, "UserPromptSubmit", r#""prompt":"go""#)
            .hook(100, "PreToolUse", TOUCH_CALL)
            .hook(200, "PermissionRequest", TOUCH)
    }

    #[test]
    fn a_permission_hook_becomes_a_persons_business_by_silence() {
        permission_asked().check_at(2_000, &["0 thinking", "100 acting", "600 needs_permission"]);
    }

    #[test]
    fn a_permission_that_is_decided_at_once_shows_nobody() {
        permission_asked()
            .hook(350, "PostToolUse", TOUCH_CALL)
            .check_at(2_000, &["0 thinking", "100 acting", "350 thinking"]);
    }

    #[test]
    fn the_end_of_its_call_closes_a_permission() {
        permission_asked().hook(3_000, "PostToolUse", TOUCH_CALL).check_at(
            4_000,
            &["0 thinking", "100 acting", "600 needs_permission", "3000 thinking"],
        );
    }

    #[test]
    fn a_permission_that_overtakes_its_call_is_the_same_permission() {
        story()
            .hook(0, "UserPromptSubmit", r#""prompt":"go""#)
            .hook(200, "PermissionRequest", TOUCH)
            .hook(210, "PreToolUse", TOUCH_CALL)
            .hook(3_000, "PostToolUse", TOUCH_CALL)
            .check_at(
                4_000,
                &["0 thinking", "210 acting", "600 needs_permission", "3000 thinking"],
            );
    }

    #[test]
    fn an_interrupt_ends_the_turn_and_closes_what_it_asked() {
        permission_asked().hook(3_000, "Interrupt", "").check_at(
            9_000,
            &["0 thinking", "100 acting", "600 needs_permission", "3000 interrupted"],
        );
    }

    #[test]
    fn a_refusal_shows_when_the_model_is_asked_again() {
        permission_asked().hook(3_000, "PreModelRequest", "").check_at(
            4_000,
            &["0 thinking", "100 acting", "600 needs_permission", "3000 thinking"],
        );
    }

    #[test]
    fn a_model_request_is_work_for_who_came_late() {
        story().hook(0, "PreModelRequest", "").check_at(2_000, &["0 thinking"]);
    }

    #[test]
    fn a_cancelled_request_is_left_to_the_interrupt() {
        story()
            .hook(0, "UserPromptSubmit", r#""prompt":"go""#)
            .hook(500, "PostModelRequest", r#""status":"cancelled","error":null"#)
            .hook(507, "Interrupt", "")
            .check_at(2_000, &["0 thinking", "507 interrupted"]);
    }

    #[test]
    fn nobody_is_asked_where_the_policy_is_never() {
        story()
            .hook(0, "PreToolUse", TOUCH_CALL)
            .hook(10, "PermissionRequest", r#""permission_mode":"bypassPermissions","tool_name":"Bash","tool_input":{"command":"touch /x"}"#)
            .check_at(5_000, &["0 acting"]);
    }

    #[test]
    fn a_refused_permission_ends_when_the_model_goes_on() {
        permission_asked()
            .hook(
                9_000,
                "PreToolUse",
                r#""tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"c2""#,
            )
            .check(&["0 thinking", "100 acting", "600 needs_permission", "9000 acting"]);
    }

    #[test]
    fn a_question_waits_and_its_answer_ends_the_wait() {
        let ask = r#""tool_name":"request_user_input","tool_use_id":"c1","tool_input":{"questions":[{"id":"db","question":"Which?"}]}"#;
        story()
            .hook(0, "UserPromptSubmit", r#""prompt":"plan""#)
            .hook(100, "PreToolUse", ask)
            .hook(5_000, "PostToolUse", ask)
            .check(&["0 thinking", "100 acting", "400 awaiting_input", "5000 thinking"]);
    }

    #[test]
    fn a_stop_is_the_end_when_nothing_follows() {
        story()
            .hook(0, "UserPromptSubmit", r#""prompt":"go""#)
            .hook(1_000, "Stop", r#""last_assistant_message":"Done.""#)
            .check_at(3_000, &["0 thinking", "1250 task_complete"]);
    }

    #[test]
    fn a_stop_that_another_hook_blocks_does_not_show() {
        story()
            .hook(0, "UserPromptSubmit", r#""prompt":"go""#)
            .hook(1_000, "Stop", r#""last_assistant_message":"First.""#)
            .hook(1_100, "PreToolUse", TOUCH_CALL)
            .check_at(3_000, &["0 thinking", "1100 acting"]);
    }

    #[test]
    fn late_hooks_of_calls_that_ended_do_not_reopen_the_turn() {
        story()
            .hook(0, "UserPromptSubmit", r#""prompt":"go""#)
            .hook(500, "PostToolUse", TOUCH_CALL)
            .hook(1_000, "Stop", r#""last_assistant_message":"Done.""#)
            .hook(1_500, "PreToolUse", TOUCH_CALL)
            .hook(1_600, "PostToolUse", TOUCH_CALL)
            .check_at(3_000, &["0 thinking", "1250 task_complete"]);
    }

    #[test]
    fn compaction_is_not_idle_and_ends_by_itself() {
        story()
            .hook(0, "PreCompact", r#""trigger":"manual""#)
            .hook(2_000, "PostCompact", r#""trigger":"manual""#)
            .check_at(3_000, &["0 compacting", "2000 thinking", "2250 idle"]);
    }

    #[test]
    fn a_subagents_permission_waits_in_its_parents_session() {
        let who = r#""agent_id":"C","agent_type":"default","#;
        story()
            .hook(0, "UserPromptSubmit", r#""prompt":"go""#)
            .hook(100, "SubagentStart", r#""agent_id":"C","agent_type":"default""#)
            .hook(200, "PreToolUse", &format!("{who}{TOUCH_CALL}"))
            .hook(300, "PermissionRequest", &format!("{who}{TOUCH}"))
            .hook(
                1_500,
                "PreToolUse",
                r#""tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"c9""#,
            )
            .check_at(2_000, &["0 thinking", "100 delegating", "700 needs_permission"]);
    }

    #[test]
    fn the_titles_notify_makes_no_session_and_the_turns_own_ends_it() {
        let title = br#"{"type":"agent-turn-complete","thread-id":"X","turn-id":"V","input-messages":["Generate a concise, single-line task title of at most 36"],"last-assistant-message":"List"}"#;
        let own = br#"{"type":"agent-turn-complete","thread-id":"T","turn-id":"U","input-messages":["go"],"last-assistant-message":"Done."}"#;
        story()
            .hook(0, "UserPromptSubmit", r#""prompt":"go""#)
            .signal(100, Channel::Notify, None, title)
            .signal(900, Channel::Notify, None, own)
            .check_at(2_000, &["0 thinking", "1050 task_complete"]);
    }

    #[test]
    fn the_notify_of_an_older_turn_ends_nothing() {
        let late = br#"{"type":"agent-turn-complete","thread-id":"T","turn-id":"U","input-messages":["go"]}"#;
        story()
            .hook(0, "UserPromptSubmit", r#""prompt":"go""#)
            .signal(
                100,
                Channel::Hook,
                None,
                br#"{"session_id":"T","turn_id":"W","hook_event_name":"UserPromptSubmit"}"#,
            )
            .signal(200, Channel::Notify, None, late)
            .check_at(2_000, &["0 thinking"]);
    }
}
