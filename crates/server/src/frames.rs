//! Hook forwarders on the unix socket: frames in, one byte back for each.

use std::io::{self, ErrorKind};

use qd_broker::hook_intake::{ACK, FrameParser, REFUSAL};
use qd_broker::runtime::{Delivered, Handle};
use rustix::net::{RecvFlags, recv};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::time::timeout;
use tracing::warn;

use crate::limits::{FRAME_BUFFER_BYTES, FRAME_WAIT_MAX};

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

/// Answers each frame once the journal has it, until the forwarder goes.
pub async fn take(mut stream: UnixStream, handle: &Handle) {
    let mut parser = FrameParser::default();
    let mut buffer = vec![0; FRAME_BUFFER_BYTES];
    loop {
        let count = match timeout(FRAME_WAIT_MAX, stream.read(&mut buffer)).await {
            Ok(Ok(count)) if count > 0 => count,
            // A half frame comes again through the spool.
            Ok(_) | Err(_) => return,
        };
        let mut bytes = &buffer[..count];
        while let Some(frame) = parser.next_frame(&mut bytes) {
            let answer = match frame {
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
                return;
            }
        }
    }
}
