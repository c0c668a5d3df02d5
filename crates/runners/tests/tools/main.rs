//! Our own tools as a model uses them, with real programs, a real Git and a real kernel.

mod captured;
mod commands;
mod editing;
mod escapes;
mod git;
mod hooks;
mod killed;
mod looking;
mod mcp;
mod neighbours;
mod observed_hooks;
mod odd_files;
mod own_files;
mod patching;
mod processes;
mod table;
mod world;
