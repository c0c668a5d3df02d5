//! The registry: `sessions/<pid>.json`, the client's own word on what it does.
//!
//! It covers what fires no hook: Esc, dialogs of all kinds, background shells. Its status counts
//! from `statusUpdatedAt`; the file is read again and again, so the same status is news once.

use qd_session::id::AgentId;
use qd_session::moment::Timestamp;
use qd_session::monitor::{Fact, Place};

use super::holders::Kind as Holder;
use super::notes::Notes;
use super::request::Kind;
use super::session::{HOLD_MS, Leaving, Session};
use super::wire::Registry;
use crate::excerpt::{head, label};
use crate::process::process_key;

/// Hooks are stamped when they arrive, a little after the registry: what began this much later
/// than a status may still be what the status is about.
const HOOK_DELAY_MS: u64 = 1_000;

/// Between the end of work in the background and the turn that it wakes, the client calls itself
/// idle for up to 652 ms.
const WAKE_MS: u64 = 1_000;

/// The last status of the process.
#[derive(Debug, Default)]
pub struct Registered {
    seen: bool,
    status: Option<Status>,
}

#[derive(Debug)]
struct Status {
    changed_at: Timestamp,
    waits: bool,
    is_busy: bool,
    is_panel: bool,
}

impl Registered {
    /// Since when it waits for a person.
    pub fn waits_since(&self) -> Option<Timestamp> {
        self.status.as_ref().filter(|status| status.waits).map(|status| status.changed_at)
    }

    /// The person has opened a panel, and the client waits for them.
    pub fn is_panel(&self) -> bool {
        self.status.as_ref().is_some_and(|status| status.is_panel)
    }

    pub fn is_busy(&self) -> bool {
        self.status.as_ref().is_some_and(|status| status.is_busy)
    }

    /// True if it had no such status, or an older one.
    fn is_news(&mut self, status: Status) -> bool {
        let known = self.status.as_ref();
        let news = known.is_none_or(|known| status.changed_at > known.changed_at);
        if news {
            self.status = Some(status);
        }
        news
    }
}

/// When the status became what it is.
pub fn changed_at(file: &Registry) -> Option<Timestamp> {
    file.status_updated_at.or(file.updated_at).map(Timestamp)
}

pub fn take(session: &mut Session, notes: &mut Notes, file: &Registry) {
    if file.removed == Some(true) {
        // The client takes it away when it leaves.
        session.leaving = Some(Leaving::default());
        return;
    }
    if let Some(kind) = file.entrypoint.as_deref().and_then(Holder::of_entrypoint) {
        session.holders.seen(kind);
    }
    about(session, notes, file);
    let first = session.registered.status.is_none();
    let status = file.status.as_deref().unwrap_or_default();
    // A panel that the person opened needs nobody: they sit in front of it.
    let is_panel = file.waiting_for.as_deref() == Some("dialog open");
    let (waits, is_busy) = (status == "waiting" && !is_panel, status == "busy");
    let now = Status { changed_at: notes.at, waits, is_busy, is_panel };
    // At its start a client has none.
    let news = !status.is_empty() && session.registered.is_news(now);
    if !news && session.registered.seen {
        return;
    }
    session.registered.seen = true;
    session.stays();
    if let Some(pid) = file.pid {
        notes.tell_main(Fact::ProcessSeen { process: process_key(pid, file.proc_start.as_ref()) });
    }
    // Who is busy has not just started: that would look like rest until its work is told.
    if let Some(started_at) = file.started_at.map(Timestamp).filter(|_| !is_busy) {
        // It may have been resumed after an end that named no process.
        let started = Fact::SessionStarted { process: None };
        notes.tell_at(started_at, &AgentId::MAIN, started);
    }
    match status {
        "waiting" if is_panel && session.requests.is_empty() => {}
        "waiting" => waiting(session, notes, file.waiting_for.as_deref()),
        "busy" => busy(session, notes),
        "shell" => {
            answered(session, notes);
            if session.background.count() == 0 {
                session.background.launched("shell");
            }
            session.turn_ended(notes, None, false);
        }
        "idle" => idle(session, notes, first),
        _ => {}
    }
}

