//! A browser comes in by a link, proves that it has the key it was given, and goes.

use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Instant;

use qd_server::{BROWSER_HEADER, HEADER, Scope, browser_proof, daemon_proof};
use serde_json::{Value, json};

use crate::{Daemon, PATIENCE, Reader, Request};

const NONCE: &str = "000102030405060708090a0b0c0d0e0f";

/// A browser that is signed in, as its page knows itself.
pub struct Browser {
    pub id: String,
    pub key: String,
    /// What it shows with each request.
    pub proof: String,
}

impl Request<'_> {
    /// As a page of ours writes.
    pub fn page(self, body: &Value) -> Self {
        let body = body.to_string();
        self.with("content-type", "application/json").with(HEADER, "1").body(body)
    }

    pub fn browser(self, browser: &Browser) -> Self {
        self.with(BROWSER_HEADER, &browser.proof)
    }

    /// The answer's head.
    pub fn head(self) -> String {
        let mut text = String::new();
        self.open().read_to_string(&mut text).expect("an answer");
        text.split("\r\n\r\n").next().unwrap_or_default().to_ascii_lowercase()
    }
}

impl Reader {
    /// All that was read until the daemon ended it. A stream that goes on tells so every few seconds.
    pub fn until_end(&mut self) -> String {
        let mut buffer = [0; 4_096];
        let begun = Instant::now();
        loop {
            assert!(begun.elapsed() < PATIENCE, "it goes on: {}", self.text);
            let count = self.stream.read(&mut buffer).expect("it ends while we wait");
            if count == 0 {
                return self.text.clone();
            }
            self.text += &String::from_utf8_lossy(&buffer[..count]);
        }
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

    pub fn browser(&self, scope: &str) -> Browser {
        let host = format!("127.0.0.1:{}", self.port);
        let code = self.code(scope);
        let given = self.request("POST", "/api/sign-in").page(&json!({ "code": code })).json();
        let text = |key: &str| given[key].as_str().expect("text").to_owned();
        self.proven(text("browser"), text("key"), &host)
    }

    /// As the page does it: first the daemon proves itself.
    fn proven(&self, id: String, key: String, host: &str) -> Browser {
        let said = self.hello(&id, host).json();
        let challenge = said["challenge"].as_str().expect("a challenge");
        assert_eq!(said["proof"], daemon_proof(&key, host, challenge, NONCE));
        let proof = format!("{id}.{}", browser_proof(&key, host, challenge));
        Browser { id, key, proof }
    }

    pub fn hello(&self, browser: &str, host: &str) -> Request<'_> {
        let host = host.replace(':', "%3A");
        let path = format!("/api/hello?browser={browser}&host={host}&nonce={NONCE}");
        self.request("GET", &path)
    }
}

#[test]
fn a_link_signs_one_browser_in_once() {
    let daemon = Daemon::start("sign-in");
    let code = daemon.code("observe");
    let sign_in = || daemon.request("POST", "/api/sign-in").page(&json!({ "code": code }));
    let answer = sign_in().with("origin", &format!("http://127.0.0.1:{}", daemon.port)).json();
    assert_eq!(answer["key"].as_str().map(str::len), Some(64));
    assert_eq!(sign_in().refused(), (401, "wrong_code".into()));
    let nonsense = daemon.request("POST", "/api/sign-in").page(&json!({ "cod": 1 }));
    assert!((400..500).contains(&nonsense.send().0));
}

#[test]
fn a_browser_may_do_what_its_link_was_for_and_report_nothing() {
    let daemon = Daemon::start("browser");
    daemon.hook("s-1", "UserPromptSubmit");
    let observer = daemon.browser("observe");
    let get = |path: &str| daemon.request("GET", path).browser(&observer);
    assert_eq!(get("/api/live/sessions").json()["sessions"].as_array().map(Vec::len), Some(1));
    assert_eq!(get("/api/live/signals").refused(), (403, "weak_scope".into()));
    let dismiss = |browser: &Browser| {
        let request = daemon.request("POST", "/api/sessions/s-1/dismiss");
        request.page(&json!({})).browser(browser)
    };
    assert_eq!(dismiss(&observer).refused(), (403, "weak_scope".into()));
    assert_eq!(dismiss(&daemon.browser("operate")).json(), json!({"dismissed": true}));
    let report = daemon.request("POST", "/api/live/hook").browser(&daemon.browser("admin"));
    assert_eq!(report.body("{}").refused(), (401, "no_token".into()));
    assert_eq!(get("/api/live/sessions").with(BROWSER_HEADER, "").refused().0, 401);
}

