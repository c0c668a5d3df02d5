//! A script of the operator's own: what docs/hooks-by-hand.md has, as it stands there.

use std::os::unix::fs::PermissionsExt;

use super::*;

/// The first block of that kind in the page.
fn block(kind: &str) -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/hooks-by-hand.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, block) = page.split_once(&format!("```{kind}\n")).expect("a block");
    block.split_once("```").expect("its end").0.to_owned()
}

impl Claude {
    /// Claude Code with the page's settings, and its script but for the port.
    fn by_hand(script: Script) -> Self {
        let world = World::served(script);
        let port = world.get("/api/health")["port"].to_string();
        let forwards = block("bash").replace("47892", &port);
        let file = ".claude/hooks/notify-mission-control.sh";
        world.home.write(file, &forwards).unwrap();
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(world.home.path().join(file), executable).unwrap();
        world.home.write(".claude/settings.json", &block("json")).unwrap();
        Self::started(Missing, world, &[])
    }

    /// Waits until a hook has told this.
    fn tells(&self, event: &str) {
        let session = self.session();
        eventually(&format!("a hook that tells {event}"), || {
            let detail = self.world.get(&format!("/api/live/sessions/{session}"));
            let lines = detail["evidence"].as_array()?.clone();
            let told = |line: &Value| {
                line["source"] == "hook"
                    && line["text"].as_str().is_some_and(|it| it.contains(event))
            };
            lines.iter().any(told).then_some(())
        });
    }
}

#[test]
fn a_script_of_ones_own_reports_as_the_page_says() {
    let script = Script::new().calls("Bash", touch("made")).says("The file is there.");
    let claude = Claude::by_hand(script);
    claude.submit("make a file");
    let card = claude.asks_for_permission("touch made");
    claude.tells("approval requested");
    let request = &card["requests"][0];
    assert_eq!(request["way"], Value::Null, "it can show a session, and not answer for you");
    claude.terminal.press_until_gone(Key::Enter, DIALOG).unwrap();
    claude.terminal.wait_for_text("The file is there.").unwrap();
    claude.agree("idle", "task-complete");
    claude.tells("turn completed");
    let refused = claude.world.get("/api/health")["refusedHooks"].clone();
    assert_eq!(refused, json!({"withoutToken": 0, "wrongToken": 0, "broken": 0}));
}
