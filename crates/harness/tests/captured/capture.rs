//! The captures beside the crate, read and played.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs};

use qd_harness::capture::{Recorded, Scenario};
use qd_harness::replay::{Replay, Scene};
use qd_session::operator::{AgentState, resolve};
use serde::Deserialize;

#[derive(Debug)]
pub struct Capture {
    pub folder: PathBuf,
    pub name: String,
    pub scenario: Scenario,
    pub signals: Vec<Recorded>,
    pub truth: Vec<Known>,
}

/// One row of `truth.jsonl`.
#[derive(Debug, Clone, Deserialize)]
pub struct Known {
    pub at_ms: u64,
    pub session: Option<String>,
    pub state: String,
    #[serde(default)]
    pub brief: bool,
    /// The one sub-state that is true, where what was done tells it that exactly.
    pub exactly: Option<String>,
    /// When a usage limit ends.
    pub resets_at: Option<u64>,
}

/// A state that a session was shown in, and from when.
#[derive(Debug, Clone)]
pub struct Shown {
    pub at_ms: u64,
    pub state: AgentState,
}

/// All of them, or those that `QD_CAPTURES` names: `claude-code/tui-compact codex/app-goal`.
pub fn captures() -> Vec<Capture> {
    match env::var("QD_CAPTURES") {
        Ok(names) => {
            names.split_whitespace().map(|name| Capture::read(&top().join(name))).collect()
        }
        Err(_) => every_capture(),
    }
}

/// True if only some are played, so that counting them says nothing.
pub fn some_only() -> bool {
    env::var_os("QD_CAPTURES").is_some()
}

/// Where they are.
pub fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("captured")
}

fn every_capture() -> Vec<Capture> {
    let top = top();
    let mut captures: Vec<Capture> = folders(&top)
        .iter()
        .flat_map(|harness| folders(harness))
        .map(|folder| Capture::read(&folder))
        .collect();
    captures.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(captures.len() > 150, "only {} captures were found", captures.len());
    captures
}

fn folders(top: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(top).expect("a folder of captures");
    let paths = entries.map(|entry| entry.expect("a folder's entry").path());
    paths.filter(|path| path.is_dir()).collect()
}

impl Capture {
    pub fn read(folder: &Path) -> Self {
        let text = |file: &str| fs::read_to_string(folder.join(file)).expect(file);
        let name = folder.components().rev().take(2).collect::<Vec<_>>();
        let name = name.iter().rev().map(|part| part.as_os_str().to_string_lossy());
        Self {
            name: name.collect::<Vec<_>>().join("/"),
            folder: folder.to_owned(),
            scenario: serde_json::from_str(&text("scenario.json")).expect("a scenario"),
            signals: lines(&text("signals.jsonl")),
            truth: lines(&text("truth.jsonl")),
        }
    }

    /// Plays these signals; every scene in order.
    pub fn play(&self, signals: &[&Recorded]) -> Vec<Scene> {
        let mut replay = Replay::new(self.scenario.harness);
        let mut scenes = Vec::new();
        for recorded in signals {
            scenes.extend(replay.play(&recorded.signal().expect("a known source")));
        }
        scenes.extend(replay.finish());
        scenes
    }

    /// The state each session ends in.
    pub fn ends(&self, signals: &[&Recorded]) -> BTreeMap<String, String> {
        let mut replay = Replay::new(self.scenario.harness);
        for recorded in signals {
            replay.play(&recorded.signal().expect("a known source"));
        }
        replay.finish();
        let now = replay.now();
        replay
            .sessions()
            .map(|(id, monitor)| (id.to_string(), spelled(&resolve(now, monitor))))
            .collect()
    }

    pub fn all(&self) -> Vec<&Recorded> {
        self.signals.iter().collect()
    }
}

/// What each session was shown as, in order.
pub fn shown(scenes: &[Scene]) -> BTreeMap<String, Vec<Shown>> {
    let mut shown: BTreeMap<String, Vec<Shown>> = BTreeMap::new();
    for scene in scenes {
        if let Scene::Changed { at, session, state } = scene {
            let one = Shown { at_ms: at.0, state: state.clone() };
            shown.entry(session.to_string()).or_default().push(one);
        }
    }
    shown
}

pub fn group(state: &AgentState) -> String {
    let group = serde_json::to_value(state.group).expect("a group is JSON");
    group.as_str().expect("a string").to_owned()
}

pub fn spelled(state: &AgentState) -> String {
    format!("{}/{}", group(state), state.state.as_str())
}

fn lines<T: for<'de> Deserialize<'de>>(text: &str) -> Vec<T> {
    let filled = text.lines().filter(|line| !line.trim().is_empty());
    filled.map(|line| serde_json::from_str(line).expect("a line of a capture")).collect()
}
