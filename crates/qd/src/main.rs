//! Flags, configuration, wiring: no rule lives here.

mod capture;
mod hooks;
mod replay;
mod story;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};

/// See, answer and drive every coding agent on this machine.
#[derive(Debug, Parser)]
#[command(name = "qd", version)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Play a recorded session and show what the operator would have seen
    Replay(replay::ReplayArgs),
    /// Say why a recorded session was seen as it was at a moment
    Explain(replay::ExplainArgs),
    /// Let agents report to the daemon, through hooks in their own settings
    Hooks(hooks::HooksArgs),
}

fn main() -> Result<()> {
    let Some(command) = Cli::parse().command else {
        Cli::command().print_help()?;
        return Ok(());
    };
    match command {
        Command::Replay(args) => replay::replay(&args),
        Command::Explain(args) => replay::explain(&args),
        Command::Hooks(args) => hooks::run(&args),
    }
}
