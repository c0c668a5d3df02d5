//! The app-server: the shared daemon's socket, or a server of our own.
//!
//! Its `thread/status/changed` is the best truth there is, and comes for every thread of the
//! server; turns and items only for threads somebody subscribed to. Subagents are never announced.

use std::sync::Arc;

use qd_session::moment::Timestamp;
use qd_session::monitor::{Fact, Failure, Place, Usage};
use serde_json::Value;

use super::ending::End;
use super::failure::{failure, resets_at};
use super::handler::Handler;
use super::mark::Mark;
use super::methods::{is_known, is_passed_over};
use super::roster::Role;
use super::thread::Thread;
use super::wire;
use crate::excerpt;
use crate::signal::{Direction, Signal};

/// A thread becomes idle a moment before its turn is said to be over, and how.
const IDLE_GRACE_MS: u64 = 150;

/// The same where it was asking a moment before.
const ESC_GRACE_MS: u64 = 400;

/// A message is written when it is emitted; one that claims to be older than this is not believed.
const EMITTED_MAX_MS: u64 = 10_000;

impl Handler {
    pub(super) fn handle_message(&mut self, signal: &Signal<'_>) {
        let Some(message) = self.parsed::<wire::Message>(signal) else { return };
        let emitted = message.emitted_at_ms.map(Timestamp);
        let recent = emitted.filter(|at| signal.at.ms_since(*at) <= EMITTED_MAX_MS);
        let mark = Mark::told(signal, recent);
        if signal.direction == Direction::ToAgent {
            // What somebody asks for happens when the server says so.
            return;
        }
        let Some(method) = message.method.as_deref() else {
            return self.handle_result(signal.at, mark, message.result.as_deref());
        };
        let params = message.params.as_ref().map_or("{}", |params| params.get());
        let Ok(told) = serde_json::from_str::<wire::Params>(params) else {
            return self.not_understood(signal, None);
        };
        if let Some(resets_at) = told.rate_limits.as_ref().and_then(resets_at) {
            self.limit_resets_at = Some(resets_at);
        }
        if let Some(thread) = &told.thread {
            return self.thread_told(signal.at, mark, thread);
        }
        let Some(id) = told.thread_id.clone() else {
            // It is about the server, or about nothing that we know.
            if !is_known(method) {
                self.not_understood(signal, None);
            }
            return;
        };
        if let Some(turn) = &told.turn {
            self.meet_by_turn(signal.at, &id, turn);
        }
        if self.is_stranger(signal, &id) {
            return;
        }
        if let Some(item) = told.item.as_ref().filter(|item| item.kind() == "subAgentActivity") {
            return self.subagent_acts(signal.at, mark, &id, item);
        }
        let resets_at = self.limit_resets_at;
        let understood = match self.roster.thread(signal.at, &id) {
            Some(thread) => {
                let request = message.id.map(|rpc| (rpc, params));
                let understood = thread.take_message(mark, method, &told, request, resets_at);
                thread.turn.heard.app_server = true;
                understood
            }
            None => true,
        };
        if !understood {
            self.not_understood(signal, Some(&id));
        }
    }

    /// A turn below another thread's turn is a subagent's; one of its own makes a session.
    fn meet_by_turn(&mut self, now: Timestamp, id: &str, turn: &wire::Turn) {
        if self.roster.is_certain(id) {
            return;
        }
        match (turn.id.as_deref(), turn.root_turn_id.as_deref()) {
            (Some(own), Some(root)) if own == root => self.introduce(now, id, Role::Session),
            (Some(_), Some(root)) => self.meet_by_root(now, id, root),
            (_, None) | (None, _) => {}
        }
    }

    /// Answers to whoever is connected: they describe threads.
    fn handle_result(
        &mut self,
        now: Timestamp,
        mark: Mark,
        result: Option<&serde_json::value::RawValue>,
    ) {
        let Some(result) = result else { return };
        let Ok(value) = serde_json::from_str::<Value>(result.get()) else { return };
        let listed = value.get("data").and_then(Value::as_array).into_iter().flatten();
        for described in value.get("thread").into_iter().chain(listed) {
            if let Ok(thread) = serde_json::from_value::<wire::Thread>(described.clone()) {
                self.thread_told(now, mark, &thread);
            }
        }
    }

