//! Counts what driven sessions did. Pure: times come with what is folded.
//!
//! `spec/metrics.md` is the table of what it becomes on `/metrics`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, LazyLock};

use qd_broker::driving::spawning::DRIVEN_MAX;
use qd_harness::native::{Payload, StreamEvent};
use qd_runners::tools::Tool;
use qd_session::id::{SessionId, TurnId};
use qd_session::machine::{Change, ErrorCode, Kind, RunStatus, Shown, StateChanged};
use qd_session::moment::Timestamp;

use super::exporter::SpanTally;
use super::histogram::Histogram;

/// Names of tools, and of hooks, that have numbers of their own; further ones are counted together.
/// An MCP server may bring thousands, and who reads the numbers keeps a series for each.
pub const LABELS_MAX: usize = 64;

/// Longest name that is a label. The APIs of models take none that is longer.
pub const LABEL_CHARS_MAX: usize = 128;

/// The label of tools and hooks that have none of their own.
pub const OTHER: &str = "other";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Meter {
    pub transitions: BTreeMap<(Kind, Kind), u64>,
    pub errors: BTreeMap<ErrorCode, u64>,
    pub tool_runs: BTreeMap<Arc<str>, Histogram>,
    pub hook_runs: BTreeMap<Arc<str>, Histogram>,
    /// By the type of the event, as the wire spells it.
    pub stream_events: BTreeMap<&'static str, u64>,
    /// From the first delta of an answer to its completion.
    pub stream_latency: Histogram,
    /// What became of the spans that were made of the same.
    pub spans: SpanTally,
    /// Answers that are being given: whose, which, and when their first delta came.
    streams: BTreeMap<SessionId, (TurnId, Timestamp)>,
}

impl Meter {
    pub fn fold(&mut self, shown: &Shown) {
        match &shown.change {
            Change::StateChanged(StateChanged { from, to, .. }) => {
                *self.transitions.entry((*from, *to)).or_default() += 1;
                if *to == Kind::Stopped {
                    self.streams.remove(&shown.session_id);
                }
            }
            Change::ToolLifecycle(run) if is_over(run.status) => {
                let name = label(&self.tool_runs, run.tool_name.as_str(), &OWN_TOOLS);
                let ms = duration(run.started_at_ms, run.finished_at_ms);
                self.tool_runs.entry(name).or_default().add(ms);
            }
            Change::HookLifecycle(run) if is_over(run.status) => {
                let name = label(&self.hook_runs, &run.hook_name, &BTreeSet::new());
                let ms = duration(run.started_at_ms, run.finished_at_ms);
                self.hook_runs.entry(name).or_default().add(ms);
            }
            Change::ToolLifecycle(_) | Change::HookLifecycle(_) => {}
            Change::SessionError(error) => *self.errors.entry(error.code).or_default() += 1,
        }
    }

    pub fn fold_piece(&mut self, event: &StreamEvent) {
        *self.stream_events.entry(event.payload.name()).or_default() += 1;
        match &event.payload {
            Payload::TextDelta { .. }
            | Payload::ThinkingDelta { .. }
            | Payload::ToolCallDelta { .. }
            | Payload::ArtifactDelta { .. } => self.begin(event),
            Payload::Completed { .. } => {
                if let Some(ms) = self.end(event) {
                    self.stream_latency.add(ms);
                }
            }
            Payload::Error { .. } => {
                self.end(event);
            }
            Payload::Metadata { .. }
            | Payload::ToolCallCompleted { .. }
            | Payload::Status { .. } => {}
        }
    }

    /// Sessions that live have a place each.
    fn begin(&mut self, event: &StreamEvent) {
        let known = self.streams.get(&event.session_id);
        let is_known = known.is_some_and(|(stream, _)| *stream == event.stream_id);
        if !is_known && (known.is_some() || self.streams.len() < DRIVEN_MAX) {
            let begun = (event.stream_id.clone(), event.timestamp_ms);
            self.streams.insert(event.session_id.clone(), begun);
        }
    }

    /// How long the answer took, where its beginning was seen.
    fn end(&mut self, event: &StreamEvent) -> Option<u64> {
        let (stream, began) = self.streams.remove(&event.session_id)?;
        (stream == event.stream_id).then(|| event.timestamp_ms.ms_since(began))
    }
}

/// The labels of our own tools, which have a place whatever else a model names.
static OWN_TOOLS: LazyLock<BTreeSet<&str>> =
    LazyLock::new(|| Tool::ALL.into_iter().map(Tool::name).collect());

/// The name itself while there is room for it. A model may call any name, and an MCP server may
/// have thousands of tools.
fn label(known: &BTreeMap<Arc<str>, Histogram>, name: &str, own: &BTreeSet<&str>) -> Arc<str> {
    let others = known.keys().filter(|known| !own.contains(&***known)).count();
    let is_free = name.chars().count() <= LABEL_CHARS_MAX && others < LABELS_MAX;
    match own.contains(name) || known.contains_key(name) || is_free {
        true => name.into(),
        false => OTHER.into(),
    }
}

pub(super) fn is_over(status: RunStatus) -> bool {
    match status {
        RunStatus::Succeeded | RunStatus::Failed | RunStatus::Canceled => true,
        RunStatus::Queued | RunStatus::Running => false,
    }
}

pub(super) fn duration(from: Timestamp, to: Option<Timestamp>) -> u64 {
    to.map_or(0, |to| to.ms_since(from))
}
