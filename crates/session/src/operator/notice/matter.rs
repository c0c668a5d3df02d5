//! What there is to tell of one session.

use crate::id::{NoticeTag, RequestKey, SessionId};
use crate::limits::{NOTICE_ALLOW_CHARS_MAX, NOTICE_TEXT_CHARS_MAX, NOTICE_TITLE_CHARS_MAX};
use crate::moment::Timestamp;
use crate::visible::{visible_code, visible_prose};

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
    /// Which version of the request it tells of; an answer names it.
    pub revision: Option<String>,
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
    /// From the page, which shows all of it: a notice has room for a part only.
    OnceRead,
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
            text: plain(text, NOTICE_TEXT_CHARS_MAX),
            revision: None,
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
        let is_whole = text_fits(kind, text) && title_of(title) == title;
        let is_cut = kind == Kind::Permission && !is_whole;
        let answering = match answering == Answering::FromHere && is_cut {
            true => Answering::OnceRead,
            false => answering,
        };
        let ground = Ground::Request { key, answering, asker };
        let text = text_of(kind, text);
        Self { tag, kind, ground, since, title: title_of(title), text, revision: None }
    }

    /// The same, of one version of its request.
    pub fn of_revision(self, revision: Option<String>) -> Self {
        Self { revision, ..self }
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

fn text_of(kind: Kind, text: &str) -> String {
    match kind {
        Kind::Permission => one_line(&visible_code(text), NOTICE_TEXT_CHARS_MAX),
        Kind::Question | Kind::Plan | Kind::Error | Kind::Limit | Kind::Idle | Kind::Delivered => {
            plain(text, NOTICE_TEXT_CHARS_MAX)
        }
    }
}

/// Whether a notice shows the text as it is: on one line, with nothing cut, escaped or joined, and
/// so short that no device cuts it again.
fn text_fits(kind: Kind, text: &str) -> bool {
    let is_short = (1..=NOTICE_ALLOW_CHARS_MAX).contains(&text.chars().count());
    is_short && text_of(kind, text) == text.trim()
}

/// What somebody wrote as one bounded line of plain text; characters that hide or move others are
/// shown as marks.
pub fn plain(text: &str, chars_max: usize) -> String {
    one_line(&visible_prose(text), chars_max)
}

fn one_line(text: &str, chars_max: usize) -> String {
    let mut line = String::new();
    let (mut count, mut gap) = (0, false);
    for letter in text.chars() {
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
    use super::*;

    #[test]
    fn what_an_agent_wrote_is_one_bounded_line() {
        for (text, max, expected) in [
            ("ls -la", 10, "ls -la"),
            ("  a\n\n\tb c  ", 10, "a b c"),
            ("rm\u{202e}fdp.exe", 20, "rm⟨U+202E⟩fdp.exe"),
            ("abcdef", 6, "abcdef"),
            ("abcdefg", 6, "abcde…"),
            ("abcde fg", 6, "abcd…"),
            ("ééééééé", 4, "ééé…"),
            ("\u{1b}[31mred", 20, "⟨U+001B⟩[31mred"),
            ("", 4, ""),
        ] {
            assert_eq!(plain(text, max), expected, "{text:?}");
            assert!(plain(text, max).chars().count() <= max);
        }
    }

    #[test]
    fn allow_is_on_a_notice_only_where_it_shows_the_whole_command_as_it_is() {
        let answering = |title: &str, text: &str| {
            let how = (Answering::FromHere, Asker::Main);
            let (key, since) = (RequestKey::new("req_1"), Timestamp(1));
            let matter = Matter::of_request(key, Kind::Permission, how, since, title, text);
            match matter.ground {
                Ground::Request { answering, .. } => answering,
                Ground::State => panic!("it is of a request"),
            }
        };
        assert_eq!(answering("atlas: allow Bash?", "cargo test"), Answering::FromHere);
        for text in [
            &format!("echo ok{} ; rm -rf ~", " ".repeat(500)),
            &"x".repeat(NOTICE_ALLOW_CHARS_MAX + 1),
            "ls\nrm -rf ~",
            "ls  -l",
            "echo \u{202e}hs.fdp",
            "r\u{200b}m",
            "ls\u{a0}-l",
            "ls\rrm",
            "",
        ] {
            assert_eq!(answering("atlas: allow Bash?", text), Answering::OnceRead, "{text:?}");
        }
        let long_tool = format!("atlas: allow {}?", "mcp__".repeat(20));
        assert_eq!(answering(&long_tool, "cargo test"), Answering::OnceRead);
    }
}
