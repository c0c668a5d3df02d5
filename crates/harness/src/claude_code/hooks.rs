//! Hooks: what the client tells the moment it happens.
//!
//! Not told here: Esc, a rejected dialog, kill -9. Hook processes run in parallel and overtake
//! each other by a few milliseconds, so nothing here relies on their order.

use qd_session::id::{AgentId, CallId, RequestId};
use qd_session::monitor::{Fact, Place, Stage};
use serde_json::Value;

use super::call::{End, Match};
use super::failure::failure;
use super::holders;
use super::notes::Notes;
use super::request::{Kind, ask, unbound_id};
use super::session::{Leaving, Prompt, Session};
use super::wire::Hook;
use crate::excerpt::head;

/// Events that say nothing about the state.
const SILENT: [&str; 15] = [
    "InstructionsLoaded",
    "MessageDisplay",
    "PreModelSwitch",
    "PostModelSwitch",
    "TaskCreated",
    "ConfigChange",
    "CwdChanged",
    "FileChanged",
    "DirectoryAdded",
    "Setup",
    "WorktreeCreate",
    "WorktreeRemove",
    "TeammateIdle",
    "UserPromptExpansion",
    "TaskCompleted",
];

/// Takes a hook in. False if its event is not known.
pub fn take(session: &mut Session, notes: &mut Notes, hook: &Hook, first: bool) -> bool {
    let agent = hook.agent_id.as_deref().map_or(AgentId::MAIN, AgentId::sub);
    match hook.hook_event_name.as_deref().unwrap_or_default() {
        "SessionStart" => session_start(session, notes, hook),
        "SessionEnd" => session_end(session, notes, hook),
        "UserPromptSubmit" => prompt(session, notes, hook),
        "PreToolUse" => pre_tool(session, notes, &agent, hook),
        "PermissionRequest" => permission_request(session, notes, &agent, hook),
        "PermissionDenied" => denied(session, notes, &agent, hook),
        "PostToolUse" => post_tool(session, notes, &agent, hook, true),
        "PostToolUseFailure" => post_tool(session, notes, &agent, hook, false),
        "PostToolBatch" => batch(session, notes, &agent, hook),
        // No hooks of the client's: wrappers around it tell these beside them.
        "permission_decision" => decided(session, notes, &agent, hook),
        "Interrupt" => session.interrupted(notes, &agent),
        "Stop" => stop(session, notes, hook),
        "StopFailure" => {
            let message = hook.last_assistant_message.as_deref();
            session.turn_failed(notes, &agent, failure(hook.error.as_deref(), None, message));
        }
        "SubagentStart" => {
            if let Some(id) = hook.agent_id.as_deref() {
                session.subagent_started(notes, id, hook.agent_type.as_deref().or(Some("")));
            }
        }
        "SubagentStop" => subagent_stop(session, notes, hook),
        "PreCompact" => session.compaction_started(notes),
        "PostCompact" => session.compaction_ended(notes),
        "Notification" => notification(session, notes, hook),
        "Elicitation" => elicitation(session, notes, &agent, hook),
        "ElicitationResult" => {
            let request = elicitation_id(notes, hook);
            session.requests.resolve(notes, request.as_str());
        }
        event if SILENT.contains(&event) => silent(session, notes, hook, first),
        _ => return false,
    }
    about(session, notes, hook);
    true
}

/// Where it lives and what it is called: with every event.
fn about(session: &mut Session, notes: &mut Notes, hook: &Hook) {
    let place = Place {
        cwd: hook.cwd.as_deref().map(|path| head(path, 4 << 10).into()),
        transcript: hook.transcript_path.as_deref().map(|path| head(path, 4 << 10).into()),
        ..Place::default()
    };
    session.place_known(notes, place);
    session.mode_known(notes, hook.permission_mode.as_deref());
    if let Some(title) = hook.session_title.as_deref().filter(|title| !title.is_empty()) {
        session.title_known(notes, title, true);
    }
}

