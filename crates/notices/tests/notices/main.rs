//! Those who tell, over a real loop: an agent asks by its hooks, and receivers on the loopback
//! decrypt, verify and refuse what they are sent.

mod receiver;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use qd_daemon::runtime::{Delivered, Handle, ReplyOutcome, Runtime, Settings as LoopSettings};
use qd_harness::{Channel, Harness};
use qd_hook_wire::{FrameId, Mode};
use qd_notices::{
    DeviceView, NotADevice, Notices, NtfySettings, PrivateHost, Settings, Subscription,
    WebhookSettings,
};
use qd_session::operator::Group;
use qd_session::operator::notice::{Kind, Rules};
use qd_sources::hook_intake::{Caller, Frame};
use serde_json::{Value, json};
use tokio::runtime::Runtime as Tokio;
use tokio::sync::watch;

use self::receiver::{Browser, Receiver};

/// A folder for one test, removed with it.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("qd-notices-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("a folder");
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A loop and those who tell beside it. Tests ask from this thread, so they may block.
struct Daemon {
    notices: Notices,
    handle: Handle,
    stop: watch::Sender<bool>,
    tokio: Option<Tokio>,
}

/// Everything is told at once; `webhooks` and `ntfy` are addresses.
fn settings(folder: &Path) -> Settings {
    Settings {
        state: folder.join("state/notices"),
        rules: Rules {
            kinds: [Kind::Permission].into(),
            dwell_ms: 0,
            cooldown_ms: 0,
            quiet: Vec::new(),
        },
        contact: "mailto:ann@example.org".to_owned(),
        link: "https://box.example.ts.net/".to_owned(),
        webhooks: Vec::new(),
        ntfy: Vec::new(),
        desktop: false,
        allow_private: vec![PrivateHost::read("127.0.0.1").expect("a host")],
        offset: Box::new(|_| 0),
    }
}

fn webhook(receiver: &Receiver) -> WebhookSettings {
    let url = WebhookSettings::read_url(&receiver.url("/hook")).expect("an address");
    WebhookSettings { url, secret: Some("a secret".to_owned()), details: true }
}

impl Daemon {
    fn start(folder: &Folder, settings: Settings) -> Self {
        let tokio = Tokio::new().expect("a runtime");
        let (stop, stopped) = watch::channel(false);
        let (notices, handle) = tokio.block_on(async {
            let of_loop = LoopSettings {
                home: folder.0.clone(),
                environment: BTreeMap::new(),
                state: folder.0.join("state"),
                opencode_servers: Vec::new(),
                client_folders: Vec::new(),
                layers: folder.0.join("layers.toml"),
                policy: folder.0.join("policy.toml"),
            };
            let (runtime, handle) = Runtime::open(&of_loop, stopped).expect("it opens");
            tokio::spawn(runtime.run());
            (Notices::start(handle.clone(), settings).expect("they start"), handle)
        });
        Self { notices, handle, stop, tokio: Some(tokio) }
    }

    /// As the server does it: inside of the runtime.
    fn subscribe(&self, subscription: Subscription, at_s: u64) -> Result<DeviceView, NotADevice> {
        self.block_on(self.notices.subscribe(subscription, "token", at_s))
    }

    fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.tokio.as_ref().expect("it runs").block_on(future)
    }

    fn hook(&self, session: &str, mut payload: Value) {
        payload["session_id"] = session.into();
        payload["cwd"] = "/w/atlas".into();
        let payload = payload.to_string().into_bytes();
        let taken = self.block_on(self.handle.signal(Harness::ClaudeCode, Channel::Hook, payload));
        assert_eq!(taken, Delivered::Taken);
        // No forwarder counts these, so that only their time says which was first: a prompt of the
        // same millisecond would end what was asked in it.
        let sent = now_ms();
        while now_ms() == sent {
            std::thread::yield_now();
        }
    }

    /// An agent wants to run a command.
    fn asks(&self, session: &str, command: &str) {
        let input = json!({"command": command});
        self.hook(session, json!({"hook_event_name": "UserPromptSubmit", "prompt": "go"}));
        self.hook(
            session,
            json!({"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": session,
                "tool_input": input}),
        );
        self.hook(
            session,
            json!({"hook_event_name": "PermissionRequest", "tool_name": "Bash",
                "tool_input": input}),
        );
    }

    /// The terminal said yes.
    fn goes_on(&self, session: &str, command: &str) {
        self.hook(
            session,
            json!({"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_use_id": session,
                "tool_input": {"command": command}, "tool_response": {"stdout": ""}}),
        );
    }

    /// Until the board shows that somebody is to be asked.
    fn until_it_needs(&self, session: &str) {
        let deadline = std::time::Instant::now() + Duration::from_secs(60);
        loop {
            let board = self.block_on(self.handle.board()).expect("it lives");
            let card = board.cards.iter().find(|card| *card.vendor_id == *session);
            if card.is_some_and(|card| card.agent_state.group == Group::NeedsYou) {
                return;
            }
            assert!(std::time::Instant::now() < deadline, "{card:?}");
            std::thread::yield_now();
        }
    }

    /// An agent wants to run a command, and its hook waits for the answer. What it is told.
    fn is_answered(&self, session: &str, command: &str) -> String {
        let input = json!({"command": command});
        let call = json!({"hook_event_name": "PreToolUse", "tool_name": "Bash",
            "tool_use_id": session, "tool_input": input});
        self.hook(session, call);
        let payload = json!({"session_id": session, "cwd": "/w/atlas", "tool_name": "Bash",
            "hook_event_name": "PermissionRequest", "tool_input": input});
        let at_ms = now_s() * 1_000;
        let frame = Frame {
            mode: Mode::Wait,
            id: FrameId(u128::from(at_ms * 1_000_000) << 64 | u128::from(session.len() as u64)),
            at_ms,
            seq: 0,
            harness: "claude-code".to_owned(),
            event: None,
            entry: Some("cli".to_owned()),
            by: None,
            agent: None,
            cut: None,
            whole: None,
            caller: Caller::Spooled,
            payload: payload.to_string().into_bytes(),
        };
        let reply = self.block_on(async {
            let mut waiter = self.handle.wait(frame).await.expect("it is taken");
            let told = waiter.told().await.expect("it is told");
            let reply = told.reply.bytes();
            told.outcome.send(ReplyOutcome::Delivered).expect("somebody asks");
            waiter.leave().await;
            reply
        });
        self.goes_on(session, command);
        String::from_utf8(reply).expect("text")
    }

    /// Until a receiver's view is so.
    fn until(&self, seen: impl Fn(&Notices) -> bool) {
        let deadline = std::time::Instant::now() + Duration::from_secs(60);
        while !seen(&self.notices) {
            assert!(std::time::Instant::now() < deadline, "{:?}", self.notices.receivers_view());
            std::thread::yield_now();
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        if let Some(tokio) = self.tokio.take() {
            tokio.shutdown_timeout(Duration::from_secs(5));
        }
    }
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

fn now_ms() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()
}

#[test]
fn a_browser_is_told_what_only_it_can_read_and_told_again_when_it_is_settled() {
    let (folder, receiver) = (Folder::new("push"), Receiver::start());
    let daemon = Daemon::start(&folder, settings(&folder.0));
    let browser = Browser::new();
    let device = daemon.subscribe(browser.subscription(&receiver.url("/push/1")), now_s());
    assert_eq!(device.expect("a device").label, "A ⟨U+202E⟩phone");
    daemon.asks("s1", "make <b>release</b>");

    let push = receiver.next();
    let claims = push.vapid(&daemon.notices.public_key());
    assert_eq!(claims["aud"], receiver.url(""));
    assert_eq!(claims["sub"], "mailto:ann@example.org");
    let lives = claims["exp"].as_u64().expect("a time").saturating_sub(now_s());
    assert!((60..=24 * 60 * 60).contains(&lives), "{lives}");
    assert_eq!(push.header("content-encoding"), "aes128gcm");
    assert_eq!((push.header("urgency"), push.header("ttl")), ("high", "43200"));
    assert_eq!(push.header("topic").len(), 32);
    let message = browser.read(&push.body);
    assert_eq!(message["title"], "atlas: allow Bash?");
    assert_eq!(message["text"], "make <b>release</b>");
    assert_eq!((&message["kind"], &message["closed"]), (&json!("permission"), &json!(false)));
    assert_eq!(message["tag"], message["requestKey"]);
    // No hook waits for an answer, so none can be given from here.
    assert_eq!(message["actions"], json!([]));

    daemon.goes_on("s1", "make <b>release</b>");
    let settled = receiver.next();
    assert_eq!(settled.header("topic"), push.header("topic"), "it takes the other's place");
    assert_eq!(settled.header("urgency"), "low");
}

