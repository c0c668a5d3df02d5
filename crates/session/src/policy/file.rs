//! `policy.toml`, as it is written.
//!
//! Strict: what cannot be understood is told, and unless it was a rule that allows, nothing is
//! allowed by itself where it would have held. It may have been there to forbid.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::rule::Rule;
use super::{Budget, Layer, Policy, Preset, Project};
use crate::limits::POLICY_RULES_MAX;
use crate::pattern::Glob;

/// Something in a policy that cannot be used, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// "rule 3", "project /w, rule 1", or the whole.
    pub place: String,
    pub what: String,
}

impl Policy {
    /// The operator's policy. `home` stands for `~`, and is no workspace itself.
    pub fn of_operator(file: &Value, home: &str) -> (Self, Vec<Trouble>) {
        let mut reading = Reading::new(home);
        let keys = ["preset", "rule", "budget", "project"];
        let mut global = reading.layer(file, "", &keys);
        let mut projects = Vec::new();
        match file.get("project") {
            None => {}
            Some(Value::Object(written)) => {
                for (at, (path, part)) in written.iter().enumerate() {
                    match Glob::new(path, home).and_then(|glob| bounded(at).map(|()| glob)) {
                        Ok(glob) => projects.push(reading.project(path, glob, part)),
                        Err(what) => {
                            reading.trouble(&format!("project {path}"), what);
                            global.is_broken = true;
                        }
                    }
                }
            }
            Some(_) => {
                reading.trouble("project", "write [project.\"/path\"]".to_owned());
                global.is_broken = true;
            }
        }
        // The longer a path, the nearer it is to the session.
        projects.sort_by_key(|project| std::cmp::Reverse(project.spelled.len()));
        (Self { global, projects, home: home.to_owned(), private: Vec::new() }, reading.troubles)
    }

    /// A file that is there and cannot be read: nothing is allowed by itself.
    pub fn unreadable(home: &str) -> Self {
        let global = Layer { is_broken: true, ..Layer::default() };
        Self { global, home: home.to_owned(), ..Self::default() }
    }

    /// Without a file everything is asked.
    pub fn none(home: &str) -> Self {
        Self { home: home.to_owned(), ..Self::default() }
    }
}

impl Layer {
    /// A session's own rules, spelled as a policy's: `preset`, `rule`, `budget`.
    pub fn of_session(written: &Value, home: &str) -> (Self, Vec<Trouble>) {
        let mut reading = Reading::new(home);
        let layer = reading.layer(written, "", &["preset", "rule", "budget"]);
        (layer, reading.troubles)
    }
}

fn bounded(at: usize) -> Result<(), String> {
    match at < POLICY_RULES_MAX {
        true => Ok(()),
        false => Err(format!("more than {POLICY_RULES_MAX}; the others are not read")),
    }
}

pub(super) struct Reading<'a> {
    home: &'a str,
    pub troubles: Vec<Trouble>,
}

impl<'a> Reading<'a> {
    pub fn new(home: &'a str) -> Self {
        Self { home, troubles: Vec::new() }
    }

    pub fn trouble(&mut self, place: &str, what: String) {
        self.troubles.push(Trouble { place: place.to_owned(), what });
    }

    fn project(&mut self, path: &str, glob: Glob, part: &Value) -> Project {
        let place = format!("project {path}, ");
        let mut layer = self.layer(part, &place, &["preset", "rule", "budget", "wait_headless"]);
        match part.get("wait_headless") {
            None => {}
            Some(Value::Bool(waits)) => layer.wait_headless = Some(*waits),
            Some(_) => self.trouble(&format!("{place}wait_headless"), "true or false".to_owned()),
        }
        Project { spelled: path.to_owned(), path: glob, layer }
    }

    /// What a table says of rules, preset and budget, if its keys are all known.
    pub fn layer(&mut self, written: &Value, place: &str, keys: &[&str]) -> Layer {
        let mut layer = Layer::default();
        let none = Map::new();
        let table = written.as_object().unwrap_or(&none);
        if !written.is_object() {
            self.trouble(&format!("{place}file"), "it is no table".to_owned());
            layer.is_broken = true;
        }
        for (name, part) in table {
            let at = format!("{place}{name}");
            let trouble = match name.as_str() {
                known if !keys.contains(&known) => {
                    Some(format!("it is none of {}", keys.join(", ")))
                }
                "preset" => self.preset(part, &mut layer),
                "budget" => budget(part, &mut layer),
                "rule" => self.rules(part, place, &mut layer),
                _ => None,
            };
            if let Some(what) = trouble {
                self.trouble(&at, what);
                layer.is_broken = true;
            }
        }
        layer
    }

    fn preset(&mut self, written: &Value, layer: &mut Layer) -> Option<String> {
        layer.preset = Some(Preset::deserialize(written).unwrap_or_default());
        let names = Preset::ALL.map(Preset::name).join(", ");
        let is_known = written.as_str().and_then(Preset::named).is_some();
        (!is_known).then(|| format!("{written} is none of {names}"))
    }

    fn rules(&mut self, written: &Value, place: &str, layer: &mut Layer) -> Option<String> {
        let Some(rules) = written.as_array() else { return Some("write [[rule]]".to_owned()) };
        for (at, part) in rules.iter().enumerate() {
            let name = format!("{place}rule {}", at + 1);
            match bounded(at).and_then(|()| Rule::of(part, self.home, &name)) {
                Ok(rule) => layer.rules.push(rule),
                Err(what) => {
                    // One that allows is missed by nobody but those who are asked.
                    let allows = part.get("effect").and_then(Value::as_str) == Some("allow");
                    layer.is_broken |= !allows;
                    self.trouble(&name, what);
                    if at >= POLICY_RULES_MAX {
                        layer.is_broken = true;
                        return None;
                    }
                }
            }
        }
        None
    }
}

fn budget(written: &Value, layer: &mut Layer) -> Option<String> {
    match Budget::deserialize(written) {
        Ok(budget) => {
            layer.budget = budget;
            budget.trouble().map(str::to_owned)
        }
        Err(error) => Some(error.to_string()),
    }
}
