//! Rollouts: `sessions/YYYY/MM/DD/rollout-<time>-<thread>.jsonl`.
//!
//! The one source that tells of every end, interrupts and failures too. It never says that
//! something began but a turn: a running tool is a call without its output, and so is one that
//! waits for a person. A call that asks to leave the sandbox is therefore only a hint.

use std::sync::Arc;

use qd_session::id::{CallId, ToolName};
use qd_session::moment::Timestamp;
use qd_session::monitor::{Ask, Fact, Place, Stage, Usage};
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use super::failure::{failure, resets_at};
use super::handler::Handler;
use super::hooks::QUESTION_TOOL;
use super::mark::Mark;
use super::request::{HINT_SILENCE_HOOKED_MS, HINT_SILENCE_MS, Kind, Request};
use super::roster::Role;
use super::thread::{End, Thread};
use super::{instant, text, wire};
use crate::signal::Signal;

impl Handler {
    pub(super) fn handle_line(&mut self, signal: &Signal<'_>) {
        let Some(line) = self.parsed::<wire::Line>(signal) else { return };
        let mark = Mark::told(signal, line.timestamp.as_deref().and_then(instant::parse));
        let (Some(kind), Some(payload)) = (line.r#type.as_deref(), line.payload.as_deref()) else {
            return self.not_understood(signal, None);
        };
        let file = signal.file.unwrap_or_default();
        if kind == "session_meta" {
            return self.handle_meta(signal, mark, file, payload);
        }
        let Ok(whose) = serde_json::from_str::<Whose>(payload.get()) else {
            return self.not_understood(signal, None);
        };
        let Some(id) = self.thread_of_line(signal.at, file, &whose) else {
            return self.keep_for_file(signal, file);
        };
        if self.is_stranger(signal, &id) {
            return;
        }
        self.meet_subagent(signal.at, mark, &id, payload);
        if let Some(resets_at) = self.limits_told(payload) {
            self.limit_resets_at = Some(resets_at);
        }
        let resets_at = self.limit_resets_at;
        let understood = match self.roster.thread(signal.at, &id) {
            Some(thread) => {
                thread.turn.heard.rollout = true;
                let understood = thread.take_line(mark, kind, payload, resets_at);
                thread.turn.heard.rollout = true;
                understood
            }
            None => true,
        };
        if !understood {
            self.not_understood(signal, Some(&id));
        }
    }

    fn handle_meta(&mut self, signal: &Signal<'_>, mark: Mark, file: &str, payload: &RawValue) {
        let meta = serde_json::from_str::<wire::SessionMeta>(payload.get()).unwrap_or_default();
        let Some(id) = meta.id.as_deref() else {
            return self.not_understood(signal, None);
        };
        // A fork may repeat the beginning of its parent: the first line names the file's own.
        if self.files.get(file).is_some_and(|known| **known != *id) {
            return;
        }
        self.introduce(signal.at, id, meta.role());
        self.bind_file(file, id);
        if let Some(thread) = self.roster.thread(signal.at, id) {
            thread.exists(mark);
            let place = Place {
                cwd: meta.cwd.as_deref().map(Arc::from),
                branch: meta.git.and_then(|git| git.branch).as_deref().map(Arc::from),
                transcript: (!file.is_empty()).then(|| Arc::from(file)),
            };
            thread.lives_in(mark, place);
        }
    }

    /// The thread a line belongs to: its file's, else what the line or the file's name says.
    fn thread_of_line(&mut self, now: Timestamp, file: &str, whose: &Whose) -> Option<Arc<str>> {
        if let Some(known) = self.files.get(file) {
            let id = known.clone();
            self.note_root(now, &id, whose);
            return Some(id);
        }
        let id: Arc<str> = Arc::from(whose.thread_id.as_deref().or_else(|| id_in_name(file))?);
        self.note_root(now, &id, whose);
        self.bind_file(file, &id);
        Some(id)
    }

