//! What a tool call does, by its name and what it is about: tests, commits, drafts, code.
//!
//! By patterns over the tools that most people use. What is not recognised is nothing.

mod command;

pub(crate) use self::command::program;
use self::command::{Line, Step, is_assignment};
use crate::limits::ABOUT_BYTES_MAX;

/// What a command does that a software worker cares for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deed {
    pub kind: DeedKind,
    /// If the call's command returned zero, this was done.
    pub success_tells: bool,
    /// If it returned an error, this failed.
    pub failure_tells: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeedKind {
    Tests,
    /// With the first line of its message, where it is on the command line.
    Commit(Option<String>),
    Push,
    PullRequest,
}

/// A file that a call writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written<'a> {
    pub path: &'a str,
    pub kind: FileKind,
    /// Not from scratch.
    pub is_change: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    Prose,
    Code,
}

enum Tool {
    Shell,
    Write,
    Change,
    Patch,
    Other,
}

/// Agents spell their tools each in their own way; few words are meant.
fn tool(name: &str) -> Tool {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    match plain.to_ascii_lowercase().as_str() {
        "bash" | "shell" | "exec" | "execcommand" | "localshell" | "runshellcommand"
        | "commandexecution" | "command" | "executecommand" | "execute" | "terminal" => Tool::Shell,
        "write" | "writefile" | "createfile" | "newfilecreated" | "writetofile" => Tool::Write,
        "edit" | "multiedit" | "editfile" | "replace" | "editedexistingfile" | "strreplace"
        | "notebookedit" | "replaceinfile" => Tool::Change,
        "applypatch" | "patch" | "filechange" | "applydiff" => Tool::Patch,
        _ => Tool::Other,
    }
}

/// What the command of a call does; nothing for a call that runs none.
pub fn deeds(name: &str, about: &str) -> Vec<Deed> {
    match tool(name) {
        Tool::Shell => in_command(about),
        Tool::Write | Tool::Change | Tool::Patch | Tool::Other => Vec::new(),
    }
}

/// The file that a call writes, if it is one that counts: what agents keep for themselves in
/// hidden folders is neither code nor prose.
pub fn written<'a>(name: &str, about: &'a str) -> Option<Written<'a>> {
    let (path, is_change) = match tool(name) {
        Tool::Write => (about, false),
        Tool::Change => (about, true),
        Tool::Patch => patched(about)?,
        Tool::Shell | Tool::Other => return None,
    };
    let path = path.trim();
    let is_hidden = path.split('/').any(|part| part.len() > 2 && part.starts_with('.'));
    let kind = if is_prose(path) { FileKind::Prose } else { FileKind::Code };
    (!path.is_empty() && !is_hidden).then_some(Written { path, kind, is_change })
}

/// The first file of a patch, as `apply_patch` spells it.
fn patched(about: &str) -> Option<(&str, bool)> {
    about.lines().find_map(|line| {
        let added = line.strip_prefix("*** Add File: ").map(|path| (path, false));
        added.or_else(|| line.strip_prefix("*** Update File: ").map(|path| (path, true)))
    })
}

fn is_prose(path: &str) -> bool {
    const ENDINGS: [&str; 18] = [
        "adoc", "asciidoc", "doc", "docx", "fountain", "latex", "markdown", "md", "mdx", "odt",
        "org", "pages", "rst", "rtf", "tex", "text", "txt", "typ",
    ];
    // Text by name, and read by programs.
    const PROGRAMS: [&str; 4] =
        ["cmakelists.txt", "requirements.txt", "robots.txt", "constraints.txt"];
    let name = program(path).to_ascii_lowercase();
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    ending.is_some_and(|ending| ENDINGS.contains(&ending)) && !PROGRAMS.contains(&name.as_str())
}

