//! OpenCode and Kilo, served. They have no hooks and need none: their server is found among the
//! processes of this home, and is the witness.

use qd_testbed::{Client, Gate, Home, Model, Reply, Request, Result, Script, Service};
use serde_json::{Value, json};

use crate::world::{World, eventually};

type Make = fn(&Home, &Model) -> Result<Client>;

const OPENCODE: Make = Client::opencode;
const KILO: Make = Client::kilo;

fn server(world: &World, make: Make) -> Service {
    make(&world.home, &world.model).unwrap().served().service().unwrap()
}

fn prompt(server: &Service, session: &str, text: &str) {
    let body = json!({"parts": [{"type": "text", "text": text}]});
    server.post(&format!("/session/{session}/prompt_async"), &body).unwrap();
}

fn session(server: &Service) -> String {
    let session = server.post("/session", &json!({})).unwrap();
    session["id"].as_str().expect("an id").to_owned()
}

/// What waits, by the server's own list.
fn pending(server: &Service, what: &str) -> String {
    eventually(what, || {
        let list = server.get(&format!("/{what}")).ok()?;
        list[0]["id"].as_str().map(str::to_owned)
    })
}

fn wants_a_file() -> Script {
    Script::new().calls("bash", json!({"command": "touch made", "description": "Make a file"}))
}

fn question() -> Value {
    json!({"questions": [{
        "question": "Which greeting?", "header": "Greeting",
        "options": [{"label": "Hello", "description": "a"}, {"label": "Hi", "description": "b"}],
    }]})
}

/// Permission, question, interrupt, failure and kill -9, one after another.
fn it_is_seen_all_the_way(make: Make) {
    let world = World::served(wants_a_file().says("The file is made."));
    let server = server(&world, make);
    let id = session(&server);
    prompt(&server, &id, "make a file");
    let request = pending(&server, "permission");
    let card = world.wait(&id, "needs-permission");
    assert_eq!(card["requests"][0]["text"], "touch made");
    server.post(&format!("/permission/{request}/reply"), &json!({"reply": "once"})).unwrap();
    world.wait(&id, "task-complete");

    world.model.then(Script::new().calls("question", question()).says("Hello it is."));
    prompt(&server, &id, "ask me");
    let request = pending(&server, "question");
    world.wait(&id, "awaiting-input");
    server.post(&format!("/question/{request}/reply"), &json!({"answers": [["Hello"]]})).unwrap();
    world.wait(&id, "task-complete");

    let gate = Gate::new();
    let held = Reply::says("This goes on for ever.").held_before_end(&gate);
    world.model.then(Script::new().replies(held));
    prompt(&server, &id, "talk to me");
    let asked = |request: &Request| request.brings("talk to me");
    world.model.wait_for_request("the prompt", asked).unwrap();
    world.wait(&id, "autonomous");
    server.post(&format!("/session/{id}/abort"), &json!({})).unwrap();
    world.wait(&id, "interrupted");

    world.model.then(Script::new().replies(Reply::fails(401)));
    prompt(&server, &id, "are you there?");
    world.wait(&id, "auth-error");

    world.model.then(wants_a_file());
    prompt(&server, &id, "make another");
    pending(&server, "permission");
    world.wait(&id, "needs-permission");
    server.process().kill().unwrap();
    let card = world.wait(&id, "session-ended");
    assert_eq!(card["requests"], json!([]));
}

#[test]
fn opencode_is_seen_all_the_way() {
    it_is_seen_all_the_way(OPENCODE);
}

#[test]
fn kilo_is_seen_all_the_way() {
    it_is_seen_all_the_way(KILO);
}

fn who_comes_late_sees_what_waits(make: Make) {
    let script = wants_a_file().calls("question", question()).says("The file is made.");
    let mut world = World::new(script);
    let server = server(&world, make);
    let id = session(&server);
    prompt(&server, &id, "make a file");
    let request = pending(&server, "permission");
    world.serve();
    world.wait(&id, "needs-permission");
    world.kill_daemon();
    server.post(&format!("/permission/{request}/reply"), &json!({"reply": "once"})).unwrap();
    let request = pending(&server, "question");
    world.serve();
    // The permission was answered while nobody looked: the server's list has it no more.
    eventually("the question alone", || {
        let card = world.status().into_iter().find(|card| card["vendorId"] == *id)?;
        let kinds: Vec<&str> =
            card["requests"].as_array()?.iter().filter_map(|one| one["kind"].as_str()).collect();
        (kinds == ["question"]).then_some(())
    });
    server.post(&format!("/question/{request}/reply"), &json!({"answers": [["Hello"]]})).unwrap();
    world.wait(&id, "task-complete");
}

#[test]
fn who_comes_late_to_opencode_sees_what_waits() {
    who_comes_late_sees_what_waits(OPENCODE);
}

#[test]
fn who_comes_late_to_kilo_sees_what_waits() {
    who_comes_late_sees_what_waits(KILO);
}

/// Permission, question, prompt and interrupt, all from elsewhere.
fn it_is_acted_on_from_elsewhere(make: Make) {
    let script = wants_a_file().says("The file is made.");
    let world = World::served(script.calls("question", question()).says("Hi it is."));
    let server = server(&world, make);
    let id = session(&server);
    prompt(&server, &id, "make a file");
    let card = world.wait(&id, "needs-permission");
    assert_eq!(card["requests"][0]["way"], "opencode", "{card:#}");
    assert_eq!(card["requests"][0]["scopes"], json!(["always"]), "{card:#}");
    let (taken, why) = world.qd(&["approve", &id, "--scope", "session"]);
    assert!(!taken && why.contains("only be allowed once or always"), "{why}");
    world.must(&["approve", &id, "--scope", "always"]);
    world.wait(&id, "task-complete");
    assert!(world.home.workspace().join("made").exists());
    world.must(&["send", &id, "ask", "me"]);
    world.wait(&id, "awaiting-input");
    world.must(&["answer", &id, "Hi"]);
    world.wait(&id, "task-complete");
    let asked = |request: &Request| request.brings("Hi");
    world.model.wait_for_request("the answer", asked).unwrap();

    let gate = Gate::new();
    world.model.then(Script::new().replies(Reply::says("For ever.").held_before_end(&gate)));
    world.must(&["send", &id, "talk", "to", "me"]);
    world.wait(&id, "autonomous");
    world.model.wait_for_request("the prompt", |request| request.brings("talk to me")).unwrap();
    world.must(&["interrupt", &id]);
    world.wait(&id, "interrupted");
}

#[test]
fn opencode_is_acted_on_from_elsewhere() {
    it_is_acted_on_from_elsewhere(OPENCODE);
}

#[test]
fn kilo_is_acted_on_from_elsewhere() {
    it_is_acted_on_from_elsewhere(KILO);
}

/// What its server asks is answered by a rule, and by YOLO.
#[test]
fn a_rule_answers_what_opencode_asks() {
    let script = wants_a_file().says("The file is made.");
    let mut world = World::new(script);
    world.policy("preset = \"yolo\"\n");
    world.serve();
    let server = server(&world, OPENCODE);
    let id = session(&server);
    prompt(&server, &id, "make a file");
    world.wait(&id, "task-complete");
    assert!(world.home.workspace().join("made").exists());
    assert_eq!(world.rules_that_answered(), ["preset yolo"]);
}