fn silent(session: &mut Session, notes: &mut Notes, hook: &Hook, first: bool) {
    let event = hook.hook_event_name.as_deref().unwrap_or_default();
    // Heard of for the first time, and not by its start: hooks over HTTP get none. What may come
    // at any time says only that it exists.
    match event {
        "InstructionsLoaded" | "Setup" if first => {
            notes.tell_main(Fact::SessionStarted { process: None });
        }
        "TaskCreated" | "TaskCompleted" | "MessageDisplay" if first => {
            notes.tell_main(Fact::LlmStarted);
        }
        _ => {}
    }
    if event == "TaskCompleted" {
        let subject = hook.task_subject.as_deref().map(|subject| head(subject, 200).into());
        notes.tell_main(Fact::TaskCompleted { subject });
    }
    session.usage_known(notes, hook.to_model.as_deref(), hook.context_tokens);
}

fn session_start(session: &mut Session, notes: &mut Notes, hook: &Hook) {
    if hook.source.as_deref() == Some("compact") {
        return session.compaction_ended(notes);
    }
    let alone = session.holders.nobody();
    session.holders.started(match (hook.source.as_deref(), hook.model.is_some()) {
        (Some("startup"), true) => Some(holders::Kind::Interactive),
        (Some("startup"), false) => Some(holders::Kind::Headless),
        // Only who sits at a terminal clears.
        (Some("clear"), _) => Some(holders::Kind::Interactive),
        _ => None,
    });
    session.stream = false;
    notes.tell_main(Fact::SessionStarted { process: None });
    if hook.source.as_deref() == Some("resume") {
        session.resumed(notes, alone);
    }
    session.usage_known(notes, hook.model.as_deref(), hook.context_tokens);
}

fn session_end(session: &mut Session, notes: &mut Notes, hook: &Hook) {
    let kind = match hook.reason.as_deref() {
        Some("prompt_input_exit" | "clear" | "logout" | "resume") => {
            Some(holders::Kind::Interactive)
        }
        _ => None,
    };
    session.release(notes);
    if session.process_known || session.holders.ended(notes.now, kind) {
        session.leaving = Some(Leaving::default());
    }
}

fn prompt(session: &mut Session, notes: &mut Notes, hook: &Hook) {
    let text = hook.prompt.as_deref();
    let prompt = Prompt {
        id: hook.prompt_id.as_deref(),
        text,
        by_machine: text.is_some_and(|text| text.starts_with("<task-notification>")),
    };
    session.prompt_typed(notes, prompt);
}

fn pre_tool(session: &mut Session, notes: &mut Notes, agent: &AgentId, hook: &Hook) {
    if let (Some(call), Some(tool)) = (&hook.tool_use_id, &hook.tool_name) {
        session.call_started(notes, agent, call, tool, hook.tool_input.as_ref());
    }
}

fn permission_request(session: &mut Session, notes: &mut Notes, agent: &AgentId, hook: &Hook) {
    let Some(tool) = hook.tool_name.as_deref() else { return };
    let kind = Kind::of_tool(tool);
    // Whoever drives the stream is asked by it; here, only hooks decide. But no hook of ours
    // answers questions, so one of those waits for the driver even if its own word is lost.
    if session.stream && kind == Kind::Permission {
        return;
    }
    let input = hook.tool_input.as_ref();
    let known = match hook.tool_use_id.as_deref() {
        Some(call) => Match::Open(CallId::new(call)),
        None => session.calls.matching(notes.now, agent, tool, input),
    };
    let (request, call) = match known {
        Match::Open(call) => {
            let known = session.requests.of_call(call.as_str());
            (known.unwrap_or_else(|| RequestId::new(call.as_str())), Some(call))
        }
        Match::Unknown => (unbound_id(notes, agent, tool, input), None),
        Match::Settled => return,
    };
    let waits = session.registered.waits_since().is_some_and(|since| since >= session.moved_at);
    let stage = if waits { Stage::Waiting } else { Stage::UnderReview };
    let ask = ask(call, tool, input, None);
    let stage = if kind == Kind::Permission { stage } else { Stage::Waiting };
    session.requests.ask(notes, agent, kind, request, stage, ask);
}

