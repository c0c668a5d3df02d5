//! The operator's other programs beside a command: it learns nothing of them and does them nothing,
//! and the programs that it runs itself find what they need.

use std::fs::File;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use qd_runners::tools::{SandboxConfig, Toolbox};
use qd_runners::warden::{Enforced, LocalSockets};
use qd_session::machine::ToolOutcome;
use serde_json::json;

use super::world::{SECRET, World, run, warden};

/// A program with secrets in its environment, in its folder and in a file that it holds.
struct Neighbour(Child);

impl Neighbour {
    fn of(world: &World) -> Self {
        let secret = File::open(world.outside().join("secret")).expect("there");
        let child = Command::new("sleep")
            .arg("600")
            .env("NEIGHBOURS_TOKEN", SECRET)
            .current_dir(world.outside())
            .stdin(secret)
            .stdout(Stdio::null())
            .process_group(0)
            .spawn();
        let neighbour = Self(child.expect("it starts"));
        // Its environment is there a moment after it is.
        while !neighbour.environment().contains(SECRET) {
            std::thread::yield_now();
        }
        neighbour
    }

    fn environment(&self) -> String {
        let text = std::fs::read(format!("/proc/{}/environ", self.0.id()));
        String::from_utf8_lossy(&text.expect("we may read it")).into_owned()
    }
}

