//! The open connections of the port, and which one goes when there are too many.
//!
//! A new connection is always let in: a caller with a credential must not wait behind those who have
//! none. A connection counts as anonymous until a request on it showed a credential. Anonymous ones
//! have a small share, and the oldest of them goes for the newest. Where the whole table is full the
//! caller that has the most loses its oldest, so that a flood costs whoever makes it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::process::{Resource, getrlimit};
use tokio::sync::Notify;

use crate::budget::Identity;
use crate::limits::{FILES_PER_DOOR, SOCKET_CONNECTIONS_MAX, TCP_CONNECTIONS_MAX};

#[derive(Debug, Clone)]
pub struct Connections(Arc<Mutex<Table>>);

#[derive(Debug)]
struct Table {
    max: usize,
    next: u64,
    /// Each with what ends it, the oldest first. Those without a caller are anonymous.
    open: BTreeMap<Option<Identity>, BTreeMap<u64, Arc<Notify>>>,
}

/// One connection. It counts while this lives.
#[derive(Debug)]
pub struct Seat {
    table: Connections,
    id: u64,
    leave: Arc<Notify>,
}

/// Connections of the port that this process has room for: the rest of its files is for the socket,
/// the journal and what agents are started with.
pub fn tcp_max() -> usize {
    share(TCP_CONNECTIONS_MAX)
}

/// The same for the socket.
pub fn socket_max() -> usize {
    share(SOCKET_CONNECTIONS_MAX)
}

fn share(wanted: usize) -> usize {
    let files = getrlimit(Resource::Nofile).current.and_then(|files| usize::try_from(files).ok());
    files.map_or(wanted, |files| wanted.min(files / FILES_PER_DOOR).max(1))
}

impl Connections {
    pub fn new(max: usize) -> Self {
        Self(Arc::new(Mutex::new(Table { max, next: 0, open: BTreeMap::new() })))
    }

    /// Lets one in, and sends another away where there is no room.
    pub fn admit(&self) -> Seat {
        let mut table = self.table();
        if table.is_full() {
            table.send_one_away();
        }
        let (id, leave) = (table.next, Arc::new(Notify::new()));
        table.next += 1;
        table.open.entry(None).or_default().insert(id, leave.clone());
        Seat { table: self.clone(), id, leave }
    }

    /// Gives a file back to a process that has no other left.
    pub fn shed(&self) {
        self.table().send_one_away();
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn is_full(&self) -> bool {
        self.anonymous() >= self.anonymous_max()
            || self.open.values().map(BTreeMap::len).sum::<usize>() >= self.max
    }

    fn anonymous(&self) -> usize {
        self.open.get(&None).map_or(0, BTreeMap::len)
    }

    /// A quarter: they are pages that load, and whoever knocks.
    fn anonymous_max(&self) -> usize {
        (self.max / 4).max(1)
    }

    fn send_one_away(&mut self) {
        let whose = match self.anonymous() >= self.anonymous_max() {
            true => None,
            false => {
                let most = self.open.iter().max_by_key(|(_, open)| open.len());
                let Some((whose, _)) = most else { return };
                whose.clone()
            }
        };
        let oldest = self.open.get_mut(&whose).and_then(BTreeMap::pop_first);
        if let Some((_, leave)) = oldest {
            leave.notify_one();
        }
        self.forget_empty(&whose);
    }

    fn forget_empty(&mut self, whose: &Option<Identity>) {
        if self.open.get(whose).is_some_and(BTreeMap::is_empty) {
            self.open.remove(whose);
        }
    }

    /// Takes it out, and says whose it was.
    fn remove(&mut self, id: u64) -> Option<(Option<Identity>, Arc<Notify>)> {
        let (whose, leave) = self
            .open
            .iter_mut()
            .find_map(|(whose, open)| open.remove(&id).map(|leave| (whose.clone(), leave)))?;
        self.forget_empty(&whose);
        Some((whose, leave))
    }
}

impl Seat {
    /// A request on it showed this credential.
    pub fn belongs_to(&self, who: &Identity) {
        let mut table = self.table.table();
        let Some((_, leave)) = table.remove(self.id) else { return };
        table.open.entry(Some(who.clone())).or_default().insert(self.id, leave);
    }

    /// Waits until it has to go for another.
    pub async fn sent_away(&self) {
        self.leave.notified().await;
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.table.table().remove(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Scope;

    const OBSERVER: Identity = Identity::Token(Scope::Observe);
    const ADMIN: Identity = Identity::Token(Scope::Admin);

    fn is_gone(seat: &Seat) -> bool {
        let table = seat.table.table();
        !table.open.values().any(|open| open.contains_key(&seat.id))
    }

    #[test]
    fn of_those_without_a_credential_the_oldest_goes() {
        let connections = Connections::new(40);
        let operator = connections.admit();
        operator.belongs_to(&ADMIN);
        let strangers: Vec<Seat> = (0..100).map(|_| connections.admit()).collect();
        assert!(!is_gone(&operator));
        assert!(strangers[..90].iter().all(is_gone));
        assert!(!strangers[90..].iter().any(is_gone));
    }

    #[test]
    fn a_flood_of_one_caller_costs_that_caller() {
        let connections = Connections::new(8);
        let (stranger, operator) = (connections.admit(), connections.admit());
        operator.belongs_to(&ADMIN);
        let flood: Vec<Seat> = (0..20)
            .map(|_| {
                let seat = connections.admit();
                seat.belongs_to(&OBSERVER);
                seat
            })
            .collect();
        assert!(!is_gone(&operator) && !is_gone(&stranger));
        assert_eq!(flood.iter().filter(|seat| !is_gone(seat)).count(), 6);
        assert!(!is_gone(&flood[19]));
    }

    #[tokio::test]
    async fn whoever_has_to_go_is_told_and_a_place_that_was_left_is_free() {
        let connections = Connections::new(4);
        let first = connections.admit();
        let second = connections.admit();
        first.sent_away().await;
        drop((first, second));
        connections.shed();
        assert!(connections.table().open.is_empty());
    }
}
