//! OpenCode and Kilo, served, and as a terminal with a port.

use std::collections::BTreeMap;
use std::path::Path;

use qd_harness::{Channel, Direction};
use qd_sources::live::{NoticeKind, SourceNews, Trouble};
use qd_sources::opencode_servers::OpencodeServers;
use qd_sources::places::places;
use qd_testbed::{Client, Home, Model, Reply, Result, Script, Service};
use serde_json::{Value, json};

use crate::board::{Board, Source, now, state};

pub type Make = fn(&Home, &Model) -> Result<Client>;

pub const OPENCODE: Make = Client::opencode;
pub const KILO: Make = Client::kilo;

pub fn observed(urls: &[String]) -> Board {
    let source = OpencodeServers::start_without_discovery(urls, now).unwrap();
    Board::of(Source::Opencode(source))
}

fn discovered(home: &Home) -> Board {
    Board::of(Source::Opencode(found_in(home)))
}

fn found_in(home: &Home) -> OpencodeServers {
    let places = places(&home.path(), &BTreeMap::new());
    OpencodeServers::start(&[], &home.path(), &places, now).unwrap()
}

fn prompt(server: &Service, text: &str) -> Result<String> {
    let session = server.post("/session", &json!({ "title": "observed" }))?;
    let id = session["id"].as_str().expect("an id").to_owned();
    let body = json!({ "parts": [{ "type": "text", "text": text }] });
    server.post(&format!("/session/{id}/prompt_async"), &body)?;
    Ok(id)
}

fn wants_a_file() -> Script {
    let input = json!({ "command": "touch made", "description": "make a file" });
    Script::new().calls("bash", input).then_always(Reply::says("The file is made."))
}

/// A directory as a part of a query.
pub fn spelled_directory(path: &Path) -> String {
    path.display().to_string().replace(' ', "%20")
}

fn pending(server: &Service, what: &str) -> Result<String> {
    let list = server.get(&format!("/{what}"))?;
    Ok(list[0]["id"].as_str().expect("one waits").to_owned())
}

/// The states shown, each once in a row.
fn story(board: &Board) -> Vec<&str> {
    let mut story: Vec<&str> = board.shown.iter().map(String::as_str).collect();
    story.dedup();
    story
}

