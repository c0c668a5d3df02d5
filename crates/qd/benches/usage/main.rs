//! `qd usage` beside ccusage and the least that reading can cost, in one run. Ratios count, not
//! absolutes: the machine is shared.
//!
//! `cargo xtask bench usage`, which installs the peer and says where it is in `CCUSAGE`.

mod corpus;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use self::corpus::{GIGABYTE, MANY_FILES, Profile, Sums};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if let [word, folder] = &words[..]
        && word == "floor"
    {
        return floor(Path::new(folder));
    }
    let peer = std::env::var_os("CCUSAGE").expect("CCUSAGE says where the peer is");
    let world = World::new();
    let large = Compared::on(&world, GIGABYTE, &peer);
    let many = Compared::on(&world, MANY_FILES, &peer);
    println!();
    row("P1", "1 GB, wall, ccusage over qd", ratio(large.peer.wall, large.ours.wall), "≥ 4, 8");
    row("P2", "1 GB, CPU, ccusage over qd", ratio(large.peer.cpu, large.ours.cpu), "≥ 4, 8");
    row(
        "P3",
        "10,000 files, wall, ccusage over qd",
        ratio(many.peer.wall, many.ours.wall),
        "≥ 3, 5",
    );
    row("P4", "1 GB, CPU, qd over the floor", ratio(large.ours.cpu, large.floor.cpu), "≤ 3.5, 2");
    row("P5", "1 GB, first run, s", large.ours.wall.as_secs_f64(), "≤ 1");
    row("P5", "1 GB, run with an index, s", large.again.wall.as_secs_f64(), "≤ 0.3");
    row("P7", "1 GB, peak memory, MB", large.ours.peak_kb as f64 / 1e3, "≤ 64, 32");
    println!("load average {}", fs::read_to_string("/proc/loadavg").unwrap_or_default().trim());
}

fn row(number: &str, what: &str, value: f64, target: &str) {
    println!("{number}  {what:<40} {value:>8.2}   target {target}");
}

fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64().max(0.001)
}

/// The best of some runs of each on one corpus.
#[derive(Debug)]
struct Compared {
    ours: Run,
    again: Run,
    peer: Run,
    floor: Run,
}

impl Compared {
    fn on(world: &World, profile: Profile, peer: &OsStr) -> Self {
        eprintln!("making {}", profile.name);
        let folder = world.0.join(profile.name);
        let sums = corpus::make(profile, &folder);
        let state = world.0.join("state");
        let qd = || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_qd"));
            command.args(["usage", "--json"]).env("XDG_STATE_HOME", &state);
            command
        };
        let ccusage = || {
            let mut command = Command::new(peer);
            command.args(["claude", "daily", "--offline", "--json"]);
            command
        };
        let floor = || {
            let mut command = Command::new(std::env::current_exe().expect("our own path"));
            command.arg("floor").arg(folder.join("projects"));
            command
        };
        // Side by side, so that a busy moment hits all of them.
        let mut rounds: Vec<Self> = Vec::new();
        for _ in 0..ROUNDS {
            let _ = fs::remove_dir_all(&state);
            let ours = world.run(qd(), &folder);
            let again = world.run(qd(), &folder);
            let peer = world.run(ccusage(), &folder);
            for (who, run) in [("qd", &ours), ("qd, again", &again), ("ccusage", &peer)] {
                assert_eq!(totals(&run.output), sums, "{who} on {}", profile.name);
            }
            assert_eq!(days(&ours.output), days(&peer.output), "day by day");
            rounds.push(Self { ours, again, peer, floor: world.run(floor(), &folder) });
        }
        let best =
            |run: fn(&Self) -> &Run| rounds.iter().map(run).min_by_key(|run| run.wall).unwrap();
        let compared = Self {
            ours: best(|round| &round.ours).clone(),
            again: best(|round| &round.again).clone(),
            peer: best(|round| &round.peer).clone(),
            floor: best(|round| &round.floor).clone(),
        };
        for (who, run) in [
            ("qd", &compared.ours),
            ("qd, again", &compared.again),
            ("ccusage", &compared.peer),
            ("floor", &compared.floor),
        ] {
            println!(
                "{:<5} {who:<10} wall {:>6.3} s  CPU {:>6.3} s  peak {:>6} KB",
                profile.name,
                run.wall.as_secs_f64(),
                run.cpu.as_secs_f64(),
                run.peak_kb
            );
        }
        fs::remove_dir_all(&folder).expect("ours");
        compared
    }
}

