//! The one loop with a real journal, a real spool and real files: what it took is there after any
//! end, once, and the board is what it would have been.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use qd_broker::Card;
use qd_broker::desk::{Answering, Commanding, Declined, Taken};
use qd_broker::news::BoardNews;
use qd_daemon::runtime::{
    Board, Delivered, Handle, ReplyOutcome, Runtime, Settings, WAITERS_MAX, Waiter,
};
use qd_hook_wire::{Agent, Mode};
use qd_hook_wire::{FrameId, HookReply};
use qd_host::now;
use qd_host::processes::Process;
use qd_session::decision::{By, Command, Decision, Scope, Standing};
use qd_session::event::{Entry, Event};
use qd_session::id::{CallId, DecisionId, ToolName};
use qd_session::moment::{Source, Timestamp};
use qd_session::monitor::{AgentEvent, Fact};
use qd_session::operator::layer::Icon;
use qd_session::operator::{Group, SubState};
use qd_sources::hook_intake::{Caller, Frame};
use qd_store::Journal;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(60);

struct Place {
    folder: PathBuf,
    next: AtomicU32,
}

impl Place {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("qd-runtime-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("home")).expect("a home");
        Self { folder, next: AtomicU32::new(1) }
    }

    fn settings(&self) -> Settings {
        Settings {
            home: self.folder.join("home"),
            environment: BTreeMap::new(),
            state: self.folder.join("state"),
            opencode_servers: Vec::new(),
            client_folders: Vec::new(),
            layers: self.folder.join("config/layers.toml"),
            policy: self.folder.join("config/policy.toml"),
        }
    }

    fn start(&self) -> Daemon {
        let (stop, stopped) = watch::channel(false);
        let (runtime, handle) = Runtime::open(&self.settings(), stopped).expect("it opens");
        let running = tokio::spawn(async move {
            runtime.run().await.expect("it runs");
        });
        Daemon { handle, stop, running }
    }

