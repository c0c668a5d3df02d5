//! Which process holds a Gemini CLI session: neither a registry nor a lock says so.
//!
//! The folder of a chat file names its project, and a client runs in its project. Who holds what
//! follows from when processes began and when chats began and changed ([`assignment`]). What
//! does not follow is not told. Somebody whom we cannot see may write a chat, too: a file that
//! changes though nobody here can have done it is left alone.

mod assignment;
mod clients;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use qd_harness::gemini_cli::ChatHeader;
use qd_host::bounded_file::{Links, open_regular, read_regular};
use qd_host::processes::Process;
use qd_session::moment::Timestamp;

use self::assignment::{Begin, SLACK_MS, Span, Verdict, assign};
pub use self::clients::is_client;
use self::clients::{Client, clients};

/// Chat files whose holder is looked for and remembered; the one that was silent for longest goes.
const CHATS_MAX: usize = 1_024;

/// Longest first line of a chat file. Real ones have 250 bytes.
const CHAT_HEADER_BYTES_MAX: u64 = 64 << 10;

/// Longest path in a `.project_root` file: what a kernel takes.
const PROJECT_ROOT_BYTES_MAX: u64 = 4 << 10;

/// Entries of a folder of chats that are looked at: more are no chats of one project.
const CHAT_ENTRIES_MAX: usize = 50_000;

/// The chats that were looked at, by their files.
#[derive(Debug, Default)]
pub struct Chats(BTreeMap<Arc<Path>, Chat>);

#[derive(Debug)]
struct Chat {
    session: Arc<str>,
    /// Where its client runs.
    project: PathBuf,
    owner: u32,
    span: Span,
    told: Told,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Nothing,
    Held(Process),
    /// And when we looked.
    Missing(Timestamp),
    /// It was written after it was found to have no process: its client is not on this machine,
    /// or not to be seen.
    Elsewhere,
}

/// What a look has found out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// The process has the session.
    Held(Arc<str>, Process),
    /// The process has gone over to another session.
    Left(Arc<str>, Process),
    /// No process has the session.
    Missing(Arc<str>),
}

impl Chats {
    /// Whether a look may tell more of a chat that has changed.
    pub fn is_open(&self, path: &Path) -> bool {
        match self.0.get(path).map(|chat| chat.told) {
            Some(Told::Held(process)) => !process.is_alive(),
            Some(Told::Nothing | Told::Missing(_) | Told::Elsewhere) => true,
            None => is_chat(path),
        }
    }

    /// Chats that may be anybody's: somebody's end may settle whose they are.
    pub fn unsettled(&self) -> Vec<Arc<Path>> {
        let unsettled = self.0.iter().filter(|(_, chat)| chat.told == Told::Nothing);
        unsettled.map(|(path, _)| path.clone()).collect()
    }

