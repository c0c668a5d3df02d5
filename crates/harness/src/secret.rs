//! Secrets in what agents write and read: keys, passwords, cookies, by their shapes and names.
//!
//! Pure: text in, text out. Works on JSON as it is written, also on JSON inside of a JSON text;
//! no replacement has a quote or a backslash in it, and no pattern reaches past one, so what was
//! JSON stays JSON.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use qd_session::id::{CallId, ToolName};
use regex::{Regex, RegexBuilder};
use serde_json::Value;

/// What stands for a secret.
pub const REDACTED: &str = "REDACTED";

/// The text with every secret that can be recognised taken out.
pub fn redacted(text: &str) -> String {
    let mut text = text.to_owned();
    for (secret, kept) in &*SECRETS {
        if let Cow::Owned(changed) = secret.replace_all(&text, *kept) {
            text = changed;
        }
    }
    text
}

/// The same for a value: texts by what they hold, and by the names of their fields.
pub fn redacted_json(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(redacted(text)),
        Value::Array(list) => Value::Array(list.iter().map(redacted_json).collect()),
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| {
                let is_secret = value.is_string() && SECRET_NAME.is_match(name);
                let shown = if is_secret { REDACTED.into() } else { redacted_json(value) };
                (name.clone(), shown)
            };
            Value::Object(fields.iter().map(field).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Arguments of calls that come in parts. A secret may be cut in two, so only whole fields and
/// elements go out; what was begun waits.
#[derive(Debug, Default)]
pub struct ArgumentStreams {
    held: BTreeMap<CallId, Held>,
}

#[derive(Debug)]
struct Held {
    tool: ToolName,
    text: String,
    /// How much of the text has been looked at.
    scanned: usize,
    in_string: bool,
    is_escaped: bool,
}

impl ArgumentStreams {
    /// What can be shown now. The first part of a call shows that it began, if nothing else.
    pub fn take(&mut self, call: &CallId, tool: &ToolName, part: &str) -> Option<Arc<str>> {
        let is_first = !self.held.contains_key(call);
        let held = self.held.entry(call.clone()).or_insert_with(|| Held {
            tool: tool.clone(),
            text: String::new(),
            scanned: 0,
            in_string: false,
            is_escaped: false,
        });
        held.text.push_str(part);
        let whole = held.whole_fields();
        (is_first || !whole.is_empty()).then(|| redacted(&whole).into())
    }

    /// What was left at the end of all of them, in the order of their ids.
    pub fn finish(&mut self) -> Vec<(CallId, ToolName, String)> {
        let held = std::mem::take(&mut self.held).into_iter();
        held.filter(|(_, held)| !held.text.is_empty())
            .map(|(call, held)| (call, held.tool, redacted(&held.text)))
            .collect()
    }
}

impl Held {
    /// Takes out what ends outside of a string with a comma or a bracket.
    fn whole_fields(&mut self) -> String {
        let mut end = 0;
        for (at, byte) in self.text.bytes().enumerate().skip(self.scanned) {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.in_string => self.is_escaped = true,
                b'"' => self.in_string = !self.in_string,
                b',' | b'{' | b'}' | b'[' | b']' if !self.in_string => end = at + 1,
                _ => {}
            }
        }
        let rest = self.text.split_off(end);
        self.scanned = rest.len();
        std::mem::replace(&mut self.text, rest)
    }
}

fn pattern(text: &str) -> Regex {
    RegexBuilder::new(text).size_limit(1 << 22).build().expect("a pattern of ours")
}

/// Each kind of secret, and what is kept of it.
static SECRETS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let whole = REDACTED;
    let named = "${name}REDACTED";
    [
        // Cut recordings may lack the end of a block.
        (
            r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:(?:[^\x22\\]|\\+[nrt/])*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|(?:[^\x22\\]|\\+[nrt/])*)",
            whole,
        ),
        // Anthropic, OpenAI, OpenRouter, Stripe.
        (r"\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}", whole),
        // GitHub, GitLab, Slack, npm, Hugging Face, Google, PyPI.
        (r"\bgh[pousr]_[A-Za-z0-9]{20,}", whole),
        (r"\bgithub_pat_[A-Za-z0-9_]{20,}", whole),
        (r"\bglpat-[A-Za-z0-9_-]{16,}", whole),
        (r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}", whole),
        (r"\bnpm_[A-Za-z0-9]{30,}", whole),
        (r"\bhf_[A-Za-z0-9]{30,}", whole),
        (r"\bAIza[A-Za-z0-9_-]{30,}", whole),
        (r"\bya29\.[A-Za-z0-9_-]{20,}", whole),
        (r"\bpypi-[A-Za-z0-9_-]{30,}", whole),
        (r"\b(?:AKIA|ASIA|AROA|AIDA)[A-Z0-9]{16}\b", whole),
        (r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*", whole),
        (r"(?P<name>(?i:\b(?:bearer|basic|digest))\s+)[A-Za-z0-9._~+/=-]{8,}", named),
        // https://user:password@host
        (r"(?P<name>://[^\s/:@\x22\\]+:)[^\s/@\x22\\]+(?P<at>@)", "${name}REDACTED${at}"),
        // PASSWORD=…, --api-key=…. A bare quote would be the end of the text they stand in.
        (
            r"(?P<name>(?i:\b[\w-]*(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key(?:[_-]?id)?|private[_-]?key|credentials?))\s?=\s?(?:\\(?:\\\\)*\x22|')?)[^\s\x22'\\&;,)]+",
            named,
        ),
        (r"(?P<name>\b[A-Z0-9_]*KEY=(?:\\(?:\\\\)*\x22|')?)[^\s\x22'\\&;,)]+", named),
        (r"(?P<name>(?i:\b(?:set-)?cookie|x-api-key|authorization)\s*:\s?)[^\x22\\\r\n]+", named),
    ]
    .map(|(text, kept)| (pattern(text), kept))
    .into_iter()
    .chain(QUOTES.map(|quote| (field(quote), named)))
    .collect()
});

