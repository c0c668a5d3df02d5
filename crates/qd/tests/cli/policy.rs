//! What a policy would do, tried on what agents asked for.

use qd_session::decision::{Book, By, Decision, Given, Offer, Scope, Shown};
use qd_session::event::{Entry, Event};
use qd_session::id::{CallId, RequestId, RequestKey, RuleName, SessionId};
use qd_session::logbook::Brief;
use qd_session::machine::{self, Judged, Process, Setup, ToolCall, Tools, Verdict};
use qd_session::moment::{Source, Timestamp};
use qd_session::monitor::{AgentEvent, Ask, Fact, RequestKind, Stage};
use qd_session::policy::Preset;
use qd_session::seed::Seed;
use qd_store::{Batch, Journal, Settings};
use serde_json::{Value, json};

use crate::world::World;

const AT: Timestamp = Timestamp(1_795_000_000_000);

fn entry(session: &str, event: Event) -> Entry {
    Entry::new(SessionId::new(session), AT, event)
}

/// An agent in a terminal asks to run this.
fn asks(request: &str, command: &str) -> Entry {
    let ask = Ask {
        call: None,
        tool: Some("Bash".into()),
        text: None,
        input: Some(json!({"command": command}).to_string().into()),
    };
    let (request, stage) = (RequestId::new(request), Stage::Waiting);
    let fact = Fact::ApprovalRequested { request, stage, ask };
    entry("sess_seen", Event::Observed { event: AgentEvent::main(AT, Source::Hook, fact) })
}

fn offer(session: &str, request: &str, rule: Option<&str>, answer: Decision) -> Offer {
    let session = SessionId::new(session);
    Offer {
        decision: Seed(request.len() as u64).decision(),
        request: RequestKey::of(&session, &RequestId::new(request), AT),
        session,
        by: By { who: "ann".to_owned(), device: "phone".to_owned() },
        rule: rule.map(RuleName::new),
        shown: Shown::new(RequestKind::Permission, Some("Bash".into()), None, None),
        answer,
        key: None,
    }
}

/// One request that a person denied, one that nobody answered from here, and one of a session that
/// we drive, which its preset allowed.
fn remembers(world: &World) {
    let path = world.state().join("journal.db");
    let (journal, _) = Journal::open(path, Settings::default()).expect("it opens");
    let call = ToolCall {
        call_id: CallId::from("driven"),
        name: "bash".into(),
        arguments: json!({"command": "cargo test"}),
        mutating: true,
    };
    let brief = Brief {
        workspace: "/work/shop".into(),
        model: None,
        provider: None,
        preset: Preset::Yolo,
        prompt: None,
        is_chat: false,
    };
    let setup = Setup { tools: Tools::Ours, process: Process::WholeSession, hooks: Vec::new() };
    let calls = vec![Judged { call, verdict: Verdict::Allow }];
    let parsed = machine::Event::ResponseParsed { turn: "turn_1".into(), calls };
    let entries = vec![
        asks("a", "rm -rf build"),
        asks("bb", "git push"),
        entry("sess_ours", Event::SetUp { setup, brief: Some(Box::new(brief)) }),
        entry("sess_ours", Event::Driven { seed: Seed(1), event: parsed, frozen: None }),
    ];
    let mut book = Book::after(journal.record_ends().expect("readable").last);
    let denied = offer("sess_seen", "a", None, Decision::Deny { message: None, interrupt: false });
    book.opened(&denied.request);
    let Ok(Given::Fresh { record }) = book.give(AT, denied) else { panic!("it is open") };
    let allow = Decision::Allow { input: None, scope: Scope::Once };
    let ruled = book.ruled(AT, offer("sess_ours", "driven", Some("preset yolo"), allow));
    let records = vec![*record, ruled];
    journal.write(&Batch { entries, records, ..Batch::default() }).wait().expect("written");
}

