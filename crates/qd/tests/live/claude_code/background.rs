//! Background sessions (`claude --bg`): a worker of the client's own supervisor has the session, and
//! no terminal. The registry and the jobs folder are the witnesses.

use qd_testbed::Headless;
use rustix::process::{Pid, Signal, kill_process};

use super::*;

/// A session that runs in the background, and the daemon.
struct Background {
    world: World,
    session: String,
    /// Whatever it has left behind ends with it.
    _launcher: Headless,
}

impl Background {
    fn prompted(hooks: Hooks, script: Script, prompt: &str) -> Self {
        let world = World::served(script);
        let client = client(&world);
        if hooks == Installed {
            world.install_hooks("claude-code", &client);
        }
        let launcher = client.arguments(["--bg", prompt]).headless().unwrap();
        launcher.wait_for_line("the job's name", |line| line.contains("backgrounded")).unwrap();
        let session = eventually("a job", || {
            let jobs = std::fs::read_dir(world.home.path().join(".claude/jobs")).ok()?;
            let mut states = jobs.filter_map(|job| {
                let text = std::fs::read_to_string(job.ok()?.path().join("state.json")).ok()?;
                let state: Value = serde_json::from_str(&text).ok()?;
                state["sessionId"].as_str().map(str::to_owned)
            });
            states.next()
        });
        Self { world, session, _launcher: launcher }
    }

    /// The process that has the session, once it says that it does this.
    fn worker(&self, status: &str, other_than: Option<Pid>) -> Pid {
        let folder = self.world.home.path().join(".claude/sessions");
        eventually(&format!("a worker that is {status}"), || {
            let files = std::fs::read_dir(&folder).ok()?;
            let files = files.filter_map(|file| std::fs::read_to_string(file.ok()?.path()).ok());
            let mut workers = files.filter_map(|text| serde_json::from_str::<Value>(&text).ok());
            workers.find_map(|it| {
                let is_meant = it["sessionId"] == *self.session && it["status"] == status;
                let pid = it["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok());
                let pid = pid.filter(|_| is_meant).and_then(Pid::from_raw);
                pid.filter(|pid| Some(*pid) != other_than)
            })
        })
    }

    fn asks(&self) -> Value {
        self.worker("waiting", None);
        self.world.wait(&self.session, "needs-permission");
        eventually("what it wants to run", || {
            let card = self.only_card();
            let request = card["requests"].as_array()?.first()?;
            (request["input"]["command"] == "touch made").then_some(card.clone())
        })
    }

    /// Spare workers and names that a worker has only at its start have no card.
    fn only_card(&self) -> Value {
        let mut cards = self.world.status();
        assert_eq!(cards.len(), 1, "{cards:#?}");
        let card = cards.pop().expect("a card");
        assert_eq!(card["vendorId"], *self.session);
        card
    }

    fn stop(&self) {
        let program = client(&self.world);
        let program = program.program_path();
        let claude = Client::program("claude", program, &self.world.home, &self.world.model);
        let short = self.session.split('-').next().expect("the job's name");
        let stop = claude.arguments(["stop", short]).headless().unwrap();
        assert!(stop.wait_for_exit().unwrap().success(), "{:?}", stop.errors());
    }
}

/// It asks with nobody there, its worker is killed and replaced, and it is stopped.
fn a_background_session_outlives_its_worker(hooks: Hooks) {
    let script = Script::new()
        .when_user_says("make a file", Reply::calls("Bash", touch("made")))
        .then_always(Reply::says("It goes on."));
    let background = Background::prompted(hooks, script, "make a file");
    let card = background.asks();
    assert_eq!(group_and_state(&card), "needs_you/needs_permission");
    let lost = background.worker("waiting", None);
    kill_process(lost, Signal::KILL).unwrap();
    let card = background.world.wait(&background.session, "autonomous");
    assert_eq!(card["requests"], json!([]), "nobody is left to take an answer");
    background.worker("idle", Some(lost));
    background.world.wait(&background.session, "task-complete");
    background.only_card();
    background.stop();
    background.world.wait(&background.session, "session-ended");
    background.only_card();
    let shown = background.world.shown(&background.session);
    let ends = shown.iter().filter(|state| *state == "session_ended").count();
    assert_eq!(ends, 1, "{shown:?}");
}

#[test]
fn a_background_session_outlives_its_worker_with_hooks() {
    a_background_session_outlives_its_worker(Installed);
}

#[test]
fn a_background_session_outlives_its_worker_without_hooks() {
    a_background_session_outlives_its_worker(Missing);
}

/// Nobody has it on a screen: the board answers it.
#[test]
fn a_background_session_is_answered_from_elsewhere() {
    let script = Script::new()
        .when_user_says("make a file", Reply::calls("Bash", touch("made")))
        .then_always(Reply::says("It is made."));
    let background = Background::prompted(Installed, script, "make a file");
    background.asks();
    background.world.must(&["approve", &background.session]);
    background.world.wait(&background.session, "task-complete");
    assert!(background.world.home.workspace().join("made").exists());
}
