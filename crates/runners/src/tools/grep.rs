//! `grep`: lines that match a pattern.

use std::ops::Range;
use std::path::Path;

use regex::bytes::{Regex, RegexBuilder};
use rustix::fs::FileType;
use serde::Deserialize;

use super::answer::{Answer, Lines, Trouble};
use super::glob::Glob;
use super::limits::{
    CONTEXT_LINES_MAX, LINE_BYTES_MAX, MATCHES, MATCHES_MAX, PATTERN_BYTES_MAX,
    PATTERN_COMPILED_BYTES_MAX, SEARCHED_BYTES_MAX,
};
use super::pace::Pace;
use super::read_file::{is_binary, whole};
use super::walk::{Next, Walked, walk};
use super::workspace::Workspace;
use crate::warden::readable;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Grep {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default)]
    context: usize,
    max_results: Option<usize>,
}

/// What was found so far.
struct Haul {
    lines: Lines,
    matches: usize,
    matches_max: usize,
    context: usize,
    too_long: usize,
}

impl Grep {
    pub fn run(&self, workspace: &Workspace, pace: &Pace) -> Answer {
        let pattern = compiled(&self.pattern, self.ignore_case)?;
        let glob = self.glob.as_deref().map(Glob::new).transpose()?;
        let path = workspace.relative(self.path.as_deref().unwrap_or("."))?;
        let mut haul = Haul {
            lines: Lines::default(),
            matches: 0,
            matches_max: self.max_results.unwrap_or(MATCHES).clamp(1, MATCHES_MAX),
            context: self.context.min(CONTEXT_LINES_MAX),
            too_long: 0,
        };
        let place = workspace.resolved(&path)?;
        let walked = match workspace.file(&path) {
            // One file that is named is searched, whatever Git thinks of it.
            Ok(file) => match haul.take(&place, file, &pattern) {
                true => Walked::All,
                false => Walked::Partly,
            },
            Err(_) => walk(workspace, &path, pace, |found| {
                let is_wanted = found.kind == FileType::RegularFile
                    && glob.as_ref().is_none_or(|glob| glob.matches(found.path));
                let file = if is_wanted { found.open() } else { None };
                match file.is_none_or(|file| haul.take(found.path, file, &pattern)) {
                    true => Next::Go,
                    false => Next::Stop,
                }
            })?,
        };
        Ok(haul.told(walked))
    }
}

pub(super) fn compiled(pattern: &str, ignore_case: bool) -> Result<Regex, Trouble> {
    if pattern.len() > PATTERN_BYTES_MAX || pattern.is_empty() {
        return Err(Trouble::mistake("the pattern is empty or too long"));
    }
    RegexBuilder::new(pattern)
        .case_insensitive(ignore_case)
        .multi_line(true)
        .crlf(true)
        .size_limit(PATTERN_COMPILED_BYTES_MAX)
        .build()
        .map_err(|error| Trouble::mistake(format!("the pattern: {error}")))
}

impl Haul {
    /// False once there is no room for more.
    fn take(&mut self, path: &Path, file: std::fs::File, pattern: &Regex) -> bool {
        let Ok(bytes) = whole(file, SEARCHED_BYTES_MAX) else { return true };
        let Some(bytes) = bytes else {
            self.too_long += 1;
            return true;
        };
        if is_binary(&bytes) || !pattern.is_match(&bytes) {
            return true;
        }
        let lines: Vec<&[u8]> =
            bytes.strip_suffix(b"\n").unwrap_or(&bytes).split(|byte| *byte == b'\n').collect();
        let mut shown = 0;
        for (at, line) in lines.iter().enumerate() {
            if !pattern.is_match(line) {
                continue;
            }
            if self.matches == self.matches_max {
                return false;
            }
            self.matches += 1;
            let from = at.saturating_sub(self.context).max(shown);
            let to = (at + self.context + 1).min(lines.len());
            if !self.show(path, &lines, from..to, pattern) {
                return false;
            }
            shown = shown.max(to);
        }
        true
    }

    fn show(&mut self, path: &Path, lines: &[&[u8]], which: Range<usize>, pattern: &Regex) -> bool {
        let start = which.start;
        which.zip(&lines[start..]).all(|(at, line)| {
            let mark = if pattern.is_match(line) { ':' } else { '-' };
            let cut = &line[..line.len().min(LINE_BYTES_MAX)];
            let text = readable(cut);
            let more = if cut.len() < line.len() { " […]" } else { "" };
            let text = text.trim_end_matches('\r');
            self.lines.push(&format!("{}{mark}{}{mark}{text}{more}", path.display(), at + 1))
        })
    }

    fn told(self, walked: Walked) -> String {
        let long = (self.too_long > 0)
            .then(|| format!("{} files are too long to be searched", self.too_long));
        match walked {
            Walked::Partly => {
                self.lines.shown("more follows; narrow the pattern or the path".to_owned())
            }
            Walked::All if self.lines.is_empty() => {
                format!("[nothing found]\n{}", Lines::default().finish(long))
            }
            Walked::All => self.lines.finish(long),
        }
    }
}
