//! Codex's own daemon, with a terminal attached to it.

use std::fs;
use std::path::PathBuf;

use qd_broker::Card;
use qd_harness::{Channel, Direction, Harness};
use qd_host::processes::Process;
use qd_sources::codex_daemon::CodexDaemon;
use qd_sources::live::{NoticeKind, Trouble};
use qd_sources::places::{PlaceKind, places};
use qd_testbed::{Client, Gate, Home, Key, Model, Reply, Result, Script, Terminal};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::net::UnixStream;

use crate::board::{Board, Source, now};

pub const DIALOG: &str = "Would you like to run the following command?";

fn socket(home: &Home) -> PathBuf {
    let places = places(&home.path(), &Default::default());
    let mut sockets = places.into_iter().filter(|place| place.kind == PlaceKind::Socket);
    sockets.find(|place| place.harness == Harness::Codex).expect("Codex has one").path
}

pub fn observed(home: &Home) -> Board {
    Board::of(Source::Codex(CodexDaemon::start(socket(home), now).unwrap()))
}

async fn daemon(home: &Home) -> Process {
    let stream = UnixStream::connect(socket(home)).await.unwrap();
    let pid = stream.peer_cred().unwrap().pid().unwrap();
    Process::with_pid(u32::try_from(pid).unwrap()).unwrap()
}

/// A script that wants to write outside, and says a word after it.
fn wants_out(home: &Home) -> Script {
    let command = format!("touch {}", home.path().join("made").display());
    let input = json!({
        "cmd": command,
        "sandbox_permissions": "require_escalated",
        "justification": "Need to write outside the workspace",
    });
    Script::new().calls("exec_command", input).says("The file is there.")
}

fn waiting(home: &Home, model: &Model) -> Result<Terminal> {
    let codex = Client::codex(home, model)?.in_terminal()?;
    codex.submit("make a file outside")?;
    codex.wait_for_text(DIALOG)?;
    Ok(codex)
}

/// Who made the session, by its rollout.
fn originator(card: &Card) -> String {
    let path = card.transcript.as_ref().expect("its rollout is known");
    let rollout = fs::read_to_string(path).unwrap();
    let meta: Value = serde_json::from_str(rollout.lines().next().unwrap()).unwrap();
    meta["payload"]["originator"].as_str().unwrap_or_default().to_owned()
}

/// Only questions that read: nothing that steers, subscribes or answers.
fn only_looked(board: &Board) {
    let asked = board.signals.iter().filter(|signal| signal.direction == Direction::ToAgent);
    for signal in asked {
        let message: Value = serde_json::from_slice(&signal.payload).unwrap();
        let method = message["method"].as_str().expect("no answers");
        let reads = ["initialize", "initialized", "thread/loaded/list", "thread/read"];
        assert!(reads.contains(&method), "{method}");
    }
    let requests = board.signals.iter().filter(|signal| {
        let message: Value = serde_json::from_slice(&signal.payload).unwrap_or_default();
        signal.direction == Direction::FromAgent
            && signal.channel == Channel::AppServer
            && message.get("id").is_some()
            && message.get("method").is_some()
    });
    assert_eq!(requests.count(), 0, "who does not subscribe is not asked");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_in_a_terminal_is_seen_at_once_and_ends_when_the_terminal_answers() -> Result<()> {
    let home = Home::new()?;
    // Before there is any daemon, or even a folder for its socket.
    let mut board = observed(&home);
    let model = Model::start(wants_out(&home))?;
    let codex = waiting(&home, &model)?;
    let card = board.until_state("needs_permission").await;
    assert_eq!(card.cwd.as_deref(), home.workspace().to_str());
    codex.press_until_gone(Key::Enter, DIALOG)?;
    codex.wait_for_text("The file is there.")?;
    board
        .until("the turn's end", |board| !board.states().contains(&"needs_permission".into()))
        .await;
    // What was last said is in its rollout; the daemon tells only that the turn is over.
    let card = board.until_state("idle").await;
    assert_eq!(board.cards().len(), 1, "the thread that makes up a title is no session");
    assert_eq!(originator(&card), "codex-tui", "we leave no trace");
    only_looked(&board);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_attaches_late_sees_the_wait_and_changes_nothing() -> Result<()> {
    let home = Home::new()?;
    let model = Model::start(wants_out(&home))?;
    let codex = waiting(&home, &model)?;
    for _ in 0..2 {
        let mut board = observed(&home);
        let card = board.until_state("needs_permission").await;
        assert_eq!(card.cwd.as_deref(), home.workspace().to_str());
        board.until("attached", |board| board.count(&NoticeKind::Attached) == 1).await;
        only_looked(&board);
        assert!(codex.screen().contains(DIALOG));
    }
    assert!(!home.path().join("made").exists());
    codex.press_until_gone(Key::Enter, DIALOG)?;
    codex.wait_for_text("The file is there.")?;
    Ok(())
}

/// A daemon of no terminal yet: nobody has greeted it when we find it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_finds_a_daemon_first_lets_the_terminal_greet_it() -> Result<()> {
    let home = Home::new()?;
    let model = Model::start(wants_out(&home))?;
    let start = ["app-server", "daemon", "start"];
    let started = Client::codex(&home, &model)?.arguments(start).headless()?;
    assert!(started.wait_for_exit()?.success());
    let mut board = observed(&home);
    let codex = waiting(&home, &model)?;
    let card = board.until_state("needs_permission").await;
    // The daemon takes its first client for the author of all that follows.
    assert_eq!(originator(&card), "codex-tui");
    codex.press_until_gone(Key::Enter, DIALOG)?;
    board.until_state("idle").await;
    only_looked(&board);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_daemon_ends_its_sessions_and_its_successor_is_found() -> Result<()> {
    let home = Home::new()?;
    let gate = Gate::new();
    let held = Reply::says("Never said.").held_before_start(&gate);
    let model = Model::start(Script::new().when_user_says("think for long", held))?;
    let mut board = observed(&home);
    let codex = Client::codex(&home, &model)?.in_terminal()?;
    codex.submit("think for long")?;
    board.until_state("thinking").await;
    let first = daemon(&home).await;
    kill_process(Pid::from_raw(first.pid as i32).unwrap(), Signal::KILL).unwrap();
    board.until_state("session_ended").await;
    board
        .until("a lost connection", |board| {
            board.notices.iter().any(|notice| matches!(notice, NoticeKind::Failed(Trouble::Closed)))
        })
        .await;
    drop(codex);
    gate.open();
    model.then(wants_out(&home));
    let codex = waiting(&home, &model)?;
    board.until_state("needs_permission").await;
    assert_ne!(daemon(&home).await, first);
    codex.press_until_gone(Key::Enter, DIALOG)?;
    board
        .until("the wait's end", |board| !board.states().contains(&"needs_permission".into()))
        .await;
    only_looked(&board);
    Ok(())
}
