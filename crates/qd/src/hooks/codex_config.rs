//! Codex's `config.toml`: telemetry, and the trust it keeps for each hook. Pure.
//!
//! Whole lines are added or taken out, so every other byte stays. Trust is written by Codex itself
//! (see [`super::trust`]); here it is only read, followed when hooks move up, and taken out.

use std::ops::Range;

use toml_edit::{Document, Item, Table};

use super::json_text::Refused;
use super::plan::{Place, Plan, TelemetryFound};
use super::wanted::OTLP_ENDPOINT;

/// Puts our `otel.exporter` in. Somebody else's exporter stays as it is.
pub fn install(text: Option<&str>, token: Option<&str>) -> Result<Plan, Refused> {
    let original = text.unwrap_or_default();
    let document = parse(original)?;
    let line = exporter_line(token);
    let otel = document.as_table().get("otel");
    let unchanged = Plan { new_text: text.map(str::to_owned), changes: Vec::new() };
    let newline = newline_of(original);
    let new_text = match telemetry(&document) {
        TelemetryFound::Foreign => return Ok(unchanged),
        TelemetryFound::Ours => {
            let span = entry_span(otel.and_then(Item::as_table), "exporter");
            let Some(span) = span else { return Err(by_hand(original, 0, &line)) };
            if original[span.clone()] == line {
                return Ok(unchanged);
            }
            spliced(original, span, &line)
        }
        TelemetryFound::Absent => match otel.and_then(Item::as_table) {
            Some(table) if table.is_dotted() => return Err(by_hand(original, 0, &line)),
            Some(table) if !table.is_implicit() => {
                let span = table.span().ok_or_else(|| by_hand(original, 0, &line))?;
                let end = line_end(original, span.start);
                let mut inserted = format!("{line}{newline}");
                if !original[..end].ends_with('\n') {
                    inserted = format!("{newline}{line}");
                }
                spliced(original, end..end, &inserted)
            }
            None if otel.is_some() => return Err(by_hand(original, 0, &line)),
            Some(_) | None => {
                let break_line = match original {
                    "" => "",
                    text if text.ends_with('\n') => newline,
                    _ => &format!("{newline}{newline}"),
                };
                format!("{original}{break_line}[otel]{newline}{line}{newline}")
            }
        },
    };
    parse(&new_text)?;
    Ok(Plan { new_text: Some(new_text), changes: vec!["set otel.exporter".to_owned()] })
}

/// What an uninstall of Codex takes out of `config.toml`.
#[derive(Debug, Clone, Copy)]
pub struct Removal<'a> {
    /// How the hooks file may be spelt in a key.
    pub files: &'a [String],
    /// The hooks of that file; none: trust is left alone.
    pub places: &'a [Place],
}

pub fn uninstall(text: &str, before: Option<&str>, removal: Removal<'_>) -> Result<Plan, Refused> {
    let document = parse(text)?;
    let before_document = before.and_then(|before| parse(before).ok());
    let had = |path: &[&str]| before_document.as_ref().is_some_and(|b| at(b, path).is_some());
    let had_header = |path: &[&str]| {
        let table = before_document.as_ref().and_then(|before| at(before, path)?.as_table());
        table.is_some_and(|table| !table.is_implicit())
    };
    let mut edits = Edits::default();
    if telemetry(&document) == TelemetryFound::Ours && !had(&["otel", "exporter"]) {
        let otel = document.as_table().get("otel").and_then(Item::as_table);
        if let Some(span) = entry_span(otel, "exporter") {
            edits.remove(text, span, "remove otel.exporter");
            edits.remove_header(text, otel.filter(|_| !had_header(&["otel"])), 1);
        }
    }
    if let Some(state) = at(&document, &["hooks", "state"]).and_then(Item::as_table) {
        let is_value = |item: &&str| !state.get(item).is_some_and(Item::is_table);
        let gone = remove_trust(text, state, removal, &mut edits);
        if !gone.is_empty() && !had_header(&["hooks", "state"]) {
            edits.remove_header(text, Some(state), gone.iter().filter(|key| is_value(key)).count());
        }
    }
    if edits.is_empty() {
        return Ok(Plan { new_text: Some(text.to_owned()), changes: Vec::new() });
    }
    let changes = std::mem::take(&mut edits.changes);
    let stripped = edits.apply(text);
    parse(&stripped)?;
    let new_text = match before {
        Some(before) if squeezed(before) == squeezed(&stripped) => Some(before.to_owned()),
        None if stripped.trim().is_empty() => None,
        Some(_) | None => Some(stripped),
    };
    Ok(Plan { new_text, changes })
}

