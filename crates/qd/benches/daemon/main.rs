//! The real daemon under load and at rest. Ratios count, not absolutes: the machine is shared.
//!
//! `cargo xtask bench ingest|tail|idle|board|memory` and `cargo xtask soak`, which are
//! `cargo bench -p qd --bench daemon -- WORD [--minutes N]`. `QD_PROGRAM` names another `qd` to be
//! measured by the same rules.

mod board;
mod idle;
mod ingest;
mod memory;
mod peer;
mod readers;
mod soak;
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
        ["memory"] => memory::measure(8_000),
        ["memory", "--sessions", count] => memory::measure(count.parse().expect("a number")),
        ["soak"] => soak::measure(15),
        ["soak", "--minutes", minutes] => soak::measure(minutes.parse().expect("a number")),
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
        _ => panic!("ingest, tail, idle or soak [--minutes N], memory [--sessions N], or board"),
    }
    println!(
        "load average {}",
        std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim()
    );
}
