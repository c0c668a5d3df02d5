//! What there is to tell of one session.

use crate::id::{NoticeTag, RequestKey, SessionId};
use crate::limits::{NOTICE_TEXT_CHARS_MAX, NOTICE_TITLE_CHARS_MAX};
use crate::moment::Timestamp;

use super::Kind;

/// A session and all that is open in it. What is not in it any more has closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Situation {
    pub session: SessionId,
    pub matters: Vec<Matter>,
}

/// One thing that the operator may be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matter {
    pub tag: NoticeTag,
    pub kind: Kind,
    pub ground: Ground,
    /// When it began, by its agent.
    pub since: Timestamp,
    pub title: String,
    /// What an agent wrote, as plain text.
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ground {
    /// The session is so. It has one state at a time.
    State,
    /// One of its agents waits for this.
    Request { key: RequestKey, answering: Answering, asker: Asker },
}

/// Which of a session's agents waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asker {
    Main,
    Subagent,
}

/// How a request can be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answering {
    FromHere,
    /// Where it was started, only.
    Elsewhere,
    /// An answer is on its way, a person's or a rule's.
    UnderWay,
}

impl Matter {
    pub fn of_state(
        session: &SessionId,
        kind: Kind,
        since: Timestamp,
        title: &str,
        text: &str,
    ) -> Self {
        let tag = NoticeTag::new(format!("{}:{session}:{}", kind.name(), since.0));
        Self {
            tag,
            kind,
            ground: Ground::State,
            since,
            title: title_of(title),
            text: text_of(text),
        }
    }

    /// The same, known by this and not by when it began: who began to watch later knows another
    /// beginning.
    pub fn known_by(self, session: &SessionId, what: &str) -> Self {
        let tag = NoticeTag::new(format!("{}:{session}:{what}", self.kind.name()));
        Self { tag, ..self }
    }

    pub fn of_request(
        key: RequestKey,
        kind: Kind,
        (answering, asker): (Answering, Asker),
        since: Timestamp,
        title: &str,
        text: &str,
    ) -> Self {
        let tag = NoticeTag::new(key.as_str());
        let ground = Ground::Request { key, answering, asker };
        Self { tag, kind, ground, since, title: title_of(title), text: text_of(text) }
    }

    pub(super) fn is_state(&self) -> bool {
        self.ground == Ground::State
    }

    /// Of those that ask for a session's subagents several are told at once.
    pub(super) fn is_of_subagent(&self) -> bool {
        matches!(self.ground, Ground::Request { asker: Asker::Subagent, .. })
    }

    pub(super) fn is_under_way(&self) -> bool {
        match &self.ground {
            Ground::State => false,
            Ground::Request { answering, .. } => *answering == Answering::UnderWay,
        }
    }
}

fn title_of(text: &str) -> String {
    plain(text, NOTICE_TITLE_CHARS_MAX)
}

fn text_of(text: &str) -> String {
    plain(text, NOTICE_TEXT_CHARS_MAX)
}

/// What somebody wrote as one line of plain text: no control characters, none that turn the
/// direction of what follows or hide in it, bounded.
pub fn plain(text: &str, chars_max: usize) -> String {
    let visible = |letter: &char| !matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    let spaced = text.chars().filter(visible);
    let spaced = spaced.map(|letter| if letter.is_control() { ' ' } else { letter });
    let mut line = String::new();
    let (mut count, mut gap) = (0, false);
    for letter in spaced {
        if letter.is_whitespace() {
            gap = !line.is_empty();
            continue;
        }
        if count + usize::from(gap) >= chars_max {
            // The last place says that there was more.
            line.pop();
            line.push('…');
            return line;
        }
        if gap {
            line.push(' ');
        }
        line.push(letter);
        count += 1 + usize::from(gap);
        gap = false;
    }
    line
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn what_an_agent_wrote_is_one_bounded_line() {
        for (text, max, expected) in [
            ("ls -la", 10, "ls -la"),
            ("  a\n\n\tb\u{7}c  ", 10, "a b c"),
            ("rm\u{202e}fdp.exe\u{2066}\u{200b}", 20, "rmfdp.exe"),
            ("abcdef", 6, "abcdef"),
            ("abcdefg", 6, "abcde…"),
            ("abcde fg", 6, "abcd…"),
            ("ééééééé", 4, "ééé…"),
            ("\u{1b}[31mred", 20, "[31mred"),
            ("", 4, ""),
        ] {
            assert_eq!(plain(text, max), expected, "{text:?}");
            assert!(plain(text, max).chars().count() <= max);
        }
    }
}
