//! The hook forwarder as agents meet it: the real program, a real socket, a real disk.

mod crowd;
mod disk;
mod keeper;
mod waiting;
mod world;

use std::io::Write;
use std::os::fd::AsRawFd;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use qd_hook_wire::{Cut, Mode};
use qd_sources::hook_intake::{Admission, Frame, KnownIds};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, connect, listen, socket};
use world::{Daemon, GENEROUS, Journal, Manner, World, finish, now_ms};

const PAYLOAD: &[u8] = b"{\"hook_event_name\":\"Stop\",\"session_id\":\"s\"}\n";

/// Runs one hook with a daemon of that manner; gives what was delivered, what was spooled, and
/// how long the agent waited.
fn check(manner: Manner) -> (Vec<Frame>, Vec<Frame>, Duration) {
    let (world, journal) = (World::new(), Arc::new(Mutex::new(Journal::default())));
    let daemon = Daemon::start(&world, manner, &journal);
    let took = world.hook("send --harness codex").run(PAYLOAD);
    drop(daemon);
    let delivered = std::mem::take(&mut journal.lock().expect("whole").frames);
    (delivered, world.drained(), took)
}

fn payloads(frames: &[Frame]) -> Vec<&[u8]> {
    frames.iter().map(|frame| frame.payload.as_slice()).collect()
}

#[test]
fn a_hook_is_delivered_with_its_stamp() {
    let (world, journal) = (World::new(), Arc::new(Mutex::new(Journal::default())));
    let daemon = Daemon::start(&world, Manner::Acknowledges, &journal);
    let before = now_ms();
    world.hook("send --harness codex --event Stop").run(PAYLOAD);
    let after = now_ms();
    drop(daemon);

    let frames = &journal.lock().expect("whole").frames;
    let [frame] = frames.as_slice() else { panic!("one frame, not {frames:?}") };
    assert!((before..=after).contains(&frame.at_ms));
    assert!(frame.seq < 1_000_000, "nanoseconds in the millisecond");
    assert_eq!(frame.id.at_ms(), frame.at_ms);
    let agent = frame.agent.expect("an agent");
    assert_eq!(agent.pid, std::process::id(), "the shell replaced itself, so we are the agent");
    assert_eq!(agent.started.is_some(), cfg!(target_os = "linux"));
    assert_eq!(
        (frame.mode, frame.harness.as_str(), frame.event.as_deref(), frame.cut),
        (Mode::Send, "codex", Some("Stop"), None)
    );
    assert_eq!(frame.payload, PAYLOAD);
    assert!(!world.spool_folder().exists(), "nothing is spooled");
}

#[test]
fn claude_code_is_believed_where_its_environment_names_the_session_and_the_caller() {
    let world = World::new();
    let own = std::process::id().to_string();
    let run = |harness: &str, session: &str, pid: &str| {
        let hook = world.hook(&format!("send --harness {harness}"));
        let hook = hook.environment(|command| {
            command.env("CLAUDE_CODE_SESSION_ID", session).env("CLAUDE_PID", pid);
            command.env("CLAUDECODE", "1").env("SECRET_TOKEN", "hush");
        });
        hook.run(PAYLOAD);
        let drained = world.drained();
        assert!(!format!("{drained:?}").contains("hush"), "the environment stays here");
        assert_eq!(drained[0].agent.map(|agent| agent.pid), Some(std::process::id()));
        drained[0].by.clone()
    };
    assert_eq!(run("claude-code", "s", &own), None);
    // Whoever Claude Code has started inherits its environment.
    let program = std::env::current_exe().expect("a program");
    let program = program.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    assert_eq!(run("claude-code", "other", &own), program);
    assert_eq!(run("claude-code", "s", "4194305"), program);
    assert_eq!(run("codex", "other", "4194305"), None);
}

/// Grok Build runs what stands in Claude Code's settings, and waits for each hook.
#[test]
fn another_vendors_agent_is_reported_by_its_name_and_never_held() {
    let (world, journal) = (World::new(), Arc::new(Mutex::new(Journal::default())));
    let daemon = Daemon::start(&world, Manner::Acknowledges, &journal);
    let begun = Instant::now();
    let hook = world.hook("wait --harness claude-code --within 86390 --event Stop");
    let hook = hook.environment(|command| {
        command.env("CLAUDE_CODE_SESSION_ID", "around-it").env("GROK_SESSION_ID", "s");
        command.env("GROK_HOOK_EVENT", "stop");
    });
    hook.run(PAYLOAD);
    assert!(begun.elapsed() < GENEROUS);
    drop(daemon);
    let frames = &journal.lock().expect("whole").frames;
    let said: Vec<_> = frames.iter().map(|frame| (frame.mode, frame.by.as_deref())).collect();
    assert_eq!(said, [(Mode::Send, Some("grok_build"))]);
}

#[test]
fn a_shell_between_the_agent_and_the_hook_is_passed_over() {
    let world = World::new();
    let nested = world.hook("send --harness codex").environment(|command| {
        *command = nested(command);
    });
    nested.run(PAYLOAD);
    let agent = world.drained()[0].agent.expect("an agent");
    assert_eq!(agent.pid, std::process::id());
}

/// The same command inside one more shell that stays alive.
fn nested(command: &std::process::Command) -> std::process::Command {
    let mut outer = std::process::Command::new("/bin/sh");
    outer.args(["-c", "\"$@\"; exit $?", "sh"]).arg(command.get_program()).args(command.get_args());
    outer.env_clear();
    outer.envs(command.get_envs().filter_map(|(key, value)| Some((key, value?))));
    outer.stdin(std::process::Stdio::piped());
    outer.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    outer
}

