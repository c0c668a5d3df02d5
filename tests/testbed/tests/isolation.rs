//! Terminals, pipes and ends, shown with a shell in place of an agent.

use std::num::NonZeroU16;
use std::path::Path;
use std::time::Instant;

use qd_testbed::{Client, Error, Home, Key, Model, Result, Script, Terminal};

/// Says its pid when it has left the session.
const DAEMON: &str = "setsid sh -c 'echo daemon $$.; exec sleep 1000'";

fn shell(home: &Home, model: &Model, command: &str) -> Client {
    Client::program("a shell", "/bin/sh", home, model).arguments(["-c", command])
}

fn world() -> Result<(Home, Model)> {
    Ok((Home::new()?, Model::start(Script::new())?))
}

/// The pid after a word on the screen.
fn pid_after(terminal: &Terminal, word: &str) -> Result<u32> {
    let pid = |screen: &str| {
        let line = screen.lines().find_map(|line| line.strip_prefix(word))?;
        line.strip_suffix('.')?.trim().parse().ok()
    };
    let screen = terminal.wait_until(&format!("{word} PID."), |screen| pid(screen).is_some())?;
    Ok(pid(&screen).expect("just seen"))
}

/// A zombie waits for its parent and does nothing.
fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

#[test]
fn a_client_sees_nothing_of_our_environment() -> Result<()> {
    let (home, model) = world()?;
    let client = shell(&home, &model, "env | sort; pwd").headless()?;
    assert!(client.wait_for_exit()?.success());
    let lines = client.lines();
    assert!(lines.contains(&format!("HOME={}", home.path().display())), "{lines:?}");
    assert!(lines.contains(&home.workspace().display().to_string()), "{lines:?}");
    assert!(!lines.iter().any(|line| line.starts_with("CARGO")), "{lines:?}");
    Ok(())
}

#[test]
fn keys_reach_the_client_and_its_end_is_seen() -> Result<()> {
    let (home, model) = world()?;
    let command = "echo name?; read name; echo \"hello $name\"; read more; exit 3";
    let terminal = shell(&home, &model, command).in_terminal()?;
    terminal.wait_for_text("name?")?;
    terminal.submit("captain")?;
    terminal.wait_for_text("hello captain")?;
    terminal.press(Key::Enter)?;
    let ending = terminal.wait_for_exit()?;
    assert!(ending.contains('3'), "{ending}");
    let error = terminal.wait_for_text("never").expect_err("it has ended");
    assert!(matches!(error, Error::Ended { .. }), "{error}");
    Ok(())
}

#[test]
fn a_client_hears_of_a_new_size() -> Result<()> {
    let (home, model) = world()?;
    let command = "trap 'stty size' WINCH; echo ready; while :; do read line; done";
    let terminal = shell(&home, &model, command).in_terminal()?;
    terminal.wait_for_text("ready")?;
    let size = |number| NonZeroU16::new(number).expect("not zero");
    terminal.resize(size(33), size(77))?;
    // A shell runs its trap when what it waits for is over.
    terminal.press(Key::Enter)?;
    terminal.wait_for_text("33 77")?;
    Ok(())
}

#[test]
fn what_left_its_session_or_its_environment_is_killed_too() -> Result<()> {
    let (home, model) = world()?;
    let command = format!("{DAEMON} & env -i sleep 1000 & echo bare $!.; wait");
    let terminal = shell(&home, &model, &command).in_terminal()?;
    let pids = [pid_after(&terminal, "daemon ")?, pid_after(&terminal, "bare ")?];
    assert_eq!(pids.map(lives), [true, true]);
    drop(terminal);
    assert_eq!(pids.map(lives), [false, false]);
    Ok(())
}

#[test]
fn a_home_takes_with_it_what_outlived_its_client() -> Result<()> {
    let (home, model) = world()?;
    let command = format!("{DAEMON} & wait");
    let terminal = shell(&home, &model, &command).in_terminal()?;
    let daemon = pid_after(&terminal, "daemon ")?;
    terminal.kill()?;
    assert!(lives(daemon), "kill -9 is for the client alone");
    // As when the test itself is gone before it could clear up.
    std::mem::forget(terminal);
    let folder = home.path();
    drop(home);
    // It is killed; when it is gone is the kernel's to say.
    let deadline = Instant::now() + qd_testbed::limits::WAIT_MAX;
    while lives(daemon) && Instant::now() < deadline {
        std::thread::yield_now();
    }
    assert_eq!((lives(daemon), folder.exists()), (false, false));
    Ok(())
}

#[test]
fn the_next_run_clears_up_after_one_that_was_killed() -> Result<()> {
    // Process 1 did not start at this instant, so the owner is gone.
    let abandoned = std::env::temp_dir().join("qd-testbed-1-123456789012-old");
    std::fs::create_dir_all(abandoned.join("home")).expect("a folder");
    let _home = Home::new()?;
    assert!(!abandoned.exists());
    Ok(())
}

#[test]
fn a_client_that_floods_us_is_bounded_and_shown() -> Result<()> {
    let (home, model) = world()?;
    let client = shell(&home, &model, "yes flood | head -n 50000; echo done >&2").headless()?;
    assert!(client.wait_for_exit()?.success());
    assert_eq!(client.lines().len(), qd_testbed::limits::LINES_MAX);
    assert_eq!(client.errors(), ["done"]);
    Ok(())
}

#[test]
fn a_client_that_does_not_read_is_an_error_not_a_hang() -> Result<()> {
    let (home, model) = world()?;
    let client = shell(&home, &model, "sleep 1000").headless()?;
    let line = "x".repeat(1 << 20);
    let outcome = (0..1_000).try_for_each(|_| client.send_line(&line));
    assert!(matches!(outcome, Err(Error::Io { .. })), "{outcome:?}");
    Ok(())
}

#[test]
fn what_is_not_there_is_said_so() -> Result<()> {
    let (home, model) = world()?;
    let missing = Client::program("nothing", Path::new("/no/such/program"), &home, &model);
    let error = missing.clone().headless().expect_err("no program");
    assert!(error.to_string().contains("/no/such/program"), "{error}");
    assert!(missing.in_terminal().is_err());
    Ok(())
}
