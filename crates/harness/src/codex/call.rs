//! The tool calls of a turn, as far as a handler must remember them.
//!
//! Codex names a call alike everywhere but for two places: its permission hook names none, and a
//! rollout knows only the outer call of a script. Both are matched here.

use std::sync::Arc;

use qd_session::id::{CallId, ToolName};

use crate::excerpt::head;

/// Most calls remembered of one turn. Only open ones and the freshly ended ones matter.
const CALLS_MAX: usize = 128;

/// Longest name of an item that is remembered; real ones have a dozen bytes.
const ITEM_BYTES_MAX: usize = 64;

/// The tool of a model that calls others by a script. They stand in no rollout.
pub const SCRIPT_TOOL: &str = "exec";

/// Before the id of an item that no other source has named.
const EXEC: &str = "exec:";

/// Longest command or patch that is compared. Two that agree so far are the same one.
const COMMAND_BYTES_MAX: usize = 4 << 10;

#[derive(Debug, Clone)]
pub struct Call {
    pub id: CallId,
    pub tool: ToolName,
    /// What it runs: a command line or a patch.
    pub command: Option<String>,
    pub ended: bool,
    pub exit_code: Option<i32>,
    /// Announced by the model's own message in the rollout, which will hold its output as well.
    pub in_rollout: bool,
    /// What `codex exec` calls it: it counts its own ids.
    pub exec_item: Option<Arc<str>>,
    /// The response it came with is over: what the model says next, it says knowing the result.
    pub response_over: bool,
}

/// A command or patch as far as two tellings of it are compared.
pub fn command(text: &str) -> String {
    head(text, COMMAND_BYTES_MAX).to_owned()
}

#[derive(Debug, Default)]
pub struct Calls(Vec<Call>);

impl Calls {
    pub fn clear(&mut self) {
        self.0.clear();
    }

    pub fn find(&self, id: &CallId) -> Option<&Call> {
        self.0.iter().find(|call| call.id == *id)
    }

    pub fn has_ended(&self, id: &CallId) -> bool {
        self.find(id).is_some_and(|call| call.ended)
    }

    pub fn any_open(&self) -> bool {
        self.0.iter().any(|call| !call.ended)
    }

    /// Remembers a call, or adds what another source knows of it.
    pub fn start(&mut self, new: Call) {
        if let Some(known) = self.0.iter_mut().find(|call| call.id == new.id) {
            known.in_rollout |= new.in_rollout;
            if known.command.is_none() {
                known.command = new.command;
            }
            return;
        }
        self.make_room();
        self.0.push(new);
    }

    pub fn end(&mut self, id: &CallId) {
        match self.0.iter_mut().find(|call| call.id == *id) {
            Some(known) => known.ended = true,
            // Its start was lost, or comes later: it must open nothing.
            None => {
                self.make_room();
                self.0.push(Call {
                    id: id.clone(),
                    tool: ToolName::new(""),
                    command: None,
                    ended: true,
                    exit_code: None,
                    in_rollout: false,
                    exec_item: None,
                    response_over: true,
                });
            }
        }
    }

    /// What the command of a call returned. Told beside its end, and not by everybody.
    pub fn returned(&mut self, id: &CallId, exit_code: Option<i32>) {
        if let Some(known) = self.0.iter_mut().find(|call| call.id == *id) {
            known.exit_code = exit_code.or(known.exit_code);
        }
    }

    /// The open call a permission is about: the newest with that command or, where the tool runs
    /// none, the newest of that tool.
    pub fn running(&self, tool: &str, command: Option<&str>) -> Option<&Call> {
        let mut open = self.0.iter().rev().filter(|call| !call.ended);
        match command.map(str::trim_end) {
            Some(command) => open.find(|call| {
                call.command.as_deref().is_some_and(|known| known.trim_end() == command)
            }),
            None => open.find(|call| call.tool.as_str() == tool),
        }
    }

    /// The call that `codex exec` tells of as `item`: one that another source has named and that
    /// runs the same command, else one of its own.
    pub fn of_exec(&mut self, item: &str, command: Option<&str>) -> CallId {
        let of_item = |call: &&mut Call| call.exec_item.as_deref() == Some(item);
        if let Some(known) = self.0.iter_mut().find(of_item) {
            return known.id.clone();
        }
        let own = CallId::new(format!("{EXEC}{item}"));
        let is_same = |call: &&mut Call| {
            let runs = call.command.as_deref().map(str::trim_end);
            let is_named = call.exec_item.is_some() || call.id.as_str().starts_with(EXEC);
            !call.ended && !is_named && runs.is_some() && runs == command.map(str::trim_end)
        };
        // The oldest first: both tell of their calls in the order of their start.
        match self.0.iter_mut().find(is_same) {
            Some(same) => {
                same.exec_item = Some(head(item, ITEM_BYTES_MAX).into());
                same.id.clone()
            }
            None => own,
        }
    }

    /// The response that was streamed is complete. True if it called anything.
    pub fn response_over(&mut self) -> bool {
        let mut called = false;
        for call in &mut self.0 {
            called |= call.in_rollout && !call.response_over;
            call.response_over = true;
        }
        called
    }

    /// Ends what must have ended, now that the model speaks again.
    pub fn end_answered(&mut self) -> Vec<CallId> {
        let answered = self.0.iter_mut().filter(|call| call.response_over && !call.ended);
        answered
            .map(|call| {
                call.ended = true;
                call.id.clone()
            })
            .collect()
    }

    /// The open calls of scripts: what asks in their name has an id of its own.
    pub fn open_scripts(&self) -> Vec<CallId> {
        let scripts = self.0.iter().filter(|call| !call.ended && call.tool.as_str() == SCRIPT_TOOL);
        scripts.map(|call| call.id.clone()).collect()
    }

    fn make_room(&mut self) {
        if self.0.len() == CALLS_MAX {
            let oldest = self.0.iter().position(|call| call.ended).unwrap_or(0);
            self.0.remove(oldest);
        }
    }
}
