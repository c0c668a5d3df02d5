//! Whether a process still lives, by its pid and when it started.
//!
//! A pid is given again to another process; with its start time it is one process for ever.
//! Linux tells the end by a pidfd; where there is none to have, we look every [`POLL_EVERY`].

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use qd_session::id::ProcessKey;
use qd_session::moment::Timestamp;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tokio::sync::mpsc;

use crate::Error;

/// Processes whose end is waited for: each takes a file descriptor, of which a program may have
/// 1,024. Far more than agents fit on one machine.
pub const PROCESSES_MAX: usize = 512;

/// Between two looks at a process whose end the kernel does not tell.
const POLL_EVERY: Duration = Duration::from_secs(2);

/// Bytes of a command line that are looked at: program, options and script stand at its beginning.
const COMMAND_LINE_BYTES_MAX: u64 = 64 << 10;

/// Bytes of a process's environment that are read: for the password of its server, its terminal, and
/// the folder of its files. It has a few kilobytes.
pub const ENVIRONMENT_BYTES_MAX: u64 = 256 << 10;

/// One process, for as long as this machine runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Process {
    pub pid: u32,
    /// Clock ticks after boot, as `/proc/<pid>/stat` has it.
    pub start: u64,
}

impl Process {
    /// The process that has this pid now.
    pub fn with_pid(pid: u32) -> Option<Self> {
        match look(pid) {
            Look::Lives { start } => Some(Self { pid, start }),
            Look::Ended | Look::Hidden => None,
        }
    }

    /// As signals spell it: `4711:93021`.
    pub fn named(key: &str) -> Option<Self> {
        let (pid, start) = key.split_once(':')?;
        Some(Self { pid: pid.parse().ok()?, start: start.parse().ok()? })
    }

    /// When it began; none where that cannot be known. Right to about a second.
    pub fn started_at(self) -> Option<Timestamp> {
        let stat = std::fs::read_to_string("/proc/stat").ok()?;
        let boot_s: u64 =
            stat.lines().find_map(|line| line.strip_prefix("btime "))?.parse().ok()?;
        let ticks_per_s = rustix::param::clock_ticks_per_second();
        let since_boot_ms = self.start.checked_mul(1_000)?.checked_div(ticks_per_s)?;
        Some(Timestamp(boot_s.checked_mul(1_000)?.checked_add(since_boot_ms)?))
    }

    /// The process that has this pid now, and the pid of who started it, or took it over.
    pub fn with_parent(pid: u32) -> Option<(Self, u32)> {
        let stat = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        let Look::Lives { start } = parse_stat(&stat)? else { return None };
        let parent = std::str::from_utf8(stat_fields(&stat)?.nth(1)?).ok()?.parse().ok()?;
        Some((Self { pid, start }, parent))
    }

    /// The pid of who started it, or took it over.
    pub fn parent(self) -> Option<u32> {
        let stat = std::fs::read(format!("/proc/{}/stat", self.pid)).ok()?;
        let mut fields = stat_fields(&stat)?;
        std::str::from_utf8(fields.nth(1)?).ok()?.parse().ok()
    }

    /// Whether it was stopped, by Ctrl-Z say, and not let go on. None once it has ended.
    pub fn is_stopped(self) -> Option<bool> {
        let stat = std::fs::read(format!("/proc/{}/stat", self.pid)).ok()?;
        let state = *stat_fields(&stat)?.next()?.first()?;
        let is_it = parse_stat(&stat)? == Look::Lives { start: self.start };
        is_it.then_some(state == b'T')
    }

    /// How long it has computed so far, in clock ticks, with its ended children.
    pub fn cpu_ticks(self) -> Option<u64> {
        let stat = std::fs::read(format!("/proc/{}/stat", self.pid)).ok()?;
        // `utime`, `stime`, `cutime` and `cstime`: the fields from the 14th on.
        let times = stat_fields(&stat)?.skip(11).take(4);
        times.map(|time| std::str::from_utf8(time).ok()?.parse::<u64>().ok()).sum()
    }

    /// What its first thread calls itself: at most 15 bytes.
    pub fn name(self) -> Option<String> {
        let stat = std::fs::read(format!("/proc/{}/stat", self.pid)).ok()?;
        let begin = stat.iter().position(|byte| *byte == b'(')? + 1;
        let end = stat.iter().rposition(|byte| *byte == b')')?;
        Some(String::from_utf8_lossy(stat.get(begin..end)?).into_owned())
    }

    /// The words it was started with, a zero behind each; only so many bytes of them.
    pub fn command_line(self) -> Option<Vec<u8>> {
        let file = std::fs::File::open(format!("/proc/{}/cmdline", self.pid)).ok()?;
        let mut words = Vec::new();
        file.take(COMMAND_LINE_BYTES_MAX).read_to_end(&mut words).ok()?;
        Some(words)
    }

