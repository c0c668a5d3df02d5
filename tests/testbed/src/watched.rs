//! A value that several threads change and a test waits on.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
pub(crate) struct Watched<T> {
    value: Mutex<T>,
    changed: Condvar,
}

impl<T> Watched<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Mutex::new(value), changed: Condvar::new() }
    }

    pub(crate) fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.lock())
    }

    /// Changes the value and wakes whoever waits.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        result
    }

    /// Waits until `look` finds what it looks for; `None` when `bound` has passed without it.
    pub(crate) fn wait<R>(
        &self,
        bound: Duration,
        mut look: impl FnMut(&T) -> Option<R>,
    ) -> Option<R> {
        let until = Instant::now() + bound;
        let mut value = self.lock();
        loop {
            if let Some(found) = look(&value) {
                return Some(found);
            }
            let left = until.checked_duration_since(Instant::now())?;
            value =
                self.changed.wait_timeout(value, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// A thread that panicked has already failed its test; the others may go on looking.
    fn lock(&self) -> MutexGuard<'_, T> {
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::Watched;

    #[test]
    fn a_change_wakes_the_one_who_waits() {
        let watched = Arc::new(Watched::new(0));
        let other = Arc::clone(&watched);
        let changer = std::thread::spawn(move || other.change(|value| *value = 7));
        let found = watched.wait(Duration::from_secs(60), |value| (*value == 7).then_some(*value));
        changer.join().unwrap();
        assert_eq!(found, Some(7));
    }

    #[test]
    fn a_wait_ends_at_its_bound() {
        let watched = Watched::new(0);
        assert_eq!(watched.wait(Duration::ZERO, |value| (*value == 7).then_some(())), None);
    }
}
