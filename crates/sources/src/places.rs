//! Where each client keeps its files.
//!
//! Pure: from the environment that agents are started with and a home. Names and depths only;
//! whether anything is there is for others to see.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use qd_harness::{Channel, Harness};

use super::client_folders::ClientFolder;

/// A place on disk and what one learns there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub harness: Harness,
    pub kind: PlaceKind,
    pub path: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceKind {
    /// A tree of session files, one line a message.
    Transcripts,
    /// A directory with one small file for each running session.
    Registry,
    /// A directory with a folder for each background session of a client, and what its supervisor
    /// says of it in there.
    Jobs,
    /// A directory with one file for each session that is open, locked by the process that has it.
    Locks,
    /// A socket that a daemon of the client listens on.
    Socket,
    /// Where it keeps its own database: a sign that it is used here, and nothing to read.
    Data,
    /// Our own journal: all that sessions of ours have left.
    Journal,
}

impl Place {
    /// Where answers stand that no client has written down.
    pub fn journal(path: PathBuf) -> Self {
        Self { harness: Harness::Native, kind: PlaceKind::Journal, path }
    }

    /// The database that OpenCode or Kilo keeps its sessions in: it has the name of its folder, as
    /// `opencode/opencode.db`. It need not be there.
    pub fn database(&self) -> Option<PathBuf> {
        let is_one = (self.harness, self.kind) == (Harness::Opencode, PlaceKind::Data);
        let name = self.path.file_name().filter(|_| is_one)?;
        Some(self.path.join(name).with_extension("db"))
    }

    /// How what is found here reaches a handler; none where nothing is read.
    pub fn channel(&self) -> Option<Channel> {
        match self.kind {
            PlaceKind::Transcripts => Some(Channel::Transcript),
            PlaceKind::Registry | PlaceKind::Jobs => Some(Channel::Registry),
            PlaceKind::Locks | PlaceKind::Socket | PlaceKind::Data | PlaceKind::Journal => None,
        }
    }

    /// Which directories below it may hold files of interest.
    pub fn enters(&self) -> fn(&Path) -> bool {
        match (self.harness, self.kind) {
            // <project>/<session>/subagents, and whatever a version puts below that.
            (Harness::ClaudeCode, PlaceKind::Transcripts) => |dir| dir.iter().count() <= 5,
            // <year>/<month>/<day>
            (Harness::Codex, PlaceKind::Transcripts) => |dir| dir.iter().count() <= 3,
            // <project>/chats, and a folder of a session's subagents in it. Beside the chats
            // lie tool outputs, of which there may be many.
            (Harness::GeminiCli, PlaceKind::Transcripts) => |dir| {
                dir.iter().count() <= 3 && dir.iter().nth(1).is_none_or(|name| name == "chats")
            },
            // <job>
            (_, PlaceKind::Jobs) => |dir| dir.iter().count() <= 1,
            _ => |_| false,
        }
    }

    /// Which files below it are of interest.
    pub fn wants(&self) -> fn(&Path) -> bool {
        match (self.harness, self.kind) {
            // Beside it lies <pid>.<hash>.key, a secret that is none of our business.
            (_, PlaceKind::Registry) => |file| {
                let pid = file.file_stem().unwrap_or_default().as_encoded_bytes();
                is(file, "json") && !pid.is_empty() && pid.iter().all(u8::is_ascii_digit)
            },
            (_, PlaceKind::Jobs) => |file| file.iter().count() == 2 && file.ends_with("state.json"),
            (Harness::Codex, PlaceKind::Transcripts) => |file| {
                let name = file.file_name().unwrap_or_default().as_encoded_bytes();
                is(file, "jsonl") && name.starts_with(b"rollout-")
            },
            (Harness::GeminiCli, PlaceKind::Transcripts) => {
                |file| is(file, "jsonl") && file.iter().nth(1).is_some_and(|name| name == "chats")
            }
            (_, PlaceKind::Transcripts) => |file| is(file, "jsonl"),
            // Beside them lies one that guards the folder, with a name that begins with a dot.
            (_, PlaceKind::Locks) => {
                |file| is(file, "lock") && !file.as_os_str().as_encoded_bytes().starts_with(b".")
            }
            (_, PlaceKind::Socket | PlaceKind::Data | PlaceKind::Journal) => |_| false,
        }
    }
}

