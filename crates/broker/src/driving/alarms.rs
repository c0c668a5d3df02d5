//! Timers of driven sessions: the machine starts them, the broker's wake lets them ring.

use std::collections::BTreeMap;

use qd_session::id::SessionId;
use qd_session::machine::Timer;
use qd_session::moment::Timestamp;

#[derive(Debug, Default)]
pub struct Alarms {
    set: BTreeMap<(SessionId, Timer), Alarm>,
}

#[derive(Debug, Clone, Copy)]
struct Alarm {
    due: Timestamp,
    after_ms: u64,
}

impl Alarms {
    pub fn start(&mut self, now: Timestamp, session: &SessionId, timer: Timer, after_ms: u64) {
        let due = now.plus_ms(after_ms);
        self.set.insert((session.clone(), timer), Alarm { due, after_ms });
    }

    pub fn cancel(&mut self, session: &SessionId, timer: &Timer) {
        self.set.remove(&(session.clone(), timer.clone()));
    }

    pub fn forget(&mut self, session: &SessionId) {
        self.set.retain(|(of, _), _| of != session);
    }

    pub fn next(&self) -> Option<Timestamp> {
        self.set.values().map(|alarm| alarm.due).min()
    }

    /// Those that are due, the earliest first. A clock that was set back delays none of them by
    /// more than its own time.
    pub fn rung(&mut self, now: Timestamp) -> Vec<(SessionId, Timer)> {
        for alarm in self.set.values_mut() {
            alarm.due = alarm.due.min(now.plus_ms(alarm.after_ms));
        }
        let due = self.set.iter().filter(|(_, alarm)| alarm.due <= now);
        let mut due: Vec<_> = due.map(|(key, alarm)| (alarm.due, key.clone())).collect();
        due.sort();
        for (_, key) in &due {
            self.set.remove(key);
        }
        due.into_iter().map(|(_, key)| key).collect()
    }
}
