//! What the model will answer: replies in order, and replies to something said.
//!
//! Pure. A reply with a condition is taken as soon as what is new in the conversation matches
//! it; otherwise the next one without a condition is taken.

use serde_json::Value;

use crate::conversation::Conversation;
use crate::reply::Reply;

#[derive(Debug, Clone)]
pub struct Script {
    lines: Vec<Line>,
    otherwise: Reply,
    aside: Reply,
    strictness: Strictness,
    toolless: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strictness {
    /// Everything is answered.
    Lenient,
    /// As providers are: each call has its result.
    Strict,
    /// As a careful client is: see [`Script::exacting`].
    Exacting,
}

#[derive(Debug, Clone)]
struct Line {
    when: When,
    reply: Reply,
}

#[derive(Debug, Clone)]
enum When {
    Next,
    UserSays(String),
    ToolReturns(String),
}

#[derive(Debug, Clone)]
pub(crate) enum Choice {
    /// From the script, with its number among the answers the script gave.
    Scripted(Reply),
    /// The client asked for something beside the conversation: a title, a summary.
    Aside(Reply),
    /// The script has ended.
    Otherwise(Reply),
    /// A provider would refuse this conversation; the message says why.
    Refused(String),
}

impl Script {
    pub fn new() -> Self {
        Self {
            lines: Vec::new(),
            otherwise: Reply::says("(the script has ended)"),
            aside: Reply::says("{\"title\": \"Scripted work\"}"),
            strictness: Strictness::Lenient,
            toolless: false,
        }
    }

    /// The next reply is this text.
    pub fn says(self, text: impl Into<String>) -> Self {
        self.replies(Reply::says(text))
    }

    /// The next reply is this tool call.
    pub fn calls(self, name: impl Into<String>, input: Value) -> Self {
        self.replies(Reply::calls(name, input))
    }

    /// The next request gets this HTTP status. Clients retry: see [`Script::then_always`].
    pub fn fails(self, status: u16) -> Self {
        self.replies(Reply::fails(status))
    }

    pub fn replies(self, reply: Reply) -> Self {
        self.with(When::Next, reply)
    }

    /// Answers, once, the first request whose new user text contains `text`.
    pub fn when_user_says(self, text: impl Into<String>, reply: Reply) -> Self {
        self.with(When::UserSays(text.into()), reply)
    }

    /// Answers, once, the first request whose new tool results contain `text`.
    pub fn when_tool_returns(self, text: impl Into<String>, reply: Reply) -> Self {
        self.with(When::ToolReturns(text.into()), reply)
    }

    /// Answers everything after the script's end.
    pub fn then_always(mut self, reply: Reply) -> Self {
        self.otherwise = reply;
        self
    }

    /// Answers what a client asks beside the conversation.
    pub fn aside(mut self, reply: Reply) -> Self {
        self.aside = reply;
        self
    }

    /// Refuses, as providers do, a conversation in which a tool call has no result.
    pub fn strict(mut self) -> Self {
        self.strictness = Strictness::Strict;
        self
    }

    /// Refuses also what some provider somewhere refuses: results in another order than their
    /// calls, results that are not the first of what follows, thoughts without their signature,
    /// an answer that is empty or ends with a thought.
    pub fn exacting(mut self) -> Self {
        self.strictness = Strictness::Exacting;
        self
    }

    /// Requests without tools are the conversation too, not asides.
    pub fn without_tools_too(mut self) -> Self {
        self.toolless = true;
        self
    }

    fn with(mut self, when: When, reply: Reply) -> Self {
        self.lines.push(Line { when, reply });
        self
    }

    pub(crate) fn append(&mut self, later: Script) {
        self.lines.extend(later.lines);
        self.otherwise = later.otherwise;
    }

    pub(crate) fn take(&mut self, conversation: &Conversation, body: &Value) -> Choice {
        let exact = || conversation.wire.exact_fault(body);
        let fault = match self.strictness {
            Strictness::Lenient => None,
            Strictness::Strict => conversation.fault(),
            Strictness::Exacting => conversation.fault().or_else(exact),
        };
        if let Some(fault) = fault {
            return Choice::Refused(fault);
        }
        if conversation.is_aside() || (conversation.tools.is_empty() && !self.toolless) {
            return Choice::Aside(self.aside.clone());
        }
        let matching = self.lines.iter().position(|line| line.when.is_met_by(conversation));
        let next = || self.lines.iter().position(|line| matches!(line.when, When::Next));
        match matching.or_else(next) {
            Some(index) => Choice::Scripted(self.lines.remove(index).reply),
            None => Choice::Otherwise(self.otherwise.clone()),
        }
    }
}

impl Default for Script {
    fn default() -> Self {
        Self::new()
    }
}

impl When {
    fn is_met_by(&self, conversation: &Conversation) -> bool {
        match self {
            Self::Next => false,
            Self::UserSays(text) => conversation.user_news().any(|said| said.contains(text)),
            Self::ToolReturns(text) => conversation.tool_news().any(|said| said.contains(text)),
        }
    }
}
