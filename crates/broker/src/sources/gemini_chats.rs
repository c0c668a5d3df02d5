//! Which process holds a Gemini CLI session: neither a registry nor a lock says so.
//!
//! The folder of a chat file names its project, and a client runs in its project. Who holds what
//! follows from when processes began and when chats began and changed ([`assign`], pure). What
//! does not follow is not told. Somebody whom we cannot see may write a chat, too: a file that
//! changes though nobody here can have done it is left alone.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use qd_harness::gemini_cli::ChatHeader;
use qd_session::moment::Timestamp;

use super::processes::Process;
use crate::limits::{
    CHAT_HEADER_BYTES_MAX, CHATS_MAX, COMMAND_LINE_BYTES_MAX, PROJECT_ROOT_BYTES_MAX,
};

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

/// When a chat began and was last written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    began: Timestamp,
    changed: Timestamp,
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
        for entry in entries.flatten() {
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
                // Its end is told by who observes it.
                (Verdict::Nobodys, Told::Held(process)) if process.is_alive() => {
                    chat.told = Told::Missing(now);
                    findings.push(Finding::Left(session, process));
                }
                (Verdict::Nobodys, Told::Missing(looked_at)) if chat.span.changed > looked_at => {
                    chat.told = Told::Elsewhere;
                }
                (Verdict::Nobodys, Told::Nothing | Told::Held(_)) if asked(path) => {
                    chat.told = Told::Missing(now);
                    findings.push(Finding::Missing(session));
                }
                (Verdict::Nobodys | Verdict::Unclear, _) => {}
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    /// By the client with this index.
    Held(usize),
    Nobodys,
    Unclear,
}

/// Who holds which chat, given how each client began. Chats come with the client that is already
/// known to hold them.
fn assign(chats: &[(Span, Option<usize>)], clients: &[Begin]) -> Vec<Verdict> {
    let may_have_begun = |client: Begin, chat: Span| chat.began.plus_ms(SLACK_MS) >= client.at;
    // A client that begins may put a title on the last chat of its project, and leave it alone.
    let may_hold = |client: Begin, chat: Span| {
        may_have_begun(client, chat)
            || match client.resumes {
                true => chat.changed.plus_ms(SLACK_MS) >= client.at,
                false => chat.changed >= client.at.plus_ms(TITLES_MS),
            }
    };
    let mut verdicts: Vec<Verdict> = chats
        .iter()
        .map(|(span, _)| match clients.iter().any(|client| may_hold(*client, *span)) {
            true => Verdict::Unclear,
            false => Verdict::Nobodys,
        })
        .collect();
    if let [client] = clients {
        // It writes one chat at a time.
        let its = (0..chats.len()).filter(|chat| may_hold(*client, chats[*chat].0));
        let newest = its.max_by_key(|chat| (chats[*chat].0.changed, chats[*chat].0.began));
        verdicts.fill(Verdict::Nobodys);
        newest.into_iter().for_each(|newest| verdicts[newest] = Verdict::Held(0));
        return verdicts;
    }
    let mut free: Vec<usize> = (0..clients.len()).collect();
    for (verdict, (_, holder)) in verdicts.iter_mut().zip(chats) {
        if let Some(holder) = holder {
            *verdict = Verdict::Held(*holder);
            free.retain(|client| client != holder);
        }
    }
    let open = |verdicts: &[Verdict]| -> Vec<usize> {
        (0..chats.len()).filter(|chat| verdicts[*chat] == Verdict::Unclear).collect()
    };
    // A client begins a chat soon after it began itself: the last to begin has the last chat.
    let any_began =
        |chat: &usize| free.iter().any(|at| may_have_begun(clients[*at], chats[*chat].0));
    let mut fresh: Vec<usize> = open(&verdicts).into_iter().filter(any_began).collect();
    if fresh.len() <= free.len() {
        fresh.sort_by_key(|chat| std::cmp::Reverse(chats[*chat].0.began));
        for chat in fresh {
            let may = free.iter().filter(|at| may_have_begun(clients[**at], chats[chat].0));
            if let Some(client) = may.max_by_key(|at| clients[**at].at).copied() {
                verdicts[chat] = Verdict::Held(client);
                free.retain(|at| *at != client);
            }
        }
    }
    // One client is left, and one chat that it can have resumed.
    if let ([chat], [client]) = (open(&verdicts).as_slice(), free.as_slice())
        && may_hold(clients[*client], chats[*chat].0)
    {
        verdicts[*chat] = Verdict::Held(*client);
    }
    verdicts
}