fn in_command(about: &str) -> Vec<Deed> {
    // Some clients put the command of a title into backticks.
    let text = about.trim();
    let text = text.strip_prefix('`').and_then(|text| text.strip_suffix('`')).unwrap_or(text);
    // A handler may have cut it, with a mark or between two characters.
    let is_cut = text.ends_with('…') || about.len() + 3 >= ABOUT_BYTES_MAX;
    let line = Line::read(text, is_cut);
    let mut deeds = Vec::new();
    for (at, step) in line.steps.iter().enumerate() {
        let Some(kind) = kind(step) else { continue };
        // A commit's message is long and breaks off; what follows is then taken to be `&&`.
        let is_last = at + 1 == line.steps.len();
        let is_cut_commit = is_last && line.is_open && matches!(kind, DeedKind::Commit(_));
        deeds.push(Deed {
            kind,
            success_tells: line.success_tells(at) || is_cut_commit,
            failure_tells: line.failure_tells(at),
        });
    }
    deeds
}

fn kind(step: &Step) -> Option<DeedKind> {
    let words: Vec<&str> = step.words.iter().map(String::as_str).collect();
    let words = without_prefixes(&words);
    let (first, rest) = words.split_first()?;
    let asks = ["--help", "-h", "--version", "--dry-run", "--no-run", "--list", "--collect-only"];
    if rest.iter().any(|word| asks.contains(word)) {
        return None;
    }
    match program(first) {
        "git" => git(rest),
        "gh" => (plain(rest, &["-R", "--repo"]).starts_with(&["pr", "create"])
            && !rest.iter().any(|word| matches!(*word, "--web" | "-w")))
        .then_some(DeedKind::PullRequest),
        "glab" => {
            let rest = plain(rest, &["-R", "--repo"]);
            let opens = rest.starts_with(&["mr", "create"]) || rest.starts_with(&["mr", "new"]);
            opens.then_some(DeedKind::PullRequest)
        }
        name => is_test(name, rest).then_some(DeedKind::Tests),
    }
}

/// What stands before a command and only says how to run it.
fn without_prefixes<'a, 'b>(mut words: &'b [&'a str]) -> &'b [&'a str] {
    loop {
        let Some((first, rest)) = words.split_first() else { return words };
        let skipped = match program(first) {
            _ if is_assignment(first) => 0,
            "sudo" | "env" | "time" | "nice" | "nohup" | "command" | "exec" | "stdbuf"
            | "xvfb-run" | "npx" | "bunx" | "then" | "do" | "!" => flags(rest),
            // `timeout -k 5 60s cargo test`
            "timeout" => {
                let is_time = |word: &&&str| {
                    word.starts_with('-') || word.starts_with(|digit: char| digit.is_ascii_digit())
                };
                rest.iter().take_while(is_time).count()
            }
            "poetry" | "uv" | "pipenv" | "rye" | "hatch" if rest.first() == Some(&"run") => {
                1 + flags(&rest[1..])
            }
            "bundle" | "pnpm" | "npm" | "yarn" if rest.first() == Some(&"exec") => {
                1 + flags(&rest[1..])
            }
            "python" | "python3" if rest.first() == Some(&"-m") => 1,
            _ => return words,
        };
        words = &rest[skipped..];
    }
}

fn flags(words: &[&str]) -> usize {
    words.iter().take_while(|word| word.starts_with('-')).count()
}

/// The words that are no flags and no flag's value.
fn plain<'a>(words: &[&'a str], with_value: &[&str]) -> Vec<&'a str> {
    let mut plain = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if with_value.contains(word) {
            words.next();
        } else if !word.starts_with('-') {
            plain.push(*word);
        }
    }
    plain
}

fn git(words: &[&str]) -> Option<DeedKind> {
    let command = words.iter().enumerate().find(|(at, word)| {
        let is_value =
            *at > 0 && matches!(words[*at - 1], "-C" | "-c" | "--git-dir" | "--work-tree");
        !word.starts_with('-') && !is_value
    });
    let (at, command) = command?;
    match *command {
        "commit" => Some(DeedKind::Commit(message(&words[at + 1..]))),
        "push" => Some(DeedKind::Push),
        _ => None,
    }
}

