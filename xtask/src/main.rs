//! The project's chores, in Rust so that a clone and a toolchain are enough (and npm, for the
//! agents that the tests run).
//!
//! `cargo xtask test` is the one test command; `cargo xtask ci` is what a landing runs.

mod clients;
mod debian;
mod fuzz;
mod latest;
mod npm;
mod page;
mod prices;
mod rules;

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::{env, fs};

use anyhow::{Context, Result, bail};

const USAGE: &str = "\
cargo xtask test     format, clippy, every test, the page's in a browser too; ends with
                     `N passed, N failed`
cargo xtask ci       what a landing runs: the same
cargo xtask clients  install the real agents the tests run, as pinned in tests/clients
cargo xtask clients --latest
                     install the newest versions beside them, say what they have that we do not
                     know, and run the live tests with them
cargo xtask bench session
                     transitions a second, bytes a session, a million sessions
cargo xtask bench store
                     entries a second beside the disk's syncs, replay, restart
cargo xtask bench forwarder
                     what an agent waits for at each hook, bash + curl beside it
cargo xtask bench live
                     from what a client shows to what the daemon says, with the real clients
cargo xtask bench ingest|tail|idle [--minutes N]
                     the daemon: hooks a second beside a server that keeps nothing; a line until
                     its event; what it uses at rest
cargo xtask bench memory [--sessions N]
                     what sessions at rest cost, and a restart with them; QD_PROGRAM names another
                     qd than the one built here
cargo xtask soak [--minutes N]
                     the daemon's memory under hooks, lines, streams and sessions that come and
                     go: the curve, its slope, and a restart on what that left
cargo xtask bench board
                     a restart and the whole board, a thousand readers of the stream, a thousand
                     live cards in a browser, and from a signal to the screen
cargo xtask bench tools
                     a command of a driven session, confined and not, beside a plain one
cargo xtask bench usage
                     qd usage over a gigabyte and ten thousand files, ccusage and a plain read
                     beside it
cargo xtask prices LIST DATE
                     make the price table anew: LIST is LiteLLM's
                     model_prices_and_context_window.json, DATE the day it is of
cargo xtask page     check and test the page, in a real browser against the real daemon
cargo xtask bench page
                     frames a second with a thousand live cards; from a signal to the screen
cargo xtask forwarder
                     build qd-hook as it is shipped, and say where it is
cargo xtask rules [PATCH…]
                     switch each rule learnt from the clients off; its captures must fail then
cargo xtask fuzz [SECONDS] [TARGET]
                     every parser under a fuzzer, 60 seconds each; targets are the folders of
                     fuzz/corpus";

/// How long each parser is fuzzed where nobody says.
const FUZZ_SECONDS: &str = "60";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["test"] | ["ci"] => test(),
        ["clients"] => clients::install(),
        ["clients", "--latest"] => latest::latest(),
        ["bench", "session"] => run("cargo", &["bench", "--package", "qd-session"]),
        ["bench", "store"] => run("cargo", &["bench", "--package", "qd-store"]),
        ["page"] => page::test().and_then(Counts::judged),
        ["bench", "page"] => page::bench(),
        ["bench", "forwarder"] => bench_forwarder(),
        ["bench", "live"] => clients::install()
            .and_then(|()| run("cargo", &["bench", "--package", "qd", "--bench", "live"])),
        ["bench", "tools"] => {
            run("cargo", &["bench", "--package", "qd-runners", "--bench", "tools"])
        }
        ["bench", "usage"] => bench_usage(),
        ["bench", "board"] => {
            run("cargo", &["bench", "--package", "qd", "--bench", "daemon", "--", "board"])
                .and_then(|()| page::bench())
        }
        ["bench", what @ ("ingest" | "tail" | "idle" | "memory"), more @ ..]
        | [what @ "soak", more @ ..] => {
            let daemon = ["bench", "--package", "qd", "--bench", "daemon", "--", what];
            run("cargo", &[&daemon[..], more].concat())
        }
        ["prices", list, date] => prices::refresh(list, date),
        ["forwarder"] => forwarder().map(|program| println!("{}", program.display())),
        ["rules", only @ ..] => rules::rules(only),
        ["fuzz"] => start_fuzz(FUZZ_SECONDS, None),
        ["fuzz", seconds] => start_fuzz(seconds, None),
        ["fuzz", seconds, target] => start_fuzz(seconds, Some(target)),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn start_fuzz(seconds: &str, target: Option<&str>) -> Result<()> {
    let seconds =
        seconds.parse().with_context(|| format!("`{seconds}` is no number of seconds"))?;
    fuzz::fuzz(seconds, target)
}

