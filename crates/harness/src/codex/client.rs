//! What we send to an app-server: requests of a client, one line each.
//!
//! JSON-RPC without its version. Every number is the caller's; the server repeats it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The words that accept a plan, as Codex's own terminal sends them.
const IMPLEMENT_PLAN: &str = "Implement the plan.";

/// A client's side of a connection.
pub fn initialize(id: u64, name: &str, title: &str, version: &str) -> String {
    let client_info = ClientInfo { name, title, version };
    let capabilities = Capabilities { experimental_api: true, required_human_approval: true };
    request(id, "initialize", InitializeParams { client_info, capabilities })
}

pub fn initialized() -> String {
    written(&Notification { method: "initialized" })
}

/// Subscribes to a thread. Its open requests are sent again, to us too.
pub fn resume_thread(id: u64, thread: &str) -> String {
    request(id, "thread/resume", ResumeParams { thread_id: thread, exclude_turns: true })
}

/// A thread of our own. What is not said is as Codex's configuration says.
pub fn start_thread(id: u64, cwd: &str, model: Option<&str>) -> String {
    request(id, "thread/start", StartParams { cwd, model })
}

pub fn start_turn(id: u64, thread: &str, text: &str) -> String {
    start_turn_so(id, thread, text, TurnSettings::default())
}

/// How a turn, and those after it, ask and confine; what is not said stays as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TurnSettings<'a> {
    pub approval_policy: Option<&'static str>,
    pub sandbox: Option<&'static str>,
    /// `plan` or `default`, and the model: Codex wants both or neither.
    pub collaboration: Option<(&'static str, &'a str)>,
}

