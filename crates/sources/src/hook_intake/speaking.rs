//! Whether a caller may speak for a session.
//!
//! Pure: the evidence comes in, the answer goes out. A hook can end a turn, close a request and let
//! a waiting hook go, so it is heard only from a process that holds the session; but a session of
//! which no living holder is known takes whoever speaks for it, or nothing could ever be seen.
//!
//! What is not promised: another program of this user that writes into a client's own files, or
//! into our spool, can tell anything. What we run in a sandbox reaches neither.

use qd_host::processes::Process;

use super::caller::{Ancestor, Caller, Program};

/// A living process that holds the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub process: Process,
    pub program: Option<Program>,
    /// Why that is believed.
    pub proof: Proof,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// It spoke for the session while nobody else did, and was seen.
    Spoke,
    /// The client's own file says so.
    Registered,
    /// It was found to work in the right place: it may be another that does.
    Guessed,
}

/// What is known of the one who speaks, besides what was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Speaker<'a> {
    pub caller: &'a Caller,
    /// The agent that ran the hook.
    pub agent: Option<Process>,
    pub program: Option<Program>,
    /// The agent is known to hold another session.
    pub holds_another: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is heard, and holds the session from now on if it was seen.
    Holder,
    /// It is not heard: a living process holds the session, and this is another.
    Stranger,
    /// It is not heard: we have started it, and what we start speaks to whoever drives it.
    Ours,
}

pub fn standing(speaker: &Speaker<'_>, holders: &[Holder], is_driven: bool) -> Standing {
    let is_holder = |process: Process| holders.iter().any(|holder| holder.process == process);
    let is_heard = match speaker.caller {
        Caller::Local(above) if above.iter().any(|one| one.is_our_supervisor) => {
            return if is_driven { Standing::Holder } else { Standing::Ours };
        }
        Caller::Local(above) => above.iter().any(|Ancestor { process, .. }| is_holder(*process)),
        Caller::Spooled => speaker.agent.is_some_and(is_holder),
        Caller::Remote | Caller::Hidden | Caller::Forwarded => false,
    };
    if is_heard || is_unguarded(speaker.caller, holders) || joins(speaker, holders) {
        return Standing::Holder;
    }
    Standing::Stranger
}

/// No process is known for certain to hold the session. A client that posts its hooks itself has no
/// process to show: there, only one that has shown itself is in its way.
fn is_unguarded(caller: &Caller, holders: &[Holder]) -> bool {
    holders.iter().all(|holder| match (holder.proof, caller) {
        (Proof::Spoke, _)
        | (Proof::Registered, Caller::Local(_) | Caller::Spooled | Caller::Forwarded) => false,
        (Proof::Registered, Caller::Remote | Caller::Hidden) | (Proof::Guessed, _) => true,
    })
}

/// A second process of the same program that holds nothing yet: a session that was resumed in
/// another terminal speaks a moment before its client's file names it.
fn joins(speaker: &Speaker<'_>, holders: &[Holder]) -> bool {
    let Some(program) = speaker.program.as_ref().filter(|_| !speaker.holds_another) else {
        return false;
    };
    let of_same = |holder: &Holder| holder.program.as_ref().is_some_and(|it| it.is_kin(program));
    holders.iter().any(of_same)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGENT: Process = Process { pid: 10, start: 1 };
    const OTHER: Process = Process { pid: 20, start: 1 };
    const HOOK: Process = Process { pid: 30, start: 1 };

    fn program(name: &str) -> Option<Program> {
        Some(Program { executable: name.into(), script: None })
    }

    fn seen(above: &[Process]) -> Caller {
        let one = |process: &Process| Ancestor {
            process: *process,
            program: None,
            is_our_supervisor: false,
        };
        Caller::Local(above.iter().map(one).collect())
    }

    fn holder(process: Process, proof: Proof) -> Holder {
        Holder { process, program: program("/bin/claude"), proof }
    }

    #[track_caller]
    fn check(caller: &Caller, agent: Option<Process>, holders: &[Holder], expected: Standing) {
        let speaker = Speaker { caller, agent, program: program("/bin/sh"), holds_another: false };
        assert_eq!(standing(&speaker, holders, false), expected);
    }

    #[test]
    fn who_holds_a_session_is_heard_and_others_are_not() {
        for proof in [Proof::Spoke, Proof::Registered] {
            let held = [holder(AGENT, proof)];
            check(&seen(&[HOOK, AGENT]), Some(AGENT), &held, Standing::Holder);
            check(&seen(&[HOOK, OTHER]), Some(OTHER), &held, Standing::Stranger);
            check(&Caller::Spooled, Some(AGENT), &held, Standing::Holder);
            check(&Caller::Spooled, Some(OTHER), &held, Standing::Stranger);
            check(&Caller::Spooled, None, &held, Standing::Stranger);
            // The same number, another process.
            let again = Process { start: 2, ..AGENT };
            check(&seen(&[HOOK, again]), Some(again), &held, Standing::Stranger);
        }
    }

    #[test]
    fn a_session_without_a_certain_holder_takes_whoever_speaks() {
        for caller in [seen(&[HOOK, OTHER]), Caller::Spooled, Caller::Remote, Caller::Hidden] {
            check(&caller, Some(OTHER), &[], Standing::Holder);
            check(&caller, Some(OTHER), &[holder(AGENT, Proof::Guessed)], Standing::Holder);
            check(&caller, Some(OTHER), &[holder(AGENT, Proof::Spoke)], Standing::Stranger);
        }
        let registered = [holder(AGENT, Proof::Registered)];
        check(&Caller::Remote, None, &registered, Standing::Holder);
        check(&Caller::Forwarded, None, &registered, Standing::Stranger);
        check(&Caller::Forwarded, None, &[], Standing::Holder);
    }

    #[test]
    fn a_second_process_of_the_program_joins_unless_it_holds_another_session() {
        let (caller, held) = (seen(&[HOOK, OTHER]), [holder(AGENT, Proof::Registered)]);
        let speaker = Speaker {
            caller: &caller,
            agent: Some(OTHER),
            program: program("/bin/claude"),
            holds_another: false,
        };
        assert_eq!(standing(&speaker, &held, false), Standing::Holder);
        let busy = Speaker { holds_another: true, ..speaker };
        assert_eq!(standing(&busy, &held, false), Standing::Stranger);
    }

    #[test]
    fn what_we_started_speaks_for_what_we_drive_and_for_nothing_else() {
        let caller = Caller::Local(vec![
            Ancestor { process: HOOK, program: None, is_our_supervisor: false },
            Ancestor { process: AGENT, program: None, is_our_supervisor: true },
        ]);
        let speaker =
            Speaker { caller: &caller, agent: Some(AGENT), program: None, holds_another: false };
        assert_eq!(standing(&speaker, &[], false), Standing::Ours);
        assert_eq!(standing(&speaker, &[holder(AGENT, Proof::Spoke)], false), Standing::Ours);
        assert_eq!(standing(&speaker, &[], true), Standing::Holder);
    }
}
