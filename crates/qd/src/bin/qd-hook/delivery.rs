//! Handing a frame to the daemon: connect, write, one byte back.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use qd_hook_wire::ACK;
use rustix::event::PollFlags;
use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketType, connect, send, socket};

use crate::deadline::Deadline;
use crate::message::Message;

/// True only if a daemon said that it has the frame. One that took it and could not say so gets
/// it again from the spool, and knows it by its id.
pub fn deliver(sockets: &[PathBuf], message: &Message, deadline: Deadline) -> bool {
    hand_over(sockets, message, deadline).is_some()
}

/// The same, and the connection on which a reply may follow.
pub fn hand_over(sockets: &[PathBuf], message: &Message, deadline: Deadline) -> Option<OwnedFd> {
    // Where somebody listens, a second place would be a second daemon.
    let socket = sockets.iter().find_map(|path| reach(path, deadline).ok())?;
    let taken = write(&socket, &message.bytes, deadline) && acknowledged(&socket, deadline);
    taken.then_some(socket)
}

/// Fails at once when nobody listens. When the daemon hangs its queue may be full, and connecting
/// would wait: on Linux a socket's send timeout bounds that, elsewhere it is refused.
fn reach(path: &Path, deadline: Deadline) -> Result<OwnedFd, Errno> {
    let address = SocketAddrUnix::new(path)?;
    let socket = socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    loop {
        let left = deadline.left().ok_or(Errno::TIMEDOUT)?;
        set_socket_timeout(&socket, Timeout::Send, Some(left))?;
        match connect(&socket, &address) {
            Ok(()) => break,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    // From here on we poll: a write may be long, and its parts must share one deadline.
    ioctl_fionbio(&socket, true)?;
    Ok(socket)
}

pub fn write(socket: &OwnedFd, mut bytes: &[u8], deadline: Deadline) -> bool {
    while !bytes.is_empty() {
        match send(socket, bytes, SEND_FLAGS) {
            Ok(sent) => bytes = &bytes[sent..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) if deadline.wait(socket.as_fd(), PollFlags::OUT) => {}
            Err(_) => return false,
        }
    }
    true
}

fn acknowledged(socket: &OwnedFd, deadline: Deadline) -> bool {
    let mut answer = [0];
    while deadline.wait(socket.as_fd(), PollFlags::IN) {
        match rustix::io::read(socket, &mut answer) {
            Ok(count) => return count == 1 && answer == [ACK],
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(_) => return false,
        }
    }
    false
}

/// A daemon that dies while we write is an error to us and not a signal.
#[cfg(target_os = "linux")]
const SEND_FLAGS: SendFlags = SendFlags::NOSIGNAL;

/// The runtime ignores the signal for us.
#[cfg(not(target_os = "linux"))]
const SEND_FLAGS: SendFlags = SendFlags::empty();
