//! Terminals: the processes that have one session open, each with a story of its own.
//!
//! `claude --resume` opens a session that another terminal has open, without a word in either.
//! Registry files name their process, hooks come from one; a transcript's line does neither, but
//! both write into one file, each behind its own lines and under its own prompts.
//! Invariant: nothing that one process says or leaves ends what another still does.

use std::collections::VecDeque;
use std::sync::Arc;

use qd_session::id::{AgentId, ProcessKey};
use qd_session::moment::Timestamp;
use qd_session::monitor::Monitor;

use super::echo::hash;
use super::notes::Notes;
use super::session::Session;
use super::wire::Line;
use crate::excerpt::head;

/// Most processes of one session remembered; it is seldom open twice.
const TERMINALS_MAX: usize = 8;

/// Prompts of one process that are remembered: a queued one may be told after the next.
const PROMPTS_MAX: usize = 16;

/// Lines of one process that are remembered. The next stands behind one of the last dozen.
const LINES_MAX: usize = 64;

/// After this long a process that was believed to have left, and speaks, is back.
const BACK_MS: u64 = 5_000;

/// Which process a signal is of.
#[derive(Debug, Clone, Copy)]
pub enum Whose<'a> {
    /// The one with this number.
    Process(u64),
    /// The same, and it says that it has the session open now, whatever was believed.
    Opened(u64),
    /// Whoever wrote the line.
    Line(&'a Line<'a>),
    /// Whoever was prompted so.
    Prompt(Option<&'a str>),
}

/// All processes of one session. There is always a first.
#[derive(Debug)]
pub struct Terminals {
    list: Vec<Terminal>,
    /// The time of the last transcript line that had one, and how many without came after it.
    line_at: Timestamp,
    untimed: u32,
}

#[derive(Debug, Default)]
pub struct Terminal {
    /// The agent that its main agent is to the monitor.
    pub lead: AgentId,
    pub pid: Option<u64>,
    pub key: Option<ProcessKey>,
    /// It works for a background job of the client's own supervisor.
    pub is_job: bool,
    left_at: Option<Timestamp>,
    prompts: VecDeque<Arc<str>>,
    lines: VecDeque<u64>,
    pub session: Session,
}

impl Default for Terminals {
    fn default() -> Self {
        let list = vec![Terminal::default()];
        Self { list, line_at: Timestamp::ZERO, untimed: 0 }
    }
}

impl Terminals {
    /// The process that a signal is of, a new one if need be; none where it is nobody's who could
    /// say it now.
    pub fn of(&mut self, now: Timestamp, whose: Whose<'_>) -> Option<&mut Terminal> {
        let at = match whose {
            Whose::Process(pid) => self.of_process(now, pid, false)?,
            Whose::Opened(pid) => self.of_process(now, pid, true)?,
            Whose::Line(line) => self.of_line(line)?,
            Whose::Prompt(prompt) => {
                prompt.and_then(|prompt| self.of_prompt(prompt)).or_else(|| self.only_open())?
            }
        };
        let shared = self.is_open_beside(at) || self.was_left_beside(at, now);
        let terminal = &mut self.list[at];
        terminal.session.shared = shared;
        terminal.session.process_known = terminal.pid.is_some();
        Some(terminal)
    }

    /// The last line that had a time, and which one after it a line without would be.
    pub fn untimed_line(&self) -> Option<(Timestamp, u32)> {
        let known = self.line_at > Timestamp::ZERO;
        known.then(|| (self.line_at, self.untimed.saturating_add(1)))
    }

    pub fn note_line_at(&mut self, happened: Option<Timestamp>) {
        match happened {
            Some(at) => (self.line_at, self.untimed) = (self.line_at.max(at), 0),
            None => self.untimed = self.untimed.saturating_add(1),
        }
    }

