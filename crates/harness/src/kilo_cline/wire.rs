//! The fields we use of a line, as the vendors spell them.

use serde::Deserialize;
use serde_json::Value;

/// A line as it is printed, or as it was written to standard input. Kilo splits a message's text
/// into `content` (plain) and `metadata` (JSON); Cline keeps both in `text`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Line {
    pub r#type: Option<String>,
    /// A name of Kilo's; an object of Cline 3's.
    pub event: Option<Value>,
    pub say: Option<String>,
    pub ask: Option<String>,
    /// Kilo's clock.
    pub timestamp: Option<u64>,
    /// Cline's.
    pub ts: Option<u64>,
    pub partial: Option<bool>,
    pub is_answered: Option<bool>,
    pub is_protected: Option<bool>,
    pub content: Option<String>,
    pub text: Option<String>,
    pub metadata: Option<Value>,
    /// `msg-<when the process began>-<random>` on Kilo's `welcome`.
    pub id: Option<String>,
    pub session_id: Option<String>,
    pub task_id: Option<String>,
    pub title: Option<String>,
    pub mode: Option<String>,
    /// Of Cline's `{"type":"error"}` line.
    pub message: Option<String>,
    pub model_info: Option<ModelInfo>,
    /// Of Cline 3.
    pub hook_event_name: Option<String>,
    pub agent_id: Option<String>,
    pub parent_agent_id: Option<String>,
    pub tool_name: Option<String>,
    pub tool_call_id: Option<String>,
    pub finish_reason: Option<String>,
    /// Of what is written to the client.
    pub approved: Option<bool>,
    pub ask_response: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelInfo {
    pub model_id: Option<String>,
    pub mode: Option<String>,
}

/// Kilo's `metadata.welcomeOptions`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Welcome {
    pub clear_screen: Option<bool>,
    pub show_instructions: Option<bool>,
    pub instructions: Vec<String>,
}

/// What `api_req_started` holds once the answer has come.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Request {
    pub api_protocol: Option<String>,
    pub tokens_in: Option<u64>,
    pub tokens_out: Option<u64>,
    pub cache_writes: Option<u64>,
    pub cache_reads: Option<u64>,
    pub cancel_reason: Option<String>,
}

/// What an `ask` or `say` is about, across both clients: tools, commands, questions, failures.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Details {
    pub tool: Option<String>,
    pub path: Option<String>,
    pub mode: Option<String>,
    pub is_outside_workspace: Option<bool>,
    pub question: Option<String>,
    /// Cline's plan mode.
    pub response: Option<String>,
    pub execution_id: Option<String>,
    pub command: Option<String>,
    pub output: Option<String>,
    pub exit_code: Option<i32>,
    pub server_name: Option<String>,
    pub tool_name: Option<String>,
    pub url: Option<String>,
    pub message: Option<String>,
    pub status: Option<u16>,
    pub error: Option<Value>,
    pub todos: Option<Value>,
}

/// Which of the two clients speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    Kilo,
    Cline,
}

/// A say or an ask, with both clients' spellings read alike.
#[derive(Debug)]
pub struct Message {
    pub client: Client,
    /// The client's own time: its name and its place in the order, no time of ours.
    pub stamp: u64,
    pub word: Word,
    pub partial: bool,
    pub answered: bool,
    pub protected: bool,
    pub text: Option<String>,
    pub data: Option<Value>,
    pub model: Option<ModelInfo>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Word {
    Say(String),
    Ask(String),
}

impl Line {
    /// The message in the line, if it is one.
    pub fn into_message(self) -> Option<Message> {
        let word = match (self.r#type.as_deref()?, self.say, self.ask) {
            ("say", Some(say), _) => Word::Say(say),
            ("ask", _, Some(ask)) => Word::Ask(ask),
            _ => return None,
        };
        let (client, stamp) = match (self.timestamp, self.ts) {
            (Some(stamp), _) => (Client::Kilo, stamp),
            (None, Some(stamp)) => (Client::Cline, stamp),
            (None, None) => return None,
        };
        let text = self.content.or(self.text);
        let data = self.metadata.or_else(|| {
            let text = text.as_deref()?.trim_start();
            text.starts_with(['{', '[']).then(|| serde_json::from_str(text).ok())?
        });
        Some(Message {
            client,
            stamp,
            word,
            partial: self.partial.unwrap_or(false),
            answered: self.is_answered.unwrap_or(false),
            protected: self.is_protected.unwrap_or(false),
            text,
            data,
            model: self.model_info,
        })
    }

    pub fn event_name(&self) -> Option<&str> {
        self.event.as_ref()?.as_str()
    }

    /// When the process began, by Kilo's clock: its `welcome` is named by it.
    pub fn born(&self) -> Option<u64> {
        self.id.as_deref()?.strip_prefix("msg-")?.split('-').next()?.parse().ok()
    }

    pub fn welcome(&self) -> Option<Welcome> {
        serde_json::from_value(self.metadata.as_ref()?.get("welcomeOptions")?.clone()).ok()
    }
}

impl Message {
    pub fn details(&self) -> Details {
        self.data.clone().and_then(|data| serde_json::from_value(data).ok()).unwrap_or_default()
    }

