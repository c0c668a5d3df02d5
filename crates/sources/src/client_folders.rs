//! The folders in which clients keep their files, beside those that our own environment names.
//!
//! A client may run with another `CLAUDE_CONFIG_DIR`, `CODEX_HOME`, `GEMINI_CLI_HOME` or `HOME` than
//! the daemon: a work profile, direnv, a service. Such a folder is believed only for the environment
//! of a live process that is itself known to be the client; what a hook's payload says is not enough.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use qd_harness::Harness;
use qd_host::bounded_file::{Links, read_regular};
use qd_host::links::followed;
use qd_host::processes::{ENVIRONMENT_BYTES_MAX, Process};
use qd_host::supervised::is_ours;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::agent_processes::started_as;
use super::places::{Place, folder_of, places_in};
use crate::Error;
use crate::files::registry::REGISTRY_BYTES_MAX;

/// Folders of clients that are followed: profiles of one user, of every client.
const CLIENT_FOLDERS_MAX: usize = 32;

/// Between two looks for clients that use another folder than the daemon's. Whoever has hooks is
/// known at once by them.
const CLIENT_LOOK_EVERY: Duration = Duration::from_secs(5);

/// How often a process is looked at: it may be about to become another program, and Claude Code's
/// registry file comes a moment after its process, or only once a dialog at its start is answered.
const CLIENT_LOOKS: u32 = 12;

/// What the folder's own variable would name: the place of one profile of one client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientFolder {
    pub harness: Harness,
    pub path: PathBuf,
}

/// How a folder came to be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum FolderOrigin {
    /// By the daemon's own environment.
    Environment,
    /// By `[places]` in config.toml.
    Config,
    /// By the environment of a client that runs.
    RunningClient,
}

/// A folder that is followed, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FolderView {
    pub harness: Harness,
    pub path: String,
    pub origin: FolderOrigin,
}

/// Those that are followed, each once wherever links lead.
#[derive(Debug, Default)]
pub struct ClientFolders {
    known: Vec<Known>,
}

#[derive(Debug)]
struct Known {
    folder: ClientFolder,
    real: PathBuf,
    origin: FolderOrigin,
}

impl ClientFolders {
    /// The places of a folder that was not followed before; none if it was, or too many are.
    pub fn add(&mut self, folder: ClientFolder, origin: FolderOrigin) -> Option<Vec<Place>> {
        let real = followed(&folder.path)?;
        let is_same = |known: &Known| known.folder.harness == folder.harness && known.real == real;
        if self.known.len() >= CLIENT_FOLDERS_MAX || self.known.iter().any(is_same) {
            return None;
        }
        let places = places_in(folder.harness, &folder.path);
        self.known.push(Known { folder, real, origin });
        Some(places)
    }

    pub fn views(&self) -> Vec<FolderView> {
        let view = |Known { folder, origin, .. }: &Known| FolderView {
            harness: folder.harness,
            path: folder.path.display().to_string(),
            origin: *origin,
        };
        self.known.iter().map(view).collect()
    }
}

impl ClientFolder {
    /// Where clients keep their files that are started with this home and environment.
    pub fn all(home: &Path, environment: &BTreeMap<OsString, OsString>) -> Vec<Self> {
        let named = |variable: &str| environment.get(std::ffi::OsStr::new(variable)).cloned();
        let of = |harness| Self { harness, path: folder_of(harness, home, &named) };
        MOVABLE.into_iter().map(of).collect()
    }

    /// The folder that a live client uses: `None` if the process cannot be looked into, is one of
    /// ours, or is not known to be that client.
    pub fn of_client(harness: Harness, process: Process) -> Option<Self> {
        let environment = environment(process)?;
        let folders = Self::all(&home_in(&environment)?, &environment);
        let folder = folders.into_iter().find(|folder| folder.harness == harness)?;
        (folder.is_used_by(process) && !is_ours(process.pid)).then_some(folder)
    }

