//! The operator's decision in, the protocol's message out: one line of JSON, without its newline.

use qd_session::decision::{Answer, Decision, Scope};
use serde::Serialize;
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
    pub fn answer(&self, decision: &Decision) -> Option<String> {
        Some(match &self.kind {
            Kind::Permission(options) => {
                let option_id = Some(chosen(options, decision)?);
                response(&self.id, Permission::new("selected", option_id))
            }
            Kind::Elicitation(fields) => response(&self.id, elicited(fields, decision)?),
        })
    }

    /// The questions of a form, by the names of its fields; none of a permission.
    pub fn questions(&self) -> Vec<&str> {
        match &self.kind {
            Kind::Permission(_) => Vec::new(),
            Kind::Elicitation(fields) => fields.keys().map(String::as_str).collect(),
        }
    }

    /// The response to a request that a cancel leaves open.
    pub fn cancelled(&self) -> String {
        match self.kind {
            Kind::Permission(_) => response(&self.id, Permission::new("cancelled", None)),
            Kind::Elicitation(_) => response(&self.id, Elicited::just("cancel")),
        }
    }
}

#[derive(Serialize)]
struct Permission<'a> {
    outcome: Outcome<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Outcome<'a> {
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    option_id: Option<&'a str>,
}

impl<'a> Permission<'a> {
    fn new(outcome: &'static str, option_id: Option<&'a str>) -> Self {
        Self { outcome: Outcome { outcome, option_id } }
    }
}

#[derive(Serialize)]
struct Elicited {
    action: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<Map<String, Value>>,
}

