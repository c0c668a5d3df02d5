//! Holders: which kinds of process have the session open.
//!
//! A `-p --resume` may run while the terminal has the same session open, and neither its
//! `SessionEnd` nor its last transcript line says which process it was. The session is over when
//! nobody holds it any more. Where one is only assumed, an explicit exit is believed.

use std::collections::VecDeque;

use qd_session::id::ProcessKey;
use qd_session::moment::Timestamp;

/// The same end is told by a hook, twice in the transcript, and perhaps doubled on the way.
const SAME_END_MS: u64 = 200;

/// Most processes remembered as gone. Two sources tell of the same exit, seconds apart at most.
const GONE_MAX: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A terminal.
    Interactive,
    /// `-p` and the SDKs.
    Headless,
}

impl Kind {
    /// By the `entrypoint` of a transcript line or a registry file.
    pub fn of_entrypoint(entrypoint: &str) -> Option<Self> {
        match entrypoint {
            "cli" => Some(Self::Interactive),
            _ if entrypoint.starts_with("sdk") => Some(Self::Headless),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
enum Presence {
    #[default]
    Absent,
    Assumed,
    Known,
}

#[derive(Debug, Default)]
pub struct Holders {
    interactive: Presence,
    headless: Presence,
    ended_at: Option<Timestamp>,
    exited_at: Option<Timestamp>,
    gone: VecDeque<ProcessKey>,
    /// Ends that left another holder, whose processes have not been seen to exit yet.
    exits_due: u8,
}

impl Holders {
    /// A process said that it opened the session; `None` where it did not say what it is.
    pub fn started(&mut self, kind: Option<Kind>) {
        match kind {
            Some(kind) => self.seen(kind),
            None if self.interactive == Presence::Known => {
                self.headless = self.headless.max(Presence::Assumed);
            }
            None => self.interactive = self.interactive.max(Presence::Assumed),
        }
    }

    /// Something was written by a process of that kind.
    pub fn seen(&mut self, kind: Kind) {
        let (this, other) = match kind {
            Kind::Interactive => (&mut self.interactive, &mut self.headless),
            Kind::Headless => (&mut self.headless, &mut self.interactive),
        };
        let news = *this != Presence::Known;
        *this = Presence::Known;
        // One start of unknown kind has been explained.
        if news && *other == Presence::Assumed && kind == Kind::Headless {
            *other = Presence::Absent;
        }
    }

    /// One of them said goodbye. True if nobody holds the session any more.
    pub fn ended(&mut self, now: Timestamp, kind: Option<Kind>) -> bool {
        let told_again = self.ended_at.is_some_and(|ended| now.ms_since(ended) <= SAME_END_MS);
        // The transcript may tell first and not know who it was; the hook's word is clearer.
        if told_again && kind.is_none() {
            return self.nobody();
        }
        self.ended_at = Some(now);
        match kind {
            Some(Kind::Interactive) => {
                self.interactive = Presence::Absent;
                if self.headless == Presence::Assumed {
                    self.headless = Presence::Absent;
                }
            }
            Some(Kind::Headless) => self.headless = Presence::Absent,
            None if self.headless > Presence::Absent => self.headless = Presence::Absent,
            None => self.interactive = Presence::Absent,
        }
        if !self.nobody() && !told_again {
            self.exits_due = self.exits_due.saturating_add(1);
        }
        self.nobody()
    }

    /// A process of the session was seen to exit. True if it was the last.
    pub fn exited(&mut self, now: Timestamp, process: Option<&ProcessKey>) -> bool {
        let told_before = match process {
            Some(process) => self.gone.contains(process),
            None => self.exited_at.is_some_and(|exited| now.ms_since(exited) <= SAME_END_MS),
        };
        if told_before {
            return self.nobody();
        }
        if self.gone.len() == GONE_MAX {
            self.gone.pop_front();
        }
        self.gone.extend(process.cloned());
        self.exited_at = Some(now);
        if self.exits_due > 0 {
            self.exits_due -= 1;
            return false;
        }
        (self.interactive, self.headless) = (Presence::Absent, Presence::Absent);
        true
    }

    /// As far as is known.
    pub fn nobody(&self) -> bool {
        self.interactive == Presence::Absent && self.headless == Presence::Absent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T1: Timestamp = Timestamp(10_000);
    const T2: Timestamp = Timestamp(20_000);

    #[test]
    fn the_end_of_a_print_run_leaves_the_terminal_its_session() {
        let mut holders = Holders::default();
        holders.started(Some(Kind::Interactive));
        holders.started(None);
        holders.seen(Kind::Headless);
        assert!(!holders.ended(T1, None));
        assert!(!holders.ended(T1, None), "the same end, told twice");
        assert!(!holders.exited(T1.plus_ms(100), None));
        assert!(!holders.exited(T1.plus_ms(100), None), "the same exit, told twice");
        assert!(holders.ended(T2, Some(Kind::Interactive)));
    }

    #[test]
    fn a_terminal_that_was_killed_and_resumed_ends_with_its_exit() {
        let mut holders = Holders::default();
        holders.started(Some(Kind::Interactive));
        holders.started(None);
        assert!(holders.ended(T1, Some(Kind::Interactive)));
    }

    #[test]
    fn an_exit_that_two_sources_tell_counts_once() {
        let [print, terminal] = ["7:1", "8:1"].map(ProcessKey::new);
        let mut holders = Holders::default();
        holders.started(Some(Kind::Interactive));
        holders.started(Some(Kind::Headless));
        assert!(!holders.ended(T1, Some(Kind::Headless)));
        assert!(!holders.exited(T1, Some(&print)));
        assert!(!holders.exited(T2, Some(&print)), "much later, but the same");
        assert!(holders.exited(T2, Some(&terminal)));
    }

    #[test]
    fn an_exit_nobody_announced_ends_the_session() {
        let mut holders = Holders::default();
        holders.started(Some(Kind::Interactive));
        assert!(holders.exited(T1, None));
        assert!(Holders::default().ended(T1, None));
    }
}