/// The first line of a commit's message. One that is put together elsewhere is not known.
fn message(words: &[&str]) -> Option<String> {
    let mut words = words.iter();
    let text = loop {
        let word = words.next()?;
        if let Some(text) = word.strip_prefix("--message=") {
            break text;
        }
        let short = word.starts_with('-') && !word.starts_with("--") && word.ends_with('m');
        if short || *word == "--message" {
            break words.next()?;
        }
    };
    // `$(cat <<'EOF'` and the message in the lines below: how several agents write it.
    let text = match text.strip_prefix("$(cat <<") {
        Some(document) => document.split_once('\n')?.1,
        None => text,
    };
    let line = text.trim_start().lines().next()?.trim();
    (!line.is_empty() && !line.contains("$(")).then(|| line.to_owned())
}

fn is_test(name: &str, rest: &[&str]) -> bool {
    let named = |word: &str| {
        word == "test" || word == "tests" || word.starts_with("test:") || word.starts_with("test-")
    };
    let first = |with_value: &[&str]| plain(rest, with_value).first().copied().unwrap_or("");
    match name {
        "pytest" | "py.test" | "unittest" | "tox" | "nox" | "jest" | "vitest" | "mocha" | "ava"
        | "ctest" | "phpunit" | "rspec" | "pest" => true,
        "cargo" => {
            let words = plain(rest, &["--manifest-path", "--config", "-Z", "-C"]);
            let mut words = words.into_iter().filter(|word| !word.starts_with('+'));
            match words.next() {
                Some("test" | "t") => true,
                Some("nextest") => words.next() == Some("run"),
                Some(_) | None => false,
            }
        }
        "npm" | "pnpm" | "yarn" | "bun" => {
            let values =
                ["-C", "--prefix", "--filter", "-F", "--cwd", "--dir", "-w", "--workspace"];
            let words = plain(rest, &values);
            match words.as_slice() {
                ["run" | "run-script", script, ..] => named(script),
                ["t" | "tst", ..] => name == "npm" || name == "pnpm",
                [script, ..] => {
                    named(script) || matches!(*script, "jest" | "vitest" | "mocha" | "ava")
                }
                [] => false,
            }
        }
        "node" => rest.contains(&"--test"),
        "go" | "deno" | "mix" | "dotnet" | "swift" | "bazel" | "bazelisk" | "sbt" | "flutter"
        | "dart" | "composer" | "rails" | "playwright" => named(first(&["-C"])),
        "cypress" => first(&[]) == "run",
        "make" | "gmake" | "just" | "task" | "rake" => {
            let words = plain(rest, &["-C", "-f", "-j", "--directory", "--justfile"]);
            words.iter().any(|word| named(word) || *word == "check")
        }
        "gradle" | "gradlew" => rest.iter().any(|word| {
            let task = word.rsplit(':').next().unwrap_or(word);
            !word.starts_with('-') && (task == "check" || task == "test" || task.ends_with("Test"))
        }),
        "mvn" | "mvnw" => rest.iter().any(|word| matches!(*word, "test" | "verify")),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(command: &str) -> Vec<DeedKind> {
        deeds("Bash", command).into_iter().map(|deed| deed.kind).collect()
    }

    #[test]
    fn tests_are_known_by_the_tools_that_run_them() {
        for command in [
            "cargo test",
            "cargo +nightly t -p x",
            "cargo nextest run -p x",
            "cargo --manifest-path a/Cargo.toml test",
            "cd web && npm test",
            "npm run test:unit -- --watch=false",
            "pnpm --filter web test",
            "pnpm -r test",
            "yarn test",
            "yarn jest src",
            "npx vitest run",
            "pnpm exec vitest",
            "bun test",
            "pytest -x tests/",
            "python3 -m pytest",
            "uv run pytest",
            "poetry run python -m pytest -q",
            "go test ./...",
            "make -j4 test",
            "make check",
            "./gradlew :app:testDebugUnitTest :core:test",
            "mvn -q test",
            "./mvnw verify",
            "node --test",
            "RUST_LOG=debug CI=1 timeout -k 5 300s cargo test 2>&1 | tail -20",
            "cd /w/x && (cd y; env A=1 jest)",
            "bash -lc 'cd x && cargo test'",
            "`cargo test`",
        ] {
            assert_eq!(kinds(command), [DeedKind::Tests], "{command}");
        }
    }

    #[test]
    fn what_only_looks_like_it_is_not() {
        for command in [
            "cargo build",
            "cargo test --no-run",
            "cargo nextest list",
            "echo cargo test",
            "grep -rn 'cargo test' .",
            "git log --grep 'commit'",
            "git commit --dry-run",
            "cat test.txt",
            "npm install jest",
            "pip install pytest",
            "make",
            "git status && git diff",
            "gh pr view 3",
            "gh pr create --web",
            "cat > run.sh <<'EOF'\ncargo test\nEOF",
            "node test.js",
            "",
        ] {
            assert_eq!(kinds(command), [], "{command}");
        }
        assert!(deeds("Read", "cargo test").is_empty());
    }

    #[test]
    fn commits_pushes_and_pull_requests() {
        let commit = |text: &str| DeedKind::Commit(Some(text.to_owned()));
        let check = |command: &str, expected: &[DeedKind]| {
            assert_eq!(kinds(command), expected, "{command}");
        };
        check("git add -A && git commit -m 'Fix it'", &[commit("Fix it")]);
        check("git -C a -c user.name=x commit -am \"Fix it\n\nmore\"", &[commit("Fix it")]);
        check("git commit --message='Fix it'", &[commit("Fix it")]);
        check("git commit --amend --no-edit", &[DeedKind::Commit(None)]);
        check("git commit -m \"$(cat <<'EOF'\nFix it\n\nmore\nEOF\n)\"", &[commit("Fix it")]);
        check("git commit -m \"$(date)\"", &[DeedKind::Commit(None)]);
        check("git commit -qm x && git push", &[commit("x"), DeedKind::Push]);
        check(
            "git push -u origin HEAD && gh pr create --fill",
            &[DeedKind::Push, DeedKind::PullRequest],
        );
        check("gh -R a/b pr create -t x", &[DeedKind::PullRequest]);
        check("glab mr create", &[DeedKind::PullRequest]);
        check("cargo test && git commit -m x", &[DeedKind::Tests, commit("x")]);
    }

    #[test]
    fn a_long_message_that_was_cut_is_still_a_commit() {
        let long = format!("git add -A && git commit -m \"Fix it\n\n{}", "x".repeat(180));
        let cut = deeds("Bash", &long[..ABOUT_BYTES_MAX]);
        assert_eq!(cut[0].kind, DeedKind::Commit(Some("Fix it".to_owned())));
        assert!(cut[0].success_tells && !cut[0].failure_tells);
        let tests = format!("cargo test {}", "x".repeat(200));
        assert!(!deeds("Bash", &tests[..ABOUT_BYTES_MAX])[0].success_tells);
    }

    #[test]
    fn prose_is_known_by_its_ending_and_hidden_files_are_nobodys() {
        let kind = |tool, path| written(tool, path).map(|file| (file.kind, file.is_change));
        assert_eq!(kind("Write", "/w/chapter-1.md"), Some((FileKind::Prose, false)));
        assert_eq!(kind("replace", "/w/Paper.TEX"), Some((FileKind::Prose, true)));
        assert_eq!(kind("edit", "/w/main.rs"), Some((FileKind::Code, true)));
        assert_eq!(kind("Write", "/w/requirements.txt"), Some((FileKind::Code, false)));
        assert_eq!(kind("Write", "/w/Makefile"), Some((FileKind::Code, false)));
        assert_eq!(kind("Write", "/home/u/.agent/plans/plan.md"), None);
        assert_eq!(kind("Edit", "../x.md"), Some((FileKind::Prose, true)));
        assert_eq!(kind("Read", "/w/x.md"), None);
        let patch = "*** Begin Patch\n*** Update File: a/b.md\n@@";
        assert_eq!(written("apply_patch", patch).map(|file| file.path), Some("a/b.md"));
    }
}
