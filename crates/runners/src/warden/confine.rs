//! What a confined program may reach. Applied to one thread, and inherited by what it starts.
//!
//! Landlock guards files, signals and other processes: whoever is confined can neither trace one
//! that is not nor look at its memory, environment, folder or descriptors in `/proc`. Root's
//! capabilities would lead past that, so they are given up. Seccomp guards sockets, because Landlock
//! knows only TCP and lets anybody connect to a socket file: ours, where commands need no token, a
//! container daemon's, the session bus.

use std::path::PathBuf;

use qd_host::private_places::PrivatePlaces;
use serde::{Deserialize, Serialize};

use super::job::Enforced;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// Files and folders that it may read and run. Those that are not there are left out.
    pub read: Vec<PathBuf>,
    /// Folders in which it may do everything.
    pub write: Vec<PathBuf>,
    /// A folder of its own, in which it may do everything wherever it lies.
    pub own: Option<PathBuf>,
    /// What it may not reach though it lies in one of the others.
    pub private: PrivatePlaces,
    pub network: Network,
    pub local_sockets: LocalSockets,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Network {
    Allowed,
    Forbidden,
}

/// Sockets that are files. Abstract ones of others cannot be had where the kernel knows how to keep
/// them back; pairs of connected sockets are always possible: they lead nowhere else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LocalSockets {
    Allowed,
    Forbidden,
}

