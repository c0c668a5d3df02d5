//! What local servers of agents were attacked by, one test each.

use qd_server::{HEADER, ROUTES, Scope};
use serde_json::json;

use crate::{Daemon, path};

/// An API on the loopback that answers anybody, with `Access-Control-Allow-Origin: *`.
#[test]
fn no_answer_allows_another_origin_to_read_it() {
    let daemon = Daemon::start("cors");
    for route in ROUTES.iter().filter(|route| !route.path.ends_with("stream")) {
        let origin = daemon.request(route.method, &path(route)).token(Scope::Admin);
        let head = origin.with("origin", "http://evil.example").body("{}").head();
        assert!(!head.contains("access-control-allow"), "{route:?}: {head}");
    }
    let preflight = daemon.request("OPTIONS", "/api/live/sessions");
    let preflight = preflight
        .with("origin", "http://evil.example")
        .with("access-control-request-method", "POST")
        .with("access-control-request-headers", HEADER)
        .head();
    assert!(!preflight.contains("access-control-allow"), "{preflight}");
    assert!(!preflight.starts_with("http/1.1 2"), "{preflight}");
}

/// A name of the attacker's that suddenly resolves to 127.0.0.1: the browser takes it for the same
/// site, and the `Host` tells.
#[test]
fn dns_rebinding_is_told_by_the_host() {
    let daemon = Daemon::start("rebinding");
    let cookie = daemon.cookie("admin");
    let host = format!("rebound.evil.example:{}", daemon.port);
    for route in ROUTES {
        let rebound = daemon.request(route.method, &path(route)).token(Scope::Admin);
        let rebound = rebound.with("cookie", &cookie).with("sec-fetch-site", "same-origin");
        let rebound = rebound.with("host", &host).with("origin", &format!("http://{host}"));
        assert_eq!(rebound.page(&json!({})).refused(), (403, "foreign_host".into()), "{route:?}");
    }
}

/// A stream that another site opens: no preflight stands before it.
#[test]
fn a_stream_opened_from_another_site_is_refused_although_the_cookie_comes_along() {
    let daemon = Daemon::start("cross-site");
    let cookie = daemon.cookie("admin");
    for path in ["/api/live/stream", "/api/live/signals"] {
        let stream = || daemon.request("GET", path).with("cookie", &cookie);
        let origin = stream().with("origin", "https://evil.example");
        assert_eq!(origin.refused(), (403, "foreign_origin".into()));
        let site = stream().with("sec-fetch-site", "cross-site");
        assert_eq!(site.refused(), (403, "foreign_origin".into()));
        let upgrade = stream().with("connection", "close, upgrade").with("upgrade", "websocket");
        let upgrade = upgrade.with("origin", "null").refused();
        assert_eq!(upgrade, (403, "foreign_origin".into()));
    }
}

/// What a form can send needs no preflight either.
#[test]
fn a_form_writes_nothing() {
    let daemon = Daemon::start("form");
    let cookie = daemon.cookie("admin");
    for kind in ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"] {
        let form = daemon.request("POST", "/api/sessions/s-1/dismiss").with("cookie", &cookie);
        let form = form.with("content-type", kind).body("{}");
        assert_eq!(form.refused(), (415, "not_json".into()));
    }
    let simple = daemon.request("POST", "/api/sessions/s-1/dismiss").with("cookie", &cookie);
    let simple = simple.with("content-type", "application/json").body("{}");
    assert_eq!(simple.refused(), (403, "no_header".into()));
}

/// Every agent's hook knows the token to report with.
#[test]
fn the_token_of_a_hook_opens_nothing_but_reports() {
    let daemon = Daemon::start("hook-token");
    for route in ROUTES {
        let reporter = daemon.request(route.method, &path(route)).token(Scope::Ingest);
        let (status, code) = reporter.page(&json!({})).refused();
        let reports = path(route).starts_with("/v1/") || route.path == "/api/live/hook";
        let open = ["/healthz", "/api/sign-in"].contains(&route.path);
        match reports || open {
            true => assert_ne!(code, "weak_scope", "{route:?}"),
            false => assert_eq!((status, code.as_str()), (403, "weak_scope"), "{route:?}"),
        }
    }
}

/// Words of an agent that would be a script, were they ever taken for a page.
#[test]
fn what_an_agent_wrote_is_data_and_may_run_nothing() {
    let daemon = Daemon::start("script");
    let script = "<script>alert(1)</script>";
    let payload = json!({"session_id": script, "hook_event_name": "UserPromptSubmit",
        "prompt": script, "cwd": script});
    let hook = daemon.request("POST", "/api/live/hook").token(Scope::Ingest);
    hook.body(payload.to_string()).json();
    for path in ["/api/live/sessions", "/api/live/sessions/%3Cscript%3Ealert(1)%3C%2Fscript%3E"] {
        let head = daemon.request("GET", path).token(Scope::Observe).head();
        assert!(head.contains("content-type: application/json"), "{head}");
        assert!(head.contains("x-content-type-options: nosniff"), "{head}");
        assert!(head.contains("content-security-policy: default-src 'none'"), "{head}");
        assert!(!head.contains("unsafe-inline") && !head.contains("unsafe-eval"), "{head}");
        assert!(head.contains("frame-ancestors 'none'"), "{head}");
    }
}

/// A path instead of a name.
#[test]
fn a_name_is_never_a_path() {
    let daemon = Daemon::start("traversal");
    for name in ["..%2f..%2fetc%2fpasswd", "%2fetc%2fpasswd", "..", "%00", "%ff", "....//etc"] {
        let one = daemon.request("GET", &format!("/api/live/sessions/{name}"));
        let (status, body) = one.token(Scope::Admin).send();
        assert!((400..500).contains(&status), "{name}: {status}");
        assert!(!body.contains("root:"), "{body}");
    }
}
