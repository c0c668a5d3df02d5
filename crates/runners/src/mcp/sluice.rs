//! Between a server's pipes and `rmcp`: nothing without a bound comes through.
//!
//! `rmcp` passes over what it cannot read and answers whatever it is asked, for as long as a server
//! sends. Here a line has a length, has to be a message, and they are counted; while nobody asks the
//! server something nobody listens to it, and it waits. What it may not do ends the connection, with
//! a reason.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use serde::de::IgnoredAny;
use tokio::io::{
    AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream,
};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::limits::{MCP_LINE_BYTES_MAX, MCP_PASSED_LINES_MAX, MCP_PIPE_BYTES};
use crate::warden::Ends;

/// Dropped, it lets go of the server.
#[derive(Debug)]
pub(super) struct Sluice {
    asked: watch::Sender<bool>,
    state: Arc<State>,
    pumping: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct State {
    /// Lines since the server was asked.
    passed: AtomicUsize,
    fault: OnceLock<&'static str>,
}

impl State {
    /// Before the pipes are dropped: who sees their end asks why.
    fn end(&self, why: &'static str) {
        // There is one end.
        let _ = self.fault.set(why);
    }
}

impl Sluice {
    /// What `rmcp` talks to instead of the server.
    pub fn before(ends: Ends) -> (Self, DuplexStream) {
        let (ours, theirs) = tokio::io::duplex(MCP_PIPE_BYTES);
        let (asked, listening) = watch::channel(false);
        let state = Arc::<State>::default();
        let noting = Arc::clone(&state);
        let pumping = tokio::spawn(async move {
            let Ends { lifeline, output } = ends;
            let (from_us, to_us) = tokio::io::split(ours);
            tokio::select! {
                () = inward(output, to_us, listening, &noting) => {}
                () = outward(from_us, lifeline) => {}
            }
        });
        (Self { asked, state, pumping }, theirs)
    }

    /// Listens to the server until it has answered, or cannot any more.
    pub async fn listen<T>(&self, asking: impl Future<Output = T>) -> T {
        self.state.passed.store(0, Ordering::Relaxed);
        self.asked.send_replace(true);
        let answer = asking.await;
        self.asked.send_replace(false);
        answer
    }

    /// Why it came to its end.
    pub fn fault(&self) -> &'static str {
        self.state.fault.get().unwrap_or(&ENDED)
    }
}

impl Drop for Sluice {
    fn drop(&mut self) {
        self.pumping.abort();
    }
}

const ENDED: &str = "it has ended";

async fn inward(
    output: impl AsyncRead + Unpin,
    mut to_us: impl AsyncWrite + Unpin,
    mut listening: watch::Receiver<bool>,
    state: &State,
) {
    let mut output = BufReader::new(output);
    loop {
        let line = match next_line(&mut output).await {
            Ok(line) => line,
            Err(why) => return state.end(why),
        };
        if listening.wait_for(|asked| *asked).await.is_err() {
            return;
        }
        if state.passed.fetch_add(1, Ordering::Relaxed) >= MCP_PASSED_LINES_MAX {
            return state.end("it sends and sends, and does not answer");
        }
        if to_us.write_all(&line).await.is_err() {
            return;
        }
    }
}

/// A server that does not listen has ended, or is about to be; its output says so.
async fn outward(mut from_us: impl AsyncRead + Unpin, mut lifeline: impl AsyncWrite + Unpin) {
    let mut bytes = vec![0; MCP_PIPE_BYTES];
    while let Ok(len @ 1..) = from_us.read(&mut bytes).await {
        if lifeline.write_all(&bytes[..len]).await.is_err() {
            break;
        }
    }
    std::future::pending().await
}

/// A message with its end, blank lines passed over.
async fn next_line(
    output: &mut BufReader<impl AsyncRead + Unpin>,
) -> Result<Vec<u8>, &'static str> {
    let mut line = Vec::new();
    loop {
        let bytes = output.fill_buf().await.map_err(|_| ENDED)?;
        if bytes.is_empty() {
            return Err(ENDED);
        }
        let end = memchr::memchr(b'\n', bytes);
        let len = end.map_or(bytes.len(), |end| end + 1);
        if line.len() + len > MCP_LINE_BYTES_MAX {
            return Err("it sent a line without end");
        }
        line.extend(&bytes[..len]);
        output.consume(len);
        let is_blank = line.iter().all(u8::is_ascii_whitespace);
        match end {
            Some(_) if is_blank => line.clear(),
            Some(_) if is_message(&line) => return Ok(line),
            Some(_) => return Err("it sent what is no message"),
            None => {}
        }
    }
}

fn is_message(line: &[u8]) -> bool {
    line.trim_ascii_start().first() == Some(&b'{')
        && serde_json::from_slice::<IgnoredAny>(line).is_ok()
}
