//! What the forwarder does with a disk that is missing, full, hostile or pulled away.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};
use std::time::Instant;

use qd_broker::Error;
use qd_broker::hook_intake::{KnownIds, Losses};
use qd_broker::limits::SPOOL_FRAMES_MAX;

use crate::world::{World, names, now_ms};

const PAYLOAD: &[u8] = b"{\"hook_event_name\":\"Stop\"}\n";

#[test]
fn without_a_home_there_is_nowhere_to_go_and_nobody_is_told() {
    let world = World::new();
    for (state, home) in [(None, None), (Some("relative"), Some("")), (None, Some("also/relative"))]
    {
        let hook = world.hook("send --harness codex").environment(|command| {
            command.env_remove("XDG_RUNTIME_DIR").env_remove("XDG_STATE_HOME");
            command.envs(state.map(|state| ("XDG_STATE_HOME", state)));
            command.envs(home.map(|home| ("HOME", home))).current_dir(world.path(""));
        });
        hook.run(PAYLOAD);
    }
    assert_eq!(names(&world.path("")), Vec::<String>::new());

    let hook = world.hook("send --harness codex").environment(|command| {
        command.env_remove("XDG_STATE_HOME").env("HOME", world.path("home"));
    });
    hook.run(PAYLOAD);
    assert_eq!(names(&world.path("home/.local/state/quarterdeck/spool")).len(), 1);
}

#[test]
fn only_the_user_can_read_what_is_spooled() {
    let world = World::new();
    fs::create_dir_all(world.spool_folder()).expect("made by somebody else");
    fs::set_permissions(world.spool_folder(), Permissions::from_mode(0o755)).expect("and lax");
    world.hook("send --harness codex").run(PAYLOAD);
    let rights = |path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(rights(world.spool_folder()), 0o700);
    let file = &names(&world.spool_folder())[0];
    assert_eq!(rights(world.spool_folder().join(file)), 0o600);
}

#[test]
fn a_full_spool_refuses_what_is_new_and_counts_it() {
    let world = World::new();
    let folder = world.spool_folder();
    fs::create_dir_all(&folder).expect("the spool");
    // Full by bytes: the name says how long a file is.
    let long = folder.join(format!("{:032x}-{}.frame", 0, 64 << 20));
    File::create(&long).expect("a file");
    world.hook("send --harness codex").run(PAYLOAD);
    assert_eq!(world.spool().losses().expect("read"), Losses { full: 1, unwritable: 0 });
    fs::remove_file(long).expect("removed");
    // Full by number.
    for index in 0..SPOOL_FRAMES_MAX {
        File::create(folder.join(format!("{index:032x}-0.frame"))).expect("a file");
    }
    let before = names(&folder);
    world.hook("send --harness codex").run(PAYLOAD);
    assert_eq!(names(&folder), before, "the old ones stay, the new one is not written");
    assert_eq!(world.spool().losses().expect("read"), Losses { full: 2, unwritable: 0 });
    // One place free.
    fs::remove_file(folder.join(&before[0])).expect("removed");
    world.hook("send --harness codex").run(PAYLOAD);
    assert_eq!(world.spool().losses().expect("read"), Losses { full: 2, unwritable: 0 });
    let frames = |names: Vec<String>| names.iter().filter(|name| name.ends_with(".frame")).count();
    assert_eq!(frames(names(&folder)), SPOOL_FRAMES_MAX);
}

#[test]
fn a_spool_that_cannot_be_written_changes_nothing_for_the_agent() {
    let world = World::new();
    fs::write(world.path("state"), "a file where a folder should be").expect("written");
    world.hook("send --harness codex").run(PAYLOAD);
    assert_eq!(names(&world.path("")), ["state"]);
}

#[test]
fn no_link_is_followed_in_the_spool() {
    let world = World::new();
    let elsewhere = world.path("elsewhere");
    fs::create_dir_all(&elsewhere).expect("a folder");
    fs::create_dir_all(world.path("state/quarterdeck")).expect("a folder");
    symlink(&elsewhere, world.spool_folder()).expect("a link");
    world.hook("send --harness codex").run(PAYLOAD);
    assert_eq!(names(&elsewhere), Vec::<String>::new(), "the spool itself is a link");

    fs::remove_file(world.spool_folder()).expect("removed");
    fs::create_dir(world.spool_folder()).expect("a folder");
    let target = elsewhere.join("target");
    symlink(&target, world.spool_folder().join("lost")).expect("a link");
    let long = format!("{:032x}-{}.frame", 0, 64 << 20);
    File::create(world.spool_folder().join(long)).expect("full");
    world.hook("send --harness codex").run(PAYLOAD);
    assert!(!target.exists(), "the loss file is a link");
}

#[test]
fn a_disk_that_takes_only_half_gets_nothing_and_the_loss_is_counted() {
    let world = World::new();
    // The longest file of this hook has some kilobytes, so its write stops in the middle.
    let hook = world.hook("send --harness codex").environment(|command| {
        let line = command.get_args().nth(1).expect("the line").to_string_lossy().into_owned();
        let mut limited = Command::new("/bin/sh");
        limited.arg("-c").arg(format!("ulimit -f 8; {line}")).arg(env!("CARGO_BIN_EXE_qd-hook"));
        limited.env_clear().env("XDG_STATE_HOME", world.path("state"));
        limited.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        *command = limited;
    });
    hook.run(&vec![b'x'; 100_000]);
    assert_eq!(names(&world.spool_folder()), ["lost"]);
    assert_eq!(world.spool().losses().expect("read"), Losses { full: 0, unwritable: 1 });
    world.hook("send --harness codex").run(PAYLOAD);
    assert_eq!(world.drained().len(), 1, "the next one is kept");
}

#[test]
fn a_forwarder_that_is_killed_leaves_whole_frames_or_none() {
    let world = World::new();
    // A hundred of them fit into the spool, should all be quick enough.
    let payload = vec![b'x'; 1 << 18];
    for run in 0..100 {
        let mut child = world.hook("send --harness codex").spawn();
        let mut stdin = child.stdin.take().expect("its input");
        stdin.write_all(&payload).expect("the agent can write");
        drop(stdin);
        // A little later each time, from before it stamps to after it has spooled.
        let begun = Instant::now();
        while begun.elapsed().as_micros() < run * 60 {
            std::hint::spin_loop();
        }
        child.kill().expect("killed");
        child.wait().expect("reaped");
        // A child that it left for the disk has ended when the output has.
        let mut output = child.stdout.take().expect("its output");
        std::io::copy(&mut output, &mut std::io::sink()).expect("read");
    }
    world.hook("send --harness codex").run(&payload);

    // What was killed in the middle of its write has no writer any more.
    let (spool, mut known, later) = (world.spool(), KnownIds::default(), now_ms() + 60_000);
    let mut frames = Vec::new();
    loop {
        let batch = spool.next_batch(later, &mut known).expect("read");
        for aside in &batch.set_aside {
            assert!(aside.file.ends_with(".part"), "{aside:?}");
            assert!(matches!(aside.why, Error::FrameHalf { .. }), "{aside:?}");
        }
        if batch.frames.is_empty() {
            break;
        }
        frames.extend(batch.frames.iter().cloned());
        spool.settle(batch, &mut known).expect("settled");
    }
    assert!(!frames.is_empty());
    assert!(frames.iter().all(|frame| frame.payload == payload), "whole");
    assert_eq!(names(&world.spool_folder()), ["aside"], "nothing is in the way");
}
