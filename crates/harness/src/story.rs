//! A story for tests: signals at chosen times, and what the operator was shown.

use qd_session::moment::Timestamp;
use serde_json::Value;

use crate::Harness;
use crate::replay::{Replay, Scene};
use crate::signal::{Channel, Direction, Signal};

#[allow(missing_debug_implementations)]
pub struct Story {
    replay: Replay,
    /// Every state shown, as `group/state`.
    pub shown: Vec<String>,
    /// Every event, by name.
    pub told: Vec<String>,
}

impl Story {
    pub fn of(harness: Harness) -> Self {
        Self { replay: Replay::new(harness), shown: Vec::new(), told: Vec::new() }
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
        let signal = Signal { at: Timestamp(at_ms), seq: 0, channel, direction, file, payload };
        let scenes = self.replay.play(&signal);
        self.keep(scenes)
    }

    /// Nothing comes until then.
    pub fn wait(&mut self, until_ms: u64) -> &mut Self {
        let scenes = self.replay.run_until(Timestamp(until_ms));
        self.keep(scenes)
    }

    /// The last state shown.
    pub fn state(&self) -> &str {
        self.shown.last().map_or("nothing", String::as_str)
    }

    pub fn sessions(&self) -> usize {
        self.replay.sessions().count()
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