#[test]
fn a_browser_that_is_forgotten_or_signs_out_is_out() {
    let daemon = Daemon::start("out");
    let get = |browser: &Browser| daemon.request("GET", "/api/health").browser(browser);
    let [one, other] = [daemon.browser("observe"), daemon.browser("admin")];
    let list = daemon.request("GET", "/api/browsers").browser(&other).json();
    assert_eq!(list[0]["id"], one.id);
    assert!(!list.to_string().contains(&one.key), "{list}");
    let forget = |id: &str| {
        let request = daemon.request("POST", &format!("/api/browsers/{id}/forget"));
        request.page(&json!({})).browser(&other)
    };
    assert_eq!(get(&one).send().0, 200);
    assert_eq!(forget(&one.id).json(), json!({"forgotten": true}));
    assert_eq!(get(&one).refused(), (401, "signed_out".into()));
    assert_eq!(forget(&one.id).refused(), (404, "no_such_browser".into()));
    let out = daemon.request("POST", "/api/sign-out").page(&json!({})).browser(&other);
    assert_eq!(out.send().0, 204);
    assert_eq!(get(&other).refused(), (401, "signed_out".into()));
}

#[test]
fn a_second_name_leads_here_when_it_is_allowed() {
    let daemon = Daemon::start("second-name");
    let (name, origin) = ("box.example.ts.net", "https://box.example.ts.net");
    let code = daemon.code("operate");
    let sign_in = daemon.request("POST", "/api/sign-in").page(&json!({ "code": code }));
    let given = sign_in.with("host", name).with("origin", origin).json();
    let text = |key: &str| given[key].as_str().expect("text").to_owned();
    let browser = daemon.proven(text("browser"), text("key"), name);
    let get = || daemon.request("GET", "/api/live/sessions").browser(&browser);
    assert_eq!(get().with("host", name).with("origin", origin).send().0, 200);
    let other = get().with("host", "other.example.ts.net");
    assert_eq!(other.refused(), (403, "foreign_host".into()));
}

/// Every user of the machine can read what a browser is started with.
#[test]
fn a_link_is_handed_over_by_a_file_that_only_this_user_reads_and_that_goes_with_it() {
    let daemon = Daemon::start("sign-in-file");
    let link = || {
        let wanted = json!({ "scope": "operate", "file": true });
        daemon.request("POST", "/api/links").token(Scope::Admin).page(&wanted).json()
    };
    let [used, unused] = [link(), link()];
    let file = Path::new(used["file"].as_str().expect("a path"));
    assert_eq!(fs::metadata(file).expect("there").permissions().mode() & 0o777, 0o600);
    let address = format!("http://127.0.0.1:{}{}", daemon.port, used["path"].as_str().expect("it"));
    let text = fs::read_to_string(file).expect("a page");
    assert!(text.contains(&format!("content=\"0;url={address}\"")), "{text}");
    let (_, code) = address.split_once('#').expect("a code");
    assert!(!file.to_string_lossy().contains(code));
    let sign_in = || daemon.request("POST", "/api/sign-in").page(&json!({ "code": code }));
    assert_eq!(sign_in().send().0, 200);
    assert!(!file.exists(), "the link was used");
    assert_eq!(sign_in().refused(), (401, "wrong_code".into()));
    assert!(Path::new(unused["file"].as_str().expect("a path")).exists());
    let plain = daemon.request("POST", "/api/links").token(Scope::Admin).page(&json!({})).json();
    assert!(plain.get("file").is_none(), "{plain}");
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
