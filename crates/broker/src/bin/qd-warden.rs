//! A warden on its own, for tests: what `qd warden` is in the program.

use std::process::ExitCode;

fn main() -> ExitCode {
    qd_broker::driving::warden::keep_watch()
}