/// How a quote is spelled in JSON, in JSON in a text, and once more.
const QUOTES: [&str; 3] = [r"\x22", r"\\\x22", r"\\\\\\\x22"];

/// `"password": "…"`. Both quotes are of one depth, so that no match begins in one text and ends
/// in another.
fn field(quote: &str) -> Regex {
    pattern(&format!(r"(?P<name>{NAMES}{quote}\s*:\s*{quote})[^\x22\\]+"))
}

/// Fields that hold secrets by their names.
const NAMES: &str = r"(?i:[\w-]*(?:password|passwd|passphrase|secret|api[_-]?key|access[_-]?key(?:[_-]?id)?|private[_-]?key|auth[_-]?key|credentials?|(?:access|auth|refresh|id|session|bearer|api|oauth|security)[_-]?token|cookie|authorization)|\btoken)";

static SECRET_NAME: LazyLock<Regex> = LazyLock::new(|| pattern(&format!("(?:{NAMES})$")));

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_go_by_their_names_and_texts_by_what_they_hold() {
        let told = json!({
            "apiKey": "a\"b\\c", "command": "curl -H 'x-api-key: abc' https://ann:pw@host",
            "list": [{"password": "x", "n": 1}], "max_tokens": "7",
        });
        let shown = json!({
            "apiKey": "REDACTED", "command": "curl -H 'x-api-key: REDACTED",
            "list": [{"password": "REDACTED", "n": 1}], "max_tokens": "7",
        });
        assert_eq!(redacted_json(&told), shown);
    }

    /// Cuts a text at these places and gives what was shown, part by part.
    fn streamed(text: &str, cuts: &[usize]) -> String {
        let (call, tool) = (CallId::new("c"), ToolName::new("Bash"));
        let mut streams = ArgumentStreams::default();
        let mut shown = String::new();
        let ends = cuts.iter().map(|cut| cut % (text.len() + 1)).chain([text.len()]);
        let mut ends: Vec<usize> = ends.filter(|end| text.is_char_boundary(*end)).collect();
        ends.sort_unstable();
        let mut from = 0;
        for end in ends {
            shown.extend(streams.take(&call, &tool, &text[from..end]).as_deref());
            from = end;
        }
        shown.extend(streams.finish().into_iter().map(|(_, _, rest)| rest));
        shown
    }

    proptest! {
        #[test]
        fn no_cut_lets_a_secret_through(cuts in prop::collection::vec(any::<usize>(), 0..12)) {
            let text = json!({
                "a": ["x", {"password": "hunter2"}],
                "command": "export API_KEY=sk-ant-api03-AAAAAAAAAAAAAAAAAAAA; echo {\"q\",} ü",
            })
            .to_string();
            prop_assert_eq!(streamed(&text, &cuts), redacted(&text));
        }
    }
}
