//! The answer to something that was queued: wait for it, poll it, or await it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use crate::{Error, Result};

/// Says `Ok` once the work is on disk. Dropping it does not take the work back.
#[must_use = "until the receipt says so, nothing is on disk"]
pub struct Receipt<T> {
    slot: Arc<Slot<T>>,
}

/// The writer's end. Dropped without an answer, it answers [`Error::Closed`]: nobody waits for a
/// writer that is gone.
pub(crate) struct Reply<T> {
    slot: Arc<Slot<T>>,
}

struct Slot<T> {
    state: Mutex<State<T>>,
    answered: Condvar,
}

enum State<T> {
    Waiting(Option<Waker>),
    Answered(Result<T>),
    Taken,
}

pub(crate) fn pair<T>() -> (Reply<T>, Receipt<T>) {
    let state = Mutex::new(State::Waiting(None));
    let slot = Arc::new(Slot { state, answered: Condvar::new() });
    (Reply { slot: Arc::clone(&slot) }, Receipt { slot })
}

impl<T> Receipt<T> {
    /// A receipt for what was refused at the door.
    pub(crate) fn refused(error: Error) -> Self {
        let (reply, receipt) = pair();
        reply.answer(Err(error));
        receipt
    }

    /// Blocks until the answer is there. The writer answers everything, also when it ends.
    pub fn wait(self) -> Result<T> {
        let mut state = self.slot.lock();
        loop {
            if let Some(answer) = state.take() {
                return answer;
            }
            state = self.slot.answered.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Blocks at most this long; the receipt comes back if there is no answer yet.
    pub fn wait_for(self, timeout: Duration) -> std::result::Result<Result<T>, Self> {
        let deadline = Instant::now() + timeout;
        let mut state = self.slot.lock();
        loop {
            if let Some(answer) = state.take() {
                return Ok(answer);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                drop(state);
                return Err(self);
            }
            let woken = self.slot.answered.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The answer if it is there; once taken it is gone.
    pub fn poll_now(&mut self) -> Option<Result<T>> {
        self.slot.lock().take()
    }
}

impl<T> Future for Receipt<T> {
    type Output = Result<T>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.slot.lock();
        if let Some(answer) = state.take() {
            return Poll::Ready(answer);
        }
        *state = State::Waiting(Some(context.waker().clone()));
        Poll::Pending
    }
}

impl<T> Reply<T> {
    pub fn answer(self, answer: Result<T>) {
        self.slot.settle(answer);
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        self.slot.settle(Err(Error::Closed));
    }
}

impl<T> Slot<T> {
    /// A panic elsewhere cannot leave the slot half changed: each change is one assignment.
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first answer counts.
    fn settle(&self, answer: Result<T>) {
        let mut state = self.lock();
        let State::Waiting(waker) = &mut *state else { return };
        let waker = waker.take();
        *state = State::Answered(answer);
        drop(state);
        self.answered.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> State<T> {
    fn take(&mut self) -> Option<Result<T>> {
        match std::mem::replace(self, Self::Taken) {
            Self::Answered(answer) => Some(answer),
            waiting @ Self::Waiting(_) => {
                *self = waiting;
                None
            }
            // Polled again after it was ready: an answer that says so, rather than a hang.
            Self::Taken => Some(Err(Error::Closed)),
        }
    }
}

impl<T> fmt::Debug for Reply<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reply")
    }
}

impl<T> fmt::Debug for Receipt<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Receipt")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_task_is_woken_once_and_finds_the_answer() {
        let (reply, mut receipt) = pair();
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut context = Context::from_waker(&waker);
        assert!(Pin::new(&mut receipt).poll(&mut context).is_pending());
        reply.answer(Ok(7));
        assert_eq!(count.0.load(Ordering::SeqCst), 1);
        assert!(matches!(Pin::new(&mut receipt).poll(&mut context), Poll::Ready(Ok(7))));
        assert!(matches!(receipt.poll_now(), Some(Err(Error::Closed))));
    }

    #[test]
    fn a_writer_that_is_gone_leaves_nobody_waiting() {
        let (reply, receipt) = pair::<u8>();
        let waiting = std::thread::spawn(move || receipt.wait());
        drop(reply);
        assert!(matches!(waiting.join().expect("it ends"), Err(Error::Closed)));
    }

    #[test]
    fn an_answer_that_is_late_can_still_be_waited_for() {
        let (reply, receipt) = pair();
        let receipt = receipt.wait_for(Duration::from_millis(1)).expect_err("none yet");
        reply.answer(Ok(7));
        assert!(matches!(receipt.wait_for(Duration::ZERO), Ok(Ok(7))));
    }
}
