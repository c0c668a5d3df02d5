//! Signs of life of the processes that carry sessions: stopped or not, and whether anything of them
//! moves.
//!
//! The kernel tells nobody that a process was stopped, so they are looked at every [`VITALS_EVERY`].
//! What moves is more costly to find out and is measured every [`MOVES_EVERY`], of those only that
//! are at work: CPU time of what the process has started (a terminal's spinner turns whatever
//! happens, so its own does not count), and bytes over its TCP connections and those of its
//! children.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use qd_broker::vital::{MOVES_EVERY, Vital, Watched};
use qd_host::process_table::ProcessTable;
use qd_host::processes::{PROCESSES_MAX, Process};
use qd_session::id::ProcessKey;
use qd_session::moment::Timestamp;
use tokio::task::JoinHandle;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::traffic::{Traffic, traffic};

/// Files of one process that are looked at for sockets. A client has some dozen.
const SOCKETS_MAX: usize = 1_024;

/// How often processes are looked at.
pub const VITALS_EVERY: Duration = Duration::from_secs(2);

/// What becomes of waiting.
#[derive(Debug)]
pub enum VitalsNews {
    /// It is time to say which processes are to be looked at.
    Due,
    Seen(Vec<Vital>),
}

/// The source: one look at a time, beside the loop.
#[derive(Debug)]
pub struct VitalsWatch {
    every: Interval,
    gauge: Option<Gauge>,
    looking: Option<JoinHandle<(Gauge, Vec<Vital>)>>,
    now: fn() -> Timestamp,
}

impl VitalsWatch {
    /// Must be called in a Tokio runtime.
    pub fn start(now: fn() -> Timestamp) -> Self {
        let mut every = interval(VITALS_EVERY);
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { every, gauge: Some(Gauge::default()), looking: None, now }
    }

    /// May be dropped and asked again.
    pub async fn next(&mut self) -> VitalsNews {
        let Some(looking) = &mut self.looking else {
            self.every.tick().await;
            return VitalsNews::Due;
        };
        let looked = looking.await;
        self.looking = None;
        match looked {
            Ok((gauge, vitals)) => {
                self.gauge = Some(gauge);
                VitalsNews::Seen(vitals)
            }
            // It panicked, or the runtime ends: nothing is seen any more, and nothing is claimed.
            Err(_) => pending().await,
        }
    }

    /// Looks at these.
    pub fn look(&mut self, watched: Vec<Watched>) {
        if watched.is_empty() {
            return;
        }
        let (now, Some(mut gauge)) = (self.now, self.gauge.take()) else { return };
        self.looking = Some(tokio::task::spawn_blocking(move || {
            let seen = gauge.read(&watched, now());
            (gauge, seen)
        }));
    }
}

/// What was measured last.
#[derive(Debug, Default)]
struct Gauge {
    measured_at: Option<Instant>,
    before: BTreeMap<ProcessKey, Motion>,
}

/// What is read once, for all processes that are measured.
#[derive(Debug)]
struct Machine {
    table: ProcessTable,
    traffic: Traffic,
    /// Its connections are those of this network.
    network: PathBuf,
}

impl Machine {
    fn read() -> Option<Self> {
        let (traffic, network) = (traffic().ok()?, network("self")?);
        Some(Self { table: ProcessTable::read(), traffic, network })
    }
}

/// The network that a process lives in; a container has one of its own.
fn network(process: &str) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{process}/ns/net")).ok()
}

/// All that has moved so far, of a process and what it has started.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Motion {
    /// Clock ticks of each child.
    cpu: BTreeMap<Process, u64>,
    /// Bytes of each connection.
    bytes: BTreeMap<u64, u64>,
}

impl Gauge {
    fn read(&mut self, watched: &[Watched], at: Timestamp) -> Vec<Vital> {
        let is_due = self.measured_at.is_none_or(|then| then.elapsed() >= MOVES_EVERY);
        let works = watched.iter().any(|one| one.works);
        let machine = (is_due && works).then(Machine::read).flatten();
        let mut before = std::mem::take(&mut self.before);
        if is_due {
            self.measured_at = Some(Instant::now());
        }
        let mut seen = Vec::new();
        for Watched { process: key, works } in watched.iter().take(PROCESSES_MAX) {
            let Some(process) = Process::named(key.as_str()) else { continue };
            let Some(is_stopped) = process.is_stopped() else { continue };
            let known = before.remove(key);
            let now = machine.as_ref().filter(|_| *works);
            let now = now.and_then(|machine| Motion::of(process, machine));
            let moved = now.as_ref().zip(known.as_ref()).map(|(now, known)| now.moved_since(known));
            if let Some(motion) = now.or(known.filter(|_| *works && !is_due)) {
                self.before.insert(key.clone(), motion);
            }
            seen.push(Vital { process: key.clone(), is_stopped, moved, at });
        }
        seen
    }
}