    fn thread_told(&mut self, now: Timestamp, mark: Mark, told: &wire::Thread) {
        let (Some(id), Some(status)) = (told.id.as_deref(), told.status.as_ref()) else { return };
        // History, not a session: nobody has it loaded.
        if status.r#type.as_deref() == Some("notLoaded") {
            return;
        }
        self.introduce(now, id, told.role());
        let Some(thread) = self.roster.thread(now, id) else { return };
        thread.turn.heard.app_server = true;
        let place = Place {
            cwd: told.cwd.as_deref().map(Arc::from),
            branch: told.git_info.as_ref().and_then(|git| git.branch.as_deref()).map(Arc::from),
            transcript: told.path.as_deref().map(Arc::from),
            forked_from: told.forked_from_id.as_deref().map(Arc::from),
            version: told.cli_version.as_deref().map(excerpt::label),
        };
        thread.lives_in(mark, place);
        if let Some(name) = told.name.as_deref() {
            thread.tell(mark, Fact::TitleKnown { title: excerpt::label(name), custom: false });
        }
        thread.status_told(mark, status);
    }
}

impl Thread {
    /// False if the message is none we know.
    fn take_message(
        &mut self,
        mark: Mark,
        method: &str,
        told: &wire::Params,
        request: Option<(Value, &str)>,
        resets_at: Option<Timestamp>,
    ) -> bool {
        if let Some((rpc, params)) = request {
            return self.take_request(mark, method, told, rpc, params);
        }
        let turn = told.turn_id.as_deref();
        match method {
            "thread/status/changed" => {
                let status = told.status.clone().unwrap_or_default();
                let Ok(status) = serde_json::from_value(status) else { return false };
                self.status_told(mark, &status);
            }
            "turn/started" => {
                let id = told.turn.as_ref().and_then(|turn| turn.id.as_deref());
                self.begin_turn(mark, id);
            }
            "turn/completed" => self.turn_completed(mark, told, resets_at),
            "item/started" => self.item_started(mark, turn, told.item.as_ref()),
            "item/completed" => self.item_completed(mark, turn, told.item.as_ref()),
            "error" if told.will_retry == Some(true) => {
                if self.at_work(mark, turn) {
                    let message = told.error.as_ref().and_then(|error| error.message.as_deref());
                    self.tell(mark, Fact::LlmRetrying { message: message.map(excerpt::label) });
                    self.turn.failure = told.error.as_ref().map(reason_of_retry);
                }
            }
            "error" => {
                self.end(mark, turn, End::Failed(failure(told.error.as_ref(), resets_at)));
            }
            "serverRequest/resolved" => {
                if let Some(rpc) = &told.request_id {
                    self.resolve_rpc(mark, rpc);
                }
            }
            "thread/tokenUsage/updated" => {
                let info = told.token_usage.as_ref();
                let tokens = info.and_then(|info| info.last_token_usage.as_ref());
                let usage = Usage {
                    model: None,
                    context_tokens: tokens.and_then(|tokens| tokens.total_tokens),
                    context_window: info.and_then(|info| info.model_context_window),
                };
                self.uses(mark, usage);
            }
            "thread/goal/updated" => {
                let status = told.goal.as_ref().and_then(|goal| goal.status.as_deref());
                self.settings.goal_active = status == Some("active");
            }
            "thread/goal/cleared" => self.settings.goal_active = false,
            "thread/settings/updated" => {
                if let Some(settings) = &told.thread_settings {
                    self.apply_settings(mark, settings);
                }
            }
            "thread/name/updated" => {
                if let Some(name) = told.thread_name.as_deref() {
                    self.tell(
                        mark,
                        Fact::TitleKnown { title: excerpt::label(name), custom: false },
                    );
                }
            }
            "thread/compacted" => self.compaction_ended(mark),
            "thread/closed" | "thread/archived" | "thread/deleted" => self.gone(mark, None, None),
            "hook/completed" => self.hook_ran(mark, turn, told.run.as_ref()),
            _ => return is_passed_over(method),
        }
        true
    }

