//! What the daemon's memory does under a mixed load, and after a restart on what that left.
//!
//! Hooks of sessions that come and go, lines of session files, readers of the stream that stay,
//! come and go, or read slowly. Prints the curve and its slope; it asserts nothing.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::ingest::framed;
use crate::memory::{journal_mb, life, mb, restart};
use crate::world::World;

/// Sessions that live at the same time, each with a sender of its own.
const SENDERS: usize = 8;
const HOOKS_A_SECOND: u32 = 12;
const FILES_OPEN: usize = 20;
const LINES_A_SECOND: u32 = 50;
/// Lines of a session file before another session begins.
const LINES_MAX: usize = 400;
const READERS: usize = 4;
const SAMPLES: u32 = 30;

pub fn measure(minutes: u32) {
    println!("soak: {minutes} min of hooks, lines, streams, sessions that come and go");
    let world = World::new("soak");
    let daemon = world.serve();
    world.wait_until_caught_up();
    let (stop, begun) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut curve = Vec::new();
    thread::scope(|scope| {
        for sender in 0..SENDERS {
            let (world, stop, begun) = (&world, &stop, &begun);
            scope.spawn(move || send_hooks(world, sender, stop, begun));
        }
        scope.spawn(|| write_lines(&world, &stop, &begun));
        for _ in 0..READERS {
            scope.spawn(|| read_stream(&world, &stop));
        }
        scope.spawn(|| come_and_go(&world, &stop));
        scope.spawn(|| read_slowly(&world, &stop));
        println!("     min   RSS MB  anon MB  sessions  journal MB");
        let clock = Instant::now();
        let every = Duration::from_secs(60) * minutes / SAMPLES;
        for nth in 0..=SAMPLES {
            thread::sleep((every * nth).saturating_sub(clock.elapsed()));
            let (used, at) = (daemon.used(), clock.elapsed().as_secs_f64() / 60.0);
            println!(
                "  {at:>6.2}  {:>7.1}  {:>7.1}  {:>8}  {:>10.1}",
                mb(used.rss_kib),
                mb(daemon.anonymous_kib()),
                begun.load(Ordering::Relaxed),
                journal_mb(&world),
            );
            curve.push((at, mb(used.rss_kib)));
        }
        stop.store(true, Ordering::Relaxed);
    });
    let half = &curve[curve.len() / 2..];
    println!("  slope over the second half: {:+.1} MB/hour", slope(half) * 60.0);
    restart(&world, daemon);
}

/// Least squares: how much a value rises for each step of the first.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let above: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let below: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    above / below
}

/// One session after the other, each from its start to its end.
fn send_hooks(world: &World, sender: usize, stop: &AtomicBool, begun: &AtomicU64) {
    let mut stream = UnixStream::connect(world.socket()).expect("it listens");
    let (clock, mut sent) = (Instant::now(), 0);
    for round in 0.. {
        begun.fetch_add(1, Ordering::Relaxed);
        for payload in life(sender + round * SENDERS, 1 + round % 6) {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let due = Duration::from_secs(1) * sent / HOOKS_A_SECOND;
            thread::sleep(due.saturating_sub(clock.elapsed()));
            stream.write_all(&framed(&payload)).expect("sent");
            let mut answer = [0; 1];
            stream.read_exact(&mut answer).expect("an answer");
            assert_eq!(&answer, b"+", "it is taken");
            sent += 1;
        }
    }
}

/// Session files that grow, are left alone, and are followed by new ones.
fn write_lines(world: &World, stop: &AtomicBool, begun: &AtomicU64) {
    let folder = world.home(".claude/projects/-home-ann-acme");
    fs::create_dir_all(&folder).expect("a folder");
    let mut files: Vec<Transcript> =
        (0..FILES_OPEN).map(|nth| Transcript::new(&folder, nth)).collect();
    begun.fetch_add(FILES_OPEN as u64, Ordering::Relaxed);
    let clock = Instant::now();
    for nth in 0_u32.. {
        if stop.load(Ordering::Relaxed) {
            return;
        }
        thread::sleep(
            (Duration::from_secs(1) * nth / LINES_A_SECOND).saturating_sub(clock.elapsed()),
        );
        let file = &mut files[nth as usize % FILES_OPEN];
        if file.lines == LINES_MAX {
            *file = Transcript::new(&folder, file.session + FILES_OPEN);
            begun.fetch_add(1, Ordering::Relaxed);
        }
        file.write();
    }
}