/// Process times are right to a second, file times to a tick of the clock.
const SLACK_MS: u64 = 2_000;

/// How long a client may be busy with the titles of old chats after it began.
const TITLES_MS: u64 = 60_000;

/// A session's own file; those of its subagents lie in a folder below.
fn is_chat(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_bytes();
    let folder = path.parent().and_then(Path::file_name);
    name.starts_with(b"session-")
        && name.ends_with(b".jsonl")
        && folder == Some(OsStr::new("chats"))
}

fn header(path: &Path) -> Option<ChatHeader> {
    let file = File::open(path).ok()?;
    let mut line = Vec::new();
    BufReader::new(file).take(CHAT_HEADER_BYTES_MAX).read_until(b'\n', &mut line).ok()?;
    ChatHeader::read(&line)
}

/// The folder that a client of this chat runs in.
fn project(chat: &Path) -> Option<PathBuf> {
    let folder = chat.parent()?.parent()?;
    let mut root = Vec::new();
    let file = File::open(folder.join(".project_root")).ok()?;
    file.take(PROJECT_ROOT_BYTES_MAX).read_to_end(&mut root).ok()?;
    // One that is not here is on another machine, or in a container.
    fs::canonicalize(OsStr::from_bytes(root.trim_ascii())).ok()
}

/// A running client.
#[derive(Debug, Clone, Copy)]
struct Client {
    process: Process,
    begin: Begin,
}

/// How a client began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Begin {
    at: Timestamp,
    /// It was asked to go on with an old chat.
    resumes: bool,
}

/// The clients of one user in one folder; none where processes are not to be seen.
fn clients(project: &Path, owner: u32) -> Option<Vec<Client>> {
    let mut found: Vec<(Client, Option<u32>)> = Vec::new();
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let folder = entry.path();
        let own = fs::metadata(&folder).is_ok_and(|found| found.uid() == owner);
        if !own || !fs::read_link(folder.join("cwd")).is_ok_and(|cwd| cwd == project) {
            continue;
        }
        let mut command = Vec::new();
        let read = File::open(folder.join("cmdline"))
            .and_then(|file| file.take(COMMAND_LINE_BYTES_MAX).read_to_end(&mut command));
        if read.is_err() || !is_client(&command) {
            continue;
        }
        let Some(process) = Process::with_pid(pid) else { continue };
        let begin = Begin { at: process.started_at()?, resumes: resumes(&command) };
        found.push((Client { process, begin }, process.parent()));
    }
    // It may start itself again with other settings, and waits for that one.
    let waits = |client: &Client| found.iter().any(|(_, by)| *by == Some(client.process.pid));
    Some(found.iter().map(|(client, _)| *client).filter(|client| !waits(client)).collect())
}

/// Whether a command line is Gemini CLI's: its own name, or its script in an interpreter.
fn is_client(command: &[u8]) -> bool {
    let name =
        |word: &[u8]| word.rsplit(|byte| *byte == b'/').next().unwrap_or_default().to_owned();
    let mut words = command.split(|byte| *byte == 0);
    let program = name(words.next().unwrap_or_default());
    if program == b"gemini" {
        return true;
    }
    let interprets = [b"node".as_slice(), b"nodejs", b"bun", b"deno"].contains(&program.as_slice());
    let script = words.find(|word| !word.is_empty() && !word.starts_with(b"-"));
    interprets
        && script.is_some_and(|script| {
            let named = [b"gemini".as_slice(), b"gemini.js"].contains(&name(script).as_slice());
            named || memchr::memmem::find(script, b"/@google/gemini-cli/").is_some()
        })
}

