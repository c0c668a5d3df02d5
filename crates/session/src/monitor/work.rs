//! What the main agent did in its last turn that a domain layer cares for, and whether the session
//! ever touched code.
//!
//! A digest: the newest of each kind, joined by time as every fact is. How a run ended is not kept
//! here; the call says it, for as long as its turn is remembered.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::agent::Agent;
use super::latest::{Latest, raise};
use crate::deed::{DeedKind, FileKind, deeds, written};
use crate::id::{CallId, ToolName};
use crate::moment::Stamp;

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Work {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tests: Option<Latest<Run>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<Latest<Run>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull_request: Option<Latest<Run>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draft: Option<Latest<Draft>>,
    /// The last time that any agent of the session wrote code, in whatever turn.
    #[serde(skip_serializing_if = "never")]
    pub code: Stamp,
}

fn never(stamp: &Stamp) -> bool {
    !stamp.happened()
}

/// A command of the turn.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    pub call: CallId,
    /// The first line of a commit's message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Arc<str>>,
    success_tells: bool,
    failure_tells: bool,
}

/// A file of prose that was written in the turn.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Draft {
    pub call: CallId,
    pub path: Arc<str>,
    pub is_change: bool,
}

impl Work {
    /// Takes the start of a call in; none if nothing of it counts.
    pub(super) fn note(
        slot: &mut Option<Box<Self>>,
        stamp: Stamp,
        is_main: bool,
        call: &CallId,
        tool: &ToolName,
        about: &str,
    ) {
        if let Some(file) = written(tool.as_str(), about) {
            match file.kind {
                FileKind::Code => raise(&mut slot.get_or_insert_default().code, stamp),
                FileKind::Prose if is_main => {
                    let (call, path) = (call.clone(), file.path.into());
                    let draft = Draft { call, path, is_change: file.is_change };
                    Latest::join(&mut slot.get_or_insert_default().draft, stamp, draft);
                }
                FileKind::Prose => {}
            }
        }
        if !is_main {
            return;
        }
        for deed in deeds(tool.as_str(), about) {
            let mut message = None;
            let work = slot.get_or_insert_default();
            let slot = match deed.kind {
                DeedKind::Tests => &mut work.tests,
                DeedKind::Commit(text) => {
                    message = text.map(Into::into);
                    &mut work.commit
                }
                DeedKind::PullRequest => &mut work.pull_request,
                DeedKind::Push => continue,
            };
            let (success_tells, failure_tells) = (deed.success_tells, deed.failure_tells);
            let run = Run { call: call.clone(), message, success_tells, failure_tells };
            Latest::join(slot, stamp, run);
        }
    }

    pub(super) fn set_back(&mut self, by_ms: u64) {
        let Self { tests, commit, pull_request, draft, code } = self;
        let runs = [tests, commit, pull_request].into_iter().flatten();
        let stamps = runs.map(|run| &mut run.stamp).chain(draft.as_mut().map(|at| &mut at.stamp));
        stamps.chain([code]).for_each(|stamp| stamp.set_back(by_ms));
    }

    /// Drops what an earlier turn did; the whole of it if nothing is left.
    pub(super) fn forget_before(slot: &mut Option<Box<Self>>, turn: Stamp) {
        let Some(work) = slot else { return };
        for run in [&mut work.tests, &mut work.commit, &mut work.pull_request] {
            run.take_if(|run| run.stamp <= turn);
        }
        work.draft.take_if(|draft| draft.stamp <= turn);
        if **work == Self::default() {
            *slot = None;
        }
    }
}

impl Run {
    /// Whether it succeeded, as far as what its call returned says so. A command that could not
    /// be run or was killed has neither succeeded nor failed.
    pub fn succeeded(&self, agent: &Agent) -> Option<bool> {
        match agent.exit_code(&self.call)? {
            0 => self.success_tells.then_some(true),
            124 | 126.. | ..0 => None,
            1.. => self.failure_tells.then_some(false),
        }
    }
}

impl Draft {
    pub fn is_written(&self, agent: &Agent) -> bool {
        agent.tool_succeeded(&self.call)
    }
}