struct Transcript {
    session: usize,
    lines: usize,
    file: File,
}

impl Transcript {
    fn new(folder: &std::path::Path, session: usize) -> Self {
        let path: PathBuf = folder.join(format!("{}.jsonl", id(session)));
        let file = OpenOptions::new().create(true).append(true).open(path).expect("a file");
        Self { session, lines: 0, file }
    }

    /// A prompt, then answers with a call each and what it gave back.
    fn write(&mut self) {
        let (nth, id) = (self.lines, id(self.session));
        self.lines += 1;
        let (call, text) = (nth / 2, "All of it is in place now. ".repeat(1 + nth % 30));
        let what = match (nth, nth % 2) {
            (0, _) => r#""type":"user","message":{"role":"user","content":"Mend the build of the package"}"#.to_owned(),
            (_, 1) => format!(
                r#""type":"assistant","message":{{"id":"msg_{id}_{call}","model":"claude-opus-4-5","role":"assistant","content":[{{"type":"text","text":"{text}"}},{{"type":"tool_use","id":"toolu_{id}_{call}","name":"Bash","input":{{"command":"cargo test -p acme"}}}}],"usage":{{"input_tokens":12,"output_tokens":{nth},"cache_read_input_tokens":20000,"cache_creation_input_tokens":100}}}},"requestId":"req_{id}_{call}""#
            ),
            (_, _) => format!(
                r#""type":"user","message":{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"toolu_{id}_{}","content":"{text}"}}]}}"#,
                call - 1
            ),
        };
        let line = format!(
            "{{{what},\"uuid\":\"{id}-{nth}\",\"sessionId\":\"{id}\",\"cwd\":\"/home/ann/acme\",\"gitBranch\":\"main\",\"version\":\"2.1.0\"}}\n"
        );
        self.file.write_all(line.as_bytes()).expect("appended");
    }
}

/// Far from those of the hooks.
fn id(session: usize) -> String {
    format!("{session:08x}-1111-4000-8000-000000000000")
}

fn open_stream(world: &World) -> UnixStream {
    let mut stream = UnixStream::connect(world.socket()).expect("it listens");
    let head = "GET /api/live/stream HTTP/1.1\r\nhost: quarterdeck\r\n\r\n";
    stream.write_all(head.as_bytes()).expect("sent");
    stream.set_read_timeout(Some(Duration::from_millis(200))).expect("a time limit");
    stream
}

/// Takes what lies there; false where the stream has ended.
fn take(stream: &mut UnixStream, buffer: &mut [u8]) -> bool {
    match stream.read(buffer) {
        Ok(count) => count > 0,
        Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
    }
}

fn read_stream(world: &World, stop: &AtomicBool) {
    let mut buffer = vec![0; 64 << 10];
    while !stop.load(Ordering::Relaxed) {
        let mut stream = open_stream(world);
        while !stop.load(Ordering::Relaxed) && take(&mut stream, &mut buffer) {}
    }
}

/// A page that is opened every second, looked at, and closed.
fn come_and_go(world: &World, stop: &AtomicBool) {
    let mut buffer = vec![0; 64 << 10];
    while !stop.load(Ordering::Relaxed) {
        let mut stream = open_stream(world);
        let clock = Instant::now();
        while clock.elapsed() < Duration::from_secs(1) && take(&mut stream, &mut buffer) {}
    }
}

/// A phone on a bad network: a kilobyte each second.
fn read_slowly(world: &World, stop: &AtomicBool) {
    let mut buffer = [0; 1_024];
    while !stop.load(Ordering::Relaxed) {
        let mut stream = open_stream(world);
        while !stop.load(Ordering::Relaxed) && take(&mut stream, &mut buffer) {
            thread::sleep(Duration::from_secs(1));
        }
    }
}
