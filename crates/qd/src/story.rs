//! A replay told to a person: signal, event, what changed, and why.

use std::fmt::Write as _;

use qd_harness::Signal;
use qd_harness::replay::Scene;
use qd_session::moment::Timestamp;
use qd_session::operator::AgentState;
use serde_json::Value;

use crate::session_line::{plain, plain_code};

/// Most of a signal's or an event's text that is shown on its line.
const LINE_CHARS_MAX: usize = 160;

/// Tells a replay line by line, with times from its beginning.
#[derive(Debug, Default)]
pub struct Story {
    began: Option<Timestamp>,
}

impl Story {
    /// The line of a signal that led to something.
    pub fn signal(&mut self, signal: &Signal<'_>) -> String {
        let text = String::from_utf8_lossy(signal.payload);
        let when = self.time(signal.at);
        format!("{when} {:<10} {}", signal.channel.name(), shortened(&text))
    }

    pub fn scene(&mut self, scene: &Scene) -> String {
        match scene {
            Scene::Event { at, session, event } => {
                let mut fields = serde_json::to_value(event).unwrap_or_default();
                let kind = event.fact.name();
                for told in ["type", "at", "seq", "source", "agent"] {
                    fields.as_object_mut().map(|fields| fields.remove(told));
                }
                let agent = if event.agent.is_main() {
                    String::new()
                } else {
                    format!(" of {}", event.agent.as_str())
                };
                let late_ms = at.ms_since(event.at);
                let late = if late_ms > 0 { format!(" ({late_ms} ms ago)") } else { String::new() };
                let when = self.time(*at);
                let fields = if fields == Value::Object(Default::default()) {
                    String::new()
                } else {
                    format!(" {}", shortened(&fields.to_string()))
                };
                format!("{when}   · {} {kind}{agent}{late}{fields}", short_id(session))
            }
            Scene::Changed { at, session, state } => {
                let when = self.time(*at);
                format!("{when}   ▶ {} {}", short_id(session), told(state))
            }
        }
    }

    fn time(&mut self, at: Timestamp) -> String {
        let began = *self.began.get_or_insert(at);
        let ms = at.ms_since(began);
        format!("{:>7}.{:03}", ms / 1_000, ms % 1_000)
    }
}

/// The operator's view in a line: group, sub-state, label, and why.
pub fn told(state: &AgentState) -> String {
    let group = serde_json::to_value(state.group).unwrap_or_default();
    let source = serde_json::to_value(state.source).unwrap_or_default();
    let mut line = format!(
        "{}/{} \"{}\" ({}, {:.0} %)",
        group.as_str().unwrap_or_default(),
        state.state.as_str(),
        plain(&state.label),
        source.as_str().unwrap_or_default(),
        state.confidence * 100.0
    );
    if let Some(context) = &state.context {
        let _ = write!(line, " {}", shortened(&context.to_string()));
    }
    line
}

/// Vendors' ids are long; their end tells them apart.
fn short_id(session: &str) -> &str {
    let from = session.len().saturating_sub(8);
    session.get(from..).unwrap_or(session)
}

fn shortened(text: &str) -> String {
    let line = plain_code(text);
    match line.char_indices().nth(LINE_CHARS_MAX) {
        None => line,
        Some((at, _)) => format!("{}…", &line[..at]),
    }
}
