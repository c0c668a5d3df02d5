//! P9: a line appended to a session file until its event at a reader of the stream; and whether
//! any is lost, also when the kernel drops its own notices.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::world::{Process, World, percentile, session_files, title};

const FILES: usize = 200;
const LINES: usize = 20_000;
const LINE_EVERY: Duration = Duration::from_millis(1);
const PATIENCE: Duration = Duration::from_secs(30);

pub fn measure() {
    println!("P9 {FILES} files, {LINES} lines, one each {LINE_EVERY:?}");
    let world = World::new("tail");
    let files = session_files(&world, FILES);
    let daemon = world.serve();
    world.wait_until_caught_up();
    let titles = listen(&world);
    let mut opened: Vec<File> = files.iter().map(open).collect();
    let before = daemon.used();
    let mut written = Vec::with_capacity(LINES);
    let begun = Instant::now();
    for line in 0..LINES {
        // On its own clock: a late line does not delay the next ones.
        let due = begun + LINE_EVERY * line as u32;
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        let session = line % FILES;
        written.push(Instant::now());
        opened[session].write_all(title(session, line).as_bytes()).expect("appended");
    }
    let took = begun.elapsed();
    let mut seen: BTreeMap<usize, f64> = BTreeMap::new();
    while seen.len() < LINES {
        let Ok((at, line)) = titles.recv_timeout(PATIENCE) else { break };
        let Some(written) = written.get(line) else { continue };
        seen.entry(line).or_insert((at - *written).as_secs_f64() * 1e3);
    }
    let after = daemon.used();
    let mut ms: Vec<f64> = seen.values().copied().collect();
    println!(
        "  p50 {:.2} ms  p99 {:.2} ms  max {:.2} ms  lost {}  ({:.0} lines/s, daemon {:.0} % of a core)",
        percentile(&mut ms, 50.0),
        percentile(&mut ms, 99.0),
        percentile(&mut ms, 100.0),
        LINES - seen.len(),
        LINES as f64 / took.as_secs_f64(),
        (after.cpu_ms - before.cpu_ms) / took.as_secs_f64() / 10.0,
    );

    overflow(&world, &daemon, &mut opened);
}

/// The kernel keeps 16,384 notices for us; stopped, we take none. The first half of the files
/// fills the queue, so that of the other half we are not told at all.
fn overflow(world: &World, daemon: &Process, files: &mut [File]) {
    let pid = Pid::from_raw(daemon.pid() as i32).expect("not zero");
    kill_process(pid, Signal::STOP).expect("it lives");
    for line in 0..LINES {
        let session = line % (FILES / 2);
        files[session].write_all(title(session, LINES + line).as_bytes()).expect("appended");
    }
    let last = |session: usize| 2 * LINES + session;
    for (session, file) in files.iter_mut().enumerate() {
        file.write_all(title(session, last(session)).as_bytes()).expect("appended");
    }
    kill_process(pid, Signal::CONT).expect("it lives");
    let begun = Instant::now();
    let behind = loop {
        let board = world.get("/api/live/sessions");
        let is_behind = |session: &usize| !board.contains(&format!("\"line-{}.\"", last(*session)));
        let behind = (0..FILES).filter(is_behind).count();
        if behind == 0 || begun.elapsed() > PATIENCE {
            break behind;
        }
    };
    let health: Value = serde_json::from_str(&world.get("/api/health")).expect("JSON");
    println!(
        "  after {LINES} notices at once: {behind} of {FILES} files behind, {:.0} ms after it went on; \
         troubles told: {} (1 is the overflow)",
        begun.elapsed().as_secs_f64() * 1e3,
        health["notices"]
    );
}

fn open(path: &PathBuf) -> File {
    OpenOptions::new().append(true).open(path).expect("a file")
}

/// The lines that the stream tells of, and when each came.
fn listen(world: &World) -> mpsc::Receiver<(Instant, usize)> {
    let mut stream = UnixStream::connect(world.socket()).expect("it listens");
    let head = "GET /api/live/stream HTTP/1.1\r\nhost: quarterdeck\r\n\r\n";
    stream.write_all(head.as_bytes()).expect("sent");
    let (tell, told) = mpsc::channel();
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    // The beginning of the snapshot: whoever gets it gets every change after it.
    while !first.starts_with("event: snapshot") {
        first.clear();
        reader.read_line(&mut first).expect("text");
    }
    std::thread::spawn(move || {
        let mut line = String::new();
        while reader.read_line(&mut line).is_ok_and(|count| count > 0) {
            let at = Instant::now();
            for title in line.split("\"title\":\"line-").skip(1) {
                let number = title.split('.').next().and_then(|number| number.parse().ok());
                // Nobody asks any more at the end.
                let _ = number.map(|number| tell.send((at, number)));
            }
            line.clear();
        }
    });
    told
}
