//! A background subagent's permission: while our hook waits its dialog is not on the screen, so the
//! hook waits only for somebody who looks at the card.

use super::*;
use crate::world::Tab;

/// Claude Code in which a subagent in the background wants to make a file.
fn delegating(world: World) -> Claude {
    let claude = Claude::started(Installed, world, &[]);
    claude.submit("delegate it");
    claude
}

fn script() -> Script {
    let task = json!({"description": "Make a file", "prompt": "make the file",
        "subagent_type": "general-purpose", "run_in_background": true});
    Script::new()
        .when_user_says("delegate it", Reply::calls("Agent", task))
        .when_user_says("make the file", Reply::calls("Bash", touch("made")))
        .then_always(Reply::says("That is all."))
}

/// The subagent's request on the card, once it is there.
fn request(claude: &Claude) -> Value {
    let session = claude.session();
    eventually("the subagent's request", || {
        let cards = claude.world.status();
        let card = cards.into_iter().find(|card| card["vendorId"] == *session)?;
        card["requests"].as_array()?.iter().find(|one| one["agent"].is_string()).cloned()
    })
}

#[test]
fn a_subagents_dialog_is_not_hidden_where_nobody_looks_at_its_card() {
    // A page is open, as the test's board is one, and nobody says that they look at it.
    let claude = delegating(World::served(script()));
    claude.terminal.wait_for_text(DIALOG).unwrap();
    let request = request(&claude);
    assert!(request["way"].is_null() && request["hiddenUntil"].is_null(), "{request}");
    let held = claude.world.board().requests_of(&claude.session());
    assert!(held.iter().all(|request| request["way"].is_null()), "{held:?}");
    claude.terminal.press_until_gone(Key::Enter, DIALOG).unwrap();
    eventually("its file", || claude.world.home.workspace().join("made").exists().then_some(()));
}

#[test]
fn a_subagent_is_answered_by_who_looks_at_its_card_and_asks_who_looks_away_in_its_terminal() {
    let world = World::served(script());
    let tab = Tab::open(&world);
    tab.looks(&world, true);
    let claude = delegating(world);
    let asked = request(&claude);
    assert_eq!(asked["way"], "hook", "{asked}");
    assert!(asked["hiddenUntil"].is_u64(), "{asked}");
    assert!(!claude.terminal.screen().contains(DIALOG));
    tab.looks(&claude.world, false);
    claude.terminal.wait_for_text(DIALOG).unwrap();
    let asked = request(&claude);
    assert!(asked["way"].is_null() && asked["hiddenUntil"].is_null(), "{asked}");
    claude.terminal.press_until_gone(Key::Enter, DIALOG).unwrap();
    eventually("its file", || claude.world.home.workspace().join("made").exists().then_some(()));

    let world = World::served(script());
    let tab = Tab::open(&world);
    tab.looks(&world, true);
    let claude = delegating(world);
    assert_eq!(request(&claude)["way"], "hook");
    claude.world.must(&["approve", &claude.session()]);
    eventually("its file", || claude.world.home.workspace().join("made").exists().then_some(()));
    let screen = claude.terminal.screen();
    assert!(!screen.contains(DIALOG), "{screen}");
}