impl Confinement {
    /// Confines the calling thread for ever. An error means that it may not go on.
    #[cfg(target_os = "linux")]
    pub(super) fn apply(&self) -> Result<Enforced, String> {
        linux::give_up_capabilities()?;
        let files = linux::confine_files(self).map_err(|error| error.to_string())?;
        let sockets = linux::confine_sockets(self)?;
        Ok(match (files, sockets) {
            (Some(enforced), true) => enforced,
            (Some(_), false) => Enforced::Partly,
            (None, true) => Enforced::SocketsOnly,
            (None, false) => Enforced::Nothing,
        })
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn apply(&self) -> Result<Enforced, String> {
        Ok(Enforced::Nothing)
    }

    /// Bounds of this process and of all that it starts.
    pub(super) fn apply_bounds(&self) {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

        use super::limits::{FILE_BYTES_MAX, PROCESSES_MAX};

        let bounds = [
            (Resource::Core, 0),
            (Resource::Nproc, PROCESSES_MAX),
            (Resource::Fsize, FILE_BYTES_MAX),
        ];
        for (resource, most) in bounds {
            let now = getrlimit(resource);
            let lower = |bound: Option<u64>| Some(bound.map_or(most, |bound| bound.min(most)));
            let bound = Rlimit { current: lower(now.current), maximum: lower(now.maximum) };
            // Lowering is always allowed; where it fails the kernel has no such bound.
            let _ = setrlimit(resource, bound);
        }
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::OsStr;
    use std::os::fd::OwnedFd;
    use std::os::unix::ffi::OsStrExt;
    use std::path::{Path, PathBuf};

    use landlock::{
        ABI, Access, AccessFs, AccessNet, BitFlags, PathBeneath, Ruleset, RulesetAttr,
        RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, path_beneath_rules,
    };
    use rustix::fs::{Dir, FileType, Mode, OFlags, fstat, open, openat};
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
        SeccompRule, TargetArch,
    };

    use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

    use super::super::limits::BESIDE_PRIVATE_MAX;
    use super::{Confinement, Enforced, LocalSockets, Network};
    use qd_host::private_places::KnownPlaces;

    /// What root needs to work in files that are not its own, to become somebody else, and to
    /// listen where others do. Nothing of the machine: no devices, no modules, no memory of other
    /// processes (`PERFMON` reads that past Landlock), no opening of files by their numbers.
    const KEPT: CapabilitySet = CapabilitySet::CHOWN
        .union(CapabilitySet::DAC_OVERRIDE)
        .union(CapabilitySet::FOWNER)
        .union(CapabilitySet::FSETID)
        .union(CapabilitySet::SETGID)
        .union(CapabilitySet::SETUID)
        .union(CapabilitySet::NET_BIND_SERVICE);

    /// Nobody has them back after that: programs gain none (`no_new_privs`).
    pub fn give_up_capabilities() -> Result<(), String> {
        let told = |error| format!("cannot give up capabilities: {error}");
        let CapabilitySets { effective, permitted, inheritable: _ } =
            capabilities(None).map_err(told)?;
        let kept = CapabilitySets {
            effective: effective & KEPT,
            permitted: permitted & KEPT,
            inheritable: CapabilitySet::empty(),
        };
        set_capabilities(None, kept).map_err(told)
    }

    /// The newest that this was tried with; older kernels enforce what they know.
    const KNOWN: ABI = ABI::V6;

    /// Devices that every program expects, and that lead nowhere.
    const DEVICES: [&str; 3] = ["/dev/null", "/dev/zero", "/dev/full"];

    /// None: the kernel has no Landlock.
    pub fn confine_files(wanted: &Confinement) -> Result<Option<Enforced>, RulesetError> {
        let all = AccessFs::from_all(KNOWN);
        let read = AccessFs::from_read(KNOWN);
        let device = AccessFs::ReadFile | AccessFs::WriteFile;
        let mut rules = Ruleset::default().handle_access(all)?.scope(Scope::from_all(KNOWN))?;
        if wanted.network == Network::Forbidden {
            rules = rules.handle_access(AccessNet::from_all(KNOWN))?;
        }
        let mut rules = rules
            .create()?
            .add_rules(path_beneath_rules(&wanted.own, all))?
            .add_rules(path_beneath_rules(DEVICES, device))?;
        let private = wanted.private.known();
        for (opened, access) in [(&wanted.read, read), (&wanted.write, all)] {
            for root in opened {
                rules = rules.add_rules(around_private(root, &private, access))?;
            }
        }
        let status = rules.restrict_self()?;
        Ok(match status.ruleset {
            RulesetStatus::FullyEnforced => Some(Enforced::Fully),
            RulesetStatus::PartiallyEnforced => Some(Enforced::Partly),
            RulesetStatus::NotEnforced => None,
        })
    }

    /// Rules that open a folder, but for the private places in it. Landlock opens whole trees and
    /// cannot close a part of one: where a private place lies below, everything beside the way to
    /// it is opened instead. On the way itself nothing is, so that nobody makes, moves or replaces
    /// what leads there.
    fn around_private(
        root: &Path,
        private: &KnownPlaces<'_>,
        access: BitFlags<AccessFs>,
    ) -> Vec<Result<PathBeneath<OwnedFd>, RulesetError>> {
        if private.around(root).is_some() {
            return Vec::new();
        }
        let closed = private.below(root);
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let Ok(root) = open(root, flags, Mode::empty()) else { return Vec::new() };
        let mut rules = Vec::new();
        let mut ahead = vec![(root, closed)];
        while let Some((found, closed)) = ahead.pop() {
            let Ok(kind) = fstat(&found).map(|stat| FileType::from_raw_mode(stat.st_mode)) else {
                continue;
            };
            match (kind, closed.is_empty()) {
                (FileType::Directory, false) => ahead.extend(beside(&found, &closed)),
                (FileType::Directory, true) => rules.push(Ok(PathBeneath::new(found, access))),
                // A link's target is opened where it lies, if it is.
                (FileType::Symlink, _) => {}
                (_, _) => {
                    let access = access & AccessFs::from_file(KNOWN);
                    rules.push(Ok(PathBeneath::new(found, access)));
                }
            }
        }
        rules
    }

    /// What a folder holds, without the closed places themselves; with each, what is closed below.
    fn beside(folder: &OwnedFd, closed: &[PathBuf]) -> Vec<(OwnedFd, Vec<PathBuf>)> {
        let listed = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let Ok(listed) = openat(folder, ".", listed, Mode::empty()) else { return Vec::new() };
        let names = Dir::read_from(listed).into_iter().flatten().flatten();
        let names = names.map(|entry| entry.file_name().to_owned());
        let names = names.filter(|name| **name != *c"." && **name != *c"..");
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut found = Vec::new();
        for name in names.take(BESIDE_PRIVATE_MAX) {
            let name_shown = OsStr::from_bytes(name.to_bytes());
            // Some file systems know one file by its name in capitals, too.
            let is_it = |path: &&PathBuf| {
                path.iter().next().is_some_and(|first| first.eq_ignore_ascii_case(name_shown))
            };
            let below = |path: &PathBuf| path.iter().skip(1).collect::<PathBuf>();
            let below: Vec<PathBuf> = closed.iter().filter(is_it).map(below).collect();
            if below.iter().any(|rest| rest.as_os_str().is_empty()) {
                continue;
            }
            if let Ok(opened) = openat(folder, &name, flags, Mode::empty()) {
                found.push((opened, below));
            }
        }
        found
    }

    /// False: this kind of processor is not known. Sets `no_new_privs`, too.
    pub fn confine_sockets(wanted: &Confinement) -> Result<bool, String> {
        let Ok(arch) = TargetArch::try_from(std::env::consts::ARCH) else { return Ok(false) };
        let told = |error: &dyn std::fmt::Display| format!("cannot confine sockets: {error}");
        let local = libc::AF_UNIX as u64;
        let condition = |operator| {
            SeccompCondition::new(0, SeccompCmpArgLen::Dword, operator, local)
                .and_then(|condition| SeccompRule::new(vec![condition]))
                .map_err(|error| told(&error))
        };
        // No rule at all is a rule for every call.
        let refused = match (wanted.network, wanted.local_sockets) {
            (Network::Allowed, LocalSockets::Allowed) => None,
            (Network::Allowed, LocalSockets::Forbidden) => Some(vec![condition(SeccompCmpOp::Eq)?]),
            (Network::Forbidden, LocalSockets::Allowed) => Some(vec![condition(SeccompCmpOp::Ne)?]),
            (Network::Forbidden, LocalSockets::Forbidden) => Some(Vec::new()),
        };
        // Its requests are made by the kernel, past every filter of calls.
        let mut calls = vec![(libc::SYS_io_uring_setup, Vec::new())];
        // The operator's keyring.
        calls.extend(
            [libc::SYS_add_key, libc::SYS_request_key, libc::SYS_keyctl]
                .map(|call| (call, Vec::new())),
        );
        calls.extend(refused.map(|rules| (libc::SYS_socket, rules)));
        if arch == TargetArch::x86_64 {
            // The same calls under their other numbers.
            let others: Vec<_> =
                calls.iter().map(|(call, rules)| (call | X32_CALL, rules.clone())).collect();
            calls.extend(others);
        }
        let filter = SeccompFilter::new(
            calls.into_iter().collect(),
            SeccompAction::Allow,
            SeccompAction::Errno(libc::EACCES as u32),
            arch,
        );
        let program: BpfProgram =
            filter.and_then(BpfProgram::try_from).map_err(|error| told(&error))?;
        seccompiler::apply_filter(&program).map_err(|error| told(&error))?;
        Ok(true)
    }

    const X32_CALL: i64 = 0x4000_0000;
}
