//! The real daemon under load and at rest. Ratios count, not absolutes: the machine is shared.
//!
//! `cargo xtask bench ingest|tail|idle|board`, which is
//! `cargo bench -p qd --bench daemon -- WORD [--minutes N]`.

mod board;
mod idle;
mod ingest;
mod peer;
mod readers;
mod tail;
mod world;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["peer", socket] => return peer::serve(socket),
        ["ingest"] => ingest::measure(),
        ["tail"] => tail::measure(),
        ["idle"] => idle::measure(1),
        ["idle", "--minutes", minutes] => idle::measure(minutes.parse().expect("a number")),
        ["board"] => {
            board::measure();
            readers::measure();
        }
        [] => {
            ingest::measure();
            tail::measure();
            board::measure();
            readers::measure();
            idle::measure(1);
        }
        _ => panic!("ingest, tail, idle [--minutes N] or board"),
    }
    println!(
        "load average {}",
        std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim()
    );
}
