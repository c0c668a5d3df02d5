//! Flags, configuration, wiring: no rule lives here.

mod capture;
mod replay;
mod story;

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
    /// Say why a recorded session was seen as it was at a moment
    Explain(replay::ExplainArgs),
}

fn main() -> Result<()> {
    match Cli::parse().command {
        Command::Replay(args) => replay::replay(&args),
        Command::Explain(args) => replay::explain(&args),
    }
}