    fn status_told(&mut self, mark: Mark, status: &wire::Status) {
        match status.r#type.as_deref() {
            Some("active") => {
                let flags = status.active_flags.as_deref().unwrap_or_default();
                let has = |name: &str| flags.iter().any(|flag| flag == name);
                self.waits(mark, has("waitingOnApproval"), has("waitingOnUserInput"));
            }
            // Late news of the time before this turn.
            Some("idle" | "systemError") if self.turn.open && mark.at < self.turn.began_at => {}
            Some("idle") if self.ending.as_ref().is_some_and(|ending| ending.definite) => {}
            Some("idle") if self.turn.open => {
                // A dialog that was open a moment ago was left by Esc: whoever knows that is awaited
                // for longer, and nothing shows as work meanwhile.
                let was_asked = self.requests.hold_settled(mark.due(ESC_GRACE_MS).plus_ms(1));
                let wait_ms = if was_asked { ESC_GRACE_MS } else { IDLE_GRACE_MS };
                self.end_after(mark, wait_ms, None, true);
            }
            Some("idle") if !self.is_introduced() => self.exists(mark),
            // It names no turn and gives no reason; who knows more comes before or after it.
            Some("systemError") if !self.turn.failed => {
                let turn = self.turn.id.clone();
                self.end(mark, turn.as_deref(), End::Failed(Failure::UNEXPLAINED));
            }
            Some("notLoaded") => self.gone(mark, None, None),
            Some(_) | None => {}
        }
    }
}

/// Why a request failed that is tried again: the message itself counts the attempts.
fn reason_of_retry(error: &wire::TurnError) -> Failure {
    let known = failure(Some(error), None);
    let details = error.additional_details.as_deref().map(excerpt::label);
    Failure { message: details, ..known }
}

#[cfg(test)]
mod tests {
    use super::super::story::{Story, story};
    use crate::signal::Channel;

    const IDLE: &str = r#"{"type":"idle"}"#;
    const ACTIVE: &str = r#"{"type":"active","activeFlags":[]}"#;
    const WAITING: &str = r#"{"type":"active","activeFlags":["waitingOnApproval"]}"#;
    const ASKED: &str = r#"{"method":"item/commandExecution/requestApproval","id":0,"params":{"threadId":"T","turnId":"U","itemId":"c1","reason":"outside","command":"/bin/bash -lc 'touch /x'"}}"#;
    const RESOLVED: &str =
        r#"{"method":"serverRequest/resolved","params":{"threadId":"T","requestId":0}}"#;