pub fn start_turn_so(id: u64, thread: &str, text: &str, settings: TurnSettings<'_>) -> String {
    let settings_of =
        |model| ModeSettings { model, reasoning_effort: None, developer_instructions: None };
    let collaboration = settings.collaboration;
    let params = TurnParams {
        thread_id: thread,
        input: [Input { r#type: "text", text }],
        approval_policy: settings.approval_policy,
        sandbox_policy: settings.sandbox.map(|r#type| SandboxPolicy { r#type }),
        collaboration_mode: collaboration
            .map(|(mode, model)| Mode { mode, settings: settings_of(model) }),
    };
    request(id, "turn/start", params)
}

/// The answer to a request that we have no answer to: the server must not wait for one.
pub fn cannot(rpc: &Value, why: &str) -> String {
    json!({ "id": rpc, "error": { "code": -32601, "message": why } }).to_string()
}

/// Adds to the turn that runs.
pub fn steer_turn(id: u64, thread: &str, turn: &str, text: &str) -> String {
    let input = [Input { r#type: "text", text }];
    request(id, "turn/steer", SteerParams { thread_id: thread, expected_turn_id: turn, input })
}

pub fn interrupt_turn(id: u64, thread: &str, turn: &str) -> String {
    request(id, "turn/interrupt", InterruptParams { thread_id: thread, turn_id: turn })
}

/// Accepts a plan: the next turn leaves plan mode and does it.
pub fn implement_plan(id: u64, thread: &str, model: &str) -> String {
    let collaboration = Some(("default", model));
    let settings = TurnSettings { collaboration, ..TurnSettings::default() };
    start_turn_so(id, thread, IMPLEMENT_PLAN, settings)
}

/// From the next turn on nobody is asked and nothing is confined. What waits already, waits on.
pub fn allow_everything(id: u64, thread: &str) -> String {
    let sandbox_policy = SandboxPolicy { r#type: "dangerFullAccess" };
    let params = SettingsParams { thread_id: thread, approval_policy: "never", sandbox_policy };
    request(id, "thread/settings/update", params)
}

/// Whether nobody is asked and nothing is confined, of what [`resume_thread`] was answered.
pub fn is_everything_allowed(resumed: &Value) -> bool {
    resumed["approvalPolicy"] == "never" && resumed["sandbox"]["type"] == "dangerFullAccess"
}

/// How a thread asks and confines, of what [`resume_thread`] was answered: for
/// [`restore_settings`].
pub fn settings_of(resumed: &Value) -> String {
    let profile = resumed["activePermissionProfile"]["id"].as_str();
    let settings = SettingsBefore {
        approval_policy: resumed.get("approvalPolicy").cloned(),
        // Codex takes a profile or a policy, not both.
        permissions: profile.map(str::to_owned),
        sandbox_policy: resumed.get("sandbox").filter(|_| profile.is_none()).cloned(),
    };
    written(&settings)
}

/// From the next turn on it asks again, as [`settings_of`] said; what cannot be read means as
/// Codex does by default.
pub fn restore_settings(id: u64, thread: &str, before: Option<&str>) -> String {
    let known = before.and_then(|before| serde_json::from_str::<SettingsBefore>(before).ok());
    let settings = known.filter(SettingsBefore::is_whole).unwrap_or_else(|| SettingsBefore {
        approval_policy: Some(Value::from("on-request")),
        permissions: Some(":workspace".to_owned()),
        sandbox_policy: None,
    });
    request(id, "thread/settings/update", RestoreParams { thread_id: thread, settings })
}

/// What a thread is and does, without its turns. Subscribes to nothing.
pub fn read_thread(id: u64, thread: &str) -> String {
    request(id, "thread/read", ReadParams { thread_id: thread })
}

/// The newest turn, without what was said in it. Subscribes to nothing.
pub fn last_turn(id: u64, thread: &str) -> String {
    let params = TurnsParams {
        thread_id: thread,
        limit: 1,
        sort_direction: "desc",
        items_view: "notLoaded",
    };
    request(id, "thread/turns/list", params)
}

/// Asks which hooks are configured, and which of them Codex trusts.
pub fn list_hooks(id: u64, cwds: &[&str]) -> String {
    request(id, "hooks/list", json!({ "cwds": cwds }))
}

/// Trusts hooks, by the key and the hash that [`list_hooks`] gave for each.
pub fn trust_hooks(id: u64, hashes: &BTreeMap<String, String>) -> String {
    let trusted = |(key, hash): (&String, &String)| (key.clone(), json!({ "trusted_hash": hash }));
    let edit = Edit {
        key_path: "hooks.state",
        value: hashes.iter().map(trusted).collect(),
        merge_strategy: "upsert",
    };
    request(id, "config/batchWrite", BatchWriteParams { edits: [edit], reload_user_config: true })
}

fn request(id: u64, method: &'static str, params: impl Serialize) -> String {
    written(&Request { id, method, params })
}

fn written(message: &impl Serialize) -> String {
    serde_json::to_string(message).expect("names and texts are always JSON")
}

#[derive(Serialize)]
struct Request<T> {
    id: u64,
    method: &'static str,
    params: T,
}

#[derive(Serialize)]
struct Notification {
    method: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InitializeParams<'a> {
    client_info: ClientInfo<'a>,
    capabilities: Capabilities,
}

#[derive(Serialize)]
struct ClientInfo<'a> {
    name: &'a str,
    title: &'a str,
    version: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Capabilities {
    experimental_api: bool,
    /// Without it nobody is told of commands that only a person may approve.
    required_human_approval: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResumeParams<'a> {
    thread_id: &'a str,
    exclude_turns: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StartParams<'a> {
    cwd: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TurnParams<'a> {
    thread_id: &'a str,
    input: [Input<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    approval_policy: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sandbox_policy: Option<SandboxPolicy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    collaboration_mode: Option<Mode<'a>>,
}

#[derive(Serialize)]
struct Input<'a> {
    r#type: &'static str,
    text: &'a str,
}

#[derive(Serialize)]
struct Mode<'a> {
    mode: &'static str,
    settings: ModeSettings<'a>,
}

#[derive(Serialize)]
struct ModeSettings<'a> {
    model: &'a str,
    reasoning_effort: Option<&'a str>,
    developer_instructions: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SteerParams<'a> {
    thread_id: &'a str,
    expected_turn_id: &'a str,
    input: [Input<'a>; 1],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InterruptParams<'a> {
    thread_id: &'a str,
    turn_id: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SettingsParams<'a> {
    thread_id: &'a str,
    approval_policy: &'static str,
    sandbox_policy: SandboxPolicy,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReadParams<'a> {
    thread_id: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TurnsParams<'a> {
    thread_id: &'a str,
    limit: u8,
    sort_direction: &'static str,
    items_view: &'static str,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SettingsBefore {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    approval_policy: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    permissions: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sandbox_policy: Option<Value>,
}

impl SettingsBefore {
    /// Whether it says both when to ask and how to confine.
    fn is_whole(&self) -> bool {
        self.approval_policy.is_some()
            && (self.permissions.is_some() || self.sandbox_policy.is_some())
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RestoreParams<'a> {
    thread_id: &'a str,
    #[serde(flatten)]
    settings: SettingsBefore,
}

#[derive(Serialize)]
struct SandboxPolicy {
    r#type: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BatchWriteParams {
    edits: [Edit; 1],
    reload_user_config: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Edit {
    key_path: &'static str,
    value: BTreeMap<String, Value>,
    merge_strategy: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_opens_with_two_lines() {
        assert_eq!(
            initialize(1, "deck", "Deck", "0.1.0"),
            r#"{"id":1,"method":"initialize","params":{"clientInfo":{"name":"deck","title":"Deck","version":"0.1.0"},"capabilities":{"experimentalApi":true,"requiredHumanApproval":true}}}"#
        );
        assert_eq!(initialized(), r#"{"method":"initialized"}"#);
        assert_eq!(
            resume_thread(9, "T"),
            r#"{"id":9,"method":"thread/resume","params":{"threadId":"T","excludeTurns":true}}"#
        );
    }

    #[test]
    fn turns_are_started_steered_and_interrupted() {
        assert_eq!(
            start_turn(3, "T", "go"),
            r#"{"id":3,"method":"turn/start","params":{"threadId":"T","input":[{"type":"text","text":"go"}]}}"#
        );
        assert_eq!(
            steer_turn(4, "T", "U", "also"),
            r#"{"id":4,"method":"turn/steer","params":{"threadId":"T","expectedTurnId":"U","input":[{"type":"text","text":"also"}]}}"#
        );
        assert_eq!(
            interrupt_turn(5, "T", "U"),
            r#"{"id":5,"method":"turn/interrupt","params":{"threadId":"T","turnId":"U"}}"#
        );
    }

    #[test]
    fn a_plan_is_accepted_by_a_turn_outside_plan_mode() {
        assert_eq!(
            implement_plan(6, "T", "gpt-5.5"),
            r#"{"id":6,"method":"turn/start","params":{"threadId":"T","input":[{"type":"text","text":"Implement the plan."}],"collaborationMode":{"mode":"default","settings":{"model":"gpt-5.5","reasoning_effort":null,"developer_instructions":null}}}}"#
        );
    }

    #[test]
    fn what_held_before_yolo_is_restored() {
        let resumed = json!({
            "approvalPolicy": "on-request",
            "sandbox": {"type": "readOnly", "networkAccess": false},
            "activePermissionProfile": null,
        });
        let before = settings_of(&resumed);
        assert_eq!(
            restore_settings(3, "T", Some(&before)),
            r#"{"id":3,"method":"thread/settings/update","params":{"threadId":"T","approvalPolicy":"on-request","sandboxPolicy":{"networkAccess":false,"type":"readOnly"}}}"#
        );
        let resumed = json!({
            "approvalPolicy": "never",
            "sandbox": {"type": "dangerFullAccess"},
            "activePermissionProfile": {"id": ":read-only", "extends": null},
        });
        let before = settings_of(&resumed);
        assert_eq!(
            restore_settings(4, "T", Some(&before)),
            r#"{"id":4,"method":"thread/settings/update","params":{"threadId":"T","approvalPolicy":"never","permissions":":read-only"}}"#
        );
        let default = r#"{"id":5,"method":"thread/settings/update","params":{"threadId":"T","approvalPolicy":"on-request","permissions":":workspace"}}"#;
        for unknown in [None, Some("{}"), Some("nonsense"), Some(r#"{"permissions":":danger"}"#)] {
            assert_eq!(restore_settings(5, "T", unknown), default);
        }
    }

    #[test]
    fn everything_is_allowed_where_nobody_is_asked_and_nothing_confined() {
        let is_so = |policy: &str, sandbox: &str| {
            is_everything_allowed(&json!({"approvalPolicy": policy, "sandbox": {"type": sandbox}}))
        };
        assert!(is_so("never", "dangerFullAccess"));
        assert!(!is_so("on-request", "dangerFullAccess"));
        assert!(!is_so("never", "workspaceWrite"));
        assert!(!is_everything_allowed(&Value::Null));
    }

    #[test]
    fn looking_reads_one_thread_and_its_last_turn() {
        assert_eq!(
            read_thread(1, "T"),
            r#"{"id":1,"method":"thread/read","params":{"threadId":"T"}}"#
        );
        assert_eq!(
            last_turn(2, "T"),
            r#"{"id":2,"method":"thread/turns/list","params":{"threadId":"T","limit":1,"sortDirection":"desc","itemsView":"notLoaded"}}"#
        );
    }

    #[test]
    fn yolo_and_trust_are_written_as_codex_reads_them() {
        assert_eq!(
            allow_everything(7, "T"),
            r#"{"id":7,"method":"thread/settings/update","params":{"threadId":"T","approvalPolicy":"never","sandboxPolicy":{"type":"dangerFullAccess"}}}"#
        );
        assert_eq!(
            list_hooks(8, &["/w"]),
            r#"{"id":8,"method":"hooks/list","params":{"cwds":["/w"]}}"#
        );
        let hashes = BTreeMap::from([("/h.json:stop:0:0".to_owned(), "sha256:09b5".to_owned())]);
        assert_eq!(
            trust_hooks(9, &hashes),
            r#"{"id":9,"method":"config/batchWrite","params":{"edits":[{"keyPath":"hooks.state","value":{"/h.json:stop:0:0":{"trusted_hash":"sha256:09b5"}},"mergeStrategy":"upsert"}],"reloadUserConfig":true}}"#
        );
    }
}
