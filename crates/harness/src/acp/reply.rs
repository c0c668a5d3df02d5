//! The operator's decision in, the protocol's message out.

use qd_session::decision::{Answer, Decision, Scope};
use serde_json::{Map, Value, json};

use super::wire::{Message, PermissionOption};

/// A request of the agent, read from its message: what an answer needs of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// Number or string, and it goes back as it came.
    id: Value,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Permission(Vec<PermissionOption>),
    /// The form's fields, with their schema.
    Elicitation(Map<String, Value>),
}

impl Asked {
    /// None if the message asks the operator nothing.
    pub fn read(payload: &[u8]) -> Option<Self> {
        let message: Message = serde_json::from_slice(payload).ok()?;
        let (id, params) = (message.id?, message.params.unwrap_or_default());
        let kind = match message.method.as_deref()? {
            "session/request_permission" => {
                let options = params.get("options").cloned().unwrap_or_default();
                Kind::Permission(serde_json::from_value(options).ok()?)
            }
            "elicitation/create" => {
                let fields = params.get("requestedSchema").and_then(|form| form.get("properties"));
                Kind::Elicitation(fields.and_then(Value::as_object).cloned().unwrap_or_default())
            }
            _ => return None,
        };
        Some(Self { id, kind })
    }

    /// The response that says what the operator decided. None if the agent offers no such answer:
    /// the request stays open.
    pub fn answer(&self, decision: &Decision) -> Option<Value> {
        let result = match &self.kind {
            Kind::Permission(options) => {
                json!({"outcome": {"outcome": "selected", "optionId": chosen(options, decision)?}})
            }
            Kind::Elicitation(fields) => elicited(fields, decision)?,
        };
        Some(response(&self.id, result))
    }

    /// The response to a request that a cancel leaves open.
    pub fn cancelled(&self) -> Value {
        let result = match self.kind {
            Kind::Permission(_) => json!({"outcome": {"outcome": "cancelled"}}),
            Kind::Elicitation(_) => json!({"action": "cancel"}),
        };
        response(&self.id, result)
    }
}

/// The option that comes closest to the decision, by the kinds the agent offers.
fn chosen<'a>(options: &'a [PermissionOption], decision: &Decision) -> Option<&'a str> {
    let kinds: &[&str] = match decision {
        // More than was decided is never given.
        Decision::Allow { scope: Scope::Once, .. } => &["allow_once"],
        Decision::Allow { scope: Scope::Session | Scope::Always, .. } => {
            &["allow_always", "allow_once"]
        }
        Decision::ApprovePlan { mode } => {
            let named = |option: &&PermissionOption| {
                option.kind.starts_with("allow")
                    && mode.as_deref().is_some_and(|mode| option.option_id == mode)
            };
            if let Some(option) = options.iter().find(named) {
                return Some(&option.option_id);
            }
            &["allow_once"]
        }
        Decision::Deny { .. } | Decision::RejectPlan { .. } => &["reject_once", "reject_always"],
        Decision::Answer { .. } => return None,
    };
    let of_kind = |kind: &&str| options.iter().find(|option| option.kind == **kind);
    kinds.iter().find_map(of_kind).map(|option| option.option_id.as_str())
}

fn elicited(fields: &Map<String, Value>, decision: &Decision) -> Option<Value> {
    match decision {
        Decision::Answer { answers } => {
            let content: Map<String, Value> =
                answers.iter().filter_map(|answer| field(fields, answer)).collect();
            Some(json!({"action": "accept", "content": content}))
        }
        Decision::Deny { interrupt: true, .. } => Some(json!({"action": "cancel"})),
        Decision::Deny { .. } => Some(json!({"action": "decline"})),
        Decision::Allow { .. } | Decision::ApprovePlan { .. } | Decision::RejectPlan { .. } => None,
    }
}

