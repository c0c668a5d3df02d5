//! Rings when a file in one of some folders came or changed: whoever waits need not look.

use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;

use tokio::sync::Notify;

use crate::Error;
use crate::sources::watch::{ChangeKind, Root, Watch};

/// Dropping it ends its thread.
#[derive(Debug)]
pub struct Doorbell {
    rung: Arc<Notify>,
    _stop: UnixStream,
}

impl Doorbell {
    /// The name is for its thread.
    pub fn at(name: &str, roots: Vec<Root>) -> Result<Self, Error> {
        let failed = |source| Error::Watch { doing: "start", source };
        let (stop, stopped) = UnixStream::pair().map_err(failed)?;
        stopped.set_nonblocking(true).map_err(failed)?;
        let rung = Arc::new(Notify::new());
        let ring = rung.clone();
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || watch(roots, &stopped, &ring))
            .map_err(failed)?;
        Ok(Self { rung, _stop: stop })
    }

    /// Something has come since this was last awaited. May be dropped and asked again.
    pub async fn rung(&self) {
        self.rung.notified().await;
    }
}

fn watch(roots: Vec<Root>, mut stop: &UnixStream, ring: &Notify) {
    let mut watch = Watch::new(roots);
    loop {
        let has_come = watch.take_changes().iter().any(|change| change.kind != ChangeKind::Gone);
        if has_come {
            ring.notify_one();
        }
        // What there is to say about the folders is said by those who read them.
        watch.take_notices();
        if watch.wait(Some(stop.as_fd()), None).is_err() {
            return;
        }
        match stop.read(&mut [0]) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Ok(_) | Err(_) => return,
        }
    }
}