    /// Looks who holds the chats that changed, and the others of their projects.
    pub fn look(&mut self, now: Timestamp, changed: &[Arc<Path>]) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut folders: Vec<&Path> = changed.iter().filter_map(|path| path.parent()).collect();
        folders.sort_unstable();
        folders.dedup();
        for folder in folders {
            let asked = |path: &Path| changed.iter().any(|asked| **asked == *path);
            for path in changed.iter().filter(|path| path.parent() == Some(folder)) {
                self.meet(path);
            }
            let known = self.0.iter().find(|(path, _)| path.parent() == Some(folder));
            let Some((project, owner)) = known.map(|(_, chat)| (chat.project.clone(), chat.owner))
            else {
                continue;
            };
            let Some(clients) = clients(&project, owner) else { continue };
            if let Some(first) = clients.iter().map(|client| client.begin.at).min() {
                self.meet_others(folder, first);
            }
            self.settle(now, folder, &clients, asked, &mut findings);
        }
        findings
    }

    /// Reads a chat's header, or only when it changed last.
    fn meet(&mut self, path: &Arc<Path>) {
        let Some(metadata) = fs::metadata(path).ok().filter(fs::Metadata::is_file) else {
            self.0.remove(path);
            return;
        };
        let changed = Timestamp(u64::try_from(metadata.mtime()).unwrap_or(0) * 1_000)
            .plus_ms(u64::try_from(metadata.mtime_nsec()).unwrap_or(0) / 1_000_000);
        if let Some(chat) = self.0.get_mut(path) {
            chat.span.changed = changed;
            return;
        }
        let (Some(header), Some(project)) = (header(path), project(path)) else { return };
        if self.0.len() >= CHATS_MAX {
            let oldest = self.0.iter().min_by_key(|(_, chat)| chat.span.changed);
            if let Some(oldest) = oldest.map(|(path, _)| path.clone()) {
                self.0.remove(&oldest);
            }
        }
        let span = Span { began: header.began, changed };
        let owner = metadata.uid();
        let chat = Chat { session: header.session, project, owner, span, told: Told::Nothing };
        self.0.insert(path.clone(), chat);
    }

    /// A client has one chat of its project open, perhaps another than the one that changed.
    fn meet_others(&mut self, folder: &Path, since: Timestamp) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries.flatten().take(CHAT_ENTRIES_MAX) {
            let path = entry.path();
            let changed = entry.metadata().ok().and_then(|found| found.modified().ok());
            let changed = changed.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
            let recent = changed
                .is_some_and(|at| at.as_millis() + u128::from(SLACK_MS) >= u128::from(since.0));
            if recent && is_chat(&path) {
                self.meet(&path.into());
            }
        }
    }

    fn settle(
        &mut self,
        now: Timestamp,
        folder: &Path,
        clients: &[Client],
        asked: impl Fn(&Path) -> bool,
        findings: &mut Vec<Finding>,
    ) {
        let mut chats: Vec<(&Arc<Path>, &mut Chat)> =
            self.0.iter_mut().filter(|(path, _)| path.parent() == Some(folder)).collect();
        for (_, chat) in &mut chats {
            // Its end is told by who observes it.
            if matches!(chat.told, Told::Held(process) if !process.is_alive()) {
                chat.told = Told::Missing(now);
            }
        }
        // What nobody had when we looked is nobody's until it is written again.
        chats.retain(|(_, chat)| {
            !matches!(chat.told, Told::Missing(looked_at) if chat.span.changed <= looked_at)
        });
        let known: Vec<(Span, Option<usize>)> = chats
            .iter()
            .map(|(_, chat)| match chat.told {
                Told::Held(process) => {
                    (chat.span, clients.iter().position(|client| client.process == process))
                }
                Told::Nothing | Told::Missing(_) | Told::Elsewhere => (chat.span, None),
            })
            .collect();
        let begins: Vec<Begin> = clients.iter().map(|client| client.begin).collect();
        for ((path, chat), verdict) in chats.iter_mut().zip(assign(&known, &begins)) {
            let session = chat.session.clone();
            match (verdict, chat.told) {
                (Verdict::Held(by), told) if told == Told::Held(clients[by].process) => {}
                (Verdict::Held(by), _) => {
                    let process = clients[by].process;
                    chat.told = Told::Held(process);
                    findings.push(Finding::Held(session, process));
                }
                (Verdict::LeftBy(by), Told::Nothing) => {
                    let process = clients[by].process;
                    chat.told = Told::Missing(now);
                    findings.push(Finding::Held(session.clone(), process));
                    findings.push(Finding::Left(session, process));
                }
                (Verdict::Nobodys | Verdict::LeftBy(_), Told::Held(process)) => {
                    chat.told = Told::Missing(now);
                    findings.push(Finding::Left(session, process));
                }
                (Verdict::Nobodys | Verdict::LeftBy(_), Told::Missing(_)) => {
                    chat.told = Told::Elsewhere;
                }
                (Verdict::Nobodys, Told::Nothing) if asked(path) => {
                    chat.told = Told::Missing(now);
                    findings.push(Finding::Missing(session));
                }
                (Verdict::Nobodys | Verdict::LeftBy(_) | Verdict::Unclear, _) => {}
            }
        }
    }
}

/// A session's own file; those of its subagents lie in a folder below.
fn is_chat(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_bytes();
    let folder = path.parent().and_then(Path::file_name);
    name.starts_with(b"session-")
        && name.ends_with(b".jsonl")
        && folder == Some(OsStr::new("chats"))
}

fn header(path: &Path) -> Option<ChatHeader> {
    let (file, _) = open_regular(path, Links::Followed).ok()?;
    let mut line = Vec::new();
    BufReader::new(file).take(CHAT_HEADER_BYTES_MAX).read_until(b'\n', &mut line).ok()?;
    ChatHeader::read(&line)
}

/// The folder that a client of this chat runs in.
fn project(chat: &Path) -> Option<PathBuf> {
    let folder = chat.parent()?.parent()?;
    let (root, limit) = (folder.join(".project_root"), PROJECT_ROOT_BYTES_MAX);
    let root = read_regular(&root, limit, Links::Followed).ok()?;
    // One that is not here is on another machine, or in a container.
    fs::canonicalize(OsStr::from_bytes(root.trim_ascii())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_sessions_own_file_is_a_chat() {
        assert!(is_chat(Path::new("/t/acme/chats/session-2026-11-15T10-00-1234abcd.jsonl")));
        for other in [
            "/t/acme/chats/1234abcd/5678.jsonl",
            "/t/acme/chats/1234abcd/session-5678.jsonl",
            "/t/acme/chats/session-1.json",
            "/t/acme/session-1.jsonl",
            "",
        ] {
            assert!(!is_chat(Path::new(other)), "{other}");
        }
    }
}
