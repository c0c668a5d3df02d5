//! Flags, configuration, wiring: no rule lives here.

mod capture;
mod hooks;
mod replay;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// See, answer and drive every coding agent on this machine.
#[derive(Debug, Parser)]
#[command(name = "qd", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Play a recorded session and show what the operator would have seen
    Replay(replay::ReplayArgs),
    /// Let agents report to the daemon, through hooks in their own settings
    Hooks(hooks::HooksArgs),
}

fn main() -> Result<()> {
    match Cli::parse().command {
        Command::Replay(args) => replay::run(&args),
        Command::Hooks(args) => hooks::run(&args),
    }
}
