//! A story for tests: signals at chosen times, and what the operator was shown.
//!
//! The [`Stage`] is what every story plays on; handlers with a vocabulary of their own bring their
//! own story and share the stage.

use qd_session::moment::Timestamp;
use serde_json::Value;

use crate::Harness;
use crate::replay::{Replay, Scene};
use crate::signal::{Channel, Direction, Signal};

/// Where stories begin whose stamps must read like stamps: 2026-11-15T18:40:00Z.
pub const BEGIN_MS: u64 = 1_794_768_000_000;

/// A replay whose clock begins where its story does.
#[allow(missing_debug_implementations)]
pub struct Stage {
    pub replay: Replay,
    begin_ms: u64,
}

impl Stage {
    pub fn new(harness: Harness, begin_ms: u64) -> Self {
        Self { replay: Replay::new(harness), begin_ms }
    }

    /// One signal, so many milliseconds into the story.
    pub fn play(
        &mut self,
        at_ms: u64,
        channel: Channel,
        direction: Direction,
        file: Option<&str>,
        payload: &[u8],
    ) -> Vec<Scene> {
        let at = Timestamp(self.begin_ms + at_ms);
        self.replay.play(&Signal { at, seq: 0, channel, direction, file, payload })
    }

    /// Nothing comes until then.
    pub fn wait(&mut self, until_ms: u64) -> Vec<Scene> {
        self.replay.run_until(Timestamp(self.begin_ms + until_ms))
    }
}

#[allow(missing_debug_implementations)]
pub struct Story {
    stage: Stage,
    /// Every state shown, as `group/state`.
    pub shown: Vec<String>,
    /// Every event, by name.
    pub told: Vec<String>,
}

impl Story {
    pub fn of(harness: Harness) -> Self {
        Self { stage: Stage::new(harness, 0), shown: Vec::new(), told: Vec::new() }
    }

    /// The agent says something.
    pub fn hear(&mut self, at_ms: u64, channel: Channel, payload: &Value) -> &mut Self {
        self.play(at_ms, channel, Direction::FromAgent, None, payload.to_string().as_bytes())
    }

    /// The client says something.
    pub fn say(&mut self, at_ms: u64, channel: Channel, payload: &Value) -> &mut Self {
        self.play(at_ms, channel, Direction::ToAgent, None, payload.to_string().as_bytes())
    }

    pub fn play(
        &mut self,
        at_ms: u64,
        channel: Channel,
        direction: Direction,
        file: Option<&str>,
        payload: &[u8],
    ) -> &mut Self {
        let scenes = self.stage.play(at_ms, channel, direction, file, payload);
        self.keep(scenes)
    }

    /// Nothing comes until then.
    pub fn wait(&mut self, until_ms: u64) -> &mut Self {
        let scenes = self.stage.wait(until_ms);
        self.keep(scenes)
    }

    /// The last state shown.
    pub fn state(&self) -> &str {
        self.shown.last().map_or("nothing", String::as_str)
    }

    pub fn sessions(&self) -> usize {
        self.stage.replay.sessions().count()
    }

    fn keep(&mut self, scenes: Vec<Scene>) -> &mut Self {
        for scene in scenes {
            match scene {
                Scene::Event { event, .. } => self.told.push(event.fact.name().to_owned()),
                Scene::Changed { state, .. } => {
                    let group = serde_json::to_value(state.group).unwrap_or_default();
                    let group = group.as_str().unwrap_or_default().to_owned();
                    self.shown.push(format!("{group}/{}", state.state.as_str()));
                }
            }
        }
        self
    }
}
