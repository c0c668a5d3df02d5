//! How a session is started: what the operator chose, and what that makes of a command line.

use std::sync::Arc;

use crate::Harness;
use crate::version::Tested;

/// What the operator chose for a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Launch {
    /// The product's name and the versions of it that were tried, where its version matters.
    pub tested: Option<(&'static str, Tested)>,
    /// The workspace: an absolute path.
    pub cwd: String,
    /// As the agent spells it; its own choice if there is none.
    pub model: Option<String>,
    pub mode: Mode,
    /// The session it goes on with.
    pub resume: Option<Resume>,
    /// Hold the agent after each batch of tools, where it can be held.
    pub hold_batches: bool,
    /// Whether YOLO may be switched on later by a client that wants to know beforehand.
    pub may_bypass: bool,
    /// Arguments of the operator's, before ours: `acp` for an agent that wants to be asked for it.
    pub arguments: Vec<String>,
}

/// When the agent asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Mode {
    /// As its own configuration says.
    #[default]
    Own,
    /// Before everything that changes something.
    Ask,
    /// Edits in the workspace are not asked about.
    Edit,
    /// It plans, and changes nothing.
    Plan,
    /// Never.
    Yolo,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resume {
    /// By the id that the agent gave it.
    Id(Arc<str>),
    /// The last one of the workspace, where the agent names none.
    Latest,
}

impl Launch {
    /// The id of the session to go on with.
    pub fn resume_id(&self) -> Option<&Arc<str>> {
        match &self.resume {
            Some(Resume::Id(id)) => Some(id),
            Some(Resume::Latest) | None => None,
        }
    }
}

/// What a program is started with, beside its path and its folder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Invocation {
    pub arguments: Vec<String>,
    pub variables: Vec<(&'static str, String)>,
}

impl Invocation {
    /// The operator's arguments first, then these.
    pub(crate) fn of(launch: &Launch, arguments: &[&str]) -> Self {
        let ours = arguments.iter().map(|argument| (*argument).to_owned());
        let arguments = launch.arguments.iter().cloned().chain(ours).collect();
        Self { arguments, variables: Vec::new() }
    }

    pub(crate) fn and(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(|argument| (*argument).to_owned()));
        self
    }
}

/// What is spoken with an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// JSON lines with control messages, `claude -p --permission-prompt-tool stdio`.
    ClaudeCode,
    /// `codex app-server`.
    AppServer,
    /// The Agent Client Protocol over stdio.
    Acp,
    /// `kilocode --json-io`, up to 0.26.
    Kilo,
    /// `cline task --json`, version 2.
    Cline,
}

impl Protocol {
    /// What a product speaks; none for our own, which is no program. Kilo is the one that ships
    /// today (7 and newer); what is older is [`Protocol::Kilo`].
    pub fn of(harness: Harness) -> Option<Self> {
        match harness {
            Harness::ClaudeCode => Some(Self::ClaudeCode),
            Harness::Codex => Some(Self::AppServer),
            Harness::Cline => Some(Self::Cline),
            Harness::GeminiCli | Harness::KiloCode | Harness::Opencode | Harness::Acp => {
                Some(Self::Acp)
            }
            Harness::Native => None,
        }
    }

    /// The program's usual name.
    pub fn program(harness: Harness) -> Option<&'static str> {
        match harness {
            Harness::ClaudeCode => Some("claude"),
            Harness::Codex => Some("codex"),
            Harness::GeminiCli => Some("gemini"),
            Harness::KiloCode => Some("kilo"),
            Harness::Cline => Some("cline"),
            Harness::Opencode => Some("opencode"),
            Harness::Acp | Harness::Native => None,
        }
    }

    /// The arguments that make a product speak it, where the protocol alone does not say.
    pub fn arguments(harness: Harness) -> &'static [&'static str] {
        match harness {
            Harness::GeminiCli => &["--acp"],
            Harness::KiloCode | Harness::Opencode => &["acp"],
            Harness::ClaudeCode
            | Harness::Codex
            | Harness::Cline
            | Harness::Acp
            | Harness::Native => &[],
        }
    }
}
