//! A gate a reply waits at until the test opens it, so that no test guesses how long
//! "in the middle" lasts.

use tokio::sync::watch;

#[derive(Debug, Clone)]
pub struct Gate {
    open: watch::Sender<bool>,
}

impl Gate {
    /// A closed gate. Clones are the same gate.
    pub fn new() -> Self {
        Self { open: watch::Sender::new(false) }
    }

    /// Lets through whoever waits and whoever comes later.
    pub fn open(&self) {
        self.open.send_replace(true);
    }

    pub(crate) async fn opened(&self) {
        // The sender lives in `self`, so the channel cannot close while we wait.
        let _ = self.open.subscribe().wait_for(|open| *open).await;
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}
