//! Who holds which session, with the real clients: how they begin, end, are killed and resumed.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use qd_harness::{Channel, Harness};
use qd_host::processes::Process;
use qd_session::moment::Timestamp;
use qd_sources::files::{Files, News};
use qd_sources::holders::{HolderNews, Holders};
use qd_sources::places::places;
use qd_testbed::{Client, Home, Key, Model, Reply, Script, Terminal};
use serde_json::{Value, json};
use tokio::time::timeout;

/// Much longer than anything here takes; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_secs(60);

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp(u64::try_from(since.as_millis()).unwrap())
}

/// A client's home and what is known of it.
struct Watched {
    home: Home,
    model: Model,
    holders: Holders,
}

impl Watched {
    fn new() -> Self {
        let home = Home::new().unwrap();
        let model = Model::start(Script::new().then_always(Reply::says("Good evening."))).unwrap();
        let holders = holders(&home.path());
        Self { home, model, holders }
    }

    fn codex(&self, arguments: &[&str]) -> Terminal {
        let codex = Client::codex(&self.home, &self.model).unwrap().argument("--no-daemon");
        codex.arguments(arguments.iter().copied()).in_terminal().unwrap()
    }

    fn gemini(&self, arguments: &[&str]) -> Terminal {
        let gemini = Client::gemini_cli(&self.home, &self.model).unwrap();
        gemini.arguments(arguments.iter().copied()).in_terminal().unwrap()
    }

    async fn next(&mut self) -> Value {
        next(&mut self.holders).await
    }
}

fn holders(home: &Path) -> Holders {
    Holders::start(&places(home, &BTreeMap::new()), now).unwrap()
}

async fn next(holders: &mut Holders) -> Value {
    let news = timeout(PATIENCE, holders.next()).await.expect("there is news");
    match news.expect("it goes on") {
        HolderNews::Signal(signal) => {
            assert_eq!(signal.signal().channel, Channel::Process);
            serde_json::from_slice(&signal.payload).unwrap()
        }
        other @ (HolderNews::Notice(_) | HolderNews::Stopped(_)) => panic!("{other:?}"),
    }
}

fn process(terminal: &Terminal) -> Process {
    Process::with_pid(terminal.pid().unwrap()).unwrap()
}

fn seen(session: &str, process: Process) -> Value {
    json!({"sessionId": session, "pid": process.pid, "procStart": process.start})
}

fn exited(session: &str, process: Process) -> Value {
    let mut exited = seen(session, process);
    exited["exited"] = true.into();
    exited
}

fn session(report: &Value) -> String {
    report["sessionId"].as_str().expect("a session").to_owned()
}

#[tokio::test]
async fn codex_begins_and_quits() {
    let mut watched = Watched::new();
    let codex = watched.codex(&[]);
    let process = process(&codex);
    let begun = watched.next().await;
    let thread = session(&begun);
    assert_eq!(begun, seen(&thread, process));
    codex.submit("good evening").unwrap();
    codex.wait_for_text("Good evening.").unwrap();
    codex.submit("/quit").unwrap();
    assert_eq!(watched.next().await, exited(&thread, process));
    codex.wait_for_exit().unwrap();
}

#[tokio::test]
async fn codex_is_killed_and_resumed() {
    let mut watched = Watched::new();
    let killed = watched.codex(&[]);
    let first = process(&killed);
    let thread = session(&watched.next().await);
    killed.submit("good evening").unwrap();
    killed.wait_for_text("Good evening.").unwrap();
    killed.kill().unwrap();
    assert_eq!(watched.next().await, exited(&thread, first));
    // One who comes later finds only the lock that was left.
    let mut later = holders(&watched.home.path());
    assert_eq!(next(&mut later).await, json!({"sessionId": thread, "exited": true}));

    let resumed = watched.codex(&["resume", "--last"]);
    let second = process(&resumed);
    assert_eq!(watched.next().await, seen(&thread, second));
    assert_eq!(next(&mut later).await, seen(&thread, second));
    // And one who comes now.
    let mut latest = holders(&watched.home.path());
    assert_eq!(next(&mut latest).await, seen(&thread, second));
    resumed.kill().unwrap();
    for holders in [&mut watched.holders, &mut later, &mut latest] {
        assert_eq!(next(holders).await, exited(&thread, second));
    }
}