    /// Whether it was forked and runs nothing of its own yet: until then it shows the program and
    /// the words of its parent.
    pub fn is_bare_fork(self) -> bool {
        /// `PF_FORKNOEXEC` of the kernel.
        const FORKED_NOT_EXECUTED: u64 = 0x40;
        let stat = std::fs::read(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        let flags = stat_fields(&stat).and_then(|mut fields| fields.nth(6));
        let flags = flags.and_then(|flags| std::str::from_utf8(flags).ok()?.parse::<u64>().ok());
        flags.is_some_and(|flags| flags & FORKED_NOT_EXECUTED != 0)
    }

    /// A variable of the environment that it was started with; none where nobody may look.
    pub fn variable(self, name: &str) -> Option<String> {
        let file = std::fs::File::open(format!("/proc/{}/environ", self.pid)).ok()?;
        let mut all = Vec::new();
        file.take(ENVIRONMENT_BYTES_MAX).read_to_end(&mut all).ok()?;
        let mut found = all.split(|byte| *byte == 0);
        let value = found.find_map(|one| one.strip_prefix(name.as_bytes())?.strip_prefix(b"="))?;
        Some(String::from_utf8_lossy(value).into_owned())
    }

    /// The terminal that controls it.
    pub fn tty(self) -> Option<String> {
        let stat = std::fs::read(format!("/proc/{}/stat", self.pid)).ok()?;
        let number = stat_fields(&stat)?.nth(4)?;
        tty_name(str::from_utf8(number).ok()?.parse().ok()?)
    }

    /// As signals spell it.
    pub fn key(self) -> ProcessKey {
        ProcessKey::new(format!("{}:{}", self.pid, self.start))
    }

    /// False once it is known to have ended, though its parent may not have noticed.
    pub fn is_alive(self) -> bool {
        match look(self.pid) {
            Look::Lives { start } => start == self.start,
            Look::Ended => false,
            Look::Hidden => true,
        }
    }
}

/// The processes whose end is waited for, by a thread that sleeps until there is one.
#[derive(Debug)]
pub struct Processes {
    observed: BTreeSet<Process>,
    orders: Arc<Mutex<Orders>>,
    /// A byte wakes the thread; closing it ends the thread.
    waker: UnixStream,
    ends: mpsc::Receiver<Process>,
}

/// What the thread has not taken over yet. Bounded by what is and was observed.
#[derive(Debug, Default)]
struct Orders {
    observe: Vec<Observed>,
    forget: BTreeSet<Process>,
}

#[derive(Debug)]
struct Observed {
    process: Process,
    /// Readable when it has ended. None on an old kernel, when too many files are open, and when
    /// there is no such process; looking tells which.
    descriptor: Option<OwnedFd>,
}

impl Processes {
    pub fn new() -> Result<Self, Error> {
        let failed = |source| Error::Processes { source };
        let (waker, woken) = UnixStream::pair().map_err(failed)?;
        waker.set_nonblocking(true).map_err(failed)?;
        woken.set_nonblocking(true).map_err(failed)?;
        let orders = Arc::<Mutex<Orders>>::default();
        let taken = orders.clone();
        // All that are observed may end before anybody asks.
        let (ends_told, ends) = mpsc::channel(PROCESSES_MAX);
        thread::Builder::new()
            .name("qd-processes".to_owned())
            .spawn(move || attend(&woken, &taken, &ends_told))
            .map_err(failed)?;
        Ok(Self { observed: BTreeSet::new(), orders, waker, ends })
    }

    /// Waits for its end, which [`Self::next_end`] tells: at once, if it has ended already or its
    /// pid is another's now. Asking twice is asking once.
    pub fn observe(&mut self, process: Process) -> Result<(), Error> {
        if self.observed.contains(&process) {
            return Ok(());
        }
        if self.observed.len() >= PROCESSES_MAX {
            return Err(Error::ProcessesTooMany);
        }
        let descriptor = descriptor(process.pid);
        self.observed.insert(process);
        self.order(|orders| {
            orders.forget.remove(&process);
            orders.observe.push(Observed { process, descriptor });
        });
        Ok(())
    }

    /// Its end is not told.
    pub fn forget(&mut self, process: Process) {
        if self.observed.remove(&process) {
            self.order(|orders| {
                let before = orders.observe.len();
                orders.observe.retain(|new| new.process != process);
                if orders.observe.len() == before {
                    orders.forget.insert(process);
                }
            });
        }
    }

