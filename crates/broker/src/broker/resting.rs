//! A session that may be at rest: packed until somebody needs it.
//!
//! Most sessions of a machine have been silent for long. Resting changes how one is kept and
//! nothing else: whoever asks gets the same session, and it wakes with its next event.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use qd_session::Session;
use qd_session::id::ProcessKey;
use qd_session::moment::Timestamp;
use qd_session::policy::{Layer, Preset};

use crate::packed::{Packed, Press};
use crate::rules;

#[derive(Debug)]
pub enum SessionCell {
    Awake {
        session: Box<Session>,
        /// It was changed since resting was last thought of.
        is_fresh: bool,
    },
    Resting(Resting),
}

#[derive(Debug)]
pub struct Resting {
    packed: Packed,
    index: Index,
}

/// What is asked of all sessions at once.
#[derive(Debug)]
struct Index {
    heard: Timestamp,
    newest: Timestamp,
    folder: Option<Arc<str>>,
    carriers: Box<[ProcessKey]>,
    preset: Option<Preset>,
}

impl SessionCell {
    pub fn new(session: Session) -> Self {
        Self::Awake { session: Box::new(session), is_fresh: true }
    }

    /// The session as it is. Of one at rest this is a copy, and it rests on.
    pub fn peek(&self) -> Cow<'_, Session> {
        match self {
            Self::Awake { session, .. } => Cow::Borrowed(session),
            Self::Resting(resting) => Cow::Owned(resting.unpack()),
        }
    }

    /// The session, to be changed.
    pub fn wake(&mut self) -> &mut Session {
        if let Self::Resting(resting) = self {
            *self = Self::new(resting.unpack());
        }
        match self {
            Self::Awake { session, is_fresh } => {
                *is_fresh = true;
                session
            }
            Self::Resting(_) => unreachable!("it was just woken"),
        }
    }

    /// Lets it rest the next time, although it was changed lately.
    pub fn tire(&mut self) {
        if let Self::Awake { is_fresh, .. } = self {
            *is_fresh = false;
        }
    }

    /// Packs a session that was not changed since it was last asked to rest. One that we drive is
    /// never packed.
    pub fn rest(&mut self, press: &mut Press) {
        let Self::Awake { session, is_fresh } = self else { return };
        if std::mem::take(is_fresh) || session.machine().is_some() {
            return;
        }
        let Ok(text) = serde_json::to_vec(session) else { return };
        let resting = Resting { packed: press.pack(&text), index: Index::of(session) };
        // What would not come back as it is stays awake: a number that JSON rounds, or a nesting
        // that is too deep to be read.
        if resting.read().is_some_and(|read| read == **session) {
            *self = Self::Resting(resting);
        }
    }

    /// A session that we drive; it never rests.
    pub fn driven(&self) -> Option<&Session> {
        match self {
            Self::Awake { session, .. } => session.machine().is_some().then_some(session),
            Self::Resting(_) => None,
        }
    }

    pub fn is_resting(&self) -> bool {
        matches!(self, Self::Resting(_))
    }

    /// Whether it is awake only because it was changed lately.
    pub fn will_rest(&self) -> bool {
        matches!(self, Self::Awake { session, .. } if session.machine().is_none())
    }

    pub fn heard(&self) -> Timestamp {
        match self {
            Self::Awake { session, .. } => session.monitor().last_signal(),
            Self::Resting(resting) => resting.index.heard,
        }
    }

    /// The newest time that is known of it.
    pub fn newest(&self) -> Timestamp {
        match self {
            Self::Awake { session, .. } => session.newest(),
            Self::Resting(resting) => resting.index.newest,
        }
    }

    pub fn folder(&self) -> Option<Arc<str>> {
        match self {
            Self::Awake { session, .. } => rules::folder(session),
            Self::Resting(resting) => resting.index.folder.clone(),
        }
    }

    /// The session's own layer of the policy.
    pub fn layer(&self) -> Layer {
        match self {
            Self::Awake { session, .. } => rules::layer(session),
            Self::Resting(resting) => {
                resting.index.preset.map(Layer::with_preset).unwrap_or_default()
            }
        }
    }

    /// The processes that carry it.
    pub fn carriers(&self) -> impl Iterator<Item = &ProcessKey> {
        let (awake, resting) = match self {
            Self::Awake { session, .. } => (Some(session.monitor().carriers()), None),
            Self::Resting(resting) => (None, Some(resting.index.carriers.iter())),
        };
        awake.into_iter().flatten().chain(resting.into_iter().flatten())
    }

    /// Whether one of the processes carries it, or has carried it and gone over to another session
    /// a moment ago.
    pub fn is_of(&self, processes: &BTreeSet<ProcessKey>) -> bool {
        match self {
            Self::Awake { session, .. } => {
                session.monitor().processes().any(|process| processes.contains(process))
            }
            Self::Resting(_) => self.carriers().any(|process| processes.contains(process)),
        }
    }
}

