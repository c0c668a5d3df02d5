//! Says when something was put into the spool while the daemon runs: a forwarder that found us
//! too slow leaves its frame there.

use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use tokio::sync::Notify;

use crate::Error;
use crate::sources::watch::{ChangeKind, Root, Tells, Watch};

/// Dropping it ends its thread.
#[derive(Debug)]
pub struct SpoolWatch {
    changed: Arc<Notify>,
    _stop: UnixStream,
}

impl SpoolWatch {
    pub fn start(spool: &Path) -> Result<Self, Error> {
        let failed = |source| Error::Watch { doing: "start", source };
        let (stop, stopped) = UnixStream::pair().map_err(failed)?;
        stopped.set_nonblocking(true).map_err(failed)?;
        let changed = Arc::new(Notify::new());
        let tell = changed.clone();
        let root = Root {
            path: spool.to_owned(),
            enters: |_| false,
            tells: Tells::Changes,
            wants: |file| file.extension().is_some_and(|ending| ending == "frame"),
        };
        thread::Builder::new()
            .name("qd-spool".to_owned())
            .spawn(move || watch(root, &stopped, &tell))
            .map_err(failed)?;
        Ok(Self { changed, _stop: stop })
    }

    /// Something has come since this was last awaited. May be dropped and asked again.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }
}

fn watch(root: Root, mut stop: &UnixStream, tell: &Notify) {
    let mut watch = Watch::new(vec![root]);
    loop {
        let has_come = watch.take_changes().iter().any(|change| change.kind != ChangeKind::Gone);
        if has_come {
            tell.notify_one();
        }
        if watch.wait(Some(stop.as_fd()), None).is_err() {
            // The next start drains what comes from now on.
            return;
        }
        match stop.read(&mut [0]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Ok(_) | Err(_) => return,
        }
    }
}