/// A wrapper has decided about a permission, or leaves it to a person.
fn decided(session: &mut Session, notes: &mut Notes, agent: &AgentId, hook: &Hook) {
    if hook.decision.as_deref() == Some("ask_user") {
        permission_request(session, notes, agent, hook);
        return session.dialog_opened(notes, notes.at, Kind::Permission, None);
    }
    let tool = hook.tool_name.as_deref();
    session.requests.decided(notes, agent, hook.tool_use_id.as_deref(), tool);
}

fn denied(session: &mut Session, notes: &mut Notes, agent: &AgentId, hook: &Hook) {
    match hook.tool_use_id.as_deref() {
        Some(call) => session.call_ended(notes, agent, call, End::FAILED),
        None => session.requests.resolve_unbound(notes, agent),
    }
}

fn post_tool(session: &mut Session, notes: &mut Notes, agent: &AgentId, hook: &Hook, ok: bool) {
    let (tool, input) = (hook.tool_name.as_deref(), hook.tool_input.as_ref());
    session.requests.resolve_run(notes, agent, tool, input);
    let call = hook.tool_use_id.as_deref();
    // Settings may ask for no other hook of a tool. One that is told late begins nothing.
    let is_late = call.is_some_and(|call| session.calls.has_ended(call));
    if !is_late && hook.is_interrupt != Some(true) {
        session.works(notes, agent);
    }
    if let Some(result) = &hook.tool_response {
        session.background.note_result(result);
        finished_subagent(session, notes, result);
    }
    if let Some(call) = call {
        let end = match ok {
            true => End::by_result(hook.tool_response.as_ref()),
            false => End::by_error(hook.error.as_deref()),
        };
        session.call_ended(notes, agent, call, end);
    }
    if hook.is_interrupt == Some(true) {
        session.interrupted(notes, agent);
    }
}

/// The result of a subagent that was waited for is its end, should that itself be lost.
pub fn finished_subagent(session: &mut Session, notes: &mut Notes, result: &Value) {
    let text = |key: &str| result.get(key).and_then(Value::as_str);
    if let (Some("completed"), Some(id)) = (text("status"), text("agentId")) {
        session.subagent_ended(notes, id);
    }
}

fn batch(session: &mut Session, notes: &mut Notes, agent: &AgentId, hook: &Hook) {
    let ids = || hook.tool_calls.iter().flatten().filter_map(|call| call.tool_use_id.as_deref());
    // The client does not wait for this hook, so it may come after the end of the turn it was in.
    let late = session.is_done(agent) && ids().all(|call| session.calls.has_ended(call));
    for call in ids() {
        session.call_ended(notes, agent, call, End::OK);
    }
    session.requests.resolve_unbound(notes, agent);
    if !late {
        session.llm_started(notes, agent);
    }
}

fn stop(session: &mut Session, notes: &mut Notes, hook: &Hook) {
    let timers = hook.session_crons.as_ref().map_or(0, Vec::len);
    if let Some(tasks) = &hook.background_tasks {
        session.background.replace(tasks, timers);
        // Where only a stream tells of subagents they go by other names.
        if !session.stream {
            let running: Vec<&str> = tasks.iter().filter_map(|task| task.id.as_deref()).collect();
            session.subagents_are(notes, &running);
        }
    }
    session.compaction_ended(notes);
    notes.at = session.calls.after_ends(&AgentId::MAIN, notes.at);
    session.turn_ending(notes, hook.last_assistant_message.as_deref(), false);
}

