//! Programs that call themselves `opencode` and listen, beside a real one.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use qd_runners::tools::{Toolbox, ToolboxSettings};
use qd_runners::warden::Warden;
use qd_session::machine::{ToolCall, ToolOrder};
use qd_sources::live::NoticeKind;
use qd_sources::opencode_servers::OpencodeServers;
use qd_sources::places::places;
use qd_testbed::{Client, Home, Model, Result, Script};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::board::{Board, PATIENCE, Source, now};

/// Listens on loopback, says that it does, and writes down whoever asks it something.
const SERVER: &str = "
import ctypes, socket, sys
ctypes.CDLL(None).prctl(15, b'opencode', 0, 0, 0)
server = socket.create_server(('127.0.0.1', 0))
open(sys.argv[1] + '/listens', 'w').write('yes')
while True:
    caller, _ = server.accept()
    open(sys.argv[1] + '/asked', 'a').write(caller.recv(4096).decode(errors='replace'))
    caller.sendall(b'HTTP/1.1 200 OK\\r\\ncontent-type: application/json\\r\\ncontent-length: 2\\r\\n\\r\\n[]')
    caller.close()
";

struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn until_listens(folder: &Path) {
    let deadline = Instant::now() + PATIENCE;
    while !folder.join("listens").exists() {
        assert!(Instant::now() < deadline, "{} listens", folder.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// One that has the right name and runs another program; and one that runs a program of the right
/// name in our own sandbox. The real one is found, and nobody else is spoken to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_in_our_sandbox_and_nobody_by_name_alone_is_taken_for_opencode() -> Result<()> {
    let home = Home::new()?;
    let [named, confined] = ["named", "confined"].map(|name| home.path().join(name));
    for folder in [&named, &confined] {
        fs::create_dir_all(folder).expect("made");
        fs::write(folder.join("server.py"), SERVER).expect("written");
    }
    let by_name = Command::new("/usr/bin/python3")
        .arg(named.join("server.py"))
        .arg(&named)
        .env("HOME", home.path())
        .stdin(Stdio::null())
        .spawn()
        .expect("it starts");
    let _by_name = Ended(by_name);

    let warden = Warden::at(Path::new(env!("CARGO_BIN_EXE_qd-warden")), &[]);
    let mut settings = ToolboxSettings::new(confined.clone(), home.path().join("scratch"), warden);
    settings.environment.insert("HOME".to_owned(), home.path().display().to_string());
    let toolbox = Toolbox::open(settings).expect("it opens");
    // A copy of an interpreter under the right name: its executable is called as the real one's.
    let command = "cp /usr/bin/python3 opencode; ./opencode server.py .";
    let call = ToolCall {
        call_id: "call_1".into(),
        name: "bash".into(),
        arguments: json!({"command": command, "timeout_ms": 600_000}),
        mutating: true,
    };
    let order = ToolOrder { run: "toolrun_1".into(), attempt: 1, call };
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let running = tokio::spawn(async move { toolbox.run(&order, cancel).await });
    until_listens(&named);
    until_listens(&confined);

    let model = Model::start(Script::new())?;
    let _real = Client::opencode(&home, &model)?.served().service()?;
    let places = places(&home.path(), &BTreeMap::new());
    let source = OpencodeServers::start(&[], &home.path(), &places, now).unwrap();
    let mut board = Board::of(Source::Opencode(source));
    board.until_notice(&NoticeKind::Attached).await;
    let asked = [&named, &confined].map(|folder| fs::read_to_string(folder.join("asked")).ok());
    assert_eq!(asked, [None, None], "the one by its name, and the one in the sandbox");
    assert_eq!(board.count(&NoticeKind::Attached), 1);
    stop.cancel();
    running.await.expect("it ends");
    Ok(())
}
