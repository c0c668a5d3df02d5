//! What files of a repository say. Whoever may write to a repository may make agents in it ask more
//! often; nobody may make them ask less.

use serde_json::Value;

use super::Preset;
use super::file::{Reading, Trouble};
use super::rule::{Effect, Rule};

#[derive(Debug, Clone, Default)]
pub struct Tightening {
    /// They ask or deny.
    pub(super) rules: Vec<Rule>,
    /// The most that may hold.
    pub(super) preset: Option<Preset>,
    pub(super) is_yolo_forbidden: bool,
    pub(super) is_broken: bool,
}

impl Tightening {
    /// As `.quarterdeck/policy.toml` spells it: `preset` and `[[rule]]`, none of which allows.
    pub fn of_repository(file: &Value, home: &str) -> (Self, Vec<Trouble>) {
        let mut reading = Reading::new(home);
        let layer = reading.layer(file, "", &["preset", "rule"]);
        let (mut rules, allowing): (Vec<Rule>, Vec<Rule>) =
            layer.rules.into_iter().partition(|rule| rule.effect != Effect::Allow);
        for rule in allowing {
            reading.trouble(&rule.name, "a repository cannot allow: it is left out".to_owned());
        }
        rules.shrink_to_fit();
        let (preset, is_broken) = (layer.preset, layer.is_broken);
        (Self { rules, preset, is_yolo_forbidden: false, is_broken }, reading.troubles)
    }

    /// As `.gemini/settings.json` spells it: `security.disableYoloMode`.
    pub fn of_gemini_settings(settings: &Value) -> Self {
        let security = settings.get("security").and_then(|part| part.get("disableYoloMode"));
        // What is neither true nor false was meant to be something.
        let is_yolo_forbidden = security.is_some_and(|value| *value != Value::Bool(false));
        Self { is_yolo_forbidden, ..Self::default() }
    }

    /// As much as a repository can say of that.
    pub fn yolo_forbidden() -> Self {
        Self { is_yolo_forbidden: true, ..Self::default() }
    }

    /// A file that is there and cannot be read: nothing is allowed by itself.
    pub fn unreadable() -> Self {
        Self { is_broken: true, is_yolo_forbidden: true, ..Self::default() }
    }

    /// Both hold.
    pub fn and(mut self, other: Self) -> Self {
        self.rules.extend(other.rules);
        self.preset = self.preset.into_iter().chain(other.preset).min();
        self.is_yolo_forbidden |= other.is_yolo_forbidden;
        self.is_broken |= other.is_broken;
        self
    }

    pub fn rules_len(&self) -> usize {
        self.rules.len()
    }
}
