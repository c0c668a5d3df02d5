//! A real daemon in a process of its own, which can be killed. It keeps the hooks that wait, says
//! so on its standard error, and answers them as its standard input says.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;

use qd_daemon::runtime::{Runtime, Settings};
use qd_hook_wire::{FrameId, HookReply};
use qd_server::{Doors, Records, Server, Tokens};
use qd_sources::hook_intake::bind;
use tokio::net::UnixListener;
use tokio::sync::watch;

use crate::world::{GENEROUS, World};

pub struct Keeper {
    process: Child,
    orders: ChildStdin,
    said: mpsc::Receiver<String>,
}

/// What a daemon does with hooks that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Habit {
    Keeps,
    /// As it does by itself.
    Releases,
}

impl Keeper {
    pub fn start(world: &World, habit: Habit) -> Self {
        let mut process = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "keeper::daemon_that_does_as_it_is_told", "--nocapture"])
            .env(ROOT, world.path(""))
            .env(HABIT, format!("{habit:?}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a daemon");
        let lines = BufReader::new(process.stderr.take().expect("its errors")).lines();
        let (tell, said) = mpsc::channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                // Nobody may be listening any more.
                let _ = tell.send(line);
            }
        });
        let orders = process.stdin.take().expect("its input");
        let keeper = Self { process, orders, said };
        keeper.hears("ready");
        keeper
    }

    /// Waits for a line that begins so, and gives the rest of it.
    pub fn hears(&self, beginning: &str) -> String {
        loop {
            let line = self.said.recv_timeout(GENEROUS).expect(beginning);
            if let Some(rest) = line.strip_prefix(beginning) {
                return rest.trim().to_owned();
            }
        }
    }

    /// The id of a hook that waits from now on.
    pub fn waits(&self) -> String {
        self.hears("waits ")
    }

    /// `print`, `rewake` or `release`; gives what became of it.
    pub fn answers(&mut self, verb: &str, id: &str, text: &str) -> String {
        writeln!(self.orders, "{verb} {id} {text}").expect("it listens");
        self.hears(&format!("outcome {id} "))
    }

    /// As by `kill -9`.
    pub fn kill(mut self) {
        self.process.kill().expect("killed");
        self.process.wait().expect("gone");
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        // It may have been killed before.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub fn settings(root: &Path) -> Settings {
    Settings {
        home: root.join("home"),
        environment: BTreeMap::new(),
        state: root.join("state/quarterdeck"),
        opencode_servers: Vec::new(),
        client_folders: Vec::new(),
        layers: root.join("layers.toml"),
        policy: root.join("policy.toml"),
    }
}

/// No test of its own: the others run it in a process.
#[test]
fn daemon_that_does_as_it_is_told() {
    let Some(root) = std::env::var_os(ROOT).map(PathBuf::from) else { return };
    let keeps = std::env::var(HABIT).is_ok_and(|habit| habit == format!("{:?}", Habit::Keeps));
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(daemon(&root, keeps));
}

async fn daemon(root: &Path, keeps: bool) {
    let socket = bind(&root.join("run/quarterdeck/qd.sock")).expect("the socket is free");
    socket.set_nonblocking(true).expect("a socket of Tokio");
    let doors = Doors {
        socket: UnixListener::from_std(socket).expect("a socket of Tokio"),
        port: Server::listen(0).await.expect("a port"),
        tokens: Tokens::open(&root.join("tokens")).expect("tokens"),
        hosts: Vec::new(),
    };
    let (_stop, stopped) = watch::channel(false);
    let (mut runtime, handle) = Runtime::open(&settings(root), stopped.clone()).expect("opens");
    let (answerer, mut heard) = tokio::sync::mpsc::channel(256);
    if keeps {
        runtime.keep_waiters(answerer);
    }
    tokio::spawn(runtime.run());
    tokio::spawn(Server::serve(handle.clone(), Records::default(), doors, stopped));
    eprintln!("ready");
    let (told, mut orders) = tokio::sync::mpsc::channel(256);
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            told.blocking_send(line).expect("it listens");
        }
    });
    loop {
        tokio::select! {
            Some(frame) = heard.recv() => eprintln!("waits {}", frame.id),
            Some(order) = orders.recv() => {
                let mut words = order.splitn(3, ' ');
                let mut word = || words.next().expect("three words").to_owned();
                let (verb, id, text) = (word(), word(), word());
                let reply = match verb.as_str() {
                    "print" => HookReply::print(text),
                    "rewake" => HookReply::rewake(text),
                    _ => Some(HookReply::release()),
                };
                let frame = FrameId::parse(&id).expect("an id");
                let outcome = handle.reply(frame, reply.expect("short")).await.expect("it lives");
                eprintln!("outcome {id} {outcome:?}");
            }
            else => return,
        }
    }
}

const ROOT: &str = "QD_TEST_KEEPER_ROOT";
const HABIT: &str = "QD_TEST_KEEPER_HABIT";