fn parsed(output: &[u8]) -> Value {
    serde_json::from_slice(output).expect("a report")
}

const KINDS: [&str; 4] = ["inputTokens", "outputTokens", "cacheCreationTokens", "cacheReadTokens"];

fn sums(of: &Value) -> Sums {
    KINDS.map(|kind| of[kind].as_u64().unwrap_or(u64::MAX))
}

fn totals(output: &[u8]) -> Sums {
    sums(&parsed(output)["totals"])
}

fn days(output: &[u8]) -> Vec<(String, Sums)> {
    let report = parsed(output);
    let days = report["daily"].as_array().expect("days").iter();
    days.map(|day| (day["date"].to_string(), sums(day))).collect()
}

/// The least that reading can cost: each byte looked at once, for the ends of lines.
fn floor(folder: &Path) {
    let (mut window, mut lines, mut folders) = (vec![0; 256 << 10], 0_u64, vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let entry = entry.expect("an entry");
            if entry.file_type().expect("a type").is_dir() {
                folders.push(entry.path());
                continue;
            }
            let mut file = File::open(entry.path()).expect("a file");
            loop {
                match file.read(&mut window).expect("bytes") {
                    0 => break,
                    count => lines += memchr::memchr_iter(b'\n', &window[..count]).count() as u64,
                }
            }
        }
    }
    println!("{lines}");
}

#[derive(Debug, Clone)]
struct Run {
    wall: Duration,
    cpu: Duration,
    peak_kb: u64,
    output: Vec<u8>,
}

/// A folder of our own, gone at the end.
#[derive(Debug)]
struct World(PathBuf);

impl World {
    fn new() -> Self {
        let path = std::env::temp_dir().join(format!("qd-bench-usage-{}", std::process::id()));
        fs::create_dir_all(path.join("home")).expect("a folder to work in");
        Self(path)
    }

    fn run(&self, mut command: Command, folder: &Path) -> Run {
        let output = self.0.join("output");
        command
            .env("HOME", self.0.join("home"))
            .env("CLAUDE_CONFIG_DIR", folder)
            .env("TZ", "UTC")
            .stdin(Stdio::null())
            .stdout(File::create(&output).expect("a file"));
        let (cpu, begin) = (children_cpu(), Instant::now());
        let mut child = command.spawn().expect("it starts");
        let status = format!("/proc/{}/status", child.id());
        let mut peak_kb = 0;
        let ended = loop {
            let text = fs::read_to_string(&status).unwrap_or_default();
            let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let kb = peak.and_then(|peak| peak.trim().trim_end_matches(" kB").parse().ok());
            peak_kb = peak_kb.max(kb.unwrap_or(0));
            match child.try_wait().expect("our child") {
                Some(ended) => break ended,
                // The only way to see its peak is to look while it runs.
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        let wall = begin.elapsed();
        assert!(ended.success(), "{command:?}: {ended}");
        let output = fs::read(output).expect("its output");
        Run { wall, cpu: children_cpu() - cpu, peak_kb, output }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// User and system time of all children that ended, in ticks of ten milliseconds.
fn children_cpu() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").expect("ours");
    let (_, fields) = stat.rsplit_once(')').expect("a name in brackets");
    // The third field follows the name; children's times are the 16th and 17th.
    let ticks: u64 = fields
        .split_whitespace()
        .skip(13)
        .take(2)
        .map(|field| field.parse::<u64>().expect("ticks"))
        .sum();
    Duration::from_millis(10 * ticks)
}

/// The best of so many counts: the machine does other things, too.
const ROUNDS: usize = 5;
