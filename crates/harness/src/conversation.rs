//! A conversation as a reader sees it: who said what, and which tools ran.
//!
//! Pure. Each client's `conversation.rs` makes pieces of a transcript's lines; [`Conversation`] puts
//! pieces of the same thing together, chiefly a call and its result. Every text is bounded and
//! says where it was cut. Nothing here is escaped: whoever shows it must.

use std::collections::BTreeMap;

use qd_session::moment::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::excerpt::head;

/// Longest text, input or output that is shown. A person reads no more of it, and a page of many
/// must fit.
pub const TEXT_BYTES_MAX: usize = 64 << 10;

/// What is kept of each text inside an input that is too long as a whole: its file's name and the
/// beginning of what is written to it.
const INNER_TEXT_BYTES_MAX: usize = 8 << 10;

/// Longest id of an entry. Vendors' have some forty bytes.
const ID_BYTES_MAX: usize = 128;

/// Longest name of a tool, a model or an agent.
const NAME_BYTES_MAX: usize = 128;

/// One thing that was said or done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Entry {
    /// The same whichever page it stands on; a call and its result share it.
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Timestamp>,
    pub role: Role,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolUse>,
    /// The subagent that said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum Role {
    /// A person's own words.
    User,
    Assistant,
    Tool,
    /// The client's words: commands of the terminal, interrupts, compactions, errors.
    System,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ToolUse {
    /// Empty in a piece that is only a result.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<serde_json::Value>))]
    pub input: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
}

/// How a client's transcript is read.
#[derive(Debug, Clone, Copy)]
pub enum Form {
    /// Each line adds to what was said: any part can be read by itself. A line and its place in the
    /// file give pieces, in order.
    Lines(fn(&[u8], u64) -> Vec<Entry>),
    /// A line may change what others said, so all of it has to be read: Gemini CLI's `Chat`.
    Whole,
    /// Rows of a database: OpenCode's `conversation`.
    Rows,
}

impl Entry {
    pub(crate) fn new(id: &str, at: Option<Timestamp>, role: Role) -> Self {
        let id = head(id, ID_BYTES_MAX).to_owned();
        Self { id, at, role, text: None, tool: None, agent: None, model: None }
    }

    pub(crate) fn said(id: &str, at: Option<Timestamp>, role: Role, text: &str) -> Self {
        Self { text: Some(bounded(text)), ..Self::new(id, at, role) }
    }

    pub(crate) fn call(id: &str, at: Option<Timestamp>, name: &str, input: Option<Value>) -> Self {
        let name = named(name);
        let tool = ToolUse { name, input: input.map(bounded_input), ..ToolUse::default() };
        Self { tool: Some(tool), ..Self::new(id, at, Role::Tool) }
    }

    pub(crate) fn result(id: &str, at: Option<Timestamp>, output: &str, failed: bool) -> Self {
        let output = (!output.is_empty()).then(|| bounded(output));
        let tool = ToolUse { output, failed, ..ToolUse::default() };
        Self { tool: Some(tool), ..Self::new(id, at, Role::Tool) }
    }

    /// Stands for a line that was too long to be read.
    pub fn too_long(place: u64, bytes: u64) -> Self {
        let text = format!("A line of {bytes} bytes is too long to be shown.");
        Self::said(&placed(place, 0), None, Role::System, &text)
    }

    /// A result whose call stands elsewhere.
    pub fn lacks_call(&self) -> bool {
        self.tool.as_ref().is_some_and(|tool| tool.name.is_empty())
    }

    /// About how many bytes it takes to tell.
    pub fn weight(&self) -> usize {
        let tool = self.tool.as_ref().map_or(0, |tool| {
            let input = tool.input.as_ref().map_or(0, |input| input.to_string().len());
            input + tool.output.as_ref().map_or(0, String::len)
        });
        128 + self.text.as_ref().map_or(0, String::len) + tool
    }

    /// Takes in another piece of the same thing. What is known stays.
    fn join(&mut self, other: Self) {
        self.text = self.text.take().or(other.text);
        self.agent = self.agent.take().or(other.agent);
        self.model = self.model.take().or(other.model);
        self.tool = match (self.tool.take(), other.tool) {
            (Some(mut known), Some(told)) => {
                if known.name.is_empty() {
                    known.name = told.name;
                }
                known.input = known.input.or(told.input);
                known.output = known.output.or(told.output);
                known.failed |= told.failed;
                Some(known)
            }
            (known, told) => known.or(told),
        };
    }
}

/// Pieces put together, in the order in which each thing was first heard of.
#[derive(Debug, Default)]
pub struct Conversation {
    entries: Vec<Entry>,
    places: BTreeMap<String, usize>,
}

impl Conversation {
    pub fn push(&mut self, piece: Entry) {
        match self.places.get(&piece.id) {
            Some(known) => self.entries[*known].join(piece),
            None => {
                self.places.insert(piece.id.clone(), self.entries.len());
                self.entries.push(piece);
            }
        }
    }