#[test]
fn without_a_daemon_the_hook_is_spooled() {
    let world = World::new();
    world.hook("send --harness codex").run(PAYLOAD);
    assert_eq!(payloads(&world.drained()), [PAYLOAD], "no socket");

    drop(qd_sources::hook_intake::bind(&world.socket()).expect("a socket"));
    world.hook("send --harness codex").run(PAYLOAD);
    assert_eq!(payloads(&world.drained()), [PAYLOAD], "a socket that nobody listens on");
}

#[test]
fn a_daemon_in_the_state_folder_is_found() {
    let (world, journal) = (World::new(), Arc::new(Mutex::new(Journal::default())));
    let daemon = Daemon::start(&world, Manner::Acknowledges, &journal);
    let hook = world.hook("send --harness codex").environment(|command| {
        command.env("XDG_RUNTIME_DIR", "/nonexistent").env("XDG_STATE_HOME", world.path("run"));
    });
    hook.run(PAYLOAD);
    drop(daemon);
    assert_eq!(payloads(&journal.lock().expect("whole").frames), [PAYLOAD]);
}

#[test]
fn a_daemon_that_never_answers_costs_its_budget_and_the_hook_is_spooled() {
    let (delivered, spooled, took) = check(Manner::Hangs);
    assert_eq!((delivered.len(), payloads(&spooled)), (0, vec![PAYLOAD]));
    assert!(took >= Duration::from_millis(200), "it was given its time: {took:?}");
    assert!(took < GENEROUS, "{took:?}");
}

#[test]
fn a_daemon_with_a_full_queue_costs_its_budget_and_the_hook_is_spooled() {
    let world = World::new();
    std::fs::create_dir_all(world.path("run/quarterdeck")).expect("its folder");
    let address = SocketAddrUnix::new(world.socket()).expect("an address");
    let open = || socket(AddressFamily::UNIX, SocketType::STREAM, None).expect("a socket");
    let hung = open();
    bind(&hung, &address).expect("bound");
    listen(&hung, 0).expect("listening");
    // A queue of length 0 holds one; nobody takes it out.
    let first = open();
    connect(&first, &address).expect("the one in the queue");

    let took = world.hook("send --harness codex").run(PAYLOAD);
    assert_eq!(payloads(&world.drained()), [PAYLOAD]);
    assert!(took < GENEROUS, "{took:?}");
    assert!(hung.as_raw_fd() != first.as_raw_fd(), "both lived until here");
}

#[test]
fn without_its_acknowledgement_a_hook_is_spooled() {
    for manner in [Manner::Closes, Manner::Refuses] {
        let (delivered, spooled, _) = check(manner);
        assert_eq!((delivered.len(), payloads(&spooled)), (0, vec![PAYLOAD]), "{manner:?}");
    }
}

#[test]
fn a_hook_whose_acknowledgement_was_lost_is_recognised() {
    let (delivered, spooled, _) = check(Manner::TakesInSilence);
    assert_eq!(delivered, spooled, "the same frame in both places");
    let mut known = KnownIds::restored(delivered.iter().map(|frame| frame.id));
    assert_eq!(known.admit(spooled[0].id), Admission::Taken);
}

#[test]
fn what_is_longer_than_a_payload_is_cut_and_marked_and_the_agent_can_write_it_all() {
    let input = vec![b'x'; 3 << 20];
    for manner in [Manner::Acknowledges, Manner::Closes] {
        let (world, journal) = (World::new(), Arc::new(Mutex::new(Journal::default())));
        let daemon = Daemon::start(&world, manner, &journal);
        world.hook("send --harness codex").run(&input);
        world.hook("send --harness codex").run(&input[..1 << 20]);
        drop(daemon);
        let mut frames = std::mem::take(&mut journal.lock().expect("whole").frames);
        frames.extend(world.drained());
        let shapes: Vec<_> = frames.iter().map(|frame| (frame.payload.len(), frame.cut)).collect();
        assert_eq!(shapes, [(1 << 20, Some(Cut::Size)), (1 << 20, None)], "{manner:?}");
    }
}

#[test]
fn an_input_that_is_closed_or_stays_open_does_not_stop_the_hook() {
    let world = World::new();
    world.hook("send --harness codex <&-").run(b"");
    let begun = Instant::now();
    let mut open = world.hook("send --harness codex").spawn();
    let mut stdin = open.stdin.take().expect("its input");
    stdin.write_all(b"half a sen").expect("written");
    let took = finish(open, begun);
    assert!(took < GENEROUS, "{took:?}");
    let frames = world.drained();
    assert_eq!(payloads(&frames), [b"".as_slice(), b"half a sen"]);
    assert_eq!((frames[0].cut, frames[1].cut), (None, Some(Cut::Time)));
}

#[test]
fn a_command_line_with_mistakes_is_silent_and_still_sends_what_it_can() {
    let world = World::new();
    for line in ["", "sned", "stay --harness codex", "--help"] {
        world.hook(line).run(b"");
    }
    assert!(!world.spool_folder().exists());
    world.hook("send --harness 'a b/c' --event '' --what").run(PAYLOAD);
    let frames = world.drained();
    assert_eq!((frames[0].harness.as_str(), frames[0].event.as_deref()), ("a_b_c", Some("_")));
}
