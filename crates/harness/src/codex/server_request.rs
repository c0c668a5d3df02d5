//! What the app-server asks its clients, and a person must answer.

use qd_session::id::{CallId, ToolName};
use qd_session::monitor::{Ask, Stage};
use serde_json::Value;

use super::hooks::{QUESTION_TOOL, questions_text};
use super::mark::Mark;
use super::reply::needs_person;
use super::request::{Kind, Request};
use super::thread::Thread;
use super::wire;
use crate::excerpt;

impl Thread {
    /// The server asks its clients: one of them must answer.
    pub fn take_request(
        &mut self,
        mark: Mark,
        method: &str,
        told: &wire::Params,
        rpc: Value,
        params: &str,
    ) -> bool {
        let item = told.item_id.as_deref();
        let (kind, tool) = match method {
            "item/commandExecution/requestApproval" | "execCommandApproval" => {
                (Kind::Approval, "exec_command")
            }
            "item/fileChange/requestApproval" | "applyPatchApproval" => {
                (Kind::Approval, "apply_patch")
            }
            "item/permissions/requestApproval" => (Kind::Approval, "request_permissions"),
            "item/tool/requestUserInput" if told.is_blocking == Some(false) => return true,
            "item/tool/requestUserInput" => (Kind::Question, QUESTION_TOOL),
            "mcpServer/elicitation/request" => (Kind::Question, "elicitation"),
            // Our own connection is asked to do something; no person is.
            "item/tool/call"
            | "account/chatgptAuthTokens/refresh"
            | "attestation/generate"
            | "currentTime/read" => return true,
            _ => return false,
        };
        let command = told.command.as_ref().and_then(wire::command_line);
        let questions = told.questions.as_ref().and_then(questions_text);
        let reason = told.reason.as_deref().or(told.message.as_deref()).map(excerpt::input);
        // One command may ask more than once, for each program it starts. What a person must
        // approve is the command itself, of which its hook has told before.
        let own = told.approval_id.as_deref().filter(|_| !needs_person(Some(params)));
        let name = own.or(item);
        let name = name.map_or_else(|| format!("rpc:{rpc}"), str::to_owned);
        let request = Request {
            id: self.request_id(&name),
            kind,
            stage: Stage::Waiting,
            mark,
            due: None,
            ask: Ask {
                call: item.map(CallId::new),
                tool: Some(ToolName::new(tool)),
                text: questions.or(reason).or_else(|| command.as_deref().map(excerpt::input)),
                input: Some(excerpt::input(params)),
            },
            command,
            made_up: false,
            settled: None,
            rpc: Some(rpc),
        };
        self.ask(told.turn_id.as_deref(), request);
        true
    }
}
