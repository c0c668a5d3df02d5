//! The files of all clients in a home of their own: every line in order, exactly once, across
//! restarts; registries and the processes behind them.

mod storm;

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use qd_harness::{Channel, Harness};
use qd_host::processes::Process;
use qd_session::moment::Timestamp;
use qd_sources::files::{FileNotice, FileSignal, Files, News};
use qd_sources::places::places;
use qd_sources::tail::{Position, Restart};
use tokio::time::timeout;

/// Much longer than anything here takes; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_secs(60);
const TWO_DAYS: Duration = Duration::from_secs(2 * 24 * 60 * 60);

const CLAUDE: &str = ".claude/projects/-home-ann-acme/s1.jsonl";
const SUBAGENT: &str = ".claude/projects/-home-ann-acme/s1/subagents/agent-a1.jsonl";
const CODEX: &str = ".codex/sessions/2026/11/15/rollout-2026-11-15T10-00-00-t1.jsonl";
const GEMINI: &str = ".gemini/tmp/acme/chats/session-2026-11-15T10-00-g1.jsonl";

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp(u64::try_from(since.as_millis()).unwrap())
}

struct Home(PathBuf);

impl Home {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("qd-files-{}-{count}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn append(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    fn replace(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let fresh = path.with_extension("tmp");
        fs::write(&fresh, text).unwrap();
        fs::rename(fresh, path).unwrap();
    }

    fn age(&self, path: &str) {
        let file = File::options().append(true).open(self.0.join(path)).unwrap();
        file.set_modified(SystemTime::now() - TWO_DAYS).unwrap();
    }

    fn files(&self, positions: BTreeMap<PathBuf, Position>) -> Files {
        Files::start(&places(&self.0, &BTreeMap::new()), positions, now).unwrap()
    }