impl Resting {
    fn unpack(&self) -> Session {
        self.read().expect("it was read once when it was packed")
    }

    fn read(&self) -> Option<Session> {
        serde_json::from_slice(&self.packed.unpack(DICTIONARY)).ok()
    }
}

impl Index {
    fn of(session: &Session) -> Self {
        Self {
            heard: session.monitor().last_signal(),
            newest: session.newest(),
            folder: rules::folder(session),
            carriers: session.monitor().carriers().cloned().collect(),
            preset: session.preset(),
        }
    }
}

/// A press for sessions.
pub fn press() -> Press {
    Press::new(DICTIONARY)
}

/// A session as JSON; the most usual parts come last.
const DICTIONARY: &str = r#"{"subagents":[{"id":"","subagent":{"value":"general-purpose"},"ended":{}}],"requests":[{"id":"","agent":"","asked":{"at":17,"source":"hook","value":{"kind":"permission","tool":"Bash","text":"","input":"{\"command\":\"\",\"description\":\"\"}","call":"toolu_"}},"waiting":{},"resolved":{}}],"retrying":{},"failed":{"value":{"kind":"","message":""}},"interrupted":{},"compactionStarted":{},"compactionEnded":{},"background":{"value":0},"tools":[{"call":"toolu_","started":{"at":17,"seq":0,"source":"hook","value":{"tool":"Write","about":"/home/"}},"ended":{"at":17,"source":"transcript","value":true},"exitCode":{"value":0}},{"call":"call_","started":{"value":{"tool":"Bash","about":"cargo test"}}}],"work":{"tests":{"value":{"call":"","success_tells":true,"failureTells":true}},"commit":{"value":{"message":""}},"draft":{"value":{"path":"","isChange":true}},"code":{}},"dismissed":17,"preset":"manual","title":{"value":""},"customTitle":{},"task":{"value":null},"branch":{"value":"main"},"forkedFrom":{},"processes":[{"key":"","firstSeen":{"at":17,"source":"process"},"seen":{"at":17},"gone":{}}],"missing":{"at":17,"source":"process"},"source":"registry","source":"notify","source":"app_server","event":"process_seen","event":"turn_completed","event":"tool_completed","event":"title_known","event":"place_known","event":"usage_known"{"id":"sess_","monitor":{"main":{"id":"","turn":{"at":17949,"seq":0,"source":"hook"},"work":{"at":17949,"source":"hook"},"llm":{"at":17949,"source":"transcript"},"completed":{"at":17949,"source":"hook"},"lastMessage":{"at":17949,"source":"hook","value":"done"}},"liveness":{"started":{"at":17949,"source":"hook"},"ended":{"at":17949,"source":"hook"}},"about":{"firstPrompt":{"at":17949,"source":"hook","value":""},"mode":{"at":17949,"source":"hook","value":"default"},"usage":{"at":17949,"source":"hook","value":{"model":"claude-opus-4-5","contextTokens":0,"contextWindow":200000}},"cwd":{"at":17949,"source":"hook","value":"/home/"},"transcript":{"at":17949,"source":"hook","value":"/.claude/projects/-home-00-0000-4000-8000-000000000000.jsonl"}},"evidence":[{"source":"hook","at":17949,"event":"session_ended"}],"unrecognised":0}}"#;
