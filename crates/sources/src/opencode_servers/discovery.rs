//! Servers of OpenCode and Kilo among the processes of this machine.
//!
//! The list of processes is read only when one was started since, and of each only the name, a
//! few times after it is new; then all are looked at again once in a while. Of a process with the
//! right name, that runs the right program and is none of our own, we want the TCP sockets it
//! listens on, and the password that its environment holds. A terminal that was started
//! without `--port` listens nowhere, and cannot be found.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use qd_host::links::followed;
use qd_host::processes::{ENVIRONMENT_BYTES_MAX, Process};
use qd_host::supervised::is_ours;

use super::address::Address;
use crate::opencode_servers::PROCESS_RESCAN_EVERY;

/// Looks at a new process before it is left to the next full look. A shell's child becomes its
/// program after it was made, and a server needs a few seconds until it listens.
const PROCESS_LOOKS: u8 = 5;

/// Bytes of the kernel's table of TCP sockets that are read: some 20,000 sockets.
pub const SOCKET_TABLE_BYTES_MAX: u64 = 3 << 20;

/// Descriptors of a process that are looked at for its listening sockets.
const DESCRIPTORS_MAX: usize = 4_096;

/// A process that serves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    pub process: Process,
    pub address: Address,
}

#[derive(Debug)]
pub struct Discovery {
    proc: PathBuf,
    /// Whose servers: those that were started with this home.
    home: PathBuf,
    /// Looks that each known process still gets.
    looks: BTreeMap<u32, u8>,
    /// The last process that the kernel had made when we looked.
    last_pid: Option<u32>,
    rescanned_at: Option<Instant>,
}

/// A program we know, and how its environment spells a login.
struct Product {
    name: &'static str,
    password: &'static str,
    username: &'static str,
    default_username: &'static str,
}

const PRODUCTS: [Product; 2] = [
    Product {
        name: "opencode",
        password: "OPENCODE_SERVER_PASSWORD",
        username: "OPENCODE_SERVER_USERNAME",
        default_username: "opencode",
    },
    Product {
        name: "kilo",
        password: "KILO_SERVER_PASSWORD",
        username: "KILO_SERVER_USERNAME",
        default_username: "kilo",
    },
];

impl Discovery {
    pub fn new(home: &Path) -> Self {
        Self {
            proc: PathBuf::from("/proc"),
            home: home.to_owned(),
            looks: BTreeMap::new(),
            last_pid: None,
            rescanned_at: None,
        }
    }
}

impl Discovery {
    /// The servers found at this look. One that was found before may come again.
    pub fn look(&mut self) -> Vec<Found> {
        let last_pid = self.newest_pid();
        let rescan = self.rescanned_at.is_none_or(|at| at.elapsed() >= PROCESS_RESCAN_EVERY);
        if !rescan && !self.has_young() && last_pid.is_some() && last_pid == self.last_pid {
            return Vec::new();
        }
        if rescan {
            self.rescanned_at = Some(Instant::now());
        }
        self.last_pid = last_pid;
        let mut before = std::mem::take(&mut self.looks);
        let mut found = Vec::new();
        for pid in self.pids() {
            let left = before.remove(&pid).unwrap_or(PROCESS_LOOKS);
            if left > 0 || rescan {
                found.extend(self.servers(pid));
            }
            self.looks.insert(pid, left.saturating_sub(1));
        }
        found
    }

    /// The next look is at every process.
    pub fn look_at_all(&mut self) {
        self.rescanned_at = None;
    }

    /// Whether a process that is new may yet become a server.
    pub fn has_young(&self) -> bool {
        self.looks.values().any(|left| *left > 0)
    }

    /// The last field of `loadavg`: it changes whenever a process or thread is made.
    fn newest_pid(&self) -> Option<u32> {
        let text = fs::read_to_string(self.proc.join("loadavg")).ok()?;
        text.split_ascii_whitespace().last()?.parse().ok()
    }

    fn pids(&self) -> Vec<u32> {
        let entries = fs::read_dir(&self.proc).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    }

    fn servers(&self, pid: u32) -> Vec<Found> {
        let folder = self.proc.join(pid.to_string());
        let Ok(name) = fs::read(folder.join("comm")) else { return Vec::new() };
        let name = name.trim_ascii();
        let Some(product) = PRODUCTS.iter().find(|known| known.name.as_bytes() == name) else {
            return Vec::new();
        };
        if is_ours(pid) || !is_program_of(&folder, product) {
            return Vec::new();
        }
        self.listeners(&folder).map_or_else(
            // Another user's, or gone.
            |_| Vec::new(),
            |listeners| self.found(pid, &folder, product, &listeners),
        )
    }

    fn found(
        &self,
        pid: u32,
        folder: &Path,
        product: &Product,
        listeners: &[SocketAddr],
    ) -> Vec<Found> {
        let Some(process) = Process::with_pid(pid).filter(|_| !listeners.is_empty()) else {
            return Vec::new();
        };
        let Ok(environment) = read(&folder.join("environ"), ENVIRONMENT_BYTES_MAX) else {
            return Vec::new();
        };
        let is_another = |home: &str| followed(Path::new(home)) != followed(&self.home);
        if value(&environment, "HOME").is_some_and(is_another) {
            return Vec::new();
        }
        let login = login(&environment, product);
        let login = login.as_ref().map(|(user, password)| (user.as_str(), password.as_str()));
        let addresses = listeners.iter().filter_map(|at| Address::of_listener(*at, login));
        addresses.map(|address| Found { process, address }).collect()
    }

