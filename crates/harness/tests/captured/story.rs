//! What each capture becomes, one event a line. Read a change of a story like code.

use qd_harness::replay::Scene;
use qd_session::moment::Timestamp;

use super::capture::{captures, spelled};

fn told(scenes: &[Scene], began: Timestamp) -> String {
    let mut lines: Vec<String> = Vec::new();
    for scene in scenes {
        let line = match scene {
            Scene::Event { at, event, .. } => {
                let mut fields = serde_json::to_value(event).expect("an event is JSON");
                let fields = fields.as_object_mut().expect("an event is an object");
                // Which version it was stands in its `scenario.json`.
                for told in ["type", "at", "source", "agent", "version"] {
                    fields.remove(told);
                }
                if fields.is_empty() && event.fact.name() == "place_known" {
                    continue;
                }
                let source = serde_json::to_value(event.source).expect("a source is JSON");
                let agent = if event.agent.is_main() { "" } else { "sub " };
                let fields: Vec<String> =
                    fields.iter().map(|(key, value)| format!("{key}={}", short(value))).collect();
                format!(
                    "{:>8} {:<8} {agent}{} {}",
                    at.ms_since(began),
                    source.as_str().expect("a string"),
                    event.fact.name(),
                    fields.join(" ")
                )
            }
            Scene::Changed { at, state, .. } => {
                format!("{:>8} ▶ {} \"{}\"", at.ms_since(began), spelled(state), state.label)
            }
        };
        lines.push(line.trim_end().to_owned());
    }
    lines.join("\n")
}

/// Ids and long texts are cut: the story is about what happened.
fn short(value: &serde_json::Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), |text| text.replace('\n', "⏎"));
    match text.char_indices().nth(40) {
        None => text,
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

#[test]
fn every_capture_has_its_story() {
    for capture in captures() {
        let Some(first) = capture.signals.first() else { continue };
        let story = told(&capture.play(&capture.all()), Timestamp(first.at_ms));
        insta::with_settings!({
            snapshot_path => capture.folder.clone(),
            prepend_module_to_snapshot => false,
            omit_expression => true,
        }, {
            insta::assert_snapshot!("story", story);
        });
    }
}