    pub fn request(&self) -> Request {
        self.data.clone().and_then(|data| serde_json::from_value(data).ok()).unwrap_or_default()
    }
}

impl Request {
    pub fn has_usage(&self) -> bool {
        self.tokens_in.is_some() || self.tokens_out.is_some()
    }

    /// The model answered: it was neither canceled nor cut off by a failure.
    pub fn answered(&self) -> bool {
        self.tokens_out.is_some_and(|tokens| tokens > 0) && self.cancel_reason.is_none()
    }

    /// What the window holds after the answer. Anthropic's protocol counts cached input apart.
    pub fn context_tokens(&self) -> Option<u64> {
        let plain = self.tokens_in?.saturating_add(self.tokens_out.unwrap_or(0));
        Some(match self.api_protocol.as_deref() {
            Some("anthropic") => plain
                .saturating_add(self.cache_writes.unwrap_or(0))
                .saturating_add(self.cache_reads.unwrap_or(0)),
            _ => plain,
        })
    }
}

/// The JSON in a line that a terminal was meant to read: escape sequences are skipped, and a line
/// that the recorder kept as a JSON string is unwrapped. `None` where nothing in it is an object.
pub fn parse(payload: &[u8]) -> Option<Line> {
    let text = std::str::from_utf8(payload).ok()?.trim();
    if text.starts_with('"') {
        return parse_plain(&serde_json::from_str::<String>(text).ok()?);
    }
    parse_plain(text)
}

/// A signal of the operating system that was sent to the client, and that it does not survive:
/// `"SIGTERM"`, or an object that names it.
pub fn is_deadly(payload: &[u8]) -> bool {
    let named = match serde_json::from_slice::<Value>(payload) {
        Ok(Value::String(name)) => name,
        Ok(Value::Object(fields)) => match fields.get("signal") {
            Some(Value::String(name)) => name.clone(),
            _ => return false,
        },
        _ => return false,
    };
    matches!(named.trim(), "SIGTERM" | "SIGKILL" | "SIGHUP")
}

fn parse_plain(text: &str) -> Option<Line> {
    let bare = without_escapes(text);
    serde_json::from_str(bare.get(bare.find('{')?..)?.trim_end()).ok()
}

/// Drops terminal escape sequences (CSI and OSC) and other control characters outside JSON.
fn without_escapes(text: &str) -> String {
    let mut bare = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\u{1b}' {
            bare.push(c);
            continue;
        }
        match chars.next() {
            Some('[') => while chars.next().is_some_and(|c| !('@'..='~').contains(&c)) {},
            Some(']') => {
                while let Some(c) = chars.next() {
                    if c == '\u{7}' || (c == '\u{1b}' && chars.next_if_eq(&'\\').is_some()) {
                        break;
                    }
                }
            }
            Some(_) | None => {}
        }
    }
    bare
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(payload: &[u8]) -> Option<Word> {
        parse(payload)?.into_message().map(|message| message.word)
    }

    #[test]
    fn escape_sequences_before_a_line_are_skipped() {
        let line =
            b"\x1b]0;kilo\x07\x1b[2K\x1b[1A{\"timestamp\":1,\"type\":\"say\",\"say\":\"text\"}\r";
        assert_eq!(word(line), Some(Word::Say("text".into())));
    }

    #[test]
    fn a_line_kept_as_a_string_is_unwrapped() {
        let line = br#""\u001b[2J{\"timestamp\":1,\"type\":\"ask\",\"ask\":\"tool\"}""#;
        assert_eq!(word(line), Some(Word::Ask("tool".into())));
    }

    #[test]
    fn half_a_line_wrong_types_and_broken_text_are_nothing() {
        for bad in [
            &b"{\"timestamp\":1,\"type\":\"say\""[..],
            b"{\"timestamp\":\"soon\",\"type\":\"say\",\"say\":\"text\"}",
            b"{\"type\":\"say\",\"say\":\"text\",\"timestamp\":1,\"content\":\"\xff\"}",
            b"Shutting down gracefully...",
            b"\"",
            b"",
        ] {
            assert_eq!(word(bad), None);
        }
    }

    #[test]
    fn clines_text_is_read_as_json_where_it_is() {
        let line = br#"{"ts":7,"type":"ask","ask":"tool","text":"{\"tool\":\"readFile\",\"path\":\"a\"}"}"#;
        let message = parse(line).and_then(Line::into_message).expect("a message");
        assert_eq!(message.client, Client::Cline);
        assert_eq!(message.details().tool.as_deref(), Some("readFile"));
    }

    #[test]
    fn the_window_of_anthropics_protocol_counts_the_cache() {
        let usage = |protocol: &str| Request {
            api_protocol: Some(protocol.into()),
            tokens_in: Some(10),
            tokens_out: Some(5),
            cache_reads: Some(100),
            ..Request::default()
        };
        assert_eq!(usage("openai").context_tokens(), Some(15));
        assert_eq!(usage("anthropic").context_tokens(), Some(115));
    }

    #[test]
    fn a_welcome_tells_when_the_process_began() {
        let line = br#"{"timestamp":1,"id":"msg-1794771896221-7254","type":"welcome"}"#;
        assert_eq!(parse(line).and_then(|line| line.born()), Some(1_794_771_896_221));
    }
}