    /// The next one that ended; none while nothing is observed. May be dropped and asked again.
    pub async fn next_end(&mut self) -> Option<Process> {
        while !self.observed.is_empty() {
            let process = self.ends.recv().await.expect("the thread lives as long as we do");
            // Else it was forgotten meanwhile.
            if self.observed.remove(&process) {
                return Some(process);
            }
        }
        None
    }

    pub fn len(&self) -> usize {
        self.observed.len()
    }

    pub fn is_empty(&self) -> bool {
        self.observed.is_empty()
    }

    fn order(&mut self, change: impl FnOnce(&mut Orders)) {
        change(&mut locked(&self.orders));
        match self.waker.write(&[0]) {
            // Full of bytes that have not woken it yet: it will wake.
            Ok(_) | Err(_) => {}
        }
    }
}

/// What the thread does.
fn attend(woken: &UnixStream, orders: &Mutex<Orders>, ends: &mpsc::Sender<Process>) {
    let mut observed: Vec<Observed> = Vec::new();
    loop {
        let Some(mut ended) = wait(woken, &observed) else { return };
        let Orders { observe, forget } = std::mem::take(&mut *locked(orders));
        observed
            .retain(|known| !ended.contains(&known.process) && !forget.contains(&known.process));
        for new in observe {
            // First its descriptor was opened, then we look: it belongs to whom we find.
            if !new.process.is_alive() {
                ended.push(new.process);
            } else if !observed.iter().any(|known| known.process == new.process) {
                observed.push(new);
            }
        }
        for process in ended {
            if ends.blocking_send(process).is_err() {
                return;
            }
        }
    }
}

/// Orders are changed in steps that cannot fail half way.
fn locked(orders: &Mutex<Orders>) -> MutexGuard<'_, Orders> {
    orders.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sleeps until one has ended or there are orders, and returns those that have ended; none when
/// nobody asks any more.
fn wait(mut woken: &UnixStream, observed: &[Observed]) -> Option<Vec<Process>> {
    let mut fds: Vec<PollFd<'_>> = [woken.as_fd()]
        .into_iter()
        .chain(observed.iter().filter_map(|known| known.descriptor.as_ref().map(AsFd::as_fd)))
        .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
        .collect();
    let timeout = Timespec::try_from(POLL_EVERY).expect("a short time");
    let looks = observed.iter().any(|known| known.descriptor.is_none());
    match poll(&mut fds, looks.then_some(&timeout)) {
        Ok(_) | Err(Errno::INTR) => {}
        // No memory, say: look at all of them, later.
        Err(_) => thread::sleep(POLL_EVERY),
    }
    let mut ready = fds.iter().map(|fd| !fd.revents().is_empty());
    if ready.next() == Some(true) && matches!(woken.read(&mut [0; 64]), Ok(0)) {
        return None;
    }
    let mut ended = Vec::new();
    for known in observed {
        let has_ended = match known.descriptor {
            Some(_) => ready.next() == Some(true),
            None => !known.process.is_alive(),
        };
        if has_ended {
            ended.push(known.process);
        }
    }
    Some(ended)
}

#[cfg(target_os = "linux")]
fn descriptor(pid: u32) -> Option<OwnedFd> {
    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
    pidfd_open(pid, PidfdFlags::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
fn descriptor(_: u32) -> Option<OwnedFd> {
    None
}

/// What a look at a pid tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    Lives {
        start: u64,
    },
    Ended,
    /// Nothing: we could not look (no file descriptor left, say). Never a reason to believe an end.
    Hidden,
}

#[cfg(target_os = "linux")]
fn look(pid: u32) -> Look {
    use std::io::ErrorKind;

    match std::fs::read(format!("/proc/{pid}/stat")) {
        Ok(stat) => parse_stat(&stat).unwrap_or(Look::Hidden),
        Err(error) if error.kind() == ErrorKind::NotFound => Look::Ended,
        // It ended between opening and reading.
        Err(error) if rustix::io::Errno::from_io_error(&error) == Some(rustix::io::Errno::SRCH) => {
            Look::Ended
        }
        Err(_) => Look::Hidden,
    }
}

/// Without start times a pid is all there is to know of a process.
#[cfg(not(target_os = "linux"))]
fn look(pid: u32) -> Look {
    use rustix::io::Errno;
    use rustix::process::{Pid, test_kill_process};

    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Look::Ended };
    match test_kill_process(pid) {
        Err(Errno::SRCH) => Look::Ended,
        Ok(()) | Err(_) => Look::Hidden,
    }
}

/// The fields from the third on. The name before them stands in brackets and may hold brackets and
/// blanks itself.
fn stat_fields(stat: &[u8]) -> Option<impl Iterator<Item = &[u8]>> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    Some(stat[name_end + 1..].split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()))
}

