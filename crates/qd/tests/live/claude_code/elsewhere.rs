//! Another profile than the daemon's: Claude Code with a `CLAUDE_CONFIG_DIR` of its own.

use super::*;

/// Claude Code that keeps everything in a folder with a space in its name.
fn elsewhere(hooks: Hooks, script: Script) -> Claude {
    let world = World::served(script);
    let client = client(&world);
    let folder = world.home.path().join("work profile");
    let settings = std::fs::read_to_string(world.home.path().join(".claude.json")).unwrap();
    world.home.write("work profile/.claude.json", &settings).unwrap();
    let client = client.variable("CLAUDE_CONFIG_DIR", folder.display().to_string());
    if hooks == Installed {
        world.install_hooks("claude-code", &client);
        // Installed where the daemon looks; the client reads its own.
        let settings = world.home.path().join(".claude/settings.json");
        std::fs::rename(settings, folder.join("settings.json")).unwrap();
    }
    Claude { terminal: client.in_terminal().unwrap(), world, config: "work profile" }
}

/// Esc fires no hook: only the registry and the transcript tell.
fn esc_is_seen_elsewhere(hooks: Hooks) {
    let script = Script::new().calls("Bash", touch("made")).says("The file is there.");
    let claude = elsewhere(hooks, script);
    claude.submit("make a file");
    claude.asks_for_permission("touch made");
    claude.terminal.press_until_gone(Key::Escape, DIALOG).unwrap();
    let card = claude.agree("idle", "interrupted");
    assert_eq!(card["requests"], json!([]));
    let doctor = claude.world.qd(&["doctor"]).1;
    assert!(doctor.contains("work profile (used by a running client)"), "{doctor}");
}

#[test]
fn esc_is_seen_in_another_profile_with_hooks() {
    esc_is_seen_elsewhere(Installed);
}

#[test]
fn esc_is_seen_in_another_profile_without_hooks() {
    esc_is_seen_elsewhere(Missing);
}

/// A transcript is read only in a folder of its client, and this one has become such a folder.
#[test]
fn a_transcript_of_another_profile_is_read() {
    let claude = elsewhere(Missing, Script::new().says("Home is the sailor."));
    claude.submit("sail home");
    claude.terminal.wait_for_text("Home is the sailor.").unwrap();
    claude.agree("idle", "task-complete");
    let session = claude.session();
    eventually("its transcript", || {
        let page = claude.world.get(&format!("/api/live/sessions/{session}/transcript"));
        page.to_string().contains("Home is the sailor.").then_some(())
    });
}
