//! What a model is told before everything else.

use std::io::Read;
use std::path::Path;

use qd_host::private_places::PrivatePlaces;

use crate::tools::Workspace;

/// As much of a project's instructions for agents as goes with every request. The longest in use
/// have some twenty thousand letters.
const INSTRUCTIONS_BYTES_MAX: u64 = 64 << 10;

/// Where projects write what every agent should know about them.
const FILE: &str = "AGENTS.md";

/// Who it is, where it works, and what the project asks of agents.
pub(super) fn instructions(workspace: &Path, private: &PrivatePlaces) -> String {
    let folder = workspace.display();
    let ours = format!(
        "You are a coding agent. You work in the folder {folder} with the tools you are given; \
         paths are relative to it, and nothing outside it can be changed.\n\
         Look before you change something, change only what the task needs, and check what you \
         did: run the project's own tests where there are some.\n\
         Some calls wait for a person, who may refuse one and say why; then find another way or \
         ask. Use ask_user when you need a decision that only they can make.\n\
         When you are done, say in a few sentences what you did and what is left."
    );
    match project(workspace, private) {
        Some(words) => format!("{ours}\n\nThe project's own instructions ({FILE}):\n\n{words}"),
        None => ours,
    }
}

/// As much of them as there is room for. A file that cannot be read says nothing.
fn project(workspace: &Path, private: &PrivatePlaces) -> Option<String> {
    // No pipe, whose end may never come, and no link to a file that is nobody's to send.
    let file = Workspace::open_without(workspace, private).ok()?.file(Path::new(FILE)).ok()?;
    let mut bytes = Vec::new();
    file.take(INSTRUCTIONS_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    let words = String::from_utf8_lossy(&bytes).trim().to_owned();
    (!words.is_empty()).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_projects_words_are_passed_on_as_far_as_there_is_room() {
        let name = format!("qd-instructions-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        let alone = instructions(&folder, &PrivatePlaces::default());
        assert!(alone.contains(&folder.display().to_string()) && !alone.contains(FILE));
        let words = format!("Indent by two.\n{}", "x".repeat(1 << 20));
        std::fs::write(folder.join(FILE), words).expect("written");
        let told = instructions(&folder, &PrivatePlaces::default());
        std::fs::remove_dir_all(&folder).expect("ours");
        assert!(told.contains("Indent by two."));
        assert!(told.len() < (INSTRUCTIONS_BYTES_MAX as usize) + alone.len() + 100);
    }

    #[test]
    fn a_link_out_of_the_workspace_is_not_read() {
        let base =
            std::env::temp_dir().join(format!("qd-instructions-link-{}", std::process::id()));
        let folder = base.join("shop");
        std::fs::create_dir_all(&folder).expect("a folder");
        std::fs::write(base.join("key"), "a secret").expect("written");
        std::fs::write(folder.join("CONTRIBUTING.md"), "Indent by two.").expect("written");
        let link = folder.join(FILE);
        std::os::unix::fs::symlink("../key", &link).expect("linked");
        let out = instructions(&folder, &PrivatePlaces::default());
        std::fs::remove_file(&link).expect("ours");
        std::os::unix::fs::symlink("CONTRIBUTING.md", &link).expect("linked");
        let within = instructions(&folder, &PrivatePlaces::default());
        std::fs::remove_dir_all(&base).expect("ours");
        assert!(!out.contains("a secret") && !out.contains(FILE));
        assert!(within.contains("Indent by two."));
    }
}
