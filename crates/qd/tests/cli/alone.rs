//! `qd` without a command.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};

use crate::world::World;

/// The daemon that was started, stopped at the end.
pub struct Started(Pid);

impl Started {
    pub fn by(world: &World) -> Self {
        let told = world.run(&[]).expect(0);
        assert!(told.out.contains("/sign-in#"), "{told:?}");
        let (_, rest) = told.err.split_once("process ").expect("it says which");
        let pid = rest.split(',').next().and_then(|pid| pid.parse().ok()).expect("a number");
        Self(Pid::from_raw(pid).expect("a process"))
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::TERM);
    }
}

#[test]
fn a_daemon_is_started_once_and_outlives_the_command() {
    let world = World::new();
    let started = Started::by(&world);
    let stat = fs::read_to_string(format!("/proc/{}/stat", started.0)).expect("it lives");
    let session = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(3));
    assert_eq!(session, Some(started.0.to_string().as_str()), "a session of its own");
    let again = world.run(&[]).expect(0);
    assert!(again.err.is_empty(), "{again:?}");
    let log = fs::read_to_string(world.state().join("qd.log")).expect("a log");
    assert!(log.contains("listening"), "{log}");
}

#[test]
fn a_link_is_for_one_browser_and_browsers_are_listed() {
    let world = World::new();
    let _started = Started::by(&world);
    let link = |arguments: &[&str]| world.run(arguments).expect(0).out;
    let one = link(&["open", "--no-browser"]);
    assert!(one.starts_with("http://127.0.0.1:") && one.contains("/sign-in#"), "{one}");
    assert_ne!(one, link(&["open", "--no-browser"]));
    let elsewhere = link(&["open", "--host", "box.example.ts.net", "--scope", "observe"]);
    assert!(elsewhere.starts_with("https://box.example.ts.net/sign-in#"), "{elsewhere}");
    assert_eq!(link(&["browsers", "--json"]).trim(), "[]");
    let nobody = world.run(&["browsers", "forget", "1234"]).expect(1);
    assert!(nobody.err.contains("no browser of that id"), "{nobody:?}");
    let ingest = world.run(&["open", "--scope", "ingest"]).expect(1);
    assert!(ingest.err.contains("observe, operate or admin"), "{ingest:?}");
}

/// Every user of a machine can read what a program was started with.
#[test]
fn the_browser_is_started_with_a_file_and_never_with_the_link() {
    let world = World::new();
    let _started = Started::by(&world);
    world.program("tools/browser", r#"cat /proc/$$/cmdline > "$HOME/told""#);
    let told = world.path("home/told");
    assert!(Command::new("mkfifo").arg(&told).status().expect("mkfifo runs").success());
    for arguments in [&["open"][..], &[]] {
        let mut command = world.qd(arguments);
        let printed = command.env("BROWSER", "browser").output().expect("qd runs");
        let printed = String::from_utf8(printed.stdout).expect("text");
        let link = printed.split_whitespace().find(|word| word.contains("/sign-in#"));
        let link = link.expect("the link is printed");
        let (address, code) = link.split_once("/sign-in#").expect("a code");

        // It comes when the browser runs.
        let started = String::from_utf8(fs::read(&told).expect("told")).expect("text");
        assert!(!started.contains(code), "{started:?}");
        let (_, file) = started.split_once("file://").expect("a file");
        let file = PathBuf::from(file.trim_end_matches('\0'));
        assert_eq!(fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o600);
        assert!(fs::read_to_string(&file).expect("a page").contains(&format!("url={link}\"")));

        assert_eq!(signed_in(address, code), 200);
        assert!(!file.exists(), "it goes with the link");
        assert_eq!(signed_in(address, code), 401);
    }
}

/// The status of a sign-in, as the page makes it.
fn signed_in(address: &str, code: &str) -> u16 {
    let host = address.strip_prefix("http://").expect("this machine");
    let body = format!(r#"{{"code":"{code}"}}"#);
    let mut stream = TcpStream::connect(host).expect("it listens");
    let head = format!(
        "POST /api/sign-in HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\nx-quarterdeck: 1\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status")
}

#[test]
fn a_long_log_is_put_aside() {
    let world = World::new();
    let log = world.write("state/quarterdeck/qd.log", "");
    fs::File::options().write(true).open(&log).expect("open").set_len((8 << 20) + 1).expect("long");
    let _started = Started::by(&world);
    let old = world.state().join("qd.log.old");
    assert_eq!(fs::metadata(old).expect("put aside").len(), (8 << 20) + 1);
    assert!(fs::metadata(log).expect("a new one").len() < 1 << 20);
}

#[test]
fn a_daemon_that_cannot_start_says_why() {
    let world = World::new();
    world.write("state/quarterdeck/journal.db/in-the-way", "");
    let outcome = world.run(&[]).expect(1);
    assert!(
        outcome.err.contains("did not start") && outcome.err.contains("journal"),
        "{outcome:?}"
    );
}
