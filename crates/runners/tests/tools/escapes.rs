//! Every way out of the workspace that we know, tried.

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use qd_runners::tools::Toolbox;
use qd_runners::warden::{LocalSockets, Network};
use qd_session::machine::ToolOutcome;
use serde_json::{Value, json};

use super::world::{SECRET, World, run};

/// A workspace with every link that leads out.
fn trapped() -> World {
    let world = World::new().with(&[("sub/file", "x\n")]);
    let outside = world.outside();
    for (name, to) in [
        ("file-link", outside.join("secret")),
        ("folder-link", outside.clone()),
        ("up-link", "../outside".into()),
        ("dangling", outside.join("new")),
        ("dangling-up", "../outside/new".into()),
        ("root", "/".into()),
        ("proc", "/proc/self/root".into()),
        ("fd", "/proc/self/cwd".into()),
        ("sub/chain", "../folder-link".into()),
    ] {
        symlink(to, world.path(name)).expect("linked");
    }
    world
}

fn ways_out(world: &World) -> Vec<String> {
    let base = world.base.display();
    let mut ways: Vec<String> = [
        "../outside/secret",
        "sub/../../outside/secret",
        "file-link",
        "folder-link/secret",
        "up-link/secret",
        "sub/chain/secret",
        "folder-link/../outside/secret",
        "/etc/passwd",
        "/proc/self/environ",
        concat!("/proc/self/", "root", "/etc/passwd"),
        "..",
        "/",
    ]
    .map(str::to_owned)
    .to_vec();
    ways.extend([
        format!("{base}/outside/secret"),
        format!("{base}/workspace/../outside/secret"),
        format!("{base}/workspaceX/../outside/secret"),
        format!("root{base}/outside/secret"),
        format!("proc{base}/outside/secret"),
        "fd/../outside/secret".to_owned(),
        format!("/proc/self/root{base}/workspace/sub/file"),
    ]);
    ways
}

#[tokio::test]
async fn no_path_leads_out() {
    let world = trapped();
    for way in ways_out(&world) {
        for (tool, arguments) in [
            ("read_file", json!({"path": way})),
            ("list_files", json!({"path": way})),
            ("grep", json!({"pattern": ".", "path": way})),
            ("search", json!({"query": "secret", "path": way})),
            ("write_file", json!({"path": way, "content": "x"})),
            ("edit_file", json!({"path": way, "old_text": "secret", "new_text": "x"})),
            ("bash", json!({"command": "ls", "folder": way})),
            ("run_command", json!({"command": ["ls"], "folder": way})),
        ] {
            let why = world.failure(tool, arguments).await;
            assert!(why.starts_with("refused: "), "{tool} {way}: {why}");
        }
    }
    for way in [
        "dangling",
        "dangling-up",
        "up-link/new",
        "folder-link/a/b/new",
        "../new",
        "root/tmp/qd-new",
    ] {
        let why = world.failure("write_file", json!({"path": way, "content": "x"})).await;
        assert!(why.starts_with("refused: "), "{way}: {why}");
    }
    let names: Vec<_> = fs::read_dir(world.outside()).expect("a folder").flatten().collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert_eq!(fs::read_to_string(world.outside().join("secret")).expect("there"), SECRET);
}

#[tokio::test]
async fn no_search_follows_a_link_out() {
    let world = trapped();
    for (tool, arguments) in [
        ("list_files", json!({"depth": 9})),
        ("grep", json!({"pattern": SECRET})),
        ("search", json!({"query": SECRET})),
    ] {
        let said = world.ok(tool, arguments).await;
        assert!(!said.contains(SECRET) && !said.contains("link/secret"), "{tool}: {said}");
    }
}

