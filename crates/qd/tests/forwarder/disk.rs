//! What the forwarder does with a disk that is missing, full, hostile or pulled away.

use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};
use std::time::Instant;

use qd_hook_wire::FrameId;
use qd_sources::Error;
use qd_sources::hook_intake::{Frame, KnownIds, Losses};
use qd_store::Delivery;

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
fn a_full_spool_drops_what_is_superseded_the_oldest_first_and_counts_it() {
    let world = World::new();
    let folder = world.spool_folder();
    fs::create_dir_all(&folder).expect("the spool");
    // The name says how long a file is: these four are all that the spool may hold.
    let name = |id: u32, session: u32| format!("{id:032x}-{}-{session:016x}.frame", 16 << 20);
    let (oldest, old, last, other) = (name(1, 7), name(2, 7), name(3, 7), name(0, 8));
    for file in [&oldest, &old, &last, &other] {
        File::create(folder.join(file)).expect("a file");
    }
    world.hook("send --harness codex").run(PAYLOAD);
    let left = names(&folder);
    assert!(!left.contains(&oldest), "superseded, and older than the other that is");
    assert!(left.contains(&old), "the room is enough");
    assert!(left.contains(&last) && left.contains(&other), "the last of a session stays");
    assert_eq!(left.len(), 5, "with the new one, and the count: {left:?}");
    let dropped = Losses { superseded: 1, ..Losses::default() };
    assert_eq!(world.spool().losses().expect("read"), dropped);
}

#[test]
fn where_nothing_can_go_only_sessions_are_kept_that_were_there_before() {
    let world = World::new();
    let folder = world.spool_folder();
    fs::create_dir_all(&folder).expect("the spool");
    let hook = |session: &str, event: &str| {
        let payload = format!(r#"{{"session_id":"{session}","event":"{event}"}}"#);
        world.hook("send --harness codex").run(payload.as_bytes());
    };
    hook("here", "first");
    // The last frames of other sessions, more than twice what the spool should hold.
    for session in 0..9 {
        let name = format!("{session:032x}-{}-{session:016x}.frame", 16 << 20);
        File::create(folder.join(name)).expect("a file");
    }
    hook("new", "first");
    let refused = Losses { full: 1, ..Losses::default() };
    assert_eq!(world.spool().losses().expect("read"), refused);
    hook("here", "second");
    let superseded = Losses { superseded: 1, full: 1, unwritable: 0 };
    assert_eq!(world.spool().losses().expect("read"), superseded);
    for session in 0..9 {
        let name = format!("{session:032x}-{}-{session:016x}.frame", 16 << 20);
        fs::remove_file(folder.join(name)).expect("the last of a session stays");
    }
    let frames = world.drained();
    let said: Vec<_> = frames.iter().map(|frame| String::from_utf8_lossy(&frame.payload)).collect();
    assert_eq!(said, [r#"{"session_id":"here","event":"second"}"#]);
}

/// The daemon is away for a day of many agents. The first and the last hook of each session is a
/// real forwarder's; those between lie there as forwarders leave them.
#[test]
fn of_twenty_thousand_hooks_the_last_of_every_session_is_kept() {
    const SESSIONS: usize = 50;
    const HOOKS: usize = 20_000;
    const LAST: usize = HOOKS / SESSIONS - 1;
    let (world, folder) = (World::new(), World::spool_folder);
    let payload =
        |session: usize, nth: usize| format!(r#"{{"session_id":"s{session}","nth":{nth}}}"#);
    let hook = |session, nth| {
        world.hook("send --harness codex").run(payload(session, nth).as_bytes());
    };
    for session in 0..SESSIONS {
        hook(session, 0);
        let known = names(&folder(&world));
        let newest = known.iter().rfind(|name| name.ends_with(".frame")).expect("it is there");
        let (_, key) = newest.rsplit_once('-').expect("the session's number");
        let body = fs::read(folder(&world).join(newest)).expect("read");
        let first = Frame::delivered(&Delivery { id: String::new(), body }).expect("a frame");
        for nth in 1..LAST {
            let id = FrameId(first.id.0 + nth as u128);
            let frame = Frame { id, payload: payload(session, nth).into(), ..first.clone() };
            let body = frame.delivery().body;
            fs::write(folder(&world).join(format!("{id}-{}-{key}", body.len())), body)
                .expect("written");
        }
    }
    (0..SESSIONS).for_each(|session| hook(session, LAST));

    let files = names(&folder(&world));
    let spooled = files.iter().filter(|name| name.ends_with(".frame")).count() as u64;
    assert!(spooled * 4_096 <= 64 << 20, "{spooled} files");
    let losses = world.spool().losses().expect("read");
    assert_eq!((losses.full, losses.unwritable), (0, 0), "nothing else was dropped");
    let frames = world.drained();
    assert_eq!(frames.len() as u64 + losses.superseded, HOOKS as u64, "each is there or counted");
    let mut last = vec![0; SESSIONS];
    for frame in &frames {
        let said: serde_json::Value = serde_json::from_slice(&frame.payload).expect("JSON");
        let session = said["session_id"].as_str().expect("a name")[1..].parse::<usize>();
        last[session.expect("a number")] = said["nth"].as_u64().expect("a number") as usize;
    }
    assert_eq!(last, vec![LAST; SESSIONS], "the last hook of every session, in order");
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
    let long = format!("{:032x}-{}.frame", 0, 256 << 20);
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
    assert_eq!(
        world.spool().losses().expect("read"),
        Losses { unwritable: 1, ..Losses::default() }
    );
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
