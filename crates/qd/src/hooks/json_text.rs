//! The text of a JSON settings file: what may be edited, and where it is wrong.

use std::fmt;

use jsonc_parser::ast::{Object, Value};
use jsonc_parser::common::Ranged;
use jsonc_parser::cst::CstRootNode;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};

use super::wanted::Dialect;

/// A file we do not touch, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub line: usize,
    pub column: usize,
    pub reason: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.reason)
    }
}

impl std::error::Error for Refused {}

impl Refused {
    /// At a byte of the text; columns count characters, both from 1.
    pub fn at(text: &str, byte: usize, reason: impl Into<String>) -> Self {
        let before = text.get(..byte).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = before[line_start..].trim_start_matches(BOM).chars().count() + 1;
        Self { line: before.matches('\n').count() + 1, column, reason: reason.into() }
    }
}

/// The tree that edits keep the layout of. The byte order mark is put back by [`print`].
pub fn parse(text: &str, dialect: Dialect) -> Result<CstRootNode, Refused> {
    let text = readable(text);
    check_strict(text, dialect)?;
    let tree = CstRootNode::parse(text, &options(dialect));
    tree.map_err(|error| Refused::at(text, error.range().start, error.kind().to_string()))
}

pub fn print(original: &str, root: &CstRootNode) -> String {
    let mark = if original.starts_with(BOM) { "\u{feff}" } else { "" };
    format!("{mark}{root}")
}

/// Says no where an edit would be without effect or would break what is there: a wrong type on the
/// way to our entries, or a key that is there twice (clients read the last one).
pub fn check(text: &str, dialect: Dialect, section: Option<&str>) -> Result<(), Refused> {
    if dialect != Dialect::Strict && text.starts_with(BOM) {
        return Err(Refused::at(text, 0, "the client does not read a byte order mark"));
    }
    let text = readable(text);
    check_strict(text, dialect)?;
    let parsed = parse_to_ast(text, &CollectOptions::default(), &options(dialect))
        .map_err(|error| Refused::at(text, error.range().start, error.kind().to_string()))?;
    let Some(root) = parsed.value else { return Ok(()) };
    let root = object(text, &root, "the file")?;
    if let Some(section) = section
        && let Some(value) = single(text, root, section)?
    {
        object(text, value, &format!("\"{section}\""))?;
    }
    let Some(hooks) = single(text, root, "hooks")? else { return Ok(()) };
    let hooks = object(text, hooks, "\"hooks\"")?;
    for property in &hooks.properties {
        let event = property.name.as_str();
        single(text, hooks, event)?;
        check_event(text, event, &property.value)?;
    }
    Ok(())
}

fn check_event(text: &str, event: &str, value: &Value<'_>) -> Result<(), Refused> {
    let Some(groups) = value.as_array() else {
        // Not a list of groups: the client's own switches live beside its events.
        return if super::plan::is_event(event) {
            Err(Refused::at(text, value.start(), format!("\"{event}\" should be a list")))
        } else {
            Ok(())
        };
    };
    for group in &groups.elements {
        let Some(group) = group.as_object() else { continue };
        single(text, group, "hooks")?;
        let Some(hooks) = group.get_array("hooks") else { continue };
        for hook in hooks.elements.iter().filter_map(Value::as_object) {
            single(text, hook, "command")?;
        }
    }
    Ok(())
}

fn object<'a, 'b>(text: &str, value: &'b Value<'a>, what: &str) -> Result<&'b Object<'a>, Refused> {
    value
        .as_object()
        .ok_or_else(|| Refused::at(text, value.start(), format!("{what} should be an object")))
}

fn single<'a, 'b>(
    text: &str,
    object: &'b Object<'a>,
    key: &str,
) -> Result<Option<&'b Value<'a>>, Refused> {
    let mut found = object.properties.iter().filter(|property| property.name.as_str() == key);
    let first = found.next();
    match found.next() {
        Some(again) => Err(Refused::at(text, again.start(), format!("\"{key}\" is there twice"))),
        None => Ok(first.map(|property| &property.value)),
    }
}

/// The editor is lenient about numbers and strings; a client is not.
fn check_strict(text: &str, dialect: Dialect) -> Result<(), Refused> {
    if dialect == Dialect::Comments {
        return Ok(());
    }
    match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Ok(_) => Ok(()),
        Err(error) => {
            let (line, column) = (error.line(), error.column());
            let said = error.to_string();
            let reason = said.split(" at line ").next().unwrap_or(&said).to_owned();
            Err(Refused { line, column, reason })
        }
    }
}

/// An empty file is an empty object to every client.
fn readable(text: &str) -> &str {
    let text = text.strip_prefix(BOM).unwrap_or(text);
    if text.trim().is_empty() { "{}\n" } else { text }
}

fn options(dialect: Dialect) -> ParseOptions {
    ParseOptions {
        allow_comments: dialect == Dialect::Comments,
        allow_loose_object_property_names: false,
        allow_trailing_commas: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

pub const BOM: char = '\u{feff}';
