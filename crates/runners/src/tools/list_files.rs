//! `list_files`: what lies in a folder.

use rustix::fs::FileType;
use serde::Deserialize;

use super::answer::{Answer, Lines};
use super::glob::Glob;
use super::limits::LISTED_MAX;
use super::pace::Pace;
use super::walk::{Next, Walked, walk};
use super::workspace::Workspace;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListFiles {
    path: Option<String>,
    glob: Option<String>,
    depth: Option<usize>,
}

impl ListFiles {
    pub fn run(&self, workspace: &Workspace, pace: &Pace) -> Answer {
        let path = workspace.relative(self.path.as_deref().unwrap_or("."))?;
        let glob = self.glob.as_deref().map(Glob::new).transpose()?;
        // Without a pattern one looks around; with one, everywhere.
        let depth = self.depth.unwrap_or(if glob.is_some() { usize::MAX } else { 2 }).max(1);
        let mut lines = Lines::default();
        let mut listed = 0;
        let walked = walk(workspace, &path, pace, |found| {
            let is_folder = found.kind == FileType::Directory;
            let is_wanted = glob.as_ref().is_none_or(|glob| !is_folder && glob.matches(found.path));
            if is_wanted {
                if listed == LISTED_MAX {
                    return Next::Stop;
                }
                listed += 1;
                let is_link = found.kind == FileType::Symlink;
                let mark = if is_folder {
                    "/"
                } else if is_link {
                    "@"
                } else {
                    ""
                };
                if !lines.push(&format!("{}{mark}", found.path.display())) {
                    return Next::Stop;
                }
            }
            if found.depth + 1 < depth { Next::Go } else { Next::Skip }
        })?;
        Ok(match walked {
            Walked::Partly => lines.shown("more follows; name a folder or a pattern".to_owned()),
            Walked::All if lines.is_empty() => "[nothing found]\n".to_owned(),
            Walked::All => lines.finish(None),
        })
    }
}
