//! A daemon of its own process under a flood: what it writes, what it holds, and that commands are
//! answered meanwhile.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use rustix::process::{Pid, Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;

use crate::alone::Started;
use crate::world::{GENEROUS, Running, World};

fn allow_many_files() {
    let allowed = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: allowed.maximum, ..allowed };
    setrlimit(Resource::Nofile, raised).expect("as many as we may");
}

/// The port in what a daemon said when it began.
fn port(said: &str) -> u16 {
    let (_, rest) = said.split_once("listens at http://127.0.0.1:").expect("it says where");
    rest.split(' ').next().and_then(|port| port.parse().ok()).expect("a number")
}

fn connected(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.set_read_timeout(Some(GENEROUS)).expect("patience");
    stream
}

/// Sends all of it on one connection, and reads the answers meanwhile.
fn exchange(port: u16, text: String) -> String {
    let mut stream = connected(port);
    let mut writes = stream.try_clone().expect("a second end");
    std::thread::scope(|scope| {
        scope.spawn(move || writes.write_all(text.as_bytes()).expect("sent"));
        let mut answers = String::new();
        stream.read_to_string(&mut answers).expect("answers");
        answers
    })
}

fn len(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |found| found.len())
}

/// Each was a line of its own once: nineteen megabytes in seconds.
#[test]
fn a_flood_of_refusals_leaves_a_few_lines_and_its_number() {
    const COUNT: usize = 5_000;
    let world = World::new();
    let _started = Started::by(&world);
    let log = world.state().join("qd.log");
    let port = port(&fs::read_to_string(&log).expect("a log"));
    let before = len(&log);
    let path = "x".repeat(4_000);
    let head = format!("GET /sessions/{path} HTTP/1.1\r\nhost: evil.example\r\n");
    let text =
        format!("{head}\r\n").repeat(COUNT - 1) + &format!("{head}connection: close\r\n\r\n");
    let answers = exchange(port, text);
    assert_eq!(answers.matches("foreign_host").count(), COUNT);
    let written = len(&log) - before + len(&world.state().join("qd.log.old"));
    assert!(written < 256 << 10, "{written} bytes");
    world.run(&["status"]).expect(0);
}

#[test]
fn a_log_that_gets_too_long_is_put_aside_while_the_daemon_runs() {
    let world = World::new();
    let log = world.write("state/quarterdeck/qd.log", "");
    // Short enough to be gone on with, and too long after the daemon's first words.
    let long = (8 << 20) - 16;
    fs::File::options().write(true).open(&log).expect("open").set_len(long).expect("long");
    let _started = Started::by(&world);
    let old = world.state().join("qd.log.old");
    assert!((long..long + (64 << 10)).contains(&len(&old)), "{}", len(&old));
    assert!(len(&log) < 1 << 20);
    assert!(fs::read_to_string(&log).expect("a log").contains("Quarterdeck listens"));
}

/// The daemon of one test that does not have its files in the way of ours.
fn limited(world: &World, files: u32) -> Running {
    let mut command = world.command("/bin/sh");
    let qd = env!("CARGO_BIN_EXE_qd");
    command.args(["-c", &format!("ulimit -n {files}; exec '{qd}' serve --port 0")]);
    Running::start(command, "Quarterdeck listens")
}

#[test]
fn connections_of_the_port_leave_files_for_the_socket() {
    allow_many_files();
    let world = World::new();
    let daemon = limited(&world, 256);
    let port = port(&daemon.said.concat());
    let connections: Vec<TcpStream> = (0..400).map(|_| connected(port)).collect();
    world.agent_starts("s1");
    let status = world.run(&["status", "--json"]).expect(0);
    assert!(status.out.contains("s1"), "{status:?}");
    drop(connections);
}

/// Bytes of a process that are in memory.
fn resident(pid: Pid) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}

/// A thousand of them held a gigabyte once, and commands timed out.
#[test]
fn streams_that_nobody_reads_hold_little_and_commands_are_answered() {
    const SESSIONS: usize = 600;
    const STREAMS: usize = 1_100;
    allow_many_files();
    let world = World::new();
    let daemon = world.daemon();
    let port = port(&daemon.said.concat());
    let token = |scope: &str| {
        let token = world.run(&["token", "--scope", scope]).expect(0).out;
        format!("host: 127.0.0.1:{port}\r\nauthorization: Bearer {}\r\n", token.trim())
    };
    let ingest = token("ingest");
    let hook = |nth: usize| {
        let body = json!({"session_id": format!("s-{nth}"), "hook_event_name": "UserPromptSubmit",
            "cwd": format!("/w/{}", "x".repeat(2_000)), "prompt": "x".repeat(2_000)});
        let (body, end) =
            (body.to_string(), if nth == SESSIONS { "connection: close\r\n" } else { "" });
        let len = body.len();
        format!("POST /api/live/hook HTTP/1.1\r\n{ingest}{end}content-length: {len}\r\n\r\n{body}")
    };
    let answers = exchange(port, (1..=SESSIONS).map(hook).collect());
    assert_eq!(answers.matches("HTTP/1.1 200").count(), SESSIONS);
    let get = |what: &str, scope: &str, end: &str| {
        format!("GET /api/live/{what} HTTP/1.1\r\n{}{end}\r\n", token(scope))
    };
    let board = exchange(port, get("sessions", "admin", "connection: close\r\n")).len() as u64;
    assert!(board > 1 << 20, "a large board: {board}");

    let before = resident(daemon.pid());
    let stream = get("stream", "observe", "");
    let unread = (0..STREAMS).map(|_| {
        let mut one = connected(port);
        one.write_all(stream.as_bytes()).expect("sent");
        one
    });
    let unread: Vec<TcpStream> = unread.collect();
    let mut last = connected(port);
    last.write_all(get("stream", "operate", "").as_bytes()).expect("sent");
    let mut head = [0; 12];
    last.read_exact(&mut head).expect("an answer");
    assert!(head.ends_with(b"200"));
    let status = world.run(&["status", "--json"]).expect(0);
    assert!(status.out.contains("s-1"));
    let grown = resident(daemon.pid()).saturating_sub(before);
    assert!(grown < 64 << 20, "{} MB", grown >> 20);
    assert!(grown < STREAMS as u64 / 4 * board);
    drop(unread);
}
