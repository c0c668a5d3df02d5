//! Which process holds a Codex thread: the lock on its file in `thread-writer-locks`.
//!
//! The file is locked while the thread is loaded and removed when it is let go; a killed client
//! leaves it, free. We never lock it ourselves, which could get in the client's way: the kernel
//! lists all locks and who has them. Where it may not list one, nothing is known.

use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use qd_host::processes::Process;

/// Bytes of the kernel's list of locks that are read: some 50,000 locks. What is not in a longer
/// one may yet be held.
const KERNEL_LOCKS_BYTES_MAX: u64 = 4 << 20;

/// Who has a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holding {
    By(Process),
    Nobody,
    /// Somebody may, whom we cannot see.
    Hidden,
}

/// All locks of this machine at one moment, as far as we are shown them.
#[derive(Debug)]
pub struct KernelLocks {
    locks: Vec<FileLock>,
    /// A lock that is not listed is not held.
    complete: bool,
}

/// A whole file's lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileLock {
    /// 0 for a process that has no number here.
    pid: u32,
    device: (u32, u32),
    inode: u64,
}

impl KernelLocks {
    pub fn read() -> io::Result<Self> {
        Self::read_from(Path::new("/proc/locks"))
    }

    fn read_from(path: &Path) -> io::Result<Self> {
        let mut text = Vec::new();
        File::open(path)?.take(KERNEL_LOCKS_BYTES_MAX).read_to_end(&mut text)?;
        if text.len() as u64 >= KERNEL_LOCKS_BYTES_MAX {
            return Err(ErrorKind::FileTooLarge.into());
        }
        Ok(Self { locks: parse(&text), complete: sees_every_process() })
    }

    pub fn holding(&self, path: &Path) -> io::Result<Holding> {
        let file = fs::metadata(path)?;
        let device = (rustix::fs::major(file.dev()), rustix::fs::minor(file.dev()));
        let mut hidden = !self.complete || !locks_are_local(path);
        for lock in self.locks.iter().filter(|lock| lock.inode == file.ino()) {
            let process = Process::with_pid(lock.pid).filter(|_| lock.pid != 0);
            // Layered file systems have a device for their files and another for their locks.
            let own = |process| match lock.device == device {
                true => Some(true),
                false => has_open(process, &file),
            };
            match process.and_then(|process| Some((process, own(process)?))) {
                Some((process, true)) => return Ok(Holding::By(process)),
                Some((_, false)) => {}
                None => hidden = true,
            }
        }
        Ok(if hidden { Holding::Hidden } else { Holding::Nobody })
    }
}

/// The thread that a lock file is for.
pub fn thread(path: &Path) -> Option<&str> {
    path.file_stem().and_then(OsStr::to_str)
}

