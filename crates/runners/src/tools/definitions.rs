//! What a model is told about our tools.

use qd_session::limits::TOOL_TIMEOUT_MS;
use serde_json::{Value, json};

use super::limits::{CONTEXT_LINES_MAX, LOG_ENTRIES, MATCHES, READ_LINES, TIMEOUT_MS_MAX};
use super::tool::{Tool, ToolDefinition};

impl Tool {
    pub fn definition(self) -> ToolDefinition {
        ToolDefinition {
            name: self.name().to_owned(),
            description: self.description().to_owned(),
            input_schema: self.input_schema(),
            mutating: self.is_mutating(),
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::ReadFile => {
                "Read a text file of the workspace. Each line comes with its number and a tab before \
                 it; neither is part of the file. Long files come in parts: go on with `offset`."
            }
            Self::ListFiles => {
                "List files and folders of the workspace, without what .gitignore excludes. Folders \
                 end in /, links in @. Without a glob it goes two levels deep."
            }
            Self::Grep => {
                "Search the text of files with a regular expression (Rust's syntax, line by line), \
                 without what .gitignore excludes. Gives `path:line:text`."
            }
            Self::Search => {
                "Find files by words, without regard to case: those that have every word in their \
                 path or their text, the nearest first, each with a line. Use it to find out where \
                 something is, and grep to find every place."
            }
            Self::EditFile => {
                "Replace text in a file. `old_text` must occur exactly once, letter by letter with \
                 its indentation and without line numbers; add lines around it until it does, or set \
                 `replace_all`."
            }
            Self::WriteFile => {
                "Write a whole file; folders that are missing are made. An existing file is \
                 replaced: prefer edit_file for a change."
            }
            Self::ApplyPatch => {
                "Apply a unified diff (`--- a/file`, `+++ b/file`, `@@ … @@`) to one or several \
                 files: all of it or nothing. /dev/null stands for a file that is made or deleted. \
                 Line numbers may be off; the lines around a change must be exact."
            }
            Self::Bash => {
                "Run a command line with bash in the workspace's folder. Each call is a new shell: \
                 no folder, variable or background process stays. It can write in the workspace and \
                 in $TMPDIR only, and nobody answers a prompt. Output is both streams together, \
                 shortened in the middle."
            }
            Self::RunCommand => {
                "Run one program with arguments, without a shell: nothing is expanded. The same \
                 bounds as for bash."
            }
            Self::GitStatus => {
                "Show the branch and what has changed (`git status --short --branch`)."
            }
            Self::GitDiff => {
                "Show changes as a diff: of the working tree, or of what is staged, or against a \
                 revision."
            }
            Self::GitLog => "Show the last commits, the newest first.",
            Self::GitCommit => {
                "Commit: the files that are named, or with `all` every change to files that Git \
                 knows, or else what is staged."
            }
            Self::GitCheckout => {
                "Switch to a branch or revision, make a new branch with `create`, or with `paths` \
                 bring back files as they were."
            }
            Self::GitApply => {
                "Apply a patch with `git apply`, as Git made it; `staged` puts it into the index, \
                 too. It applies as a whole or not at all."
            }
            Self::AskUser => {
                "Ask the operator, when you cannot go on without an answer that only they have. The \
                 answer may take hours."
            }
        }
    }