impl Motion {
    /// None where not all of it may be seen.
    fn of(process: Process, machine: &Machine) -> Option<Self> {
        let Machine { table, traffic, network: own } = machine;
        if network(&process.pid.to_string())? != *own {
            return None;
        }
        let children = table.descendants(process);
        let mut sockets = sockets_of(process)?;
        for child in &children {
            // One that is another user's keeps its sockets to itself; its CPU time counts.
            sockets.extend(sockets_of(*child).unwrap_or_default());
        }
        let bytes = sockets.iter().filter_map(|inode| Some((*inode, *traffic.get(inode)?)));
        let cpu = children.iter().filter_map(|child| Some((*child, child.cpu_ticks()?)));
        Some(Self { bytes: bytes.collect(), cpu: cpu.collect() })
    }

    /// A child or a connection that came or went is a movement, too.
    fn moved_since(&self, before: &Self) -> bool {
        self != before
    }
}

/// The inodes of the sockets that a process has open; none where nobody may look.
fn sockets_of(process: Process) -> Option<BTreeSet<u64>> {
    let folder = format!("/proc/{}/fd", process.pid);
    let files = std::fs::read_dir(Path::new(&folder)).ok()?.flatten().take(SOCKETS_MAX);
    let inode = |link: &Path| {
        let name = link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
        name.parse().ok()
    };
    Some(files.filter_map(|file| inode(&std::fs::read_link(file.path()).ok()?)).collect())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::{Child, Command, Stdio};

    use rustix::process::{Pid, Signal, kill_process};

    use super::*;

    fn shell(script: &str) -> (Child, Watched) {
        let mut command = Command::new("sh");
        let child = command.args(["-c", script]).stdin(Stdio::piped()).spawn().unwrap();
        let process = Process::with_pid(child.id()).unwrap().key();
        (child, Watched { process, works: true })
    }

    fn end(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Looks until it says that.
    fn until(watched: &Watched, is: impl Fn(&Vital) -> bool) -> Vital {
        let begin = Instant::now();
        let mut gauge = Gauge::default();
        loop {
            gauge.measured_at = None;
            let seen = gauge.read(std::slice::from_ref(watched), Timestamp(7));
            if let Some(vital) = seen.into_iter().find(&is) {
                return vital;
            }
            assert!(begin.elapsed() < Duration::from_secs(60), "it never comes to that");
        }
    }

    #[test]
    fn a_stopped_process_is_seen_to_be_until_it_goes_on() {
        let (child, watched) = shell("read line");
        let pid = Pid::from_child(&child);
        until(&watched, |vital| !vital.is_stopped);
        kill_process(pid, Signal::STOP).unwrap();
        until(&watched, |vital| vital.is_stopped);
        kill_process(pid, Signal::CONT).unwrap();
        until(&watched, |vital| !vital.is_stopped);
        end(child);
    }

    #[test]
    fn a_child_that_computes_moves_and_one_that_waits_does_not() {
        let (idle, watched) = shell("cat; true");
        // The shell has to start it first.
        until(&watched, |vital| vital.moved == Some(false));
        end(idle);
        let (busy, watched) = shell("while :; do :; done & wait");
        until(&watched, |vital| vital.moved == Some(true));
        let loops = Process::named(watched.process.as_str()).unwrap();
        let loops = ProcessTable::read().descendants(loops);
        end(busy);
        for process in loops {
            let pid = Pid::from_raw(i32::try_from(process.pid).unwrap()).unwrap();
            kill_process(pid, Signal::KILL).unwrap();
        }
    }

    #[test]
    fn of_one_in_another_network_nothing_is_claimed() {
        let own = Machine::read().unwrap();
        let elsewhere = Machine { network: "net:[1]".into(), ..Machine::read().unwrap() };
        let (child, watched) = shell("read line");
        let process = Process::named(watched.process.as_str()).unwrap();
        assert!(Motion::of(process, &own).is_some());
        assert_eq!(Motion::of(process, &elsewhere), None);
        end(child);
    }

    #[tokio::test]
    async fn a_time_without_anything_to_look_at_is_no_end() {
        let (child, watched) = shell("read line");
        let mut vitals = VitalsWatch::start(|| Timestamp(7));
        vitals.look(Vec::new());
        vitals.look(vec![watched.clone()]);
        let VitalsNews::Seen(seen) = vitals.next().await else { panic!("it looks") };
        assert_eq!(seen.first().map(|vital| &vital.process), Some(&watched.process));
        end(child);
    }

    #[test]
    fn one_that_ended_is_not_seen() {
        let (child, watched) = shell("read line");
        end(child);
        assert_eq!(Gauge::default().read(&[watched], Timestamp(7)), []);
    }
}
