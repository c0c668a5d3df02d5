//! Files that a repository or an agent may have made, read so that none of them can hold us up.
//!
//! A link may lead to a device that never ends, and a FIFO has no end before somebody writes it.
//! So the file is opened without waiting, the descriptor must be a regular file, and only so many
//! bytes are read, however long the file says it is and however much it grows meanwhile. A disk
//! may still take its time: callers on the loop read on a thread of their own.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Whether a link at the path's end is followed. Links on the way are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Links {
    Followed,
    /// For files of a repository: a link there could name any file of the operator's.
    Refused,
}

/// Opens a regular file and never waits for anything else that has its name.
pub fn open_regular(path: &Path, links: Links) -> io::Result<(File, Metadata)> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let flags = match links {
        Links::Followed => flags,
        Links::Refused => flags | OFlags::NOFOLLOW,
    };
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    let metadata = file.metadata()?;
    match metadata.is_file() {
        true => Ok((file, metadata)),
        false => Err(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

/// The whole of a regular file; an error if it has more bytes than allowed.
pub fn read_regular(path: &Path, bytes_max: u64, links: Links) -> io::Result<Vec<u8>> {
    let (file, _) = open_regular(path, links)?;
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > bytes_max {
        true => {
            let what = format!("it is longer than {bytes_max} bytes");
            Err(io::Error::new(ErrorKind::FileTooLarge, what))
        }
        false => Ok(bytes),
    }
}

/// The whole of a regular file, as text.
pub fn read_regular_text(path: &Path, bytes_max: u64, links: Links) -> io::Result<String> {
    let bytes = read_regular(path, bytes_max, links)?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not UTF-8"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use rustix::fs::{CWD, Mode, mkfifoat};

    use super::*;

    /// Everything that can stand in a file's place, below a folder of its own.
    fn oddities(name: &str) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("qd-bounded-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("folder")).expect("a folder");
        mkfifoat(CWD, folder.join("fifo"), Mode::from_raw_mode(0o600)).expect("a FIFO");
        for (link, to) in [
            ("zero", "/dev/zero"),
            ("tty", "/dev/tty"),
            ("random", "/dev/urandom"),
            ("to-fifo", "fifo"),
            ("round", "round"),
            ("to-folder", "folder"),
            ("to-file", "file"),
            ("endless", "/proc/self/pagemap"),
            ("kernel-log", "/proc/kmsg"),
        ] {
            symlink(to, folder.join(link)).expect("a link");
        }
        std::os::unix::net::UnixListener::bind(folder.join("socket")).expect("a socket");
        fs::write(folder.join("file"), "four").expect("a file");
        // A sparse file that says it is very long.
        let long = File::create(folder.join("long")).expect("a file");
        long.set_len(1 << 40).expect("sparse");
        folder
    }

    #[test]
    fn only_a_regular_file_is_read_and_only_so_much_of_it() {
        let folder = oddities("read");
        let read = |name: &str| read_regular_text(&folder.join(name), 4, Links::Followed);
        assert_eq!(read("file").expect("read"), "four");
        assert_eq!(read("to-file").expect("followed"), "four");
        for odd in [
            "zero",
            "tty",
            "random",
            "fifo",
            "to-fifo",
            "round",
            "folder",
            "to-folder",
            "socket",
            "endless",
            "kernel-log",
            "long",
            "missing",
        ] {
            assert!(read(odd).is_err(), "{odd}");
        }
        let longer = read_regular(&folder.join("file"), 3, Links::Followed);
        assert_eq!(longer.map_err(|error| error.kind()), Err(ErrorKind::FileTooLarge));
        let linked = read_regular(&folder.join("to-file"), 4, Links::Refused);
        assert!(linked.is_err());
        fs::remove_dir_all(&folder).expect("removed");
    }
}
