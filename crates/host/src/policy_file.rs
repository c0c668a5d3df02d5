//! `policy.toml`: the operator's, and what files of a repository add to it.
//!
//! Never an error: what cannot be used is a trouble to be told, and then nothing is allowed by
//! itself where it would have held.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use qd_session::policy::{Policy, Tightening, Trouble};
use serde_json::Value;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tracing::warn;

use crate::bounded_file::{Links, read_regular_text};

/// Longest file of a policy, the operator's or a repository's, and longest settings of a client
/// that are looked into for what they forbid.
const POLICY_FILE_BYTES_MAX: u64 = 256 << 10;

pub const SURVEY_WAIT: Duration = Duration::from_secs(1);

/// Folders above a session's that are looked through for a repository's policy.
const REPOSITORY_DEPTH_MAX: usize = 32;

#[derive(Debug, Default)]
pub struct PolicyFile {
    pub policy: Policy,
    pub troubles: Vec<Trouble>,
}

/// What the repository of a session says.
#[derive(Debug, Default)]
pub struct RepositoryPolicy {
    pub tightening: Tightening,
    pub troubles: Vec<Trouble>,
}

impl PolicyFile {
    /// Without a file everything is asked. `home` stands for `~` in its paths.
    pub fn read(path: &Path, home: &Path) -> Self {
        let spelled = home.to_string_lossy();
        match read_regular_text(path, POLICY_FILE_BYTES_MAX, Links::Followed) {
            Ok(text) => Self::parsed(&text, home),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                Self { policy: Policy::none(&spelled), troubles: Vec::new() }
            }
            Err(error) => Self::unusable(error.to_string(), &spelled),
        }
    }

    pub fn parsed(text: &str, home: &Path) -> Self {
        let home = home.to_string_lossy();
        match table(text) {
            Ok(file) => {
                let (policy, troubles) = Policy::of_operator(&file, &home);
                Self { policy, troubles }
            }
            Err(what) => Self::unusable(what, &home),
        }
    }

    fn unusable(what: String, home: &str) -> Self {
        let trouble = Trouble { place: "file".to_owned(), what };
        Self { policy: Policy::unreadable(home), troubles: vec![trouble] }
    }
}

impl RepositoryPolicy {
    /// `.quarterdeck/policy.toml` and `.gemini/settings.json` of the folder and, in a Git
    /// repository, of those above it up to its root. All of them hold.
    pub fn read(cwd: &Path, home: &Path) -> Self {
        let mut found = Self::default();
        let is_root = |folder: &&Path| folder.join(".git").symlink_metadata().is_ok();
        let above = || cwd.ancestors().take(REPOSITORY_DEPTH_MAX);
        let depth = above().position(|folder| is_root(&folder)).map_or(1, |at| at + 1);
        for folder in above().take(depth) {
            found.take_policy(folder, home);
            // Gemini CLI's own settings lie there.
            if folder != home {
                found.take_gemini_settings(folder);
            }
        }
        found
    }

    fn take_policy(&mut self, folder: &Path, home: &Path) {
        let path = folder.join(".quarterdeck/policy.toml");
        let read = match repository_text(folder, &path) {
            Ok(None) => return,
            Ok(Some(text)) => table(&text),
            Err(error) => Err(error.to_string()),
        };
        match read {
            Ok(file) => {
                let (tightening, troubles) =
                    Tightening::of_repository(&file, &home.to_string_lossy());
                self.add(tightening);
                self.troubles.extend(troubles.into_iter().map(|trouble| Trouble {
                    place: format!("{}, {}", path.display(), trouble.place),
                    ..trouble
                }));
            }
            Err(what) => self.unreadable(&path, what),
        }
    }

    fn take_gemini_settings(&mut self, folder: &Path) {
        let path = folder.join(".gemini/settings.json");
        let read = match repository_text(folder, &path) {
            Ok(None) => return,
            Ok(Some(text)) => {
                serde_json::from_str::<Value>(&text).map_err(|error| error.to_string())
            }
            Err(error) => Err(error.to_string()),
        };
        match read {
            Ok(settings) => self.add(Tightening::of_gemini_settings(&settings)),
            Err(what) => {
                // It may forbid to allow everything; nothing else of it is ours.
                self.add(Tightening::yolo_forbidden());
                self.troubles.push(Trouble { place: path.display().to_string(), what });
            }
        }
    }

    fn add(&mut self, more: Tightening) {
        self.tightening = std::mem::take(&mut self.tightening).and(more);
    }

    fn unreadable(&mut self, path: &Path, what: String) {
        self.add(Tightening::unreadable());
        self.troubles.push(Trouble { place: path.display().to_string(), what });
    }
}

/// A file of a repository; none if there is none. It is not followed to another place: a link in a
/// foreign repository could name any file of the operator's.
fn repository_text(folder: &Path, path: &Path) -> io::Result<Option<String>> {
    let parent = path.parent().unwrap_or(folder);
    match parent.symlink_metadata() {
        Ok(found) if found.is_symlink() => {
            return Err(io::Error::other("its folder is a link, which is not followed"));
        }
        Ok(_) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    }
    match read_regular_text(path, POLICY_FILE_BYTES_MAX, Links::Refused) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn table(text: &str) -> Result<Value, String> {
    toml_edit::de::from_str(text).map_err(|error| {
        let line = error.span().map(|span| text[..span.start].lines().count().max(1));
        let place = line.map_or_else(String::new, |line| format!("line {line}: "));
        format!("{place}{}", error.message())
    })
}

/// What the files around a folder forbid. What is not known in time may be anything.
pub async fn tightening(folder: Arc<str>, home: PathBuf) -> Tightening {
    let reading = spawn_blocking(move || RepositoryPolicy::read(Path::new(&*folder), &home));
    match timeout(SURVEY_WAIT, reading).await {
        Ok(Ok(RepositoryPolicy { tightening, troubles })) => {
            for trouble in troubles {
                warn!(place = trouble.place, what = trouble.what, "a repository's policy");
            }
            tightening
        }
        Ok(Err(_)) | Err(_) => Tightening::unreadable(),
    }
}