#[test]
fn what_would_have_gone_otherwise_comes_first_with_what_it_was() {
    let world = World::new();
    remembers(&world);
    let text = "[[rule]]\nname = \"cleaning\"\neffect = \"allow\"\ncommand = \"rm *\"\n";
    let file = world.write("try.toml", text);
    let file = file.to_string_lossy();
    let tried = world.run(&["policy", "test", &file]).expect(0);
    let lines: Vec<&str> = tried.out.lines().map(str::trim_start).collect();
    assert_eq!(
        lines[0],
        "you denied → allow      1×  Bash  rm -rf build  (cleaning; in force: ask)"
    );
    assert!(tried.out.contains("asked → ask        1×  Bash  git push"), "{tried:?}");
    assert!(
        tried.out.contains("rule allowed → allow      1×  bash  cargo test  (preset yolo)"),
        "a driven one, with the preset of its session: {tried:?}"
    );
    assert!(tried.out.contains("1 would have gone otherwise than they did."), "{tried:?}");
    assert!(tried.out.contains("1 would go otherwise than by the policy in force."), "{tried:?}");

    let json = world.run(&["policy", "test", &file, "--json"]).expect(0).json();
    assert_eq!((&json["changed"], &json["unlikeInForce"]), (&json!(1), &json!(1)));
    let first = &json["requests"][0];
    assert_eq!(first["was"], json!({"by": "person", "allowed": false}));
    assert_eq!((&first["changed"], &first["inForce"]["effect"]), (&json!(true), &json!("ask")));
    let of = |tool: &str| {
        let mut requests = json["requests"].as_array().expect("some").iter();
        requests.find(|one| one["tool"] == tool).cloned().unwrap_or(Value::Null)
    };
    let ruled = json!({"by": "rule", "rule": "preset yolo", "allowed": true});
    assert_eq!(of("bash")["was"], ruled);
}

#[test]
fn a_policy_is_tried_on_the_past_beside_the_daemon() {
    let world = World::new();
    let _daemon = world.daemon();
    world.agent_starts("s-1");
    world.agent_asks("s-1");
    let none = world.run(&["policy", "test"]).expect(0);
    assert!(none.out.contains("asked → ask        1×  Bash  rm -rf build"), "{none:?}");
    assert!(none.out.contains("0 would be allowed, 0 denied, 1 asked again"), "{none:?}");
    let rule = "[[rule]]\nname = \"no rm\"\neffect = \"deny\"\ncommand = \"rm *\"\n";
    let file = world.write("try.toml", rule);
    let tried = world.run(&["policy", "test", &file.to_string_lossy(), "--json"]).expect(0).json();
    let request = &tried["requests"][0];
    assert_eq!((&request["effect"], &request["rule"]), (&"deny".into(), &"no rm".into()));
    assert_eq!((&request["count"], &request["tool"]), (&1.into(), &"Bash".into()));
    world.write(
        "home/acme/.quarterdeck/policy.toml",
        "[[rule]]\neffect = \"ask\"\nkind = \"run\"\n",
    );
    world.write("home/.config/quarterdeck/policy.toml", "preset = \"yolo\"\n");
    let tightened = world.run(&["policy", "test", "--json"]).expect(0).json();
    assert_eq!(tightened["requests"][0]["origin"], "repository");
}

#[test]
fn what_cannot_be_tried_is_an_error() {
    let world = World::new();
    let outcome = world.run(&["policy", "test"]).expect(1);
    assert!(outcome.err.contains("no journal yet"), "{outcome:?}");
    let outcome = world.run(&["policy", "test", "missing.toml"]).expect(1);
    assert!(outcome.err.contains("missing.toml is not there"), "{outcome:?}");
    assert!(!world.state().exists(), "looking changes nothing");
}

#[test]
fn the_policy_of_a_folder_is_shown() {
    let world = World::new();
    world.write("home/acme/.gemini/settings.json", r#"{"security":{"disableYoloMode":true}}"#);
    let text = "preset = \"yolo\"\n[[rule]]\nname = \"no pushing\"\neffect = \"deny\"\n\
                command = \"git push *\"\n[project.\"~/acme\"]\nwait_headless = true\n";
    world.write("home/.config/quarterdeck/policy.toml", text);
    let folder = world.path("home/acme");
    let shown = world.run(&["policy", "show", &folder.to_string_lossy()]).expect(0);
    for part in ["preset   careful", "forbids yolo", "deny     no pushing (global)", "wait for you"]
    {
        assert!(shown.out.contains(part), "{part}: {shown:?}");
    }
    let json = world.run(&["policy", "show", &folder.to_string_lossy(), "--json"]).expect(0).json();
    assert_eq!((&json["preset"], &json["yoloForbidden"]), (&"careful".into(), &true.into()));
    world.write("home/.config/quarterdeck/policy.toml", "[[rules]]\neffect = \"deny\"\n");
    let told = world.run(&["policy", "show", &folder.to_string_lossy()]).expect(0);
    assert!(told.err.contains("policy.toml, rules: it is none of"), "{told:?}");
    let doctor = world.run(&["doctor"]).expect(1);
    assert!(doctor.out.contains("BAD    policy"), "{doctor:?}");
}
