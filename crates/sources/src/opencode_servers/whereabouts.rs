//! Which server a session was last heard on.
//!
//! Servers of one home share their database, so each of them would answer for every session; only
//! the one that works on it can be told what to do with it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::address::Address;

/// Sessions of which it is known on which server they are; the one that was silent for longest
/// goes.
const SERVED_SESSIONS_MAX: usize = 4_096;

/// Shared by those who listen and those who act.
#[derive(Debug, Clone, Default)]
pub struct Whereabouts(Arc<Mutex<Served>>);

#[derive(Debug, Default)]
struct Served {
    sessions: BTreeMap<String, Place>,
    /// Grows with everything that is heard.
    heard: u64,
}

#[derive(Debug)]
struct Place {
    address: Address,
    heard: u64,
}

impl Whereabouts {
    /// The server speaks of this session.
    pub fn heard(&self, session: &str, address: &Address) {
        let mut served = self.lock();
        served.heard += 1;
        let heard = served.heard;
        if let Some(place) = served.sessions.get_mut(session) {
            place.heard = heard;
            if place.address != *address {
                place.address = address.clone();
            }
            return;
        }
        served.make_room();
        served.sessions.insert(session.to_owned(), Place { address: address.clone(), heard });
    }

    /// The server knows this session, and another may be at work on it.
    pub fn listed(&self, session: &str, address: &Address) {
        if self.of(session).is_none() {
            self.heard(session, address);
        }
    }

    pub fn of(&self, session: &str) -> Option<Address> {
        self.lock().sessions.get(session).map(|place| place.address.clone())
    }

    /// The server has ended.
    pub fn forget(&self, host: &str) {
        self.lock().sessions.retain(|_, place| place.address.host != host);
    }

    fn lock(&self) -> MutexGuard<'_, Served> {
        // Every change is whole before the lock is given back.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Served {
    fn make_room(&mut self) {
        if self.sessions.len() < SERVED_SESSIONS_MAX {
            return;
        }
        let oldest = self.sessions.iter().min_by_key(|(_, place)| place.heard);
        if let Some(oldest) = oldest.map(|(session, _)| session.clone()) {
            self.sessions.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> Address {
        Address { host: format!("127.0.0.1:{port}"), authorization: None }
    }

    #[test]
    fn a_session_is_where_it_was_last_heard() {
        let whereabouts = Whereabouts::default();
        whereabouts.heard("a", &address(1));
        whereabouts.listed("a", &address(2));
        assert_eq!(whereabouts.of("a"), Some(address(1)));
        whereabouts.heard("a", &address(2));
        assert_eq!(whereabouts.of("a"), Some(address(2)));
        whereabouts.forget(&address(2).host);
        assert_eq!(whereabouts.of("a"), None);
    }

    #[test]
    fn the_one_that_was_silent_for_longest_goes_first() {
        let whereabouts = Whereabouts::default();
        for number in 0..SERVED_SESSIONS_MAX {
            whereabouts.heard(&number.to_string(), &address(1));
        }
        whereabouts.heard("0", &address(1));
        whereabouts.heard("new", &address(1));
        assert!(whereabouts.of("0").is_some());
        assert!(whereabouts.of("1").is_none());
        assert_eq!(whereabouts.lock().sessions.len(), SERVED_SESSIONS_MAX);
    }
}
