//! P12: hooks a second from 64 connections, each on disk before it is acknowledged, beside a
//! server of the same shape that keeps nothing.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use qd_hook_wire::{FrameId, Mode};
use qd_sources::hook_intake::{Caller, Frame};

use crate::world::{Process, World, hook};

const CONNECTIONS: usize = 64;
const PATIENCE: Duration = Duration::from_secs(5);

pub fn measure() {
    println!("P12 hooks from {CONNECTIONS} connections, {PATIENCE:?} each");
    let world = World::new("ingest");
    let daemon = world.serve();
    let frames = run("frames, journaled", &daemon, &world.socket(), framed);
    let posts = run("POST, journaled", &daemon, &world.socket(), posted);
    drop(daemon);
    let socket = world.path("peer.sock");
    let mut command = Command::new(std::env::current_exe().expect("this bench"));
    command.arg("peer").arg(&socket);
    let peer = Process::start(command);
    let memory = run("POST, memory only (peer)", &peer, &socket, posted);
    for (what, ours) in [("frames", frames), ("POST", posts)] {
        println!(
            "  {what} ÷ peer: {:.2}× events/s, {:.2}× CPU for each event",
            ours.per_second / memory.per_second,
            ours.cpu_s_per_10k / memory.cpu_s_per_10k
        );
    }
}

#[derive(Clone, Copy)]
struct Rate {
    per_second: f64,
    cpu_s_per_10k: f64,
}

/// Each connection sends a hook, waits for its answer, and sends the next.
fn run(what: &str, server: &Process, socket: &Path, spell: fn(&str) -> Vec<u8>) -> Rate {
    let before = server.used();
    let begun = Instant::now();
    let senders: Vec<_> = (0..CONNECTIONS)
        .map(|sender| {
            let mut stream = UnixStream::connect(socket).expect("it listens");
            std::thread::spawn(move || {
                let (mut turn, mut answer) = (0, [0; 4_096]);
                while begun.elapsed() < PATIENCE {
                    stream.write_all(&spell(&hook(sender, turn))).expect("sent");
                    let count = stream.read(&mut answer).expect("an answer");
                    let is_taken = answer[..count] == *b"+" || answer.starts_with(b"HTTP/1.1 200");
                    assert!(is_taken, "{}", String::from_utf8_lossy(&answer[..count]));
                    turn += 1;
                }
                turn
            })
        })
        .collect();
    let count: usize = senders.into_iter().map(|sender| sender.join().expect("it ends")).sum();
    let per_second = count as f64 / begun.elapsed().as_secs_f64();
    let after = server.used();
    let cpu_s_per_10k = (after.cpu_ms - before.cpu_ms) / 1e3 / count as f64 * 1e4;
    println!(
        "  {what:<26} {per_second:>8.0} events/s  {cpu_s_per_10k:.2} CPU s per 10 k  RSS {} KiB",
        after.rss_kib
    );
    Rate { per_second, cpu_s_per_10k }
}

pub fn framed(payload: &str) -> Vec<u8> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    let frame = Frame {
        mode: Mode::Send,
        id: FrameId::fresh(now),
        at_ms: now.as_millis() as u64,
        seq: now.subsec_nanos() % 1_000_000,
        harness: "claude-code".to_owned(),
        event: None,
        entry: None,
        by: None,
        agent: None,
        cut: None,
        payload: payload.as_bytes().to_vec(),
        whole: None,
        caller: Caller::Spooled,
    };
    frame.delivery().body
}

fn posted(payload: &str) -> Vec<u8> {
    let len = payload.len();
    format!(
        "POST /api/live/hook HTTP/1.1\r\nhost: quarterdeck\r\ncontent-type: application/json\r\ncontent-length: {len}\r\n\r\n{payload}"
    )
    .into_bytes()
}