/// The keys that are taken out.
fn remove_trust<'a>(
    text: &str,
    state: &'a Table,
    removal: Removal<'_>,
    edits: &mut Edits,
) -> Vec<&'a str> {
    let mut gone = Vec::new();
    for place in removal.places {
        let Some(key) = key_of(state, removal.files, place) else { continue };
        match place.after {
            None => {
                for span in table_spans(state, key) {
                    edits.remove(text, span, "");
                }
                edits.changes.push(format!("remove Codex's trust in our hook on {}", place.event));
                gone.push(key);
            }
            Some(after) if after != (place.group, place.index) => {
                let Some(span) = state.key(key).and_then(|key| key.span()) else { continue };
                let old = format!(":{}:{}", place.group, place.index);
                let written = &text[span.clone()];
                let Some(at) = written.rfind(&old) else { continue };
                let start = span.start + at;
                let new = format!(":{}:{}", after.0, after.1);
                edits.replacements.push((start..start + old.len(), new));
                edits.changes.push(format!("keep Codex's trust in your hook on {}", place.event));
            }
            Some(_) => {}
        }
    }
    gone
}

/// Which of our hooks Codex has no trust for.
pub fn untrusted(text: &str, files: &[String], places: &[Place]) -> Result<Vec<String>, Refused> {
    let document = parse(text)?;
    let state = at(&document, &["hooks", "state"]).and_then(Item::as_table);
    let is_trusted = |place: &Place| {
        let entry = state.and_then(|state| state.get(key_of(state, files, place)?));
        entry.and_then(|entry| entry.get("trusted_hash")).is_some_and(Item::is_str)
    };
    let ours = places.iter().filter(|place| place.is_ours);
    Ok(ours.filter(|place| !is_trusted(place)).map(|place| place.event.clone()).collect())
}

pub fn telemetry_found(text: &str) -> Result<TelemetryFound, Refused> {
    Ok(telemetry(&parse(text)?))
}

fn telemetry(document: &Document<&str>) -> TelemetryFound {
    let Some(exporter) = at(document, &["otel", "exporter"]) else {
        return TelemetryFound::Absent;
    };
    let endpoint = exporter.get("otlp-http").and_then(|http| http.get("endpoint"));
    match endpoint.and_then(Item::as_str) {
        Some(endpoint) if endpoint == format!("{OTLP_ENDPOINT}/v1/logs") => TelemetryFound::Ours,
        Some(_) | None => TelemetryFound::Foreign,
    }
}

fn exporter_line(token: Option<&str>) -> String {
    let headers = token.map_or(String::new(), |token| {
        format!(", headers = {{ Authorization = \"Bearer {token}\" }}")
    });
    format!(
        "exporter = {{ otlp-http = {{ endpoint = \"{OTLP_ENDPOINT}/v1/logs\", protocol = \"json\"{headers} }} }}"
    )
}

fn key_of<'a>(state: &'a Table, files: &[String], place: &Place) -> Option<&'a str> {
    let tail = format!(":{}:{}:{}", snake(&place.event), place.group, place.index);
    let mut keys = state.iter().map(|(key, _)| key);
    keys.find(|key| key.strip_suffix(&tail).is_some_and(|file| files.iter().any(|f| f == file)))
}

