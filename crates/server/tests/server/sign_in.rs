//! A browser comes in by a link, acts by its cookie, and goes.

use qd_server::{HEADER, Scope};
use serde_json::{Value, json};

use crate::{Daemon, Request};

impl Request<'_> {
    /// As a page of ours writes.
    pub fn page(self, body: &Value) -> Self {
        let body = body.to_string();
        self.with("content-type", "application/json").with(HEADER, "1").body(body)
    }

    /// The answer's head.
    pub fn head(self) -> String {
        use std::io::Read;
        let mut text = String::new();
        self.open().read_to_string(&mut text).expect("an answer");
        text.split("\r\n\r\n").next().unwrap_or_default().to_ascii_lowercase()
    }
}

impl Daemon {
    /// A fresh code.
    pub fn code(&self, scope: &str) -> String {
        let link = self.request("POST", "/api/links").token(Scope::Admin);
        let link = link.page(&json!({ "scope": scope })).json();
        let path = link["path"].as_str().expect("a path");
        path.strip_prefix("/sign-in#").expect("behind the hash").to_owned()
    }

    /// A browser's cookie.
    pub fn cookie(&self, scope: &str) -> String {
        let code = self.code(scope);
        let head = self.request("POST", "/api/sign-in").page(&json!({ "code": code })).head();
        assert!(head.starts_with("http/1.1 204"), "{head}");
        let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: "));
        cookie.and_then(|cookie| cookie.split(';').next()).expect("a cookie").to_owned()
    }
}

#[test]
fn a_link_signs_one_browser_in_once() {
    let daemon = Daemon::start("sign-in");
    let code = daemon.code("observe");
    let sign_in = || daemon.request("POST", "/api/sign-in").page(&json!({ "code": code }));
    let head = sign_in().with("origin", &format!("http://127.0.0.1:{}", daemon.port)).head();
    let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: "));
    let cookie = cookie.expect("a cookie");
    for part in ["quarterdeck=", "; httponly", "; samesite=strict", "; path=/", "; max-age="] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains("secure"), "{cookie}");
    assert_eq!(sign_in().refused(), (401, "wrong_code".into()));
    let nonsense = daemon.request("POST", "/api/sign-in").page(&json!({ "cod": 1 }));
    assert!((400..500).contains(&nonsense.send().0));
}

#[test]
fn a_cookie_allows_what_its_link_was_for_and_nothing_to_reporters() {
    let daemon = Daemon::start("cookie");
    daemon.hook("s-1", "UserPromptSubmit");
    let observer = daemon.cookie("observe");
    let get = |path: &str| daemon.request("GET", path).with("cookie", &observer);
    assert_eq!(get("/api/live/sessions").json()["sessions"].as_array().map(Vec::len), Some(1));
    assert_eq!(get("/api/live/signals").refused(), (403, "weak_scope".into()));
    let dismiss = |cookie: &str| {
        let request = daemon.request("POST", "/api/sessions/s-1/dismiss");
        request.page(&json!({})).with("cookie", &format!("other=1; {cookie}"))
    };
    assert_eq!(dismiss(&observer).refused(), (403, "weak_scope".into()));
    assert_eq!(dismiss(&daemon.cookie("operate")).json(), json!({"dismissed": true}));
    let report = daemon.request("POST", "/api/live/hook").with("cookie", &daemon.cookie("admin"));
    assert_eq!(report.body("{}").refused(), (401, "no_token".into()));
    assert_eq!(get("/api/live/sessions").with("cookie", "quarterdeck=").refused().0, 401);
}

#[test]
fn a_browser_that_is_forgotten_or_signs_out_is_out() {
    let daemon = Daemon::start("out");
    let get = |cookie: &str| daemon.request("GET", "/api/health").with("cookie", cookie);
    let [one, other] = [daemon.cookie("observe"), daemon.cookie("admin")];
    let list = daemon.request("GET", "/api/browsers").with("cookie", &other).json();
    let id = list[0]["id"].as_str().expect("an id");
    assert!(!list.to_string().contains(one.trim_start_matches("quarterdeck=")), "{list}");
    let forget = |id: &str| {
        let request = daemon.request("POST", &format!("/api/browsers/{id}/forget"));
        request.page(&json!({})).with("cookie", &other)
    };
    assert_eq!(get(&one).send().0, 200);
    assert_eq!(forget(id).json(), json!({"forgotten": true}));
    assert_eq!(get(&one).refused(), (401, "wrong_token".into()));
    assert_eq!(forget(id).refused(), (404, "no_such_browser".into()));
    let out = daemon.request("POST", "/api/sign-out").page(&json!({})).with("cookie", &other);
    assert!(out.head().contains("max-age=0"));
    assert_eq!(get(&other).refused(), (401, "wrong_token".into()));
}

#[test]
fn a_second_name_leads_here_when_it_is_allowed_and_its_cookie_is_secure() {
    let daemon = Daemon::start("second-name");
    let (name, origin) = ("box.example.ts.net", "https://box.example.ts.net");
    let code = daemon.code("operate");
    let sign_in = daemon.request("POST", "/api/sign-in").page(&json!({ "code": code }));
    let head = sign_in.with("host", name).with("origin", origin).head();
    let cookie = head.lines().find_map(|line| line.strip_prefix("set-cookie: "));
    let cookie = cookie.expect("a cookie");
    assert!(cookie.contains("; secure"), "{cookie}");
    let cookie = cookie.split(';').next().expect("a value");
    let get = || daemon.request("GET", "/api/live/sessions").with("cookie", cookie);
    assert_eq!(get().with("host", name).with("origin", origin).send().0, 200);
    let other = get().with("host", "other.example.ts.net");
    assert_eq!(other.refused(), (403, "foreign_host".into()));
}

#[test]
fn a_link_cannot_be_had_without_being_admin() {
    let daemon = Daemon::start("link");
    for scope in [Scope::Ingest, Scope::Observe, Scope::Operate] {
        let link = daemon.request("POST", "/api/links").token(scope).page(&json!({}));
        assert_eq!(link.refused(), (403, "weak_scope".into()));
    }
    let ingest = daemon.request("POST", "/api/links").token(Scope::Admin);
    assert_eq!(ingest.page(&json!({ "scope": "ingest" })).refused(), (400, "unreadable".into()));
}