fn subagent_stop(session: &mut Session, notes: &mut Notes, hook: &Hook) {
    // A compaction's helper has no type, and never started.
    if hook.agent_type.as_deref() == Some("") {
        return;
    }
    if let Some(id) = hook.agent_id.as_deref() {
        notes.at = session.calls.after_ends(&AgentId::sub(id), notes.at);
        session.subagent_ended(notes, id);
    }
}

fn notification(session: &mut Session, notes: &mut Notes, hook: &Hook) {
    let text = hook.message.as_deref();
    match hook.notification_type.as_deref().unwrap_or_default() {
        "permission_prompt" | "worker_permission_prompt" | "agent_needs_input" => {
            session.dialog_opened(notes, notes.at, Kind::Permission, text);
        }
        "elicitation_dialog" => session.dialog_opened(notes, notes.at, Kind::Question, text),
        "idle_prompt" => session.turn_ended(notes, None, false),
        _ => {}
    }
}

fn elicitation(session: &mut Session, notes: &mut Notes, agent: &AgentId, hook: &Hook) {
    let server = hook.mcp_server_name.as_deref().unwrap_or("mcp");
    let ask = ask(None, server, None, hook.message.as_deref());
    let request = elicitation_id(notes, hook);
    session.requests.ask(notes, agent, Kind::Question, request, Stage::Waiting, ask);
}

