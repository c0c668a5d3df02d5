//! `apply_patch`: a unified diff applied to all its files, or to none.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::answer::{Answer, Trouble};
use super::limits::PATCH_BYTES_MAX;
use super::patch::{FilePatch, Hunk, HunkLine, LineKind, parse};
use super::workspace::Workspace;
use super::writing::{Existing, Place};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ApplyPatch {
    patch: String,
}

/// What is to become of one name.
struct Plan<'a> {
    path: &'a str,
    before: Option<Existing>,
    after: Option<Vec<u8>>,
}

/// What is to be done to one file, and what undoes it.
struct Change {
    place: Place,
    before: Option<Vec<u8>>,
    after: Option<Vec<u8>>,
}

impl ApplyPatch {
    pub fn run(&self, workspace: &Workspace) -> Answer {
        if self.patch.len() > PATCH_BYTES_MAX {
            return Err(Trouble::mistake(format!(
                "the patch has more than {PATCH_BYTES_MAX} bytes"
            )));
        }
        let patches = parse(&self.patch)?;
        let mut plans = Vec::new();
        for patch in &patches {
            plans.extend(planned(workspace, patch)?);
        }
        // From here on only the disk can fail. Folders that were made for a file may stay.
        let changes: Vec<Change> =
            plans.into_iter().map(|plan| plan.placed(workspace)).collect::<Result<_, _>>()?;
        let mut names = BTreeSet::new();
        for change in &changes {
            if !names.insert(change.place.key()?) {
                let path = change.place.path.display();
                return Err(Trouble::mistake(format!(
                    "{path} is changed twice; put its hunks together"
                )));
            }
        }
        carry_out(workspace, &changes)?;
        Ok(patches.iter().map(summary).collect())
    }
}

impl Plan<'_> {
    fn placed(self, workspace: &Workspace) -> Result<Change, Trouble> {
        let Self { path, before, after } = self;
        Ok(match before {
            Some(Existing { place, bytes }) => Change { place, before: Some(bytes), after },
            None => Change { place: Place::of(workspace, path)?, before: None, after },
        })
    }
}

fn summary(patch: &FilePatch) -> String {
    let count = |kind| {
        patch.hunks.iter().flat_map(|hunk| &hunk.lines).filter(|line| line.kind == kind).count()
    };
    let (added, removed) = (count(LineKind::Added), count(LineKind::Removed));
    match (&patch.old, &patch.new) {
        (None, Some(new)) => format!("{new}: made, {added} lines\n"),
        (Some(old), None) => format!("{old}: deleted\n"),
        (Some(old), Some(new)) if old == new => format!("{new}: +{added} -{removed}\n"),
        (Some(old), Some(new)) => format!("{old} is now {new}: +{added} -{removed}\n"),
        (None, None) => String::new(),
    }
}

/// Everything that can be known beforehand is found out here; nothing is written.
fn planned<'a>(workspace: &Workspace, patch: &'a FilePatch) -> Result<Vec<Plan<'a>>, Trouble> {
    let old = match &patch.old {
        Some(path) => Some(Existing::read(workspace, path)?),
        None => None,
    };
    let name = patch.new.as_deref().or(patch.old.as_deref()).unwrap_or_default();
    let bytes = old.as_ref().map_or(&[][..], |old| &old.bytes);
    let after = applied(name, bytes, &patch.hunks)?;
    Ok(match (&patch.old, &patch.new) {
        (Some(path), None) => vec![Plan { path, before: old, after: None }],
        (Some(from), Some(path)) if from == path => {
            vec![Plan { path, before: old, after: Some(after) }]
        }
        (from, Some(path)) => {
            if workspace.relative(path).is_ok_and(|path| workspace.resolved(&path).is_ok()) {
                return Err(Trouble::mistake(format!("{path} exists already")));
            }
            let removed = from.iter().zip(old).map(|(path, old)| Plan {
                path,
                before: Some(old),
                after: None,
            });
            let made = Plan { path, before: None, after: Some(after) };
            std::iter::once(made).chain(removed).collect()
        }
        (None, None) => Vec::new(),
    })
}

