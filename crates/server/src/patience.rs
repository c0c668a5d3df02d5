//! How long the port waits: for the body of a request, and for whoever does not read its answer.

use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::stream::{StreamExt, unfold};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep, timeout_at};

use crate::error::Refusal;
use crate::limits::{BODY_WAIT_MAX, WRITE_PROGRESS_BYTES, WRITE_WAIT_MAX};

/// Answers a request whose body has to be here in time.
pub async fn in_time(request: Request, next: Next) -> Response {
    if request.body().is_end_stream() {
        return next.run(request).await;
    }
    let is_late = Arc::new(AtomicBool::new(false));
    let (parts, body) = request.into_parts();
    let body = until(Instant::now() + BODY_WAIT_MAX, body, is_late.clone());
    let response = next.run(Request::from_parts(parts, body)).await;
    // Whoever read the body only knows that it broke off.
    match is_late.load(Ordering::Relaxed) {
        true => Refusal::TooSlow.into_response(),
        false => response,
    }
}

fn until(deadline: Instant, body: Body, is_late: Arc<AtomicBool>) -> Body {
    let parts = unfold(Some(body.into_data_stream()), move |parts| {
        let is_late = is_late.clone();
        async move {
            let mut parts = parts?;
            match timeout_at(deadline, parts.next()).await {
                Ok(part) => part.map(|part| (part, Some(parts))),
                Err(_) => {
                    is_late.store(true, Ordering::Relaxed);
                    let late = io::Error::new(ErrorKind::TimedOut, "the body came too slowly");
                    Some((Err(axum::Error::new(late)), None))
                }
            }
        }
    });
    Body::from_stream(parts)
}

/// A connection that ends when its peer does not read.
#[derive(Debug)]
pub struct Patient<T> {
    inner: T,
    /// Runs while something waits to be written.
    stalled: Option<Pin<Box<Sleep>>>,
    /// What went out since it runs: a peer that reads a byte at a time holds us up as well.
    moved: usize,
}

impl<T> Patient<T> {
    pub fn new(inner: T) -> Self {
        Self { inner, stalled: None, moved: 0 }
    }

    fn heeded(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
        offered: usize,
    ) -> Poll<io::Result<usize>> {
        match written {
            Poll::Ready(Ok(count)) => {
                self.moved += count;
                if count == offered || self.moved >= WRITE_PROGRESS_BYTES {
                    (self.stalled, self.moved) = (None, 0);
                }
                Poll::Ready(Ok(count))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(WRITE_WAIT_MAX)));
                match stalled.as_mut().poll(cx) {
                    Poll::Ready(()) => Poll::Ready(Err(ErrorKind::TimedOut.into())),
                    Poll::Pending => Poll::Pending,
                }
            }
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Patient<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(cx, buffer)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Patient<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(cx, bytes);
        self.heeded(cx, written, bytes.len())
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(cx, slices);
        self.heeded(cx, written, slices.iter().map(|slice| slice.len()).sum())
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
    use tokio::time::timeout;

    use super::*;

    /// Tokio's clock stands still and jumps to the next timer when nobody has anything to do.
    #[tokio::test(start_paused = true)]
    async fn a_peer_that_reads_nothing_or_too_little_is_left() {
        for takes in [0, 1] {
            let (ours, mut theirs) = duplex(1_024);
            let trickle = async {
                loop {
                    sleep(WRITE_WAIT_MAX / 4).await;
                    let mut few = vec![0; takes];
                    theirs.read_exact(&mut few).await.expect("it is there");
                }
            };
            let text = vec![0; 1 << 20];
            let mut ours = Patient::new(ours);
            let written = tokio::select! {
                written = ours.write_all(&text) => written,
                () = trickle => unreachable!("it reads for ever"),
            };
            assert_eq!(written.map_err(|error| error.kind()), Err(ErrorKind::TimedOut));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_reads_slowly_gets_it_all() {
        let (ours, mut theirs) = duplex(WRITE_PROGRESS_BYTES);
        let reads = tokio::spawn(async move {
            let mut piece = vec![0; WRITE_PROGRESS_BYTES];
            for _ in 0..16 {
                sleep(WRITE_WAIT_MAX / 2).await;
                theirs.read_exact(&mut piece).await.expect("it is there");
            }
        });
        let mut ours = Patient::new(ours);
        ours.write_all(&vec![0; 16 * WRITE_PROGRESS_BYTES]).await.expect("it is read");
        reads.await.expect("it read");
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_is_cut_off() {
        let (is_late, begun) = (Arc::new(AtomicBool::new(false)), Instant::now());
        let never = futures_util::stream::pending::<Result<Vec<u8>, io::Error>>();
        let body = until(begun + BODY_WAIT_MAX, Body::from_stream(never), is_late.clone());
        let read = timeout(BODY_WAIT_MAX * 2, axum::body::to_bytes(body, 1_024)).await;
        assert!(read.expect("it ends").is_err() && is_late.load(Ordering::Relaxed));
    }
}
