//! All processes of this machine at one moment, and who started whom.
//!
//! Reading it takes a file for each process, so whoever asks about several processes reads it once.

use std::collections::BTreeMap;

use super::processes::Process;

/// Processes of one agent that are known as its own: a client, its other self, its tools' servers.
const KIN_MAX: usize = 64;

/// Each process by its pid, and the pid of who started it, or took it over.
#[derive(Debug)]
pub struct ProcessTable(BTreeMap<u32, (Process, u32)>);

impl ProcessTable {
    /// As far as they can be seen.
    pub fn read() -> Self {
        let pids = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let all = pids.filter_map(Process::with_parent);
        Self(all.map(|(process, parent)| (process.pid, (process, parent))).collect())
    }

    pub fn all(&self) -> impl Iterator<Item = Process> {
        self.0.values().map(|(process, _)| *process)
    }

    /// Who started it, or took it over.
    pub fn above(&self, process: Process) -> Option<Process> {
        let (_, parent) = self.0.get(&process.pid)?;
        self.0.get(parent).map(|(above, _)| *above)
    }

    /// All that it and what it started have started; only so many.
    pub fn descendants(&self, of: Process) -> Vec<Process> {
        let mut found = vec![of];
        let mut next = 0;
        while let Some(parent) = found.get(next).map(|parent| parent.pid)
            && found.len() < KIN_MAX
        {
            let children = self.0.values().filter(|(_, above)| *above == parent);
            found.extend(children.map(|(child, _)| *child));
            next += 1;
        }
        found.split_off(1)
    }
}
