//! A session that did some things, and how it is shown.

use qd_session::id::CallId;
use qd_session::moment::{Source, Timestamp};
use qd_session::monitor::{AgentEvent, Fact, Monitor, Place};
use qd_session::operator::layer::{Icon, Known, Layers};
use qd_session::operator::{AgentState, resolve};

#[derive(Debug, Default)]
pub struct World {
    pub monitor: Monitor,
    now: u64,
    calls: u32,
}

impl World {
    /// In a turn, in `/home/u/acme`.
    pub fn working() -> Self {
        let mut world = Self { now: 1_000_000, ..Self::default() };
        world.at("/home/u/acme", None);
        world.tell(Fact::TurnStarted);
        world
    }

    pub fn at(&mut self, cwd: &str, branch: Option<&str>) {
        let (cwd, branch) = (Some(cwd.into()), branch.map(Into::into));
        self.tell(Fact::PlaceKnown { place: Place { cwd, branch, ..Place::default() } });
    }

    pub fn tell(&mut self, fact: Fact) {
        self.now += 1_000;
        self.monitor.apply(&AgentEvent::main(Timestamp(self.now), Source::Hook, fact));
    }

    pub fn start(&mut self, tool: &str, about: &str) -> CallId {
        self.calls += 1;
        let call = CallId::new(format!("call-{}", self.calls));
        let about = Some(about.into());
        self.tell(Fact::ToolStarted { call: call.clone(), tool: tool.into(), about });
        call
    }

    pub fn end(&mut self, call: CallId, ok: bool, exit_code: Option<i32>) {
        self.tell(Fact::ToolCompleted { call, ok, exit_code });
    }

    /// A command that returned this.
    pub fn ran(mut self, command: &str, exit_code: i32) -> Self {
        let call = self.start("Bash", command);
        self.end(call, exit_code == 0, Some(exit_code));
        self
    }

    pub fn wrote(mut self, tool: &str, path: &str) -> Self {
        let call = self.start(tool, path);
        self.end(call, true, None);
        self
    }

    pub fn said(mut self, last_message: &str) -> Self {
        let last_message = Some(last_message.into());
        self.tell(Fact::TurnCompleted { last_message, background: None, cut_off: false });
        self
    }

    pub fn finished(self) -> Self {
        self.said("All done.")
    }

    pub fn state(&self) -> AgentState {
        resolve(Timestamp(self.now), &self.monitor)
    }

    pub fn shown(&self, layers: &Layers) -> (AgentState, Option<Icon>) {
        let mut state = self.state();
        let project = self.monitor.about().and_then(|about| about.cwd.as_ref());
        let known = Known {
            state: &state,
            monitor: &self.monitor,
            harness: "claude_code",
            project: project.map(|cwd| &*cwd.value),
        };
        let icon = layers.dress(&known).and_then(|dress| dress.put_on(&mut state));
        (state, icon)
    }

    /// The label and the icon, with the built-in layers alone.
    #[track_caller]
    pub fn reads(&self, label: &str, icon: Option<Icon>) {
        let (state, shown) = self.shown(&Layers::default());
        assert_eq!((state.label.as_str(), shown), (label, icon), "{state:?}");
    }
}
