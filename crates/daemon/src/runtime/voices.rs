//! Who spoke for which session, and whether another may: the evidence for `hook_intake::speaking`.

use std::collections::BTreeMap;
use std::sync::Arc;

use qd_broker::Broker;
use qd_harness::waiting_hook::session_named;
use qd_harness::{Harness, other_client};
use qd_host::processes::Process;
use qd_sources::hook_intake::speaking::{Holder, Proof, Speaker, Standing, standing};
use qd_sources::hook_intake::{Caller, Frame, Program};
use tracing::{info, warn};

use super::Runtime;

/// Sessions of which it is known who spoke for them; the one that was silent for longest goes.
const VOICES_MAX: usize = 4_096;

/// Programs that are counted which run hooks of other clients. Few are known to; whoever makes up
/// more names is not worth remembering.
const OTHER_CALLERS_MAX: usize = 16;

type Key = (Harness, Arc<str>);

/// The processes that were seen to speak for a session, while they live.
#[derive(Debug, Default)]
pub struct Voices {
    sessions: BTreeMap<Key, Voice>,
    /// Counts what was heard, to know who was silent for longest.
    clock: u64,
}

#[derive(Debug, Default)]
struct Voice {
    processes: Vec<(Process, Option<Program>)>,
    heard: u64,
}

impl Voices {
    /// All living processes that hold a session, each with its proof.
    fn holders(&self, broker: &Broker, key: &Key) -> Vec<Holder> {
        let spoke = self.sessions.get(key).into_iter().flat_map(|voice| &voice.processes);
        let mut holders: Vec<Holder> = spoke
            .map(|(process, program)| Holder {
                process: *process,
                program: program.clone(),
                proof: Proof::Spoke,
            })
            .collect();
        let proof = if key.0.names_its_process() { Proof::Registered } else { Proof::Guessed };
        for process in broker.carriers_of(key).filter_map(|key| Process::named(key.as_str())) {
            if holders.iter().all(|holder| holder.process != process) {
                holders.push(Holder { process, program: Program::of(process), proof });
            }
        }
        holders.retain(|holder| holder.process.is_alive());
        holders
    }

    fn holds_another(&self, broker: &Broker, key: &Key, agent: Process) -> bool {
        let spoke = self.sessions.iter().any(|(other, voice)| {
            other != key && voice.processes.iter().any(|(process, _)| *process == agent)
        });
        let name = agent.key();
        spoke
            || broker.carriers().any(|(harness, vendor_id, process)| {
                *process == name && (harness, vendor_id) != (key.0, &key.1)
            })
    }

    fn spoke(&mut self, key: Key, process: Process, program: Option<Program>) {
        self.clock += 1;
        if self.sessions.len() >= VOICES_MAX && !self.sessions.contains_key(&key) {
            let silent = self.sessions.iter().min_by_key(|(_, voice)| voice.heard);
            if let Some(silent) = silent.map(|(key, _)| key.clone()) {
                self.sessions.remove(&silent);
            }
        }
        let voice = self.sessions.entry(key).or_default();
        voice.heard = self.clock;
        if voice.processes.iter().all(|(known, _)| *known != process) {
            voice.processes.retain(|(known, _)| known.is_alive());
            voice.processes.push((process, program));
        }
    }
}

/// The program that ran the hook, where it is not the client that the hook was installed for: as its
/// forwarder found, or as the payload shows.
fn other_caller(harness: Harness, frame: &Frame) -> Option<&str> {
    frame.by.as_deref().or_else(|| other_client::of_hook(harness, &frame.payload))
}

impl Runtime {
    fn note_other_caller(&mut self, program: &str) {
        let callers = &mut self.health.other_callers;
        if !callers.contains_key(program) {
            if callers.len() >= OTHER_CALLERS_MAX {
                return;
            }
            info!(
                program,
                "another program runs our hooks; it is not held, and has no card of theirs"
            );
        }
        *callers.entry(program.to_owned()).or_default() += 1;
    }

    /// Whether the hook is heard: its caller may speak for the session that it names. One that
    /// names none changes nothing either way.
    pub(super) fn is_heard(&mut self, harness: Harness, frame: &Frame) -> bool {
        if let Some(program) = other_caller(harness, frame) {
            self.note_other_caller(program);
            return false;
        }
        let Some(session) = session_named(&frame.payload) else { return true };
        let key = (harness, session);
        let agent = frame.caller.agent(frame.agent);
        let program = agent.and_then(|agent| match &frame.caller {
            Caller::Local(above) => {
                above.iter().find(|one| one.process == agent).and_then(|one| one.program.clone())
            }
            Caller::Spooled => agent.is_alive().then(|| Program::of(agent)).flatten(),
            Caller::Remote | Caller::Hidden | Caller::Forwarded => None,
        });
        let holders = self.voices.holders(&self.broker, &key);
        let is_known = |agent: Process| holders.iter().any(|holder| holder.process == agent);
        let holds_another = agent.is_some_and(|agent| {
            !is_known(agent) && self.voices.holds_another(&self.broker, &key, agent)
        });
        let speaker =
            Speaker { caller: &frame.caller, agent, program: program.clone(), holds_another };
        let is_driven = self.broker.driven_session(harness, &key.1).is_some();
        match standing(&speaker, &holders, is_driven) {
            Standing::Holder => {
                let seen = agent.filter(|_| frame.caller.peer().is_some());
                seen.into_iter()
                    .for_each(|agent| self.voices.spoke(key.clone(), agent, program.clone()));
                true
            }
            standing @ (Standing::Stranger | Standing::Ours) => {
                self.health.strangers += 1;
                // Whoever tries it a thousand times writes ten lines.
                if self.health.strangers.is_power_of_two() {
                    warn!(harness = harness.name(), vendor_id = &*key.1, ?standing,
                        peer = ?frame.caller.peer(), count = self.health.strangers,
                        "a hook was ignored: its process does not hold the session");
                }
                false
            }
        }
    }
}