fn about(session: &mut Session, notes: &mut Notes, file: &Registry) {
    let cwd = file.cwd.as_deref().map(|path| head(path, 4 << 10).into());
    let version = file.version.as_deref().map(label);
    session.place_known(notes, Place { cwd, version, ..Place::default() });
    // A derived name is the folder's with a number: no title.
    if let (Some("user"), Some(name)) = (file.name_source.as_deref(), file.name.as_deref()) {
        session.title_known(notes, name, true);
    }
}

fn waiting(session: &mut Session, notes: &mut Notes, waiting_for: Option<&str>) {
    let by = notes.at.plus_ms(HOOK_DELAY_MS);
    let nothing_open = session.requests.is_empty() && session.calls.newest_open(by).is_none();
    if nothing_open && session.moved_at > notes.at {
        // Old news: whatever it waited for has gone on since.
        return;
    }
    let kind = match waiting_for {
        Some("input needed") => Kind::Question,
        _ => Kind::Permission,
    };
    session.dialog_opened(notes, by, kind, None);
}

/// It does not wait, so what was asked before is answered.
fn answered(session: &mut Session, notes: &mut Notes) {
    for call in session.requests.resolve_until(notes, notes.at) {
        session.calls.answered(notes.now, &call);
    }
}

/// At its prompt a client is busy for a moment with `/clear` and the like. What lasts is work,
/// also where no prompt was heard of: a command that the person runs with `!`.
fn busy(session: &mut Session, notes: &mut Notes) {
    let is_answer = session.requests.any_until(notes.at);
    answered(session, notes);
    if session.is_delegating() {
        // With the turn over, it is its subagents that are busy.
    } else if session.is_at_rest() && !is_answer {
        session.hold(notes, HOLD_MS, notes.sighting(&AgentId::MAIN, Fact::LlmStarted));
    } else {
        notes.tell_main(Fact::LlmStarted);
    }
}

