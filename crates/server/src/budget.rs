//! What one caller may use of the port.
//!
//! A caller is known by what it signed in with: on the loopback every peer has the same address. So
//! nobody spends what belongs to another, and whoever has no credential spends nothing at all: a
//! refusal costs no budget, and wrong tokens never keep a right one out. The socket has no budgets.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::auth::Scope;
use crate::limits::{
    CALLERS_MAX, GUESS_WINDOW, GUESSES_MAX, REQUESTS_AT_ONCE, REQUESTS_PER_S,
    STREAMS_PER_CALLER_MAX,
};

/// Who asks over the port, as far as its credential tells.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Identity {
    /// Whoever has the token of this scope.
    Token(Scope),
    /// A browser that signed in, by its id.
    Browser(String),
}

/// An allowance that fills up as time goes by.
#[derive(Debug)]
pub struct Bucket {
    size: u32,
    per_s: f64,
    left: f64,
    at: Instant,
}

impl Bucket {
    pub fn new(size: u32, per_s: f64, now: Instant) -> Self {
        Self { size, per_s, left: f64::from(size), at: now }
    }

    /// False where nothing is left.
    pub fn spend(&mut self, now: Instant) -> bool {
        self.fill(now);
        let is_enough = self.left >= 1.0;
        if is_enough {
            self.left -= 1.0;
        }
        is_enough
    }

    fn fill(&mut self, now: Instant) {
        let earned = now.duration_since(self.at).as_secs_f64() * self.per_s;
        self.left = (self.left + earned).min(f64::from(self.size));
        self.at = now;
    }

    fn is_full(&mut self, now: Instant) -> bool {
        self.fill(now);
        self.left >= f64::from(self.size)
    }
}

/// The requests that each caller may still make.
#[derive(Debug, Default)]
pub struct Requests(Mutex<BTreeMap<Identity, Bucket>>);

impl Requests {
    /// False where this caller has made too many.
    pub fn spend(&self, who: &Identity, now: Instant) -> bool {
        let mut buckets = locked(&self.0);
        if buckets.len() >= CALLERS_MAX && !buckets.contains_key(who) {
            // Whoever has spent nothing lately needs no entry.
            buckets.retain(|_, bucket| !bucket.is_full(now));
        }
        let fresh = || Bucket::new(REQUESTS_AT_ONCE, f64::from(REQUESTS_PER_S), now);
        buckets.entry(who.clone()).or_insert_with(fresh).spend(now)
    }
}

/// Wrong tokens within the present window. They are counted after a token was found to be wrong.
#[derive(Debug)]
pub struct Guesses(Mutex<(Instant, u32)>);

impl Guesses {
    pub fn new(now: Instant) -> Self {
        Self(Mutex::new((now, 0)))
    }

    /// Counts one more; true where there were too many already.
    pub fn are_too_many(&self, now: Instant) -> bool {
        let mut guesses = locked(&self.0);
        let (since, count) = &mut *guesses;
        if now.duration_since(*since) >= GUESS_WINDOW {
            (*since, *count) = (now, 0);
        }
        *count = count.saturating_add(1);
        *count > GUESSES_MAX
    }
}

/// The streams that each caller has open.
#[derive(Debug, Clone, Default)]
pub struct Streams(Arc<Mutex<BTreeMap<Identity, usize>>>);

/// A stream counts for its caller while this lives.
#[derive(Debug)]
pub struct OpenStream {
    streams: Streams,
    who: Identity,
}

impl Streams {
    /// `None` where this caller has as many open as it may.
    pub fn open(&self, who: &Identity) -> Option<OpenStream> {
        let mut open = locked(&self.0);
        let count = open.entry(who.clone()).or_default();
        if *count == STREAMS_PER_CALLER_MAX {
            return None;
        }
        *count += 1;
        Some(OpenStream { streams: self.clone(), who: who.clone() })
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut open = locked(&self.streams.0);
        if let Some(count) = open.get_mut(&self.who) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.who);
            }
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const OBSERVER: Identity = Identity::Token(Scope::Observe);
    const ADMIN: Identity = Identity::Token(Scope::Admin);

    #[test]
    fn a_flood_of_requests_waits_and_costs_nobody_else() {
        let (start, requests) = (Instant::now(), Requests::default());
        assert!((0..REQUESTS_AT_ONCE).all(|_| requests.spend(&OBSERVER, start)));
        assert!(!requests.spend(&OBSERVER, start));
        assert!(requests.spend(&ADMIN, start));
        let later = start + Duration::from_secs(1);
        assert!((0..REQUESTS_PER_S).all(|_| requests.spend(&OBSERVER, later)));
        assert!(!requests.spend(&OBSERVER, later));
    }

    #[test]
    fn callers_that_rest_are_forgotten() {
        let (start, requests) = (Instant::now(), Requests::default());
        let browser = |nth: usize| Identity::Browser(nth.to_string());
        (0..CALLERS_MAX).for_each(|nth| assert!(requests.spend(&browser(nth), start)));
        assert_eq!(locked(&requests.0).len(), CALLERS_MAX);
        assert!(requests.spend(&browser(CALLERS_MAX), start + Duration::from_secs(1)));
        assert_eq!(locked(&requests.0).len(), 1);
    }

    #[test]
    fn guesses_are_forgotten_after_a_while() {
        let start = Instant::now();
        let guesses = Guesses::new(start);
        assert!((0..GUESSES_MAX).all(|_| !guesses.are_too_many(start)));
        assert!(guesses.are_too_many(start));
        assert!(!guesses.are_too_many(start + GUESS_WINDOW));
    }

    #[test]
    fn each_caller_has_streams_of_its_own_and_gets_back_what_it_closed() {
        let streams = Streams::default();
        let mut open: Vec<OpenStream> =
            (0..STREAMS_PER_CALLER_MAX).map_while(|_| streams.open(&OBSERVER)).collect();
        assert_eq!(open.len(), STREAMS_PER_CALLER_MAX);
        assert!(streams.open(&OBSERVER).is_none());
        assert!(streams.open(&ADMIN).is_some());
        open.pop();
        assert!(streams.open(&OBSERVER).is_some());
        open.clear();
        assert!(locked(&streams.0).is_empty());
    }
}