    /// The process with that number, if it has the session open.
    pub fn open_with(&mut self, pid: u64) -> Option<&mut Terminal> {
        self.list.iter_mut().find(|terminal| terminal.pid == Some(pid) && terminal.is_open())
    }

    /// Some process is known for certain to have it open.
    pub fn any_known(&self) -> bool {
        self.list.iter().any(|terminal| terminal.pid.is_some() && terminal.is_open())
    }

    pub fn all(&mut self) -> impl Iterator<Item = &mut Session> {
        self.list.iter_mut().map(|terminal| &mut terminal.session)
    }

    pub fn into_sessions(self) -> impl Iterator<Item = Session> {
        self.list.into_iter().map(|terminal| terminal.session)
    }

    pub fn next_due(&self) -> Option<Timestamp> {
        self.list.iter().filter_map(|terminal| terminal.session.next_due()).min()
    }

    pub fn heard_at(&self) -> Timestamp {
        self.list.iter().map(|terminal| terminal.session.heard_at).max().unwrap_or_default()
    }

    /// Whoever said that it leaves has left: the session goes on with the others, or is over.
    pub fn let_go(&mut self, notes: &mut Notes) {
        for at in 0..self.list.len() {
            let Some(leaving) = self.list[at].session.leaving.take() else { continue };
            let goes_on = self.is_open_beside(at);
            let terminal = &mut self.list[at];
            terminal.left_at = Some(notes.now);
            notes.lead = terminal.lead.clone();
            match goes_on {
                true => terminal.session.left(notes, terminal.key.clone()),
                false if leaving.respawns => terminal.session.worker_lost(notes),
                false => terminal.session.ended(notes, leaving.exit_code),
            }
        }
    }

    /// What was known before a restart: the processes beside the first, and who worked for whom
    /// is not known any more.
    pub fn recall(&mut self, known: &Monitor) {
        for pid in known.terminals().take(TERMINALS_MAX - 1) {
            self.list.push(Terminal::beside(pid));
        }
        for agent in known.working_subagents() {
            self.list[0].session.subagent_recalled(agent.id.as_str());
        }
    }

    fn of_process(&mut self, now: Timestamp, pid: u64, opened: bool) -> Option<usize> {
        let known = self.list.iter().position(|terminal| terminal.pid == Some(pid));
        if let Some(at) = known {
            let terminal = &mut self.list[at];
            let back = |left: &mut Timestamp| opened || now.ms_since(*left) > BACK_MS;
            terminal.left_at.take_if(back);
            return terminal.is_open().then_some(at);
        }
        let nobody = self.list.iter().all(|terminal| !terminal.is_open());
        // Whoever opens it again goes on in the first's place.
        if nobody || (self.list.len() == 1 && self.list[0].pid.is_none()) {
            self.list.truncate(1);
            let first = &mut self.list[0];
            (first.pid, first.key, first.left_at) = (Some(pid), None, None);
            first.session.opened_again(now);
            return Some(0);
        }
        if self.list.len() == TERMINALS_MAX {
            let gone = self.list.iter().skip(1).position(|terminal| !terminal.is_open());
            self.list.remove(1 + gone.unwrap_or(0));
        }
        self.list.push(Terminal::beside(pid));
        Some(self.list.len() - 1)
    }

    /// By its prompt, by the line it stands behind, by who else could have written it.
    fn of_line(&mut self, line: &Line<'_>) -> Option<usize> {
        let at = match self.list.len() {
            1 => 0,
            _ => {
                let prompt = line.prompt_id.as_deref();
                let agent = line.agent_id.as_deref();
                let writer = prompt
                    .and_then(|prompt| self.of_prompt(prompt))
                    .or_else(|| agent.and_then(|agent| self.of_subagent(agent)))
                    // A prompt that no hook told of stands behind what another process wrote last.
                    // One that waits for a person was not prompted.
                    .or_else(|| prompt.and_then(|_| self.only_busy().or_else(|| self.only_free())))
                    .or_else(|| self.of_parent(line.parent_uuid.as_deref()?))
                    .or_else(|| self.only_open())
                    .or_else(|| self.only_busy())?;
                // What a process that has left wrote last is told late.
                Some(writer).filter(|at| self.list[*at].is_open() || !self.any_known())?
            }
        };
        self.list[at].note_line(line);
        Some(at)
    }

