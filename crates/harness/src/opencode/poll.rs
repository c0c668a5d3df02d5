//! Requests to the server and its responses: prompts, answers, and the lists that tell what is
//! open now.

use std::collections::BTreeMap;
use std::sync::Arc;

use qd_session::moment::Timestamp;
use qd_session::monitor::Fact;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::handler::{Handler, Told};
use super::request::{Answered, refused};
use super::session::{Session, WaitKind};
use super::wire::{Envelope, Info, Properties, Status};
use crate::excerpt::brief;

/// A request that was made, until its response comes.
#[derive(Debug)]
pub struct Polled {
    server: Option<Arc<str>>,
    at: Timestamp,
    about: About,
}

#[derive(Debug)]
enum About {
    Permissions,
    Questions,
    Statuses,
    Sessions,
    /// A turn was asked for.
    Prompt(Arc<str>),
    Answer {
        request: String,
        kind: WaitKind,
        turned_down: bool,
    },
    Other,
}

impl Handler {
    pub(super) fn requested(
        &mut self,
        at: Timestamp,
        request: Envelope,
        told: &mut Told,
    ) -> Option<()> {
        let path = request.path?;
        let path = path.split('?').next().unwrap_or_default();
        let steps: Vec<&str> = path.trim_matches('/').split('/').collect();
        let method = request.method.as_deref().unwrap_or("GET");
        let body = request.body.unwrap_or(Value::Null);
        let about = match (method, steps.as_slice()) {
            ("GET", ["permission"]) => About::Permissions,
            ("GET", ["question"]) => About::Questions,
            ("GET", ["session", "status"]) => About::Statuses,
            ("GET" | "POST", ["session"]) | ("GET", ["session", _]) => About::Sessions,
            ("POST", ["session", id, "prompt_async" | "message" | "command" | "shell"]) => {
                let id = Arc::<str>::from(*id);
                self.prompted(at, &id, &body, told);
                About::Prompt(id)
            }
            ("POST", ["session", id, "abort"]) => {
                let session = self.session(&Arc::from(*id), at);
                session.aborted = session.busy;
                About::Other
            }
            ("POST", ["permission", request, "reply"])
            | ("POST", ["session", _, "permissions", request]) => {
                let reply = body.get("reply").or(body.get("response")).and_then(Value::as_str);
                About::Answer {
                    request: (*request).to_owned(),
                    kind: WaitKind::Permission,
                    turned_down: reply == Some("reject") && body.get("message").is_none(),
                }
            }
            ("POST", ["question", request, how @ ("reply" | "reject")]) => About::Answer {
                request: (*request).to_owned(),
                kind: WaitKind::Question,
                turned_down: *how == "reject",
            },
            _ => About::Other,
        };
        self.asked = Some(Polled { server: self.server.clone(), at, about });
        Some(())
    }

    /// A prompt in the middle of a turn is queued.
    fn prompted(&mut self, at: Timestamp, id: &Arc<str>, body: &Value, told: &mut Told) {
        let session = self.session(id, at);
        if !session.busy {
            session.begin();
            told.push(id, Fact::TurnStarted);
        }
        let parts = body.get("parts").and_then(Value::as_array);
        let text = parts.and_then(|parts| parts.iter().find_map(|part| part["text"].as_str()));
        told.push(id, Fact::UserPrompt { text: text.map(|text| brief(text, 2_000)) });
    }

    pub(super) fn responded(
        &mut self,
        at: Timestamp,
        response: Envelope,
        told: &mut Told,
    ) -> Option<()> {
        let status = response.status?;
        let server = self.server.clone();
        let asked = self.asked.take_if(|asked| asked.server == server);
        let Some(polled) = asked else { return Some(()) };
        let fine = (200..300).contains(&status);
        let body = response.body;
        match polled.about {
            About::Permissions | About::Questions | About::Statuses | About::Sessions if !fine => {}
            About::Permissions => {
                let list: Vec<Properties> = read(body)?;
                self.pending(at, polled.at, list, WaitKind::Permission, told);
            }
            About::Questions => {
                let list: Vec<Properties> = read(body)?;
                self.pending(at, polled.at, list, WaitKind::Question, told);
            }
            About::Statuses => self.statuses(at, polled.at, read(body)?, told),
            About::Sessions => self.listed(at, body?, told)?,
            About::Prompt(id) if !fine => {
                self.session(&id, at).close(at);
                told.push(&id, refused(status, body.as_ref()));
            }
            // Gone means answered by somebody else.
            About::Answer { request, kind, turned_down } if fine || status == 404 => {
                self.answer_arrived(at, &request, kind, turned_down && fine, told);
            }
            About::Prompt(_) | About::Answer { .. } | About::Other => {}
        }
        Some(())
    }

    fn answer_arrived(
        &mut self,
        at: Timestamp,
        request: &str,
        kind: WaitKind,
        turned_down: bool,
        told: &mut Told,
    ) {
        let holds =
            |session: &Session| session.requests.keys().any(|known| known.as_str() == request);
        let found = self.sessions().iter().find(|(_, session)| holds(session));
        if let Some(id) = found.map(|(id, _)| id.clone()) {
            let answer = Answered::turned_down(turned_down);
            self.settled(at, &id, request, kind, answer, told);
        }
    }

    /// Who is not listed is idle, unless it began after we asked.
    fn statuses(
        &mut self,
        at: Timestamp,
        polled_at: Timestamp,
        statuses: BTreeMap<String, Status>,
        told: &mut Told,
    ) {
        let server = self.server.clone();
        let idle: Vec<Arc<str>> = self
            .sessions()
            .iter()
            .filter(|(id, session)| {
                session.server == server
                    && session.busy
                    && session.heard < polled_at
                    && !statuses.contains_key(&***id)
            })
            .map(|(id, _)| id.clone())
            .collect();
        for id in idle {
            self.idle(at, &id, told);
        }
        for (id, status) in statuses {
            let id = Arc::<str>::from(id);
            let session = self.session(&id, at);
            session.server = server.clone();
            if !session.busy {
                self.status(at, &id, status, told);
            }
        }
    }

    fn listed(&mut self, at: Timestamp, body: Value, told: &mut Told) -> Option<()> {
        let infos: Vec<Info> = match body.is_array() {
            true => serde_json::from_value(body).ok()?,
            false => vec![serde_json::from_value(body).ok()?],
        };
        for info in infos {
            if let Some(id) = info.id.as_deref().map(Arc::<str>::from) {
                self.session_known(at, &id, info, false, told);
            }
        }
        Some(())
    }
}

fn read<T: DeserializeOwned>(body: Option<Value>) -> Option<T> {
    serde_json::from_value(body?).ok()
}
