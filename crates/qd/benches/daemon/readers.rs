//! P13: a thousand pages on one stream, twenty frames a second for each.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use crate::world::{World, hook};

const READERS: usize = 1_000;
const SESSIONS: usize = 20;
const SIGNALS_A_SECOND: u32 = 20;
const SECONDS: u32 = 10;

pub fn measure() {
    println!("P13 with {READERS} readers of the stream");
    let world = World::new("readers");
    let daemon = world.serve();
    let mut agent = UnixStream::connect(world.socket()).expect("it listens");
    for session in 0..SESSIONS {
        tell(&mut agent, &hook(session, 0));
    }
    let before = daemon.used();
    let mut readers: Vec<UnixStream> = (0..READERS)
        .map(|_| {
            let mut stream = UnixStream::connect(world.socket()).expect("it listens");
            let head = "GET /api/live/stream HTTP/1.1\r\nhost: quarterdeck\r\n\r\n";
            stream.write_all(head.as_bytes()).expect("sent");
            stream.read_exact(&mut [0; 1_024]).expect("the snapshot begins");
            stream.set_nonblocking(true).expect("it need not wait");
            stream
        })
        .collect();
    // What is left of the snapshots.
    read(&mut readers);
    let begun = daemon.used();
    let clock = Instant::now();
    let (mut frames, mut bytes) = (0, 0);
    for beat in 1..=SIGNALS_A_SECOND * SECONDS {
        let nth = beat as usize;
        tell(&mut agent, &hook(nth % SESSIONS, nth / SESSIONS));
        let until = Duration::from_secs(1) * beat / SIGNALS_A_SECOND;
        let (seen, taken) = read(&mut readers);
        (frames, bytes) = (frames + seen, bytes + taken);
        thread::sleep(until.saturating_sub(clock.elapsed()));
    }
    thread::sleep(Duration::from_millis(200));
    let (seen, taken) = read(&mut readers);
    (frames, bytes) = (frames + seen, bytes + taken);
    let elapsed = clock.elapsed().as_secs_f64();
    let used = daemon.used();
    println!(
        "  each got {:.1} frames/s ({:.1} MB/s in all); {:.2} of a core; {:.1} KB a reader",
        frames as f64 / READERS as f64 / elapsed,
        bytes as f64 / 1e6 / elapsed,
        (used.cpu_ms - begun.cpu_ms) / 1e3 / elapsed,
        used.rss_kib.saturating_sub(before.rss_kib) as f64 * 1.024 / READERS as f64,
    );
}

fn tell(agent: &mut UnixStream, payload: &str) {
    let post = format!(
        "POST /api/live/hook HTTP/1.1\r\nhost: q\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{payload}",
        payload.len()
    );
    agent.write_all(post.as_bytes()).expect("sent");
    assert!(agent.read(&mut [0; 1_024]).expect("an answer") > 0, "it was taken");
}

/// Everything that lies there: whole frames, and bytes.
fn read(readers: &mut [UnixStream]) -> (usize, usize) {
    let (mut frames, mut bytes) = (0, 0);
    let mut buffer = vec![0; 64 << 10];
    for reader in readers {
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => panic!("a reader was dropped"),
                Ok(count) => {
                    bytes += count;
                    frames += buffer[..count].windows(6).filter(|word| word == b"\ndata:").count();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
    }
    (frames, bytes)
}
