//! Every route and what it asks for. The guard reads this table, and so do the tests: a route
//! that is not in it answers nobody.

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::Method;
use axum::middleware::from_fn_with_state;
use axum::routing::{delete, get, post};
use tower_http::decompression::RequestDecompressionLayer;

use crate::auth::Scope;
use crate::error::Refusal;
use crate::guard::{Via, guard};
use crate::limits::{BODY_BYTES_MAX, OTLP_BYTES_MAX, SIGN_IN_BYTES_MAX};
use crate::server::Server;
use crate::{
    acting, chat, driving, history, ingest, live, metrics, openapi, page, presence, push,
    session_page, sign_in, signals, stream, usage,
};

/// A route and who may call it.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    pub method: &'static str,
    pub path: &'static str,
    pub need: Need,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    Nothing,
    /// Nothing, and any site may lead there.
    Page,
    /// Nothing but the code that it carries; otherwise it is a write like others.
    Code,
    Scope(Scope),
}

const fn route(method: &'static str, path: &'static str, scope: Scope) -> Route {
    Route { method, path, need: Need::Scope(scope) }
}

pub const ROUTES: &[Route] = &[
    Route { method: "GET", path: "/healthz", need: Need::Nothing },
    Route { method: "GET", path: "/api/hello", need: Need::Nothing },
    Route { method: "POST", path: "/api/sign-in", need: Need::Code },
    route("POST", "/api/sign-out", Scope::Observe),
    route("POST", "/api/links", Scope::Admin),
    route("GET", "/api/browsers", Scope::Admin),
    route("POST", "/api/browsers/{id}/forget", Scope::Admin),
    route("POST", "/api/live/hook", Scope::Ingest),
    route("POST", "/v1/logs", Scope::Ingest),
    route("POST", "/v1/metrics", Scope::Ingest),
    route("POST", "/v1/traces", Scope::Ingest),
    route("GET", "/api/health", Scope::Observe),
    route("GET", "/metrics", Scope::Observe),
    route("GET", "/api/openapi.json", Scope::Observe),
    route("GET", "/api/usage", Scope::Observe),
    route("GET", "/api/history", Scope::Observe),
    route("GET", "/api/live/sessions", Scope::Observe),
    route("GET", "/api/live/sessions/{id}", Scope::Observe),
    route("GET", "/api/live/sessions/{id}/transcript", Scope::Observe),
    route("GET", "/api/live/summary", Scope::Observe),
    route("GET", "/api/live/stream", Scope::Observe),
    // Raw signals hold all an agent said and read: nobody gets them who could not read the files.
    route("GET", "/api/live/signals", Scope::Admin),
    route("GET", "/api/requests", Scope::Observe),
    route("POST", "/api/requests/{key}/decision", Scope::Operate),
    route("POST", "/api/sessions", Scope::Operate),
    route("GET", "/api/harnesses", Scope::Observe),
    route("POST", "/api/chat/prompt", Scope::Operate),
    route("POST", "/api/chat/tool", Scope::Operate),
    route("GET", "/api/chat/config", Scope::Observe),
    route("PATCH", "/api/chat/config", Scope::Operate),
    route("POST", "/api/sessions/{id}/input", Scope::Operate),
    route("POST", "/api/sessions/{id}/interrupt", Scope::Operate),
    route("POST", "/api/sessions/{id}/stop", Scope::Operate),
    route("POST", "/api/sessions/{id}/focus", Scope::Operate),
    route("POST", "/api/sessions/{id}/yolo", Scope::Operate),
    route("POST", "/api/sessions/{id}/policy", Scope::Operate),
    route("POST", "/api/sessions/{id}/dismiss", Scope::Operate),
    route("POST", "/api/sessions/archive", Scope::Operate),
    route("POST", "/api/sessions/unarchive", Scope::Operate),
    // Who may only look must not keep those who act from being told.
    route("POST", "/api/presence", Scope::Operate),
    route("GET", "/api/push/key", Scope::Operate),
    route("GET", "/api/push/subscriptions", Scope::Operate),
    route("POST", "/api/push/subscriptions", Scope::Operate),
    route("DELETE", "/api/push/subscriptions/{id}", Scope::Operate),
    route("POST", "/api/push/test", Scope::Operate),
    route("POST", "/api/sessions/{id}/pause", Scope::Operate),
    route("POST", "/api/sessions/{id}/resume", Scope::Operate),
    route("POST", "/api/sessions/{id}/retry", Scope::Operate),
    route("POST", "/api/sessions/{id}/tools/{run}/retry", Scope::Operate),
    route("POST", "/api/sessions/{id}/hooks/{run}/retry", Scope::Operate),
];