async fn a_permission_is_seen_and_its_answer_too(make: Make) -> Result<()> {
    let home = Home::new()?;
    let model = Model::start(wants_a_file())?;
    let server = make(&home, &model)?.served().service()?;
    let mut board = observed(&[server.url()]);
    board.until_notice(&NoticeKind::Attached).await;
    let session = prompt(&server, "make a file")?;
    let card = board.until_state("needs_permission").await;
    assert_eq!(*card.vendor_id, *session);
    assert_eq!(card.requests[0].text.as_deref(), Some("touch made"));
    assert_eq!(card.cwd.as_deref(), home.workspace().to_str());
    let request = pending(&server, "permission")?;
    server.post(&format!("/permission/{request}/reply"), &json!({ "reply": "once" }))?;
    board.until_state("task_complete").await;
    let story = story(&board);
    assert!(!story[story.len() - 2..].contains(&"needs_permission"), "{story:?}");
    let sent = board.signals.iter().filter(|signal| signal.direction == Direction::ToAgent);
    for signal in sent {
        let message: Value = serde_json::from_slice(&signal.payload).unwrap();
        assert_eq!(message["method"], "GET", "we only look");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_permission_of_opencode_is_seen_and_its_answer_too() -> Result<()> {
    a_permission_is_seen_and_its_answer_too(OPENCODE).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_permission_of_kilo_is_seen_and_its_answer_too() -> Result<()> {
    a_permission_is_seen_and_its_answer_too(KILO).await
}

/// A server that was at work before us, in another directory than it was started in, then
/// killed, and another in its place.
async fn who_comes_late_sees_the_wait_and_the_servers_end(make: Make) -> Result<()> {
    let home = Home::new()?;
    let model = Model::start(wants_a_file())?;
    let server =
        make(&home, &model)?.served().variable("OPENCODE_SERVER_PASSWORD", "").service()?;
    let elsewhere = home.path().join("else where");
    std::fs::create_dir(&elsewhere).unwrap();
    let directory = spelled_directory(&elsewhere);
    let session = server.post(&format!("/session?directory={directory}"), &json!({}))?;
    let id = session["id"].as_str().expect("an id");
    let body = json!({ "parts": [{ "type": "text", "text": "make a file" }] });
    let events = server.events(&format!("/event?directory={directory}"))?;
    server.post(&format!("/session/{id}/prompt_async?directory={directory}"), &body)?;
    events.wait_for("a permission", |event| event["type"] == "permission.asked")?;
    let mut board = discovered(&home);
    let its = |board: &Board| {
        board.cards().iter().any(|card| *card.vendor_id == *id && state(card) == "needs_permission")
    };
    board.until("the late look", its).await;
    let card = board.cards().into_iter().find(|card| *card.vendor_id == *id).unwrap();
    assert_eq!(card.cwd.as_deref(), elsewhere.to_str());
    server.process().kill()?;
    board
        .until("the server's end", |board| {
            board
                .cards()
                .iter()
                .any(|card| *card.vendor_id == *id && state(card) == "session_ended")
        })
        .await;
    model.then(wants_a_file());
    let server = make(&home, &model)?.served().service()?;
    let next = prompt(&server, "make a file")?;
    board
        .until("the next server's wait", |board| {
            board
                .cards()
                .iter()
                .any(|card| *card.vendor_id == *next && state(card) == "needs_permission")
        })
        .await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_comes_late_to_opencode_sees_the_wait_and_the_servers_end() -> Result<()> {
    who_comes_late_sees_the_wait_and_the_servers_end(OPENCODE).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_comes_late_to_kilo_sees_the_wait_and_the_servers_end() -> Result<()> {
    who_comes_late_sees_the_wait_and_the_servers_end(KILO).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_awaits_input_also_for_who_comes_late() -> Result<()> {
    let home = Home::new()?;
    let questions = json!([{
        "question": "Which greeting?", "header": "Greeting",
        "options": [{ "label": "Hello", "description": "a" }, { "label": "Hi", "description": "b" }],
    }]);
    let script = Script::new()
        .calls("question", json!({ "questions": questions }))
        .then_always(Reply::says("Hello it is."));
    let model = Model::start(script)?;
    let server = Client::opencode(&home, &model)?.served().service()?;
    let mut board = observed(&[server.url()]);
    board.until_notice(&NoticeKind::Attached).await;
    prompt(&server, "ask me")?;
    board.until_state("awaiting_input").await;
    let mut late = observed(&[server.url()]);
    let card = late.until_state("awaiting_input").await;
    assert_eq!(card.requests[0].text.as_deref(), Some("Which greeting?"));
    let request = pending(&server, "question")?;
    server.post(&format!("/question/{request}/reply"), &json!({ "answers": [["Hello"]] }))?;
    // Sometimes a status is the last thing heard and the text is missing: then it is idle.
    for board in [&mut board, &mut late] {
        let is_over = |state: &String| state == "task_complete" || state == "idle";
        board.until("the turn to be over", |board| board.states().iter().all(is_over)).await;
        assert!(board.cards().iter().all(|card| card.requests.is_empty()));
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_password_is_learnt_from_the_process_and_never_told() -> Result<()> {
    let home = Home::new()?;
    let model = Model::start(Script::new())?;
    let client = Client::opencode(&home, &model)?.served();
    let server = client.variable("OPENCODE_SERVER_PASSWORD", "open-sesame").service()?;
    let mut without = observed(&[server.url()]);
    without.until_notice(&NoticeKind::Failed(Trouble::Locked)).await;
    let mut source = found_in(&home);
    let url = server.url();
    let attached = async {
        loop {
            match source.next().await.expect("a source goes on") {
                SourceNews::Notice(notice)
                    if notice.kind == NoticeKind::Attached && *notice.server == *url =>
                {
                    return;
                }
                news @ (SourceNews::Notice(_) | SourceNews::Signal(_)) => {
                    assert!(!format!("{news:?}").contains("sesame"))
                }
            }
        }
    };
    tokio::time::timeout(crate::board::PATIENCE, attached).await.expect("it is found");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_terminal_with_a_port_is_found() -> Result<()> {
    let home = Home::new()?;
    let model = Model::start(wants_a_file())?;
    let terminal = Client::opencode(&home, &model)?.arguments(["--port", "0"]).in_terminal()?;
    let mut board = discovered(&home);
    terminal.submit("make a file")?;
    let cwd = home.workspace().display().to_string();
    board
        .until("the terminal's wait", |board| {
            let waits = |card: &qd_broker::Card| state(card) == "needs_permission";
            board.cards().iter().any(|card| waits(card) && card.cwd.as_ref() == Some(&cwd))
        })
        .await;
    terminal.kill()?;
    board
        .until("the terminal's end", |board| {
            let ended = |card: &qd_broker::Card| state(card) == "session_ended";
            board.cards().iter().any(|card| ended(card) && card.cwd.as_ref() == Some(&cwd))
        })
        .await;
    assert!(board.signals.iter().any(|signal| signal.channel == Channel::Process));
    Ok(())
}
