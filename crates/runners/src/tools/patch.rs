//! A unified diff, as text: which files, and which lines of them.
//!
//! Models count badly, so the numbers of a hunk only say where to look first; what decides is the
//! text.

use super::answer::Trouble;
use super::limits::PATCH_FILES_MAX;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FilePatch {
    /// None: the file is new.
    pub old: Option<String>,
    /// None: the file is deleted.
    pub new: Option<String>,
    pub hunks: Vec<Hunk>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Hunk {
    /// First line of the old file, from 1; 0 in a new one.
    pub old_start: usize,
    pub lines: Vec<HunkLine>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HunkLine {
    pub kind: LineKind,
    pub text: String,
    /// The last line of its file, without an end.
    pub is_open: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineKind {
    Kept,
    Removed,
    Added,
}

pub(super) fn parse(text: &str) -> Result<Vec<FilePatch>, Trouble> {
    let lines: Vec<&str> = text.lines().collect();
    let mut patches: Vec<FilePatch> = Vec::new();
    let mut at = 0;
    let mut renamed: (Option<&str>, Option<&str>) = (None, None);
    while at < lines.len() {
        let line = lines[at];
        if is_header(&lines, at) {
            let (old, new) = (file_name(&line[4..]), file_name(&lines[at + 1][4..]));
            renamed = (None, None);
            patches.push(named(old, new, at)?);
            at += 2;
        } else if line.starts_with("@@") {
            let Some(patch) = patches.last_mut() else {
                return Err(mistake(at, "a hunk stands before any `--- old` and `+++ new`"));
            };
            let (hunk, next) = hunk(&lines, at)?;
            patch.hunks.push(hunk);
            at = next;
        } else if let Some(name) = line.strip_prefix("rename from ") {
            renamed.0 = Some(name);
            at += 1;
        } else if let Some(name) = line.strip_prefix("rename to ") {
            renamed.1 = Some(name);
            // What follows may change lines of it, too, under a header of its own.
            let has_header = lines[at..]
                .iter()
                .take(4)
                .enumerate()
                .any(|(after, _)| is_header(&lines, at + after));
            if let ((Some(old), Some(new)), false) = (renamed, has_header) {
                let (old, new) = (Some(old.to_owned()), Some(new.to_owned()));
                patches.push(FilePatch { old, new, hunks: Vec::new() });
            }
            at += 1;
        } else if line.starts_with("GIT binary patch") || line.starts_with("Binary files ") {
            return Err(mistake(at, "binary files cannot be patched"));
        } else {
            at += 1;
        }
        if patches.len() > PATCH_FILES_MAX {
            return Err(Trouble::mistake(format!(
                "the patch has more than {PATCH_FILES_MAX} files"
            )));
        }
    }
    match patches.is_empty() {
        true => Err(Trouble::mistake(
            "this is no unified diff: `--- a/file` and `+++ b/file` are missing",
        )),
        false => Ok(patches),
    }
}

fn mistake(at: usize, what: &str) -> Trouble {
    Trouble::mistake(format!("line {} of the patch: {what}", at + 1))
}

fn is_header(lines: &[&str], at: usize) -> bool {
    let begins = |at: usize, mark: &str| lines.get(at).is_some_and(|line| line.starts_with(mark));
    begins(at, "--- ") && begins(at + 1, "+++ ")
}

fn named(old: Option<String>, new: Option<String>, at: usize) -> Result<FilePatch, Trouble> {
    let (old, new) = match (old, new) {
        (None, None) => return Err(mistake(at, "no file is named")),
        // Git's prefixes, where both sides have theirs.
        (Some(old), Some(new)) => match (old.strip_prefix("a/"), new.strip_prefix("b/")) {
            (Some(old), Some(new)) => (Some(old.to_owned()), Some(new.to_owned())),
            _ => (Some(old), Some(new)),
        },
        (Some(old), None) => (Some(old.strip_prefix("a/").unwrap_or(&old).to_owned()), None),
        (None, Some(new)) => (None, Some(new.strip_prefix("b/").unwrap_or(&new).to_owned())),
    };
    Ok(FilePatch { old, new, hunks: Vec::new() })
}

/// Without a time stamp behind it.
fn file_name(text: &str) -> Option<String> {
    let name = text.split('\t').next().unwrap_or(text).trim();
    let name = name.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or(name);
    (name != "/dev/null").then(|| name.to_owned())
}

/// A hunk and the line behind it.
fn hunk(lines: &[&str], header: usize) -> Result<(Hunk, usize), Trouble> {
    let Numbers { old_start, mut old_left, mut new_left } = numbers(lines[header]);
    let mut hunk = Hunk { old_start, lines: Vec::new() };
    let mut at = header + 1;
    while let Some(line) = lines.get(at) {
        let is_due = old_left > 0 || new_left > 0;
        let is_end = line.starts_with("@@") || line.starts_with("diff --git ");
        if is_end || (!is_due && is_header(lines, at)) {
            break;
        }
        let (kind, text) = match (line.chars().next(), is_due) {
            (Some(' '), _) => (LineKind::Kept, &line[1..]),
            (Some('-'), _) => (LineKind::Removed, &line[1..]),
            (Some('+'), _) => (LineKind::Added, &line[1..]),
            (Some('\\'), _) => {
                if let Some(last) = hunk.lines.last_mut() {
                    last.is_open = true;
                }
                at += 1;
                continue;
            }
            // An empty line whose space somebody cut off.
            (None, true) => (LineKind::Kept, ""),
            (None | Some(_), false) => break,
            (Some(_), true) => {
                return Err(mistake(at, "a line of a hunk begins with a space, `+` or `-`"));
            }
        };
        if kind != LineKind::Added {
            old_left = old_left.saturating_sub(1);
        }
        if kind != LineKind::Removed {
            new_left = new_left.saturating_sub(1);
        }
        hunk.lines.push(HunkLine { kind, text: text.to_owned(), is_open: false });
        at += 1;
    }
    match hunk.lines.iter().any(|line| line.kind != LineKind::Kept) {
        true => Ok((hunk, at)),
        false => Err(mistake(header, "the hunk changes nothing")),
    }
}

struct Numbers {
    old_start: usize,
    old_left: usize,
    new_left: usize,
}

/// `@@ -3,7 +3,9 @@ fn main`; what is not there counts as unknown.
fn numbers(header: &str) -> Numbers {
    let range = |mark: char| {
        let word = header.split_whitespace().find_map(|word| word.strip_prefix(mark))?;
        let (start, len) = word.split_once(',').unwrap_or((word, "1"));
        Some((start.parse().ok()?, len.parse().ok()?))
    };
    let (old_start, old_left) = range('-').unwrap_or((1, 0));
    let (_, new_left) = range('+').unwrap_or((1, 0));
    Numbers { old_start, old_left, new_left }
}
