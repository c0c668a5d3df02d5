//! What local servers of agents were attacked by, one test each.

use qd_server::{BROWSER_HEADER, HEADER, Need, ROUTES, Scope};
use serde_json::{Value, json};

use crate::sign_in::Browser;
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
    let host = format!("rebound.evil.example:{}", daemon.port);
    for route in ROUTES {
        let rebound = daemon.request(route.method, &path(route)).token(Scope::Admin);
        let rebound = rebound.with("sec-fetch-site", "same-origin");
        let rebound = rebound.with("host", &host).with("origin", &format!("http://{host}"));
        assert_eq!(rebound.page(&json!({})).refused(), (403, "foreign_host".into()), "{route:?}");
    }
}

/// A stream that another site opens: no preflight stands before it.
#[test]
fn a_stream_opened_from_another_site_is_refused_whatever_it_shows() {
    let daemon = Daemon::start("cross-site");
    let browser = daemon.browser("admin");
    for path in ["/api/live/stream", "/api/live/signals"] {
        let stream = || daemon.request("GET", path).browser(&browser);
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
    let browser = daemon.browser("admin");
    for kind in ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"] {
        let form = daemon.request("POST", "/api/sessions/s-1/dismiss").browser(&browser);
        let form = form.with("content-type", kind).body("{}");
        assert_eq!(form.refused(), (415, "not_json".into()));
    }
    let simple = daemon.request("POST", "/api/sessions/s-1/dismiss").browser(&browser);
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
        let open = ["/healthz", "/api/hello", "/api/sign-in"].contains(&route.path);
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

/// Cookies are sent to every port of a machine: a program that listens on another one gets them all
/// when the operator opens its page, with every other header that a browser adds.
#[test]
fn what_a_browser_sends_to_another_port_opens_nothing() {
    let daemon = Daemon::start("other-port");
    let code = daemon.code("admin");
    let given = daemon.request("POST", "/api/sign-in").page(&json!({ "code": code })).head();
    let cookies: Vec<&str> = given
        .lines()
        .filter_map(|line| line.strip_prefix("set-cookie: "))
        .filter_map(|cookie| cookie.split(';').next())
        .collect();
    // Those of an earlier version are still in some browsers.
    let old = format!("quarterdeck={}", "ab".repeat(32));
    let cookies = [&cookies[..], &[&old]].concat().join("; ");
    for route in ROUTES {
        let Need::Scope(_) = route.need else { continue };
        let replayed = daemon.request(route.method, &path(route)).with("cookie", &cookies);
        let replayed = replayed.with("origin", &format!("http://127.0.0.1:{}", daemon.port));
        let replayed = replayed.with("sec-fetch-site", "same-origin").page(&json!({}));
        assert_eq!(replayed.refused(), (401, "no_token".into()), "{route:?}");
    }
}

/// A program that takes our port while the daemon is down, and passes on what our page asks there to
/// the daemon's next port.
#[test]
fn nobody_between_the_page_and_the_daemon_gets_a_proof_of_use() {
    let daemon = Daemon::start("between");
    let browser = daemon.browser("admin");
    let own = format!("127.0.0.1:{}", daemon.port);
    let elsewhere = format!("127.0.0.1:{}", daemon.port ^ 1);
    for host in [&elsewhere, "localhost", &format!("localhost:{}", daemon.port), "evil.example"] {
        let refused = daemon.hello(&browser.id, host).refused();
        assert_eq!(refused, (403, "foreign_host".into()), "{host}");
    }
    let said = daemon.hello(&browser.id, &own).json();
    let challenge = said["challenge"].as_str().expect("a challenge");
    // What the page would send to the other host; what the daemon says; the key itself.
    let led = qd_server::browser_proof(&browser.key, &elsewhere, challenge);
    for proof in [&led, said["proof"].as_str().expect("a proof"), &browser.key, challenge, ""] {
        let shown = format!("{}.{proof}", browser.id);
        let get = daemon.request("GET", "/api/health").with(BROWSER_HEADER, &shown);
        assert_eq!(get.refused(), (401, "signed_out".into()));
        let bearer = daemon.request("GET", "/api/health");
        let bearer = bearer.with("authorization", &format!("Bearer {proof}"));
        assert_eq!(bearer.refused().0, 401);
    }
    assert_eq!(daemon.hello("00000000", &own).refused(), (401, "signed_out".into()));
    let odd = daemon.request("GET", &format!("/api/hello?browser=1&host={own}&nonce=x"));
    assert_eq!(odd.refused(), (400, "bad_query".into()));
}

/// `localhost` leads to ::1 first, where another program can listen while the daemon runs.
#[test]
fn no_browser_signs_in_at_localhost() {
    let daemon = Daemon::start("localhost");
    let host = format!("localhost:{}", daemon.port);
    let code = daemon.code("admin");
    let sign_in = daemon.request("POST", "/api/sign-in").page(&json!({ "code": code }));
    let sign_in = sign_in.with("host", &host).with("origin", &format!("http://{host}"));
    assert_eq!(sign_in.refused(), (403, "foreign_origin".into()));
    let page = daemon.request("GET", "/sign-in").with("host", &host).head();
    let led = format!("location: http://127.0.0.1:{}/sign-in", daemon.port);
    assert!(page.starts_with("http/1.1 307") && page.contains(&led), "{page}");
}

/// A browser that was lent, lost or taken over, and is forgotten: it hears nothing more.
#[test]
fn a_browser_that_is_forgotten_hears_nothing_more() {
    let daemon = Daemon::start("forgotten");
    let lost = daemon.browser("admin");
    let other = daemon.browser("operate");
    let streams = ["/api/live/stream", "/api/live/signals"];
    let mut heard = streams.map(|path| {
        let mut reader = daemon.request("GET", path).browser(&lost).listen();
        reader.until("text/event-stream");
        reader
    });
    let mut others = daemon.request("GET", "/api/live/stream").browser(&other).listen();
    others.until("event: snapshot");
    let [own, _] = [&lost, &other].map(|browser| subscribe(&daemon, browser));
    let devices = || {
        let list = daemon.request("GET", "/api/push/subscriptions").token(Scope::Operate).json();
        let list = list.as_array().expect("a list").iter();
        list.filter_map(|device| device["id"].as_str()).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(devices().len(), 2);
    let forget = daemon.request("POST", &format!("/api/browsers/{}/forget", lost.id));
    assert_eq!(forget.token(Scope::Admin).page(&json!({})).json(), json!({"forgotten": true}));
    assert!(!devices().contains(&own) && devices().len() == 1);
    daemon.hook("secret", "UserPromptSubmit");
    for reader in &mut heard {
        let told = reader.until_end();
        assert!(!told.contains("secret"), "{told}");
    }
    assert!(others.until("secret").contains("event: session_changed"));
}

/// The list of browsers is bounded: whoever is pushed off it is out as if forgotten. So is whoever
/// signs out.
#[test]
fn a_browser_that_is_pushed_out_or_signs_out_hears_nothing_more() {
    let daemon = Daemon::start("pushed-out");
    let first = daemon.browser("operate");
    let leaver = daemon.browser("operate");
    let [mut pushed, mut left] = [&first, &leaver].map(|browser| {
        subscribe(&daemon, browser);
        let mut reader = daemon.request("GET", "/api/live/stream").browser(browser).listen();
        reader.until("event: snapshot");
        reader
    });
    let out = daemon.request("POST", "/api/sign-out").browser(&leaver).page(&json!({}));
    assert_eq!(out.send().0, 204);
    left.until_end();
    for _ in 0..qd_server::limits::BROWSERS_MAX {
        daemon.browser("observe");
    }
    pushed.until_end();
    let list = daemon.request("GET", "/api/push/subscriptions").token(Scope::Operate).json();
    assert_eq!(list, json!([]));
}

/// The device's id.
fn subscribe(daemon: &Daemon, browser: &Browser) -> String {
    let keys = json!({"p256dh": format!("BA{}", "A".repeat(85)), "auth": "A".repeat(22)});
    let endpoint = format!("https://push.example/{}", browser.id);
    let wanted: Value = json!({"endpoint": endpoint, "keys": keys, "label": "A phone"});
    let request = daemon.request("POST", "/api/push/subscriptions").browser(browser);
    request.page(&wanted).json()["id"].as_str().expect("an id").to_owned()
}