/// What a route asks for; none for one that is not there.
pub fn need(method: &Method, path: &str) -> Option<Need> {
    // HEAD is GET without its body.
    let method = if method == Method::HEAD { "GET" } else { method.as_str() };
    let mut routes = ROUTES.iter().chain(&page::ROUTES);
    let found = routes.find(|route| route.method == method && route.path == path);
    found.map(|route| route.need)
}

/// All routes, behind the guard of one door.
pub fn router(server: Server, via: Via) -> Router {
    let telemetry = Router::new()
        .route("/v1/logs", post(ingest::logs))
        .route("/v1/metrics", post(ingest::metrics))
        .route("/v1/traces", post(ingest::traces))
        .layer(DefaultBodyLimit::max(OTLP_BYTES_MAX))
        .layer(RequestDecompressionLayer::new());
    Router::new()
        .route("/healthz", get(live::healthz))
        .route("/api/hello", get(sign_in::hello))
        .route(
            "/api/sign-in",
            post(sign_in::sign_in).layer(DefaultBodyLimit::max(SIGN_IN_BYTES_MAX)),
        )
        .route("/api/sign-out", post(sign_in::sign_out))
        .route("/api/links", post(sign_in::link))
        .route("/api/browsers", get(sign_in::browsers))
        .route("/api/browsers/{id}/forget", post(sign_in::forget))
        .route("/api/health", get(live::health))
        .route("/metrics", get(metrics::metrics))
        .route("/api/openapi.json", get(openapi::openapi))
        .route("/api/usage", get(usage::usage))
        .route("/api/history", get(history::history))
        .route("/api/live/hook", post(ingest::hook))
        .route("/api/live/sessions", get(live::sessions))
        .route("/api/live/sessions/{id}", get(session_page::session))
        .route("/api/live/sessions/{id}/transcript", get(session_page::transcript))
        .route("/api/live/summary", get(live::summary))
        .route("/api/live/stream", get(stream::stream))
        .route("/api/live/signals", get(signals::signals))
        .route("/api/requests", get(acting::requests))
        .route("/api/requests/{key}/decision", post(acting::decide))
        .route("/api/sessions/{id}/input", post(acting::input))
        .route("/api/sessions/{id}/interrupt", post(acting::interrupt))
        .route("/api/sessions/{id}/stop", post(acting::stop))
        .route("/api/sessions/{id}/focus", post(acting::focus))
        .route("/api/sessions/{id}/yolo", post(acting::yolo))
        .route("/api/sessions/{id}/policy", post(acting::policy))
        .route("/api/sessions/{id}/dismiss", post(live::dismiss))
        .route("/api/sessions/archive", post(live::archive))
        .route("/api/sessions/unarchive", post(live::unarchive))
        .route("/api/presence", post(presence::presence))
        .route("/api/push/key", get(push::key))
        .route("/api/push/subscriptions", get(push::devices).post(push::subscribe))
        .route("/api/push/subscriptions/{id}", delete(push::unsubscribe))
        .route("/api/push/test", post(push::test))
        .route("/api/sessions", post(driving::begin))
        .route("/api/harnesses", get(driving::harnesses))
        .route("/api/chat/prompt", post(chat::prompt))
        .route("/api/chat/tool", post(chat::tool))
        .route("/api/chat/config", get(chat::config).patch(chat::set_config))
        .route("/api/sessions/{id}/pause", post(driving::pause))
        .route("/api/sessions/{id}/resume", post(driving::resume))
        .route("/api/sessions/{id}/retry", post(driving::retry))
        .route("/api/sessions/{id}/tools/{run}/retry", post(driving::retry_tool))
        .route("/api/sessions/{id}/hooks/{run}/retry", post(driving::retry_hook))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .merge(telemetry)
        .merge(page::router())
        .route_layer(from_fn_with_state(via, guard))
        .fallback(async || Refusal::NoSuchRoute)
        .with_state(server)
}
