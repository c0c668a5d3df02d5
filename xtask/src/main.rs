//! The project's chores, in Rust so that a clone and a toolchain are enough.
//!
//! `cargo xtask test` is the one test command; `cargo xtask ci` is what a landing runs.

mod fuzz;

use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, Result, bail};

const USAGE: &str = "\
cargo xtask test     format, clippy, every test; ends with `N passed, N failed`
cargo xtask ci       what a landing runs: the same
cargo xtask bench session
                     transitions a second, bytes a session, a million sessions
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
        ["bench", "session"] => run("cargo", &["bench", "--package", "qd-session"]),
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
    let (passed, failed) = count_tests(&["test", "--workspace", "--no-fail-fast"])?;
    println!("{passed} passed, {failed} failed");
    if failed > 0 || passed == 0 {
        bail!("{failed} tests failed, {passed} passed");
    }
    Ok(())
}

fn run(program: &str, arguments: &[&str]) -> Result<()> {
    eprintln!("$ {program} {}", arguments.join(" "));
    let status = Command::new(program)
        .args(arguments)
        .status()
        .with_context(|| format!("cannot run {program}"))?;
    if !status.success() {
        bail!("{program} {} failed", arguments.join(" "));
    }
    Ok(())
}

/// Runs cargo's tests, passes their output on, and adds up what each binary reports.
fn count_tests(arguments: &[&str]) -> Result<(u64, u64)> {
    eprintln!("$ cargo {}", arguments.join(" "));
    let mut child = Command::new("cargo")
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run cargo")?;
    let output = child.stdout.take().context("cargo's output")?;
    let (mut passed, mut failed) = (0, 0);
    for line in BufReader::new(output).lines() {
        let line = line.context("cargo's output")?;
        println!("{line}");
        if let Some(counts) = line.strip_prefix("test result: ") {
            passed += counted(counts, " passed");
            failed += counted(counts, " failed");
        }
    }
    let status = child.wait().context("cargo's end")?;
    // A test binary that does not build or crashes reports no counts.
    if !status.success() && failed == 0 {
        failed = 1;
    }
    Ok((passed, failed))
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
    }
}
