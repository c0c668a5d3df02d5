//! `GET /api/openapi.json`: every route and every shape, for whoever writes a client.
//!
//! The shapes are those of the Rust types; the page's own are made from this document
//! (`tests/wire.rs`), and a test holds real answers against it.

use std::sync::LazyLock;

use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use utoipa::OpenApi;

use crate::browsers::BrowserView;
use crate::routes::{Need, ROUTES};
use crate::wire::{
    About, Answered, ArchiveWanted, Archived, ChatAnswer, ChatConfig, ChatConfigWanted, ChatPrompt,
    ChatTools, Conflict, DecisionWanted, HarnessList, HarnessOffered, Hello, HistoryPage, Link,
    LinkWanted, PolicyWanted, PresenceTold, Problem, PromptWanted, PushKeyView, Removed,
    RequestList, SessionBegun, SessionDetail, SessionList, SessionWanted, SignIn, SignedIn,
    TestSent, TestWanted, ToolApprovalRequired, ToolDecision, UnarchiveWanted, UsageReport,
    YoloWanted,
};

#[derive(OpenApi)]
#[openapi(components(schemas(
    About,
    Answered,
    ArchiveWanted,
    Archived,
    BrowserView,
    Conflict,
    DecisionWanted,
    Hello,
    HistoryPage,
    Link,
    LinkWanted,
    PolicyWanted,
    PresenceTold,
    Problem,
    PromptWanted,
    PushKeyView,
    Removed,
    RequestList,
    ChatAnswer,
    ChatConfig,
    ChatConfigWanted,
    ChatPrompt,
    ChatTools,
    HarnessList,
    HarnessOffered,
    ToolApprovalRequired,
    ToolDecision,
    SessionBegun,
    SessionDetail,
    SessionList,
    SessionWanted,
    SignIn,
    SignedIn,
    TestSent,
    TestWanted,
    UnarchiveWanted,
    UsageReport,
    YoloWanted,
    qd_notices::DeviceView,
    qd_notices::Subscription,
    qd_sources::transcript::Page,
)))]
struct Shapes;

/// What a route takes and answers.
struct Described {
    method: &'static str,
    path: &'static str,
    says: &'static str,
    query: &'static [&'static str],
    takes: Option<&'static str>,
    answers: Answers,
}

