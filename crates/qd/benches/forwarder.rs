//! What an agent waits for at each hook (P10, P11).
//!
//! `cargo xtask bench forwarder`, which builds the forwarder as it is shipped and names it in
//! `QD_HOOK`; without that the one built beside this bench is measured. Ratios count, not
//! absolutes: the machine is shared. All runs go through `sh -c` and take turns, so that a noisy
//! moment meets them all.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use qd_hook_wire::ACK;
use qd_sources::hook_intake::{FrameParser, KnownIds, Spool, bind};

/// Turns of the cheap runs.
const TURNS: usize = 400;

/// Turns of the run that costs its whole budget each time.
const TURNS_HUNG: usize = 20;

fn main() {
    let bench = Bench::new();
    let script = bench.curl_script();
    let up = bench.path("up");
    let down = bench.path("down");
    let hung = bench.path("hung");
    acknowledge_forever(bind(&socket_in(&up)).expect("a socket"));
    let never_accepts = bind(&socket_in(&hung)).expect("a socket");

    let mut runs = vec![
        Run::new("true", "true".into(), &up),
        Run::new("qd-hook, daemon up", bench.hook_line(), &up),
        Run::new("qd-hook, daemon down", bench.hook_line(), &down),
    ];
    match &script {
        Some(script) => runs.push(Run::new("bash + curl", format!("'{}'", script.display()), &up)),
        None => println!("bash + curl: skipped, no curl or bash here"),
    }
    for _ in 0..TURNS {
        runs.iter_mut().for_each(Run::turn);
    }
    let mut hung_run = Run::new("qd-hook, daemon hung", bench.hook_line(), &hung);
    (0..TURNS_HUNG).for_each(|_| hung_run.turn());
    drop(never_accepts);

    println!(
        "{} ({} bytes)",
        bench.hook.display(),
        fs::metadata(&bench.hook).expect("there").len()
    );
    runs.iter().chain([&hung_run]).for_each(Run::tell);
    let [true_run, up_run, down_run, ..] = runs.as_slice() else { unreachable!("three at least") };
    for percent in [10, 50] {
        let at = |run: &Run| run.percentile(percent);
        println!("at p{percent}:");
        println!("  P10 over `true`: {:.2} ms (target ≤ 2)", at(up_run) - at(true_run));
        if let Some(curl_run) = runs.get(3) {
            let over_true = (at(curl_run) - at(true_run)) / (at(up_run) - at(true_run));
            println!(
                "  P10 bash + curl ÷ qd-hook: {:.1}× (target ≥ 4×)",
                at(curl_run) / at(up_run)
            );
            println!("      both less `true`: {over_true:.1}×");
        }
        println!("  P11 down over up: {:.2} ms (target ≤ 1)", at(down_run) - at(up_run));
    }
    println!("P11 hung: p95 {:.0} ms (target ≤ 250)", hung_run.percentile(95));
    println!(
        "P11 spooled: down {} of {TURNS}, hung {} of {TURNS_HUNG}",
        spooled(&down),
        spooled(&hung)
    );
    assert_eq!((spooled(&up), spooled(&down), spooled(&hung)), (0, 0, 0), "each was taken once");
    bench.nearly_full(&down);
}

struct Bench {
    root: PathBuf,
    hook: PathBuf,
}

impl Bench {
    fn new() -> Self {
        let root = std::env::temp_dir().join(format!("qd-bench-{}", std::process::id()));
        fs::create_dir_all(&root).expect("a temporary folder");
        let built = || PathBuf::from(env!("CARGO_BIN_EXE_qd-hook"));
        Self { root, hook: std::env::var_os("QD_HOOK").map_or_else(built, PathBuf::from) }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    fn hook_line(&self) -> String {
        // Claude Code proves to the forwarder that it is the caller.
        let session = "CLAUDE_CODE_SESSION_ID=5f0c7f5e-0d3a-4c37-9a55-2f1c7d8e9b10";
        format!("{session} '{}' send --harness claude-code", self.hook.display())
    }

    /// The script of the product's first plan, against a server that answers at once.
    fn curl_script(&self) -> Option<PathBuf> {
        let there = |program| {
            let run = Command::new(program).arg("--version").stdout(Stdio::null()).status();
            run.is_ok_and(|status| status.success())
        };
        if !there("curl") || !there("bash") {
            return None;
        }
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its address").port();
        std::thread::spawn(move || answer_forever(&listener));
        let script = self.path("notify.sh");
        let text = format!(
            "#!/bin/bash\n\
             curl -s --max-time 1 -X POST \"http://localhost:{port}/api/live/hook\" \\\n  \
             -H \"Content-Type: application/json\" \\\n  -d @- >/dev/null 2>&1\nexit 0\n"
        );
        fs::write(&script, text).expect("written");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).expect("runnable");
        Some(script)
    }