    /// A hook as a forwarder sends it, stamped now.
    fn hook(&self, session: &str, event: &str, more: &str) -> Frame {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        let payload =
            format!(r#"{{"session_id":"{session}","hook_event_name":"{event}","cwd":"/w"{more}}}"#);
        Frame {
            mode: Mode::Send,
            id: FrameId(u128::from(now().0 * 1_000_000) << 64 | u128::from(n)),
            at_ms: now().0,
            seq: n,
            harness: "claude-code".to_owned(),
            event: None,
            entry: None,
            by: None,
            agent: None,
            cut: None,
            whole: None,
            caller: Caller::Spooled,
            payload: payload.into_bytes(),
        }
    }

    fn spool(&self, frame: &Frame) {
        let body = frame.delivery().body;
        let spool = self.settings().spool();
        fs::create_dir_all(&spool).expect("a spool");
        let name = format!("{}-{}", frame.id, body.len());
        fs::write(spool.join(format!("{name}.part")), body).expect("written");
        let part = spool.join(format!("{name}.part"));
        fs::rename(part, spool.join(format!("{name}.frame"))).expect("renamed");
    }

    fn spooled(&self) -> usize {
        let frames = fs::read_dir(self.settings().spool()).expect("a spool");
        let is_frame = |path: &Path| path.extension().is_some_and(|ending| ending == "frame");
        frames.filter(|entry| is_frame(&entry.as_ref().expect("an entry").path())).count()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

struct Daemon {
    handle: Handle,
    stop: watch::Sender<bool>,
    running: JoinHandle<()>,
}

impl Daemon {
    async fn stop(self) {
        self.stop.send_replace(true);
        timeout(PATIENCE, self.running).await.expect("it stops").expect("without a panic");
    }

    /// As kill -9 would: nothing more is written.
    async fn kill(self) {
        self.running.abort();
        let _ = self.running.await;
    }

    async fn cards(&self) -> Vec<Card> {
        self.handle.board().await.expect("it lives").cards
    }

    /// Waits until it has read what was there.
    async fn caught_up(&self) {
        let read = async {
            while !self.handle.health().await.expect("it lives").caught_up {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, read).await.expect("it catches up");
    }

    /// Waits until a card looks like that.
    async fn until(&self, is: impl Fn(&Card) -> bool) -> Card {
        let Board { cards, mut changes, .. } = self.handle.board().await.expect("it lives");
        if let Some(card) = cards.into_iter().find(&is) {
            return card;
        }
        let found = async {
            loop {
                let change = changes.recv().await.expect("it lives");
                if let BoardNews::Shown(card) = &change.news
                    && is(card)
                {
                    return (**card).clone();
                }
            }
        };
        timeout(PATIENCE, found).await.expect("it comes to that")
    }
}

fn is(state: SubState) -> impl Fn(&Card) -> bool {
    move |card| card.agent_state.state == state
}

#[tokio::test]
async fn what_was_acknowledged_is_there_after_a_kill() {
    let place = Place::new("kill");
    let daemon = place.start();
    let prompt = place.hook("s-1", "UserPromptSubmit", r#","prompt":"fix the parser""#);
    assert_eq!(daemon.handle.deliver(prompt.clone()).await, Delivered::Taken);
    assert_eq!(daemon.handle.deliver(prompt.clone()).await, Delivered::Taken, "and forgotten");
    let before = daemon.cards().await;
    assert_eq!(before[0].agent_state.state, SubState::THINKING);
    daemon.kill().await;

    let daemon = place.start();
    assert_eq!(daemon.cards().await, before);
    let entries = daemon.handle.health().await.expect("it lives");
    assert_eq!(daemon.handle.deliver(prompt).await, Delivered::Taken);
    assert_eq!(daemon.handle.health().await.expect("it lives").hooks, entries.hooks, "known");
    daemon.stop().await;
    let (journal, _) = Journal::open(place.settings().journal(), Default::default()).expect("free");
    assert_eq!(journal.deliveries().expect("readable").len(), 1);
}

#[tokio::test]
async fn a_forwarder_that_nobody_answers_is_journaled_once_and_released() {
    let place = Place::new("wait");
    let request = r#","tool_name":"Bash","tool_input":{"command":"rm x"}"#;
    // Without a terminal nobody is to be waited for.
    let entry = || Some("sdk-cli".to_owned());
    let waits = |frame| Frame { mode: Mode::Wait, entry: entry(), ..frame };
    let asked = waits(place.hook("s-1", "PermissionRequest", request));
    let spooled = waits(place.hook("s-2", "PermissionRequest", request));
    place.spool(&spooled);
    for _ in 0..2 {
        let daemon = place.start();
        for frame in [&asked, &spooled, &asked] {
            let mut waiter = loop {
                // The one in the spool may be on its way to the journal: then it comes again.
                if let Some(waiter) = daemon.handle.wait(frame.clone()).await {
                    break waiter;
                }
            };
            let told = timeout(PATIENCE, waiter.told()).await.expect("at once").expect("told");
            assert_eq!(told.reply, HookReply::release());
            waiter.leave().await;
        }
        assert_eq!(daemon.cards().await.len(), 2, "it told of what it waits for");
        daemon.kill().await;
    }
    let (journal, _) = Journal::open(place.settings().journal(), Default::default()).expect("free");
    assert_eq!(journal.deliveries().expect("readable").len(), 2);
}

#[tokio::test]
async fn a_stop_hook_that_waits_is_no_news_now_or_after_a_restart() {
    let place = Place::new("rewake");
    let daemon = place.start();
    let prompt = place.hook("s-1", "UserPromptSubmit", r#","prompt":"go""#);
    assert_eq!(daemon.handle.deliver(prompt).await, Delivered::Taken);
    let event = Some("Stop".to_owned());
    let late = Frame { mode: Mode::Wait, event, ..place.hook("s-1", "Stop", "") };
    daemon.handle.wait(late).await.expect("taken").leave().await;
    let before = daemon.cards().await;
    assert_eq!(before[0].agent_state.state, SubState::THINKING);
    daemon.kill().await;
    let daemon = place.start();
    assert_eq!(daemon.cards().await, before);
    daemon.stop().await;
}

#[tokio::test]
async fn an_answerer_hears_of_each_who_waits_and_learns_what_became_of_its_answer() {
    let place = Place::new("answer");
    let (stop, stopped) = watch::channel(false);
    let (mut runtime, handle) = Runtime::open(&place.settings(), stopped).expect("it opens");
    let (answerer, mut heard) = mpsc::channel(4);
    runtime.keep_waiters(answerer);
    let running = tokio::spawn(async move { runtime.run().await.expect("it runs") });
    let frame = Frame { mode: Mode::Wait, ..place.hook("s-1", "PermissionRequest", "") };
    let reply = || HookReply::print("yes").expect("short");

    let mut waiter = handle.wait(frame.clone()).await.expect("taken");
    assert_eq!(heard.recv().await, Some(frame.clone()));
    let told = async {
        let told = waiter.told().await.expect("told");
        assert_eq!(told.reply, reply());
        told.outcome.send(ReplyOutcome::Delivered).expect("somebody asks");
    };
    let (outcome, ()) = tokio::join!(handle.reply(frame.id, reply()), told);
    assert_eq!(outcome, Ok(ReplyOutcome::Delivered));

    let waiter = handle.wait(frame.clone()).await.expect("it comes again");
    assert_eq!(heard.recv().await, Some(frame.clone()));
    waiter.leave().await;
    assert_eq!(handle.reply(frame.id, reply()).await, Ok(ReplyOutcome::Failed), "it is gone");
    Daemon { handle, stop, running }.stop().await;
}

/// Somebody waits for an answer in a terminal, and the operator sees it.
async fn asks(place: &Place, daemon: &Daemon) -> (Frame, Waiter, Card) {
    let request = r#","tool_name":"Bash","tool_input":{"command":"rm x"}"#;
    let frame = place.hook("s-1", "PermissionRequest", request);
    let frame = Frame { mode: Mode::Wait, entry: Some("cli".to_owned()), ..frame };
    let waiter = daemon.handle.wait(frame.clone()).await.expect("taken");
    let card = daemon.until(|card| way(card) == Some("hook")).await;
    (frame, waiter, card)
}

fn way(card: &Card) -> Option<&'static str> {
    card.requests.first().and_then(|request| request.way)
}

/// Allows what the card asks, in a task of its own: it is told when it is known what became of it.
fn allows(daemon: &Daemon, card: &Card, name: &str) -> JoinHandle<Result<Taken, Declined>> {
    let answering = Answering {
        decision: DecisionId::new(name),
        request: card.requests[0].key.clone().expect("a key"),
        by: By { who: "operator".into(), device: "phone".into() },
        rule: None,
        answer: Decision::Allow { input: None, scope: Scope::Once },
        revision: None,
        key: None,
    };
    let handle = daemon.handle.clone();
    tokio::spawn(async move { handle.decide(answering).await.expect("it lives") })
}

#[tokio::test]
async fn a_hook_that_an_answer_did_not_reach_is_no_way_any_more() {
    let place = Place::new("stale");
    let daemon = place.start();
    let (_, mut waiter, card) = asks(&place, &daemon).await;
    let taken = allows(&daemon, &card, "d1");
    let told = waiter.told().await.expect("told");
    told.outcome.send(ReplyOutcome::Failed).expect("somebody asks");
    waiter.leave().await;
    let taken = taken.await.expect("no panic").expect("taken");
    assert!(matches!(taken.standing, Standing::Failed { .. }), "{taken:?}");
    let card = daemon.until(|card| way(card).is_none()).await;
    assert!(card.requests[0].why_not.is_some(), "{:?}", card.requests[0]);
    daemon.stop().await;
}

#[tokio::test]
async fn a_stop_hook_that_a_prompt_did_not_reach_takes_no_other() {
    let place = Place::new("unprompted");
    let daemon = place.start();
    let frame = place.hook("s-1", "Stop", "");
    let frame = Frame { mode: Mode::Wait, entry: Some("cli".to_owned()), ..frame };
    let mut waiter = daemon.handle.wait(frame).await.expect("taken");
    let card = daemon.until(|card| card.capabilities.can_prompt).await;
    let commanding = Commanding {
        decision: DecisionId::new("d1"),
        session: card.session_id,
        by: By { who: "operator".into(), device: "phone".into() },
        command: Command::Prompt { text: "go on".into() },
        key: None,
    };
    let handle = daemon.handle.clone();
    let taken = tokio::spawn(async move { handle.command(commanding).await });
    drop(waiter.told().await.expect("told"));
    waiter.leave().await;
    taken.await.expect("no panic").expect("it lives").expect("taken");
    daemon.until(|card| !card.capabilities.can_prompt).await;
    daemon.stop().await;
}

#[tokio::test]
async fn a_hook_that_comes_back_before_its_broken_connection_is_known_gets_its_answer() {
    let place = Place::new("returns");
    let daemon = place.start();
    let (frame, mut old, card) = asks(&place, &daemon).await;
    let taken = allows(&daemon, &card, "d1");
    let lost = old.told().await.expect("told");
    let mut new = daemon.handle.wait(frame).await.expect("it comes again");
    let reply = lost.reply.clone();
    lost.outcome.send(ReplyOutcome::Lost).expect("somebody asks");
    old.leave().await;
    assert_eq!(taken.await.expect("no panic").expect("taken").standing, Standing::Unsettled);
    let told = timeout(PATIENCE, new.told()).await.expect("in time").expect("told");
    assert_eq!(told.reply, reply);
    told.outcome.send(ReplyOutcome::Delivered).expect("somebody asks");
    daemon.stop().await;
}

#[tokio::test]
async fn a_forwarder_that_found_no_room_is_no_way() {
    let place = Place::new("full");
    let daemon = place.start();
    let waits = |frame| Frame { mode: Mode::Wait, entry: Some("cli".to_owned()), ..frame };
    let mut waiters = Vec::new();
    for n in 0..WAITERS_MAX {
        let frame = waits(place.hook(&format!("s-{n}"), "Stop", ""));
        waiters.push(daemon.handle.wait(frame).await.expect("taken"));
    }
    let request = r#","tool_name":"Bash","tool_input":{"command":"rm x"}"#;
    let late = waits(place.hook("late", "PermissionRequest", request));
    let mut late = daemon.handle.wait(late).await.expect("taken");
    assert_eq!(late.told().await.expect("told").reply, HookReply::release());
    let card = daemon.until(|card| &*card.vendor_id == "late").await;
    assert_eq!(way(&card), None, "{:?}", card.requests);
    daemon.stop().await;
}

#[tokio::test]
async fn a_request_under_review_when_it_was_killed_is_seen_to_need_a_person() {
    let place = Place::new("review");
    let daemon = place.start();
    for hook in [
        place.hook("s-1", "UserPromptSubmit", r#","prompt":"go""#),
        place.hook(
            "s-1",
            "PermissionRequest",
            r#","tool_name":"Bash","tool_input":{"command":"rm x"},"tool_use_id":"t-1""#,
        ),
    ] {
        assert_eq!(daemon.handle.deliver(hook).await, Delivered::Taken);
    }
    // The 400 ms of silence that decide have not passed, and the handler that counts them goes.
    daemon.kill().await;
    let daemon = place.start();
    let card = daemon.until(is(SubState::NEEDS_PERMISSION)).await;
    assert_eq!(card.requests.len(), 1);
    daemon.stop().await;
}

#[tokio::test]
async fn the_spool_is_drained_at_the_start_and_while_it_runs_each_frame_once() {
    let place = Place::new("spool");
    let first = place.hook("s-1", "UserPromptSubmit", r#","prompt":"one""#);
    place.spool(&first);
    let daemon = place.start();
    daemon.until(is(SubState::THINKING)).await;
    // Its acknowledgement was lost, so the forwarder spooled it as well.
    let second = place.hook("s-2", "UserPromptSubmit", r#","prompt":"two""#);
    assert_eq!(daemon.handle.deliver(second.clone()).await, Delivered::Taken);
    place.spool(&second);
    let third = place.hook("s-3", "UserPromptSubmit", r#","prompt":"three""#);
    place.spool(&third);
    daemon.until(|card| &*card.vendor_id == "s-3").await;
    let health = daemon.handle.health().await.expect("it lives");
    assert_eq!((health.hooks, health.spooled), (3, 2));
    daemon.stop().await;
    assert_eq!(place.spooled(), 0);
}

#[tokio::test]
async fn what_lies_in_the_spool_is_taken_before_what_comes_over_the_socket() {
    let place = Place::new("order");
    let hooks: Vec<Frame> =
        (0..4).map(|n| place.hook("s-1", "Stop", &format!(r#","n":{n}"#))).collect();
    place.spool(&hooks[0]);
    let daemon = place.start();
    assert_eq!(daemon.handle.deliver(hooks[1].clone()).await, Delivered::Taken);
    // A forwarder that was refused leaves it there, and its agent goes on at once.
    place.spool(&hooks[2]);
    assert_eq!(daemon.handle.deliver(hooks[3].clone()).await, Delivered::Taken);
    daemon.stop().await;
    let (journal, _) = Journal::open(place.settings().journal(), Default::default()).expect("free");
    let taken = journal.deliveries().expect("readable");
    let taken: Vec<Frame> = taken.iter().filter_map(Frame::delivered).collect();
    assert_eq!(taken, hooks);
}

#[tokio::test]
async fn a_copy_in_the_spool_goes_when_the_frame_from_the_socket_is_written() {
    let place = Place::new("copies");
    let daemon = place.start();
    let hooks: Vec<Frame> = (0..64).map(|n| place.hook(&format!("s-{n}"), "Stop", "")).collect();
    let delivered = hooks.iter().map(|hook| {
        let (handle, hook) = (daemon.handle.clone(), hook.clone());
        tokio::spawn(async move { handle.deliver(hook).await })
    });
    let delivered: Vec<_> = delivered.collect();
    // Each forwarder heard nothing for too long, also of those that are taken just now.
    hooks.iter().for_each(|hook| place.spool(hook));
    for one in delivered {
        one.await.expect("answered");
    }
    let gone = async {
        while place.spooled() > 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, gone).await.expect("nothing is left behind");
    assert_eq!(daemon.handle.health().await.expect("it lives").hooks, 64);
    daemon.stop().await;
}

#[tokio::test]
async fn a_hook_of_nobody_we_know_is_kept_counted_and_changes_nothing() {
    let place = Place::new("unknown");
    let daemon = place.start();
    let frame = Frame { harness: "somebody".to_owned(), ..place.hook("s-1", "Stop", "") };
    assert_eq!(daemon.handle.deliver(frame).await, Delivered::Taken);
    let broken = Frame { payload: b"{\xff half".to_vec(), ..place.hook("s-1", "Stop", "") };
    assert_eq!(daemon.handle.deliver(broken).await, Delivered::Taken);
    let health = daemon.handle.health().await.expect("it lives");
    assert_eq!((health.unknown, health.hooks), (1, 2));
    assert_eq!(daemon.cards().await, []);
    daemon.stop().await;
}

#[tokio::test]
async fn a_dismissed_session_stays_dismissed_after_a_restart() {
    let place = Place::new("dismiss");
    let daemon = place.start();
    let stop = r#","stop_hook_active":false,"last_assistant_message":"Shall I go on?""#;
    for hook in [
        place.hook("s-1", "UserPromptSubmit", r#","prompt":"go""#),
        place.hook("s-1", "Stop", stop),
    ] {
        assert_eq!(daemon.handle.deliver(hook).await, Delivered::Taken);
    }
    daemon.until(|card| card.agent_state.group == Group::NeedsYou).await;
    daemon.handle.dismiss("s-1").await.expect("it lives").expect("it is there");
    assert!(daemon.handle.dismiss("nobody").await.expect("it lives").is_err());
    let before = daemon.cards().await;
    assert_eq!(before[0].agent_state.group, Group::Delivered);
    daemon.kill().await;
    let daemon = place.start();
    assert_eq!(daemon.cards().await, before);
    daemon.stop().await;
}

#[tokio::test]
async fn transcripts_that_are_read_again_tell_nothing_new() {
    let place = Place::new("files");
    let capture = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../harness/captured/claude-code/tui-permission-allow/signals.jsonl");
    let transcript = place.folder.join("home/.claude/projects/-w/5f0.jsonl");
    fs::create_dir_all(transcript.parent().expect("a folder")).expect("made");
    let lines = fs::read_to_string(capture).expect("a capture");
    let lines = lines.lines().filter_map(|line| {
        let signal: serde_json::Value = serde_json::from_str(line).expect("JSON");
        (signal["source"] == "transcript").then(|| signal["payload"].clone())
    });
    let text: String = lines
        .map(|line| line.as_str().map_or_else(|| line.to_string(), str::to_owned) + "\n")
        .collect();
    // Whoever was quiet for a day is history and has no card: it happens an hour ago.
    let recorded = "2026-11-15T18:55";
    assert!(text.contains(recorded), "the capture has a transcript");
    let hour_ago = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(1);
    let text = text.replace(recorded, &hour_ago.strftime("%Y-%m-%dT%H:%M").to_string());
    fs::write(&transcript, text).expect("written");
    let mut told = Vec::new();
    for _ in 0..3 {
        let daemon = place.start();
        daemon.until(|_| true).await;
        daemon.caught_up().await;
        let cards = daemon.cards().await;
        daemon.stop().await;
        let journal = place.settings().journal();
        let (_, opened) = Journal::open(journal, Default::default()).expect("free");
        assert!(opened.entries > 0);
        told.push((cards, opened.entries));
    }
    assert_eq!(told[0], told[1]);
    assert_eq!(told[0], told[2]);
}

/// A finished session of so long ago in a file that was written just now, as a copy is.
fn copied(place: &Place, session: &str, ago: jiff::SignedDuration, last: &str) {
    let folder = place.folder.join("home/.claude/projects/-w");
    fs::create_dir_all(&folder).expect("made");
    fs::create_dir_all(place.folder.join("home/.claude/sessions")).expect("made");
    let at = (jiff::Timestamp::now() - ago).to_string();
    let mode = serde_json::json!({"type": "permission-mode", "permissionMode": "default",
        "sessionId": session});
    let prompt = serde_json::json!({"type": "user", "sessionId": session, "uuid": "u1",
        "timestamp": at, "cwd": "/w", "message": {"role": "user", "content": session}});
    let said = serde_json::json!({"type": "assistant", "sessionId": session, "uuid": "u2",
        "timestamp": at, "cwd": "/w", "isApiErrorMessage": last.contains("limit"),
        "error": if last.contains("limit") { Some("rate_limit") } else { None },
        "message": {"id": "m1", "role": "assistant", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": last}]}});
    let text = format!("{mode}\n{prompt}\n{said}\n");
    fs::write(folder.join(format!("{session}.jsonl")), text).expect("written");
}

#[tokio::test]
async fn copies_of_old_sessions_need_nobody() {
    let place = Place::new("copies");
    for nth in 0..20 {
        let days = jiff::SignedDuration::from_hours(24 * (2 + nth));
        copied(&place, &format!("old-{nth}"), days, "Which one do you want?");
    }
    let hours = jiff::SignedDuration::from_hours(8);
    copied(&place, "limited", hours, "You've hit your session limit");
    let daemon = place.start();
    daemon.caught_up().await;
    let told = daemon.cards().await;
    let told: Vec<(&str, &str)> = told
        .iter()
        .map(|card| (card.vendor_id.as_ref(), card.agent_state.state.as_str()))
        .collect();
    assert_eq!(told, [("limited", "session_ended")]);
    // One that is copied while the daemon runs is as old.
    copied(&place, "later", hours, "Which one do you want?");
    let ended = |card: &Card| card.agent_state.state == SubState::SESSION_ENDED;
    daemon.until(|card| &*card.vendor_id == "later" && ended(card)).await;
    daemon.stop().await;
}

/// The clock was set back by an hour while no daemon ran: the journal is of the future.
#[tokio::test]
async fn a_journal_of_the_future_freezes_no_session() {
    let place = Place::new("future");
    let daemon = place.start();
    let prompt = place.hook("s-1", "UserPromptSubmit", r#","prompt":"go""#);
    assert_eq!(daemon.handle.deliver(prompt).await, Delivered::Taken);
    let card = daemon.until(is(SubState::THINKING)).await;
    assert_eq!(daemon.handle.health().await.expect("it lives").set_back, None);
    daemon.stop().await;
    let (journal, _) = Journal::open(place.settings().journal(), Default::default()).expect("free");
    let hour_ahead = Timestamp(now().0 + 3_600_000);
    let fact =
        Fact::ToolStarted { call: CallId::new("c1"), tool: ToolName::new("Bash"), about: None };
    let event = AgentEvent::main(hour_ahead, Source::Hook, fact);
    let entry = Entry::new(card.session_id, hour_ahead, Event::Observed { event });
    journal.append(vec![entry]).wait().expect("written");
    drop(journal);
    let daemon = place.start();
    let health = daemon.handle.health().await.expect("it lives");
    assert!(health.set_back.is_some_and(|set_back| set_back.by_ms > 3_500_000), "{health:?}");
    daemon.until(is(SubState::ACTING)).await;
    let stop = r#","stop_hook_active":false,"last_assistant_message":"All done.""#;
    assert_eq!(daemon.handle.deliver(place.hook("s-1", "Stop", stop)).await, Delivered::Taken);
    daemon.until(is(SubState::TASK_COMPLETE)).await;
    daemon.stop().await;
}

#[tokio::test]
async fn of_a_thousand_session_files_found_at_the_start_each_has_its_card() {
    const FILES: usize = 1_000;
    let place = Place::new("many");
    let folder = place.folder.join("home/.claude/projects/-w");
    fs::create_dir_all(&folder).expect("made");
    for nth in 0..FILES {
        let line = format!(
            r#"{{"type":"user","sessionId":"s{nth}","uuid":"u{nth}","cwd":"/w","message":{{"role":"user","content":"prompt {nth}"}}}}"#
        );
        fs::write(folder.join(format!("s{nth}.jsonl")), line + "\n").expect("written");
    }
    let daemon = place.start();
    daemon.caught_up().await;
    let mut titles: Vec<String> =
        daemon.cards().await.into_iter().filter_map(|card| card.title).collect();
    titles.sort_by_key(|title| title["prompt ".len()..].parse::<usize>().expect("a number"));
    let expected: Vec<String> = (0..FILES).map(|nth| format!("prompt {nth}")).collect();
    assert_eq!(titles, expected);
    daemon.stop().await;
}

/// An agent that lives until it is killed.
fn agent() -> (std::process::Child, Agent) {
    let mut command = std::process::Command::new("cat");
    let child = command.stdin(std::process::Stdio::piped()).spawn().expect("it starts");
    let process = Process::with_pid(child.id()).expect("it lives");
    (child, Agent { pid: process.pid, started: Some(process.start) })
}

#[tokio::test]
async fn the_end_of_the_process_that_ran_a_hook_ends_its_session_also_when_nobody_looked() {
    let place = Place::new("holder");
    let daemon = place.start();
    let (mut first, of_first) = agent();
    let (mut second, of_second) = agent();
    for (session, agent) in [("s-1", of_first), ("s-2", of_second)] {
        let prompt = place.hook(session, "UserPromptSubmit", r#","prompt":"go""#);
        let prompt = Frame { agent: Some(agent), ..prompt };
        assert_eq!(daemon.handle.deliver(prompt).await, Delivered::Taken);
    }
    let ended = |session: &'static str| {
        move |card: &Card| {
            &*card.vendor_id == session && card.agent_state.state == SubState::SESSION_ENDED
        }
    };
    first.kill().expect("killed");
    daemon.until(ended("s-1")).await;
    daemon.kill().await;
    second.kill().expect("killed");
    second.wait().expect("gone");
    let daemon = place.start();
    daemon.until(ended("s-2")).await;
    daemon.stop().await;
    first.wait().expect("gone");
}

#[tokio::test]
async fn the_operators_layers_are_read_again_when_they_change() {
    let place = Place::new("layers");
    let layers = place.settings().layers;
    let folder = layers.parent().expect("a folder").to_owned();
    let daemon = place.start();
    let hook = |event, more| place.hook("s-1", event, more);
    daemon.handle.deliver(hook("UserPromptSubmit", r#","prompt":"go""#)).await;
    let tool = r#","tool_name":"Bash","tool_use_id":"t","tool_input":{"command":"cargo test"}"#;
    daemon.handle.deliver(hook("PreToolUse", tool)).await;
    let reads = |label: &'static str| move |card: &Card| card.agent_state.label == label;
    let built_in = daemon.until(reads("Running tests")).await;
    assert_eq!(built_in.agent_state.core_label.as_deref(), Some("Running Bash"));

    // As an editor saves it: the folder is new, and the file comes under another name.
    fs::create_dir_all(&folder).expect("made");
    fs::write(folder.join("new"), "[[rule]]\nlabel = \"Mine\"\nicon = \"star\"\n")
        .expect("written");
    fs::rename(folder.join("new"), &layers).expect("renamed");
    let mine = daemon.until(reads("Mine")).await;
    assert_eq!(mine.icon, Some(Icon::Star));
    assert!(mine.agent_state.group == built_in.agent_state.group && is(SubState::ACTING)(&mine));

    fs::write(&layers, "[[rule]\n").expect("written");
    daemon.until(reads("Running tests")).await;
    fs::write(&layers, "[[rule]]\nlabel = \"Mine\"\n").expect("written");
    daemon.until(reads("Mine")).await;
    fs::remove_file(&layers).expect("removed");
    daemon.until(reads("Running tests")).await;

    let done = r#","tool_name":"Bash","tool_use_id":"t","tool_input":{"command":"cargo test"},"error":"Exit code 101\nfailed""#;
    daemon.handle.deliver(hook("PostToolUseFailure", done)).await;
    daemon.handle.deliver(hook("Stop", r#","last_assistant_message":"I changed it.""#)).await;
    let failed = daemon.until(reads("Finished, tests fail")).await;
    assert_eq!(failed.icon, Some(Icon::TestsFailed));
    daemon.stop().await;
}