    /// The same for a process that nobody has heard of, if it lives in this home, the path of which
    /// has no links in it: what runs in another one is another's business.
    fn of_any_client(home: &Path, process: Process) -> Option<Self> {
        let environment = environment(process)?;
        let own = home_in(&environment).filter(|own| followed(own).as_deref() == Some(home))?;
        let mut folders = Self::all(&own, &environment).into_iter();
        folders.find(|folder| folder.is_used_by(process)).filter(|_| !is_ours(process.pid))
    }

    /// Whether the process is a client that works in this folder. Claude Code says so in a file that
    /// is called like its pid; the others are known by their program.
    fn is_used_by(&self, process: Process) -> bool {
        match self.harness {
            Harness::ClaudeCode => {
                let file = self.path.join("sessions").join(format!("{}.json", process.pid));
                let entry = read_regular(&file, REGISTRY_BYTES_MAX, Links::Refused);
                let entry: Option<serde_json::Value> =
                    entry.ok().and_then(|entry| serde_json::from_slice(&entry).ok());
                entry.is_some_and(|entry| entry["pid"] == process.pid)
            }
            Harness::Codex => {
                let program = fs::read_link(format!("/proc/{}/exe", process.pid)).ok();
                let name = program.as_deref().and_then(Path::file_name);
                name.is_some_and(|name| name.as_encoded_bytes().starts_with(b"codex"))
            }
            Harness::GeminiCli => {
                process.command_line().is_some_and(|line| super::gemini_chats::is_client(&line))
            }
            Harness::KiloCode
            | Harness::Cline
            | Harness::Opencode
            | Harness::Acp
            | Harness::Native => false,
        }
    }
}

/// Clients whose folder a variable of their own moves, and whose files are followed.
const MOVABLE: [Harness; 3] = [Harness::ClaudeCode, Harness::Codex, Harness::GeminiCli];

/// What a process was started with, as the kernel keeps it; `None` for another user's.
fn environment(process: Process) -> Option<BTreeMap<OsString, OsString>> {
    let path = format!("/proc/{}/environ", process.pid);
    let bytes = read_regular(Path::new(&path), ENVIRONMENT_BYTES_MAX, Links::Followed).ok()?;
    // Another process may have its pid by now.
    process.is_alive().then_some(())?;
    let variables = bytes.split(|byte| *byte == 0).filter_map(|variable| {
        let at = variable.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (variable[..at].to_vec(), variable[at + 1..].to_vec());
        Some((OsString::from_vec(name), OsString::from_vec(value)))
    });
    Some(variables.collect())
}

fn home_in(environment: &BTreeMap<OsString, OsString>) -> Option<PathBuf> {
    let home = environment.get(std::ffi::OsStr::new("HOME")).map(PathBuf::from);
    home.filter(|home| home.is_absolute())
}

/// Looks for clients that have come, now and then, and at those that it is told of. Dropping it ends
/// its thread.
#[derive(Debug)]
pub struct ClientScout {
    found: mpsc::Receiver<ClientFolder>,
    speaking: SyncSender<(Harness, Process)>,
}

impl ClientScout {
    /// Looks for clients of this home.
    pub fn start(home: &Path) -> Result<Self, Error> {
        let home = followed(home).unwrap_or_else(|| home.to_owned());
        let (tell, found) = mpsc::channel(CLIENT_FOLDERS_MAX);
        let (speaking, heard) = sync_channel(CLIENT_FOLDERS_MAX);
        thread::Builder::new()
            .name("qd-clients".to_owned())
            .spawn(move || scout(&home, &heard, &tell))
            .map_err(|source| Error::Holders { source })?;
        Ok(Self { found, speaking })
    }

    /// This process ran a hook of a client. It may keep its files in a folder that is not followed;
    /// the payload names that folder, too, and is not believed for it.
    pub fn look_at(&self, harness: Harness, process: Process) {
        // Where too many are waiting, its next hook asks again.
        let _ = self.speaking.try_send((harness, process));
    }

