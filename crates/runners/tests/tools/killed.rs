//! `kill -9` of the daemon, or of a warden: what they started ends, too.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use qd_runners::tools::{Toolbox, ToolboxSettings};
use qd_session::machine::ToolOutcome;
use serde_json::json;

use super::world::{World, alive, mark, run, warden};

const WORKSPACE: &str = "QD_TOOLS_TEST_WORKSPACE";
const MARK: &str = "QD_TOOLS_TEST_MARK";

/// Far more than it takes; a machine may be busy.
const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn the_daemons_kill_ends_what_its_tools_started() {
    let (world, mark) = (World::new(), mark());
    let mut daemon = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "killed::daemon_that_runs_a_tool_until_it_is_killed", "--nocapture"])
        .env(WORKSPACE, world.workspace())
        .env(MARK, &mark)
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    // It ends only with the last process that holds it: the tool's do not.
    let lines = BufReader::new(daemon.stdout.take().expect("its output")).lines();
    let started = world.path("started");
    until("the tool runs", || started.exists() && alive(&mark).len() >= 3);
    daemon.kill().expect("ours");
    daemon.wait().expect("ours");
    until("all are gone", || alive(&mark).is_empty());
    drop(lines);
}

/// The daemon of the test above; by itself it does nothing.
#[test]
fn daemon_that_runs_a_tool_until_it_is_killed() {
    let Ok(workspace) = std::env::var(WORKSPACE).map(PathBuf::from) else { return };
    let mark = std::env::var(MARK).expect("a mark");
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("threads");
    let scratch = workspace.join("../scratch");
    let toolbox =
        Toolbox::open(ToolboxSettings::new(workspace, scratch, warden())).expect("it opens");
    let command = format!("sleep {mark} & setsid sleep {mark} & touch started; wait; sleep {mark}");
    let outcome = runtime.block_on(run(&toolbox, "bash", json!({"command": command})));
    panic!("it outlived the daemon: {outcome:?}");
}

#[tokio::test]
async fn a_warden_that_is_killed_is_no_result_and_leaves_nobody() {
    let (world, mark) = (World::new(), mark());
    let toolbox = world.toolbox();
    let running = {
        let command = json!({"command": format!("sleep {mark} & touch started; sleep {mark}")});
        tokio::spawn(async move { run(&toolbox, "bash", command).await })
    };
    let started = world.path("started");
    while !started.exists() {
        tokio::task::yield_now().await;
    }
    // The parent of what runs in our workspace.
    let pid = warden_of(&mark).expect("a warden");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("ours");
    let outcome = running.await.expect("it ran");
    assert!(
        matches!(&outcome, ToolOutcome::Failed { error } if error.contains("without a word")),
        "{outcome:?}"
    );
    until("all are gone", || alive(&mark).is_empty());
}

fn warden_of(mark: &str) -> Option<rustix::process::Pid> {
    let entries = std::fs::read_dir("/proc").ok()?.flatten();
    entries.into_iter().find_map(|entry| {
        let line = std::fs::read_to_string(entry.path().join("cmdline")).ok()?;
        // The shell itself, or its last command, which it becomes.
        if !line.contains(mark) {
            return None;
        }
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?;
        // Only the first process is below the warden.
        let above = std::fs::read_to_string(format!("/proc/{parent}/cmdline")).ok()?;
        if !above.contains("warden") {
            return None;
        }
        rustix::process::Pid::from_raw(parent.parse().ok()?)
    })
}

fn until(what: &str, holds: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < end, "{what}");
        std::thread::yield_now();
    }
}
