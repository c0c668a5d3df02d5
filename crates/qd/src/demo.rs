//! `qd demo`: recorded sessions of real clients, played into a live board.
//!
//! A daemon of its own in this process, on a temporary folder and a free port: it sees no agent of
//! the operator's, and nothing of it is left behind.

mod captures;
mod player;
mod round;
mod shift;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use qd_daemon::runtime::{Runtime, Settings};
use qd_server::{Doors, Records, Server, Tokens};
use qd_sources::hook_intake;
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{broadcast, watch};
use tokio::time::sleep;

use self::captures::CAPTURES;
use self::player::Player;
use crate::paths::Paths;

/// Between the beginnings of two sessions, so that the board fills before one's eyes.
const STAGGER: Duration = Duration::from_millis(1_500);

/// Answers that a player may not have heard yet. A person gives one at a time.
const ANSWERS_KEPT: usize = 64;

/// Play recorded sessions into a board: no agent and no key needed.
///
/// Starts a daemon of its own on a temporary folder and a free port, plays recordings of Claude
/// Code, Codex, Gemini CLI, OpenCode and Kilo at the pace they had, over and over, and shows the
/// board. What they ask can be answered, on the page and with `qd approve` and its like: the
/// recording then goes on as it did, and after 30 seconds it does so by itself. No agent is told,
/// and the daemon that watches yours is not touched. Everything is removed at the end.
#[derive(Debug, Args)]
pub struct DemoArgs {
    /// How many times as fast as it was (0.1 to 100)
    #[arg(long, default_value_t = 1.0, value_parser = speed)]
    speed: f64,
    /// Do not show the board; print where the daemon is and run until Ctrl-C
    #[arg(long)]
    no_watch: bool,
}

fn speed(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(speed) if (0.1..=100.0).contains(&speed) => Ok(speed),
        Ok(_) | Err(_) => Err("a number from 0.1 to 100".to_owned()),
    }
}

pub async fn demo(args: &DemoArgs) -> Result<()> {
    if !args.no_watch && !crate::watch::is_possible() {
        bail!("the demo shows its board in a terminal; --no-watch runs it without one");
    }
    let mut terminated = signal(SignalKind::terminate())?;
    let mut interrupted = signal(SignalKind::interrupt())?;
    let folder = Temporary::new()?;
    let paths = folder.paths();
    let socket = hook_intake::bind(&paths.socket)?;
    socket.set_nonblocking(true)?;
    let socket = UnixListener::from_std(socket)?;
    let port = Server::listen(0).await?;
    let address = port.local_addr()?;
    let tokens = Tokens::open(&paths.tokens())?;
    let doors = Doors { socket, port, tokens, hosts: Vec::new() };
    let (stop, stopped) = watch::channel(false);
    let (home, state) = (paths.home.clone(), paths.state.clone());
    let settings = Settings {
        home,
        environment: BTreeMap::new(),
        layers: state.join("layers.toml"),
        policy: state.join("policy.toml"),
        state,
        opencode_servers: Vec::new(),
        client_folders: Vec::new(),
    };
    let (mut runtime, handle) = Runtime::open(&settings, stopped.clone())?;
    let (answered, _) = broadcast::channel(ANSWERS_KEPT);
    runtime.keep_recordings(answered.clone());
    let served = tokio::spawn(Server::serve(handle.clone(), Records::default(), doors, stopped));
    let mut running = tokio::spawn(runtime.run());
    for (index, capture) in CAPTURES.iter().enumerate() {
        let player = Player::of(capture, handle.clone(), args.speed, answered.subscribe());
        let begins = (STAGGER * index as u32).div_f64(args.speed);
        tokio::spawn(async move {
            sleep(begins).await;
            player.run().await;
        });
    }
    let shown = async {
        if !args.no_watch {
            return crate::watch::watch(&paths).await;
        }
        println!("The demo listens at http://{address} and {}", paths.socket.display());
        println!("Look at it with:");
        println!("  {} qd status", folder.environment());
        println!("The board: {}", crate::open::invite(&paths).await?);
        std::future::pending().await
    };
    let ended = tokio::select! {
        shown = shown => shown,
        _ = terminated.recv() => Ok(()),
        _ = interrupted.recv() => Ok(()),
        ran = &mut running => {
            ran?.context("the demo cannot go on")?;
            bail!("the demo's daemon stopped");
        }
    };
    stop.send_replace(true);
    running.await??;
    served.await??;
    ended
}

/// A folder that goes when the demo ends.
struct Temporary {
    root: PathBuf,
}

impl Temporary {
    fn new() -> Result<Self> {
        // Short: a socket's path has at most 107 bytes.
        let root = std::env::temp_dir().join(format!("qd-demo-{}", std::process::id()));
        let place = root.display().to_string();
        let cannot = || format!("cannot make {place}");
        // A folder that somebody else made in our name is refused.
        fs::DirBuilder::new().mode(0o700).create(&root).with_context(cannot)?;
        let folder = Self { root };
        let state = folder.paths().state;
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&state).with_context(cannot)?;
        Ok(folder)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn paths(&self) -> Paths {
        let place = |folder: &str| Path::new(&self.at(folder)).join("quarterdeck");
        let socket = place("run").join("qd.sock");
        Paths {
            home: self.at("home"),
            state: place("state"),
            config: self.at("config.toml"),
            socket,
        }
    }

    /// What makes other commands find it.
    fn environment(&self) -> String {
        let (run, state) = (self.at("run"), self.at("state"));
        format!("XDG_RUNTIME_DIR={} XDG_STATE_HOME={}", run.display(), state.display())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.root) {
            eprintln!("qd: {} could not be removed: {error}", self.root.display());
        }
    }
}
