//! A process that is stopped, and one that shows no sign of life: the kernel is the witness.

use rustix::process::{Pid, Signal, kill_process};

use super::*;

impl Claude {
    fn signal(&self, signal: Signal) {
        let pid = self.terminal.pid().and_then(|pid| i32::try_from(pid).ok());
        let pid = pid.and_then(Pid::from_raw).expect("it runs");
        kill_process(pid, signal).unwrap();
    }
}

/// Stopped in the middle of an answer, let go on, delivered.
fn a_stopped_client_needs_you_until_it_goes_on(hooks: Hooks) {
    let gate = Gate::new();
    let script = Script::new().replies(Reply::says("It is all here.").held_before_start(&gate));
    let claude = Claude::observed(hooks, script);
    claude.agree("idle", "idle");
    claude.submit("look around");
    claude.agree("busy", "thinking");
    claude.signal(Signal::STOP);
    let session = claude.session();
    let card = claude.world.wait(&session, "stopped");
    assert_eq!(group_and_state(&card), "needs_you/stopped");
    assert_eq!(card["agentState"]["context"]["hint"], "fg");
    assert_eq!(card["agentState"]["source"], "process");
    assert_eq!(claude.registry()["status"], "busy", "it cannot say so itself");
    claude.signal(Signal::CONT);
    claude.agree("busy", "thinking");
    gate.open();
    claude.terminal.wait_for_text("It is all here.").unwrap();
    claude.agree("idle", "task-complete");
}

#[test]
fn a_stopped_client_needs_you_until_it_goes_on_with_hooks() {
    a_stopped_client_needs_you_until_it_goes_on(Installed);
}

#[test]
fn a_stopped_client_needs_you_until_it_goes_on_without_hooks() {
    a_stopped_client_needs_you_until_it_goes_on(Missing);
}

/// A dialog is more urgent than the stop, and its card says that nobody can answer it now.
#[test]
fn a_stopped_client_with_a_dialog_still_asks() {
    let script = Script::new().calls("Bash", touch("made")).then_always(Reply::says("Made it."));
    let claude = Claude::observed(Missing, script);
    claude.submit("make a file");
    claude.asks_for_permission("touch made");
    claude.signal(Signal::STOP);
    let session = claude.session();
    let stopped = || {
        let cards = claude.world.status();
        let card = cards.into_iter().find(|card| card["vendorId"] == *session)?;
        let context = &card["agentState"]["context"];
        context["stoppedSince"].is_u64().then(|| group_and_state(&card))
    };
    let seen = eventually("a card that says that it is stopped", stopped);
    assert_eq!(seen, "needs_you/needs_permission");
    claude.signal(Signal::CONT);
    claude.terminal.press_until_gone(Key::Enter, DIALOG).unwrap();
    claude.terminal.wait_for_text("Made it.").unwrap();
    claude.agree("idle", "task-complete");
}

/// A model that never says a word: after a minute nothing of the client has moved.
#[test]
fn an_answer_that_never_begins_is_stalled_until_it_does() {
    let gate = Gate::new();
    let script = Script::new().replies(Reply::says("At last.").held_before_start(&gate));
    let world = World::new(script);
    world.settings("[watch]\nstalled_after_minutes = 1\n");
    let mut claude = Claude::started(Missing, world, &[]);
    claude.world.serve();
    claude.agree("idle", "idle");
    claude.submit("look around");
    claude.agree("busy", "thinking");
    let session = claude.session();
    let card = claude.world.wait(&session, "stalled");
    assert_eq!(group_and_state(&card), "autonomous/stalled");
    assert_eq!(card["agentState"]["context"]["while"], "thinking");
    gate.open();
    claude.terminal.wait_for_text("At last.").unwrap();
    claude.agree("idle", "task-complete");
}
