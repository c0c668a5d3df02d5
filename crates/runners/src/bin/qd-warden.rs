//! A warden on its own, for tests: what `qd warden` is in the program.

use std::process::ExitCode;

fn main() -> ExitCode {
    qd_runners::warden::keep_watch()
}
