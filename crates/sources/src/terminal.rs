//! Where a process shows itself: its terminal, the tmux pane it sits in, the program that draws it.
//!
//! Of another process's environment only the few names below are kept; all else in it is none of
//! our business and may be secret.

use std::fs::File;
use std::future::pending;
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use qd_broker::TERMINALS_MAX;
use qd_broker::terminal::{Pane, Terminal};
use qd_host::processes::{ENVIRONMENT_BYTES_MAX, Process};
use qd_session::id::ProcessKey;
use tokio::sync::mpsc;

use crate::Error;

/// Longest name of a terminal, a pane or a socket.
const TERMINAL_TEXT_BYTES_MAX: usize = 512;

/// How long tmux may take for a question, and how often we look whether it has answered. It takes
/// some milliseconds; a server that hangs must not hold a thread.
const TMUX_WAIT: Duration = Duration::from_secs(1);

const TMUX_LOOK_EVERY: Duration = Duration::from_millis(2);

/// Longest answer of tmux: a line for each terminal that shows it. A pipe holds so much before
/// anybody reads it.
const TMUX_TEXT_BYTES_MAX: u64 = 64 << 10;

/// The terminal of a process that lives; `None` where it does not, or nobody may look. Asks tmux
/// where the process sits in it, so it may take up to [`TMUX_WAIT`].
pub fn terminal_of(process: Process) -> Option<Terminal> {
    let mut terminal = Terminal { tty: process.tty(), ..environment(process.pid)? };
    if !process.is_alive() {
        return None;
    }
    if let Some(pane) = &mut terminal.tmux {
        pane.name = tmux(&pane.socket, &["display-message", "-p", "-t", &pane.id, NAME]);
    }
    Some(terminal)
}

/// What became of a pane that was to be brought to the front.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fronted {
    Shown,
    /// It is in front, and no terminal shows that tmux server.
    Unattached,
    Gone,
}

/// Brings a pane to the front of whoever looks at that tmux server. Who looks at another session
/// of it is brought over: of several, the one that was used last.
pub fn bring_to_front(pane: &Pane) -> Fronted {
    let ask = |words: &[&str]| tmux(&pane.socket, words);
    let told = |words: &[&str]| ask(words).is_some();
    let front = told(&["select-window", "-t", &pane.id]) && told(&["select-pane", "-t", &pane.id]);
    let session = ask(&["display-message", "-p", "-t", &pane.id, "#{session_id}"]);
    let Some(session) = session.filter(|_| front) else { return Fronted::Gone };
    let clients = ask(&["list-clients", "-F", CLIENT]).unwrap_or_default();
    let clients: Vec<Client<'_>> = clients.lines().filter_map(Client::read).collect();
    if clients.iter().any(|client| client.session == session) {
        return Fronted::Shown;
    }
    let last = clients.iter().max_by_key(|client| client.active_at);
    let Some(client) = last else { return Fronted::Unattached };
    match told(&["switch-client", "-c", client.name, "-t", &pane.id]) {
        true => Fronted::Shown,
        false => Fronted::Unattached,
    }
}

/// A terminal that shows a tmux server.
struct Client<'a> {
    active_at: u64,
    session: &'a str,
    name: &'a str,
}

const CLIENT: &str = "#{client_activity} #{session_id} #{client_name}";

impl<'a> Client<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let mut parts = line.splitn(3, ' ');
        let (active_at, session, name) = (parts.next()?, parts.next()?, parts.next()?);
        Some(Self { active_at: active_at.parse().ok()?, session, name })
    }
}

/// Looks for terminals, one after the other, beside the loop.
#[derive(Debug)]
pub struct Locator {
    wanted: SyncSender<ProcessKey>,
    found: mpsc::Receiver<Located>,
}

#[derive(Debug)]
pub struct Located {
    pub process: ProcessKey,
    pub terminal: Terminal,
}