/// A field by its name or its title, else the only one; filled as its schema wants it.
fn field(fields: &Map<String, Value>, answer: &Answer) -> Option<(String, Value)> {
    let titled = |schema: &Value| {
        let told = [schema.get("title"), schema.get("description")];
        told.iter().flatten().any(|text| text.as_str() == Some(&answer.question))
    };
    let (name, schema) = fields
        .iter()
        .find(|(name, _)| **name == answer.question)
        .or_else(|| fields.iter().find(|(_, schema)| titled(schema)))
        .or_else(|| fields.iter().next().filter(|_| fields.len() == 1))?;
    let first = answer.values.first().map(String::as_str).unwrap_or_default();
    let value = match schema.get("type").and_then(Value::as_str) {
        Some("array") => json!(answer.values),
        Some("boolean") => json!(first == "true"),
        Some("integer") => json!(first.parse::<i64>().ok()?),
        Some("number") => json!(first.parse::<f64>().ok()?),
        Some(_) | None => json!(first),
    };
    Some((name.clone(), value))
}

/// The first message of a connection.
pub fn initialize(id: u64, client_version: &str) -> Value {
    request(
        id,
        "initialize",
        json!({
            "protocolVersion": 1,
            "clientCapabilities": {
                "fs": {"readTextFile": false, "writeTextFile": false},
                "terminal": false,
                "elicitation": {"form": {}},
            },
            "clientInfo": {"name": "quarterdeck", "title": "Quarterdeck", "version": client_version},
        }),
    )
}

pub fn new_session(id: u64, cwd: &str) -> Value {
    request(id, "session/new", json!({"cwd": cwd, "mcpServers": []}))
}

pub fn load(id: u64, session: &str, cwd: &str) -> Value {
    request(id, "session/load", json!({"sessionId": session, "cwd": cwd, "mcpServers": []}))
}

pub fn prompt(id: u64, session: &str, text: &str) -> Value {
    let prompt = json!([{"type": "text", "text": text}]);
    request(id, "session/prompt", json!({"sessionId": session, "prompt": prompt}))
}

pub fn set_mode(id: u64, session: &str, mode: &str) -> Value {
    request(id, "session/set_mode", json!({"sessionId": session, "modeId": mode}))
}

/// Ends the turn: `cancelled` for everything that is open, then the cancel itself. An agent that
/// waits for an answer may never come to read the cancel.
pub fn cancel(session: &str, open: &[Asked]) -> Vec<Value> {
    let cancel =
        json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}});
    open.iter().map(Asked::cancelled).chain([cancel]).collect()
}

fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn response(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEMINI: &str = r#"{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s","options":[{"optionId":"proceed_always","name":"Allow for this session","kind":"allow_always"},{"optionId":"proceed_once","name":"Allow","kind":"allow_once"},{"optionId":"cancel","name":"Reject","kind":"reject_once"}],"toolCall":{"toolCallId":"t"}}}"#;
    const PLAN: &str = r#"{"jsonrpc":"2.0","id":"u-1","method":"session/request_permission","params":{"sessionId":"s","options":[{"optionId":"exit-plan-default","name":"Yes, manually approve edits","kind":"allow_once"},{"optionId":"exit-plan-auto","name":"Yes, and use auto mode","kind":"allow_always"},{"optionId":"reject","name":"No, keep planning","kind":"reject_once"}],"toolCall":{"toolCallId":"t","kind":"switch_mode"}}}"#;
    const FORM: &str = r#"{"jsonrpc":"2.0","id":4,"method":"elicitation/create","params":{"sessionId":"s","mode":"form","message":"Which greeting?","requestedSchema":{"type":"object","properties":{"greeting":{"type":"string","title":"Greeting"},"loud":{"type":"boolean"}}}}}"#;

    fn check(message: &str, decision: Decision, expected: &str) {
        let asked = Asked::read(message.as_bytes()).expect("it asks something");
        let answer = asked.answer(&decision).map(|answer| answer.to_string());
        assert_eq!(answer.as_deref().unwrap_or("nothing"), expected);
    }

    fn allow(scope: Scope) -> Decision {
        Decision::Allow { input: None, scope }
    }

    fn deny(interrupt: bool) -> Decision {
        Decision::Deny { message: None, interrupt }
    }

    #[test]
    fn the_option_is_chosen_by_its_kind_from_those_offered() {
        check(
            GEMINI,
            allow(Scope::Once),
            r#"{"id":0,"jsonrpc":"2.0","result":{"outcome":{"optionId":"proceed_once","outcome":"selected"}}}"#,
        );
        check(
            GEMINI,
            allow(Scope::Session),
            r#"{"id":0,"jsonrpc":"2.0","result":{"outcome":{"optionId":"proceed_always","outcome":"selected"}}}"#,
        );
        check(
            GEMINI,
            deny(false),
            r#"{"id":0,"jsonrpc":"2.0","result":{"outcome":{"optionId":"cancel","outcome":"selected"}}}"#,
        );
    }

    #[test]
    fn once_is_never_answered_with_always() {
        let always = GEMINI.replace("allow_once", "allow_always");
        check(&always, allow(Scope::Once), "nothing");
    }

    #[test]
    fn a_plan_is_approved_into_the_mode_that_was_asked_for_and_the_id_stays_a_string() {
        check(
            PLAN,
            Decision::ApprovePlan { mode: None },
            r#"{"id":"u-1","jsonrpc":"2.0","result":{"outcome":{"optionId":"exit-plan-default","outcome":"selected"}}}"#,
        );
        check(
            PLAN,
            Decision::ApprovePlan { mode: Some("exit-plan-auto".into()) },
            r#"{"id":"u-1","jsonrpc":"2.0","result":{"outcome":{"optionId":"exit-plan-auto","outcome":"selected"}}}"#,
        );
        check(
            PLAN,
            Decision::RejectPlan { feedback: Some("smaller".into()) },
            r#"{"id":"u-1","jsonrpc":"2.0","result":{"outcome":{"optionId":"reject","outcome":"selected"}}}"#,
        );
    }

    #[test]
    fn a_form_is_filled_as_its_schema_wants_it() {
        let answer = |question: &str, value: &str| Answer {
            question: question.into(),
            values: vec![value.into()],
        };
        check(
            FORM,
            Decision::Answer { answers: vec![answer("Greeting", "Hello"), answer("loud", "true")] },
            r#"{"id":4,"jsonrpc":"2.0","result":{"action":"accept","content":{"greeting":"Hello","loud":true}}}"#,
        );
        check(FORM, deny(false), r#"{"id":4,"jsonrpc":"2.0","result":{"action":"decline"}}"#);
        check(FORM, allow(Scope::Once), "nothing");
    }

    #[test]
    fn a_cancel_first_answers_everything_that_is_open() {
        let open: Vec<Asked> =
            [GEMINI, FORM].iter().filter_map(|text| Asked::read(text.as_bytes())).collect();
        let messages: Vec<String> = cancel("s", &open).iter().map(ToString::to_string).collect();
        assert_eq!(
            messages,
            [
                r#"{"id":0,"jsonrpc":"2.0","result":{"outcome":{"outcome":"cancelled"}}}"#,
                r#"{"id":4,"jsonrpc":"2.0","result":{"action":"cancel"}}"#,
                r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}"#,
            ]
        );
    }

    #[test]
    fn the_clients_own_requests_are_as_the_agents_know_them() {
        assert_eq!(
            initialize(1, "0.1.0").to_string(),
            r#"{"id":1,"jsonrpc":"2.0","method":"initialize","params":{"clientCapabilities":{"elicitation":{"form":{}},"fs":{"readTextFile":false,"writeTextFile":false},"terminal":false},"clientInfo":{"name":"quarterdeck","title":"Quarterdeck","version":"0.1.0"},"protocolVersion":1}}"#
        );
        assert_eq!(
            prompt(3, "s", "add a greeting").to_string(),
            r#"{"id":3,"jsonrpc":"2.0","method":"session/prompt","params":{"prompt":[{"text":"add a greeting","type":"text"}],"sessionId":"s"}}"#
        );
        assert_eq!(
            set_mode(5, "s", "yolo").to_string(),
            r#"{"id":5,"jsonrpc":"2.0","method":"session/set_mode","params":{"modeId":"yolo","sessionId":"s"}}"#
        );
        assert_eq!(
            load(2, "s", "/w").to_string(),
            r#"{"id":2,"jsonrpc":"2.0","method":"session/load","params":{"cwd":"/w","mcpServers":[],"sessionId":"s"}}"#
        );
        assert_eq!(
            new_session(2, "/w").to_string(),
            r#"{"id":2,"jsonrpc":"2.0","method":"session/new","params":{"cwd":"/w","mcpServers":[]}}"#
        );
    }

    #[test]
    fn a_message_that_asks_nothing_gets_no_answer() {
        assert_eq!(Asked::read(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"), None);
        assert_eq!(Asked::read(b"half a li"), None);
    }
}