enum Answers {
    Json(&'static str),
    List(&'static str),
    Object,
    Nothing,
    Text(&'static str),
}

use Answers::{Json, List, Nothing, Object, Text};

const fn get(path: &'static str, says: &'static str, answers: Answers) -> Described {
    Described { method: "GET", path, says, query: &[], takes: None, answers }
}

const fn post(path: &'static str, says: &'static str, answers: Answers) -> Described {
    Described { method: "POST", path, says, query: &[], takes: None, answers }
}

const DESCRIBED: &[Described] = &[
    get("/healthz", "Says that the daemon is here.", Object),
    get("/api/openapi.json", "This document.", Object),
    Described {
        takes: Some("SignIn"),
        ..post("/api/sign-in", "Trades a link's code for a browser's key.", Json("SignedIn"))
    },
    Described {
        query: &["browser", "host", "nonce"],
        ..get("/api/hello", "Proves to a browser that this is its daemon.", Json("Hello"))
    },
    post("/api/sign-out", "Forgets this browser.", Nothing),
    Described {
        takes: Some("LinkWanted"),
        ..post("/api/links", "A link that signs one browser in, once.", Json("Link"))
    },
    get("/api/browsers", "The browsers that are signed in.", List("BrowserView")),
    post("/api/browsers/{id}/forget", "Signs a browser out.", Object),
    Described {
        query: &["harness"],
        ..post("/api/live/hook", "Takes any agent's hook payload.", Object)
    },
    post("/v1/logs", "Takes OTLP logs, as protobuf or JSON.", Object),
    post("/v1/metrics", "Takes OTLP metrics, as protobuf or JSON.", Object),
    post("/v1/traces", "Takes OTLP traces, as protobuf or JSON.", Object),
    get("/api/health", "Who the daemon is, and how it is.", Json("About")),
    get("/metrics", "Counters, for Prometheus.", Text("text/plain")),
    Described {
        query: &["by", "since", "until"],
        ..get("/api/usage", "What sessions cost.", Json("UsageReport"))
    },
    Described {
        query: &["q", "harness", "project", "before", "limit"],
        ..get("/api/history", "Sessions of the past.", Json("HistoryPage"))
    },
    get("/api/live/sessions", "The board.", Json("SessionList")),
    Described {
        query: &["messages"],
        ..get("/api/live/sessions/{id}", "One session, and why.", Json("SessionDetail"))
    },
    Described {
        query: &["before", "after", "limit"],
        ..get("/api/live/sessions/{id}/transcript", "What was said in it.", Json("Page"))
    },
    get("/api/live/summary", "How many are in each group.", Json("Summary")),
    Described {
        query: &["tab"],
        ..get(
            "/api/live/stream",
            "The board as it changes: `snapshot` (SessionList), `session_changed` (Card), \
             `session_removed` (Removed), `summary` (Summary), `goodbye`; of driven sessions \
             `agent:state_event` and `agent:stream_event`.",
            Text("text/event-stream"),
        )
    },
    get("/api/live/signals", "Raw signals, for a recorder.", Text("text/event-stream")),
    get("/api/requests", "What agents wait for, the most urgent first.", Json("RequestList")),
    Described {
        takes: Some("DecisionWanted"),
        ..post(
            "/api/requests/{key}/decision",
            "Answers a request. 409 with the first answer where somebody was first; 503 where it \
             did not arrive, and the request stays open.",
            Json("Answered"),
        )
    },
    Described {
        takes: Some("PromptWanted"),
        ..post("/api/sessions/{id}/input", "Gives the session its next prompt.", Json("Answered"))
    },
    post("/api/sessions/{id}/interrupt", "Ends the turn.", Json("Answered")),
    post("/api/sessions/{id}/stop", "Asks its process to end.", Json("Answered")),
    post("/api/sessions/{id}/focus", "Brings its terminal to the front.", Json("Answered")),
    Described {
        takes: Some("YoloWanted"),
        ..post("/api/sessions/{id}/yolo", "Lets it ask nobody, or ask again.", Json("Answered"))
    },
    Described {
        takes: Some("PolicyWanted"),
        ..post("/api/sessions/{id}/policy", "Says what it may do without asking.", Json("Answered"))
    },
    Described {
        takes: Some("SessionWanted"),
        ..post("/api/sessions", "Begins a session of our own.", Json("SessionBegun"))
    },
    Described {
        takes: Some("ChatPrompt"),
        ..post("/api/chat/prompt", "Asks a model, with our tools.", Text("application/x-ndjson"))
    },
    Described {
        takes: Some("ChatTools"),
        ..post("/api/chat/tool", "Decides about calls and goes on.", Text("application/x-ndjson"))
    },
    Described {
        query: &["folderPath", "sessionId"],
        ..get("/api/chat/config", "How a chat is set.", Json("ChatConfig"))
    },
    Described {
        method: "PATCH",
        takes: Some("ChatConfigWanted"),
        ..post("/api/chat/config", "Switches YOLO.", Json("ChatConfig"))
    },
    get("/api/harnesses", "What sessions can be begun with.", Json("HarnessList")),
    post("/api/sessions/{id}/pause", "Holds it at its next boundary.", Json("Answered")),
    post("/api/sessions/{id}/resume", "Lets it go on, or starts it again.", Json("Answered")),
    post("/api/sessions/{id}/retry", "Tries again what failed last.", Json("Answered")),
    post("/api/sessions/{id}/tools/{run}/retry", "Runs failed tools again.", Json("Answered")),
    post("/api/sessions/{id}/hooks/{run}/retry", "Runs a failed hook again.", Json("Answered")),
    post("/api/sessions/{id}/dismiss", "Takes it out of Needs You until its next event.", Object),
    Described {
        takes: Some("ArchiveWanted"),
        ..post(
            "/api/sessions/archive",
            "Puts sessions into History until their next event: those named, or all that were \
             silent for so long. One of which anything is known to live stays.",
            Json("Archived"),
        )
    },
    Described {
        takes: Some("UnarchiveWanted"),
        ..post("/api/sessions/unarchive", "Takes sessions back out of History.", Json("Archived"))
    },
    Described {
        takes: Some("PresenceTold"),
        ..post(
            "/api/presence",
            "Says whether the operator has the page before them. Meanwhile nobody is told \
             elsewhere; it is to be said again every half minute.",
            Object,
        )
    },
    get("/api/push/key", "The key with which a browser subscribes.", Json("PushKeyView")),
    get("/api/push/subscriptions", "The devices that are told.", List("DeviceView")),
    Described {
        takes: Some("Subscription"),
        ..post("/api/push/subscriptions", "Tells this browser, too.", Json("DeviceView"))
    },
    Described {
        method: "DELETE",
        ..post("/api/push/subscriptions/{id}", "Tells a device no more.", Object)
    },
    Described {
        takes: Some("TestWanted"),
        ..post("/api/push/test", "Sends a notice to try the way.", Json("TestSent"))
    },
];

/// The document.
pub fn document() -> &'static Value {
    static DOCUMENT: LazyLock<Value> = LazyLock::new(made);
    &DOCUMENT
}

pub async fn openapi() -> Response {
    static TEXT: LazyLock<Bytes> = LazyLock::new(|| document().to_string().into());
    ([(CONTENT_TYPE, "application/json")], TEXT.clone()).into_response()
}

fn made() -> Value {
    let mut document = serde_json::to_value(Shapes::openapi()).expect("a document is JSON");
    let mut paths = Map::new();
    for described in DESCRIBED {
        let path = paths.entry(described.path).or_insert_with(|| json!({}));
        path[described.method.to_ascii_lowercase()] = described.spelled();
    }
    document["info"] = json!({
        "title": "Quarterdeck",
        "version": env!("CARGO_PKG_VERSION"),
        "license": { "name": "MIT OR Apache-2.0" },
    });
    document["paths"] = Value::Object(paths);
    document["components"]["securitySchemes"] = json!({
        "token": { "type": "http", "scheme": "bearer" },
        "browser": { "type": "apiKey", "in": "header", "name": crate::browser_key::BROWSER_HEADER },
    });
    document
}

impl Described {
    fn spelled(&self) -> Value {
        let parameter = |name: &str, place: &str| {
            let schema = json!({ "type": "string" });
            json!({ "name": name, "in": place, "required": place == "path", "schema": schema })
        };
        let named = self.path.split('/').filter_map(|part| part.strip_prefix('{'));
        let named = named.map(|part| parameter(part.trim_end_matches('}'), "path"));
        let asked = self.query.iter().map(|name| parameter(name, "query"));
        let route =
            ROUTES.iter().find(|route| (route.method, route.path) == (self.method, self.path));
        let scope = match route.map(|route| route.need) {
            Some(Need::Scope(scope)) => Some(scope.name()),
            Some(Need::Nothing | Need::Page | Need::Code) | None => None,
        };
        let mut spelled = json!({
            "summary": self.says,
            "parameters": named.chain(asked).collect::<Vec<_>>(),
            "responses": {
                "default": {
                    "description": "Why it was not done.",
                    "content": json_of(&reference("Problem")),
                },
            },
            "security": match scope {
                Some(_) => json!([{ "token": [] }, { "browser": [] }]),
                None => json!([]),
            },
        });
        if let Some(scope) = scope {
            spelled["x-scope"] = json!(scope);
        }
        if let Some(shape) = self.takes {
            spelled["requestBody"] =
                json!({ "required": true, "content": json_of(&reference(shape)) });
        }
        let (status, answer) = match self.answers {
            Json(shape) => ("200", json_of(&reference(shape))),
            List(shape) => ("200", json_of(&json!({ "type": "array", "items": reference(shape) }))),
            Object => ("200", json_of(&json!({ "type": "object" }))),
            Nothing => ("204", json!({})),
            Text(kind) => ("200", json!({ kind: { "schema": { "type": "string" } } })),
        };
        spelled["responses"][status] = json!({ "description": "Done.", "content": answer });
        spelled
    }
}

fn reference(shape: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{shape}") })
}

fn json_of(schema: &Value) -> Value {
    json!({ "application/json": { "schema": schema } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_is_described_and_nothing_else() {
        let mut routes: Vec<_> = ROUTES.iter().map(|route| (route.method, route.path)).collect();
        let mut described: Vec<_> = DESCRIBED.iter().map(|one| (one.method, one.path)).collect();
        routes.sort_unstable();
        described.sort_unstable();
        assert_eq!(described, routes);
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let text = document().to_string();
        for named in text.split("#/components/schemas/").skip(1) {
            let name = named.split('"').next().expect("a name");
            assert!(document()["components"]["schemas"].get(name).is_some(), "{name}");
        }
    }
}