#[test]
fn a_webhook_is_signed_and_others_are_told_without_secrets() {
    let (folder, hook, ntfy) = (Folder::new("hook"), Receiver::start(), Receiver::start());
    let url = WebhookSettings::read_url(&ntfy.url("/topic")).expect("an address");
    let settings = Settings {
        webhooks: vec![webhook(&hook)],
        ntfy: vec![NtfySettings { url, token: Some("tk_1".to_owned()), details: false }],
        ..settings(&folder.0)
    };
    let daemon = Daemon::start(&folder, settings);
    daemon.asks("s1", "export KEY=secret");

    let told = hook.next();
    assert_eq!(told.path, "/hook");
    assert!(told.is_signed_with("a secret") && !told.is_signed_with("another"));
    let sent: u64 = told.header("x-quarterdeck-timestamp").parse().expect("a time");
    assert!(now_s().abs_diff(sent) < 3_600);
    let message = told.json();
    assert_eq!(message["id"], told.header("x-quarterdeck-id"));
    assert_eq!(message["text"], "export KEY=secret");

    let told = ntfy.next();
    assert_eq!(told.header("title"), "atlas: allow Bash?");
    assert_eq!((told.header("priority"), told.header("tags")), ("4", "raised_hand"));
    assert_eq!(told.header("authorization"), "Bearer tk_1");
    let link = format!("https://box.example.ts.net{}", message["path"].as_str().expect("a path"));
    assert_eq!(told.header("click"), link);
    assert_eq!(told.header("actions"), format!("view, Open, {link}"));
    assert_eq!(String::from_utf8_lossy(&told.body), "atlas: allow Bash?");

    daemon.goes_on("s1", "export KEY=secret");
    assert_eq!(hook.next().json()["closed"], true);
}

#[test]
fn a_device_that_is_gone_is_forgotten_and_other_failures_are_tried_again_and_counted() {
    let (folder, receiver) = (Folder::new("gone"), Receiver::start());
    let daemon = Daemon::start(&folder, settings(&folder.0));
    let subscribed = daemon.subscribe(Browser::new().subscription(&receiver.url("/p")), 1);
    let id = subscribed.expect("a device").id;
    let test = || daemon.notices.test(Some(&id)).expect("it is there");

    receiver.answer(&[503, 201]);
    test();
    receiver.next();
    receiver.next();
    daemon.until(|notices| notices.receivers_view()[0].sent == 1);

    // Nowhere is followed, and what is refused is not tried again.
    for status in [302, 400, 413] {
        receiver.answer(&[status]);
        test();
        assert_eq!(receiver.next().path, "/p");
    }
    daemon.until(|notices| notices.receivers_view()[0].failed == 3);
    let view = daemon.notices.receivers_view().remove(0);
    assert!(view.trouble.is_some_and(|why| why.contains("413")), "it says why");

    receiver.answer(&[410]);
    test();
    receiver.next();
    daemon.until(|notices| notices.devices().is_empty() && notices.receivers_view().is_empty());
    assert!(daemon.notices.test(Some(&id)).is_err());
}

