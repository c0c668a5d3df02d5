//! Hooks that wait for an answer, and a daemon that comes and goes meanwhile.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use qd_hook_wire::Mode;
use qd_store::Journal;
use rustix::process::{Pid, Signal, kill_process};

use crate::keeper::{Habit, Keeper, settings};
use crate::world::{GENEROUS, Hook, World, names};

const PAYLOAD: &[u8] =
    b"{\"hook_event_name\":\"PermissionRequest\",\"session_id\":\"s\",\"tool_name\":\"Bash\"}\n";

const WAIT: &str = "wait --harness claude-code";

/// Starts a hook that has said all it has to say.
fn begin(hook: Hook) -> Child {
    begin_with(hook, PAYLOAD)
}

fn begin_with(hook: Hook, payload: &[u8]) -> Child {
    let mut child = hook.spawn();
    child.stdin.take().expect("its input").write_all(payload).expect("written");
    child
}

/// How it ended, and what it said. A shell in between may have to end first.
fn ended(mut child: Child) -> (Option<i32>, String, String) {
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        assert!(begun.elapsed() < GENEROUS, "it still waits");
        std::thread::yield_now();
    };
    let (mut out, mut err) = (String::new(), String::new());
    if let Some(mut stdout) = child.stdout.take() {
        stdout.read_to_string(&mut out).expect("text");
    }
    child.stderr.take().expect("its errors").read_to_string(&mut err).expect("text");
    (status.code(), out, err)
}

fn silence() -> (Option<i32>, String, String) {
    said(0, "", "")
}

fn said(code: i32, out: &str, err: &str) -> (Option<i32>, String, String) {
    (Some(code), out.to_owned(), err.to_owned())
}

/// How often the journal has each hook. The daemon must have gone.
fn journaled(world: &World) -> Vec<String> {
    let journal = settings(&world.path("")).journal();
    let (journal, _) = Journal::open(journal, Default::default()).expect("free");
    journal.deliveries().expect("readable").into_iter().map(|delivery| delivery.id).collect()
}

#[test]
fn an_answer_is_printed_or_wakes_the_session_and_the_daemon_knows_that_it_arrived() {
    let world = World::new();
    let mut keeper = Keeper::start(&world, Habit::Keeps);
    let asks = begin(world.hook(WAIT));
    let id = keeper.waits();
    assert_eq!(keeper.answers("print", &id, "{\"a\": 1}"), "Delivered");
    assert_eq!(ended(asks), said(0, "{\"a\": 1}", ""));
    assert_eq!(keeper.answers("print", &id, "again"), "Failed", "nobody waits any more");

    let sleeps = begin(world.hook(&format!("{WAIT} --event Stop")));
    let id = keeper.waits();
    assert_eq!(keeper.answers("rewake", &id, "now the tests"), "Delivered");
    assert_eq!(ended(sleeps), said(2, "", "now the tests"));

    let asks = begin(world.hook(WAIT));
    let id = keeper.waits();
    assert_eq!(keeper.answers("release", &id, "-"), "Delivered");
    assert_eq!(ended(asks), silence());
    assert!(names(&world.spool_folder()).iter().all(|name| !name.ends_with(".frame")));
}

#[test]
fn a_daemon_that_nobody_answers_through_releases_at_once() {
    let world = World::new();
    let keeper = Keeper::start(&world, Habit::Releases);
    let child = begin(world.hook(WAIT));
    assert_eq!(ended(child), silence());
    keeper.kill();
    assert_eq!(journaled(&world).len(), 1);
}

#[test]
fn a_daemon_that_is_killed_and_comes_back_answers_the_same_hook() {
    let world = World::new();
    let keeper = Keeper::start(&world, Habit::Keeps);
    let child = begin(world.hook(WAIT));
    let id = keeper.waits();
    keeper.kill();
    let mut keeper = Keeper::start(&world, Habit::Keeps);
    assert_eq!(keeper.waits(), id);
    assert_eq!(keeper.answers("print", &id, "yes"), "Delivered");
    assert_eq!(ended(child), said(0, "yes", ""));
    keeper.kill();
    assert_eq!(journaled(&world), [id]);
}

#[test]
fn a_daemon_that_comes_late_finds_the_hook_in_the_spool_and_takes_it_once() {
    let world = World::new();
    let child = begin(world.hook(WAIT));
    let begun = Instant::now();
    let is_spooled = || {
        let folder = world.spool_folder();
        folder.exists() && names(&folder).iter().any(|name| name.ends_with(".frame"))
    };
    while !is_spooled() {
        assert!(begun.elapsed() < GENEROUS, "it is spooled");
        std::thread::yield_now();
    }
    let mut keeper = Keeper::start(&world, Habit::Keeps);
    let id = keeper.waits();
    assert_eq!(keeper.answers("print", &id, "late"), "Delivered");
    assert_eq!(ended(child), said(0, "late", ""));
    keeper.kill();
    assert_eq!(journaled(&world), [id]);
    assert!(!is_spooled(), "its copy is gone");
}

