//! A pane of a real tmux is brought to the front of whoever looks at that server.

use std::process::Command;

use qd_broker::terminal::Pane;
use qd_sources::terminal::{Fronted, bring_to_front};
use qd_testbed::{Client, Home, Model, Result, Script, Terminal};

/// A tmux server of our own with two sessions.
struct Tmux {
    home: Home,
    model: Model,
    socket: String,
}

impl Tmux {
    fn new() -> Result<Self> {
        let (home, model) = (Home::new()?, Model::start(Script::new())?);
        let socket = home.path().join("tmux").to_string_lossy().into_owned();
        let tmux = Self { home, model, socket };
        for session in ["work", "other"] {
            let shell = format!("echo This is {session}.; exec sleep 1000");
            tmux.ask(&["-f", "/dev/null", "new-session", "-d", "-s", session, &shell]);
        }
        // In front of what is looked for.
        tmux.ask(&["new-window", "-t", "work:", "echo In front of work.; exec sleep 1000"]);
        Ok(tmux)
    }

    fn ask(&self, words: &[&str]) -> String {
        let output = Command::new("tmux").args(["-S", &self.socket]).args(words).output();
        let output = output.expect("tmux is installed: `cargo xtask clients`");
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    /// The first pane of the session `work`.
    fn pane(&self) -> Pane {
        let id = self.ask(&["display-message", "-p", "-t", "work:0.0", "#{pane_id}"]);
        Pane { socket: self.socket.clone(), id, name: None }
    }

    fn attached_to(&self, session: &str) -> Result<Terminal> {
        let tmux = Client::program("tmux", "tmux", &self.home, &self.model);
        tmux.arguments(["-S", &self.socket, "attach", "-t", session]).in_terminal()
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let _ = Command::new("tmux").args(["-S", &self.socket, "kill-server"]).status();
    }
}

#[test]
fn who_looks_at_the_same_session_sees_the_pane() -> Result<()> {
    let tmux = Tmux::new()?;
    let terminal = tmux.attached_to("work")?;
    terminal.wait_for_text("In front of work.")?;
    assert_eq!(bring_to_front(&tmux.pane()), Fronted::Shown);
    terminal.wait_for_text("This is work.")?;
    Ok(())
}

#[test]
fn who_looks_at_another_session_is_brought_over() -> Result<()> {
    let tmux = Tmux::new()?;
    let terminal = tmux.attached_to("other")?;
    terminal.wait_for_text("This is other.")?;
    assert_eq!(bring_to_front(&tmux.pane()), Fronted::Shown);
    terminal.wait_for_text("This is work.")?;
    Ok(())
}

#[test]
fn where_nobody_looks_that_is_said() -> Result<()> {
    let tmux = Tmux::new()?;
    assert_eq!(bring_to_front(&tmux.pane()), Fronted::Unattached);
    let terminal = tmux.attached_to("work")?;
    terminal.wait_for_text("This is work.")?;
    let gone = Pane { id: "%99".to_owned(), ..tmux.pane() };
    assert_eq!(bring_to_front(&gone), Fronted::Gone);
    Ok(())
}