#[test]
fn a_restart_tells_nothing_twice_and_takes_back_what_was_settled_meanwhile() {
    let (folder, hook) = (Folder::new("restart"), Receiver::start());
    let with_hook = || Settings { webhooks: vec![webhook(&hook)], ..settings(&folder.0) };
    let tags = {
        let daemon = Daemon::start(&folder, with_hook());
        daemon.asks("s1", "make one");
        let first = hook.next().json();
        daemon.asks("s2", "make two");
        [first["tag"].clone(), hook.next().json()["tag"].clone()]
    };
    for name in ["told.json", "push-key"] {
        let found = std::fs::metadata(folder.0.join("state/notices").join(name)).expect("a file");
        assert_eq!(found.permissions().mode() & 0o777, 0o600, "{name}");
    }
    let daemon = Daemon::start(&folder, with_hook());
    daemon.goes_on("s1", "make one");
    daemon.asks("s3", "make three");
    // In their order: had one of the first been told again it would stand before these.
    let settled = hook.next().json();
    assert_eq!((&settled["closed"], &settled["tag"]), (&json!(true), &tags[0]));
    let third = hook.next().json();
    assert_eq!(third["text"], "make three");
    assert!(!tags.contains(&third["tag"]));
}

#[test]
fn nobody_is_told_while_somebody_looks_at_the_page() {
    let (folder, hook) = (Folder::new("focus"), Receiver::start());
    let settings = Settings { webhooks: vec![webhook(&hook)], ..settings(&folder.0) };
    let daemon = Daemon::start(&folder, settings);
    // It is seen to watch first.
    daemon.asks("s0", "make none");
    assert_eq!(hook.next().json()["text"], "make none");
    daemon.notices.set_focused(true);
    daemon.asks("s1", "make one");
    // It stands on the board: had nobody looked it would be told before what follows.
    daemon.until_it_needs("s1");
    daemon.goes_on("s1", "make one");
    daemon.notices.set_focused(false);
    daemon.asks("s2", "make two");
    assert_eq!(hook.next().json()["text"], "make two");
}

/// The rule answers a hook that waits: nobody has to look up, and nobody is told.
#[test]
fn what_a_rule_answered_is_told_to_nobody() {
    let (folder, hook) = (Folder::new("ruled"), Receiver::start());
    let rule = "[[rule]]\nname = \"build\"\neffect = \"allow\"\ncommand = \"make one\"\n";
    std::fs::write(folder.0.join("policy.toml"), rule).expect("a policy");
    let settings = Settings { webhooks: vec![webhook(&hook)], ..settings(&folder.0) };
    let daemon = Daemon::start(&folder, settings);
    daemon.asks("s0", "make none");
    assert_eq!(hook.next().json()["text"], "make none", "it watches");
    let told = daemon.is_answered("s1", "make one");
    assert!(told.contains("allow"), "{told}");
    daemon.asks("s2", "make two");
    assert_eq!(hook.next().json()["text"], "make two", "and nothing of the first before it");
}