fn is(file: &Path, ending: &str) -> bool {
    file.extension() == Some(OsStr::new(ending))
}

/// Where to look, registries first: they tell most for the least reading.
pub fn places(home: &Path, environment: &BTreeMap<OsString, OsString>) -> Vec<Place> {
    // A relative folder depends on where the agent was started, which we cannot know.
    let named = |variable: &str| {
        let value = environment.get(OsStr::new(variable)).map(PathBuf::from);
        value.filter(|path| path.is_absolute())
    };
    let folders = ClientFolder::all(home, environment);
    let mut places: Vec<Place> =
        folders.iter().flat_map(|folder| places_in(folder.harness, &folder.path)).collect();
    let data = named("XDG_DATA_HOME").unwrap_or_else(|| home.join(".local/share"));
    let place = |harness, path| Place { harness, kind: PlaceKind::Data, path };
    places.extend([
        place(Harness::Opencode, data.join("opencode")),
        // Kilo 7 is read by the same handler as OpenCode.
        place(Harness::Opencode, data.join("kilo")),
        place(Harness::KiloCode, home.join(".kilocode/cli")),
    ]);
    places
}

/// The folder that a client keeps its files in, by the variable that names it; else in the home.
pub fn folder_of(
    harness: Harness,
    home: &Path,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> PathBuf {
    let (name, usual) = match harness {
        Harness::ClaudeCode => ("CLAUDE_CONFIG_DIR", ".claude"),
        Harness::Codex => ("CODEX_HOME", ".codex"),
        Harness::GeminiCli => ("GEMINI_CLI_HOME", ""),
        Harness::KiloCode | Harness::Cline | Harness::Opencode | Harness::Acp | Harness::Native => {
            return home.to_owned();
        }
    };
    let named = variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    // Without the slash that joining nothing leaves behind.
    named.unwrap_or_else(|| home.join(usual).components().collect())
}

/// What lies in such a folder.
pub fn places_in(harness: Harness, folder: &Path) -> Vec<Place> {
    let kinds: &[(PlaceKind, &str)] = match harness {
        Harness::ClaudeCode => {
            // What a supervisor says of a job comes before the workers that it lost.
            &[
                (PlaceKind::Jobs, "jobs"),
                (PlaceKind::Registry, "sessions"),
                (PlaceKind::Transcripts, "projects"),
            ]
        }
        Harness::Codex => &[
            (PlaceKind::Transcripts, "sessions"),
            (PlaceKind::Locks, "thread-writer-locks"),
            (PlaceKind::Socket, "app-server-control/app-server-control.sock"),
        ],
        Harness::GeminiCli => &[(PlaceKind::Transcripts, ".gemini/tmp")],
        Harness::KiloCode | Harness::Cline | Harness::Opencode | Harness::Acp | Harness::Native => {
            &[]
        }
    };
    let place =
        |(kind, name): &(PlaceKind, &str)| Place { harness, kind: *kind, path: folder.join(name) };
    kinds.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(environment: &[(&str, &str)], expected: &str) {
        let environment = environment.iter().map(|(name, value)| (name.into(), value.into()));
        let found = places(Path::new("/home/ann"), &environment.collect());
        let lines: Vec<String> = found
            .iter()
            .map(|place| format!("{:?} {:?} {}", place.harness, place.kind, place.path.display()))
            .collect();
        let expected: Vec<&str> = expected.lines().map(str::trim).collect();
        assert_eq!(lines, expected);
    }

    #[test]
    fn everything_is_below_the_home_unless_said_otherwise() {
        let usual = "ClaudeCode Jobs /home/ann/.claude/jobs
            ClaudeCode Registry /home/ann/.claude/sessions
            ClaudeCode Transcripts /home/ann/.claude/projects
            Codex Transcripts /home/ann/.codex/sessions
            Codex Locks /home/ann/.codex/thread-writer-locks
            Codex Socket /home/ann/.codex/app-server-control/app-server-control.sock
            GeminiCli Transcripts /home/ann/.gemini/tmp
            Opencode Data /home/ann/.local/share/opencode
            Opencode Data /home/ann/.local/share/kilo
            KiloCode Data /home/ann/.kilocode/cli";
        check(&[], usual);
        check(&[("CODEX_HOME", ""), ("CLAUDE_CONFIG_DIR", "here"), ("XDG_DATA_HOME", ".")], usual);
    }

    #[test]
    fn moved_homes_are_honoured() {
        check(
            &[
                ("CLAUDE_CONFIG_DIR", "/c"),
                ("CODEX_HOME", "/x"),
                ("GEMINI_CLI_HOME", "/g"),
                ("XDG_DATA_HOME", "/d"),
            ],
            "ClaudeCode Jobs /c/jobs
            ClaudeCode Registry /c/sessions
            ClaudeCode Transcripts /c/projects
            Codex Transcripts /x/sessions
            Codex Locks /x/thread-writer-locks
            Codex Socket /x/app-server-control/app-server-control.sock
            GeminiCli Transcripts /g/.gemini/tmp
            Opencode Data /d/opencode
            Opencode Data /d/kilo
            KiloCode Data /home/ann/.kilocode/cli",
        );
    }

    #[test]
    fn each_place_knows_its_files() {
        let places = places(Path::new("/h"), &BTreeMap::new());
        let at = |harness, kind| {
            let mut found = places.iter();
            found.find(|place| (place.harness, place.kind) == (harness, kind)).unwrap()
        };
        let wants = |place: &Place, file: &str| {
            let way: Vec<&Path> = Path::new(file).ancestors().skip(1).collect();
            let entered = way.iter().all(|dir| dir.as_os_str().is_empty() || place.enters()(dir));
            entered && place.wants()(Path::new(file))
        };
        let registry = at(Harness::ClaudeCode, PlaceKind::Registry);
        assert!(wants(registry, "4711.json"));
        for other in ["4711.c0ffee.key", "4711.json.tmp", ".json", "x.json", "sub/4711.json"] {
            assert!(!wants(registry, other), "{other}");
        }
        let jobs = at(Harness::ClaudeCode, PlaceKind::Jobs);
        assert!(wants(jobs, "becd625e/state.json"));
        for other in ["state.json", "pins.json", "becd625e/timeline.jsonl", "a/b/state.json"] {
            assert!(!wants(jobs, other), "{other}");
        }
        let claude = at(Harness::ClaudeCode, PlaceKind::Transcripts);
        assert!(wants(claude, "-home-ann-acme/0c59.jsonl"));
        assert!(wants(claude, "-home-ann-acme/0c59/subagents/agent-a57.jsonl"));
        assert!(!wants(claude, "-home-ann-acme/0c59/subagents/agent-a57.meta.json"));
        let codex = at(Harness::Codex, PlaceKind::Transcripts);
        assert!(wants(codex, "2026/11/15/rollout-2026-11-15T10-00-00-0199.jsonl"));
        assert!(!wants(codex, "2026/11/15/other.jsonl"));
        assert!(!wants(codex, "2026/11/15/x/rollout-1.jsonl"));
        let locks = at(Harness::Codex, PlaceKind::Locks);
        assert!(wants(locks, "0199c0de-1234-7000-8000-0123456789ab.lock"));
        for other in [".coordination.lock", "0199c0de.lock.tmp", "sub/0199c0de.lock"] {
            assert!(!wants(locks, other), "{other}");
        }
        let gemini = at(Harness::GeminiCli, PlaceKind::Transcripts);
        assert!(wants(gemini, "acme/chats/session-2026-11-15T10-00-1234abcd.jsonl"));
        assert!(!wants(gemini, "acme/logs.jsonl"));
        assert!(!wants(gemini, "acme/tool_output/chats/x.jsonl"));
    }
}