    fn of_prompt(&self, prompt: &str) -> Option<usize> {
        self.list.iter().position(|one| one.prompts.iter().any(|known| **known == *prompt))
    }

    fn of_subagent(&self, agent: &str) -> Option<usize> {
        self.list.iter().position(|one| one.session.has_subagent(agent))
    }

    fn of_parent(&self, parent: &str) -> Option<usize> {
        let parent = hash(parent.as_bytes());
        self.list.iter().position(|one| one.lines.contains(&parent))
    }

    fn only_open(&self) -> Option<usize> {
        self.only(Terminal::is_open)
    }

    fn only_busy(&self) -> Option<usize> {
        self.only(|one| one.is_open() && one.session.registered.is_busy())
    }

    fn only_free(&self) -> Option<usize> {
        self.only(|one| one.is_open() && one.session.registered.waits_since().is_none())
    }

    fn only(&self, wanted: impl Fn(&Terminal) -> bool) -> Option<usize> {
        if self.list.len() == 1 {
            return Some(0);
        }
        let mut found = self.list.iter().enumerate().filter(|(_, one)| wanted(one));
        let (at, _) = found.next()?;
        found.next().is_none().then_some(at)
    }

    /// What another process wrote last may come now, and name nobody.
    fn was_left_beside(&self, at: usize, now: Timestamp) -> bool {
        let mut others = self.list.iter().enumerate().filter(|(other, _)| *other != at);
        others.any(|(_, one)| one.left_at.is_some_and(|left| now.ms_since(left) <= BACK_MS))
    }

    fn is_open_beside(&self, at: usize) -> bool {
        self.list.iter().enumerate().any(|(other, one)| other != at && one.is_open())
    }
}

impl Terminal {
    fn beside(pid: u64) -> Self {
        Self { lead: AgentId::terminal(pid), pid: Some(pid), ..Self::default() }
    }

    fn is_open(&self) -> bool {
        self.left_at.is_none()
    }

    /// It was prompted so: lines under that prompt are its own.
    pub fn prompted(&mut self, prompt: Option<&str>) {
        let Some(prompt) = prompt.filter(|prompt| !self.prompts.iter().any(|p| **p == **prompt))
        else {
            return;
        };
        if self.prompts.len() == PROMPTS_MAX {
            self.prompts.pop_front();
        }
        self.prompts.push_back(head(prompt, 128).into());
    }

