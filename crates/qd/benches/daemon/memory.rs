//! What many sessions cost in memory: while they come, at rest, and after a restart.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use crate::ingest::framed;
use crate::world::{Process, World};

const SENDERS: usize = 8;

/// Longer than a session is kept awake.
const REST: Duration = Duration::from_secs(75);

pub fn measure(sessions: usize) {
    println!("memory of {sessions} sessions");
    let world = World::new("memory");
    let daemon = world.serve();
    world.wait_until_caught_up();
    let empty = daemon.used().rss_kib;
    println!("  empty           RSS {:>6.1} MB", mb(empty));
    thread::scope(|scope| {
        for sender in 0..SENDERS {
            let socket = world.socket();
            scope.spawn(move || {
                let mut stream = UnixStream::connect(socket).expect("it listens");
                for session in (sender..sessions).step_by(SENDERS) {
                    for payload in life(session, 2) {
                        stream.write_all(&framed(&payload)).expect("sent");
                        let mut answer = [0; 1];
                        stream.read_exact(&mut answer).expect("an answer");
                        assert_eq!(&answer, b"+", "it is taken");
                    }
                }
            });
        }
    });
    let each = |daemon: &Process, what: &str| {
        let (used, peak) = (daemon.used().rss_kib, daemon.peak_kib());
        let above = used.saturating_sub(empty) as f64 * 1_024.0 / sessions as f64;
        println!(
            "  {what:<15} RSS {:>6.1} MB  peak {:>6.1} MB  {above:>7.0} bytes a session",
            mb(used),
            mb(peak)
        );
    };
    each(&daemon, "all have ended");
    let board = world.get("/api/live/sessions");
    println!("  the board is {:.1} MB of JSON", board.len() as f64 / 1e6);
    drop(board);
    each(&daemon, "board was read");
    thread::sleep(REST);
    each(&daemon, "at rest");
    restart(&world, daemon);
}

/// Ends the daemon and starts it again on what it left.
pub fn restart(world: &World, daemon: Process) {
    let ran = daemon.used().rss_kib;
    drop(daemon);
    let daemon = world.serve();
    world.wait_until_caught_up();
    thread::sleep(Duration::from_secs(2));
    println!(
        "  restart: peak {:.1} MB, then {:.1} MB, on a journal of {:.1} MB; it ran with {:.1} MB",
        mb(daemon.peak_kib()),
        mb(daemon.used().rss_kib),
        journal_mb(world),
        mb(ran)
    );
}

/// The hooks of one session of Claude Code from its start to its end.
pub fn life(session: usize, calls: usize) -> Vec<String> {
    let id = format!("{session:08x}-0000-4000-8000-000000000000");
    let hook = |event: &str, more: &str| {
        format!(
            r#"{{"session_id":"{id}","transcript_path":"/home/ann/.claude/projects/-home-ann-acme/{id}.jsonl","cwd":"/home/ann/acme","permission_mode":"default","hook_event_name":"{event}"{more}}}"#
        )
    };
    let mut hooks = vec![
        hook("SessionStart", r#","source":"startup","model":"claude-opus-4-5""#),
        hook(
            "UserPromptSubmit",
            &format!(r#","prompt":"Mend the build of package {session}, then run all its tests""#),
        ),
    ];
    for call in 0..calls {
        let text =
            "let answer = question.map(str::len).unwrap_or_default();\\n".repeat(1 + 7 * call);
        let tool = format!(
            r#","tool_name":"Write","tool_input":{{"file_path":"/home/ann/acme/src/part_{call}.rs","content":"{text}"}},"tool_use_id":"toolu_{session:08}_{call:08}""#
        );
        hooks.push(hook("PreToolUse", &tool));
        hooks.push(hook("PostToolUse", &format!(r#"{tool},"tool_response":{{"success":true}}"#)));
    }
    hooks.push(hook(
        "Stop",
        r#","stop_hook_active":false,"last_assistant_message":"The build works again, and all tests pass.""#,
    ));
    hooks.push(hook("SessionEnd", r#","reason":"other""#));
    hooks
}

pub fn mb(kib: u64) -> f64 {
    kib as f64 * 1.024 / 1e3
}

/// The journal with its write-ahead log.
pub fn journal_mb(world: &World) -> f64 {
    let part = |name: &str| {
        let path = world.path("state/quarterdeck").join(name);
        fs::metadata(path).map_or(0, |metadata| metadata.len())
    };
    (part("journal.db") + part("journal.db-wal")) as f64 / 1e6
}
