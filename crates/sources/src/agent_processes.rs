//! Processes of agent products, whoever started them and whether or not anybody can read them.
//!
//! The process table is looked through every [`SCAN_EVERY`]. What is no agent may become one: a
//! wrapper, or a shell, that runs the client in its place. Our own agents, and what runs inside of
//! another process of the same product, are left out.

use std::collections::BTreeMap;
use std::future::pending;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use qd_harness::product::Product;
use qd_session::moment::Timestamp;
use tokio::task::JoinHandle;
use tokio::time::{Interval, MissedTickBehavior, interval};

use qd_broker::unreadable::AgentProcess;
use qd_host::links::followed;
use qd_host::process_table::ProcessTable;
use qd_host::processes::Process;
use qd_host::supervised::{ANCESTORS_SEARCHED_MAX, is_ours};

/// Agents that run and are listed although nobody can read them. An operator runs a dozen.
const AGENT_PROCESSES_MAX: usize = 64;

/// How often processes are looked for.
const SCAN_EVERY: Duration = Duration::from_secs(5);

/// A client needs a few seconds until it can be read.
const YOUNG_MS: u64 = 10_000;

/// The source: one scan at a time, beside the loop.
#[derive(Debug)]
pub struct AgentScan {
    every: Interval,
    scanner: Option<Scanner>,
    scanning: Option<JoinHandle<(Scanner, Vec<AgentProcess>)>>,
    now: fn() -> Timestamp,
}

impl AgentScan {
    /// Looks for agents of this home. Must be called in a Tokio runtime.
    pub fn start(home: &Path, now: fn() -> Timestamp) -> Self {
        let mut every = interval(SCAN_EVERY);
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { every, scanner: Some(Scanner::new(home)), scanning: None, now }
    }

    /// All that run now. May be dropped and asked again.
    pub async fn next(&mut self) -> Vec<AgentProcess> {
        loop {
            if let Some(scanning) = &mut self.scanning {
                let scanned = scanning.await;
                self.scanning = None;
                if let Ok((scanner, found)) = scanned {
                    self.scanner = Some(scanner);
                    return found;
                }
            }
            self.every.tick().await;
            // Without a scanner the last one panicked: nothing is claimed any more.
            let Some(mut scanner) = self.scanner.take() else { return pending().await };
            let now = self.now;
            self.scanning = Some(tokio::task::spawn_blocking(move || {
                let found = scanner.scan(now());
                (scanner, found)
            }));
        }
    }
}

/// The agents that were there at the last scan.
#[derive(Debug)]
struct Scanner {
    /// Without links in it.
    home: PathBuf,
    products: BTreeMap<Process, &'static Product>,
}

impl Scanner {
    fn new(home: &Path) -> Self {
        let home = followed(home).unwrap_or_else(|| home.to_owned());
        Self { home, products: BTreeMap::new() }
    }

    fn scan(&mut self, now: Timestamp) -> Vec<AgentProcess> {
        let user = rustix::process::geteuid().as_raw();
        let table = ProcessTable::read();
        let before = std::mem::take(&mut self.products);
        for process in table.all() {
            let known = before.get(&process).copied();
            let product = known.or_else(|| product_of(process, user, &self.home));
            self.products.extend(product.map(|product| (process, product)));
        }
        let topmost = self.products.iter();
        let topmost =
            topmost.filter(|(process, product)| self.is_topmost(**process, product, &table));
        let found = topmost.filter_map(|(process, product)| found_one(*process, product, &table));
        let is_grown = |one: &AgentProcess| {
            one.started_at.is_none_or(|started_at| now.ms_since(started_at) >= YOUNG_MS)
        };
        found.filter(is_grown).take(AGENT_PROCESSES_MAX).collect()
    }

    /// Products start processes of their own: only the first of a line is the agent.
    fn is_topmost(&self, process: Process, product: &Product, table: &ProcessTable) -> bool {
        let above = std::iter::successors(Some(process), |process| table.above(*process));
        let mut above = above.skip(1).take(ANCESTORS_SEARCHED_MAX);
        !above.any(|above| self.products.get(&above).is_some_and(|known| *known == product))
    }
}