/// Lines are like `3: FLOCK  ADVISORY  WRITE 4711 fe:00:10216182 0 EOF`; one that waits for a lock
/// has an arrow before the kind.
fn parse(text: &[u8]) -> Vec<FileLock> {
    let text = String::from_utf8_lossy(text);
    text.lines().filter_map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<FileLock> {
    let mut words = line.split_ascii_whitespace().skip(1);
    if words.next()? != "FLOCK" {
        return None;
    }
    // A process of another machine or namespace has a number that is none.
    let pid = words.nth(2)?.parse().unwrap_or(0);
    let mut parts = words.next()?.split(':');
    let mut device = || u32::from_str_radix(parts.next()?, 16).ok();
    let device = (device()?, device()?);
    Some(FileLock { pid, device, inode: parts.next()?.parse().ok()? })
}

/// None where we may not look.
fn has_open(process: Process, file: &Metadata) -> Option<bool> {
    let opened = fs::read_dir(format!("/proc/{}/fd", process.pid)).ok()?;
    let mut found = opened.flatten().filter_map(|entry| fs::metadata(entry.path()).ok());
    Some(found.any(|found| (found.dev(), found.ino()) == (file.dev(), file.ino())))
}

/// The kernel does not list locks of processes that have no number in our namespace. Only in the
/// first one do all have one.
fn sees_every_process() -> bool {
    fs::read_link("/proc/self/ns/pid").is_ok_and(|space| space == Path::new(FIRST_PID_NAMESPACE))
}

const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

/// Another machine may lock a file of a file system that is shared with it.
#[cfg(target_os = "linux")]
fn locks_are_local(path: &Path) -> bool {
    // NFS, SMB, CIFS, 9P, Ceph, and FUSE with all that is built on it.
    const SHARED: [u32; 6] =
        [0x6969, 0xfe53_4d42, 0xff53_4d42, 0x0102_1997, 0x00c3_6400, 0x6573_5546];
    // The type has 32 bits, in a field that has another size and sign on every machine.
    rustix::fs::statfs(path).is_ok_and(|system| !SHARED.contains(&(system.f_type as u32)))
}

#[cfg(not(target_os = "linux"))]
fn locks_are_local(_: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn only_held_locks_of_whole_files_are_read() {
        let text = b"1: FLOCK  ADVISORY  WRITE 4711 fe:0a:10216182 0 EOF
1: -> FLOCK  ADVISORY  WRITE 4712 fe:0a:10216182 0 EOF
2: POSIX  ADVISORY  READ 4713 fe:00:7 0 EOF
3: OFDLCK ADVISORY  READ -1 fe:00:7 0 EOF
4: LEASE  ACTIVE    READ 4714 fe:00:7 0 EOF
5: FLOCK  ADVISORY  READ 0 00:2f:9 0 EOF
6: FLOCK  ADVISORY  WRITE -1 00:2f:10 0 EOF
7: FLOCK  ADVISORY  WRITE 4715 <none>:0 0 EOF
8: FLOCK  ADVISORY  WRITE 4716
\xff\xfe\n\n";
        let lock = |pid, device, inode| FileLock { pid, device, inode };
        assert_eq!(
            parse(text),
            [lock(4711, (0xfe, 0x0a), 10_216_182), lock(0, (0, 0x2f), 9), lock(0, (0, 0x2f), 10)]
        );
    }

    fn locks(path: &Path, pid: u32, device: Option<(u32, u32)>, complete: bool) -> KernelLocks {
        let file = fs::metadata(path).unwrap();
        let own = (rustix::fs::major(file.dev()), rustix::fs::minor(file.dev()));
        let lock = FileLock { pid, device: device.unwrap_or(own), inode: file.ino() };
        KernelLocks { locks: vec![lock], complete }
    }

    #[test]
    fn who_is_not_seen_is_never_nobody() {
        let path = &std::env::current_exe().unwrap();
        let own = Process::with_pid(std::process::id()).unwrap();
        let holding = |locks: KernelLocks| locks.holding(path).unwrap();
        assert_eq!(holding(locks(path, own.pid, None, true)), Holding::By(own));
        assert_eq!(holding(locks(path, own.pid, None, false)), Holding::By(own));
        // No number here, or that of nobody.
        assert_eq!(holding(locks(path, 0, None, true)), Holding::Hidden);
        assert_eq!(holding(locks(path, u32::MAX, None, true)), Holding::Hidden);
        let none = |complete| KernelLocks { locks: vec![], complete };
        assert_eq!(holding(none(true)), Holding::Nobody);
        assert_eq!(holding(none(false)), Holding::Hidden);
        assert!(none(true).holding(Path::new("/nowhere")).is_err());
        // Without the list there is nothing to know.
        assert!(KernelLocks::read_from(Path::new("/nowhere")).is_err());
    }

    #[test]
    fn on_another_device_the_open_file_tells() {
        let path = std::env::temp_dir().join(format!("qd-lock-{}", std::process::id()));
        let file = File::create(&path).unwrap();
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let own = std::process::id();
        let elsewhere = Some((0xff, 0xff));
        let holding = |pid| locks(&path, pid, elsewhere, true).holding(&path).unwrap();
        assert!(matches!(holding(own), Holding::By(process) if process.pid == own));
        assert_eq!(holding(child.id()), Holding::Nobody, "its lock is on another file");
        drop(file);
        child.kill().unwrap();
        child.wait().unwrap();
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_lock_of_a_real_process_is_found() {
        let path = std::env::temp_dir().join(format!("qd-flock-{}", std::process::id()));
        let file = File::create(&path).unwrap();
        let holding = || KernelLocks::read().unwrap().holding(&path).unwrap();
        let free = holding();
        assert!(matches!(free, Holding::Nobody | Holding::Hidden));
        file.lock().unwrap();
        let own = Process::with_pid(std::process::id()).unwrap();
        assert_eq!(holding(), Holding::By(own));
        drop(file);
        assert_eq!(holding(), free);
        fs::remove_file(&path).unwrap();
    }
}
