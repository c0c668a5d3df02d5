//! Two terminals on one session: what one does says nothing of what the other waits for.

use super::*;

impl Claude {
    /// A second terminal that has resumed the session of the first.
    fn beside(&self) -> Terminal {
        let arguments = ["--resume", &self.session()];
        let terminal = client(&self.world).arguments(arguments).in_terminal().unwrap();
        let pid = terminal.pid().expect("it runs");
        let file = self.world.home.path().join(format!(".claude/sessions/{pid}.json"));
        eventually("the second terminal at its prompt", || {
            let text = std::fs::read_to_string(&file).ok()?;
            let registry: Value = serde_json::from_str(&text).ok()?;
            (registry["status"] == "idle" && registry["sessionId"] == *self.session()).then_some(())
        });
        terminal
    }

    fn card(&self) -> Value {
        let session = self.session();
        let cards = self.world.status();
        cards.into_iter().find(|card| card["vendorId"] == *session).expect("its card")
    }
}

/// One waits for a permission; the other is opened, prompted, answered and left.
fn a_terminal_that_leaves_closes_nothing_of_the_other(hooks: Hooks) {
    let script = Script::new()
        .when_user_says("make a file", Reply::calls("Bash", touch("made")))
        .when_user_says("good evening", Reply::says("Good evening to you."))
        .then_always(Reply::says("It is made."));
    let claude = Claude::observed(hooks, script);
    claude.submit("make a file");
    claude.asks_for_permission("touch made");
    let other = claude.beside();
    other.submit("good evening").unwrap();
    other.wait_for_text("Good evening to you.").unwrap();
    let pids = [claude.terminal.pid(), other.pid()].map(|pid| pid.map(u64::from));
    let card = eventually("both terminals on its card", || {
        let card = claude.card();
        (card["alsoOpenIn"].as_array()?.len() == 1).then_some(card)
    });
    assert_eq!(group_and_state(&card), "needs_you/needs_permission");
    assert_eq!([card["where"]["pid"].as_u64(), card["alsoOpenIn"][0]["pid"].as_u64()], pids);
    other.submit("/exit").unwrap();
    other.wait_for_exit().unwrap();
    let card = eventually("one terminal on its card", || {
        let card = claude.card();
        card.get("alsoOpenIn").is_none().then_some(card)
    });
    assert_eq!(group_and_state(&card), "needs_you/needs_permission");
    claude.asks_for_permission("touch made");
    claude.terminal.press_until_gone(Key::Enter, DIALOG).unwrap();
    claude.terminal.wait_for_text("It is made.").unwrap();
    claude.agree("idle", "task-complete");
    let shown = claude.world.shown(&claude.session());
    assert!(!shown.contains(&"session_ended".into()), "{shown:?}");
    let asked = shown.iter().filter(|state| *state == "needs_permission").count();
    assert_eq!(asked, 1, "it waited without a break: {shown:?}");
    let session = claude.session();
    claude.submit("/exit");
    claude.world.wait(&session, "session-ended");
}

#[test]
fn a_terminal_that_leaves_closes_nothing_of_the_other_with_hooks() {
    a_terminal_that_leaves_closes_nothing_of_the_other(Installed);
}

#[test]
fn a_terminal_that_leaves_closes_nothing_of_the_other_without_hooks() {
    a_terminal_that_leaves_closes_nothing_of_the_other(Missing);
}

/// The first waits; the second is killed in the middle of its answer. Then the first is left.
#[test]
fn a_terminal_that_is_killed_closes_nothing_of_the_other() {
    let gate = Gate::new();
    let script = Script::new()
        .when_user_says("make a file", Reply::calls("Bash", touch("made")))
        .then_always(Reply::says("Good evening to you.").held_before_start(&gate));
    let claude = Claude::observed(Installed, script);
    claude.submit("make a file");
    claude.asks_for_permission("touch made");
    let other = claude.beside();
    other.submit("good evening").unwrap();
    eventually("what it was asked", || claude.transcript().contains("good evening").then_some(()));
    other.kill().unwrap();
    let card = eventually("one terminal on its card", || {
        let card = claude.card();
        card.get("alsoOpenIn").is_none().then_some(card)
    });
    assert_eq!(group_and_state(&card), "needs_you/needs_permission");
    let shown = claude.world.shown(&claude.session());
    let asked = shown.iter().filter(|state| *state == "needs_permission").count();
    assert_eq!(asked, 1, "it waited without a break: {shown:?}");
    gate.open();
}
