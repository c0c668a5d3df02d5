//! The parts of a message: what was typed, what the model says, the tools it uses.

use std::sync::Arc;

use qd_session::id::{CallId, ToolName};
use qd_session::moment::Timestamp;
use qd_session::monitor::Fact;
use serde_json::Value;

use super::handler::{Handler, Told};
use super::request::question_stand_in;
use super::wire::{Part, ToolState};
use crate::excerpt::brief;

impl Handler {
    pub(super) fn part(&mut self, at: Timestamp, id: &Arc<str>, part: Part, told: &mut Told) {
        let message = part.message_id.as_deref();
        let session = self.session(id, at);
        match part.r#type.as_deref() {
            Some("text") => {
                let text = part.text.as_deref().unwrap_or_default();
                match message.filter(|message| session.is_prompt(message)) {
                    Some(message) if part.synthetic != Some(true) => {
                        let prompt = session.prompt_text(message, text);
                        prompt.into_iter().for_each(|prompt| told.push(id, prompt));
                    }
                    Some(_) => {}
                    None => session.says(message, text),
                }
            }
            Some("step-start") if !session.is_settled(message) => told.push(id, session.go_on()),
            Some("tool") => self.tool(at, id, part, told),
            Some("compaction") => told.push(id, Fact::CompactionStarted),
            Some("retry") if session.busy => {
                let said = part.error.and_then(|error| error.data?.message);
                let message = said.as_deref().map(|said| brief(said, 200));
                told.push(id, Fact::LlmRetrying { message });
            }
            // Reasoning, finished steps, patches, snapshots, files: no news of the state.
            _ => {}
        }
    }

    fn tool(&mut self, at: Timestamp, id: &Arc<str>, part: Part, told: &mut Told) {
        let (Some(call), Some(state)) = (part.call_id.as_deref(), part.state) else { return };
        let call = CallId::new(call);
        let tool = part.tool.as_deref().unwrap_or("tool");
        self.delegation(at, id, &state, told);
        let session = self.session(id, at);
        if matches!(state.status.as_deref(), Some("completed" | "error")) {
            session.drop_stand_in(&call).into_iter().for_each(|fact| told.push(id, fact));
        }
        match state.status.as_deref() {
            Some("running") if !session.is_settled(part.message_id.as_deref()) => {
                session.busy = true;
                session.unanswered = false;
                let questions = state.input.as_ref().and_then(|input| input.get("questions"));
                if let Some(questions) = questions.filter(|_| tool == "question") {
                    session.stand_in(&call, question_stand_in(at, &call, questions));
                }
                let about = about(&state);
                told.push(id, Fact::ToolStarted { call, tool: ToolName::new(tool), about });
            }
            Some("completed") => {
                let exit_code = state.metadata.as_ref().and_then(|more| more.get("exit")?.as_i64());
                let exit_code = exit_code.and_then(|code| i32::try_from(code).ok());
                told.push(id, Fact::ToolCompleted { call, ok: true, exit_code });
            }
            Some("error") => {
                // What the operator turned down has not failed.
                let ok = session.turned_down;
                told.push(id, Fact::ToolCompleted { call, ok, exit_code: None });
            }
            _ => {}
        }
    }

    /// A delegating tool names the session it delegates to.
    fn delegation(&mut self, at: Timestamp, id: &Arc<str>, state: &ToolState, told: &mut Told) {
        let metadata = state.metadata.as_ref();
        let child = metadata.and_then(|metadata| metadata.get("sessionId")?.as_str());
        let Some(child) = child.filter(|child| **child != **id) else { return };
        let input = state.input.as_ref();
        let kind = input.and_then(|input| input.get("subagent_type")?.as_str()).map(Arc::from);
        self.child(at, &child.into(), id, kind, told);
    }
}

/// What a tool is about: the server's own title for it, else what its input is mostly about.
fn about(state: &ToolState) -> Option<Arc<str>> {
    let input = state.input.as_ref();
    let named = ["command", "filePath", "path", "pattern", "query", "url", "description"];
    let from_input = named.iter().find_map(|name| input?.get(name)?.as_str());
    let title = state.title.as_deref().filter(|title| !title.is_empty());
    from_input.or(title).map(|about| brief(about, 200))
}

/// The words of the questions, one a line.
pub fn questions_text(questions: &Value) -> Option<Arc<str>> {
    let all = questions.as_array()?.iter().filter_map(|question| question["question"].as_str());
    let text = all.collect::<Vec<_>>().join("\n");
    (!text.is_empty()).then(|| brief(&text, 2_000))
}
