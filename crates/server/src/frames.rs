//! Hook forwarders on the unix socket: frames in, one byte back for each, and a reply to those that
//! wait for one.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use qd_daemon::runtime::{Delivered, Handle, ReplyOutcome, Told};
use qd_hook_wire::{ACK, HookReply, Mode, REFUSAL};
use qd_sources::hook_intake::{Caller, Frame, FrameParser};
use rustix::net::{RecvFlags, recv};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tracing::warn;

use crate::limits::{FRAME_BUFFER_BYTES, FRAME_WAIT_MAX, REPLY_WAIT_MAX};

/// Longest payload of a waiting forwarder that is held whole without asking for room.
const WHOLE_BYTES_FREE: usize = 1 << 20;

/// Bytes of longer payloads that are held whole for all waiting forwarders together. Who comes
/// then is judged by what is left after abridging, and a person is asked more often.
const WHOLE_BYTES_ALL_MAX: usize = 64 << 20;

/// Whether a connection sends frames; no method of HTTP begins with `q`. None if nobody says
/// anything.
pub async fn are_spoken(stream: &UnixStream) -> Option<bool> {
    loop {
        timeout(FRAME_WAIT_MAX, stream.readable()).await.ok()?.ok()?;
        match peek(stream) {
            Ok(first) => return first.map(|first| first == b'q'),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return None,
        }
    }
}

fn peek(stream: &UnixStream) -> io::Result<Option<u8>> {
    stream.try_io(Interest::READABLE, || {
        let mut first = [0];
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let (count, _) = recv(stream, &mut first, flags)?;
        Ok((count > 0).then_some(first[0]))
    })
}

/// Room for long payloads of those who wait, all connections together, in kilobytes.
#[derive(Debug, Clone)]
pub struct Room(Arc<Semaphore>);

impl Default for Room {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(WHOLE_BYTES_ALL_MAX >> 10)))
    }
}

impl Room {
    /// None if there is none for a payload of that length.
    fn take(&self, len: usize) -> Option<OwnedSemaphorePermit> {
        let kilobytes = u32::try_from(len.div_ceil(1 << 10)).ok()?;
        self.0.clone().try_acquire_many_owned(kilobytes).ok()
    }
}

/// Answers each frame once the journal has it, until the forwarder goes. One that waits stays for
/// what it is told, and keeps its room meanwhile.
pub async fn take(mut stream: UnixStream, room: &Room, handle: &Handle) {
    // While the forwarder is there: it stays until it has its answer.
    let pid = stream.peer_cred().ok().and_then(|peer| peer.pid());
    let Some(caller) = Caller::connected(pid.and_then(|pid| u32::try_from(pid).ok())) else {
        return;
    };
    if let Some((frame, kept)) = take_until_wait(&mut stream, &caller, room, handle).await {
        let_wait(&mut stream, frame, handle).await;
        drop(kept);
    }
}

/// The frame of a forwarder that waits, if it comes to that, and its room.
async fn take_until_wait(
    stream: &mut UnixStream,
    caller: &Caller,
    room: &Room,
    handle: &Handle,
) -> Option<(Frame, Option<OwnedSemaphorePermit>)> {
    let mut parser = FrameParser::default();
    let mut buffer = vec![0; FRAME_BUFFER_BYTES];
    let mut kept = None;
    loop {
        let count = match timeout(FRAME_WAIT_MAX, stream.read(&mut buffer)).await {
            Ok(Ok(count)) if count > 0 => count,
            // A half frame comes again through the spool.
            Ok(_) | Err(_) => return None,
        };
        let mut bytes = &buffer[..count];
        while let Some(frame) = parser.next_frame(&mut bytes) {
            let frame = frame.map(|frame| frame.from_caller(caller.clone()));
            let answer = match frame {
                Ok(frame) if frame.mode == Mode::Wait => return Some((frame, kept)),
                Ok(frame) => match handle.deliver(frame).await {
                    Delivered::Taken => ACK,
                    Delivered::Refused => REFUSAL,
                },
                Err(error) => {
                    warn!(%error, "a frame that cannot be read");
                    REFUSAL
                }
            };
            if stream.write_all(&[answer]).await.is_err() || answer == REFUSAL {
                return None;
            }
        }
        if let Some(len) =
            parser.whole_len().filter(|len| *len > WHOLE_BYTES_FREE && kept.is_none())
        {
            kept = room.take(len);
            if kept.is_none() {
                parser.hold_no_whole();
            }
        }
    }
}

async fn let_wait(stream: &mut UnixStream, frame: Frame, handle: &Handle) {
    let Some(mut waiter) = handle.wait(frame).await else {
        // It keeps the frame whether it hears this or not.
        let _ = stream.write_all(&[REFUSAL]).await;
        return;
    };
    if stream.write_all(&[ACK]).await.is_ok() {
        tokio::select! {
            told = waiter.told() => if let Some(Told { reply, outcome }) = told {
                // Whoever answered may have gone meanwhile.
                let _ = outcome.send(pass_on(stream, &reply).await);
            },
            // It has nothing to say while it waits.
            _ = stream.read_u8() => {}
        }
    }
    waiter.leave().await;
}

/// Delivered is what the forwarder says it has, whole and in time. It passes on only a reply that
/// it has whole, so one that could not be written has surely not arrived.
async fn pass_on(stream: &mut UnixStream, reply: &HookReply) -> ReplyOutcome {
    match timeout(REPLY_WAIT_MAX, stream.write_all(&reply.bytes())).await {
        Ok(Ok(())) => {}
        Ok(Err(_)) => return ReplyOutcome::Failed,
        Err(_) => return ReplyOutcome::Lost,
    }
    match timeout(REPLY_WAIT_MAX, stream.read_u8()).await {
        Ok(Ok(ACK)) => ReplyOutcome::Delivered,
        Ok(_) | Err(_) => ReplyOutcome::Lost,
    }
}