/// Somebody swaps a folder for a link to the outside, again and again, while tools work in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_that_is_swapped_during_a_call_leads_nowhere_else() {
    use rustix::fs::{CWD, RenameFlags, renameat_with};

    let world = World::new().with(&[("folder/secret", "mine\n")]);
    let (folder, link) = (world.path("folder"), world.path("link"));
    symlink(world.outside(), &link).expect("linked");
    let over = Arc::new(AtomicBool::new(false));
    let swapping = {
        let over = over.clone();
        std::thread::spawn(move || {
            let mut swaps = 0_u64;
            while !over.load(Ordering::Relaxed) {
                renameat_with(CWD, &folder, CWD, &link, RenameFlags::EXCHANGE).expect("swapped");
                swaps += 1;
            }
            swaps
        })
    };
    let toolbox = world.toolbox();
    let (mut seen, mut refused) = (0, 0);
    for number in 0..400 {
        let calls: [(&str, Value); 5] = [
            ("read_file", json!({"path": "folder/secret"})),
            ("grep", json!({"pattern": "e"})),
            ("write_file", json!({"path": format!("folder/new-{number}"), "content": "x"})),
            (
                "edit_file",
                json!({"path": "folder/secret", "old_text": "mine", "new_text": "mine!"}),
            ),
            ("write_file", json!({"path": format!("folder/a{number}/b"), "content": "x"})),
        ];
        for (tool, arguments) in calls {
            match run(&toolbox, tool, arguments).await {
                ToolOutcome::Succeeded { output, .. } => {
                    assert!(!output.contains(SECRET), "{tool}: {output}");
                    seen += 1;
                }
                ToolOutcome::Failed { .. } => refused += 1,
            }
        }
    }
    over.store(true, Ordering::Relaxed);
    let swaps = swapping.join().expect("it swapped");
    let names: Vec<_> = fs::read_dir(world.outside()).expect("a folder").flatten().collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert_eq!(fs::read_to_string(world.outside().join("secret")).expect("there"), SECRET);
    assert!(seen > 0 && refused > 0 && swaps > 0, "{seen} {refused} {swaps}");
}

/// Bash is asked to do it; what it prints and what is on disk afterwards tells.
async fn check_command(world: &World, command: &str) {
    let outcome = world.run("bash", json!({"command": command, "timeout_ms": 20_000})).await;
    let ToolOutcome::Succeeded { output, is_error } = &outcome else {
        panic!("{command}: {outcome:?}")
    };
    // What it may look at and cannot see is empty.
    let sees_nothing = *is_error || **output == *"[no output]\n";
    assert!(sees_nothing && !output.contains(SECRET), "{command}: {output}");
}

#[tokio::test]
async fn commands_read_and_write_nothing_outside() {
    let world = trapped();
    let (base, outside) = (world.base.display(), world.outside());
    let out = outside.display();
    for command in [
        format!("cat {out}/secret"),
        "cat ../outside/secret".to_owned(),
        "cat ~/.ssh/id".to_owned(),
        "cat file-link".to_owned(),
        format!("cat /proc/self/root{base}/outside/secret"),
        format!("cat proc{base}/outside/secret"),
        format!("ls {out} && cat {out}/*"),
        format!("echo x > {out}/new"),
        format!("echo x >> {out}/secret"),
        format!("truncate -s 0 {out}/secret"),
        format!("rm {out}/secret"),
        format!("mv {out}/secret ."),
        format!("ln {out}/secret inside && cat inside"),
        format!("ln -s {out}/secret soft && cat soft"),
        format!("mkdir {out}/new"),
        format!("mv sub {out}/new"),
        "echo x > dangling".to_owned(),
        "echo x > /tmp/qd-escaped".to_owned(),
        "echo x > ~/.bashrc".to_owned(),
        "echo x > /dev/shm/qd-escaped".to_owned(),
        "echo x > /proc/sys/kernel/core_pattern".to_owned(),
        "cat /proc/$PPID/environ".to_owned(),
        "cat /proc/$PPID/fd/2".to_owned(),
        format!("cat /proc/{}/root{out}/secret", std::process::id()),
        format!("cat /proc/{}/cwd/Cargo.toml", std::process::id()),
    ] {
        check_command(&world, &command).await;
    }
    let names: Vec<_> = fs::read_dir(&outside).expect("a folder").flatten().collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert_eq!(fs::read_to_string(outside.join("secret")).expect("there"), SECRET);
    assert!(!std::path::Path::new("/tmp/qd-escaped").exists());
}