    fn name(&self, path: &Path) -> String {
        path.strip_prefix(&self.0).unwrap().display().to_string()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

async fn next(files: &mut Files) -> News {
    timeout(PATIENCE, files.next()).await.expect("there is news").expect("it goes on")
}

/// The next one that is more than that nobody holds the session of a file.
async fn signal(files: &mut Files) -> FileSignal {
    loop {
        match next(files).await {
            News::Signal(signal) if text(&signal) == missing("s1") => {}
            News::Signal(signal) => return signal,
            News::CaughtUp => {}
            other @ (News::Notice(_) | News::Stopped(_)) => panic!("{other:?}"),
        }
    }
}

fn text(signal: &FileSignal) -> String {
    String::from_utf8_lossy(&signal.payload).into_owned()
}

fn missing(session: &str) -> String {
    format!(r#"{{"missing":true,"sessionId":"{session}"}}"#)
}

/// What was told until the beginning has been read.
async fn beginning(files: &mut Files) -> Vec<String> {
    let mut told = Vec::new();
    loop {
        match next(files).await {
            News::Signal(signal) => told.push(text(&signal)),
            News::CaughtUp => return told,
            other @ (News::Notice(_) | News::Stopped(_)) => panic!("{other:?}"),
        }
    }
}

#[test]
fn every_line_comes_once_and_in_order_across_restarts() {
    const PATHS: [&str; 4] = [CLAUDE, SUBAGENT, CODEX, GEMINI];
    const LINES: usize = 5_000;
    let home = Home::new();
    let written = AtomicBool::new(false);
    let mut positions = BTreeMap::new();
    let mut lines: BTreeMap<String, Vec<String>> = BTreeMap::new();
    thread::scope(|scope| {
        scope.spawn(|| {
            for line in 0..LINES {
                for path in PATHS {
                    // In two pieces: half a line waits for its end.
                    home.append(path, "{\"line\":");
                    home.append(path, &format!("{line}}}\n"));
                }
            }
            written.store(true, Ordering::Relaxed);
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            for daemon in 0.. {
                let mut files = home.files(positions.clone());
                // Each daemon is killed after some lines, with others read and not taken.
                let life = if written.load(Ordering::Relaxed) { usize::MAX } else { 97 + daemon };
                for _ in 0..life {
                    let signal = signal(&mut files).await;
                    lines.entry(home.name(&signal.path)).or_default().push(text(&signal));
                    positions.insert(signal.path.to_path_buf(), signal.position.unwrap());
                    if lines.values().map(Vec::len).sum::<usize>() == PATHS.len() * LINES {
                        return;
                    }
                }
            }
        });
    });
    let expected: Vec<String> = (0..LINES).map(|line| format!("{{\"line\":{line}}}")).collect();
    for path in PATHS {
        assert_eq!(lines[path], expected, "{path}");
    }
}

#[tokio::test]
async fn each_file_is_read_by_its_own_harness() {
    let home = Home::new();
    let mut files = home.files(BTreeMap::new());
    assert_eq!(beginning(&mut files).await, [""; 0]);
    let expected =
        [(CLAUDE, Harness::ClaudeCode), (CODEX, Harness::Codex), (GEMINI, Harness::GeminiCli)];
    for (path, harness) in expected {
        home.append(path, "\n{}\n");
        let signal = signal(&mut files).await;
        assert_eq!((signal.harness, signal.channel), (harness, Channel::Transcript));
        let file = signal.file().unwrap();
        assert!(signal.signal(Some(&*file)).file.unwrap().ends_with(path));
    }
}

#[tokio::test]
async fn history_is_read_only_when_it_changes() {
    let home = Home::new();
    home.append(CODEX, "old\n");
    home.age(CODEX);
    home.append(CLAUDE, "recent\n");
    let mut files = home.files(BTreeMap::new());
    assert_eq!(beginning(&mut files).await, ["recent"]);
    home.append(CODEX, "new\n");
    assert_eq!(text(&signal(&mut files).await), "old");
    assert_eq!(text(&signal(&mut files).await), "new");
}

#[tokio::test]
async fn a_file_written_anew_is_told_again_and_that_is_said() {
    let home = Home::new();
    home.append(CLAUDE, "one\ntwo\n");
    let mut files = home.files(BTreeMap::new());
    assert_eq!(beginning(&mut files).await, ["one", "two"]);
    home.replace(CLAUDE, "three\n");
    let News::Notice(FileNotice::Restarted { why, .. }) = next(&mut files).await else {
        panic!("it says so");
    };
    assert_eq!(why, Restart::Replaced);
    assert_eq!(text(&signal(&mut files).await), "three");
}

/// The kernel tells what happens in a folder, and not to the file that a link in it leads to.
#[tokio::test]
async fn a_change_that_nobody_tells_of_is_found() {
    let home = Home::new();
    home.append("elsewhere/s1.jsonl", "one\n");
    home.append(".claude/projects/-home-ann-acme/other.jsonl", "");
    symlink(home.0.join("elsewhere/s1.jsonl"), home.0.join(CLAUDE)).unwrap();
    let mut files = home.files(BTreeMap::new());
    assert_eq!(beginning(&mut files).await, ["one"]);
    home.append("elsewhere/s1.jsonl", "two\n");
    assert_eq!(text(&signal(&mut files).await), "two");
}

/// A client that lives until it is killed, and its registry file.
struct Client {
    child: Child,
    process: Process,
}

impl Client {
    fn new() -> Self {
        let mut cat = Command::new("cat");
        let child = cat.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let process = Process::with_pid(child.id()).unwrap();
        Self { child, process }
    }

    fn path(&self) -> String {
        format!(".claude/sessions/{}.json", self.process.pid)
    }

    fn registry(&self, session: &str, status: &str) -> String {
        let Process { pid, start } = self.process;
        format!(
            r#"{{"pid":{pid},"sessionId":"{session}","procStart":"{start}","status":"{status}"}}"#
        )
    }

    fn exited(&self, session: &str) -> String {
        let Process { pid, start } = self.process;
        format!(r#"{{"exited":true,"pid":{pid},"procStart":"{start}","sessionId":"{session}"}}"#)
    }

    fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[tokio::test]
async fn a_removed_registry_file_is_an_end_once_its_process_is_gone() {
    let home = Home::new();
    let mut client = Client::new();
    home.replace(&client.path(), &client.registry("s1", "idle"));
    let mut files = home.files(BTreeMap::new());
    assert_eq!(beginning(&mut files).await, [client.registry("s1", "idle")]);
    // Written in place, in two pieces.
    let busy = client.registry("s2", "busy");
    fs::write(home.0.join(client.path()), &busy[..20]).unwrap();
    fs::write(home.0.join(client.path()), &busy).unwrap();
    assert_eq!(text(&signal(&mut files).await), busy);
    fs::remove_file(home.0.join(client.path())).unwrap();
    // Something that is told later: the end was not believed until then.
    home.append(CLAUDE, "after\n");
    assert_eq!(text(&signal(&mut files).await), "after");
    client.kill();
    let end = signal(&mut files).await;
    // It took its file away before.
    let left = client.exited("s2").replace("\"sessionId", "\"removed\":true,\"sessionId");
    assert_eq!((end.channel, text(&end)), (Channel::Process, left));
}

#[tokio::test]
async fn a_killed_process_is_an_end_told_once() {
    let home = Home::new();
    let mut client = Client::new();
    home.replace(&client.path(), &client.registry("s1", "busy"));
    let mut files = home.files(BTreeMap::new());
    beginning(&mut files).await;
    client.kill();
    assert_eq!(text(&signal(&mut files).await), client.exited("s1"));
    fs::remove_file(home.0.join(client.path())).unwrap();
    home.append(CLAUDE, "after\n");
    assert_eq!(text(&signal(&mut files).await), "after");
}

#[tokio::test]
async fn a_file_left_behind_long_ago_is_an_end_and_nonsense_is_said_once() {
    let home = Home::new();
    let mut client = Client::new();
    client.kill();
    home.append(&client.path(), &client.registry("s1", "busy"));
    home.age(&client.path());
    home.append(".claude/sessions/77.json", "[nonsense]");
    home.append(".claude/sessions/78.c0ffee.key", "secret");
    let mut files = home.files(BTreeMap::new());
    let mut told = Vec::new();
    loop {
        match next(&mut files).await {
            News::Signal(signal) => told.push(text(&signal)),
            News::Notice(FileNotice::Illegible { path }) => told.push(home.name(&path)),
            News::CaughtUp => break,
            other @ (News::Notice(_) | News::Stopped(_)) => panic!("{other:?}"),
        }
    }
    told.sort();
    let nonsense = ".claude/sessions/77.json".to_owned();
    let mut expected = [nonsense, client.exited("s1"), client.registry("s1", "busy")];
    expected.sort();
    assert_eq!(told, expected);
}

/// Where pids of this process are valid, as Claude Code spells it.
fn pid_domain() -> String {
    let machine = fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let space = fs::read_link("/proc/self/ns/pid").unwrap();
    format!("linux:{}:{}", machine.trim(), space.display())
}

#[tokio::test]
async fn a_client_that_was_killed_a_moment_ago_has_ended_where_its_pid_would_be_seen() {
    let home = Home::new();
    let mut client = Client::new();
    client.kill();
    let elsewhere = client.registry("s1", "waiting");
    let domain = format!(r#","pidDomain":"{}"}}"#, pid_domain());
    let here = elsewhere.trim_end_matches('}').to_owned() + &domain;
    home.append(&client.path(), &elsewhere);
    let mut files = home.files(BTreeMap::new());
    assert_eq!(beginning(&mut files).await, [elsewhere.as_str()], "it may live elsewhere");
    drop(files);
    home.replace(&client.path(), &here);
    let mut files = home.files(BTreeMap::new());
    assert_eq!(beginning(&mut files).await, [here, client.exited("s1")]);
}

#[tokio::test]
async fn a_session_file_that_nobody_has_open_is_said_to_be_missing() {
    let home = Home::new();
    home.append(CLAUDE, "one\n");
    let rollout = ".codex/sessions/2026/11/15/rollout-2026-11-15T10-00-00";
    let thread = "0199c0de-1234-7000-8000-0123456789ab";
    home.append(&format!("{rollout}-{thread}.jsonl"), "two\n");
    let told = async || {
        let mut told = beginning(&mut home.files(BTreeMap::new())).await;
        told.sort();
        told
    };
    assert_eq!(told().await, ["one", "two"], "these clients do not say what they hold");
    fs::create_dir_all(home.0.join(".claude/sessions")).unwrap();
    fs::create_dir_all(home.0.join(".codex/thread-writer-locks")).unwrap();
    assert_eq!(told().await, ["one", "two", &missing(thread), &missing("s1")]);
    let client = Client::new();
    home.append(&client.path(), &client.registry("s1", "busy"));
    home.append(&format!(".codex/thread-writer-locks/{thread}.lock"), "");
    assert_eq!(told().await, ["one", "two", &client.registry("s1", "busy")]);
}

#[tokio::test]
async fn of_a_long_file_the_beginning_and_the_end_are_read_with_the_files_time() {
    let home = Home::new();
    let meta = format!("{{\"meta\":\"{}\"}}\n", "m".repeat(100_000));
    home.append(CODEX, &meta);
    for n in 0..5_000 {
        home.append(CODEX, &format!("{{\"n\":{n},\"text\":\"{}\"}}\n", "x".repeat(100)));
    }
    let an_hour_ago = SystemTime::now() - Duration::from_secs(3_600);
    let file = File::options().append(true).open(home.0.join(CODEX)).unwrap();
    file.set_modified(an_hour_ago).unwrap();
    let mut files = home.files(BTreeMap::new());
    let mut signals = Vec::new();
    loop {
        match timeout(PATIENCE, files.next()).await.unwrap().unwrap() {
            News::Signal(signal) => signals.push(signal),
            News::CaughtUp => break,
            News::Notice(notice) => panic!("{notice:?}"),
            News::Stopped(error) => panic!("{error}"),
        }
    }
    assert!(signals[0].payload.starts_with(b"{\"meta\""), "the first line comes first");
    assert!(signals.len() > 1_000 && signals.len() < 3_000, "{}", signals.len());
    assert!(signals.last().unwrap().payload.starts_with(b"{\"n\":4999,"));
    let hour_ms = 3_600_000;
    assert!(signals.iter().all(|signal| now().ms_since(signal.at) >= hour_ms - 1_000));
}

#[tokio::test]
async fn a_client_in_a_container_ends_when_it_says_so() {
    let home = Home::new();
    let mut client = Client::new();
    client.kill();
    // Its pid is nobody's here, or somebody else's.
    for (pid, session) in [(client.process.pid, "s1"), (std::process::id(), "s2")] {
        let registry = format!(
            r#"{{"pid":{pid},"sessionId":"{session}","procStart":"1","pidDomain":"linux:0c59:pid:[7]"}}"#
        );
        let path = format!(".claude/sessions/{pid}.json");
        home.append(&path, &registry);
        home.age(&path);
        let mut files = home.files(BTreeMap::new());
        assert_eq!(beginning(&mut files).await, [registry.as_str()]);
        home.append(CLAUDE, "after\n");
        assert_eq!(text(&signal(&mut files).await), "after");
        fs::remove_file(home.0.join(&path)).unwrap();
        let end = signal(&mut files).await;
        let exited = format!(
            r#"{{"exited":true,"pid":{pid},"procStart":"1","removed":true,"sessionId":"{session}"}}"#
        );
        assert_eq!((end.channel, text(&end)), (Channel::Process, exited));
        fs::remove_file(home.0.join(CLAUDE)).unwrap();
    }
}
