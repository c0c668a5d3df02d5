//! Our tools: which there are, and of what kind.

use serde_json::Value;

/// What a model is told about a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    pub name: String,
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: Value,
    /// Edits files, runs commands or changes Git: post-tool hooks follow it, and it is never
    /// repeated by itself.
    pub mutating: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tool {
    ReadFile,
    ListFiles,
    Grep,
    Search,
    EditFile,
    WriteFile,
    ApplyPatch,
    Bash,
    RunCommand,
    GitStatus,
    GitDiff,
    GitLog,
    GitCommit,
    GitCheckout,
    GitApply,
    AskUser,
}

/// How a tool does its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// By ourselves, through the workspace's folder.
    Itself,
    /// A program with arguments, confined.
    Argv,
    /// A line for a shell, confined.
    Shell,
    /// Not at all: the operator's answer is its output.
    Asked,
}

impl Tool {
    pub const ALL: [Self; 16] = [
        Self::ReadFile,
        Self::ListFiles,
        Self::Grep,
        Self::Search,
        Self::EditFile,
        Self::WriteFile,
        Self::ApplyPatch,
        Self::Bash,
        Self::RunCommand,
        Self::GitStatus,
        Self::GitDiff,
        Self::GitLog,
        Self::GitCommit,
        Self::GitCheckout,
        Self::GitApply,
        Self::AskUser,
    ];

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::ReadFile => "read_file",
            Self::ListFiles => "list_files",
            Self::Grep => "grep",
            Self::Search => "search",
            Self::EditFile => "edit_file",
            Self::WriteFile => "write_file",
            Self::ApplyPatch => "apply_patch",
            Self::Bash => "bash",
            Self::RunCommand => "run_command",
            Self::GitStatus => "git_status",
            Self::GitDiff => "git_diff",
            Self::GitLog => "git_log",
            Self::GitCommit => "git_commit",
            Self::GitCheckout => "git_checkout",
            Self::GitApply => "git_apply",
            Self::AskUser => "ask_user",
        }
    }

    /// Git's are all counted as mutating: even looking refreshes its index, and runs what a
    /// repository configures.
    pub fn is_mutating(self) -> bool {
        match self {
            Self::ReadFile | Self::ListFiles | Self::Grep | Self::Search | Self::AskUser => false,
            Self::EditFile
            | Self::WriteFile
            | Self::ApplyPatch
            | Self::Bash
            | Self::RunCommand
            | Self::GitStatus
            | Self::GitDiff
            | Self::GitLog
            | Self::GitCommit
            | Self::GitCheckout
            | Self::GitApply => true,
        }
    }

    pub fn manner(self) -> Manner {
        match self {
            Self::ReadFile
            | Self::ListFiles
            | Self::Grep
            | Self::Search
            | Self::EditFile
            | Self::WriteFile
            | Self::ApplyPatch => Manner::Itself,
            Self::Bash => Manner::Shell,
            Self::RunCommand
            | Self::GitStatus
            | Self::GitDiff
            | Self::GitLog
            | Self::GitCommit
            | Self::GitCheckout
            | Self::GitApply => Manner::Argv,
            Self::AskUser => Manner::Asked,
        }
    }
}
