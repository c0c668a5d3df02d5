//! `search`: files whose path or text has all of some words, the best first.

use memchr::memmem::Finder;
use rustix::fs::FileType;
use serde::Deserialize;

use super::answer::{Answer, Lines, Trouble};
use super::limits::{FOUND_MAX, LINE_BYTES_MAX, SEARCH_WORDS_MAX, SEARCHED_BYTES_MAX};
use super::pace::Pace;
use super::read_file::{is_binary, whole};
use super::walk::{Next, Walked, walk};
use super::workspace::Workspace;
use crate::warden::readable;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Search {
    query: String,
    path: Option<String>,
}

/// A file, by how well it fits.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Hit {
    /// Words that its path does not have.
    strange: usize,
    path: String,
    line: Option<(usize, String)>,
}

impl Search {
    pub fn run(&self, workspace: &Workspace, pace: &Pace) -> Answer {
        let words: Vec<String> =
            self.query.split_whitespace().map(str::to_ascii_lowercase).collect();
        if words.is_empty() || words.len() > SEARCH_WORDS_MAX {
            return Err(Trouble::mistake(format!("say one to {SEARCH_WORDS_MAX} words")));
        }
        let path = workspace.relative(self.path.as_deref().unwrap_or("."))?;
        let mut hits = Vec::new();
        let walked = walk(workspace, &path, pace, |found| {
            if found.kind == FileType::RegularFile {
                let path = found.path.display().to_string();
                let text = || {
                    let bytes = whole(found.open()?, SEARCHED_BYTES_MAX).ok()??;
                    (!is_binary(&bytes)).then_some(bytes)
                };
                hits.extend(hit(path, &words, text));
            }
            // The best of all that there is, but no more than can be sorted at once.
            if hits.len() > 4 * FOUND_MAX {
                keep_best(&mut hits);
            }
            Next::Go
        })?;
        keep_best(&mut hits);
        Ok(told(&hits, walked))
    }
}

fn hit(path: String, words: &[String], text: impl Fn() -> Option<Vec<u8>>) -> Option<Hit> {
    let spelled = path.to_ascii_lowercase();
    let strange: Vec<&String> = words.iter().filter(|word| !spelled.contains(&**word)).collect();
    if strange.is_empty() {
        return Some(Hit { strange: 0, path, line: None });
    }
    let bytes = text()?;
    let text = bytes.to_ascii_lowercase();
    let places: Option<Vec<usize>> =
        strange.iter().map(|word| Finder::new(word.as_bytes()).find(&text)).collect();
    let first = *places?.first()?;
    let line = 1 + memchr::memchr_iter(b'\n', &text[..first]).count();
    let start = memchr::memrchr(b'\n', &text[..first]).map_or(0, |end| end + 1);
    let end = memchr::memchr(b'\n', &text[first..]).map_or(text.len(), |end| first + end);
    let shown = readable(&bytes[start..end.min(start + LINE_BYTES_MAX)]);
    Some(Hit { strange: strange.len(), path, line: Some((line, shown.trim().to_owned())) })
}

fn keep_best(hits: &mut Vec<Hit>) {
    hits.sort_unstable();
    hits.truncate(FOUND_MAX);
}

fn told(hits: &[Hit], walked: Walked) -> String {
    let mut lines = Lines::default();
    for hit in hits {
        let is_shown = match &hit.line {
            None => lines.push(&hit.path),
            Some((number, text)) => lines.push(&format!("{}:{number}: {text}", hit.path)),
        };
        if !is_shown {
            break;
        }
    }
    match (lines.is_empty(), walked == Walked::Partly || hits.len() == FOUND_MAX) {
        (true, false) => "[nothing found]\n".to_owned(),
        (_, true) => {
            lines.finish(Some("there may be more; name a folder or another word".to_owned()))
        }
        (false, false) => lines.finish(None),
    }
}