impl Drop for Neighbour {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn enforced() -> Enforced {
    SandboxConfig::default().enforced(&warden()).await.expect("a warden")
}

/// An older kernel lacks this, and `qd doctor` says so.
async fn is_scoped() -> bool {
    enforced().await == Enforced::Fully
}

#[tokio::test]
async fn a_command_learns_nothing_of_other_programs() {
    let world = World::new();
    let neighbour = Neighbour::of(&world);
    let (pid, out) = (neighbour.0.id(), world.outside());
    let out = out.display();
    for command in [
        format!("cat /proc/{pid}/environ"),
        format!("cat /proc/{pid}/task/{pid}/environ"),
        format!("cat /proc/{pid}/cwd/secret"),
        format!("cat /proc/{pid}/root{out}/secret"),
        format!("cat /proc/{pid}/fd/0"),
        format!("readlink /proc/{pid}/cwd"),
        format!("readlink /proc/{pid}/exe"),
        format!("cat /proc/{pid}/maps"),
        format!("cat /proc/{pid}/auxv"),
        format!(": < /proc/{pid}/mem"),
        format!("echo x > /proc/{pid}/comm"),
        ": < /proc/kcore".to_owned(),
        "mknod disk b 254 0".to_owned(),
        "mount -t tmpfs none .".to_owned(),
        "unshare --user --map-root-user --mount mount -t tmpfs none .".to_owned(),
    ] {
        let told = world.mistake("bash", json!({"command": command})).await;
        assert!(!told.contains(SECRET), "{command}: {told}");
    }
}

/// Says which ways led somewhere; each has to be forbidden, not merely fail.
const WAYS: &str = "
import ctypes, os, signal, sys
libc = ctypes.CDLL(None, use_errno=True)
pid, EPERM = int(sys.argv[1]), 1
here = ctypes.create_string_buffer(8)
part = (ctypes.c_void_p * 2)(ctypes.addressof(here), 8)
handle = os.pidfd_open(pid)
ways = {
    'attach': lambda: libc.ptrace(16, pid, None, None),
    'seize': lambda: libc.ptrace(0x4206, pid, None, None),
    'read': lambda: libc.process_vm_readv(pid, part, 1, part, 1, 0),
    'write': lambda: libc.process_vm_writev(pid, part, 1, part, 1, 0),
    'descriptor': lambda: libc.syscall(438, handle, 0, 0),
}
if sys.argv[2] == 'signals':
    ways['kill'] = lambda: libc.kill(pid, signal.SIGKILL)
    ways['group'] = lambda: libc.killpg(os.getpgid(pid), signal.SIGKILL)
    ways['thread'] = lambda: libc.syscall(234, pid, pid, signal.SIGKILL)
    ways['handle'] = lambda: libc.syscall(424, handle, signal.SIGKILL, None, 0)
for name, way in ways.items():
    done = way()
    if done != -1 or ctypes.get_errno() != EPERM: print(name, done, ctypes.get_errno())
";

#[tokio::test]
async fn a_command_touches_no_other_program() {
    let world = World::new().with(&[("ways.py", WAYS)]);
    let mut neighbour = Neighbour::of(&world);
    let pid = neighbour.0.id().to_string();
    let signals = if is_scoped().await { "signals" } else { "" };
    let command = json!({"command": ["python3", "ways.py", pid, signals]});
    assert_eq!(world.ok("run_command", command).await, "[no output]\n");
    if is_scoped().await {
        world.mistake("bash", json!({"command": "kill -9 $PPID"})).await;
    }
    assert!(neighbour.0.try_wait().expect("ours").is_none(), "it lives");
}

/// A setting opens sockets that are files; those without one stay closed.
#[tokio::test]
async fn a_command_reaches_no_abstract_socket() {
    let world = World::new();
    let name = format!("qd-tools-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("a name");
    let listener = UnixListener::bind_addr(&address).expect("a socket");
    listener.set_nonblocking(true).expect("set");
    let script =
        format!("import socket; socket.socket(socket.AF_UNIX).connect('\\0{name}'); print('in')");
    let call = json!({"command": ["python3", "-c", script]});
    let told = world.mistake("run_command", call.clone()).await;
    assert!(told.contains("PermissionError"), "{told}");
    if is_scoped().await {
        let opened =
            SandboxConfig { local_sockets: LocalSockets::Allowed, ..SandboxConfig::default() };
        let toolbox = Toolbox::open(world.settings().with(opened)).expect("it opens");
        let outcome = run(&toolbox, "run_command", call).await;
        assert!(
            matches!(&outcome, ToolOutcome::Succeeded { output, is_error: true }
                if output.contains("PermissionError")),
            "{outcome:?}"
        );
    }
    assert!(listener.accept().is_err(), "nobody called");
}

#[tokio::test]
async fn usual_programs_work_beside_them() {
    let world = World::new();
    for (command, said) in [
        ("ps -o comm= -p $$; true", "bash\n"),
        ("ps aux | grep -c '^USER'", "1\n"),
        ("cat <(echo through a pipe)", "through a pipe\n"),
        (
            "readlink /proc/self/cwd | grep -c workspace; cat /proc/self/environ | tr '\\0' '\\n' | grep -c ^PATH=",
            "1\n1\n",
        ),
        ("(grep -c ^processor /proc/cpuinfo; grep -c MemTotal /proc/meminfo) | tail -1", "1\n"),
        (
            "git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git rev-list --count HEAD",
            "1\n",
        ),
        (
            "node -e 'console.log(require(\"os\").cpus().length > 0, process.memoryUsage().rss > 0)'",
            "true true\n",
        ),
        (
            "node -e 'console.log(require(\"child_process\").execSync(\"echo child\").toString().trim())'",
            "child\n",
        ),
        (
            "/usr/bin/python3 -c 'import subprocess; print(subprocess.check_output([\"echo\", \"child\"], text=True).strip())'",
            "child\n",
        ),
        (
            "/usr/bin/python3 -c 'import threading; t = threading.Thread(target=print, args=(\"thread\",)); t.start(); t.join()'",
            "thread\n",
        ),
        ("sleep 600 & kill %1; wait; echo killed", "killed\n"),
    ] {
        assert_eq!(world.ok("bash", json!({"command": command})).await, said, "{command}");
    }
}

/// Rust's own tools live in a home; what they need of it is open.
#[tokio::test]
async fn cargo_builds_in_the_workspace() {
    let world = World::new().with(&[
        ("Cargo.toml", "[package]\nname = \"x\"\nedition = \"2024\"\n[workspace]\n"),
        ("src/main.rs", "fn main() { println!(\"built\"); }\n"),
    ]);
    let mut settings = world.settings();
    settings.environment = std::env::vars().collect();
    settings.sandbox.environment.extend(["CARGO_HOME", "RUSTUP_HOME"].map(str::to_owned));
    settings
        .sandbox
        .read
        .extend(["CARGO_HOME", "RUSTUP_HOME"].iter().filter_map(std::env::var_os).map(Into::into));
    let toolbox = Toolbox::open(settings).expect("it opens");
    let outcome = run(&toolbox, "bash", json!({"command": "cargo run -q --offline"})).await;
    assert_eq!(outcome, ToolOutcome::Succeeded { output: "built\n".into(), is_error: false });
}