/// The file is ahead of the transcript by some ten milliseconds: where a turn was under way, how
/// it ended is about to be told, and until then "idle" would call a person for nothing. What was
/// asked is over with the turn, and not before: else it would look like work meanwhile.
fn idle(session: &mut Session, notes: &mut Notes, first: bool) {
    // A moment of being busy that is over before it was told was none.
    let was_busy = !session.drop_held_work(notes.at);
    let is_settled = (session.is_idle() || !was_busy) && session.requests.is_empty();
    // A worker that replaces another begins idle, and may go on with what was cut off.
    let delegated = session.delegates() || session.takes_over(notes.now);
    let mut told = session.requests.resolutions_until(notes, notes.at);
    told.extend(session.subagents_over(notes));
    let background = session.background.registry_idle();
    let end = Fact::TurnCompleted { last_message: None, background, cut_off: false };
    told.push(notes.sighting(&AgentId::MAIN, end));
    session.rest(notes.at);
    if !delegated && (first || is_settled) {
        session.release(notes);
        notes.add(told);
        return;
    }
    let hold_ms = if delegated { WAKE_MS } else { HOLD_MS };
    for sighting in told {
        session.hold(notes, hold_ms, sighting);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::story::Story;

    #[test]
    fn a_waiting_registry_calls_a_person_at_once() {
        Story::prompted()
            .bash(500, "PreToolUse", "c1")
            .bash_permission(600, "c1")
            .registry(650, 590, "waiting", "permission prompt")
            .shows("needs_permission")
            .registry(3_000, 2_900, "busy", "")
            .shows("acting");
    }

    #[test]
    fn the_same_file_read_again_is_no_news() {
        Story::prompted()
            .bash(500, "PreToolUse", "c1")
            .registry(650, 590, "waiting", "permission prompt")
            .shows("needs_permission")
            .bash(3_000, "PostToolUse", "c1")
            .registry(5_000, 590, "waiting", "permission prompt")
            .shows("thinking");
    }

    #[test]
    fn a_dialog_that_went_on_before_it_was_read_is_not_opened() {
        Story::prompted()
            .bash(500, "PreToolUse", "c1")
            .bash(3_000, "PostToolUse", "c1")
            .registry(5_000, 590, "waiting", "permission prompt")
            .never_showed("needs_permission");
    }

    #[test]
    fn a_dialog_of_any_kind_needs_you() {
        Story::prompted().registry(900, 800, "waiting", "input needed").shows("awaiting_input");
    }

    #[test]
    fn the_transcript_tells_late_what_a_dialog_is_about() {
        let call = |tool: &str| {
            json!({"type": "assistant", "message": {"id": "m1", "stop_reason": "tool_use", "content": [
                {"type": "tool_use", "id": "c1", "name": tool, "input": {"command": "ls"}}]}})
        };
        let mut story = Story::prompted();
        story.registry(900, 850, "waiting", "permission prompt").shows("needs_permission");
        story.line(950, call("Bash")).shows("needs_permission");
        let open: Vec<&str> =
            story.monitor().open_requests().map(|open| open.id.as_str()).collect();
        assert_eq!(open, ["c1"]);
        story.registry(3_000, 2_900, "busy", "").shows("acting");
        Story::prompted()
            .registry(900, 850, "waiting", "permission prompt")
            .line(950, call("ExitPlanMode"))
            .shows("awaiting_approval")
            .registry(3_000, 2_900, "busy", "")
            .shows("acting");
    }

    #[test]
    fn a_prompt_told_late_leaves_the_dialog_of_its_turn() {
        let prompt = json!({"type": "user", "promptId": "p2",
            "message": {"role": "user", "content": "go on"}});
        let call = json!({"type": "assistant", "message": {"id": "m1", "stop_reason": "tool_use",
            "content": [{"type": "tool_use", "id": "c1", "name": "ExitPlanMode", "input": {}}]}});
        Story::prompted()
            .stop(300, "Done.")
            .registry(1_000, 990, "waiting", "permission prompt")
            .line(900, prompt)
            .line(950, call)
            .shows("awaiting_approval");
    }

    /// Without hooks: a turn that starts a subagent in the background, line by line.
    fn launch() -> [serde_json::Value; 3] {
        let prompt = json!({"type": "user", "promptId": "p1", "entrypoint": "cli",
            "message": {"content": "send somebody"}});
        let call = json!({"type": "assistant", "message": {"id": "m1", "stop_reason": "tool_use",
            "content": [{"type": "tool_use", "id": "c1", "name": "Agent", "input": {}}]}});
        let launched = json!({"type": "user",
            "toolUseResult": {"status": "async_launched", "agentId": "a1"},
            "message": {"content": [{"type": "tool_result", "tool_use_id": "c1"}]}});
        [prompt, call, launched]
    }

    /// What the subagent writes, a little late.
    fn subagent_asks(story: &mut Story) {
        let prompt = json!({"type": "user", "isSidechain": true, "agentId": "a1",
            "message": {"content": "make a file"}});
        let call = json!({"type": "assistant", "isSidechain": true, "agentId": "a1",
            "message": {"id": "m2", "stop_reason": "tool_use", "content": [
                {"type": "tool_use", "id": "c2", "name": "Bash", "input": {"command": "touch a"}}]}});
        story.line(620, prompt).line(840, call);
    }

    fn check_subagent_waits(story: &mut Story) {
        story.wait_until(2_000).shows("needs_permission");
        subagent_asks(story);
        story.shows("needs_permission");
        let open: Vec<(&str, &str)> = story
            .monitor()
            .open_requests()
            .map(|open| (open.agent.as_str(), open.id.as_str()))
            .collect();
        assert_eq!(open, [("a1", "c2")]);
        story.registry(3_000, 2_900, "busy", "").shows("delegating").waits_for(0);
    }

    #[test]
    fn the_main_turns_end_does_not_close_a_subagents_dialog() {
        let mut story = Story::new();
        let [prompt, call, launched] = launch();
        story.line(100, prompt).line(500, call).line(600, launched);
        story.registry(900, 850, "waiting", "permission prompt").shows("needs_permission");
        story.said(1_000, "end_turn", "Somebody is on it.").shows("needs_permission");
        check_subagent_waits(&mut story);
    }

    #[test]
    fn a_subagents_dialog_may_be_ahead_of_the_call_that_started_it() {
        let mut story = Story::new();
        let [prompt, call, launched] = launch();
        story.line(100, prompt);
        story.registry(900, 850, "waiting", "permission prompt").shows("needs_permission");
        story.line(500, call).line(600, launched).shows("needs_permission");
        story.said(1_000, "end_turn", "Somebody is on it.").shows("needs_permission");
        check_subagent_waits(&mut story);
    }

    #[test]
    fn a_dialog_after_the_main_turns_end_is_a_subagents() {
        let mut story = Story::new();
        let [prompt, call, launched] = launch();
        story.line(100, prompt).line(500, call).line(600, launched);
        story.said(700, "end_turn", "Somebody is on it.").wait_until(1_100).shows("delegating");
        story.registry(1_200, 1_150, "waiting", "permission prompt").shows("needs_permission");
        story.registry(3_000, 2_900, "busy", "").shows("delegating").waits_for(0);
    }

    /// The registry is read before the transcript's line of the end, which is older.
    #[test]
    fn a_dialog_told_before_an_older_end_is_closed_by_its_own_answer() {
        let mut story = Story::new();
        let [prompt, call, launched] = launch();
        story.line(100, prompt).line(500, call).line(600, launched);
        story.registry(1_200, 1_150, "waiting", "permission prompt").shows("needs_permission");
        story.said(700, "end_turn", "Somebody is on it.").wait_until(2_000);
        story.shows("needs_permission");
        story.registry(3_000, 2_900, "busy", "").waits_for(0);
    }

    #[test]
    fn an_idle_ahead_of_the_transcript_calls_nobody() {
        Story::prompted()
            .registry(200, 150, "busy", "")
            .registry(900, 850, "idle", "")
            .shows("thinking")
            .said(840, "end_turn", "Done.")
            .shows("task_complete")
            .wait_until(2_000)
            .shows("task_complete");
    }

    #[test]
    fn the_rest_before_a_turn_that_background_work_wakes_is_not_shown() {
        let subagent = |event: &str| json!({"hook_event_name": event, "agent_id": "a1", "agent_type": "Explore"});
        let stop = json!({"hook_event_name": "Stop", "last_assistant_message": "Somebody is on it.",
            "background_tasks": [{"id": "a1", "type": "subagent", "status": "running"}]});
        Story::prompted()
            .hook(400, subagent("SubagentStart"))
            .hook(500, stop)
            .registry(600, 550, "busy", "")
            .wait_until(1_500)
            .shows("delegating")
            .hook(5_000, subagent("SubagentStop"))
            .registry(5_050, 5_040, "idle", "")
            .prompt(5_700, "p2", "<task-notification>\n<task-id>a1</task-id>")
            .shows("thinking")
            .never_showed("task_complete");
    }

    #[test]
    fn who_is_first_heard_of_as_busy_is_not_at_rest() {
        Story::new()
            .registry(900, 100, "busy", "")
            .wait_until(1_300)
            .shows("thinking")
            .never_showed("idle");
    }

    #[test]
    fn who_waits_for_a_person_has_not_written_the_totals() {
        let mut story = Story::new();
        story.registry(900, 850, "waiting", "permission prompt").shows("needs_permission");
        let line = json!({"type": "cost-state", "sessionId": "s1"}).to_string();
        let (channel, from) = (crate::Channel::Transcript, crate::Direction::FromAgent);
        story.signal(1_000, channel, from, None, line.as_bytes());
        story.wait_until(9_000).shows("needs_permission");
    }

    #[test]
    fn a_command_of_the_persons_own_is_work_without_a_prompt() {
        Story::new()
            .registry(100, 50, "idle", "")
            .shows("idle")
            .registry(5_000, 4_900, "busy", "")
            .wait_until(6_000)
            .shows("thinking")
            .stop(9_000, "It says hi.")
            .registry(9_200, 9_100, "idle", "")
            .wait_until(10_000)
            .shows("task_complete");
    }

    #[test]
    fn a_panel_that_the_person_opened_needs_nobody() {
        Story::prompted()
            .stop(500, "Done.")
            .registry(900, 850, "idle", "")
            .shows("task_complete")
            .registry(5_000, 4_900, "waiting", "dialog open")
            .wait_until(9_000)
            .shows("task_complete")
            .waits_for(0);
    }

    #[test]
    fn esc_fires_no_hook_and_the_registry_tells() {
        Story::prompted()
            .bash(500, "PreToolUse", "c1")
            .registry(5_000, 4_900, "idle", "")
            .shows("idle");
    }

    #[test]
    fn a_stale_busy_does_not_reopen_a_turn() {
        Story::prompted()
            .stop(500, "Done.")
            .registry(900, 110, "busy", "")
            .wait_until(2_000)
            .shows("task_complete");
    }

    #[test]
    fn a_shell_in_the_background_is_work() {
        Story::prompted().registry(900, 800, "shell", "").shows("delegating");
    }
}
