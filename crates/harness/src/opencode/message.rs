//! The messages of a session, and its to-do list.

use std::collections::BTreeSet;
use std::sync::Arc;

use qd_session::moment::Timestamp;
use qd_session::monitor::{Fact, Usage};
use serde_json::Value;

use super::handler::{Handler, Told};
use super::wire::{Info, Todo};
use crate::excerpt::brief;

impl Handler {
    pub(super) fn message(&mut self, at: Timestamp, id: &Arc<str>, info: Info, told: &mut Told) {
        let session = self.session(id, at);
        let Some(message) = info.id.as_deref() else { return };
        if info.role.as_deref() == Some("user") {
            if session.note_prompt(message) && !session.busy {
                session.begin();
                told.push(id, Fact::TurnStarted);
            }
            return;
        }
        let over = info.time.as_ref().is_some_and(|time| time.completed.is_some());
        // Ids grow with time: late news of an older answer begins nothing.
        let newer = session.answer.as_deref().is_none_or(|answer| answer < message);
        if newer && !over && info.error.is_none() {
            session.answer = Some(message.to_owned());
            told.push(id, session.go_on());
        }
        let current = session.answer.as_deref() == Some(message);
        if current {
            session.cut_off = info.finish.as_deref() == Some("length");
        }
        if info.summary.as_ref().and_then(Value::as_bool) == Some(true) {
            told.push(id, if over { Fact::CompactionEnded } else { Fact::CompactionStarted });
        }
        if let Some(mode) = info.mode.filter(|mode| session.mode.as_ref() != Some(mode)) {
            told.push(id, Fact::ModeChanged { mode: mode.as_str().into() });
            session.mode = Some(mode);
        }
        if let Some(tokens) = info.tokens.as_ref().filter(|tokens| tokens.context() > 0) {
            let model = info.model_id.as_deref().map(Arc::from);
            let context_tokens = Some(tokens.context());
            let usage = Usage { model, context_tokens, context_window: None };
            told.push(id, Fact::UsageReported { usage });
        }
        // The failure itself may have been lost; of a turn that is over it is no news.
        if let Some(error) = info.error.filter(|_| current && session.busy) {
            self.failed(at, id, &error, told);
        }
    }

    pub(super) fn todos(
        &mut self,
        at: Timestamp,
        id: &Arc<str>,
        todos: Vec<Todo>,
        told: &mut Told,
    ) {
        let session = self.session(id, at);
        let done: BTreeSet<String> = todos
            .into_iter()
            .filter(|todo| todo.status.as_deref() == Some("completed"))
            .filter_map(|todo| Some(brief(&todo.content?, 200).to_string()))
            .take(TODOS_MAX)
            .collect();
        for subject in done.difference(&session.done_todos) {
            told.push(id, Fact::TaskCompleted { subject: Some(subject.as_str().into()) });
        }
        session.done_todos = done;
    }
}

/// Most to-do items of a list that are compared with the list before.
const TODOS_MAX: usize = 256;