    /// The daemon has been down for hours: what does one more hook cost?
    fn nearly_full(&self, home: &Path) {
        let spool = home.join("state/quarterdeck/spool");
        for index in 0..1_900 {
            let name = format!("{index:032x}-1500.frame");
            fs::write(spool.join(name), "").expect("written");
        }
        let mut run = Run::new("qd-hook, down, 1,900 spooled", self.hook_line(), home);
        (0..100).for_each(|_| run.turn());
        run.tell();
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// One command, run many times.
struct Run {
    name: &'static str,
    line: String,
    home: PathBuf,
    took_ms: Vec<f64>,
}

impl Run {
    fn new(name: &'static str, line: String, home: &Path) -> Self {
        Self { name, line, home: home.to_owned(), took_ms: Vec::new() }
    }

    fn turn(&mut self) {
        let begun = Instant::now();
        let mut child = Command::new("/bin/sh")
            .args(["-c", &self.line])
            .env("XDG_RUNTIME_DIR", self.home.join("run"))
            .env("XDG_STATE_HOME", self.home.join("state"))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("sh runs");
        // `true` ends without reading.
        let _ = child.stdin.take().expect("its input").write_all(PAYLOAD.as_bytes());
        assert!(child.wait().expect("it ends").success());
        self.took_ms.push(begun.elapsed().as_secs_f64() * 1e3);
    }

    fn percentile(&self, percent: usize) -> f64 {
        let mut sorted = self.took_ms.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[(sorted.len() - 1) * percent / 100]
    }

    fn tell(&self) {
        // The tenth percentile is what it costs in the quiet moments of a busy machine.
        let [p10, p50, p95] = [10, 50, 95].map(|percent| self.percentile(percent));
        println!("{:30} p10 {p10:7.2}  p50 {p50:7.2}  p95 {p95:7.2} ms", self.name);
    }
}

fn socket_in(home: &Path) -> PathBuf {
    home.join("run/quarterdeck/qd.sock")
}

fn acknowledge_forever(listener: UnixListener) {
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, mut parser) = (stream.expect("a hook"), FrameParser::default());
            let mut chunk = [0; 1 << 16];
            loop {
                let count = stream.read(&mut chunk).expect("bytes");
                let frame = parser.next_frame(&mut &chunk[..count]);
                if frame.is_some() || count == 0 {
                    break;
                }
            }
            stream.write_all(&[ACK]).expect("the hook waits for it");
        }
    });
}

/// An HTTP server that reads one request and answers in one write.
fn answer_forever(listener: &TcpListener) {
    for stream in listener.incoming() {
        let mut stream = stream.expect("a request");
        stream.set_nodelay(true).expect("set");
        stream.set_read_timeout(Some(Duration::from_secs(1))).expect("set");
        let (mut request, mut chunk) = (Vec::new(), [0; 1 << 16]);
        while !request.ends_with(PAYLOAD.trim_end().as_bytes()) {
            match stream.read(&mut chunk) {
                Ok(count) if count > 0 => request.extend_from_slice(&chunk[..count]),
                _ => break,
            }
        }
        let _ =
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    }
}

/// Drains a spool; says how many frames with our payload were in it.
fn spooled(home: &Path) -> usize {
    let spool = Spool::open(&home.join("state/quarterdeck/spool")).expect("the spool");
    let (mut known, mut count) = (KnownIds::default(), 0);
    loop {
        let batch = spool.next_batch(0, &mut known).expect("read");
        if batch.frames.is_empty() {
            return count;
        }
        count += batch.frames.iter().filter(|frame| frame.payload == PAYLOAD.as_bytes()).count();
        spool.settle(batch, &mut known).expect("settled");
    }
}

/// As long as most: a tool call with a short command.
const PAYLOAD: &str = concat!(
    r#"{"session_id":"5f0c7f5e-0d3a-4c37-9a55-2f1c7d8e9b10","transcript_path":"/home/user/.claude/"#,
    r#"projects/-home-user-acme/5f0c7f5e-0d3a-4c37-9a55-2f1c7d8e9b10.jsonl","cwd":"/home/user/acme","#,
    r#""permission_mode":"default","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":"#,
    r#"{"command":"cargo test --workspace","description":"Run all tests"},"tool_use_id":"#,
    r#""toolu_01A2b3C4d5E6f7G8h9I0j1K2"}"#,
    "\n"
);