fn elicitation_id(notes: &Notes, hook: &Hook) -> RequestId {
    let id = hook.elicitation_id.as_deref().or(hook.mcp_server_name.as_deref());
    notes.request_id(format!("elicitation:{}", head(id.unwrap_or("mcp"), 128)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::story::Story;

    fn asking(tool: &str) -> serde_json::Value {
        json!({"hook_event_name": "PermissionRequest", "tool_name": tool, "tool_input": {}})
    }

    #[test]
    fn a_session_first_heard_of_by_a_hook_of_no_account_is_there() {
        Story::new().hook(0, json!({"hook_event_name": "InstructionsLoaded"})).shows("idle");
    }

    #[test]
    fn a_permission_waits_for_a_person_after_a_moment_of_silence() {
        Story::prompted()
            .bash(500, "PreToolUse", "c1")
            .bash_permission(600, "c1")
            .shows("acting")
            .wait_until(1_001)
            .shows("needs_permission")
            .bash(9_000, "PostToolUse", "c1")
            .shows("thinking");
    }

    #[test]
    fn what_a_wrapper_decides_is_decided_and_what_it_leaves_to_a_person_waits() {
        let decision = |decision: &str| {
            json!({"hook_event_name": "permission_decision", "tool_name": "Bash",
                "decision": decision})
        };
        Story::prompted()
            .bash(500, "PreToolUse", "c1")
            .bash_permission(600, "c1")
            .hook(650, decision("allow"))
            .wait_until(3_000)
            .shows("acting")
            .never_showed("needs_permission");
        Story::prompted()
            .bash(500, "PreToolUse", "c1")
            .bash_permission(600, "c1")
            .hook(650, decision("ask_user"))
            .shows("needs_permission")
            .hook(9_000, decision("allow"))
            .shows("acting");
    }

    #[test]
    fn an_interrupt_that_a_wrapper_tells_ends_the_turn() {
        Story::prompted()
            .bash(500, "PreToolUse", "c1")
            .bash_permission(600, "c1")
            .wait_until(1_001)
            .shows("needs_permission")
            .hook(2_000, json!({"hook_event_name": "Interrupt"}))
            .shows("interrupted");
    }

    #[test]
    fn a_permission_that_is_decided_by_itself_shows_no_card() {
        Story::prompted()
            .bash(500, "PreToolUse", "c1")
            .bash_permission(600, "c1")
            .hook(
                700,
                json!({"hook_event_name": "PostToolBatch", "tool_calls": [{"tool_use_id": "c1"}]}),
            )
            .wait_until(5_000)
            .shows("thinking")
            .never_showed("needs_permission");
    }

    #[test]
    fn a_batch_told_after_the_turns_end_begins_nothing() {
        Story::prompted()
            .bash(500, "PreToolUse", "c1")
            .bash(700, "PostToolUse", "c1")
            .hook(900, json!({"hook_event_name": "Stop", "last_assistant_message": "Done."}))
            .hook(
                950,
                json!({"hook_event_name": "PostToolBatch", "tool_calls": [{"tool_use_id": "c1"}]}),
            )
            .wait_until(5_000)
            .shows("task_complete");
    }

    #[test]
    fn an_end_that_overtook_the_last_batch_is_one() {
        let batch =
            json!({"hook_event_name": "PostToolBatch", "tool_calls": [{"tool_use_id": "c1"}]});
        Story::prompted()
            .bash(500, "PreToolUse", "c1")
            .hook(950, batch)
            .hook(900, json!({"hook_event_name": "Stop", "last_assistant_message": "Done."}))
            .wait_until(5_000)
            .shows("task_complete");
    }

    #[test]
    fn a_request_overtaken_by_its_batch_shows_no_card() {
        Story::prompted()
            .bash(500, "PreToolUse", "c1")
            .hook(
                700,
                json!({"hook_event_name": "PostToolBatch", "tool_calls": [{"tool_use_id": "c1"}]}),
            )
            .bash_permission(701, "c1")
            .wait_until(5_000)
            .never_showed("needs_permission");
    }

    #[test]
    fn a_request_that_overtakes_its_call_still_closes_with_it() {
        Story::prompted()
            .bash_permission(500, "c1")
            .bash(501, "PreToolUse", "c1")
            .wait_until(1_000)
            .shows("needs_permission")
            .bash(2_000, "PostToolUse", "c1")
            .shows("thinking");
    }

    #[test]
    fn a_call_that_is_told_late_does_not_change_when_its_request_was_asked() {
        let mut story = Story::prompted();
        story.bash_permission(510, "c1").wait_until(520).bash(500, "PreToolUse", "c1");
        let asked: Vec<u64> = story
            .wait_until(2_000)
            .shows("needs_permission")
            .monitor()
            .open_requests()
            .flat_map(|open| {
                open.asks().map(|asked| asked.at.0 - super::super::story::START).collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(asked.first(), Some(&510), "{asked:?}");
    }

    #[test]
    fn a_call_that_ends_beside_it_leaves_a_request_open() {
        let batch = json!({"hook_event_name": "PostToolBatch",
            "tool_calls": [{"tool_use_id": "c1"}, {"tool_use_id": "c2"}]});
        let read = |event: &str| {
            json!({"hook_event_name": event, "tool_name": "Read", "tool_use_id": "c1",
                "tool_input": {"file_path": "a"}})
        };
        Story::prompted()
            .hook(500, read("PreToolUse"))
            .bash_permission(510, "c2")
            .wait_until(1_000)
            .shows("needs_permission")
            .hook(2_000, read("PostToolUse"))
            .shows("needs_permission")
            .waits_for(1)
            .hook(9_000, batch)
            .shows("thinking")
            .waits_for(0);
    }

    #[test]
    fn a_request_whose_call_was_never_told_closes_when_it_has_run() {
        Story::prompted()
            .bash_permission(500, "c1")
            .wait_until(1_000)
            .shows("needs_permission")
            .bash(2_000, "PostToolUse", "c1")
            .shows("thinking")
            .waits_for(0);
    }

    #[test]
    fn a_question_that_overtakes_its_call_is_asked_once() {
        let call = |event: &str| {
            json!({"hook_event_name": event, "tool_name": "AskUserQuestion", "tool_input": {},
                "tool_use_id": "c1"})
        };
        Story::prompted()
            .hook(500, asking("AskUserQuestion"))
            .hook(501, call("PreToolUse"))
            .shows("awaiting_input")
            .waits_for(1)
            .hook(2_000, call("PostToolUse"))
            .shows("thinking")
            .waits_for(0);
    }

    #[test]
    fn a_notification_asks_even_if_the_request_was_lost() {
        let notification =
            json!({"hook_event_name": "Notification", "notification_type": "permission_prompt"});
        Story::prompted()
            .bash(500, "PreToolUse", "c1")
            .hook(6_500, notification)
            .shows("needs_permission")
            .bash(9_000, "PostToolUse", "c1")
            .shows("thinking");
    }

    #[test]
    fn a_question_opens_before_its_answer_and_closes_with_it() {
        let input = json!({"questions": [{"question": "Which?"}]});
        let hook = |event: &str| {
            json!({"hook_event_name": event, "tool_name": "AskUserQuestion", "tool_use_id": "q1",
                "tool_input": input})
        };
        Story::prompted()
            .hook(500, hook("PreToolUse"))
            .shows("awaiting_input")
            .hook(9_000, hook("PostToolUse"))
            .shows("thinking");
    }

    #[test]
    fn a_plan_awaits_approval_also_where_only_its_request_is_heard() {
        Story::prompted().hook(500, asking("ExitPlanMode")).shows("awaiting_approval");
    }

    #[test]
    fn a_stop_with_background_work_is_no_end() {
        let stop = json!({"hook_event_name": "Stop", "last_assistant_message": "Started.",
            "background_tasks": [{"id": "b1", "type": "shell", "status": "running"}]});
        Story::prompted()
            .hook(500, stop)
            .wait_until(1_000)
            .shows("delegating")
            .prompt(5_000, "p2", "<task-notification>\n<task-id>b1</task-id>")
            .shows("thinking")
            .stop(6_000, "The build is done.")
            .wait_until(7_000)
            .shows("task_complete");
    }

    #[test]
    fn a_timer_that_is_left_keeps_the_session_autonomous() {
        let stop = json!({"hook_event_name": "Stop", "background_tasks": [],
            "session_crons": [{"id": "cron"}]});
        Story::prompted().hook(500, stop).registry(900, 800, "idle", "").shows("delegating");
    }

    #[test]
    fn a_subagent_that_the_client_does_not_list_any_more_has_ended() {
        let start =
            json!({"hook_event_name": "SubagentStart", "agent_id": "a1", "agent_type": "Explore"});
        let stop = json!({"hook_event_name": "Stop", "last_assistant_message": "Done.",
            "background_tasks": []});
        Story::prompted()
            .hook(400, start)
            .shows("delegating")
            .hook(5_000, stop)
            .wait_until(6_000)
            .shows("task_complete");
    }

    #[test]
    fn a_subagents_request_after_the_main_stop_needs_you() {
        let sub = |event: &str| {
            json!({"hook_event_name": event, "agent_id": "a1", "agent_type": "Explore",
                "tool_name": "Bash", "tool_use_id": "c1", "tool_input": {"command": "x"}})
        };
        let stop = json!({"hook_event_name": "Stop",
            "background_tasks": [{"id": "a1", "type": "subagent", "status": "running"}]});
        Story::prompted()
            .hook(400, json!({"hook_event_name": "SubagentStart", "agent_id": "a1", "agent_type": "Explore"}))
            .hook(500, stop)
            .hook(1_000, sub("PreToolUse"))
            .hook(1_100, json!({"hook_event_name": "PermissionRequest", "agent_id": "a1",
                "tool_name": "Bash", "tool_input": {"command": "x"}}))
            .wait_until(1_600)
            .shows("needs_permission")
            .hook(5_000, sub("PostToolUse"))
            .shows("delegating");
    }

    #[test]
    fn a_vetoed_stop_does_not_flash() {
        Story::prompted()
            .stop(500, "First try.")
            .line(
                540,
                json!({"type": "user", "isMeta": true,
                "message": {"content": "Stop hook feedback:\nRun the tests first"}}),
            )
            .wait_until(3_000)
            .shows("thinking")
            .never_showed("task_complete");
    }

    #[test]
    fn a_prompt_typed_while_a_tool_runs_is_queued() {
        Story::prompted()
            .bash(500, "PreToolUse", "c1")
            .prompt(900, "p2", "and then")
            .shows("acting");
    }

    #[test]
    fn a_new_prompt_closes_a_dialog_that_was_dismissed() {
        Story::prompted()
            .bash(500, "PreToolUse", "c1")
            .bash_permission(600, "c1")
            .wait_until(2_000)
            .shows("needs_permission")
            .prompt(9_000, "p2", "rather not")
            .shows("thinking");
    }

    #[test]
    fn a_failed_tool_is_the_models_business() {
        Story::prompted()
            .bash(500, "PreToolUse", "c1")
            .bash(600, "PostToolUseFailure", "c1")
            .hook(
                650,
                json!({"hook_event_name": "PostToolBatch", "tool_calls": [{"tool_use_id": "c1"}]}),
            )
            .wait_until(30_000)
            .shows("thinking");
    }

    #[test]
    fn a_used_up_limit_needs_you_and_the_next_prompt_clears_it() {
        Story::prompted()
            .hook(500, json!({"hook_event_name": "StopFailure", "error": "rate_limit"}))
            .shows("usage_limit")
            .registry(900, 700, "idle", "")
            .shows("usage_limit")
            .prompt(5_000, "p2", "again")
            .shows("thinking");
    }

    #[test]
    fn compaction_is_not_idle_and_its_helper_is_no_subagent() {
        Story::prompted()
            .stop(500, "Done.")
            .wait_until(900)
            .hook(1_000, json!({"hook_event_name": "PreCompact", "trigger": "manual"}))
            .shows("compacting")
            .hook(
                2_000,
                json!({"hook_event_name": "SubagentStop", "agent_id": "x", "agent_type": ""}),
            )
            .shows("compacting")
            .hook(2_100, json!({"hook_event_name": "PostCompact"}))
            .shows("task_complete");
    }

    #[test]
    fn a_failed_compaction_ends_with_the_next_tool() {
        Story::prompted()
            .hook(500, json!({"hook_event_name": "PreCompact", "trigger": "auto"}))
            .shows("compacting")
            .bash(900, "PreToolUse", "c1")
            .shows("acting");
    }

    #[test]
    fn a_to_do_item_ticked_off_is_no_delivery() {
        Story::prompted()
            .hook(500, json!({"hook_event_name": "TaskCompleted", "task_subject": "Add auth"}))
            .shows("thinking");
    }

    #[test]
    fn a_print_run_that_ends_leaves_the_terminal_its_session() {
        Story::prompted()
            .stop(500, "One.")
            .hook(2_000, json!({"hook_event_name": "SessionStart", "source": "resume"}))
            .prompt(2_100, "p2", "from elsewhere")
            .stop(2_500, "Two.")
            .hook(2_600, json!({"hook_event_name": "SessionEnd", "reason": "other"}))
            .wait_until(4_000)
            .shows("task_complete")
            .hook(9_000, json!({"hook_event_name": "SessionEnd", "reason": "prompt_input_exit"}))
            .shows("session_ended");
    }

    #[test]
    fn a_killed_session_that_is_resumed_is_at_its_prompt() {
        Story::prompted()
            .bash(500, "PreToolUse", "c1")
            .exited(900)
            .shows("session_ended")
            .hook(5_000, json!({"hook_event_name": "SessionStart", "source": "resume"}))
            .shows("idle");
    }

    #[test]
    fn an_elicitation_is_a_question() {
        Story::prompted()
            .hook(500, json!({"hook_event_name": "Elicitation", "mcp_server_name": "db", "message": "Which?"}))
            .shows("awaiting_input")
            .hook(900, json!({"hook_event_name": "ElicitationResult", "mcp_server_name": "db"}))
            .shows("thinking");
    }
}
