//! What an agent asks for, in the terms that rules are written in.

use serde_json::Value;

use super::Asked;
use super::place::{resolved, workspace};
use super::shell::Script;
use super::tool_kind::ToolKind;
use crate::limits::POLICY_PATHS_MAX;

#[derive(Debug, Clone)]
pub struct Call<'a> {
    pub tool: &'a str,
    pub kind: ToolKind,
    /// None if it could not be read: handlers cut what is too long.
    pub input: Option<Value>,
    /// What it would run; none if that is not known, or it runs nothing.
    pub script: Option<Script>,
    /// The files it names. None among them for one of which it is not known where it lies.
    pub paths: Vec<Option<String>>,
    pub workspace: Option<String>,
    /// There is more of the input than was seen.
    pub is_cut: bool,
}

impl<'a> Call<'a> {
    pub fn of(asked: &Asked<'a>, home: &str) -> Self {
        let Asked { tool, input, cwd, led_to, is_cut } = *asked;
        let kind = ToolKind::of(tool);
        let value = input.and_then(|text| serde_json::from_str(text).ok());
        let mut call = Self {
            tool,
            kind,
            script: None,
            paths: Vec::new(),
            workspace: cwd.and_then(|cwd| workspace(cwd, home)),
            input: value,
            is_cut,
        };
        if kind == ToolKind::Run {
            call.script = call.input.as_ref().and_then(script);
        } else {
            call.paths = call.named(input, cwd);
            call.paths.extend_from_slice(led_to);
            if is_cut {
                call.paths.push(None);
            }
        }
        call
    }

    /// It names files, or should: what is not known of them may be anything.
    pub fn is_about_files(&self) -> bool {
        match self.kind {
            ToolKind::Read | ToolKind::Search | ToolKind::Edit => true,
            ToolKind::Other | ToolKind::Question => !self.paths.is_empty() || self.input.is_none(),
            ToolKind::Run | ToolKind::Fetch => false,
        }
    }

    fn named(&self, input: Option<&str>, cwd: Option<&str>) -> Vec<Option<String>> {
        let folder = cwd.and_then(|cwd| resolved(cwd, None));
        let mut names = Vec::new();
        if let Some(value) = &self.input {
            collect(value, 0, &mut names);
            if self.kind == ToolKind::Search && ["Glob", "glob"].contains(&self.tool) {
                names.extend(value.get("pattern").and_then(Value::as_str).map(str::to_owned));
            }
        }
        let resolve = |name: &String| {
            let is_odd = self.kind == ToolKind::Search
                && (name.contains('{') || name.split('/').any(|part| part == ".."));
            resolved(name, folder.as_deref()).filter(|_| !is_odd)
        };
        let mut paths: Vec<_> = names.iter().map(resolve).collect();
        if self.tool == "apply_patch" {
            paths.extend(patched(self.input.as_ref(), input, folder.as_deref()));
        }
        if self.kind == ToolKind::Search && paths.is_empty() && self.input.is_some() {
            paths.push(folder.clone());
        }
        if paths.len() > POLICY_PATHS_MAX {
            paths.truncate(POLICY_PATHS_MAX);
            paths.push(None);
        }
        paths
    }
}

/// The command line of a call that runs one; none if it says two different ones.
fn script(input: &Value) -> Option<Script> {
    let told = [
        Some(input).filter(|input| input.is_string()),
        input.get("command"),
        input.get("cmd"),
        input.get("metadata").and_then(|metadata| metadata.get("command")),
    ];
    let mut told = told.into_iter().flatten();
    let first = told.next()?;
    if told.any(|other| other != first) {
        return None;
    }
    match first {
        Value::String(line) => Some(Script::read(line)),
        Value::Array(words) => {
            let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
            words.map(|words| Script::of_words(&words))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

/// Clients' words for a path, wherever in the input they stand. One too many asks once too often.
fn collect(value: &Value, depth: usize, names: &mut Vec<String>) {
    const FIELDS: [&str; 16] = [
        "absolute_path",
        "destination",
        "dir_path",
        "directory",
        "file",
        "filePath",
        "file_path",
        "filepath",
        "files",
        "grantRoot",
        "include",
        "new_path",
        "notebook_path",
        "old_path",
        "path",
        "paths",
    ];
    if depth > 4 || names.len() > POLICY_PATHS_MAX {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                if FIELDS.contains(&field.as_str()) {
                    let texts = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
                    names.extend(texts.iter().filter_map(Value::as_str).map(str::to_owned));
                }
                collect(value, depth + 1, names);
            }
        }
        Value::Array(values) => {
            values.iter().for_each(|value| collect(value, depth + 1, names));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The files of a patch as `apply_patch` takes it; one that broke off may name others.
fn patched(input: Option<&Value>, text: Option<&str>, cwd: Option<&str>) -> Vec<Option<String>> {
    let field = |input: &'_ Value| {
        let fields = ["command", "input", "patch"];
        fields.into_iter().find_map(|field| Some(input.get(field)?.as_str()?.to_owned()))
    };
    let patch = match input {
        Some(Value::String(patch)) => Some(patch.clone()),
        Some(input) => field(input),
        None => text.map(str::to_owned),
    };
    let Some(patch) = patch else { return Vec::new() };
    let marks = ["*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: "];
    let named = |line: &str| {
        let line = line.trim();
        marks.iter().find_map(|mark| line.strip_prefix(mark)).map(|path| resolved(path.trim(), cwd))
    };
    let mut paths: Vec<_> = patch.lines().filter_map(named).collect();
    if !patch.trim_end().ends_with("*** End Patch") {
        paths.push(None);
    }
    paths
}