fn test() -> Result<()> {
    run("cargo", &["fmt", "--all", "--check"])?;
    run("cargo", &["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])?;
    clients::install()?;
    let ours = ours()?;
    let page = page::test_with_built()?;
    let all = Counts { passed: ours.passed + page.passed, failed: ours.failed + page.failed };
    all.judged()
}

/// Cargo's tests. Those of the rooms that act on the world, with real clients, processes and disks,
/// run again, alone, twice at most, where they failed: a client in a terminal that shares its machine
/// with others loses a key now and then. What passes only then is said at the end; what keeps failing
/// has failed, and so has every test of a pure room that failed once.
fn ours() -> Result<Counts> {
    let all = ["test", "--workspace", "--no-fail-fast", "--", "--test-threads", SIDE_BY_SIDE];
    let (mut counts, mut failed) = count_tests(&all)?;
    for _ in 0..AGAIN_TIMES {
        if failed.is_empty() || failed.len() as u64 != counts.failed || failed.len() > AGAIN_MAX {
            break;
        }
        let mut again = vec!["test"];
        again.extend(ACTING_ROOMS);
        again.extend(["--no-fail-fast", "--", "--exact", "--test-threads", "1"]);
        again.extend(failed.iter().map(String::as_str));
        let (alone, still) = count_tests(&again)?;
        // One of another binary did not run again and stays failed.
        let healed = alone.passed.min(counts.failed);
        println!("passed only alone: {healed} of {}", failed.join(", "));
        counts = Counts { passed: counts.passed + healed, failed: counts.failed - healed };
        failed = still;
    }
    Ok(counts)
}

/// Clients mostly wait: for their model, for a key, for us.
const SIDE_BY_SIDE: &str = "3";

/// How often.
const AGAIN_TIMES: usize = 2;

/// The rooms whose tests depend on more than their code.
const ACTING_ROOMS: [&str; 8] = [
    "--package",
    "qd",
    "--package",
    "qd-broker",
    "--package",
    "qd-server",
    "--package",
    "qd-testbed",
];

/// More than that is no accident.
const AGAIN_MAX: usize = 8;

/// How many tests passed and failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    passed: u64,
    failed: u64,
}

impl Counts {
    fn judged(self) -> Result<()> {
        let Self { passed, failed } = self;
        println!("{passed} passed, {failed} failed");
        if failed > 0 || passed == 0 {
            bail!("{failed} tests failed, {passed} passed");
        }
        Ok(())
    }
}

fn bench_forwarder() -> Result<()> {
    let program = forwarder()?;
    let arguments = ["bench", "--package", "qd", "--bench", "forwarder"];
    run_with("cargo", &arguments, &[("QD_HOOK", program.as_os_str())])
}

fn bench_usage() -> Result<()> {
    let peer = clients::ccusage()?;
    let arguments = ["bench", "--package", "qd", "--bench", "usage"];
    run_with("cargo", &arguments, &[("CCUSAGE", peer.as_os_str())])
}

/// Builds qd-hook without a dynamic linker, which costs an agent a third of a millisecond at
/// every hook. The flags are for this one program: `qd` itself asks the system for names and
/// must not be static with glibc.
fn forwarder() -> Result<PathBuf> {
    let arguments = ["rustc", "--release", "--package", "qd", "--bin", "qd-hook", "--"];
    let small = ["-Cpanic=abort", "-Copt-level=s"];
    let is_static: &[&str] =
        if cfg!(target_os = "linux") { &["-Ctarget-feature=+crt-static"] } else { &[] };
    run("cargo", &[&arguments[..], &small, is_static].concat())?;
    let target = target()?;
    // Under a name of its own, or the next plain build would replace it.
    let shipped = target.join("qd-hook");
    fs::copy(target.join("release/qd-hook"), &shipped).context("cannot copy qd-hook")?;
    Ok(shipped)
}

/// Where cargo puts what it builds.
fn target() -> Result<PathBuf> {
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), PathBuf::from);
    Ok(env::current_dir()?.join(target))
}

fn run(program: &str, arguments: &[&str]) -> Result<()> {
    run_with(program, arguments, &[])
}

fn run_with(program: &str, arguments: &[&str], variables: &[(&str, &OsStr)]) -> Result<()> {
    eprintln!("$ {program} {}", arguments.join(" "));
    let status = Command::new(program)
        .args(arguments)
        .envs(variables.iter().copied())
        .status()
        .with_context(|| format!("cannot run {program}"))?;
    if !status.success() {
        bail!("{program} {} failed", arguments.join(" "));
    }
    Ok(())
}

/// Runs cargo's tests, passes their output on, and adds up what each binary reports. Beside it the
/// names of those that failed.
fn count_tests(arguments: &[&str]) -> Result<(Counts, Vec<String>)> {
    eprintln!("$ cargo {}", arguments.join(" "));
    let mut child = Command::new("cargo")
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run cargo")?;
    let output = child.stdout.take().context("cargo's output")?;
    let (mut counts, mut names) = (Counts::default(), Vec::new());
    for line in BufReader::new(output).lines() {
        let line = line.context("cargo's output")?;
        println!("{line}");
        let name = line.strip_prefix("test ").and_then(|line| line.strip_suffix(" ... FAILED"));
        names.extend(name.map(str::to_owned));
        if let Some(result) = line.strip_prefix("test result: ") {
            counts.passed += counted(result, " passed");
            counts.failed += counted(result, " failed");
        }
    }
    let status = child.wait().context("cargo's end")?;
    // A test binary that does not build or crashes reports no counts.
    if !status.success() && counts.failed == 0 {
        counts.failed = 1;
    }
    Ok((counts, names))
}

/// The number that stands before a word: `ok. 12 passed; 0 failed; …`.
fn counted(counts: &str, word: &str) -> u64 {
    let before = counts.split(word).next().unwrap_or_default();
    let digits = before.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    digits.parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::counted;

    #[test]
    fn counts_are_read_off_a_result_line() {
        let line = "FAILED. 12 passed; 3 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!((counted(line, " passed"), counted(line, " failed")), (12, 3));
        let page = "      Tests  1 failed | 27 passed (28)";
        assert_eq!((counted(page, " passed"), counted(page, " failed")), (27, 1));
        assert_eq!(counted("      Tests  28 passed (28)", " failed"), 0);
    }
}