#[tokio::test]
async fn a_codex_daemon_holds_the_threads_of_its_terminals() {
    let mut watched = Watched::new();
    let codex = Client::codex(&watched.home, &watched.model).unwrap().in_terminal().unwrap();
    let begun = watched.next().await;
    let thread = session(&begun);
    let daemon = begun["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok()).unwrap();
    let daemon = Process::with_pid(daemon).unwrap();
    assert_eq!(begun, seen(&thread, daemon));
    assert_ne!(daemon, process(&codex));
    let killed = Command::new("kill").args(["-9", &daemon.pid.to_string()]).status().unwrap();
    assert!(killed.success());
    assert_eq!(watched.next().await, exited(&thread, daemon));
}

/// The chats of the only project.
fn chats(home: &Path) -> Vec<PathBuf> {
    let folder = home.join(".gemini/tmp/acme/chats");
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// What Gemini CLI wrote, as it is read from the disk, until a holder is told.
async fn touched_until_told(watched: &mut Watched, files: &mut Files) -> Value {
    let told = async {
        loop {
            tokio::select! {
                news = files.next() => match news.expect("it goes on") {
                    News::Signal(signal) if signal.harness == Harness::GeminiCli => {
                        watched.holders.touched(&signal.path);
                    }
                    News::Signal(_) | News::CaughtUp => {}
                    other @ (News::Notice(_) | News::Stopped(_)) => panic!("{other:?}"),
                },
                report = next(&mut watched.holders) => return report,
            }
        }
    };
    timeout(PATIENCE, told).await.expect("a holder is told")
}

fn files(home: &Path) -> Files {
    Files::start(&places(home, &BTreeMap::new()), BTreeMap::new(), now).unwrap()
}

/// Enter chooses from the menu first, which shows what the command does, and then sends it.
fn command(gemini: &Terminal, command: &str, about: &str) {
    gemini.type_text(command).unwrap();
    gemini.wait_for_text(about).unwrap();
    gemini.press_until_gone(Key::Enter, about).unwrap();
}

#[tokio::test]
async fn gemini_begins_quits_and_is_killed() {
    let mut watched = Watched::new();
    let mut files = files(&watched.home.path());
    let gemini = watched.gemini(&[]);
    let first = process(&gemini);
    gemini.submit("good evening").unwrap();
    let begun = touched_until_told(&mut watched, &mut files).await;
    let chat = session(&begun);
    assert_eq!(begun, seen(&chat, first));
    gemini.wait_for_text("Good evening.").unwrap();
    command(&gemini, "/quit", "Exit the cli");
    assert_eq!(touched_until_told(&mut watched, &mut files).await, exited(&chat, first));
    gemini.wait_for_exit().unwrap();

    // One who comes later finds the chat and nobody who has it.
    let mut later = holders(&watched.home.path());
    chats(&watched.home.path()).iter().for_each(|chat| later.touched(chat));
    assert_eq!(next(&mut later).await, json!({"sessionId": chat, "missing": true}));

    let resumed = watched.gemini(&["--resume", "latest"]);
    let second = process(&resumed);
    resumed.submit("good evening again").unwrap();
    assert_eq!(touched_until_told(&mut watched, &mut files).await, seen(&chat, second));
    resumed.kill().unwrap();
    assert_eq!(touched_until_told(&mut watched, &mut files).await, exited(&chat, second));
}

#[tokio::test]
async fn gemini_leaves_a_chat_when_it_clears_the_screen() {
    let mut watched = Watched::new();
    let mut files = files(&watched.home.path());
    let gemini = watched.gemini(&[]);
    let process = process(&gemini);
    gemini.submit("good evening").unwrap();
    let before = session(&touched_until_told(&mut watched, &mut files).await);
    gemini.wait_for_text("Good evening.").unwrap();
    command(&gemini, "/clear", "Clear the screen");
    gemini.wait_for_no_text("Good evening.").unwrap();
    gemini.wait_for_text("Type your message").unwrap();
    gemini.submit("good night").unwrap();
    let mut told = Vec::new();
    for _ in 0..2 {
        told.push(touched_until_told(&mut watched, &mut files).await);
    }
    let after = told.iter().map(session).find(|session| *session != before).expect("a new chat");
    assert!(told.contains(&exited(&before, process)), "{told:?}");
    assert!(told.contains(&seen(&after, process)), "{told:?}");
}

#[tokio::test]
async fn two_geminis_in_one_folder_have_a_chat_each() {
    let mut watched = Watched::new();
    let mut files = files(&watched.home.path());
    let mut told = Vec::new();
    let mut terminals = Vec::new();
    for _ in 0..2 {
        let gemini = watched.gemini(&[]);
        let process = process(&gemini);
        gemini.submit("good evening").unwrap();
        let begun = touched_until_told(&mut watched, &mut files).await;
        let chat = session(&begun);
        assert_eq!(begun, seen(&chat, process));
        terminals.push(gemini);
        told.push((chat, process));
    }
    assert_ne!(told[0].0, told[1].0);
    for (terminal, (chat, process)) in terminals.iter().zip(&told) {
        terminal.kill().unwrap();
        assert_eq!(touched_until_told(&mut watched, &mut files).await, exited(chat, *process));
    }
}

#[tokio::test]
async fn a_print_run_leaves_the_terminal_its_chat() {
    let mut watched = Watched::new();
    let mut files = files(&watched.home.path());
    let gemini = watched.gemini(&[]);
    let terminal = process(&gemini);
    gemini.submit("good evening").unwrap();
    let chat = session(&touched_until_told(&mut watched, &mut files).await);
    gemini.wait_for_text("Good evening.").unwrap();
    let client = Client::gemini_cli(&watched.home, &watched.model).unwrap();
    let mut print = client.arguments(["-p", "good night"]).headless().unwrap();
    print.close_input();
    let process = Process::with_pid(print.pid()).unwrap();
    let begun = touched_until_told(&mut watched, &mut files).await;
    let printed = session(&begun);
    assert_eq!(begun, seen(&printed, process));
    assert_eq!(touched_until_told(&mut watched, &mut files).await, exited(&printed, process));
    // Its last lines may be read after its end; what is told next is about another folder.
    chats(&watched.home.path()).iter().for_each(|chat| watched.holders.touched(chat));
    let root = watched.home.path().display().to_string();
    watched.home.write(".gemini/tmp/other/.project_root", &root).unwrap();
    let header = json!({"sessionId": "other", "startTime": "2026-11-15T10:00:00.000Z"});
    let other = ".gemini/tmp/other/chats/session-1.jsonl";
    let other = watched.home.write(other, &header.to_string()).unwrap();
    watched.holders.touched(&other);
    assert_eq!(watched.next().await, json!({"sessionId": "other", "missing": true}));
    gemini.kill().unwrap();
    assert_eq!(touched_until_told(&mut watched, &mut files).await, exited(&chat, terminal));
}

/// The pids in its registry file are ours: its end is seen.
#[tokio::test]
async fn claude_code_on_this_machine_is_observed() {
    let home = Home::new().unwrap();
    let model = Model::start(Script::new().then_always(Reply::says("Good evening."))).unwrap();
    let mut files = files(&home.path());
    let claude = Client::claude_code(&home, &model).unwrap().in_terminal().unwrap();
    let process = process(&claude);
    let mut signal = async |channel| loop {
        let news = timeout(PATIENCE, files.next()).await.expect("there is news");
        match news.expect("it goes on") {
            News::Signal(signal) if signal.channel == channel => {
                return serde_json::from_slice::<Value>(&signal.payload).unwrap();
            }
            News::Signal(_) | News::CaughtUp => {}
            other @ (News::Notice(_) | News::Stopped(_)) => panic!("{other:?}"),
        }
    };
    let registered = signal(Channel::Registry).await;
    assert_eq!(registered["pid"], process.pid);
    assert!(registered["pidDomain"].is_string(), "{registered}");
    claude.kill().unwrap();
    let end = signal(Channel::Process).await;
    assert_eq!((&end["sessionId"], &end["exited"]), (&registered["sessionId"], &true.into()));
}

/// A process that lives until it is killed.
struct Agent {
    child: Child,
    process: Process,
}

impl Agent {
    fn new() -> Self {
        let mut cat = Command::new("cat");
        let child = cat.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let process = Process::with_pid(child.id()).unwrap();
        Self { child, process }
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn what_hooks_say_is_told_once_and_ends_with_its_process() {
    let home = Home::new().unwrap();
    let mut holders = holders(&home.path());
    let (mut daemon, mut terminal) = (Agent::new(), Agent::new());
    let (one, other) = (daemon.process, terminal.process);
    let codex = Harness::Codex;
    // A daemon has two sessions; one of them was resumed elsewhere.
    for (session, process) in [("a", one), ("b", one), ("a", one), ("b", other)] {
        holders.held(codex, session, process);
    }
    for expected in [seen("a", one), seen("b", one), seen("b", other)] {
        assert_eq!(next(&mut holders).await, expected);
    }
    terminal.kill();
    assert_eq!(next(&mut holders).await, exited("b", other));
    // Late hooks, and those from a container, say nothing.
    holders.held(codex, "b", other);
    holders.held(codex, "c", Process { pid: one.pid, start: one.start + 1 });
    daemon.kill();
    assert_eq!(next(&mut holders).await, exited("a", one));
    assert_eq!(next(&mut holders).await, exited("b", one));
}

#[tokio::test]
async fn a_lock_is_followed_through_every_hand() {
    let home = Home::new().unwrap();
    let mut holders = holders(&home.path());
    let own = Process::with_pid(std::process::id()).unwrap();
    let folder = home.path().join(".codex/thread-writer-locks");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("t1.lock");
    let lock = |path: &Path| {
        let file = File::options().create(true).append(true).open(path).unwrap();
        file.lock().unwrap();
        file
    };
    let _guard = lock(&folder.join(".coordination.lock"));
    let held = lock(&path);
    assert_eq!(next(&mut holders).await, seen("t1", own));
    // Let go without being removed, and taken again.
    drop(held);
    assert_eq!(next(&mut holders).await, exited("t1", own));
    let held = lock(&path);
    assert_eq!(next(&mut holders).await, seen("t1", own));
    fs::remove_file(&path).unwrap();
    assert_eq!(next(&mut holders).await, exited("t1", own));
    drop(held);
    // The folder itself goes and comes.
    fs::remove_dir_all(&folder).unwrap();
    fs::create_dir_all(&folder).unwrap();
    let _held = lock(&folder.join("t2.lock"));
    assert_eq!(next(&mut holders).await, seen("t2", own));
}

#[tokio::test]
async fn broken_chats_are_nobodys_business() {
    let home = Home::new().unwrap();
    let mut holders = holders(&home.path());
    let began = "2026-11-15T10:00:00.000Z";
    let header = |id: &str| json!({"sessionId": id, "startTime": began, "kind": "main"});
    let write = |path: &str, text: &str| home.write(path, text).unwrap();
    let workspace = home.workspace().display().to_string();
    write(".gemini/tmp/acme/.project_root", &workspace);
    write(".gemini/tmp/gone/.project_root", "/nowhere/at/all");
    let mut paths = vec![
        write(".gemini/tmp/acme/chats/session-1.jsonl", "half a li"),
        write(".gemini/tmp/acme/chats/session-2.jsonl", ""),
        write(".gemini/tmp/acme/chats/s/sub.jsonl", &header("sub").to_string()),
        // A project that is not here: a container's.
        write(".gemini/tmp/gone/chats/session-3.jsonl", &header("gone").to_string()),
        write(".gemini/tmp/rootless/chats/session-4.jsonl", &header("rootless").to_string()),
        home.path().join(".gemini/tmp/acme/chats/session-5.jsonl"),
    ];
    paths.push(write(".gemini/tmp/acme/chats/session-6.jsonl", &header("s6").to_string()));
    paths.iter().for_each(|path| holders.touched(path));
    assert_eq!(next(&mut holders).await, json!({"sessionId": "s6", "missing": true}));
    // It is written by somebody whom we do not see: nothing more is said of it.
    let file = File::options().append(true).open(&paths[6]).unwrap();
    file.set_modified(SystemTime::now() + Duration::from_secs(5)).unwrap();
    holders.touched(&paths[6]);
    let seventh = write(".gemini/tmp/acme/chats/session-7.jsonl", &header("s7").to_string());
    holders.touched(&seventh);
    assert_eq!(next(&mut holders).await, json!({"sessionId": "s7", "missing": true}));
}
