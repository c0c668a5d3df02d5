//! JSON-RPC bookkeeping: which response answers what.

use std::collections::VecDeque;
use std::sync::Arc;

use qd_session::id::RequestId;
use serde_json::Value;

/// Most requests of the client that wait for their response, and most ids of answered ones that
/// are kept so that a doubled response answers nothing.
const SENT_MAX: usize = 64;

/// The id of a JSON-RPC request: the JSON text of a number or a string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcId(String);

impl RpcId {
    pub fn of(id: Option<&Value>) -> Option<Self> {
        id.map(|id| Self(id.to_string()))
    }

    /// As the request is called on the board.
    pub fn request(&self) -> RequestId {
        RequestId::new(self.0.trim_matches('"'))
    }
}

/// What the client asked the agent for.
#[derive(Debug, Clone)]
pub enum Sent {
    New { cwd: Option<String> },
    Load { session: Arc<str>, cwd: Option<String> },
    Prompt { session: Arc<str> },
    SetMode { session: Arc<str>, mode: String },
    Close { session: Arc<str> },
    Other,
}

/// The client's requests of one connection.
#[derive(Debug, Default)]
pub struct Ledger {
    sent: VecDeque<(RpcId, Sent)>,
    answered: VecDeque<RpcId>,
}

impl Ledger {
    pub fn remember(&mut self, id: RpcId, sent: Sent) {
        self.sent.push_back((id, sent));
        if self.sent.len() > SENT_MAX {
            self.sent.pop_front();
        }
    }

    /// The same request was heard before.
    pub fn knows(&self, id: &RpcId) -> bool {
        self.is_answered(id) || self.sent.iter().any(|(sent, _)| sent == id)
    }

    pub fn is_answered(&self, id: &RpcId) -> bool {
        self.answered.contains(id)
    }

    /// What a response answers, if the request was heard.
    pub fn answer(&mut self, id: &RpcId) -> Option<Sent> {
        self.answered.push_back(id.clone());
        if self.answered.len() > SENT_MAX {
            self.answered.pop_front();
        }
        let at = self.sent.iter().position(|(sent, _)| sent == id)?;
        self.sent.remove(at).map(|(_, sent)| sent)
    }
}
