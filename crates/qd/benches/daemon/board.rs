//! P5, P6: a restart with 1,500 sessions in the journal, and how long the whole board takes.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use crate::world::{World, hook, percentile};

const SESSIONS: usize = 1_500;
const TURNS: usize = 200;

pub fn measure() {
    println!("P5, P6 with {SESSIONS} sessions");
    let world = World::new("board");
    let daemon = world.serve();
    for session in 0..SESSIONS {
        let mut stream = UnixStream::connect(world.socket()).expect("it listens");
        for turn in 0..2 {
            let payload = hook(session, turn);
            let len = payload.len();
            let post = format!(
                "POST /api/live/hook HTTP/1.1\r\nhost: q\r\ncontent-type: application/json\r\ncontent-length: {len}\r\n\r\n{payload}"
            );
            stream.write_all(post.as_bytes()).expect("sent");
            let count = stream.read(&mut [0; 1_024]).expect("an answer");
            assert!(count > 0, "it was taken");
        }
    }
    drop(daemon);
    let begun = Instant::now();
    let daemon = world.serve();
    let bytes = world.get("/api/live/sessions").len();
    println!("  P5 killed, started, board there: {:.0} ms", begun.elapsed().as_secs_f64() * 1e3);
    let mut ms: Vec<f64> = (0..TURNS)
        .map(|_| {
            let begun = Instant::now();
            world.get("/api/live/sessions");
            begun.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    println!(
        "  P6 GET /api/live/sessions: p50 {:.1} ms, p99 {:.1} ms, {bytes} bytes, RSS {} KiB",
        percentile(&mut ms, 50.0),
        percentile(&mut ms, 99.0),
        daemon.used().rss_kib
    );
}