impl Elicited {
    fn just(action: &'static str) -> Self {
        Self { action, content: None }
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

fn elicited(fields: &Map<String, Value>, decision: &Decision) -> Option<Elicited> {
    match decision {
        Decision::Answer { answers } => {
            let content: Map<String, Value> =
                answers.iter().filter_map(|answer| field(fields, answer)).collect();
            Some(Elicited { action: "accept", content: Some(content) })
        }
        Decision::Deny { interrupt: true, .. } => Some(Elicited::just("cancel")),
        Decision::Deny { .. } => Some(Elicited::just("decline")),
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
pub fn initialize(id: u64, client_version: &str) -> String {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        protocol_version: u8,
        client_capabilities: Value,
        client_info: Value,
    }
    let client_capabilities = json!({
        "fs": {"readTextFile": false, "writeTextFile": false},
        "terminal": false,
        "elicitation": {"form": {}},
    });
    let client_info =
        json!({"name": "quarterdeck", "title": "Quarterdeck", "version": client_version});
    request(id, "initialize", Params { protocol_version: 1, client_capabilities, client_info })
}

pub fn new_session(id: u64, cwd: &str) -> String {
    request(id, "session/new", SessionParams { cwd: Some(cwd), ..SessionParams::default() }.bare())
}

pub fn load(id: u64, session: &str, cwd: &str) -> String {
    let params = SessionParams { cwd: Some(cwd), ..SessionParams::of(session) };
    request(id, "session/load", params.bare())
}

pub fn prompt(id: u64, session: &str, text: &str) -> String {
    let prompt = Some([Text { kind: "text", text }]);
    request(id, "session/prompt", SessionParams { prompt, ..SessionParams::of(session) })
}

pub fn set_mode(id: u64, session: &str, mode: &str) -> String {
    let params = SessionParams { mode_id: Some(mode), ..SessionParams::of(session) };
    request(id, "session/set_mode", params)
}

pub fn set_model(id: u64, session: &str, model: &str) -> String {
    let params = SessionParams { model_id: Some(model), ..SessionParams::of(session) };
    request(id, "session/set_model", params)
}

/// Sets one of the agent's own settings.
pub fn set_option(id: u64, session: &str, option: &str, value: &str) -> String {
    let (config_id, value) = (Some(option), Some(value));
    let params = SessionParams { config_id, value, ..SessionParams::of(session) };
    request(id, "session/set_config_option", params)
}

/// Ends the turn: `cancelled` for everything that is open, then the cancel itself. An agent that
/// waits for an answer may never come to read the cancel.
pub fn cancel(session: &str, open: &[Asked]) -> Vec<String> {
    let (method, params) = (Some("session/cancel"), Some(SessionParams::of(session)));
    let cancel = line(&Line { method, params, ..Line::<_, ()>::new(None) });
    open.iter().map(Asked::cancelled).chain([cancel]).collect()
}

/// The answer to a request that we have no answer to: the agent must not wait for one.
pub fn cannot(id: &Value, why: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": why}}).to_string()
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct SessionParams<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mcp_servers: Option<[(); 0]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prompt: Option<[Text<'a>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    config_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a str>,
}

impl<'a> SessionParams<'a> {
    fn of(session: &'a str) -> Self {
        Self { session_id: Some(session), ..Self::default() }
    }

    /// Without servers of ours; the agent has its own.
    fn bare(self) -> Self {
        Self { mcp_servers: Some([]), ..self }
    }
}

#[derive(Serialize)]
struct Text<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'a str,
}

/// One JSON-RPC message, its fields in the order in which agents write them too.
#[derive(Serialize)]
struct Line<'a, P, R> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    method: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<P>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<R>,
}

impl<'a, P, R> Line<'a, P, R> {
    fn new(id: Option<&'a Value>) -> Self {
        Self { jsonrpc: "2.0", id, method: None, params: None, result: None }
    }
}

fn request(id: u64, method: &'static str, params: impl Serialize) -> String {
    let (method, params) = (Some(method), Some(params));
    line(&Line { method, params, ..Line::<_, ()>::new(Some(&Value::from(id))) })
}

fn response(id: &Value, result: impl Serialize) -> String {
    line(&Line { result: Some(result), ..Line::<(), _>::new(Some(id)) })
}

fn line(message: &impl Serialize) -> String {
    // Texts, numbers and maps with text keys: nothing in a message can fail to be written.
    serde_json::to_string(message).expect("a message is plain data")
}

#[cfg(test)]
mod tests {
    use super::*;

    const GEMINI: &str = r#"{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"s","options":[{"optionId":"proceed_always","name":"Allow for this session","kind":"allow_always"},{"optionId":"proceed_once","name":"Allow","kind":"allow_once"},{"optionId":"cancel","name":"Reject","kind":"reject_once"}],"toolCall":{"toolCallId":"t"}}}"#;
    const PLAN: &str = r#"{"jsonrpc":"2.0","id":"u-1","method":"session/request_permission","params":{"sessionId":"s","options":[{"optionId":"exit-plan-default","name":"Yes, manually approve edits","kind":"allow_once"},{"optionId":"exit-plan-auto","name":"Yes, and use auto mode","kind":"allow_always"},{"optionId":"reject","name":"No, keep planning","kind":"reject_once"}],"toolCall":{"toolCallId":"t","kind":"switch_mode"}}}"#;
    const FORM: &str = r#"{"jsonrpc":"2.0","id":4,"method":"elicitation/create","params":{"sessionId":"s","mode":"form","message":"Which greeting?","requestedSchema":{"type":"object","properties":{"greeting":{"type":"string","title":"Greeting"},"loud":{"type":"boolean"}}}}}"#;

    fn check(message: &str, decision: Decision, expected: &str) {
        let asked = Asked::read(message.as_bytes()).expect("it asks something");
        assert_eq!(asked.answer(&decision).as_deref().unwrap_or("nothing"), expected);
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
            r#"{"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"selected","optionId":"proceed_once"}}}"#,
        );
        check(
            GEMINI,
            allow(Scope::Session),
            r#"{"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"selected","optionId":"proceed_always"}}}"#,
        );
        check(
            GEMINI,
            deny(false),
            r#"{"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"selected","optionId":"cancel"}}}"#,
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
            r#"{"jsonrpc":"2.0","id":"u-1","result":{"outcome":{"outcome":"selected","optionId":"exit-plan-default"}}}"#,
        );
        check(
            PLAN,
            Decision::ApprovePlan { mode: Some("exit-plan-auto".into()) },
            r#"{"jsonrpc":"2.0","id":"u-1","result":{"outcome":{"outcome":"selected","optionId":"exit-plan-auto"}}}"#,
        );
        check(
            PLAN,
            Decision::RejectPlan { feedback: Some("smaller".into()) },
            r#"{"jsonrpc":"2.0","id":"u-1","result":{"outcome":{"outcome":"selected","optionId":"reject"}}}"#,
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
            r#"{"jsonrpc":"2.0","id":4,"result":{"action":"accept","content":{"greeting":"Hello","loud":true}}}"#,
        );
        check(FORM, deny(false), r#"{"jsonrpc":"2.0","id":4,"result":{"action":"decline"}}"#);
        check(FORM, allow(Scope::Once), "nothing");
    }

    #[test]
    fn a_cancel_first_answers_everything_that_is_open() {
        let open: Vec<Asked> =
            [GEMINI, FORM].iter().filter_map(|text| Asked::read(text.as_bytes())).collect();
        assert_eq!(
            cancel("s", &open),
            [
                r#"{"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"cancelled"}}}"#,
                r#"{"jsonrpc":"2.0","id":4,"result":{"action":"cancel"}}"#,
                r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}"#,
            ]
        );
    }

    #[test]
    fn the_clients_own_requests_are_as_the_agents_know_them() {
        assert_eq!(
            initialize(1, "0.1.0"),
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"elicitation":{"form":{}},"fs":{"readTextFile":false,"writeTextFile":false},"terminal":false},"clientInfo":{"name":"quarterdeck","title":"Quarterdeck","version":"0.1.0"}}}"#
        );
        assert_eq!(
            prompt(3, "s", "add a greeting"),
            r#"{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"add a greeting"}]}}"#
        );
        assert_eq!(
            set_mode(5, "s", "yolo"),
            r#"{"jsonrpc":"2.0","id":5,"method":"session/set_mode","params":{"sessionId":"s","modeId":"yolo"}}"#
        );
        assert_eq!(
            load(2, "s", "/w"),
            r#"{"jsonrpc":"2.0","id":2,"method":"session/load","params":{"sessionId":"s","cwd":"/w","mcpServers":[]}}"#
        );
        assert_eq!(
            new_session(2, "/w"),
            r#"{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}"#
        );
    }

    #[test]
    fn a_message_that_asks_nothing_gets_no_answer() {
        assert_eq!(Asked::read(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"), None);
        assert_eq!(Asked::read(b"half a li"), None);
    }
}
