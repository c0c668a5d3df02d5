//! Domain layers: other words for what the core says, for one kind of work.
//!
//! Pure. A layer is told what is known of a session and may answer with a [`Dress`]: a label, an
//! icon, a place within the group. It is handed no way to change group or sub-state. The operator's
//! own rules come first, then software work, then creative work; the first that answers is shown,
//! and where none does, or one fails, the core's label is.

mod creative;
mod icon;
mod rule;
mod software;

use serde_json::Value;

pub use self::icon::Icon;
use self::rule::{Answer, Rule};
use super::state::{AgentState, Urgency};
use crate::limits::{LAYER_COMMAND_BYTES_MAX, LAYER_LABEL_CHARS_MAX, LAYER_RULES_MAX};
use crate::monitor::Monitor;
use crate::pattern::Glob;

/// The layers of one operator. By default those that are built in.
#[derive(Debug, Clone, Default)]
pub struct Layers {
    rules: Vec<Rule>,
    projects: Vec<Project>,
}

/// Which built-in layers a project wants.
#[derive(Debug, Clone)]
struct Project {
    path: Glob,
    built_in: Vec<BuiltIn>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BuiltIn {
    Software,
    Creative,
}

/// What a layer is told.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    pub state: &'a AgentState,
    pub monitor: &'a Monitor,
    pub harness: &'a str,
    /// The folder it works in.
    pub project: Option<&'a str>,
}

/// What a layer may change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dress {
    /// The core's stays without one.
    pub label: Option<String>,
    pub icon: Option<Icon>,
    pub urgency: Urgency,
}

/// Something in the operator's rules that cannot be used, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// "rule 3", "project 1", or the whole.
    pub place: String,
    pub what: String,
}

impl Layers {
    /// The operator's layers, as `layers.toml` spells them. What cannot be used is told, and the
    /// rest holds: a rule whose conditions are not understood never matches, one whose answer is
    /// not understood shows the core's label where it matches. `home` stands for `~`.
    pub fn of_operator(file: &Value, home: &str) -> (Self, Vec<Trouble>) {
        let mut layers = Self::default();
        let mut troubles = Vec::new();
        for (name, part) in file.as_object().into_iter().flatten() {
            let Some(parts) = part.as_array().filter(|_| name == "rule" || name == "project")
            else {
                let what = format!("`{name}` is neither [[rule]] nor [[project]]");
                troubles.push(Trouble { place: "file".to_owned(), what });
                continue;
            };
            for (at, part) in parts.iter().enumerate() {
                let place = format!("{name} {}", at + 1);
                if at >= LAYER_RULES_MAX {
                    let what = format!("more than {LAYER_RULES_MAX}; the others are not read");
                    troubles.push(Trouble { place, what });
                    break;
                }
                let trouble = match name.as_str() {
                    "rule" => Rule::of(part, home).map(|(rule, trouble)| {
                        layers.rules.push(rule);
                        trouble
                    }),
                    _ => Project::of(part, home).map(|project| {
                        layers.projects.push(project);
                        None
                    }),
                };
                let what = trouble.unwrap_or_else(Some);
                troubles.extend(what.map(|what| Trouble { place, what }));
            }
        }
        (layers, troubles)
    }

    /// How many rules of the operator hold.
    pub fn rules_len(&self) -> usize {
        self.rules.len()
    }

    /// What is to be shown instead of the core's words, if anything.
    pub fn dress(&self, known: &Known<'_>) -> Option<Dress> {
        for rule in &self.rules {
            match rule.answer(known) {
                Answer::NotMine => {}
                Answer::Failed => return None,
                Answer::Dress(dress) => return Some(dress),
            }
        }
        let of_project = |project: &&Project| known.project.is_some_and(|at| project.path.has(at));
        let built_in = match self.projects.iter().find(of_project) {
            Some(project) => project.built_in.as_slice(),
            None => &[BuiltIn::Software, BuiltIn::Creative],
        };
        built_in.iter().find_map(|layer| match layer {
            BuiltIn::Software => software::dress(known),
            BuiltIn::Creative => creative::dress(known),
        })
    }
}

impl Dress {
    fn new(icon: Icon, label: impl Into<String>) -> Self {
        Self { label: Some(label.into()), icon: Some(icon), urgency: Urgency::Usual }
    }

    fn urgent(self) -> Self {
        Self { urgency: Urgency::High, ..self }
    }

    /// Changes what is read of a state, and nothing that is decided by it. The icon goes onto the
    /// card.
    pub fn put_on(self, state: &mut AgentState) -> Option<Icon> {
        if let Some(label) = self.label.map(|label| shown(&label)).filter(|label| !label.is_empty())
            && label != state.label
        {
            state.core_label = Some(std::mem::replace(&mut state.label, label));
        }
        state.urgency = self.urgency;
        self.icon
    }
}

/// One line, not too long: what an agent wrote may be in it.
fn shown(label: &str) -> String {
    let line: String =
        label.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    match line.char_indices().nth(LAYER_LABEL_CHARS_MAX) {
        None => line.trim().to_owned(),
        Some((cut, _)) => format!("{}…", line[..cut].trim()),
    }
}

impl<'a> Known<'a> {
    fn context(&self, key: &str) -> Option<&'a str> {
        self.state.context.as_ref()?.get(key)?.as_str()
    }

    /// The tool that runs, or that it wants to use.
    fn tool(&self) -> Option<&'a str> {
        self.context("tool")
    }

    /// What the tool runs or wants to run: a command, a path.
    fn command(&self) -> Option<&'a str> {
        let input = || self.state.context.as_ref()?.get("input");
        let named = |key: &str| input()?.get(key)?.as_str();
        let command = self
            .context("about")
            .or_else(|| ["command", "file_path", "filePath", "path"].into_iter().find_map(named))?;
        let mut end = command.len().min(LAYER_COMMAND_BYTES_MAX);
        while !command.is_char_boundary(end) {
            end -= 1;
        }
        Some(&command[..end])
    }

    fn branch(&self) -> Option<&'a str> {
        let about = self.monitor.about()?;
        about.branch.as_ref().map(|branch| &*branch.value)
    }
}

impl Project {
    fn of(part: &Value, home: &str) -> Result<Self, String> {
        #[derive(serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Written {
            path: String,
            layers: Vec<String>,
        }
        let Written { path, layers } = serde::Deserialize::deserialize(part)
            .map_err(|error: serde_json::Error| error.to_string())?;
        let named = |name: &String| match name.as_str() {
            "software" => Ok(BuiltIn::Software),
            "creative" => Ok(BuiltIn::Creative),
            other => Err(format!("`{other}` is no layer: software, creative")),
        };
        let built_in = layers.iter().map(named).collect::<Result<_, String>>()?;
        Ok(Self { path: Glob::new(&path, home)?, built_in })
    }
}
