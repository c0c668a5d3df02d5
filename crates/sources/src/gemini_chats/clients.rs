//! The running clients of a project, by where they run and what they were started as.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use qd_host::processes::Process;
use qd_host::supervised::is_confined;

use super::assignment::Begin;

/// A running client.
#[derive(Debug, Clone, Copy)]
pub struct Client {
    pub process: Process,
    pub begin: Begin,
}

/// The clients of one user in one folder; none where processes are not to be seen.
pub fn clients(project: &Path, owner: u32) -> Option<Vec<Client>> {
    let mut found: Vec<(Client, Option<u32>)> = Vec::new();
    for entry in fs::read_dir("/proc").ok()?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let folder = entry.path();
        let own = fs::metadata(&folder).is_ok_and(|found| found.uid() == owner);
        if !own || !fs::read_link(folder.join("cwd")).is_ok_and(|cwd| cwd == project) {
            continue;
        }
        let Some(process) = Process::with_pid(pid) else { continue };
        let Some(command) = process.command_line() else { continue };
        // What a client is about to run, a hook say, looks like the client for a moment.
        if !is_client(&command) || process.is_bare_fork() || is_confined(pid) {
            continue;
        }
        let begin = Begin { at: process.started_at()?, resumes: resumes(&command) };
        found.push((Client { process, begin }, process.parent()));
    }
    // It may start itself again with other settings, and waits for that one.
    let waits = |client: &Client| found.iter().any(|(_, by)| *by == Some(client.process.pid));
    Some(found.iter().map(|(client, _)| *client).filter(|client| !waits(client)).collect())
}

/// Whether a command line is Gemini CLI's: its own name, or its script in an interpreter.
pub fn is_client(command: &[u8]) -> bool {
    let name =
        |word: &[u8]| word.rsplit(|byte| *byte == b'/').next().unwrap_or_default().to_owned();
    let mut words = command.split(|byte| *byte == 0);
    let program = name(words.next().unwrap_or_default());
    if program == b"gemini" {
        return true;
    }
    let interprets = [b"node".as_slice(), b"nodejs", b"bun", b"deno"].contains(&program.as_slice());
    let script = words.find(|word| !word.is_empty() && !word.starts_with(b"-"));
    interprets
        && script.is_some_and(|script| {
            let named = [b"gemini".as_slice(), b"gemini.js"].contains(&name(script).as_slice());
            named || memchr::memmem::find(script, b"/@google/gemini-cli/").is_some()
        })
}

fn resumes(command: &[u8]) -> bool {
    let mut words = command.split(|byte| *byte == 0);
    words.any(|word| word == b"-r" || word == b"--resume" || word.starts_with(b"--resume="))
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_client_is_known_by_its_command_line() {
        for command in [
            "gemini\0",
            "/usr/local/bin/gemini\0-p\0hello\0",
            "node\0/usr/local/bin/gemini\0",
            "/usr/bin/node\0--max-old-space-size=8192\0/x/@google/gemini-cli/bundle/gemini.js\0",
            "node\0/x/node_modules/@google/gemini-cli/dist/index.js\0--acp\0",
            "bun\0/x/gemini.js\0",
        ] {
            assert!(is_client(command.as_bytes()), "{command}");
        }
        for command in [
            "",
            "\0",
            "node\0",
            "node\0server.js\0gemini\0",
            "vim\0gemini.js\0",
            "/bin/sh\0-c\0gemini\0",
            "gemini-helper\0",
        ] {
            assert!(!is_client(command.as_bytes()), "{command}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_client_that_is_about_to_run_something_is_still_the_client() {
        let project = std::env::temp_dir().join(format!("qd-forks-{}", std::process::id()));
        fs::create_dir_all(&project).expect("a folder");
        let mut client = Command::new("bash")
            .arg0("gemini")
            .args(["-c", "{ (read x <&3) & echo $!; wait; } 3<&0"])
            .current_dir(&project)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let mut forked = String::new();
        let mut output = BufReader::new(client.stdout.take().expect("its output"));
        output.read_line(&mut forked).expect("a line");
        let owner = rustix::process::geteuid().as_raw();
        let found = clients(&fs::canonicalize(&project).expect("a folder"), owner);
        let forked = Process::with_pid(forked.trim().parse().expect("a pid")).expect("it lives");
        let seen = (forked.is_bare_fork(), forked.parent());
        drop(client.stdin.take());
        client.wait().expect("gone");
        fs::remove_dir(&project).expect("removed");
        assert_eq!(seen, (true, Some(client.id())));
        let pids: Vec<u32> =
            found.expect("processes").iter().map(|client| client.process.pid).collect();
        assert_eq!(pids, [client.id()]);
    }

    #[test]
    fn a_command_line_tells_whether_it_resumes() {
        for command in ["gemini\0-r\0latest\0", "gemini\0--resume\0", "gemini\0--resume=5\0"] {
            assert!(resumes(command.as_bytes()), "{command}");
        }
        assert!(!resumes(b"gemini\0-p\0please --resume it\0"));
    }
}