    /// The TCP sockets that a process listens on, if it sees the network that we see.
    fn listeners(&self, folder: &Path) -> io::Result<Vec<SocketAddr>> {
        if fs::metadata(folder)?.uid() != rustix::process::geteuid().as_raw() {
            return Ok(Vec::new());
        }
        let network = |folder: &Path| fs::read_link(folder.join("ns/net"));
        if network(folder)? != network(&self.proc.join("self"))? {
            return Ok(Vec::new());
        }
        let own = sockets(folder)?;
        let mut listeners = Vec::new();
        for table in ["net/tcp", "net/tcp6"] {
            // There may be only one family.
            let Ok(text) = read(&folder.join(table), SOCKET_TABLE_BYTES_MAX) else { continue };
            let lines = text.lines().filter_map(listener);
            listeners.extend(lines.filter(|(_, inode)| own.contains(inode)).map(|(at, _)| at));
        }
        Ok(listeners)
    }
}

/// Whether a process runs the product's own executable. A process may call itself anything; what
/// it runs the kernel says. It belongs to this user or to the system, and nobody else could have
/// written it.
fn is_program_of(folder: &Path, product: &Product) -> bool {
    let link = folder.join("exe");
    let Ok(path) = fs::read_link(&link) else { return false };
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    // So the kernel marks one that was replaced by an update since.
    let name = name.strip_suffix(b" (deleted)").unwrap_or(name);
    let is_owned = fs::metadata(&link).is_ok_and(|file| {
        let owner = file.uid();
        let is_known = owner == 0 || owner == rustix::process::geteuid().as_raw();
        file.is_file() && is_known && file.mode() & 0o002 == 0
    });
    name == product.name.as_bytes() && is_owned
}

/// Inodes of the sockets that a process has open.
fn sockets(folder: &Path) -> io::Result<Vec<u64>> {
    let entries = fs::read_dir(folder.join("fd"))?.flatten().take(DESCRIPTORS_MAX);
    let inode = |entry: fs::DirEntry| {
        let target = fs::read_link(entry.path()).ok()?;
        let inode = target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?;
        inode.parse().ok()
    };
    Ok(entries.filter_map(inode).collect())
}

/// A line of the kernel's table, if that socket listens.
fn listener(line: &str) -> Option<(SocketAddr, u64)> {
    let mut fields = line.split_ascii_whitespace();
    let local = fields.nth(1)?;
    let state = fields.nth(1)?;
    let inode = fields.nth(5)?.parse().ok()?;
    let (ip, port) = local.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |text: &str| u32::from_str_radix(text, 16).ok().map(u32::to_ne_bytes);
    let ip = match ip.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(ip)?)),
        32 => {
            let mut bytes = [0; 16];
            for (place, text) in bytes.chunks_exact_mut(4).zip(0..4) {
                place.copy_from_slice(&word(ip.get(8 * text..8 * text + 8)?)?);
            }
            let ip = Ipv6Addr::from(bytes);
            ip.to_ipv4_mapped().map_or(IpAddr::V6(ip), IpAddr::V4)
        }
        _ => return None,
    };
    (state == "0A").then_some((SocketAddr::new(ip, port), inode))
}

/// Name and password that the process was started with, if it was with one.
fn login(environment: &str, product: &Product) -> Option<(String, String)> {
    let user = value(environment, product.username).unwrap_or(product.default_username);
    Some((user.to_owned(), value(environment, product.password)?.to_owned()))
}

/// A variable of an environment as the kernel spells it.
fn value<'a>(environment: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = environment.split('\0').filter_map(|line| line.split_once('='));
    lines.find(|(key, _)| *key == name).map(|(_, value)| value).filter(|value| !value.is_empty())
}

fn read(path: &Path, bytes_max: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listening_socket_is_read_off_the_kernels_table() {
        let line = "   1: 0100007F:1000 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 671471 1 0000000000000000 100 0 0 10 0";
        assert_eq!(listener(line), Some(("127.0.0.1:4096".parse().unwrap(), 671_471)));
        assert_eq!(listener(&line.replace(" 0A ", " 01 ")), None);
        let six = line.replace("0100007F:", "00000000000000000000000001000000:");
        assert_eq!(listener(&six), Some(("[::1]:4096".parse().unwrap(), 671_471)));
        let mapped = line.replace("0100007F:", "0000000000000000FFFF00000100007F:");
        assert_eq!(listener(&mapped), Some(("127.0.0.1:4096".parse().unwrap(), 671_471)));
        for cut in 0..line.len() {
            // Half a line is no socket, or at least no panic.
            let _ = listener(&line[..cut]);
        }
    }

    #[test]
    fn every_process_is_looked_at_a_few_times_and_then_left_alone() {
        let mut discovery = Discovery::new(Path::new("/"));
        let own = std::process::id();
        for look in 0..PROCESS_LOOKS {
            discovery.look();
            assert_eq!(discovery.looks.get(&own), Some(&(PROCESS_LOOKS - 1 - look)));
        }
        discovery.look();
        assert_eq!(discovery.looks.get(&own), Some(&0));
    }
}