impl Locator {
    pub fn start() -> Result<Self, Error> {
        let (wanted, asked) = sync_channel::<ProcessKey>(TERMINALS_MAX);
        let (tell, found) = mpsc::channel(TERMINALS_MAX);
        thread::Builder::new()
            .name("qd-terminals".to_owned())
            .spawn(move || {
                for process in asked {
                    let terminal = Process::named(process.as_str()).and_then(terminal_of);
                    let Some(terminal) = terminal else { continue };
                    if tell.blocking_send(Located { process, terminal }).is_err() {
                        break;
                    }
                }
            })
            .map_err(|source| Error::Terminals { source })?;
        Ok(Self { wanted, found })
    }

    /// Where it cannot be asked for, the card goes without.
    pub fn look(&self, process: ProcessKey) {
        let _ = self.wanted.try_send(process);
    }

    /// The next one that was found. May be dropped and asked again.
    pub async fn next(&mut self) -> Located {
        match self.found.recv().await {
            Some(located) => located,
            None => pending().await,
        }
    }
}

const NAME: &str = "#{session_name}:#{window_index}.#{pane_index}";

fn environment(pid: u32) -> Option<Terminal> {
    let file = File::open(format!("/proc/{pid}/environ")).ok()?;
    let mut bytes = Vec::new();
    file.take(ENVIRONMENT_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(read(&bytes))
}

/// The names that tell, out of `NAME=value` strings that end with a zero byte.
fn read(environment: &[u8]) -> Terminal {
    let value = |name: &str| {
        let found = environment.split(|byte| *byte == 0).find_map(|one| {
            one.strip_prefix(name.as_bytes())?.strip_prefix(b"=").filter(|value| !value.is_empty())
        })?;
        let plain =
            found.len() <= TERMINAL_TEXT_BYTES_MAX && !found.iter().any(u8::is_ascii_control);
        plain.then(|| str::from_utf8(found).ok()).flatten()
    };
    // `/tmp/tmux-1000/default,4711,0`
    let socket = value("TMUX").and_then(|tmux| tmux.rsplitn(3, ',').nth(2));
    let is_pane = |id: &&str| {
        id.strip_prefix('%').is_some_and(|rest| {
            !rest.is_empty() && rest.bytes().all(|digit| digit.is_ascii_digit())
        })
    };
    let pane = socket.zip(value("TMUX_PANE").filter(is_pane));
    Terminal {
        tty: None,
        tmux: pane.map(|(socket, id)| Pane {
            socket: socket.to_owned(),
            id: id.to_owned(),
            name: None,
        }),
        // Inside tmux it names tmux, which the pane says better.
        program: value("TERM_PROGRAM").filter(|name| *name != "tmux").map(str::to_owned),
    }
}

/// What tmux prints for a command, without its line end; none where it fails or takes too long.
fn tmux(socket: &str, words: &[&str]) -> Option<String> {
    let mut child = Command::new("tmux")
        .args(["-S", socket])
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    let begun = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if begun.elapsed() < TMUX_WAIT => thread::sleep(TMUX_LOOK_EVERY),
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    };
    let mut text = String::new();
    child.stdout.take()?.take(TMUX_TEXT_BYTES_MAX).read_to_string(&mut text).ok()?;
    status.success().then(|| text.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_names_that_tell_are_kept() {
        let environment = b"HOME=/home/ada\0TMUX=/tmp/tmux-1000/a,b,4711,0\0KEY=secret\0\
            TMUX_PANE=%12\0TERM_PROGRAM=tmux\0";
        let pane = Pane { socket: "/tmp/tmux-1000/a,b".into(), id: "%12".into(), name: None };
        assert_eq!(read(environment), Terminal { tmux: Some(pane), ..Terminal::default() });
        let program = Some("vscode".to_owned());
        assert_eq!(
            read(b"TERM_PROGRAM=vscode\0TMUX_PANE=%1\0"),
            Terminal { program, ..Terminal::default() }
        );
    }

    #[test]
    fn what_is_no_pane_or_no_plain_text_is_nothing() {
        for environment in [
            b"TMUX=/tmp/x,1,0\0TMUX_PANE=-t\0".as_slice(),
            b"TMUX=/tmp/x,1,0\0TMUX_PANE=%\0",
            b"TMUX=/tmp/x\0TMUX_PANE=%1\0",
            b"TERM_PROGRAM=a\nb\0",
            b"TERM_PROGRAM=\xff\0",
            b"",
        ] {
            assert_eq!(read(environment), Terminal::default());
        }
    }
}
