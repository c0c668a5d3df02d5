//! A client's input: written by a thread of its own, so that a client that does not read
//! stops nobody else.

use std::io::Write;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

use crate::error::{Doing, Error, Result};
use crate::limits::INPUT_WRITES_MAX;

#[derive(Debug, Clone)]
pub(crate) struct Input {
    writes: SyncSender<Vec<u8>>,
}

impl Input {
    pub(crate) fn to(mut writer: impl Write + Send + 'static) -> Result<Self> {
        let (writes, pending) = sync_channel::<Vec<u8>>(INPUT_WRITES_MAX);
        std::thread::Builder::new()
            .name("input".into())
            .spawn(move || {
                for bytes in pending {
                    // A client that is gone is noticed by whoever waits for its output.
                    if writer.write_all(&bytes).and_then(|()| writer.flush()).is_err() {
                        return;
                    }
                }
            })
            .doing("start the thread that writes a client's input")?;
        Ok(Self { writes })
    }

    pub(crate) fn send(&self, bytes: Vec<u8>) -> Result<()> {
        let refused = |kind, text: &str| Error::Io {
            what: "write to the client".into(),
            source: std::io::Error::new(kind, text.to_owned()),
        };
        self.writes.try_send(bytes).map_err(|error| match error {
            TrySendError::Full(_) => {
                refused(std::io::ErrorKind::WouldBlock, "it does not read its input")
            }
            TrySendError::Disconnected(_) => {
                refused(std::io::ErrorKind::BrokenPipe, "it has closed its input")
            }
        })
    }
}
