//! Another program, run to its end or stopped when it takes too long.

use std::io::Read;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// Most of its output that is kept.
const OUTPUT_BYTES_MAX: u64 = 1 << 20;

/// After its end its output ends too, unless a child of its own still has it.
const OUTPUT_WAIT_MAX: Duration = Duration::from_secs(1);

const LOOK_EVERY: Duration = Duration::from_millis(5);

/// What it said and how it ended. Its input is empty.
pub fn run(command: &mut Command, wait_max: Duration) -> Result<Output> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("it cannot be run")?;
    let (stdout, stderr) = (collected(child.stdout.take()), collected(child.stderr.take()));
    let end = Instant::now() + wait_max;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() >= end {
            child.kill().context("it hangs and cannot be stopped")?;
            child.wait()?;
            bail!("it does not end");
        }
        std::thread::sleep(LOOK_EVERY);
    };
    let said = |output: Receiver<Vec<u8>>| output.recv_timeout(OUTPUT_WAIT_MAX).unwrap_or_default();
    Ok(Output { status, stdout: said(stdout), stderr: said(stderr) })
}

/// Reads beside us, so that a program that says much does not wait for us.
fn collected(output: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut output) = output {
            // What came before an error is worth as much.
            let _ = output.by_ref().take(OUTPUT_BYTES_MAX).read_to_end(&mut bytes);
            let _ = std::io::copy(&mut output, &mut std::io::sink());
        }
        // Nobody waits any more if it was too slow.
        let _ = tell.send(bytes);
    });
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_says_is_kept_up_to_a_bound() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "head -c 3000000 /dev/zero; echo no >&2; exit 3"]);
        let output = run(&mut command, Duration::from_secs(60)).expect("it ends");
        assert_eq!(output.status.code(), Some(3));
        assert_eq!(
            (output.stdout.len() as u64, &output.stderr[..]),
            (OUTPUT_BYTES_MAX, &b"no\n"[..])
        );
    }

    #[test]
    fn what_hangs_is_stopped() {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", "exec sleep 1000"]);
        let error = run(&mut command, Duration::ZERO).expect_err("it hangs");
        assert_eq!(error.to_string(), "it does not end");
        assert!(run(&mut Command::new("/nowhere"), Duration::ZERO).is_err());
    }
}
