//! Says what the daemon told a hook that waits.

use std::io::Write;

use qd_hook_wire::HookReply;

/// Prints it and exits. An agent that does not listen any more is not told, and that is all right.
pub fn say(reply: HookReply) -> ! {
    let (exit, stdout, stderr) = reply.into_parts();
    let (mut out, mut err) = (std::io::stdout().lock(), std::io::stderr().lock());
    let _ = out.write_all(&stdout).and_then(|()| out.flush());
    let _ = err.write_all(&stderr);
    std::process::exit(exit.into())
}
