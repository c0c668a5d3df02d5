//! A notice as it is written down for receivers: bounded plain text, and where it leads.

use qd_session::id::{NoticeTag, RequestKey, SessionId};
use qd_session::limits::{NOTICE_SUMMARY_MAX, NOTICE_TEXT_CHARS_MAX};
use qd_session::operator::notice::{Answering, Ground, Kind, Matter, Notice, plain};
use ring::rand::{SecureRandom, SystemRandom};
use serde::Serialize;

/// The service worker, webhooks and tests read this.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// Another one for each message.
    pub id: String,
    /// A later message of the same tag takes its place.
    pub tag: String,
    /// What it was about is settled: clear it.
    pub closed: bool,
    /// `permission question plan error limit idle delivered`, `summary`, `test`, `closed`.
    pub kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_key: Option<RequestKey>,
    pub title: String,
    pub text: String,
    /// Which version of the request the text is of; an answer names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<String>,
    /// What the notice offers: `allow`, `deny`, and `open` in the place of `allow` where its text is
    /// not the whole of what would run.
    pub actions: &'static [&'static str],
    /// Where a click leads, on the page.
    pub path: String,
}

/// How much it presses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pressing {
    /// An agent stands still until somebody answers.
    High,
    Normal,
    /// Nobody has to look up.
    Low,
}

const ANSWERS: &[&str] = &["allow", "deny"];
const ANSWERS_UNREAD: &[&str] = &["open", "deny"];

impl Message {
    pub fn of(notice: &Notice) -> Self {
        match notice {
            Notice::Tell { session, matter } => Self::telling(session, matter),
            Notice::Sum { tag, matters } => Self::summing(tag, matters),
            Notice::Withdraw { tag } => Self::plain(tag.as_str(), "closed", "Settled", "/"),
        }
    }

    pub fn test() -> Self {
        let mut message = Self::plain("", "test", "Quarterdeck can reach you here", "/");
        message.tag = format!("test:{}", message.id);
        message
    }

    fn telling(session: &SessionId, matter: &Matter) -> Self {
        let path = path_of(session);
        let mut message =
            Self::plain(matter.tag.as_str(), matter.kind.name(), &matter.title, &path);
        message.session_id = Some(session.clone());
        message.text.clone_from(&matter.text);
        if let Ground::Request { key, answering, .. } = &matter.ground {
            message.request_key = Some(key.clone());
            message.revision.clone_from(&matter.revision);
            message.actions = match (matter.kind, answering) {
                (Kind::Permission, Answering::FromHere) => ANSWERS,
                (Kind::Permission, Answering::OnceRead) => ANSWERS_UNREAD,
                _ => &[],
            };
        }
        message
    }

    fn summing(tag: &NoticeTag, matters: &[(SessionId, Matter)]) -> Self {
        let title = format!("{} things need you", matters.len());
        let mut sessions = matters.iter().map(|(session, _)| session);
        let only = sessions.next().filter(|first| sessions.all(|other| other == *first));
        let path = only.map_or_else(|| "/".to_owned(), path_of);
        let mut message = Self::plain(tag.as_str(), "summary", &title, &path);
        message.session_id = only.cloned();
        let named: Vec<&str> = matters
            .iter()
            .take(NOTICE_SUMMARY_MAX)
            .map(|(_, matter)| matter.title.as_str())
            .collect();
        message.text = plain(&named.join(" · "), NOTICE_TEXT_CHARS_MAX);
        message
    }

    fn plain(tag: &str, kind: &'static str, title: &str, path: &str) -> Self {
        Self {
            id: fresh_id(),
            tag: tag.to_owned(),
            closed: kind == "closed",
            kind,
            session_id: None,
            request_key: None,
            revision: None,
            title: title.to_owned(),
            text: String::new(),
            actions: &[],
            path: path.to_owned(),
        }
    }

    /// Without what an agent wrote, and so without Allow: nobody allows what they do not see.
    pub fn without_details(&self) -> Self {
        let text = if self.kind == "summary" { self.text.clone() } else { String::new() };
        let actions = if self.actions == ANSWERS { ANSWERS_UNREAD } else { self.actions };
        Self { text, actions, ..self.clone() }
    }

    pub fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("our own types are JSON")
    }

    pub fn pressing(&self) -> Pressing {
        match self.kind {
            "permission" | "question" | "plan" => Pressing::High,
            "closed" | "delivered" => Pressing::Low,
            _ => Pressing::Normal,
        }
    }
}

fn path_of(session: &SessionId) -> String {
    format!("/sessions/{}", escaped(session.as_str()))
}

fn fresh_id() -> String {
    let mut bytes = [0; 8];
    // Without random numbers nothing on this machine is safe.
    SystemRandom::new().fill(&mut bytes).expect("the system gives random numbers");
    format!("ntc_{}", data_encoding::HEXLOWER.encode(&bytes))
}

/// As part of a path.
fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    text.bytes()
        .map(|byte| match plain(byte) {
            true => char::from(byte).to_string(),
            false => format!("%{byte:02X}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use qd_session::moment::Timestamp;
    use qd_session::operator::notice::Asker;

    use super::*;
    use crate::web_push::PUSH_PAYLOAD_BYTES_MAX;

    #[test]
    fn the_longest_message_fits_into_a_push() {
        let widest = "🦀".repeat(5_000);
        let key = RequestKey::from("req_0123456789abcdef");
        let since = Timestamp(1);
        let how = (Answering::FromHere, Asker::Main);
        let matter = Matter::of_request(key, Kind::Permission, how, since, &widest, &widest);
        let session = SessionId::new("s".repeat(300));
        let told = Message::of(&Notice::Tell { session: session.clone(), matter: matter.clone() });
        assert_eq!(told.actions, ["open", "deny"], "it was cut");
        assert!(told.json().len() <= PUSH_PAYLOAD_BYTES_MAX, "{}", told.json().len());
        let matters = vec![(session, matter); 50];
        let sum = Message::of(&Notice::Sum { tag: "summary:1".into(), matters });
        assert!(sum.json().len() <= PUSH_PAYLOAD_BYTES_MAX, "{}", sum.json().len());
        assert_eq!(sum.title, "50 things need you");
    }

    #[test]
    fn only_a_permission_that_can_be_given_from_here_has_buttons() {
        let none: &[&str] = &[];
        for (kind, answering, actions) in [
            (Kind::Permission, Answering::FromHere, ANSWERS),
            (Kind::Permission, Answering::OnceRead, ANSWERS_UNREAD),
            (Kind::Permission, Answering::Elsewhere, none),
            (Kind::Question, Answering::FromHere, none),
            (Kind::Plan, Answering::FromHere, none),
        ] {
            let (key, how) = ("req_1".into(), (answering, Asker::Main));
            let matter = Matter::of_request(key, kind, how, Timestamp(1), "title", "text");
            let told = Message::of(&Notice::Tell { session: "a b/c".into(), matter });
            assert_eq!(told.actions, actions, "{kind:?} {answering:?}");
            assert!(!told.without_details().actions.contains(&"allow"));
            assert_eq!(told.path, "/sessions/a%20b%2Fc");
            assert_eq!(told.without_details().text, "");
        }
    }
}