/// `PreToolUse` → `pre_tool_use`.
pub fn snake(event: &str) -> String {
    let mut snake = String::new();
    for c in event.chars() {
        if c.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}

/// Lines to take out and bits to exchange, applied from the end.
#[derive(Debug, Default)]
struct Edits {
    lines: Vec<Range<usize>>,
    replacements: Vec<(Range<usize>, String)>,
    changes: Vec<String>,
}

impl Edits {
    fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.replacements.is_empty()
    }

    fn remove(&mut self, text: &str, span: Range<usize>, change: &str) {
        self.lines.push(line_start(text, span.start)..line_end(text, span.end));
        if !change.is_empty() {
            self.changes.push(change.to_owned());
        }
    }

    /// The header of a table that has no values of its own but those that go. What is below it
    /// does not need it.
    fn remove_header(&mut self, text: &str, table: Option<&Table>, gone: usize) {
        let Some(table) = table.filter(|table| !table.is_implicit()) else { return };
        let values = table.iter().filter(|(_, item)| !item.is_table()).count();
        if let Some(span) = table.span().filter(|_| values == gone) {
            self.remove(text, span, "");
        }
    }

    fn apply(mut self, text: &str) -> String {
        let mut edits = std::mem::take(&mut self.replacements);
        edits.extend(self.lines.into_iter().map(|lines| (lines, String::new())));
        edits.sort_by_key(|(range, _)| range.start);
        let mut out = text.to_owned();
        for (range, new) in edits.into_iter().rev() {
            let removes = new.is_empty();
            out.replace_range(range.clone(), &new);
            if removes {
                join_blank_lines(&mut out, range.start);
            }
        }
        out
    }
}

/// Where lines were taken out, a blank line above goes too if another follows, or the end.
fn join_blank_lines(text: &mut String, at: usize) {
    let above = text[..at].strip_suffix('\n').map(|text| line_start(text, text.len()));
    let Some(above) = above.filter(|&above| text[above..at].trim().is_empty()) else { return };
    let below = &text[at..];
    if below.is_empty() || below.starts_with('\n') || below.starts_with("\r\n") {
        text.replace_range(above..at, "");
    }
}

fn table_spans(parent: &Table, key: &str) -> Vec<Range<usize>> {
    match parent.get(key) {
        Some(Item::Table(table)) => {
            let entries = table.iter().filter_map(|(key, _)| entry_span(Some(table), key));
            table.span().into_iter().chain(entries).collect()
        }
        _ => entry_span(Some(parent), key).into_iter().collect(),
    }
}

fn entry_span(table: Option<&Table>, key: &str) -> Option<Range<usize>> {
    let (key, item) = table?.get_key_value(key)?;
    Some(key.span()?.start..item.span()?.end)
}

fn at<'a>(document: &'a Document<&str>, path: &[&str]) -> Option<&'a Item> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(document.as_table().get(first)?, |item, key| item.get(key))
}

fn parse(text: &str) -> Result<Document<&str>, Refused> {
    Document::parse(text).map_err(|error| {
        let byte = error.span().map_or(0, |span| span.start);
        let reason = error.message().lines().next().unwrap_or("not TOML").to_owned();
        Refused::at(text, byte, reason)
    })
}

fn by_hand(text: &str, byte: usize, line: &str) -> Refused {
    let reason = format!("`otel` is written in a form we do not edit; add to it by hand: {line}");
    Refused::at(text, byte, reason)
}

fn spliced(text: &str, range: Range<usize>, new: &str) -> String {
    format!("{}{new}{}", &text[..range.start], &text[range.end..])
}

fn newline_of(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |newline| at + newline + 1)
}

/// What is said, without the layout between it.
fn squeezed(text: &str) -> Vec<&str> {
    text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect()
}

#[cfg(test)]
mod tests;