#[tokio::test]
async fn what_a_setting_opens_is_open() {
    let world = trapped();
    let (outside, base) = (world.outside(), &world.base);
    let open = |read: bool| {
        let mut settings = world.settings();
        match read {
            true => settings.sandbox.read.push(outside.clone()),
            false => settings.sandbox.write.push(outside.clone()),
        }
        Toolbox::open(settings).expect("it opens")
    };
    let cat = json!({"command": format!("cat {}/outside/secret", base.display())});
    let outcome = run(&open(true), "bash", cat.clone()).await;
    assert_eq!(
        outcome,
        ToolOutcome::Succeeded { output: format!("{SECRET}\n").into(), is_error: false }
    );
    let write = json!({"command": format!("echo x > {}/outside/new", base.display())});
    let outcome = run(&open(true), "bash", write.clone()).await;
    assert!(matches!(outcome, ToolOutcome::Succeeded { is_error: true, .. }), "{outcome:?}");
    let outcome = run(&open(false), "bash", write).await;
    assert!(matches!(outcome, ToolOutcome::Succeeded { is_error: false, .. }), "{outcome:?}");
}

#[tokio::test]
async fn the_network_is_closed_where_it_is_forbidden() {
    let world = World::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let call = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo called >&3 && echo done");
    let said = world.ok("bash", json!({"command": call})).await;
    assert_eq!(said, "done\n");
    let mut heard = String::new();
    listener.accept().expect("a call").0.read_to_string(&mut heard).expect("text");
    assert_eq!(heard, "called\n");

    let mut settings = world.settings();
    settings.sandbox.network = Network::Forbidden;
    let toolbox = Toolbox::open(settings).expect("it opens");
    listener.set_nonblocking(true).expect("set");
    let packet = format!("echo x > /dev/udp/127.0.0.1/{port}");
    for command in [call, packet] {
        let outcome = run(&toolbox, "bash", json!({"command": command})).await;
        assert!(matches!(outcome, ToolOutcome::Succeeded { is_error: true, .. }), "{outcome:?}");
    }
    assert!(listener.accept().is_err(), "nobody called");
}

/// Our own socket takes commands without a token from whoever can open it.
#[tokio::test]
async fn sockets_of_this_machine_are_closed_unless_a_setting_opens_them() {
    let world = World::new();
    let path = world.path("daemon.sock");
    let listener = UnixListener::bind(&path).expect("a socket");
    listener.set_nonblocking(true).expect("set");
    let script =
        "import socket; s = socket.socket(socket.AF_UNIX); s.connect('daemon.sock'); print('in')";
    let call = json!({"command": ["python3", "-c", script]});
    let told = world.mistake("run_command", call.clone()).await;
    assert!(told.contains("PermissionError"), "{told}");
    assert!(listener.accept().is_err(), "nobody called");
    let mut settings = world.settings();
    settings.sandbox.local_sockets = LocalSockets::Allowed;
    let toolbox = Toolbox::open(settings).expect("it opens");
    let outcome = run(&toolbox, "run_command", call).await;
    assert_eq!(outcome, ToolOutcome::Succeeded { output: "in\n".into(), is_error: false });
    assert!(listener.accept().is_ok());
    // Two ends of a pair lead nowhere else, and programs talk to their children by them.
    let pair = "import socket; a, b = socket.socketpair(); a.send(b'x'); print(b.recv(1))";
    assert_eq!(
        world.ok("run_command", json!({"command": ["python3", "-c", pair]})).await,
        "b'x'\n"
    );
}

#[tokio::test]
async fn a_command_cannot_become_more_than_it_is() {
    let world = World::new();
    let said =
        world.ok("bash", json!({"command": "grep NoNewPrivs /proc/self/status; ulimit -c"})).await;
    assert_eq!(said, "NoNewPrivs:\t1\n0\n");
}
