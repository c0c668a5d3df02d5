//! Workspaces whose files are made to hold us up, or to widen what commands may write.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use qd_runners::tools::{Toolbox, ToolboxSettings};
use rustix::fs::{CWD, Mode, mkfifoat};
use serde_json::json;

use super::world::{World, run};

/// Much longer than opening takes; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_secs(60);

fn fifo(path: &Path) {
    mkfifoat(CWD, path, Mode::RWXU).expect("a FIFO");
}

/// On a thread of its own: one that waits for ever is left there.
fn opened(settings: ToolboxSettings) -> Toolbox {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        // Nobody listens any more once the test has failed.
        let _ = tell.send(Toolbox::open(settings));
    });
    told.recv_timeout(PATIENCE).expect("opening never waits").expect("it opens")
}

#[tokio::test]
async fn no_git_of_a_workspace_holds_us_up() {
    type Trap = fn(&Path);
    let traps: [(&str, Trap); 8] = [
        ("a FIFO", |at| fifo(&at.join(".git"))),
        ("a device", |at| symlink("/dev/zero", at.join(".git")).expect("linked")),
        ("a link to itself", |at| symlink(".git", at.join(".git")).expect("linked")),
        ("a line without an end", |at| {
            let git = File::create(at.join(".git")).expect("made");
            git.set_len(1 << 40).expect("sparse");
        }),
        ("a worktree that links to itself", |at| {
            fs::write(at.join(".git"), "gitdir: .git/x\n").expect("written");
        }),
        ("a worktree that leads back by a FIFO", |at| {
            let private = at.parent().expect("a folder").join("outside/worktrees/w");
            fs::create_dir_all(&private).expect("made");
            fifo(&private.join("gitdir"));
            fs::write(at.join(".git"), format!("gitdir: {}\n", private.display())).expect("ok");
        }),
        ("a worktree that leads back by a device", |at| {
            let private = at.parent().expect("a folder").join("outside/worktrees/v");
            fs::create_dir_all(&private).expect("made");
            symlink("/dev/zero", private.join("gitdir")).expect("linked");
            fs::write(at.join(".git"), format!("gitdir: {}\n", private.display())).expect("ok");
        }),
        ("a worktree of a process", |at| {
            fs::write(at.join(".git"), "gitdir: /proc/self/fd/0\n").expect("written");
        }),
    ];
    for (what, trap) in traps {
        let world = World::new();
        trap(&world.workspace());
        let toolbox = opened(world.settings());
        let outcome = run(&toolbox, "bash", json!({"command": "echo works"})).await;
        assert!(format!("{outcome:?}").contains("works"), "{what}: {outcome:?}");
    }
}

/// A folder that happens to be called `worktrees` is no repository's: what a command writes into
/// its own workspace must not open the folder above.
#[tokio::test]
async fn a_command_that_makes_itself_a_worktree_opens_nothing() {
    let world = World::new();
    let workspace = world.outside().join("worktrees/project");
    fs::create_dir_all(workspace.join("sub/worktrees/x")).expect("made");
    let settings = || ToolboxSettings { workspace: workspace.clone(), ..world.settings() };
    let here = workspace.display();
    let forge = format!(
        "printf 'gitdir: {here}\\n' > .git; printf '{here}/.git\\n' > gitdir; \
         printf '../..\\n' > commondir"
    );
    let forged = run(&opened(settings()), "bash", json!({"command": forge})).await;
    assert!(format!("{forged:?}").contains("is_error: false"), "{forged:?}");
    let write = json!({"command": format!("echo x > {}/escaped", world.outside().display())});
    let outcome = run(&opened(settings()), "bash", write.clone()).await;
    assert!(format!("{outcome:?}").contains("is_error: true"), "{outcome:?}");
    // Two sessions side by side could name each other.
    let beside = world.outside().join("worktrees/other");
    fs::create_dir_all(&beside).expect("made");
    fs::write(beside.join("gitdir"), format!("{here}/.git\n")).expect("written");
    fs::write(workspace.join(".git"), format!("gitdir: {}\n", beside.display())).expect("written");
    let outcome = run(&opened(settings()), "bash", write).await;
    assert!(format!("{outcome:?}").contains("is_error: true"), "{outcome:?}");
    assert!(!world.outside().join("escaped").exists());
}

/// What a command leaves in its folder for temporary files is taken away without going down into
/// it: so many levels would take the daemon's stack.
#[tokio::test]
async fn a_deep_tree_of_temporary_files_is_taken_away() {
    let world = World::new();
    let toolbox = world.toolbox();
    let script = "import os\nos.chdir(os.environ['TMPDIR'])\n\
                  for _ in range(20000):\n os.mkdir('a'); os.chdir('a')\nprint('deep')";
    let outcome = run(&toolbox, "run_command", json!({"command": ["python3", "-c", script]})).await;
    assert!(format!("{outcome:?}").contains("deep"), "{outcome:?}");
    drop(toolbox);
    assert!(!world.base.join("scratch").exists(), "it is gone under its name at once");
    let left = || {
        let names = fs::read_dir(&world.base).expect("a folder").flatten();
        names.filter(|name| name.file_name().to_string_lossy().starts_with("discarded-")).count()
    };
    let deadline = std::time::Instant::now() + PATIENCE;
    while left() > 0 {
        assert!(std::time::Instant::now() < deadline, "it is removed");
        std::thread::yield_now();
    }
}