/// The terminal behind a device number.
fn tty_name(device: u32) -> Option<String> {
    let (major, minor) = ((device >> 8) & 0xfff, (device & 0xff) | ((device >> 12) & 0xf_ff00));
    match (major, minor) {
        (136..=143, _) => Some(format!("/dev/pts/{}", (major - 136) * 256 + minor)),
        (4, 0..64) => Some(format!("/dev/tty{minor}")),
        _ => None,
    }
}

fn parse_stat(stat: &[u8]) -> Option<Look> {
    let mut fields = stat_fields(stat)?;
    // The state is the third field, the start time the 22nd.
    let state = *fields.next()?.first()?;
    let start = std::str::from_utf8(fields.nth(18)?).ok()?.parse().ok()?;
    // Dead, but its parent has not asked.
    let ended = matches!(state, b'Z' | b'X' | b'x');
    Some(if ended { Look::Ended } else { Look::Lives { start } })
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command, Stdio};
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// A child that lives until its standard input closes.
    fn child() -> (Child, Process) {
        let child =
            Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let process = Process::with_pid(child.id()).unwrap();
        (child, process)
    }

    async fn next(processes: &mut Processes) -> Option<Process> {
        timeout(PATIENCE, processes.next_end()).await.expect("an end is told")
    }

    #[tokio::test]
    async fn ends_are_told_in_the_order_they_happen() {
        let (mut killed, first) = child();
        let (mut leaving, second) = child();
        let mut processes = Processes::new().unwrap();
        processes.observe(first).unwrap();
        processes.observe(second).unwrap();
        processes.observe(second).unwrap();
        assert_eq!(processes.len(), 2);
        assert!(timeout(Duration::from_millis(1), processes.next_end()).await.is_err());
        // Nobody has waited for it yet: it is a zombie when its end is told.
        killed.kill().unwrap();
        assert_eq!(next(&mut processes).await, Some(first));
        assert!(!first.is_alive());
        drop(leaving.stdin.take());
        assert_eq!(next(&mut processes).await, Some(second));
        assert_eq!(next(&mut processes).await, None);
        killed.wait().unwrap();
        leaving.wait().unwrap();
    }

    #[tokio::test]
    async fn one_that_is_gone_or_whose_pid_is_anothers_has_ended() {
        let (mut gone, before) = child();
        gone.kill().unwrap();
        gone.wait().unwrap();
        let mut processes = Processes::new().unwrap();
        processes.observe(before).unwrap();
        assert_eq!(next(&mut processes).await, Some(before));
        let own = Process::with_pid(std::process::id()).unwrap();
        let reused = Process { start: own.start - 1, ..own };
        processes.observe(reused).unwrap();
        assert_eq!(next(&mut processes).await, Some(reused));
        for pid in [0, u32::MAX] {
            processes.observe(Process { pid, start: 0 }).unwrap();
            assert_eq!(next(&mut processes).await.unwrap().pid, pid);
        }
    }

    #[tokio::test]
    async fn only_so_many_are_observed_and_the_forgotten_make_room() {
        let (mut child, process) = child();
        let mut processes = Processes::new().unwrap();
        for start in 0..PROCESSES_MAX as u64 {
            processes.observe(Process { pid: 0, start }).unwrap();
        }
        assert!(matches!(processes.observe(process), Err(Error::ProcessesTooMany)));
        for start in 0..PROCESSES_MAX as u64 {
            processes.forget(Process { pid: 0, start });
        }
        processes.observe(process).unwrap();
        child.kill().unwrap();
        assert_eq!(next(&mut processes).await, Some(process));
        child.wait().unwrap();
    }

    #[test]
    fn without_a_descriptor_looking_tells() {
        let (mut child, process) = child();
        let (waker, woken) = UnixStream::pair().unwrap();
        let observed = [Observed { process, descriptor: None }];
        (&waker).write_all(&[0]).unwrap();
        assert_eq!(wait(&woken, &observed), Some(Vec::new()));
        child.kill().unwrap();
        child.wait().unwrap();
        // Nothing wakes it but its own clock.
        assert_eq!(wait(&woken, &observed), Some(vec![process]));
        drop(waker);
        assert_eq!(wait(&woken, &observed), None);
    }

    #[test]
    fn a_name_with_brackets_and_blanks_is_only_a_name() {
        let stat = b"7 (a) b) (c) S 1 7 7 0 -1 4 99 0 0 0 0 0 0 0 20 0 1 0 671471 31 382 1";
        assert_eq!(parse_stat(stat), Some(Look::Lives { start: 671_471 }));
        for cut in 0..stat.len() - 8 {
            // Half a file is no process, or at least no panic.
            let _ = parse_stat(&stat[..cut]);
        }
        assert_eq!(parse_stat(b""), None);
    }
}
