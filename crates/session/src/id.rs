//! Names of things. All of them come in from outside; none is made here.
//!
//! An id is shared, not copied: a board of a million sessions repeats few strings.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::fnv::{BASIS, fnv};
use crate::moment::Timestamp;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        #[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(value_type = String))]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self::new(text)
            }
        }
    )*};
}

ids! {
    /// A session of ours, `sess_<uuid>`. Vendor ids are attributes that find it.
    SessionId,
    /// One model request and its stream, `turn_<uuid>`. On the wire it is the `streamId`.
    TurnId,
    /// One execution of a tool call, `toolrun_<uuid>`.
    RunId,
    /// One execution of a post-tool hook, `hookrun_<uuid>`.
    HookRunId,
    /// A tool call as the model named it.
    CallId,
    /// Something an agent waits for, unique within its session.
    RequestId,
    /// One change that was shown, `evt_<uuid>`.
    ChangeId,
    /// A process that carried the session: pid and start time, spelled by whoever saw it.
    ProcessKey,
    /// The name of a tool, as its agent spells it.
    ToolName,
    /// A request for the whole world, `req_<hex>`: the same after a restart, another one when the
    /// same thing is asked again later.
    RequestKey,
    /// One answer or command of an operator or a rule, `dec_<uuid>`.
    DecisionId,
    /// What a caller calls one attempt, so that repeating it changes nothing.
    IdempotencyKey,
    /// How an answer reaches an agent, spelled by whoever carries it.
    Way,
    /// The rule that answered by itself.
    RuleName,
    /// What a notice is known by on every device, so that it can be taken back: a request's key, or
    /// a session's state and since when.
    NoticeTag,
}

impl RequestKey {
    /// `asked` is when it was first asked.
    pub fn of(session: &SessionId, request: &RequestId, asked: Timestamp) -> Self {
        let parts = [session.as_str().as_bytes(), &[0], request.as_str().as_bytes(), &[0]];
        let sum = fnv(fnv(BASIS, &parts.concat()), &asked.0.to_be_bytes());
        Self::new(format!("req_{sum:016x}"))
    }
}

/// How the id of a main agent begins that another process runs beside the first.
const TERMINAL: &str = "terminal:";

/// Which agent of a session: the main one, a subagent by the vendor's id, or the main agent of
/// another process that has the same session open.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct AgentId(Option<Arc<str>>);

impl AgentId {
    pub const MAIN: Self = Self(None);

    pub fn sub(id: impl Into<Arc<str>>) -> Self {
        Self(Some(id.into()))
    }

    /// The main agent of another process than the one that `MAIN` is of.
    pub fn terminal(pid: u64) -> Self {
        Self::sub(format!("{TERMINAL}{pid}"))
    }

    pub fn is_main(&self) -> bool {
        self.0.is_none()
    }

    /// The process of another terminal, if this is the main agent of one.
    pub fn terminal_pid(&self) -> Option<u64> {
        self.0.as_deref()?.strip_prefix(TERMINAL)?.parse().ok()
    }

    /// A main agent, of whichever process: nobody in the session has started it.
    pub fn leads(&self) -> bool {
        self.is_main() || self.terminal_pid().is_some()
    }

    pub fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or("main")
    }
}

impl fmt::Debug for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
