//! What a tool does, by the name that its client gives it.
//!
//! By exact names only: a tool that merely sounds like one of these is [`ToolKind::Other`], and
//! nothing is known of what it does.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolKind {
    /// Looks into files that it names.
    Read,
    /// Looks for files, or in them, below a folder; below the session's if it names none.
    Search,
    /// Writes files that it names.
    Edit,
    /// Runs a command line.
    Run,
    /// Looks something up elsewhere.
    Fetch,
    /// Asks the operator something or shows a plan. Nothing but a person answers those.
    Question,
    Other,
}

impl ToolKind {
    pub fn of(tool: &str) -> Self {
        let found = TOOLS.iter().find(|(name, _)| *name == tool);
        found.map_or(Self::Other, |(_, kind)| *kind)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Search => "search",
            Self::Edit => "edit",
            Self::Run => "run",
            Self::Fetch => "fetch",
            Self::Question => "question",
            Self::Other => "other",
        }
    }
}

/// It shows a plan and asks whether it may be carried out.
pub fn is_plan(tool: &str) -> bool {
    ["ExitPlanMode", "exit_plan_mode", "switch_mode"].contains(&tool)
}

/// Every name that is known, in the order of kinds. `spec/policy.md` shows the same.
pub const TOOLS: &[(&str, ToolKind)] = &[
    ("NotebookRead", ToolKind::Read),
    ("Read", ToolKind::Read),
    ("read", ToolKind::Read),
    ("readFile", ToolKind::Read),
    ("read_file", ToolKind::Read),
    ("read_many_files", ToolKind::Read),
    ("view_image", ToolKind::Read),
    ("Glob", ToolKind::Search),
    ("Grep", ToolKind::Search),
    ("LS", ToolKind::Search),
    ("glob", ToolKind::Search),
    ("grep", ToolKind::Search),
    ("grep_search", ToolKind::Search),
    ("list", ToolKind::Search),
    ("listFilesRecursive", ToolKind::Search),
    ("listFilesTopLevel", ToolKind::Search),
    ("list_directory", ToolKind::Search),
    ("list_files", ToolKind::Search),
    ("search", ToolKind::Search),
    ("searchFiles", ToolKind::Search),
    ("search_file_content", ToolKind::Search),
    ("Edit", ToolKind::Edit),
    ("MultiEdit", ToolKind::Edit),
    ("NotebookEdit", ToolKind::Edit),
    ("Write", ToolKind::Edit),
    ("appliedDiff", ToolKind::Edit),
    ("apply_patch", ToolKind::Edit),
    ("edit", ToolKind::Edit),
    ("edit_file", ToolKind::Edit),
    ("editedExistingFile", ToolKind::Edit),
    ("newFileCreated", ToolKind::Edit),
    ("replace", ToolKind::Edit),
    ("write", ToolKind::Edit),
    ("write_file", ToolKind::Edit),
    ("Bash", ToolKind::Run),
    ("bash", ToolKind::Run),
    ("command", ToolKind::Run),
    ("exec_command", ToolKind::Run),
    ("execute", ToolKind::Run),
    ("local_shell", ToolKind::Run),
    ("run_command", ToolKind::Run),
    ("run_shell_command", ToolKind::Run),
    ("shell", ToolKind::Run),
    ("WebFetch", ToolKind::Fetch),
    ("WebSearch", ToolKind::Fetch),
    ("fetch", ToolKind::Fetch),
    ("google_web_search", ToolKind::Fetch),
    ("web_fetch", ToolKind::Fetch),
    ("web_search", ToolKind::Fetch),
    ("webfetch", ToolKind::Fetch),
    ("websearch", ToolKind::Fetch),
    ("AskUserQuestion", ToolKind::Question),
    ("ExitPlanMode", ToolKind::Question),
    ("ask_user", ToolKind::Question),
    ("elicitation", ToolKind::Question),
    ("exit_plan_mode", ToolKind::Question),
    ("question", ToolKind::Question),
    ("request_user_input", ToolKind::Question),
    ("request_user_input_async", ToolKind::Question),
    ("switch_mode", ToolKind::Question),
];