    /// A turn that hangs below another thread's turn is a subagent's.
    fn note_root(&mut self, now: Timestamp, id: &str, whose: &Whose) {
        if self.roster.knows(id) {
            return;
        }
        if let Some(session) = whose.session_id.as_deref().filter(|session| *session != id) {
            return self.introduce(now, id, Role::Subagent { session: Arc::from(session) });
        }
        if let (Some(turn), Some(root)) = (&whose.turn_id, &whose.root_turn_id)
            && turn != root
        {
            self.meet_by_root(now, id, root);
        }
    }

    pub(super) fn meet_by_root(&mut self, now: Timestamp, id: &str, root: &str) {
        match self.roster.session_of_turn(root) {
            Some(session) if *session != *id => {
                self.introduce(now, id, Role::Subagent { session });
            }
            Some(_) => {}
            // Somebody's subagent, but whose nobody has said: no session of its own.
            None => {
                self.roster.assume(now, id, Role::Hidden);
            }
        }
    }

    /// The parent tells of its subagents.
    fn meet_subagent(&mut self, now: Timestamp, mark: Mark, parent: &str, payload: &RawValue) {
        if !payload.get().contains("SubAgentActivity") {
            return;
        }
        let Some(item) = parse::<wire::EventMsg>(payload).and_then(|event| event.item) else {
            return;
        };
        self.subagent_acts(now, mark, parent, &item);
    }

    pub(super) fn subagent_acts(
        &mut self,
        now: Timestamp,
        mark: Mark,
        parent: &str,
        item: &wire::Item,
    ) {
        let Some(child) = item.agent_thread_id.as_deref() else { return };
        let Some(session) = self.roster.thread(now, parent).map(|p| p.session.clone()) else {
            return;
        };
        self.introduce(now, child, Role::Subagent { session });
        let Some(thread) = self.roster.thread(now, child) else { return };
        let name = item.agent_path.as_deref().and_then(|path| path.rsplit('/').next());
        if thread.settings.agent_type.is_none() {
            thread.settings.agent_type = name.map(text::about);
        }
        match item.kind.as_ref().and_then(Value::as_str) {
            Some("started") if !thread.is_introduced() => {
                let kind = thread.settings.agent_type.clone();
                thread.tell(mark, Fact::SubagentStarted { kind });
            }
            Some("completed" | "interrupted" | "closed" | "shutdown" | "failed") => {
                thread.tell(mark, Fact::SubagentEnded);
            }
            Some(_) | None => {}
        }
    }

    fn limits_told(&self, payload: &RawValue) -> Option<Timestamp> {
        if !payload.get().contains("\"resets_at\"") {
            return None;
        }
        resets_at(&parse::<wire::EventMsg>(payload)?.rate_limits?)
    }
}

/// The ids that several kinds of lines carry.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
struct Whose {
    thread_id: Option<String>,
    session_id: Option<String>,
    turn_id: Option<String>,
    root_turn_id: Option<String>,
}

/// `rollout-2026-11-15T18-48-13-<uuid>.jsonl`
fn id_in_name(file: &str) -> Option<&str> {
    let name = file.rsplit('/').next()?.strip_suffix(".jsonl")?;
    let id = name.get(name.len().checked_sub(36)?..)?;
    let is_uuid = id.bytes().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    is_uuid.then_some(id)
}

fn parse<T: DeserializeOwned>(payload: &RawValue) -> Option<T> {
    serde_json::from_str(payload.get()).ok()
}

impl Thread {
    /// False if the line is of no kind we know.
    fn take_line(
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
            "token_usage_record" => self.calls.response_over(),
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

    fn take_response_item(&mut self, mark: Mark, item: &wire::ResponseItem) -> bool {
        let turn = item.passthrough.as_ref().and_then(|passed| passed.turn_id.as_deref());
        match item.r#type.as_deref().unwrap_or_default() {
            "function_call" | "custom_tool_call" | "local_shell_call" | "tool_search_call" => {
                self.speaks(mark, turn);
                self.call_written(mark, turn, item);
            }
            "function_call_output" | "custom_tool_call_output" | "tool_search_output" => {
                self.output_written(mark, turn, item);
            }
            "message" => match item.role.as_deref() {
                Some("assistant") => self.speaks(mark, turn),
                Some(_) | None => self.turn.prompted = true,
            },
            "reasoning" | "web_search_call" | "image_generation_call" => self.speaks(mark, turn),
            "additional_tools" | "agent_message" | "compaction" | "compaction_summary"
            | "ghost_snapshot" | "other" => {}
            _ => return false,
        }
        true
    }

