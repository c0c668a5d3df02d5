//! How many bytes went over the TCP connections of this machine, each by its inode.
//!
//! The kernel lists them on a netlink socket (`sock_diag`), to everybody and without an argument
//! about rights. Where it does not, nothing is known.

use std::collections::BTreeMap;
use std::io;

/// Bytes received and acknowledged, by the inode of the connection's socket.
pub type Traffic = BTreeMap<u64, u64>;

#[cfg(target_os = "linux")]
pub fn traffic() -> io::Result<Traffic> {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, netlink, socket_with};

    let protocol = Some(netlink::SOCK_DIAG);
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?;
    let mut traffic = Traffic::new();
    for family in [AddressFamily::INET, AddressFamily::INET6] {
        rustix::net::send(&socket, &request(family.as_raw()), rustix::net::SendFlags::empty())?;
        listen(&socket, &mut traffic)?;
    }
    Ok(traffic)
}

#[cfg(not(target_os = "linux"))]
pub fn traffic() -> io::Result<Traffic> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Longest answer in one piece: the kernel sends pages.
const PIECE_BYTES_MAX: usize = 64 << 10;

/// Pieces of one list. A machine with more connections than fit is not asked for more.
const PIECES_MAX: usize = 256;

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const DONE: u16 = 3;
const ERROR: u16 = 2;

/// `inet_diag_req_v2` behind its header: established TCP connections, with their `tcp_info`.
#[cfg(target_os = "linux")]
fn request(family: u16) -> Vec<u8> {
    const IS_REQUEST_FOR_ALL: u16 = 0x301;
    const TCP: u8 = 6;
    const WITH_TCP_INFO: u8 = 1 << 1;
    const ESTABLISHED: u32 = 1 << 1;
    let mut bytes = Vec::with_capacity(72);
    bytes.extend(72_u32.to_ne_bytes());
    bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes.extend(IS_REQUEST_FOR_ALL.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes.extend([family.to_le_bytes()[0], TCP, WITH_TCP_INFO, 0]);
    bytes.extend(ESTABLISHED.to_ne_bytes());
    bytes.extend([0; 48]);
    bytes
}

#[cfg(target_os = "linux")]
fn listen(socket: &std::os::fd::OwnedFd, traffic: &mut Traffic) -> io::Result<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    let mut piece = vec![0; PIECE_BYTES_MAX];
    for _ in 0..PIECES_MAX {
        let patience = Timespec { tv_sec: 1, tv_nsec: 0 };
        let mut fds = [PollFd::new(socket, PollFlags::IN)];
        if poll(&mut fds, Some(&patience))? == 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let flags = rustix::net::RecvFlags::empty();
        let (_, len) = rustix::net::recv(socket, &mut piece, flags)?;
        if !read(piece.get(..len).unwrap_or(&piece), traffic)? {
            return Ok(());
        }
    }
    Err(io::ErrorKind::FileTooLarge.into())
}

/// Takes a piece of the list in. False after its last one.
fn read(mut piece: &[u8], traffic: &mut Traffic) -> io::Result<bool> {
    const HEADER_BYTES: usize = 16;
    while let (Some(len), Some(kind)) = (u32_at(piece, 0), u16_at(piece, 4)) {
        let len = len as usize;
        let Some(body) = piece.get(HEADER_BYTES..len) else { break };
        match kind {
            DONE => return Ok(false),
            ERROR => return Err(io::ErrorKind::Unsupported.into()),
            SOCK_DIAG_BY_FAMILY => traffic.extend(connection(body)),
            _ => {}
        }
        piece = piece.get(len.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(true)
}

/// The inode of a connection, and what went over it: `inet_diag_msg` with its attributes.
fn connection(body: &[u8]) -> Option<(u64, u64)> {
    const INODE_AT: usize = 68;
    const TCP_INFO: u16 = 2;
    // `tcpi_bytes_acked` and `tcpi_bytes_received`.
    const BYTES_AT: [usize; 2] = [120, 128];
    let inode = u64::from(u32_at(body, INODE_AT)?);
    let mut attributes = body.get(INODE_AT + 4..)?;
    loop {
        let (len, kind) = (usize::from(u16_at(attributes, 0)?), u16_at(attributes, 2)?);
        let value = attributes.get(4..len)?;
        if kind == TCP_INFO {
            let [acked, received] = BYTES_AT.map(|at| u64_at(value, at));
            return Some((inode, acked?.wrapping_add(received?)));
        }
        attributes = attributes.get(len.next_multiple_of(4)..)?;
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    use super::*;

    fn inode(stream: &TcpStream) -> u64 {
        rustix::fs::fstat(stream.as_fd()).unwrap().st_ino
    }

    #[test]
    fn bytes_of_a_connection_are_counted_on_both_sides() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut other, _) = listener.accept().unwrap();
        let (ours, theirs) = (inode(&one), inode(&other));
        let before = traffic().unwrap();
        assert!(before.contains_key(&ours) && before.contains_key(&theirs));
        one.write_all(&[7; 1_234]).unwrap();
        other.read_exact(&mut [0; 1_234]).unwrap();
        let after = traffic().unwrap();
        assert_eq!(after[&theirs] - before[&theirs], 1_234);
        assert_eq!(traffic().unwrap()[&theirs], after[&theirs], "and nothing by itself");
    }

    #[test]
    fn half_a_piece_is_no_panic() {
        let mut piece = 72_u32.to_ne_bytes().to_vec();
        piece.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        piece.extend([9; 66]);
        for cut in 0..=piece.len() {
            let _ = read(&piece[..cut], &mut Traffic::new());
        }
    }
}
