//! Devices that are told, and tabs that are looked at.

use qd_server::Scope;
use serde_json::{Value, json};

use crate::{Daemon, Request};

fn operate<'a>(daemon: &'a Daemon, method: &str, path: &str) -> Request<'a> {
    daemon.request(method, path).token(Scope::Operate)
}

/// As a browser makes it.
fn subscription(endpoint: &str) -> Value {
    let keys = json!({"p256dh": format!("BA{}", "A".repeat(85)), "auth": "A".repeat(22)});
    json!({"endpoint": endpoint, "keys": keys, "label": "Firefox on\u{202e} Linux"})
}

#[test]
fn a_device_subscribes_is_listed_and_is_taken_off_the_list() {
    let daemon = Daemon::start("push");
    let key = operate(&daemon, "GET", "/api/push/key").json()["key"].clone();
    assert_eq!(key.as_str().map(str::len), Some(87), "an uncompressed point");
    let subscribe = |endpoint: &str| {
        operate(&daemon, "POST", "/api/push/subscriptions").page(&subscription(endpoint))
    };
    let list = || operate(&daemon, "GET", "/api/push/subscriptions").json();

    for endpoint in ["http://push.example/a", "a"] {
        let refused = subscribe(endpoint).refused();
        assert_eq!(refused, (400, "not_a_subscription".into()), "{endpoint}");
    }
    for host in ["127.0.0.1", "localhost", "localhost.", "127.1", "0x7f.1", "[::ffff:127.0.0.1]"] {
        let (status, body) = subscribe(&format!("https://{host}:9/a")).send();
        assert_eq!(status, 400, "{host}: {body}");
        assert!(body.contains("private_endpoint") && body.contains("allow_private"), "{body}");
    }
    let odd = json!({"endpoint": "https://push.example/a"});
    let odd = operate(&daemon, "POST", "/api/push/subscriptions").page(&odd);
    assert_eq!(odd.refused(), (400, "unreadable".into()));
    assert_eq!(list(), json!([]));

    let device = subscribe("https://push.example/a").json();
    assert_eq!(
        (&device["label"], &device["service"]),
        (&json!("Firefox on⟨U+202E⟩ Linux"), &json!("push.example"))
    );
    assert!(!device.to_string().contains("/a"), "its address is a secret");
    // It comes again, and is the same.
    assert_eq!(subscribe("https://push.example/a").json()["id"], device["id"]);
    assert_eq!(list().as_array().map(Vec::len), Some(1));

    let test = |body: Value| operate(&daemon, "POST", "/api/push/test").page(&body);
    assert_eq!(test(json!({"id": "nobody"})).refused(), (404, "no_such_device".into()));
    assert_eq!(test(json!({"id": device["id"]})).json(), json!({"receivers": 1}));

    let path = format!("/api/push/subscriptions/{}", device["id"].as_str().expect("an id"));
    let remove = || operate(&daemon, "DELETE", &path).page(&json!({}));
    assert_eq!(remove().json(), json!({"removed": true}));
    assert_eq!(remove().refused(), (404, "no_such_device".into()));
    assert_eq!(list(), json!([]));
}

#[test]
fn a_tab_is_known_while_its_stream_is_open() {
    let daemon = Daemon::start("presence");
    let told = |focused: bool| {
        operate(&daemon, "POST", "/api/presence").page(&json!({"tab": "t1", "focused": focused}))
    };
    assert_eq!(told(true).refused(), (404, "no_such_tab".into()));
    let stream = daemon.request("GET", "/api/live/stream?tab=t1").token(Scope::Observe);
    let mut reader = stream.listen();
    reader.until("event: snapshot");
    assert_eq!(told(true).json(), json!({"known": true}));
    assert_eq!(told(false).json(), json!({"known": true}));
    let odd = operate(&daemon, "POST", "/api/presence").page(&json!({"tab": 1}));
    assert_eq!(odd.refused(), (400, "unreadable".into()));
}
