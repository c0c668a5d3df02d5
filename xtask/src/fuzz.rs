//! `cargo xtask fuzz`: every parser under libFuzzer, so many seconds each, as many at once as
//! there are cores.
//!
//! A target is a folder of `fuzz/corpus`; one program feeds them all. Without a sanitizer: the
//! crates hold no unsafe code, so what is looked for is a panic, an overflow, a hang or unbounded
//! memory, and a stable toolchain with a C++ compiler is enough.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;

use anyhow::{Context, Result, bail};

/// Longest input. A dozen messages; longer ones only slow the fuzzer down.
const INPUT_BYTES_MAX: u32 = 16 << 10;

/// One input may take so long before it counts as a hang.
const HANG_SECONDS: u32 = 10;

/// Handlers are bounded: a process past this has found one that is not.
const MEMORY_MB_MAX: u32 = 1 << 10;

/// Fuzzes one target, or all.
pub fn fuzz(seconds: u32, only: Option<&str>) -> Result<()> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz").canonicalize()?;
    let targets = targets(&home, only)?;
    let program = build(&home)?;
    let queue = Mutex::new(targets.into_iter());
    let crashed = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(target) = queue.lock().ok().and_then(|mut queue| queue.next()) {
                    let outcome = run(&home, &program, &target, seconds);
                    match &outcome {
                        Ok(runs) => println!("{target:<24} {runs:>12} runs, no crash"),
                        Err(error) => println!("{target:<24} {error:#}"),
                    }
                    if let (Err(_), Ok(mut crashed)) = (outcome, crashed.lock()) {
                        crashed.push(target);
                    }
                }
            });
        }
    });
    let crashed = crashed.into_inner().unwrap_or_default();
    if !crashed.is_empty() {
        bail!(
            "crashed: {}. The inputs are in fuzz/artifacts/TARGET: put each into \
             fuzz/corpus/TARGET, and `cargo test -p qd-harness --test corpus` shows it for ever",
            crashed.join(", ")
        );
    }
    Ok(())
}

fn targets(home: &Path, only: Option<&str>) -> Result<Vec<String>> {
    let mut targets = Vec::new();
    for entry in fs::read_dir(home.join("corpus")).context("fuzz/corpus")? {
        targets.push(entry?.file_name().to_string_lossy().into_owned());
    }
    targets.sort();
    if let Some(only) = only {
        targets.retain(|target| target == only);
    }
    if targets.is_empty() {
        bail!("no such target; the folders of fuzz/corpus are the targets");
    }
    Ok(targets)
}

/// Builds the program, and what builds it where that is missing.
fn build(home: &Path) -> Result<PathBuf> {
    let present = Command::new("cargo").args(["fuzz", "--version"]).output();
    if !present.is_ok_and(|output| output.status.success()) {
        crate::run("cargo", &["install", "cargo-fuzz", "--locked"])?;
    }
    let host = host()?;
    let folder = home.to_str().context("the folder's name is text")?;
    let target = ["--sanitizer", "none", "--target", &host, "parser"];
    crate::run("cargo", &[&["fuzz", "build", "--fuzz-dir", folder], &target[..]].concat())?;
    Ok(home.join("target").join(host).join("release/parser"))
}

fn host() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("cannot run rustc")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc names no host")
}

/// How many inputs were tried.
fn run(home: &Path, program: &Path, target: &str, seconds: u32) -> Result<u64> {
    // What the fuzzer learns stays out of the committed seeds.
    let learned = home.join("target/learned").join(target);
    let artifacts = home.join("artifacts").join(target);
    let log = home.join("target/logs").join(format!("{target}.log"));
    for folder in [&learned, &artifacts, &home.join("target/logs")] {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    }
    let file = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
    let status = Command::new(program)
        .env("QD_FUZZ_TARGET", target)
        .arg(&learned)
        .arg(home.join("corpus").join(target))
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-max_len={INPUT_BYTES_MAX}"))
        .arg(format!("-timeout={HANG_SECONDS}"))
        .arg(format!("-rss_limit_mb={MEMORY_MB_MAX}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg("-print_final_stats=1")
        .stdout(file.try_clone()?)
        .stderr(file)
        .status()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let text = String::from_utf8_lossy(&fs::read(&log)?).into_owned();
    if !status.success() {
        let why = text.lines().find(|line| line.contains("panicked at") || line.contains("ERROR:"));
        bail!("CRASHED, see {}: {}", log.display(), why.unwrap_or("it says nothing"));
    }
    Ok(runs(&text))
}

fn runs(log: &str) -> u64 {
    let line = log.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::runs;

    #[test]
    fn runs_are_read_off_the_fuzzers_last_words() {
        let log = "Done 12 runs\nstat::number_of_executed_units: 1700\nstat::average_exec: 7\n";
        assert_eq!((runs(log), runs("killed")), (1_700, 0));
    }
}
