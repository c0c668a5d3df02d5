//! Rings when a file in one of some folders came, changed or went: whoever waits need not look.

use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread;

use tokio::sync::Notify;

use crate::Error;
use crate::watch::{ChangeKind, Root, Watch};

/// What it rings for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rings {
    /// A file that came or changed.
    ForNews,
    /// A file that went as well.
    ForEnds,
}

/// Dropping it ends its thread.
#[derive(Debug)]
pub struct Doorbell {
    rung: Arc<Notify>,
    _stop: UnixStream,
}

impl Doorbell {
    /// The name is for its thread.
    pub fn at(name: &str, roots: Vec<Root>, rings: Rings) -> Result<Self, Error> {
        let failed = |source| Error::Watch { doing: "start", source };
        let (stop, stopped) = UnixStream::pair().map_err(failed)?;
        stopped.set_nonblocking(true).map_err(failed)?;
        let rung = Arc::new(Notify::new());
        let ring = rung.clone();
        thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || watch(roots, rings, &stopped, &ring))
            .map_err(failed)?;
        Ok(Self { rung, _stop: stop })
    }

    /// Something has come since this was last awaited. May be dropped and asked again.
    pub async fn rung(&self) {
        self.rung.notified().await;
    }
}

fn watch(roots: Vec<Root>, rings: Rings, mut stop: &UnixStream, ring: &Notify) {
    let mut watch = Watch::new(roots);
    loop {
        let changes = watch.take_changes();
        let counts = |kind| rings == Rings::ForEnds || kind != ChangeKind::Gone;
        if changes.iter().any(|change| counts(change.kind)) {
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
