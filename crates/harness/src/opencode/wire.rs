//! The fields we use, as the server spells them. Everything may be missing.

use serde::Deserialize;
use serde_json::Value;

/// A signal of any of the three kinds: an event, a request to the server, its response.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Envelope {
    pub r#type: Option<String>,
    pub properties: Option<Properties>,
    pub sync_event: Option<SyncEvent>,
    pub method: Option<String>,
    pub path: Option<String>,
    pub status: Option<u16>,
    pub body: Option<Value>,
}

/// Kilo's second copy of an event; the type ends in a version.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SyncEvent {
    pub r#type: Option<String>,
    pub data: Option<Properties>,
}

/// The properties of all events we know, in one: no name means two things.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Properties {
    #[serde(rename = "sessionID")]
    pub session_id: Option<String>,
    pub info: Option<Info>,
    pub part: Option<Part>,
    pub status: Option<Status>,
    pub error: Option<Failure>,
    /// Of a permission or question.
    pub id: Option<String>,
    #[serde(rename = "requestID", alias = "permissionID")]
    pub request_id: Option<String>,
    #[serde(alias = "response")]
    pub reply: Option<String>,
    pub permission: Option<String>,
    pub patterns: Option<Value>,
    pub metadata: Option<Value>,
    pub always: Option<Value>,
    pub tool: Option<CallRef>,
    pub questions: Option<Value>,
    pub todos: Option<Vec<Todo>>,
    /// Of a network that is down.
    pub message: Option<String>,
    /// Of a suggestion.
    pub text: Option<String>,
    pub blocking: Option<bool>,
    /// Of `session.turn.close`.
    pub reason: Option<String>,
}

/// A session or a message.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Info {
    pub id: Option<String>,
    #[serde(rename = "sessionID")]
    pub session_id: Option<String>,
    /// The parent session of a session; the message that a message answers.
    #[serde(rename = "parentID")]
    pub parent_id: Option<String>,
    pub directory: Option<String>,
    pub version: Option<String>,
    pub title: Option<String>,
    pub agent: Option<String>,
    pub role: Option<String>,
    pub mode: Option<String>,
    #[serde(rename = "modelID")]
    pub model_id: Option<String>,
    pub tokens: Option<Tokens>,
    pub finish: Option<String>,
    pub error: Option<Failure>,
    pub time: Option<Times>,
    /// True on the message that sums the conversation up.
    pub summary: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Times {
    pub completed: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Tokens {
    pub input: Option<f64>,
    pub output: Option<f64>,
    pub reasoning: Option<f64>,
    pub cache: Option<Cache>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Cache {
    pub read: Option<f64>,
    pub write: Option<f64>,
}

impl Tokens {
    /// What the window holds.
    pub fn context(&self) -> u64 {
        let cache = self.cache.as_ref();
        let parts = [
            self.input,
            self.output,
            self.reasoning,
            cache.and_then(|cache| cache.read),
            cache.and_then(|cache| cache.write),
        ];
        let parts = parts.into_iter().flatten().filter(|part| *part > 0.0);
        parts.fold(0, |sum: u64, part| sum.saturating_add(part as u64))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Part {
    pub r#type: Option<String>,
    #[serde(rename = "messageID")]
    pub message_id: Option<String>,
    #[serde(rename = "callID")]
    pub call_id: Option<String>,
    pub tool: Option<String>,
    pub state: Option<ToolState>,
    pub text: Option<String>,
    /// Written by the client itself into a user's message.
    pub synthetic: Option<bool>,
    pub error: Option<Failure>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolState {
    pub status: Option<String>,
    pub input: Option<Value>,
    pub title: Option<String>,
    pub metadata: Option<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Status {
    pub r#type: Option<String>,
    pub message: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Failure {
    pub name: Option<String>,
    pub data: Option<FailureData>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FailureData {
    pub message: Option<String>,
    pub status_code: Option<u16>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct CallRef {
    #[serde(rename = "callID")]
    pub call_id: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Todo {
    pub content: Option<String>,
    pub status: Option<String>,
}

/// Of an event whose fields are not what they should be: whose it was.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Owner {
    pub properties: OwnerId,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct OwnerId {
    #[serde(rename = "sessionID")]
    pub session_id: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::Tokens;

    #[test]
    fn counts_that_nobody_can_hold_stop_at_the_end_of_the_range() {
        let tokens = Tokens { input: Some(1e300), output: Some(1e300), ..Tokens::default() };
        assert_eq!(tokens.context(), u64::MAX);
        let tokens = Tokens { input: Some(-7.0), output: Some(5.0), ..Tokens::default() };
        assert_eq!(tokens.context(), 5);
    }
}