#[test]
fn an_endpoint_inside_of_this_network_is_refused() {
    let folder = Folder::new("inside");
    let strict = Settings { allow_private: Vec::new(), ..settings(&folder.0) };
    let daemon = Daemon::start(&folder, strict);
    let refused =
        |endpoint: &str| daemon.subscribe(Browser::new().subscription(endpoint), 1).is_err();
    for endpoint in [
        "http://127.0.0.1:9/x",
        "https://127.0.0.1/x",
        "https://localhost/x",
        "https://[::1]/x",
        "http://push.example/x",
        "https://10.0.0.1/x",
        "https://169.254.169.254/latest",
        "/x",
        "https://user@push.example/x",
        "file:///etc/passwd",
        "https://router/x",
        "https://2130706433/x",
    ] {
        assert!(refused(endpoint), "{endpoint}");
    }
    assert!(refused(&format!("https://push.example/{}", "x".repeat(2_000))));
    let mut short = Browser::new().subscription("https://push.example/x");
    short.keys.auth = "AAAA".to_owned();
    assert!(daemon.subscribe(short, 1).is_err());
    assert!(!refused("https://push.example/x"));
    assert_eq!(daemon.notices.devices()[0].service, "push.example");
    let file = folder.0.join("state/notices/devices.json");
    let mode = std::fs::metadata(file).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// Ways to write this machine's own address, and names that lead there.
const OURSELVES: [&str; 12] = [
    "localhost",
    "localhost.",
    "LocalHost.",
    "127.1",
    "127.0.1",
    "0x7f.1",
    "0x7f.0.0.1",
    "0177.0.0.1",
    "2130706433",
    "0.0.0.0",
    "[::ffff:127.0.0.1]",
    "[::1]",
];

#[test]
fn a_subscription_never_leads_to_this_machine_however_it_is_written() {
    let (folder, receiver) = (Folder::new("ourselves"), Receiver::start());
    let strict = Settings { allow_private: Vec::new(), ..settings(&folder.0) };
    let daemon = Daemon::start(&folder, strict);
    for host in OURSELVES.into_iter().chain(["127.0.0.1"]) {
        for scheme in ["http", "https"] {
            let endpoint = format!("{scheme}://{host}:{}/x", receiver.port);
            let refused = daemon.subscribe(Browser::new().subscription(&endpoint), 1);
            assert!(
                matches!(refused, Err(NotADevice::Private(_) | NotADevice::Refused(_))),
                "{endpoint}: {refused:?}"
            );
        }
    }
    assert!(receiver.nobody_came());
}

/// The list of devices may be older than the check, and a name may lead elsewhere since it was
/// checked: what counts is where the connection would go.
#[test]
fn a_device_that_is_on_the_list_already_is_not_reached_on_this_machine() {
    let (folder, receiver) = (Folder::new("listed"), Receiver::start());
    let keys = Browser::new().subscription("https://push.example/x").keys;
    let listed: Vec<Value> = OURSELVES
        .iter()
        .enumerate()
        .flat_map(|(nth, host)| {
            ["http", "https"].map(|scheme| {
                json!({"id": format!("{scheme}{nth}"), "label": host, "since_s": 1,
                    "endpoint": format!("{scheme}://{host}:{}/x", receiver.port),
                    "p256dh": keys.p256dh, "auth": keys.auth})
            })
        })
        .collect();
    let state = folder.0.join("state/notices");
    std::fs::create_dir_all(&state).expect("a folder");
    std::fs::write(state.join("devices.json"), Value::from(listed).to_string()).expect("written");
    let strict = Settings { allow_private: Vec::new(), ..settings(&folder.0) };
    let daemon = Daemon::start(&folder, strict);
    daemon.notices.test(None).expect("they are there");
    daemon.until(|notices| notices.receivers_view().iter().all(|view| view.failed == 1));
    for view in daemon.notices.receivers_view() {
        let why = view.trouble.expect("it says why");
        assert!(why.contains("which is this machine") && why.contains("allow_private"), "{why}");
    }
    assert!(receiver.nobody_came());
}

#[test]
fn a_webhook_reaches_a_private_address_only_where_the_settings_name_it() {
    let (folder, receiver) = (Folder::new("named"), Receiver::start());
    let hook = |host: &str| {
        let url = WebhookSettings::read_url(&format!("http://{host}:{}/{host}", receiver.port));
        WebhookSettings { url: url.expect("an address"), secret: None, details: true }
    };
    let strict = Settings {
        allow_private: vec![PrivateHost::read("0x7f.1").expect("a host")],
        webhooks: ["127.0.0.1", "localhost.", "127.1", "0x7f.1"].map(hook).into(),
        ..settings(&folder.0)
    };
    let daemon = Daemon::start(&folder, strict);
    daemon.notices.test(None).expect("they are there");
    daemon
        .until(|notices| notices.receivers_view().iter().all(|view| view.sent + view.failed == 1));
    let sent: Vec<u64> = daemon.notices.receivers_view().iter().map(|view| view.sent).collect();
    assert_eq!(sent, [1, 0, 0, 1]);
    let mut came = [receiver.next().path, receiver.next().path];
    came.sort();
    assert_eq!(came, ["/0x7f.1", "/127.0.0.1"]);
    assert!(receiver.nobody_came());
}