/// One after the other; what is done when one fails is undone.
fn carry_out(workspace: &Workspace, changes: &[Change]) -> Result<(), Trouble> {
    for (at, change) in changes.iter().enumerate() {
        let done = match &change.after {
            Some(bytes) => change.place.put(bytes),
            None => change.place.remove(),
        };
        if let Err(trouble) = done {
            let undone = changes[..at].iter().rev().map(|change| undo(workspace, change));
            let left: Vec<String> = undone.filter_map(Result::err).collect();
            return Err(match left.is_empty() {
                true => trouble,
                false => Trouble::lost(format!("half of a patch was applied: {}", left.join(", "))),
            });
        }
    }
    Ok(())
}

fn undo(workspace: &Workspace, change: &Change) -> Result<(), String> {
    let path = change.place.path.display().to_string();
    let place = Place::of(workspace, &path).map_err(|_| path.clone())?;
    match &change.before {
        Some(bytes) => place.put(bytes),
        None => place.remove(),
    }
    .map_err(|_| path)
}

/// The new bytes of a file.
fn applied(name: &str, before: &[u8], hunks: &[Hunk]) -> Result<Vec<u8>, Trouble> {
    let mut lines: Vec<Vec<u8>> =
        before.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let crlf = lines.iter().filter(|line| line.ends_with(b"\r\n")).count();
    let end: &[u8] = if crlf * 2 > lines.len() { b"\r\n" } else { b"\n" };
    // How far the lines have moved, by what was added and by what the model miscounted.
    let mut moved = 0_isize;
    for (number, hunk) in hunks.iter().enumerate() {
        let wanted: Vec<&HunkLine> =
            hunk.lines.iter().filter(|line| line.kind != LineKind::Added).collect();
        let expected = hunk
            .old_start
            .saturating_sub(usize::from(!wanted.is_empty()))
            .saturating_add_signed(moved);
        let at = place(&lines, &wanted, expected).map_err(|why| {
            let (nth, line) = (number + 1, hunk.old_start);
            Trouble::mistake(format!("{name}, hunk {nth} (at line {line}): {why}"))
        })?;
        let mut kept = lines[at..at + wanted.len()].iter().cloned();
        let mut new = Vec::new();
        for line in &hunk.lines {
            match line.kind {
                // As it stands in the file, with its own end.
                LineKind::Kept => new.extend(kept.next()),
                LineKind::Removed => drop(kept.next()),
                LineKind::Added => new.push(ended(line, end)),
            }
        }
        let added =
            isize::try_from(new.len()).unwrap_or(0) - isize::try_from(wanted.len()).unwrap_or(0);
        let drift = isize::try_from(at).unwrap_or(0) - isize::try_from(expected).unwrap_or(0);
        moved += added + drift;
        lines.splice(at..at + wanted.len(), new);
        close_lines(&mut lines, end);
    }
    Ok(lines.concat())
}

fn ended(line: &HunkLine, end: &[u8]) -> Vec<u8> {
    let text = line.text.strip_suffix('\r').unwrap_or(&line.text).as_bytes();
    if line.is_open { text.to_vec() } else { [text, end].concat() }
}

/// A line that was the last and has others behind it now needs an end.
fn close_lines(lines: &mut [Vec<u8>], end: &[u8]) {
    let Some((_, others)) = lines.split_last_mut() else { return };
    for line in others.iter_mut().filter(|line| !line.ends_with(b"\n")) {
        line.extend(end);
    }
}

/// Where the old lines of a hunk stand: where they should, or at the only place there is.
fn place(lines: &[Vec<u8>], wanted: &[&HunkLine], expected: usize) -> Result<usize, String> {
    if wanted.is_empty() {
        return Ok(expected.min(lines.len()));
    }
    let fits = |at: usize| {
        let there = lines.get(at..at + wanted.len());
        there.is_some_and(|there| {
            there.iter().zip(wanted).all(|(line, wanted)| is_same(line, wanted))
        })
    };
    if fits(expected) {
        return Ok(expected);
    }
    let places: Vec<usize> = (0..lines.len()).filter(|at| fits(*at)).collect();
    match places[..] {
        [at] => Ok(at),
        [] => Err("its lines do not occur in the file; read it again".to_owned()),
        _ => Err(format!("its lines occur {} times; add lines around them", places.len())),
    }
}

fn is_same(line: &[u8], wanted: &HunkLine) -> bool {
    fn bare(line: &[u8]) -> &[u8] {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        line.strip_suffix(b"\r").unwrap_or(line)
    }
    bare(line) == bare(wanted.text.as_bytes())
}
