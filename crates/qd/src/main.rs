//! Flags, configuration, wiring: no rule lives here.

mod capture;
mod daemon;
mod exit;
mod explain;
mod hooks;
mod paths;
mod replay;
mod serve;
mod session_line;
mod status;
mod story;
mod wait;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use qd_server::{Scope, Tokens};
use tracing_subscriber::EnvFilter;

use crate::daemon::{Daemon, escaped};
use crate::exit::Exit;
use crate::paths::Paths;

/// See, answer and drive every coding agent on this machine.
#[derive(Debug, Parser)]
#[command(name = "qd", version, after_help = EXIT_CODES)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 2 a mistake in the command line, \
                          3 no daemon runs, 4 no such session, 5 timed out";

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the daemon: watch this machine's agents until stopped
    Serve(serve::ServeArgs),
    /// Show every session and its state
    Status(status::StatusArgs),
    /// Say why a session is seen as it is: live, or in a capture at a moment
    Explain(replay::ExplainArgs),
    /// Wait until a session is in a state
    Wait(wait::WaitArgs),
    /// Take a session out of Needs You until its next event
    Dismiss { session: String },
    /// Play a recorded session and show what the operator would have seen
    Replay(replay::ReplayArgs),
    /// Let agents report to the daemon, through hooks in their own settings
    Hooks(hooks::HooksArgs),
    /// Print a token for the daemon's port
    Token {
        /// ingest, observe, operate or admin; each may do what those before it may
        #[arg(long, default_value = "observe", value_parser = scope)]
        scope: Scope,
        /// Print the path of the file that holds it instead
        #[arg(long)]
        path: bool,
    },
    /// Print completions for a shell
    Completions { shell: Shell },
}

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("qd: {error:#}");
            ExitCode::from(error.downcast_ref::<Exit>().map_or(1, Exit::code))
        }
    }
}

fn run(cli: Cli) -> Result<()> {
    let Some(command) = cli.command else {
        Cli::command().print_help()?;
        return Ok(());
    };
    match command {
        Command::Replay(args) => replay::replay(&args),
        Command::Explain(args) if is_capture(&args) => replay::explain(&args),
        Command::Hooks(args) => hooks::run(&args),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "qd", &mut std::io::stdout());
            Ok(())
        }
        Command::Token { scope, path } => {
            let tokens = Tokens::open(&Paths::from_environment()?.tokens())?;
            match path {
                true => println!("{}", tokens.path(scope).display()),
                false => println!("{}", tokens.token(scope)),
            }
            Ok(())
        }
        Command::Serve(args) => {
            log_to_stderr();
            let paths = Paths::from_environment()?;
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()?;
            runtime.block_on(serve::serve(&args, &paths))
        }
        Command::Status(args) => with_daemon(async |paths| status::status(&args, paths).await),
        Command::Wait(args) => with_daemon(async |paths| wait::wait(&args, paths).await),
        Command::Explain(args) => with_daemon(async |paths| {
            explain::explain(&args.session_or_capture.to_string_lossy(), args.json, paths).await
        }),
        Command::Dismiss { session } => with_daemon(async |paths| {
            let path = format!("/api/sessions/{}/dismiss", escaped(&session));
            Daemon::at(paths).post(&path).await.map(drop)
        }),
    }
}

/// A folder with a moment, or one that looks like a capture.
fn is_capture(args: &replay::ExplainArgs) -> bool {
    args.at.is_some() || Path::new(&args.session_or_capture).join("signals.jsonl").is_file()
}

/// For a command that asks the daemon something: one thread is enough.
fn with_daemon(command: impl AsyncFnOnce(&Paths) -> Result<()>) -> Result<()> {
    let paths = Paths::from_environment()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot wait for the daemon")?;
    runtime.block_on(command(&paths))
}

/// `QD_LOG` says how much, as `info` or `qd_broker=debug`.
fn log_to_stderr() {
    let filter = EnvFilter::try_from_env("QD_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // A log that cannot be written, as on a full disk, must not end the daemon: telling of it
        // would be a write to the same file, which panics.
        .log_internal_errors(false)
        .init();
}

fn scope(name: &str) -> Result<Scope, String> {
    Scope::named(name).ok_or_else(|| "ingest, observe, operate or admin".to_owned())
}

/// Whoever read our output has seen enough.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let broken = |cause: &(dyn std::error::Error + 'static)| {
        let io = cause.downcast_ref::<std::io::Error>();
        io.is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
    };
    error.chain().any(broken)
}