    fn working() -> Story {
        story()
            .server(0, r#"{"method":"thread/started","params":{"thread":{"id":"T","ephemeral":false,"source":"vscode","status":{"type":"idle"}}}}"#)
            .status(100, ACTIVE)
            .server(100, r#"{"method":"turn/started","params":{"threadId":"T","turn":{"id":"U","rootTurnId":"U"}}}"#)
    }

    fn completed(story: Story, at: u64, turn: &str) -> Story {
        let message =
            format!(r#"{{"method":"turn/completed","params":{{"threadId":"T","turn":{turn}}}}}"#);
        story.server(at, &message)
    }

    #[test]
    fn a_turn_ends_with_what_was_said_last() {
        completed(
            working().status(900, IDLE),
            905,
            r#"{"id":"U","status":"completed","items":[{"type":"agentMessage","text":"Done."}]}"#,
        )
        .check_at(5_000, &["0 idle", "100 thinking", "1055 task_complete"]);
    }

    #[test]
    fn an_interrupted_turn_never_looks_finished() {
        completed(working().status(900, IDLE), 901, r#"{"id":"U","status":"interrupted"}"#)
            .check_at(5_000, &["0 idle", "100 thinking", "901 interrupted"]);
    }

    #[test]
    fn a_request_waits_at_once_and_ends_when_the_server_says_so() {
        working()
            .server(500, ASKED)
            .status(501, WAITING)
            .server(4_000, RESOLVED)
            .check_at(9_000, &["0 idle", "100 thinking", "500 needs_permission", "4300 thinking"]);
    }

    #[test]
    fn a_request_told_after_its_answer_is_not_asked_again() {
        let late = |story: Story| story.status(450, WAITING).status(4_000, ACTIVE);
        late(working())
            .server(3_000, ASKED)
            .check_at(9_000, &["0 idle", "100 thinking", "550 needs_permission", "4300 thinking"]);
    }

    #[test]
    fn the_status_ends_a_wait_whose_answer_was_lost() {
        working()
            .server(500, ASKED)
            .status(4_000, ACTIVE)
            .check_at(9_000, &["0 idle", "100 thinking", "500 needs_permission", "4300 thinking"]);
    }

    #[test]
    fn a_flag_without_its_request_waits_in_the_requests_name() {
        working()
            .status(500, WAITING)
            .status(4_000, ACTIVE)
            .check_at(9_000, &["0 idle", "100 thinking", "600 needs_permission", "4300 thinking"]);
    }

    #[test]
    fn a_flag_makes_a_reviewed_permission_a_persons_business() {
        working()
            .hook(
                400,
                "PermissionRequest",
                r#""tool_name":"Bash","tool_input":{"command":"touch /x"}"#,
            )
            .status(450, WAITING)
            .check(&["0 idle", "100 thinking", "450 needs_permission"]);
    }

    #[test]
    fn where_the_server_watches_silence_after_a_hook_says_nothing() {
        working()
            .hook(
                400,
                "PermissionRequest",
                r#""tool_name":"Bash","tool_input":{"command":"touch /x"}"#,
            )
            .check_at(3_000, &["0 idle", "100 thinking"]);
    }

    #[test]
    fn a_question_over_the_server_awaits_input() {
        working()
            .server(500, r#"{"method":"item/tool/requestUserInput","id":3,"params":{"threadId":"T","turnId":"U","itemId":"c1","isBlocking":true,"questions":[{"id":"db","question":"Which?"}]}}"#)
            .server(2_000, r#"{"method":"serverRequest/resolved","params":{"threadId":"T","requestId":3}}"#)
            .check_at(9_000, &["0 idle", "100 thinking", "500 awaiting_input", "2300 thinking"]);
    }

    #[test]
    fn a_retry_is_work_and_a_last_failure_is_not() {
        working()
            .server(500, r#"{"method":"error","params":{"threadId":"T","turnId":"U","willRetry":true,"error":{"message":"Reconnecting... 1/2"}}}"#)
            .status(900, r#"{"type":"systemError"}"#)
            .server(900, r#"{"method":"error","params":{"threadId":"T","turnId":"U","willRetry":false,"error":{"message":"busy","codexErrorInfo":"internalServerError"}}}"#)
            .status(5_000, ACTIVE)
            .check(&[
                "0 idle",
                "100 thinking",
                "500 retrying",
                "900 error",
                "900 server_error",
                "5000 thinking",
            ]);
    }

    /// The rollout of 401 is written before the status is emitted, and read after it.
    #[test]
    fn the_reason_of_a_failure_stands_whichever_comes_last() {
        const FAILED: &str = r#"{"type":"systemError"}"#;
        const WHY: &str = r#"{"type":"task_complete","turn_id":"U","error":{"message":"unexpected status 401","codex_error_info":{"http_connection_failed":{"http_status_code":401}}}}"#;
        const HOOK: &str =
            r#""status":"failed","error":"unexpected status 401 Unauthorized: no key""#;
        let begun = || working().rollout_begins(150);
        begun()
            .line(890, "event_msg", WHY)
            .status(900, FAILED)
            .check_at(5_000, &["0 idle", "100 thinking", "890 auth_error"]);
        let line =
            r#"{"timestamp":"2026-11-15T18:40:00.890Z","type":"event_msg","payload":{PAYLOAD}}"#;
        let late = line.replace("{PAYLOAD}", WHY);
        begun()
            .status(900, FAILED)
            .signal(912, Channel::Transcript, Some("t.jsonl"), late.as_bytes())
            .check_at(5_000, &["0 idle", "100 thinking", "900 error", "912 auth_error"]);
        begun()
            .hook(880, "PostModelRequest", HOOK)
            .status(900, FAILED)
            .check_at(5_000, &["0 idle", "100 thinking", "880 retrying", "900 auth_error"]);
        begun()
            .status(900, FAILED)
            .hook(930, "PostModelRequest", HOOK)
            .check_at(5_000, &["0 idle", "100 thinking", "900 error", "930 auth_error"]);
    }

    #[test]
    fn a_hook_that_came_late_does_not_outlive_the_end_of_its_turn() {
        const HOOK: &str =
            r#""status":"failed","error":"unexpected status 401 Unauthorized: no key""#;
        let line = r#"{"timestamp":"2026-11-15T18:40:00.890Z","type":"event_msg","payload":{"type":"task_complete","turn_id":"U","error":{"message":"unexpected status 401"}}}"#;
        working()
            .rollout_begins(150)
            .hook(901, "PostModelRequest", HOOK)
            .signal(912, Channel::Transcript, Some("t.jsonl"), line.as_bytes())
            .check_at(5_000, &["0 idle", "100 thinking", "901 retrying", "912 auth_error"]);
    }

    #[test]
    fn a_failure_of_an_earlier_turn_says_nothing_about_this_one() {
        const HOOK: &str =
            r#""status":"failed","error":"unexpected status 401 Unauthorized: no key""#;
        working()
            .hook(300, "PostModelRequest", HOOK)
            .status(400, r#"{"type":"systemError"}"#)
            .server(1_000, r#"{"method":"turn/started","params":{"threadId":"T","turn":{"id":"V","rootTurnId":"V"}}}"#)
            .status(2_000, r#"{"type":"systemError"}"#)
            .check_at(
                5_000,
                &["0 idle", "100 thinking", "300 retrying", "400 auth_error", "1000 thinking", "2000 error"],
            );
    }

    #[test]
    fn esc_at_a_dialog_never_looks_like_work() {
        let shown = ["0 idle", "100 thinking", "500 needs_permission"];
        let aborted =
            |at: u64| [shown.as_slice(), &[&*format!("{at} interrupted").leak()]].concat();
        let asked = || working().server(500, ASKED).status(501, WAITING);
        // The interrupt is heard of only when the turn is over.
        completed(
            asked().server(4_000, RESOLVED).status(4_001, ACTIVE).status(4_049, IDLE),
            4_050,
            r#"{"id":"U","status":"interrupted"}"#,
        )
        .check_at(9_000, &aborted(4_050));
        // The rollout that tells of it is read late.
        const ABORTED: &str = r#"{"type":"turn_aborted","turn_id":"U","reason":"interrupted"}"#;
        let late = working().rollout_begins(150).server(500, ASKED).status(501, WAITING);
        let late = late.status(4_001, ACTIVE).status(4_049, IDLE);
        late.line(4_400, "event_msg", ABORTED).check_at(9_000, &aborted(4_400));
        // The hook is ahead of it.
        completed(
            asked().hook(3_990, "Interrupt", "").status(4_001, ACTIVE).status(4_049, IDLE),
            4_050,
            r#"{"id":"U","status":"interrupted"}"#,
        )
        .check_at(9_000, &aborted(3_990));
    }

    #[test]
    fn a_title_thread_is_no_session_whichever_message_comes_first() {
        story()
            .server(0, r#"{"method":"thread/status/changed","params":{"threadId":"X","status":{"type":"active","activeFlags":[]}}}"#)
            .server(20, r#"{"method":"thread/started","params":{"thread":{"id":"X","ephemeral":true,"threadSource":"thread_title","status":{"type":"idle"}}}}"#)
            .check_at(5_000, &[]);
    }

    #[test]
    fn a_thread_that_is_attached_to_another_is_no_session() {
        story()
            .server(0, r#"{"method":"thread/started","params":{"thread":{"id":"X","ephemeral":false,"attachedToThreadId":"T","source":"vscode","status":{"type":"idle"}}}}"#)
            .server(20, r#"{"method":"thread/status/changed","params":{"threadId":"X","status":{"type":"active","activeFlags":[]}}}"#)
            .line_of("x.jsonl", 40, "session_meta", r#"{"id":"X","session_id":"X","attached_to_thread_id":"T","source":"vscode"}"#)
            .check_at(5_000, &[]);
    }

    #[test]
    fn a_thread_nobody_introduces_is_a_session_after_a_moment() {
        story().status(0, ACTIVE).status(5, WAITING).check_at(1_000, &["250 needs_permission"]);
    }

    #[test]
    fn a_subagents_turn_belongs_to_the_session_above_it() {
        working()
            .server(300, r#"{"method":"turn/started","params":{"threadId":"C","turn":{"id":"V","rootTurnId":"U"}}}"#)
            .server(900, r#"{"method":"turn/completed","params":{"threadId":"C","turn":{"id":"V","rootTurnId":"U","status":"completed"}}}"#)
            .check_at(5_000, &["0 idle", "100 thinking", "300 delegating", "900 thinking"]);
    }

    #[test]
    fn a_list_of_old_threads_makes_no_sessions() {
        story()
            .server(
                0,
                r#"{"id":3,"result":{"data":[{"id":"O","status":{"type":"notLoaded"}},"T"]}}"#,
            )
            .check_at(5_000, &[]);
    }

    #[test]
    fn a_subagent_that_is_unloaded_does_not_end_its_session() {
        working()
            .server(300, r#"{"method":"turn/started","params":{"threadId":"C","turn":{"id":"V","rootTurnId":"U"}}}"#)
            .server(900, r#"{"method":"thread/status/changed","params":{"threadId":"C","status":{"type":"notLoaded"}}}"#)
            .check_at(5_000, &["0 idle", "100 thinking", "300 delegating", "900 thinking"]);
    }

    #[test]
    fn a_thread_that_is_unloaded_has_ended() {
        working()
            .status(900, r#"{"type":"notLoaded"}"#)
            .check_at(5_000, &["0 idle", "100 thinking", "900 session_ended"]);
    }

    #[test]
    fn a_turn_that_was_joined_in_the_middle_stays_over_once_it_is() {
        let story = story()
            .server(0, r#"{"id":2,"result":{"thread":{"id":"T","source":"vscode","status":{"type":"active","activeFlags":[]}}}}"#);
        completed(story, 900, r#"{"id":"U","rootTurnId":"U","status":"completed"}"#)
            .server(950, r#"{"method":"item/started","params":{"threadId":"T","turnId":"U","item":{"type":"agentMessage","id":"m"}}}"#)
            .check_at(5_000, &["0 thinking", "1050 idle"]);
    }

    #[test]
    fn a_thread_of_which_only_its_status_is_heard_is_no_session() {
        let status = |kind: &str| {
            format!(
                r#"{{"method":"thread/status/changed","params":{{"threadId":"title","status":{{"type":"{kind}"}}}}}}"#
            )
        };
        working()
            .server(150, &status("active"))
            .server(800, &status("systemError"))
            .check_at(5_000, &["0 idle", "100 thinking"]);
    }

    #[test]
    fn what_a_person_must_approve_is_asked_once() {
        let story = working()
            .hook(200, "PreToolUse", r#""tool_name":"Bash","tool_use_id":"c1","tool_input":{"command":"echo tea"}"#)
            .hook(250, "PermissionRequest", r#""tool_name":"Bash","tool_input":{"command":"echo tea"}"#)
            .status(255, WAITING)
            .server(256, r#"{"method":"item/commandExecution/requestApproval","id":0,"params":{"kind":"humanCommand","threadId":"T","turnId":"U","itemId":"c1","approvalId":"a1","reason":"a person must see it","command":"/bin/sh -lc 'echo tea'"}}"#);
        let open: Vec<String> =
            story.monitor().open_requests().map(|open| open.id.to_string()).collect();
        assert_eq!(open, ["c1"]);
    }

    #[test]
    fn a_queued_prompt_follows_without_a_word_of_rest() {
        let story = completed(
            working().status(900, IDLE),
            902,
            r#"{"id":"U","status":"completed","items":[{"type":"agentMessage","text":"Done."}]}"#,
        );
        story
            .status(937, ACTIVE)
            .server(938, r#"{"method":"turn/started","params":{"threadId":"T","turn":{"id":"V","rootTurnId":"V"}}}"#)
            .check_at(5_000, &["0 idle", "100 thinking"]);
    }

    #[test]
    fn compaction_over_the_server_is_not_idle() {
        let story = working()
            .server(200, r#"{"method":"item/started","params":{"threadId":"T","turnId":"U","item":{"type":"contextCompaction","id":"k"}}}"#)
            .server(900, r#"{"method":"item/completed","params":{"threadId":"T","turnId":"U","item":{"type":"contextCompaction","id":"k"}}}"#);
        completed(story, 950, r#"{"id":"U","status":"completed","items":[]}"#).check_at(
            5_000,
            &["0 idle", "100 thinking", "200 compacting", "900 thinking", "1100 idle"],
        );
    }
}