#[test]
fn when_the_time_is_over_it_leaves_in_silence_with_and_without_a_daemon() {
    let world = World::new();
    let child = begin(world.hook(&format!("{WAIT} --within 1")));
    assert_eq!(ended(child), silence());
    let mut keeper = Keeper::start(&world, Habit::Keeps);
    let begun = Instant::now();
    let child = begin(world.hook(&format!("{WAIT} --within 1")));
    // The one from the spool does not wait.
    let id = keeper.waits();
    assert_eq!(ended(child), silence());
    assert!(begun.elapsed() >= Duration::from_secs(1));
    assert_eq!(keeper.answers("print", &id, "too late"), "Failed");
}

#[test]
fn a_hook_that_holds_its_agent_up_does_not_look_for_a_daemon() {
    let world = World::new();
    let sdk = |command: &mut Command| {
        command.env("CLAUDE_CODE_ENTRYPOINT", "sdk-cli");
    };
    let begun = Instant::now();
    assert_eq!(ended(begin(world.hook(WAIT).environment(sdk))), silence());
    let held = begin(world.hook("wait --harness codex --holds-agent").environment(sdk));
    assert_eq!(ended(held), silence());
    assert!(begun.elapsed() < GENEROUS);
    let frames = world.drained();
    let entries: Vec<_> = frames.iter().map(|frame| (frame.mode, frame.entry.as_deref())).collect();
    // Codex inside Claude Code has the word from there, and it is not about Codex.
    assert_eq!(entries, [(Mode::Wait, Some("sdk-cli")), (Mode::Wait, None)]);
}

/// Its dialog comes only after its hook: nobody could answer it anywhere meanwhile.
#[test]
fn the_hook_of_a_subagent_in_a_terminal_does_not_look_for_a_daemon_either() {
    let payload = br#"{"hook_event_name":"PermissionRequest","session_id":"s","agent_id":"a1","tool_name":"Bash"}"#;
    let cli = |command: &mut Command| {
        command.env("CLAUDE_CODE_ENTRYPOINT", "cli");
    };
    let world = World::new();
    assert_eq!(ended(begin_with(world.hook(WAIT).environment(cli), payload)), silence());
    assert_eq!(world.drained().len(), 1, "what it said is kept");
}

#[test]
fn told_to_stop_or_not_listened_to_any_more_it_leaves_in_silence() {
    let world = World::new();
    let keeper = Keeper::start(&world, Habit::Keeps);
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let child = begin(world.hook(WAIT));
        keeper.waits();
        let pid = Pid::from_child(&child);
        kill_process(pid, signal).expect("told");
        assert_eq!(ended(child), silence(), "{signal:?}");
    }
    let mut child = begin(world.hook(WAIT));
    keeper.waits();
    drop(child.stdout.take());
    assert_eq!(ended(child), silence());
}

#[test]
fn when_its_agent_is_gone_it_goes_too() {
    let world = World::new();
    let mut keeper = Keeper::start(&world, Habit::Keeps);
    // By another process: a file that a test beside this one inherits open for writing cannot be
    // run. A shell by another name is no shell.
    let program = world.path("claude");
    let copied = Command::new("cp").arg("/bin/sh").arg(&program).status();
    assert!(copied.expect("cp runs").success());
    let hook = world.hook(WAIT).environment(|command| {
        let mut agent = Command::new(&program);
        // Its own process is the one that it names.
        agent.args(["-c", "CLAUDE_PID=$$ \"$@\"; exit $?", "agent"]);
        agent.arg(command.get_program()).args(command.get_args());
        agent.envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))));
        agent.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        *command = agent;
    });
    let mut agent = begin(hook);
    let id = keeper.waits();
    agent.kill().expect("killed");
    // The hook has the other end of this, and ends it with itself.
    let mut rest = String::new();
    agent.stdout.take().expect("its output").read_to_string(&mut rest).expect("text");
    agent.wait().expect("gone");
    assert_eq!((rest.as_str(), keeper.answers("print", &id, "nobody").as_str()), ("", "Failed"));
}

#[test]
fn many_wait_at_once_and_each_gets_its_own_answer() {
    const MANY: usize = 64;
    let world = World::new();
    let mut keeper = Keeper::start(&world, Habit::Keeps);
    let mut waiting = Vec::new();
    for _ in 0..MANY {
        // One after the other, to know whose id it is.
        let child = begin(world.hook(WAIT));
        waiting.push((keeper.waits(), child));
    }
    #[cfg(target_os = "linux")]
    for (_, child) in &waiting {
        assert!(private_kib(child.id()) < 1_024, "a hook that waits is small");
    }
    for (id, child) in waiting.into_iter().rev() {
        assert_eq!(keeper.answers("print", &id, &id), "Delivered");
        assert_eq!(ended(child), said(0, &id, ""));
    }
}

/// Memory that is this process's alone.
#[cfg(target_os = "linux")]
fn private_kib(pid: u32) -> u64 {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("it lives");
    let lines = rollup.lines().filter(|line| line.starts_with("Private_"));
    lines
        .map(|line| line.split_whitespace().nth(1).expect("KiB").parse::<u64>().expect("a number"))
        .sum()
}
