//! Processes of agent products, whoever started them and whether or not anybody can read them.
//!
//! The process table is looked through every [`SCAN_EVERY`]. A command line is read once for each
//! process. Our own agents, and what runs inside of another process of the same product, are left
//! out.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use qd_harness::product::Product;
use qd_session::id::ProcessKey;
use qd_session::moment::Timestamp;
use tokio::task::JoinHandle;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::processes::Process;
use super::supervised::is_ours;
use crate::limits::{AGENT_PROCESSES_MAX, ANCESTORS_SEARCHED_MAX};

/// How often processes are looked for.
const SCAN_EVERY: Duration = Duration::from_secs(5);

/// A client needs a few seconds until it can be read.
const YOUNG_MS: u64 = 10_000;

/// A process of a known product.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentProcess {
    pub product: &'static Product,
    pub process: Process,
    /// It and all that it has started: whichever of them carries a session makes it readable.
    pub family: BTreeSet<ProcessKey>,
    pub cwd: Option<String>,
    pub tty: Option<String>,
    pub started_at: Option<Timestamp>,
}

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

/// What is known of the processes that were there at the last scan.
#[derive(Debug)]
struct Scanner {
    home: PathBuf,
    products: BTreeMap<Process, Option<&'static Product>>,
}

impl Scanner {
    fn new(home: &Path) -> Self {
        Self { home: home.to_owned(), products: BTreeMap::new() }
    }

    fn scan(&mut self, now: Timestamp) -> Vec<AgentProcess> {
        let user = rustix::process::geteuid().as_raw();
        let pids = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let all: BTreeMap<u32, (Process, u32)> = pids
            .filter_map(Process::with_pid)
            .filter_map(|it| Some((it.pid, (it, it.parent()?))))
            .collect();
        let before = std::mem::take(&mut self.products);
        for (process, _) in all.values() {
            let known = before.get(process).copied();
            let product = known.unwrap_or_else(|| product_of(*process, user, &self.home));
            self.products.insert(*process, product);
        }
        let found = self.products.iter().filter_map(|(process, product)| {
            let product = (*product)?;
            self.is_topmost(*process, product, &all).then_some((*process, product))
        });
        let found = found.filter_map(|(process, product)| found_one(process, product, &all));
        let is_grown = |one: &AgentProcess| {
            one.started_at.is_none_or(|started_at| now.ms_since(started_at) >= YOUNG_MS)
        };
        found.filter(is_grown).take(AGENT_PROCESSES_MAX).collect()
    }

    /// Products start processes of their own: only the first of a line is the agent.
    fn is_topmost(&self, process: Process, product: &Product, all: &Table) -> bool {
        let mut next = all.get(&process.pid).map(|(_, parent)| *parent);
        for _ in 0..ANCESTORS_SEARCHED_MAX {
            let Some((above, parent)) = next.and_then(|pid| all.get(&pid)) else { return true };
            if self.products.get(above).is_some_and(|known| *known == Some(product)) {
                return false;
            }
            next = Some(*parent);
        }
        true
    }
}

/// Each process by its pid, and the pid above it.
type Table = BTreeMap<u32, (Process, u32)>;

fn product_of(process: Process, user: u32, home: &Path) -> Option<&'static Product> {
    let folder = std::fs::metadata(format!("/proc/{}", process.pid)).ok()?;
    if folder.uid() != user {
        return None;
    }
    let line = process.command_line()?;
    let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let words: Vec<&str> =
        words.iter().map(|word| &**word).filter(|word| !word.is_empty()).collect();
    let product = Product::of_command(&words)?;
    // Whoever runs agents with another home has another daemon for them, or wants none.
    let is_of_home = process.variable("HOME").is_none_or(|its| Path::new(&its) == home);
    let product = Some(product).filter(|_| is_of_home)?;
    (!product.is_common_word || process.tty().is_some()).then_some(product)
}

fn found_one(process: Process, product: &'static Product, all: &Table) -> Option<AgentProcess> {
    if is_ours(process.pid) {
        return None;
    }
    let mut family = BTreeSet::from([process.pid]);
    // A child's pid may be lower than its parent's: until no more are found.
    loop {
        let more = all.values().filter(|(_, parent)| family.contains(parent));
        let more: Vec<u32> =
            more.map(|(it, _)| it.pid).filter(|pid| !family.contains(pid)).collect();
        if more.is_empty() {
            break;
        }
        family.extend(more);
    }
    let family = family.iter().filter_map(|pid| Some(all.get(pid)?.0.key())).collect();
    let cwd = std::fs::read_link(format!("/proc/{}/cwd", process.pid)).ok();
    let cwd = cwd.map(|cwd| cwd.to_string_lossy().into_owned());
    let (tty, started_at) = (process.tty(), process.started_at());
    process.is_alive().then_some(AgentProcess { product, process, family, cwd, tty, started_at })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::fs::symlink;
    use std::process::{Command, Stdio};

    use super::*;

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
        // A program by the name of one that starts itself again.
        symlink("/bin/sh", folder.0.join("cursor-agent")).unwrap();
        let inner = folder.0.join("cursor-agent").display().to_string();
        let mut agent = Command::new(&inner);
        agent.args(["-c", &format!("'{inner}' -c 'cat; true'; true")]).current_dir(&folder.0);
        agent.env("HOME", &home);
        let mut agent = agent.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let process = Process::with_pid(agent.id()).unwrap();
        let later = Timestamp(u64::MAX);
        let ours = |found: &AgentProcess| found.cwd.as_deref() == folder.0.to_str();
        let found = loop {
            let found: Vec<_> = Scanner::new(&home).scan(later).into_iter().filter(ours).collect();
            if found.first().is_some_and(|one| one.family.len() == 3) {
                break found;
            }
        };
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].product.name, found[0].process), ("Cursor", process));
        let young = Timestamp(process.started_at().unwrap().0 + YOUNG_MS / 2);
        assert!(!Scanner::new(&home).scan(young).iter().any(ours), "it may still come up");
        let other = Scanner::new(Path::new("/nowhere")).scan(later);
        assert!(!other.iter().any(ours), "another home's agents are another's");
        drop(agent.stdin.take());
        agent.wait().unwrap();
        assert!(!Scanner::new(&home).scan(later).iter().any(ours));
    }
}