fn product_of(process: Process, user: u32, home: &Path) -> Option<&'static Product> {
    let folder = std::fs::metadata(format!("/proc/{}", process.pid)).ok()?;
    if folder.uid() != user {
        return None;
    }
    let product = started_as(process)?;
    // Whoever runs agents with another home has another daemon for them, or wants none.
    let is_home = |its: String| followed(Path::new(&its)).as_deref() == Some(home);
    let is_of_home = process.variable("HOME").is_none_or(is_home);
    let product = Some(product).filter(|_| is_of_home)?;
    (!product.is_common_word || process.tty().is_some()).then_some(product)
}

/// The product that a process was started as, by its command line.
pub(super) fn started_as(process: Process) -> Option<&'static Product> {
    let line = process.command_line()?;
    let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let words: Vec<&str> =
        words.iter().map(|word| &**word).filter(|word| !word.is_empty()).collect();
    Product::of_command(&words)
}

fn found_one(
    process: Process,
    product: &'static Product,
    table: &ProcessTable,
) -> Option<AgentProcess> {
    if is_ours(process.pid) {
        return None;
    }
    let family = table.descendants(process).into_iter().chain([process]);
    let family = family.map(Process::key).collect();
    let cwd = std::fs::read_link(format!("/proc/{}/cwd", process.pid)).ok();
    let cwd = cwd.map(|cwd| cwd.to_string_lossy().into_owned());
    let (tty, started_at) = (process.tty(), process.started_at());
    process.is_alive().then_some(AgentProcess {
        product,
        pid: process.pid,
        family,
        cwd,
        tty,
        started_at,
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::symlink;
    use std::process::{Command, Stdio};
    use std::time::Instant;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// Ends with the value it is in.
    struct Folder(std::path::PathBuf);

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn an_agent_is_found_with_what_it_has_started_and_once() {
        let folder = Folder(std::env::temp_dir().join(format!("qd-agents-{}", std::process::id())));
        std::fs::create_dir_all(&folder.0).unwrap();
        let home = folder.0.clone();
        symlink(".", folder.0.join("home")).unwrap();
        // A wrapper that runs in its place a program by the name of one that starts itself again.
        symlink("/bin/sh", folder.0.join("cursor-agent")).unwrap();
        let inner = folder.0.join("cursor-agent").display().to_string();
        let script = format!("read line; exec '{inner}' -c \"'{inner}' -c 'cat; true'; true\"");
        let mut agent = Command::new("sh");
        agent.args(["-c", &script]).current_dir(&folder.0).env("HOME", folder.0.join("home"));
        let mut agent = agent.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let process = Process::with_pid(agent.id()).unwrap();
        let later = Timestamp(u64::MAX);
        let ours = |found: &AgentProcess| found.cwd.as_deref() == folder.0.to_str();
        let mut scanner = Scanner::new(&home);
        assert!(!scanner.scan(later).iter().any(ours), "it is no agent yet");
        agent.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        let begin = Instant::now();
        let found = loop {
            let found: Vec<_> = scanner.scan(later).into_iter().filter(ours).collect();
            if found.first().is_some_and(|one| one.family.len() == 3) {
                break found;
            }
            assert!(begin.elapsed() < PATIENCE, "it is never found: {found:?}");
        };
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].product.name, found[0].pid), ("Cursor", process.pid));
        let young = Timestamp(process.started_at().unwrap().0 + YOUNG_MS / 2);
        assert!(!Scanner::new(&home).scan(young).iter().any(ours), "it may still come up");
        let other = Scanner::new(Path::new("/nowhere")).scan(later);
        assert!(!other.iter().any(ours), "another home's agents are another's");
        drop(agent.stdin.take());
        agent.wait().unwrap();
        assert!(!Scanner::new(&home).scan(later).iter().any(ours));
    }
}