    /// Adds what an earlier piece knows to an entry that is there; does nothing else.
    pub fn complete(&mut self, piece: Entry) {
        if self.places.contains_key(&piece.id) {
            self.push(piece);
        }
    }

    /// Ids of results whose calls have not come.
    pub fn lacking(&self) -> usize {
        self.entries.iter().filter(|entry| entry.lacks_call()).count()
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// A result whose call is nowhere has a name as well.
    pub fn into_entries(mut self) -> Vec<Entry> {
        for tool in self.entries.iter_mut().filter_map(|entry| entry.tool.as_mut()) {
            if tool.name.is_empty() {
                tool.name.push_str("tool");
            }
        }
        self.entries
    }
}

impl FromIterator<Entry> for Conversation {
    fn from_iter<T: IntoIterator<Item = Entry>>(pieces: T) -> Self {
        let mut conversation = Self::default();
        pieces.into_iter().for_each(|piece| conversation.push(piece));
        conversation
    }
}

/// An id for what has none of its own: where it stands.
pub(crate) fn placed(place: u64, nth: usize) -> String {
    format!("@{place}.{nth}")
}

pub(crate) fn named(name: &str) -> String {
    head(name, NAME_BYTES_MAX).to_owned()
}

/// A text as it is shown, with a mark where it was cut.
pub(crate) fn bounded(text: &str) -> String {
    cut(text, TEXT_BYTES_MAX)
}

fn cut(text: &str, bytes_max: usize) -> String {
    match text.len() <= bytes_max {
        true => text.to_owned(),
        false => format!("{}\n… cut here: {} bytes in all", head(text, bytes_max), text.len()),
    }
}

/// An input as it is shown: whole, or with its long texts cut, or as a text that is cut.
fn bounded_input(input: Value) -> Value {
    if input.to_string().len() <= TEXT_BYTES_MAX {
        return input;
    }
    let shorter = with_texts_cut(input);
    let spelled = shorter.to_string();
    match spelled.len() <= TEXT_BYTES_MAX {
        true => shorter,
        false => Value::String(bounded(&spelled)),
    }
}

fn with_texts_cut(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(cut(&text, INNER_TEXT_BYTES_MAX)),
        Value::Array(values) => values.into_iter().map(with_texts_cut).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(key, value)| (key, with_texts_cut(value))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

/// The text in what may be a text, parts with texts, or something else altogether.
pub(crate) fn text_in(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<String> = parts.iter().map(part_text).collect();
            texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
        }
        Value::Null => String::new(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => part_text(value),
    }
}

fn part_text(part: &Value) -> String {
    let text = part.get("text").or_else(|| part.get("content")).and_then(Value::as_str);
    match (text, part.get("type").and_then(Value::as_str)) {
        (Some(text), _) => text.to_owned(),
        (None, Some(kind)) if kind.contains("image") => "[image]".to_owned(),
        (None, Some(_)) => String::new(),
        (None, None) => match part {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                part.to_string()
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_and_its_result_are_one_entry_where_the_call_stands() {
        let pieces = [
            Entry::call("c1", Some(Timestamp(1)), "Bash", Some(json!({"command": "ls"}))),
            Entry::said("m", Some(Timestamp(2)), Role::Assistant, "meanwhile"),
            Entry::result("c1", Some(Timestamp(3)), "x.txt", true),
            Entry::result("c0", Some(Timestamp(4)), "lost", false),
        ];
        let conversation: Conversation = pieces.into_iter().collect();
        assert_eq!(conversation.lacking(), 1);
        let told = serde_json::to_value(conversation.into_entries()).expect("JSON");
        assert_eq!(
            told,
            json!([
                {"id": "c1", "at": 1, "role": "tool", "tool": {"name": "Bash",
                    "input": {"command": "ls"}, "output": "x.txt", "failed": true}},
                {"id": "m", "at": 2, "role": "assistant", "text": "meanwhile"},
                {"id": "c0", "at": 4, "role": "tool", "tool": {"name": "tool", "output": "lost"}},
            ])
        );
    }

    #[test]
    fn what_is_too_long_is_cut_and_says_so() {
        let long = "ä".repeat(TEXT_BYTES_MAX);
        let text = bounded(&long);
        assert!(
            text.len() < TEXT_BYTES_MAX + 64 && text.ends_with("131072 bytes in all"),
            "{text}"
        );
        let input = bounded_input(json!({"path": "a", "content": long, "list": [long]}));
        assert_eq!(input["path"], "a");
        assert!(input.to_string().len() < TEXT_BYTES_MAX);
        let many = bounded_input(Value::from(vec!["x".repeat(9_000); 100]));
        assert!(many.as_str().is_some_and(|text| text.len() < TEXT_BYTES_MAX + 64));
    }
}
