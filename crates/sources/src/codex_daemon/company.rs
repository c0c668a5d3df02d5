//! Whether the daemon has met somebody before us.
//!
//! It takes the name of whoever greets it first for the author of every session it makes from
//! then on (Codex 0.166.0). That must be the user's own client, so we let it go first.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

use crate::opencode_servers::discovery::SOCKET_TABLE_BYTES_MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Company {
    /// Somebody is connected.
    Others,
    /// Nobody is, but threads are loaded, or were when a daemon was killed.
    Traces,
    Nobody,
    /// The system does not say.
    Unknown,
}

impl Company {
    pub fn at(socket: &Path) -> Self {
        // The daemon makes its socket elsewhere, and a link to it.
        let Ok(bound) = fs::canonicalize(socket) else { return Self::Unknown };
        let mut table = Vec::new();
        let read = File::open("/proc/net/unix")
            .and_then(|file| file.take(SOCKET_TABLE_BYTES_MAX).read_to_end(&mut table));
        if read.is_err() {
            return Self::Unknown;
        }
        let company = Self::in_table(&String::from_utf8_lossy(&table), &bound);
        if company == Self::Nobody && has_locks(socket) { Self::Traces } else { company }
    }

    fn in_table(table: &str, socket: &Path) -> Self {
        let mut listens = false;
        for line in
            table.lines().filter(|line| socket.to_str().is_some_and(|path| line.ends_with(path)))
        {
            let mut fields = line.split_ascii_whitespace();
            let (flags, state) = (fields.nth(3), fields.nth(1));
            match (flags, state) {
                (Some(LISTENING), _) => listens = true,
                (_, Some(CONNECTED)) => return Self::Others,
                _ => {}
            }
        }
        if listens { Self::Nobody } else { Self::Unknown }
    }
}

const LISTENING: &str = "00010000";
const CONNECTED: &str = "03";

/// A loaded thread has a lock file beside the socket's folder.
fn has_locks(socket: &Path) -> bool {
    let home = socket.parent().and_then(Path::parent);
    let locks = home.and_then(|home| fs::read_dir(home.join("thread-writer-locks")).ok());
    locks.is_some_and(|mut locks| locks.next().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "Num       RefCount Protocol Flags    Type St Inode Path\n";
    const LISTENER: &str =
        "0000000000000000: 00000002 00000000 00010000 0001 01 71471 /h/my x/a.sock\n";
    const CLIENT: &str = "0000000000000000: 00000003 00000000 00000000 0001 03 71472\n";
    const SERVED: &str =
        "0000000000000000: 00000003 00000000 00000000 0001 03 71473 /h/my x/a.sock\n";
    const QUEUED: &str =
        "0000000000000000: 00000003 00000000 00000000 0001 02 71473 /h/my x/a.sock\n";

    #[test]
    fn the_kernels_table_tells_who_is_connected() {
        let of = |lines: &[&str]| {
            Company::in_table(&(HEAD.to_owned() + &lines.concat()), Path::new("/h/my x/a.sock"))
        };
        assert_eq!(of(&[CLIENT]), Company::Unknown);
        assert_eq!(of(&[CLIENT, LISTENER]), Company::Nobody);
        assert_eq!(of(&[LISTENER, QUEUED]), Company::Nobody);
        assert_eq!(of(&[LISTENER, CLIENT, SERVED]), Company::Others);
    }
}