    fn note_line(&mut self, line: &Line<'_>) {
        self.prompted(line.prompt_id.as_deref());
        let Some(uuid) = line.uuid.as_deref() else { return };
        if self.lines.len() == LINES_MAX {
            self.lines.pop_front();
        }
        self.lines.push_back(hash(uuid.as_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::story::Story;
    use crate::signal::{Channel, Direction};

    fn hook(event: &str) -> Value {
        json!({"hook_event_name": event})
    }

    fn prompt(id: &str) -> Value {
        json!({"hook_event_name": "UserPromptSubmit", "prompt_id": id, "prompt": "go"})
    }

    fn bash(event: &str, call: &str) -> Value {
        json!({"hook_event_name": event, "tool_name": "Bash", "tool_use_id": call,
            "tool_input": {"command": call}})
    }

    /// One terminal waits for a permission; another has resumed its session.
    fn both() -> Story {
        let mut story = Story::new();
        story
            .hook_of(0, "7", json!({"hook_event_name": "SessionStart", "source": "startup"}))
            .registry_of(10, 7, "idle", "")
            .hook_of(100, "7", prompt("p7"))
            .hook_of(500, "7", bash("PreToolUse", "c7"))
            .registry_of(600, 7, "waiting", "permission prompt")
            .shows("needs_permission")
            .hook_of(2_000, "8", json!({"hook_event_name": "SessionStart", "source": "resume"}))
            .registry_of(2_100, 8, "idle", "")
            .shows("needs_permission");
        story
    }

    #[test]
    fn what_one_terminal_does_and_how_it_leaves_closes_nothing_of_the_other() {
        let leave: [fn(&mut Story); 3] = [
            |story| {
                let end = json!({"hook_event_name": "SessionEnd", "reason": "prompt_input_exit"});
                story.hook_of(5_000, "8", end).exited_of(5_100, 8);
            },
            |story| {
                story.exited_of(5_000, 8);
            },
            |story| {
                let removed = json!({"pid": 8, "sessionId": "s1", "removed": true}).to_string();
                let from = Direction::FromAgent;
                story.signal(5_000, Channel::Registry, from, None, removed.as_bytes());
            },
        ];
        for leave in leave {
            let mut story = both();
            story.hook_of(3_000, "8", prompt("p8")).registry_of(3_050, 8, "busy", "");
            story.hook_of(4_000, "8", hook("Stop")).registry_of(4_010, 8, "idle", "");
            story.wait_until(4_900).shows("needs_permission");
            leave(&mut story);
            story.wait_until(9_000).shows("needs_permission").waits_for(1);
            story.registry_of(10_000, 7, "busy", "").shows("acting");
            story.exited_of(11_000, 7).shows("session_ended");
        }
    }

    #[test]
    fn the_result_that_a_resuming_process_makes_up_closes_nothing() {
        let result = json!({"type": "user", "promptId": "p8", "uuid": "u1",
            "toolDenialKind": "interrupted", "message": {"content": [
                {"type": "tool_result", "tool_use_id": "c7", "is_error": true}]}});
        let no_response = json!({"type": "assistant", "uuid": "u2", "parentUuid": "u1",
            "message": {"id": "m", "model": "<synthetic>", "stop_reason": "stop_sequence",
                "content": [{"type": "text", "text": "No response requested."}]}});
        let mut story = both();
        story.hook_of(3_000, "8", prompt("p8")).line(3_100, result).line(3_101, no_response);
        story.wait_until(9_000).shows("needs_permission");
        // The call's own result comes under its own prompt.
        let result = json!({"type": "user", "promptId": "p7", "message": {"content": [
            {"type": "tool_result", "tool_use_id": "c7"}]}});
        story.line(9_500, result).waits_for(0);
    }

    #[test]
    fn a_line_belongs_to_the_process_whose_line_it_stands_behind() {
        let prompted = json!({"type": "user", "promptId": "p8", "uuid": "u1",
            "message": {"content": "go"}});
        let done = json!({"type": "system", "subtype": "turn_duration", "uuid": "u2",
            "parentUuid": "u1"});
        let mut story = both();
        story.hook_of(3_000, "8", prompt("p8")).line(3_010, prompted).line(3_500, done);
        story.wait_until(4_000).shows("needs_permission").waits_for(1);
    }

    #[test]
    fn without_hooks_a_prompt_is_not_of_the_process_that_waits() {
        let result = json!({"type": "user", "promptId": "p8", "uuid": "u8", "parentUuid": "u7",
            "toolDenialKind": "interrupted", "message": {"content": [
                {"type": "tool_result", "tool_use_id": "c7", "is_error": true}]}});
        let prompted = json!({"type": "user", "promptId": "p8", "uuid": "u9", "parentUuid": "u8",
            "message": {"content": "go"}});
        let done = json!({"type": "system", "subtype": "turn_duration", "parentUuid": "u9"});
        let call = json!({"type": "assistant", "uuid": "u7", "message": {"id": "m1",
            "stop_reason": "tool_use", "content": [
                {"type": "tool_use", "id": "c7", "name": "Bash", "input": {"command": "ls"}}]}});
        let mut story = Story::new();
        story.registry_of(10, 7, "busy", "").line(100, call);
        story.registry_of(600, 7, "waiting", "permission prompt").shows("needs_permission");
        story.registry_of(2_000, 8, "idle", "").registry_of(3_000, 8, "busy", "");
        story.registry_of(3_100, 8, "idle", "");
        story.line(3_000, result).line(3_010, prompted).line(3_090, done);
        story.wait_until(9_000).shows("needs_permission").waits_for(1);
    }

    #[test]
    fn of_two_terminals_the_one_at_work_is_shown() {
        let mut story = Story::new();
        story.hook_of(0, "7", prompt("p1")).registry_of(10, 7, "busy", "");
        story.hook_of(500, "7", hook("Stop")).registry_of(510, 7, "idle", "");
        story.registry_of(1_000, 8, "idle", "").wait_until(1_500).shows("idle");
        story.hook_of(2_000, "8", prompt("p2")).shows("thinking");
        story.registry_of(2_500, 7, "idle", "").wait_until(4_000).shows("thinking");
        story.exited_of(5_000, 7).shows("thinking");
        story.exited_of(6_000, 8).shows("session_ended");
    }

    #[test]
    fn a_session_that_all_have_left_is_opened_again_in_the_firsts_place() {
        let mut story = both();
        story.exited_of(5_000, 7).wait_until(6_000).shows("idle").waits_for(0);
        story.exited_of(7_000, 8).shows("session_ended");
        story.hook_of(8_000, "9", json!({"hook_event_name": "SessionStart", "source": "resume"}));
        story.wait_until(9_000).shows("idle");
        story.hook_of(9_100, "9", prompt("p9")).shows("thinking");
        assert_eq!(story.monitor().terminals().count(), 0);
    }

    #[test]
    fn the_last_words_of_a_process_that_left_wake_nothing() {
        let mut story = Story::new();
        story.hook_of(0, "7", prompt("p1")).registry_of(10, 7, "busy", "");
        story.hook_of(500, "7", hook("Stop")).registry_of(510, 7, "idle", "");
        let clear = json!({"hook_event_name": "SessionEnd", "reason": "clear"});
        story.hook_of(2_000, "7", clear).shows("session_ended");
        story.registry_of(2_050, 7, "busy", "").wait_until(4_000).shows("session_ended");
    }

    #[test]
    fn the_totals_of_a_process_that_left_end_nothing_of_the_other() {
        let mut story = Story::new();
        story.registry_of(100, 7, "idle", "").registry_of(2_000, 8, "idle", "").shows("idle");
        let from = Direction::FromAgent;
        let removed = json!({"pid": 7, "sessionId": "s1", "removed": true}).to_string();
        story.signal(5_000, Channel::Registry, from, None, removed.as_bytes());
        let totals = json!({"type": "cost-state", "sessionId": "s1"}).to_string();
        story.signal(5_100, Channel::Transcript, from, None, totals.as_bytes());
        story.wait_until(9_000).shows("idle").never_showed("session_ended");
    }

    /// The registry file of a worker for a background job.
    fn worker(story: &mut Story, at: u64, pid: u64, session: &str, status: Option<&str>) {
        let mut file = json!({"pid": pid, "sessionId": session, "procStart": "99", "kind": "bg",
            "entrypoint": "cli", "jobId": "j", "statusUpdatedAt": super::super::story::START + at});
        if let Some(status) = status {
            file["status"] = status.into();
        }
        let text = file.to_string();
        story.signal(at, Channel::Registry, Direction::FromAgent, None, text.as_bytes());
    }

    /// What its supervisor writes of the job.
    fn job(story: &mut Story, at: u64, state: &str) {
        let text = json!({"sessionId": "s1", "state": state, "tempo": "blocked"}).to_string();
        let file = Some("/home/ann/.claude/jobs/j/state.json");
        story.signal(at, Channel::Registry, Direction::FromAgent, file, text.as_bytes());
    }

    /// A background session that waits for a permission, with no terminal attached.
    fn in_the_background() -> Story {
        let mut story = Story::new();
        job(&mut story, 0, "working");
        assert!(story.is_empty(), "a job alone is no session");
        worker(&mut story, 100, 7, "s1", Some("busy"));
        story.hook_of(200, "7", prompt("p1")).shows("thinking");
        story.hook_of(500, "7", bash("PreToolUse", "c7"));
        let file = json!({"pid": 7, "sessionId": "s1", "procStart": "99", "jobId": "j",
            "status": "waiting", "waitingFor": "permission prompt",
            "statusUpdatedAt": super::super::story::START + 600});
        let text = file.to_string();
        story.signal(600, Channel::Registry, Direction::FromAgent, None, text.as_bytes());
        story.wait_until(9_000).shows("needs_permission");
        story
    }

    #[test]
    fn a_background_session_outlives_the_worker_that_is_replaced() {
        let mut story = in_the_background();
        story.exited_of(10_000, 7).shows("delegating").waits_for(0);
        // It begins under a name of its own, idle, and goes on by itself.
        worker(&mut story, 22_000, 8, "another", None);
        worker(&mut story, 23_000, 8, "s1", None);
        worker(&mut story, 23_050, 8, "s1", Some("idle"));
        story.hook_of(23_100, "8", json!({"hook_event_name": "SessionStart", "source": "resume"}));
        story.shows("delegating");
        worker(&mut story, 23_200, 8, "s1", Some("busy"));
        story.wait_until(24_500).shows("thinking").never_showed("idle");
        story.hook_of(
            25_000,
            "8",
            json!({"hook_event_name": "Stop", "background_tasks": [],
            "last_assistant_message": "Done."}),
        );
        story.wait_until(60_000).shows("task_complete");
    }

    #[test]
    fn a_replaced_worker_that_has_nothing_to_do_is_at_its_prompt() {
        let mut story = in_the_background();
        story.exited_of(10_000, 7).shows("delegating");
        worker(&mut story, 22_000, 8, "s1", Some("idle"));
        story.wait_until(24_000).shows("idle");
        story.exited_of(61_000, 8).shows("delegating");
        job(&mut story, 62_000, "stopped");
        story.shows("session_ended");
    }

    #[test]
    fn a_lost_worker_that_nobody_replaces_ends_its_session() {
        let mut story = in_the_background();
        story.exited_of(10_000, 7).wait_until(69_000).shows("delegating");
        story.wait_until(71_000).shows("session_ended");
        // Its supervisor says that it tries: that may take long.
        let mut story = in_the_background();
        story.exited_of(10_000, 7);
        job(&mut story, 10_100, "crashed");
        story.wait_until(300_000).shows("delegating");
        worker(&mut story, 301_000, 8, "s1", Some("idle"));
        story.wait_until(303_000).shows("idle");
    }

    #[test]
    fn a_worker_of_a_stopped_session_is_not_waited_for() {
        let mut story = in_the_background();
        job(&mut story, 9_900, "stopped");
        story.exited_of(10_000, 7).shows("session_ended").never_showed("delegating");
        // It is taken up again later.
        job(&mut story, 20_000, "working");
        worker(&mut story, 21_000, 8, "s1", Some("idle"));
        story.exited_of(30_000, 8).shows("delegating");
        // It took its file away and left, whatever its job says.
        let mut story = in_the_background();
        let left = json!({"sessionId": "s1", "pid": 7, "procStart": "99", "exited": true,
            "removed": true});
        let from = Direction::FromAgent;
        story.signal(10_000, Channel::Process, from, None, left.to_string().as_bytes());
        story.shows("session_ended").never_showed("delegating");
    }
}
