//! After a restart: nothing that was in flight is in flight any more, and the machines are told.

use std::sync::Arc;

use qd_harness::Harness;
use qd_session::id::SessionId;
use qd_session::machine::{Event, Kind, Tools};
use qd_session::moment::Timestamp;
use qd_session::seed::Seed;

use super::is_alive;
use crate::broker::{Broker, Output};
use crate::desk::Reach;

impl Broker {
    /// Where new ids come from: a fresh random number for each run of the program.
    pub fn sow(&mut self, seed: Seed) {
        self.drives.sow(seed);
    }

    /// Another id by which its agent knows a session that was restored.
    pub fn also_known(&mut self, harness: Harness, vendor_id: Arc<str>, id: &SessionId) {
        let Some(tracked) = self.roster.get_mut(id) else { return };
        // A session of ours is called by its own id until its agent has told another.
        if *tracked.vendor_id == *id.as_str() {
            tracked.vendor_id = vendor_id.clone();
        }
        self.found.insert((harness, vendor_id), id.clone());
    }

    /// Tells every machine that we come back, once all sessions and decisions are there.
    pub fn restart_driven(&mut self, now: Timestamp) -> Vec<Output> {
        let mut outputs = Vec::new();
        let driven = self.roster.iter().filter(|(_, tracked)| tracked.session.driven().is_some());
        let driven: Vec<SessionId> = driven.map(|(id, _)| id.clone()).collect();
        for id in driven {
            self.restart_one(now, &id, &mut outputs);
        }
        outputs
    }

    fn restart_one(&mut self, now: Timestamp, id: &SessionId, outputs: &mut Vec<Output>) {
        self.look_at_requests(now, id, outputs);
        self.drive(now, id, Event::Restarted, outputs);
        let Some((machine, _)) = self.driven(id) else { return };
        let waits = matches!(machine.state().kind(), Kind::AwaitingApproval | Kind::AwaitingInput);
        if waits && machine.setup().tools != Tools::Ours {
            // The process that asked ended with us: nobody is there to be answered.
            self.drive(now, id, Event::HarnessExited { code: None, why: None }, outputs);
        }
        let mut desk_outputs = Vec::new();
        self.desk.take_up_all(now, id, Reach::Driver, &mut desk_outputs);
        self.pass_on(desk_outputs, outputs);
        self.carry_to_machines(now, outputs);
        if self.driven(id).is_some_and(|(machine, _)| is_alive(machine)) {
            self.survey(id, outputs);
        }
        self.show(now, id, outputs);
    }
}
