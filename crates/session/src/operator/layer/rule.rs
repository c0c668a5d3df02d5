//! A rule of the operator: when it applies, and what it shows.

use regex::Regex;
use serde::Deserialize;
use serde_json::Value;

use super::icon::Icon;
use super::{Dress, Known};
use crate::deed::program;
use crate::operator::state::{Group, Urgency};
use crate::pattern::{Glob, regex};

#[derive(Debug, Clone)]
pub struct Rule {
    when: When,
    /// None if it was not understood.
    shows: Option<Shows>,
}

/// All that is given must hold.
#[derive(Debug, Clone, Default)]
struct When {
    group: Option<Group>,
    state: Option<String>,
    harness: Option<String>,
    tool: Option<String>,
    project: Option<Glob>,
    command: Option<Regex>,
    label: Option<Regex>,
}

#[derive(Debug, Clone)]
struct Shows {
    label: Option<Vec<Piece>>,
    icon: Option<Icon>,
    urgency: Urgency,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Tool,
    Project,
    Branch,
    Label,
}

/// What a rule says to a session.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    NotMine,
    /// It applies, and cannot be shown.
    Failed,
    Dress(Dress),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenWhen {
    group: Option<Group>,
    state: Option<String>,
    harness: Option<String>,
    tool: Option<String>,
    project: Option<String>,
    command: Option<String>,
    label: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenShows {
    label: Option<String>,
    icon: Option<String>,
    #[serde(default)]
    urgency: Urgency,
}

impl Rule {
    /// A rule, and what of its answer was not understood; an error if its conditions were not.
    pub fn of(written: &Value, home: &str) -> Result<(Self, Option<String>), String> {
        let mut shows = written.as_object().ok_or("a rule is a table")?.clone();
        let when = shows.remove("when").unwrap_or_else(|| Value::Object(Default::default()));
        let when = When::of(when, home)?;
        let (shows, trouble) = match Shows::of(Value::Object(shows)) {
            Ok(shows) => (Some(shows), None),
            Err(what) => (None, Some(what)),
        };
        Ok((Self { when, shows }, trouble))
    }

    pub fn answer(&self, known: &Known<'_>) -> Answer {
        if !self.when.holds(known) {
            return Answer::NotMine;
        }
        let Some(Shows { label, icon, urgency }) = &self.shows else { return Answer::Failed };
        let label = match label.as_ref().map(|pieces| filled(pieces, known)) {
            // A label that lacks a part of itself is for another session.
            Some(None) => return Answer::NotMine,
            Some(label) => label,
            None => None,
        };
        Answer::Dress(Dress { label, icon: *icon, urgency: *urgency })
    }
}

impl When {
    fn of(written: Value, home: &str) -> Result<Self, String> {
        let WrittenWhen { group, state, harness, tool, project, command, label } =
            serde_json::from_value(written).map_err(|error| format!("`when`: {error}"))?;
        let pattern = |text: Option<String>| text.map(|text| regex(&text)).transpose();
        Ok(Self {
            group,
            state,
            harness,
            tool,
            project: project.map(|path| Glob::new(&path, home)).transpose()?,
            command: pattern(command)?,
            label: pattern(label)?,
        })
    }

    fn holds(&self, known: &Known<'_>) -> bool {
        let Self { group, state, harness, tool, project, command, label } = self;
        let core = known.state;
        group.is_none_or(|group| group == core.group)
            && state.as_ref().is_none_or(|state| state == core.state.as_str())
            && harness.as_ref().is_none_or(|harness| harness == known.harness)
            && has(tool, known.tool(), |tool, used| tool.eq_ignore_ascii_case(used))
            && has(project, known.project, |glob, path| glob.has(path))
            && has(command, known.command(), |pattern, text| pattern.is_match(text))
            && label.as_ref().is_none_or(|pattern| pattern.is_match(&core.label))
    }
}

/// What is asked for is there and fits; nothing is asked for, and all fits.
fn has<T>(wanted: &Option<T>, found: Option<&str>, fits: impl Fn(&T, &str) -> bool) -> bool {
    match (wanted, found) {
        (None, _) => true,
        (Some(wanted), Some(found)) => fits(wanted, found),
        (Some(_), None) => false,
    }
}

impl Shows {
    fn of(written: Value) -> Result<Self, String> {
        let WrittenShows { label, icon, urgency } =
            serde_json::from_value(written).map_err(|error| error.to_string())?;
        let icon = icon.map(|name| {
            let names: Vec<&str> = Icon::ALL.iter().map(|icon| icon.name()).collect();
            Icon::named(&name)
                .ok_or_else(|| format!("`{name}` is no icon; there are {}", names.join(", ")))
        });
        Ok(Self {
            label: label.map(|label| pieces(&label)).transpose()?,
            icon: icon.transpose()?,
            urgency,
        })
    }
}

fn pieces(label: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut rest = label;
    while let Some((text, after)) = rest.split_once('{') {
        let (name, after) =
            after.split_once('}').ok_or_else(|| format!("a {{ without a }} in `{label}`"))?;
        pieces.push(Piece::Text(text.to_owned()));
        pieces.push(match name {
            "tool" => Piece::Tool,
            "project" => Piece::Project,
            "branch" => Piece::Branch,
            "label" => Piece::Label,
            other => {
                return Err(format!(
                    "`{{{other}}}` is none of {{tool}} {{project}} {{branch}} {{label}}"
                ));
            }
        });
        rest = after;
    }
    pieces.push(Piece::Text(rest.to_owned()));
    Ok(pieces)
}

/// None if a part of it is not known of this session.
fn filled(pieces: &[Piece], known: &Known<'_>) -> Option<String> {
    let part = |piece: &Piece| match piece {
        Piece::Text(text) => Some(text.clone()),
        Piece::Tool => known.tool().map(str::to_owned),
        Piece::Project => known.project.map(|path| program(path).to_owned()),
        Piece::Branch => known.branch().map(str::to_owned),
        Piece::Label => Some(known.state.label.clone()),
    };
    pieces.iter().map(part).collect()
}