    fn call_written(&mut self, mark: Mark, turn: Option<&str>, item: &wire::ResponseItem) {
        let Some(id) = item.call_id.as_deref() else { return };
        let tool = item.name.as_deref().unwrap_or("shell");
        let input = item.arguments.as_deref().or(item.input.as_deref()).unwrap_or_default();
        let command = match item.arguments.as_deref() {
            Some(arguments) => command_of(arguments),
            None => Some(input.to_owned()),
        };
        let call = super::call::Call { in_rollout: true, ..Self::call(id, tool, command.clone()) };
        self.start_tool(mark, turn, call);
        if tool == QUESTION_TOOL {
            self.question_asked(mark, turn, id, input);
        } else if self.asks_to_leave(tool, input) && !self.settings.decides_alone() {
            self.hint(mark, turn, id, tool, input, command);
        }
    }

    /// The call wants what the sandbox does not give.
    fn asks_to_leave(&self, tool: &str, input: &str) -> bool {
        match tool {
            "apply_patch" => self.settings.cwd().is_some_and(|cwd| patches_outside(input, cwd)),
            _ => input.contains("require_escalated"),
        }
    }

    fn hint(
        &mut self,
        mark: Mark,
        turn: Option<&str>,
        call: &str,
        tool: &str,
        input: &str,
        command: Option<String>,
    ) {
        // The app-server will say whether somebody is asked; nothing is gained by guessing.
        if self.turn.heard.app_server {
            return;
        }
        let wait_ms = if self.turn.heard.hooks { HINT_SILENCE_HOOKED_MS } else { HINT_SILENCE_MS };
        let reason = serde_json::from_str::<Value>(input)
            .ok()
            .and_then(|input| input.get("justification")?.as_str().map(text::input));
        let request = Request {
            id: self.request_id(call),
            kind: Kind::Approval,
            stage: Stage::UnderReview,
            mark,
            due: Some(mark.at.plus_ms(wait_ms)),
            ask: Ask {
                call: Some(CallId::new(call)),
                tool: Some(ToolName::new(tool)),
                text: reason.or_else(|| command.as_deref().map(text::input)),
                input: Some(text::input(input)),
            },
            command,
            hint: true,
            made_up: false,
            rpc: None,
        };
        self.ask(turn, request);
    }

    fn output_written(&mut self, mark: Mark, turn: Option<&str>, item: &wire::ResponseItem) {
        let Some(id) = item.call_id.as_deref().map(CallId::new) else { return };
        let output = item.output.as_ref().map(Value::to_string).unwrap_or_default();
        if let Some(tool) = self.calls.find(&id).map(|call| call.tool.clone()) {
            self.goal_told(tool.as_str(), &output);
        }
        // The line that ends the turn follows: nobody will take this result.
        if output.contains("aborted by user") {
            self.end_call(mark, &id, false);
        } else {
            self.end_tool(mark, turn, &id, true);
        }
    }
}

/// A shell call's command line.
fn command_of(arguments: &str) -> Option<String> {
    let value: Value = serde_json::from_str(arguments).ok()?;
    let command = value.get("cmd").or_else(|| value.get("command"))?;
    wire::command_line(command)
}

/// A patch that writes where neither the workspace nor the temporary folder is.
fn patches_outside(patch: &str, cwd: &str) -> bool {
    let paths = patch.lines().filter_map(|line| {
        let (what, path) = line.strip_prefix("*** ")?.split_once(": ")?;
        matches!(what, "Add File" | "Update File" | "Delete File" | "Move to").then_some(path)
    });
    let inside = |path: &str| match path.strip_prefix(cwd) {
        Some(rest) => rest.starts_with('/') || rest.is_empty(),
        None => !path.starts_with('/') || path.starts_with("/tmp/"),
    };
    paths.into_iter().any(|path| !inside(path) || path.split('/').any(|part| part == ".."))
}