    fn input_schema(self) -> Value {
        match self {
            Self::ReadFile => object(
                &["path"],
                json!({
                    "path": path("The file"),
                    "offset": { "type": "integer", "minimum": 1, "description": "First line, from 1" },
                    "limit": { "type": "integer", "minimum": 1, "description": format!("Lines, {READ_LINES} if left out") },
                }),
            ),
            Self::ListFiles => object(
                &[],
                json!({
                    "path": path("The folder; the workspace's if left out"),
                    "glob": { "type": "string", "description": "Only files that match, as `*.rs` or `src/**/mod.rs`" },
                    "depth": { "type": "integer", "minimum": 1, "description": "Levels of folders" },
                }),
            ),
            Self::Grep => object(
                &["pattern"],
                json!({
                    "pattern": { "type": "string", "description": "A regular expression" },
                    "path": path("A file or folder; the workspace's if left out"),
                    "glob": { "type": "string", "description": "Only files that match, as `*.rs`" },
                    "ignore_case": { "type": "boolean" },
                    "context": { "type": "integer", "minimum": 0, "maximum": CONTEXT_LINES_MAX, "description": "Lines around each match" },
                    "max_results": { "type": "integer", "minimum": 1, "description": format!("Matches, {MATCHES} if left out") },
                }),
            ),
            Self::Search => object(
                &["query"],
                json!({
                    "query": { "type": "string", "description": "Words" },
                    "path": path("The folder; the workspace's if left out"),
                }),
            ),
            Self::EditFile => object(
                &["path", "old_text", "new_text"],
                json!({
                    "path": path("The file"),
                    "old_text": { "type": "string", "description": "What stands there now" },
                    "new_text": { "type": "string", "description": "What shall stand there" },
                    "replace_all": { "type": "boolean", "description": "Replace every occurrence" },
                }),
            ),
            Self::WriteFile => object(
                &["path", "content"],
                json!({
                    "path": path("The file"),
                    "content": { "type": "string", "description": "All of it" },
                }),
            ),
            Self::ApplyPatch => object(
                &["patch"],
                json!({
                    "patch": { "type": "string", "description": "A unified diff" },
                }),
            ),
            Self::Bash => object(
                &["command"],
                json!({
                    "command": { "type": "string", "description": "The command line" },
                    "folder": path("Where it runs; the workspace's folder if left out"),
                    "timeout_ms": timeout(),
                }),
            ),
            Self::RunCommand => object(
                &["command"],
                json!({
                    "command": { "type": "array", "items": { "type": "string" }, "minItems": 1, "description": "Program and arguments" },
                    "folder": path("Where it runs; the workspace's folder if left out"),
                    "timeout_ms": timeout(),
                }),
            ),
            Self::GitStatus => object(&[], json!({})),
            Self::GitDiff => object(
                &[],
                json!({
                    "staged": { "type": "boolean", "description": "What is staged, and not the working tree" },
                    "revision": { "type": "string", "description": "Against this commit, branch or range" },
                    "paths": paths("Only these files"),
                }),
            ),
            Self::GitLog => object(
                &[],
                json!({
                    "limit": { "type": "integer", "minimum": 1, "description": format!("Commits, {LOG_ENTRIES} if left out") },
                    "revision": { "type": "string", "description": "From this commit, branch or range" },
                    "paths": paths("Only commits that touch these files"),
                }),
            ),
            Self::GitCommit => object(
                &["message"],
                json!({
                    "message": { "type": "string" },
                    "all": { "type": "boolean", "description": "Every change to files that Git knows" },
                    "paths": paths("These files, new ones too"),
                }),
            ),
            Self::GitCheckout => object(
                &[],
                json!({
                    "revision": { "type": "string", "description": "Branch, tag or commit" },
                    "create": { "type": "string", "description": "Name of a branch to make there" },
                    "paths": paths("Bring back these files and stay on the branch"),
                }),
            ),
            Self::GitApply => object(
                &["patch"],
                json!({
                    "patch": { "type": "string", "description": "As `git diff` prints it" },
                    "staged": { "type": "boolean", "description": "Put it into the index, too" },
                }),
            ),
            Self::AskUser => object(
                &["question"],
                json!({
                    "question": { "type": "string" },
                    "options": { "type": "array", "items": { "type": "string" }, "description": "Answers to choose from" },
                }),
            ),
        }
    }
}

fn object(required: &[&str], properties: Value) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}

fn path(what: &str) -> Value {
    json!({ "type": "string", "description": format!("{what}; a path in the workspace") })
}

fn paths(what: &str) -> Value {
    json!({ "type": "array", "items": { "type": "string" }, "description": what })
}

fn timeout() -> Value {
    let what = format!(
        "Time limit, usually {TOOL_TIMEOUT_MS} if left out; what was said until then is kept"
    );
    json!({ "type": "integer", "minimum": 1, "maximum": TIMEOUT_MS_MAX, "description": what })
}
