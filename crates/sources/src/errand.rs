//! What an operator wants done through a client's own server, and what became of it.
//!
//! An errand is a task of its own on a connection of its own. Whoever drops its receipt ends it:
//! what was not sent by then is not sent any more.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::live::Trouble;

/// Errands to the servers of one source that are under way at once. An operator has a handful; a
/// rule that answers for many sessions at once tries again.
pub const ERRANDS_MAX: usize = 32;

/// How long a server may take for one step of an errand. The operator waits for it.
pub const ERRAND_REPLY_WAIT: Duration = Duration::from_secs(10);

/// What became of an errand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErrandOutcome {
    /// The server took it. That the agent goes on is told by its own signals.
    Done { detail: Option<String> },
    /// Nothing was changed, and trying again would not help.
    Refused { why: String },
    /// Nothing was changed: the server could not be asked. It may be tried again.
    Unreachable { why: String },
    /// It was sent, and nobody answered: it may have been done or not.
    Lost,
}

impl ErrandOutcome {
    pub(super) fn done() -> Self {
        Self::Done { detail: None }
    }

    pub(super) fn refused(why: impl Into<String>) -> Self {
        Self::Refused { why: why.into() }
    }

    pub(super) fn unreachable(why: impl Into<String>) -> Self {
        Self::Unreachable { why: why.into() }
    }
}

/// Why an errand did not get as far as its one message that matters.
impl From<Trouble> for ErrandOutcome {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Refused { why } => Self::Refused { why },
            Trouble::Unreachable(_)
            | Trouble::Closed
            | Trouble::Silent
            | Trouble::TooLong
            | Trouble::Foreign
            | Trouble::Locked => Self::unreachable(trouble.to_string()),
        }
    }
}

/// Await it for the outcome. Dropping it ends the errand.
#[derive(Debug)]
pub struct ErrandReceipt(JoinHandle<ErrandOutcome>);

impl Future for ErrandReceipt {
    type Output = ErrandOutcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<ErrandOutcome> {
        // A task that panicked may have sent something before.
        Pin::new(&mut self.0).poll(context).map(|ended| ended.unwrap_or(ErrandOutcome::Lost))
    }
}

impl Drop for ErrandReceipt {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Sends errands off, so many at a time.
#[derive(Debug)]
pub(super) struct Errands {
    room: Arc<Semaphore>,
}

impl Default for Errands {
    fn default() -> Self {
        Self { room: Arc::new(Semaphore::new(ERRANDS_MAX)) }
    }
}

impl Errands {
    /// Runs it, or refuses where too many are under way. Must be called in a Tokio runtime.
    pub fn send(
        &self,
        errand: impl Future<Output = ErrandOutcome> + Send + 'static,
    ) -> ErrandReceipt {
        let place = Arc::clone(&self.room).try_acquire_owned();
        ErrandReceipt(tokio::spawn(async move {
            match place {
                Ok(_place) => errand.await,
                Err(_) => ErrandOutcome::unreachable("too much is on its way already"),
            }
        }))
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn only_so_many_are_under_way_and_a_dropped_one_makes_room() {
        let errands = Errands::default();
        let endless = || errands.send(std::future::pending());
        let mut under_way: Vec<_> = (0..ERRANDS_MAX).map(|_| endless()).collect();
        let refused = errands.send(async { ErrandOutcome::done() }).await;
        assert!(matches!(refused, ErrandOutcome::Unreachable { .. }));
        drop(under_way.pop());
        // The ended task gives its place back when it is next run.
        while errands.room.available_permits() == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(errands.send(async { ErrandOutcome::done() }).await, ErrandOutcome::done());
    }

    #[tokio::test]
    async fn who_drops_the_receipt_ends_the_errand() {
        let (held, ended) = oneshot::channel::<()>();
        let receipt = Errands::default().send(async move {
            let _held = held;
            std::future::pending().await
        });
        drop(receipt);
        assert!(ended.await.is_err());
    }
}