    /// A folder that a client uses which was not met before; never, once nobody looks any more.
    pub async fn next(&mut self) -> ClientFolder {
        match self.found.recv().await {
            Some(folder) => folder,
            None => std::future::pending().await,
        }
    }
}

fn scout(home: &Path, heard: &Receiver<(Harness, Process)>, tell: &mpsc::Sender<ClientFolder>) {
    let mut looks = BTreeMap::new();
    // Those that ran hooks, and whose folder was told.
    let mut told = BTreeSet::new();
    loop {
        for folder in new_folders(home, &mut looks) {
            if tell.blocking_send(folder).is_err() {
                return;
            }
        }
        told.retain(|process: &Process| process.is_alive());
        let next_look = Instant::now() + CLIENT_LOOK_EVERY;
        loop {
            match heard.recv_timeout(next_look.saturating_duration_since(Instant::now())) {
                Ok((_, process)) if told.contains(&process) => {}
                Ok((harness, process)) => {
                    let Some(folder) = ClientFolder::of_client(harness, process) else { continue };
                    told.insert(process);
                    if tell.blocking_send(folder).is_err() {
                        return;
                    }
                }
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }
}

/// The folders of clients that were not met before.
fn new_folders(home: &Path, looks: &mut BTreeMap<u32, u32>) -> Vec<ClientFolder> {
    let mut found = Vec::new();
    for process in new_processes(looks) {
        let folder = ClientFolder::of_any_client(home, process);
        match &folder {
            Some(_) => looks.insert(process.pid, CLIENT_LOOKS),
            // It asks whether its folder is trusted, say, for as long as nobody answers.
            None if is_client(process) => looks.insert(process.pid, 0),
            None => continue,
        };
        found.extend(folder);
    }
    found
}

fn is_client(process: Process) -> bool {
    let harness = started_as(process).and_then(|product| product.harness);
    harness.is_some_and(|harness| MOVABLE.contains(&harness))
}

/// Processes of this user that were not looked at often enough. One that is new may be about to
/// become another program, and Claude Code's file comes a moment after it.
fn new_processes(looks: &mut BTreeMap<u32, u32>) -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids: Vec<u32> =
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let before = std::mem::take(looks);
    let own = rustix::process::geteuid().as_raw();
    let mut found = Vec::new();
    for pid in pids {
        let spent = before.get(&pid).copied().unwrap_or_default();
        looks.insert(pid, (spent + 1).min(CLIENT_LOOKS));
        if spent >= CLIENT_LOOKS {
            continue;
        }
        let is_own = fs::metadata(format!("/proc/{pid}")).is_ok_and(|it| it.uid() == own);
        found.extend(is_own.then(|| Process::with_pid(pid)).flatten());
    }
    found
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::process::{Child, Command, Stdio};
    use std::time::Duration;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("qd-folders-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        folder
    }

    fn claude(path: PathBuf) -> ClientFolder {
        ClientFolder { harness: Harness::ClaudeCode, path }
    }

    /// A process that keeps its files there. The kernel shows what it was started with a moment
    /// after it has started it.
    #[cfg(target_os = "linux")]
    fn client_in(folder: &Path) -> (Child, Process) {
        let mut client = Command::new("sleep");
        client.arg("1000").env("CLAUDE_CONFIG_DIR", folder).env("HOME", "/nowhere");
        let client = client.stdin(Stdio::null()).spawn().expect("a process");
        let process = Process::with_pid(client.id()).expect("it lives");
        let begin = Instant::now();
        while environment(process).is_none_or(|environment| environment.is_empty()) {
            assert!(begin.elapsed() < PATIENCE, "its environment never shows");
        }
        (client, process)
    }

    #[test]
    fn a_folder_is_followed_once_wherever_links_lead_and_not_without_bound() {
        let at = folder("links");
        fs::create_dir_all(at.join("real/.claude")).expect("a folder");
        symlink("real", at.join("home")).expect("a link");
        let mut folders = ClientFolders::default();
        let places = folders.add(claude(at.join("home/.claude")), FolderOrigin::Environment);
        let paths: Vec<PathBuf> =
            places.expect("new").into_iter().map(|place| place.path).collect();
        let below = |name: &str| at.join("home/.claude").join(name);
        assert_eq!(paths, [below("jobs"), below("sessions"), below("projects")]);
        assert_eq!(folders.add(claude(at.join("real/.claude")), FolderOrigin::RunningClient), None);
        for number in 0..2 * CLIENT_FOLDERS_MAX {
            folders.add(claude(at.join(number.to_string())), FolderOrigin::RunningClient);
        }
        assert_eq!(folders.views().len(), CLIENT_FOLDERS_MAX);
        fs::remove_dir_all(at).expect("removed");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_folder_is_believed_for_the_live_client_whose_file_is_in_it() {
        let at = folder("claude");
        fs::create_dir_all(at.join("sessions")).expect("a folder");
        let (mut client, process) = client_in(&at);
        let learn = || ClientFolder::of_client(Harness::ClaudeCode, process);
        // Whatever Claude Code starts has its environment.
        let inherited = learn();
        let entry = at.join(format!("sessions/{}.json", client.id()));
        fs::write(&entry, r#"{"pid":1,"sessionId":"s"}"#).expect("written");
        let anothers = learn();
        fs::write(&entry, format!(r#"{{"pid":{},"sessionId":"s"}}"#, client.id()))
            .expect("written");
        let own = learn();
        let codex = ClientFolder::of_client(Harness::Codex, process);
        client.kill().expect("killed");
        client.wait().expect("gone");
        let ended = learn();
        fs::remove_dir_all(&at).expect("removed");
        assert_eq!((inherited, anothers, codex, ended), (None, None, None, None));
        assert_eq!(own, Some(claude(at)));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_client_is_looked_at_until_it_says_which_folder_it_uses() {
        let at = folder("trust");
        fs::create_dir_all(at.join("work/sessions")).expect("a folder");
        symlink("/bin/sleep", at.join("claude")).expect("a link");
        let mut client = Command::new(at.join("claude"));
        client.arg("1000").env("CLAUDE_CONFIG_DIR", at.join("work")).env("HOME", &at);
        let mut client = client.stdin(Stdio::null()).spawn().expect("a process");
        let mut looks = BTreeMap::new();
        let mut waiting = Vec::new();
        for _ in 0..2 * CLIENT_LOOKS {
            waiting.extend(new_folders(&at, &mut looks));
        }
        let entry = at.join(format!("work/sessions/{}.json", client.id()));
        fs::write(&entry, format!(r#"{{"pid":{}}}"#, client.id())).expect("written");
        let found = new_folders(&at, &mut looks);
        let again = new_folders(&at, &mut looks);
        client.kill().expect("killed");
        client.wait().expect("gone");
        fs::remove_dir_all(&at).expect("removed");
        assert_eq!((waiting, again), (Vec::new(), Vec::new()));
        assert_eq!(found, [claude(at.join("work"))]);
    }

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn the_folder_of_one_that_ran_a_hook_is_told_whatever_its_home() {
        let at = folder("spoke");
        fs::create_dir_all(at.join("sessions")).expect("a folder");
        let (mut client, process) = client_in(&at);
        let entry = at.join(format!("sessions/{}.json", client.id()));
        fs::write(&entry, format!(r#"{{"pid":{}}}"#, client.id())).expect("written");
        let mut scout = ClientScout::start(Path::new("/another")).expect("a thread");
        scout.look_at(Harness::ClaudeCode, process);
        let found = tokio::time::timeout(PATIENCE, scout.next()).await;
        client.kill().expect("killed");
        client.wait().expect("gone");
        fs::remove_dir_all(&at).expect("removed");
        assert_eq!(found.expect("it is told"), claude(at));
    }
}
