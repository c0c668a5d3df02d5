//! Which messages were printed before: a line may be a growth, a double or a reprint of one.

use std::collections::BTreeMap;

use super::wire::Word;

/// Most messages of one stream that are remembered. A reprint repeats a whole task; a task of
/// thousands of messages is long, and what fell out is old and counts as printed before.
const MESSAGES_MAX: usize = 4096;

/// The messages of one stream, by the client's time and the word.
#[derive(Debug, Default)]
pub struct Seen {
    messages: BTreeMap<(u64, Word), bool>,
    /// Everything up to here was dropped.
    forgotten: u64,
}

/// How a line stands to what was printed before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    First,
    /// It was partial, and now it is complete.
    Completed,
    /// Printed before, as complete as now.
    Again,
}

impl Seen {
    pub fn note(&mut self, stamp: u64, word: &Word, partial: bool) -> Sight {
        if stamp <= self.forgotten {
            return Sight::Again;
        }
        match self.messages.insert((stamp, word.clone()), partial) {
            None => {
                self.drop_oldest();
                Sight::First
            }
            Some(true) if !partial => Sight::Completed,
            Some(was_partial) => {
                // A complete message does not become partial again.
                self.messages.insert((stamp, word.clone()), was_partial && partial);
                Sight::Again
            }
        }
    }

    fn drop_oldest(&mut self) {
        if self.messages.len() > MESSAGES_MAX
            && let Some(((stamp, _), _)) = self.messages.pop_first()
        {
            self.forgotten = stamp;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text() -> Word {
        Word::Say("text".into())
    }

    #[test]
    fn a_message_is_first_then_complete_then_a_double() {
        let mut seen = Seen::default();
        assert_eq!(seen.note(5, &text(), true), Sight::First);
        assert_eq!(seen.note(5, &text(), true), Sight::Again);
        assert_eq!(seen.note(5, &text(), false), Sight::Completed);
        assert_eq!(seen.note(5, &text(), true), Sight::Again);
        assert_eq!(seen.note(5, &text(), false), Sight::Again);
    }

    #[test]
    fn what_was_forgotten_counts_as_printed_before() {
        let mut seen = Seen::default();
        for stamp in 1..=MESSAGES_MAX as u64 + 1 {
            assert_eq!(seen.note(stamp, &text(), false), Sight::First);
        }
        assert_eq!(seen.note(1, &text(), false), Sight::Again);
        assert_eq!(seen.messages.len(), MESSAGES_MAX);
    }
}
