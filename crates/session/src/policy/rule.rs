//! A rule: what it is about, and what happens then.
//!
//! A rule that allows holds only where all of it is certain. One that asks or denies holds where
//! any part of a request is what it is about, and speaks up where that cannot be ruled out.

use std::collections::BTreeMap;

use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::Call;
use super::command::{CommandPattern, wildcards};
use super::place::{PathPattern, lies_in};
use super::tool_kind::ToolKind;
use crate::limits::{POLICY_PATTERNS_MAX, POLICY_TEXT_BYTES_MAX};
use crate::pattern::{bounded, compiled};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    Deny,
    Ask,
    Allow,
}

impl Effect {
    pub fn name(self) -> &'static str {
        match self {
            Self::Deny => "deny",
            Self::Ask => "ask",
            Self::Allow => "allow",
        }
    }
}

#[derive(Debug, Clone)]
pub struct Rule {
    /// As the operator calls it, or its place in the file.
    pub name: String,
    pub effect: Effect,
    /// What the agent is told when it is denied.
    pub message: Option<String>,
    tools: Vec<Regex>,
    kinds: Vec<ToolKind>,
    commands: Vec<CommandPattern>,
    paths: Vec<PathPattern>,
    fields: Vec<(String, Vec<Regex>)>,
    lies: Option<Lies>,
    /// Its conditions as they were written, for whoever shows it.
    pub about: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lies {
    Inside,
    Outside,
}

/// Whether a rule is about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fit {
    No,
    /// It cannot be ruled out.
    Perhaps,
    Yes,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: Option<String>,
    effect: Effect,
    message: Option<String>,
    tool: Option<Several<String>>,
    kind: Option<Several<ToolKind>>,
    command: Option<Several<String>>,
    path: Option<Several<String>>,
    #[serde(default)]
    input: BTreeMap<String, Several<String>>,
    inside: Option<Where>,
    outside: Option<Where>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Several<T> {
    One(T),
    Many(Vec<T>),
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Where {
    Workspace,
}

impl Rule {
    /// `home` stands for `~`, `place` for a name that was not given.
    pub(super) fn of(written: &Value, home: &str, place: &str) -> Result<Self, String> {
        let about = conditions(written);
        let Written { name, effect, message, tool, kind, command, path, input, inside, outside } =
            Written::deserialize(written).map_err(|error| error.to_string())?;
        for text in [&name, &message].into_iter().flatten() {
            if text.len() > POLICY_TEXT_BYTES_MAX {
                return Err(format!("a text is longer than {POLICY_TEXT_BYTES_MAX} bytes"));
            }
        }
        if message.is_some() && effect != Effect::Deny {
            return Err("`message` is for rules that deny".to_owned());
        }
        let lies = match (inside, outside) {
            (Some(Where::Workspace), None) => Some(Lies::Inside),
            (None, Some(Where::Workspace)) => Some(Lies::Outside),
            (None, None) => None,
            (Some(_), Some(_)) => return Err("nothing is inside and outside".to_owned()),
        };
        let fields = input.into_iter().map(|(field, globs)| Ok((field, every(Some(globs), glob)?)));
        let rule = Self {
            name: name.filter(|name| !name.trim().is_empty()).unwrap_or_else(|| place.to_owned()),
            effect,
            message,
            tools: every(tool, |name: String| glob(name).map(case_blind))?,
            kinds: every(kind, Ok)?,
            commands: every(command, |text: String| CommandPattern::new(&text))?,
            paths: every(path, |path: String| PathPattern::new(&path, home))?,
            fields: fields.collect::<Result<_, String>>()?,
            lies,
            about,
        };
        let names_tools = !rule.tools.is_empty() || !rule.kinds.is_empty();
        if rule.effect == Effect::Allow && !names_tools && rule.commands.is_empty() {
            return Err("a rule that allows names a tool, a kind or a command".to_owned());
        }
        if rule.kinds.contains(&ToolKind::Question) {
            return Err("questions and plans are yours: no rule answers them".to_owned());
        }
        Ok(rule)
    }

    /// It allows whatever is asked: a preset by another name.
    pub(super) fn is_blanket(&self) -> bool {
        let has_conditions = !self.commands.is_empty()
            || !self.paths.is_empty()
            || !self.fields.is_empty()
            || self.lies.is_some()
            || !self.kinds.is_empty();
        self.effect == Effect::Allow && !has_conditions && self.has_tool(BLANKET_PROBE)
    }

    pub(super) fn fit(&self, call: &Call<'_>) -> Fit {
        if call.is_cut && call.tool.is_empty() {
            // It broke off before it said which tool it is.
            return if self.effect == Effect::Allow { Fit::No } else { Fit::Perhaps };
        }
        let is_kind = self.kinds.is_empty() || self.kinds.contains(&call.kind);
        if !is_kind || !(self.tools.is_empty() || self.has_tool(call.tool)) {
            return Fit::No;
        }
        let fits = [self.command_fit(call), self.path_fit(call), self.place_fit(call)];
        let fit = fits.into_iter().fold(self.field_fit(call), Fit::min);
        match self.effect {
            Effect::Allow if fit == Fit::Perhaps => Fit::No,
            Effect::Allow | Effect::Ask | Effect::Deny => fit,
        }
    }

    fn has_tool(&self, tool: &str) -> bool {
        self.tools.iter().any(|name| name.is_match(tool))
    }

    fn command_fit(&self, call: &Call<'_>) -> Fit {
        if self.commands.is_empty() {
            return Fit::Yes;
        }
        if call.kind != ToolKind::Run {
            return Fit::No;
        }
        let Some(script) = &call.script else { return Fit::Perhaps };
        if self.effect == Effect::Allow {
            let is_plain = script.doubt.is_none() && !script.is_unread && !call.is_cut;
            let is_listed = |command| self.commands.iter().any(|pattern| pattern.is(command));
            let holds = is_plain && !script.commands.is_empty();
            return Fit::certain(holds && script.commands.iter().all(is_listed));
        }
        let unseen = if call.is_cut { Fit::Perhaps } else { Fit::No };
        self.commands.iter().map(|pattern| pattern.lurks_in(script)).fold(unseen, Fit::max)
    }

    fn path_fit(&self, call: &Call<'_>) -> Fit {
        if self.paths.is_empty() {
            return Fit::Yes;
        }
        let workspace = call.workspace.as_deref();
        self.of_paths(call, |path| {
            if self.paths.iter().any(|pattern| pattern.has(path, workspace)) {
                return Fit::Yes;
            }
            let is_relative =
                |pattern: &PathPattern| matches!(pattern, PathPattern::InWorkspace(_));
            match workspace.is_none() && self.paths.iter().any(is_relative) {
                true => Fit::Perhaps,
                false => Fit::No,
            }
        })
    }

    fn place_fit(&self, call: &Call<'_>) -> Fit {
        let Some(lies) = self.lies else { return Fit::Yes };
        self.of_paths(call, |path| match &call.workspace {
            Some(folder) => Fit::certain(lies_in(path, folder) == (lies == Lies::Inside)),
            None => Fit::Perhaps,
        })
    }

    /// Every path for a rule that allows, any for the others.
    fn of_paths(&self, call: &Call<'_>, fit: impl Fn(&str) -> Fit) -> Fit {
        if !call.is_about_files() {
            return Fit::No;
        }
        if call.paths.is_empty() {
            return Fit::Perhaps;
        }
        let fits =
            call.paths.iter().map(|path| path.as_ref().map_or(Fit::Perhaps, |path| fit(path)));
        match self.effect {
            Effect::Allow => fits.fold(Fit::Yes, Fit::min),
            Effect::Ask | Effect::Deny => fits.fold(Fit::No, Fit::max),
        }
    }

    fn field_fit(&self, call: &Call<'_>) -> Fit {
        if self.fields.is_empty() {
            return Fit::Yes;
        }
        let Some(input) = &call.input else { return Fit::Perhaps };
        let holds = |(field, globs): &(String, Vec<Regex>)| {
            let value = field.split('.').try_fold(input, |value, part| value.get(part));
            value.is_some_and(|value| {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                globs.iter().any(|glob| glob.is_match(&text))
            })
        };
        match self.fields.iter().all(holds) {
            // What was seen may not be all that stands in the field.
            true if call.is_cut && self.effect == Effect::Allow => Fit::Perhaps,
            false if call.is_cut => Fit::Perhaps,
            holds => Fit::certain(holds),
        }
    }
}

impl Fit {
    fn certain(holds: bool) -> Self {
        if holds { Self::Yes } else { Self::No }
    }
}

/// No tool is called so.
const BLANKET_PROBE: &str = "\u{1f}any tool at all\u{1f}";

fn every<T, U>(
    written: Option<Several<T>>,
    read: impl Fn(T) -> Result<U, String>,
) -> Result<Vec<U>, String> {
    let many = match written {
        None => return Ok(Vec::new()),
        Some(Several::One(one)) => vec![one],
        Some(Several::Many(many)) => many,
    };
    match many.len() {
        0 => Err("a list is empty".to_owned()),
        1..=POLICY_PATTERNS_MAX => many.into_iter().map(read).collect(),
        _ => Err(format!("a list has more than {POLICY_PATTERNS_MAX} parts")),
    }
}

fn glob(pattern: String) -> Result<Regex, String> {
    compiled(&format!("(?s)^{}$", wildcards(bounded(&pattern)?)))
}

fn case_blind(glob: Regex) -> Regex {
    // The same pattern without regard to letters' size compiles wherever it did with.
    compiled(&format!("(?i){}", glob.as_str())).unwrap_or(glob)
}

/// What stands in a rule besides its name and effect, on one line.
fn conditions(written: &Value) -> String {
    let fields = written.as_object().into_iter().flatten();
    let part = |(field, value): (&String, &Value)| match field.as_str() {
        "name" | "effect" | "message" => None,
        _ => Some(format!("{field} = {value}")),
    };
    fields.filter_map(part).collect::<Vec<_>>().join(", ")
}
