//! The socket that forwarders write to.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::Path;

use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, connect, socket};

use crate::Error;

/// Listens at `path`, for this user only: the socket is 0600, its folder 0700 where we make it.
/// A socket that nobody listens on is replaced; a daemon that answers there is not.
pub fn bind(path: &Path) -> Result<UnixListener, Error> {
    let failed = |doing| move |source| Error::Socket { doing, path: path.to_owned(), source };
    if let Some(folder) = path.parent() {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(folder).map_err(failed("make the folder of"))?;
    }
    match knock(path) {
        // A daemon that hangs has a full queue and still owns the place.
        Ok(()) | Err(Errno::AGAIN | Errno::INPROGRESS) => {
            return Err(Error::SocketTaken { path: path.to_owned() });
        }
        Err(Errno::NOENT) => {}
        Err(Errno::CONNREFUSED) => refuse_other_files(path)?,
        Err(error) => return Err(failed("look at")(error.into())),
    }
    // Bound under a name of its own, then moved: nobody ever meets it with other rights.
    let fresh = path.with_extension(format!("{}", std::process::id()));
    remove(&fresh).map_err(failed("replace"))?;
    let listener = UnixListener::bind(&fresh).map_err(failed("bind"))?;
    fs::set_permissions(&fresh, fs::Permissions::from_mode(0o600)).map_err(failed("protect"))?;
    fs::rename(&fresh, path).map_err(failed("place"))?;
    Ok(listener)
}

/// Connects without waiting.
fn knock(path: &Path) -> Result<(), Errno> {
    let door = socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    ioctl_fionbio(&door, true)?;
    connect(&door, &SocketAddrUnix::new(path)?)
}

/// Connecting to a plain file is refused as well, and that is not ours to replace.
fn refuse_other_files(path: &Path) -> Result<(), Error> {
    let failed = |source| Error::Socket { doing: "replace", path: path.to_owned(), source };
    let found = fs::symlink_metadata(path).map_err(failed)?;
    if found.file_type().is_socket() {
        return Ok(());
    }
    Err(failed(io::Error::new(ErrorKind::AlreadyExists, "another kind of file is there")))
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_live_socket_is_taken_and_a_dead_one_replaced() {
        let folder = std::env::temp_dir().join(format!("qd-socket-{}", std::process::id()));
        let path = folder.join("quarterdeck").join("qd.sock");
        let first = bind(&path).expect("the first daemon");
        assert!(matches!(bind(&path), Err(Error::SocketTaken { .. })));
        drop(first);
        let second = bind(&path).expect("after a crash");
        let rights = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!(rights(&path), 0o600);
        assert_eq!(rights(&folder.join("quarterdeck")), 0o700);
        drop(second);
        fs::remove_file(&path).expect("removed");
        fs::write(&path, "mine").expect("a plain file");
        assert!(matches!(bind(&path), Err(Error::Socket { .. })));
        assert_eq!(fs::read(&path).expect("still there"), b"mine");
        fs::remove_dir_all(folder).expect("cleaned");
    }
}