fn resumes(command: &[u8]) -> bool {
    let mut words = command.split(|byte| *byte == 0);
    words.any(|word| word == b"-r" || word == b"--resume" || word.starts_with(b"--resume="))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(began_s: u64, changed_s: u64) -> (Span, Option<usize>) {
        let at = |s: u64| Timestamp(s * 1_000);
        (Span { began: at(began_s), changed: at(changed_s) }, None)
    }

    fn held(began_s: u64, changed_s: u64, by: usize) -> (Span, Option<usize>) {
        (chat(began_s, changed_s).0, Some(by))
    }

    #[track_caller]
    fn check(chats: &[(Span, Option<usize>)], clients_s: &[u64], expected: &str) {
        let begin = |s: &u64| Begin { at: Timestamp(s * 1_000), resumes: false };
        let clients: Vec<Begin> = clients_s.iter().map(begin).collect();
        let verdicts = assign(chats, &clients);
        let words: Vec<String> = verdicts
            .iter()
            .map(|verdict| match verdict {
                Verdict::Held(by) => by.to_string(),
                Verdict::Nobodys => "-".to_owned(),
                Verdict::Unclear => "?".to_owned(),
            })
            .collect();
        assert_eq!(words.join(" "), expected);
    }

    #[test]
    fn without_a_client_every_chat_is_nobodys() {
        check(&[chat(10, 20), chat(30, 40)], &[], "- -");
    }

    #[test]
    fn the_only_client_has_the_newest_chat_that_was_written_since_it_began() {
        check(&[chat(101, 150)], &[100], "0");
        // One it resumed, and one it left.
        check(&[chat(10, 190), chat(101, 120)], &[100], "0 -");
        // One it only gave a title.
        check(&[chat(10, 103)], &[100], "-");
        let resumes = Begin { at: Timestamp(100_000), resumes: true };
        assert_eq!(assign(&[chat(10, 103)], &[resumes]), [Verdict::Held(0)]);
        check(&[held(101, 120, 0), chat(140, 150)], &[100], "- 0");
        // It has not begun to write.
        check(&[chat(10, 50)], &[100], "-");
        // The clock of processes is coarse.
        check(&[chat(99, 99)], &[100], "0");
    }

    #[test]
    fn of_several_clients_the_last_to_begin_has_the_last_chat() {
        check(&[chat(101, 300), chat(201, 300)], &[100, 200], "0 1");
        check(&[chat(201, 300), chat(101, 300)], &[200, 100], "0 1");
        // Begun within the slack.
        check(&[chat(101, 300), chat(103, 300)], &[100, 102], "0 1");
        // The first has resumed an old one.
        check(&[chat(10, 300), chat(201, 300)], &[100, 200], "0 1");
        // The other has not written yet.
        check(&[chat(10, 50), chat(201, 300)], &[100, 200], "- 1");
    }

    #[test]
    fn what_may_be_either_ones_is_unclear() {
        // Who of them has begun a second chat?
        check(&[chat(101, 300), chat(201, 300), chat(250, 300)], &[100, 200], "? ? ?");
        check(&[held(101, 300, 0), held(201, 300, 1), chat(250, 300)], &[100, 200], "0 1 ?");
        // Two have resumed two.
        check(&[chat(10, 300), chat(20, 300)], &[100, 200], "? ?");
        check(&[held(10, 300, 1), chat(20, 300)], &[100, 200], "1 0");
    }

    #[test]
    fn a_client_is_known_by_its_command_line() {
        for command in [
            "gemini\0",
            "/usr/local/bin/gemini\0-p\0hello\0",
            "node\0/usr/local/bin/gemini\0",
            "/usr/bin/node\0--max-old-space-size=8192\0/x/@google/gemini-cli/bundle/gemini.js\0",
            "node\0/x/node_modules/@google/gemini-cli/dist/index.js\0--acp\0",
            "bun\0/x/gemini.js\0",
        ] {
            assert!(is_client(command.as_bytes()), "{command}");
        }
        for command in [
            "",
            "\0",
            "node\0",
            "node\0server.js\0gemini\0",
            "vim\0gemini.js\0",
            "/bin/sh\0-c\0gemini\0",
            "gemini-helper\0",
        ] {
            assert!(!is_client(command.as_bytes()), "{command}");
        }
    }

    #[test]
    fn a_command_line_tells_whether_it_resumes() {
        for command in ["gemini\0-r\0latest\0", "gemini\0--resume\0", "gemini\0--resume=5\0"] {
            assert!(resumes(command.as_bytes()), "{command}");
        }
        assert!(!resumes(b"gemini\0-p\0please --resume it\0"));
    }

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
