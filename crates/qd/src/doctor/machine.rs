//! What the machine gives us: watches, a port, a clock, a place for the socket.

use std::fs;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use qd_daemon::runtime::{SET_BACK_TOLD, SetBack};
use qd_server::{About, PORT};
use qd_sources::places::{Place, places};
use qd_sources::watch::WATCHES_MAX;

use super::finding::Finding;
use crate::paths::Paths;

/// One for session files, one for the spool; a few more for those that end and begin.
const INSTANCES_NEEDED: usize = 8;

/// 2025-01-01: there was no Quarterdeck before.
const CLOCK_MIN: Duration = Duration::from_secs(1_735_689_600);

/// File systems round, and networks drift.
const CLOCK_SLACK: Duration = Duration::from_secs(120);

/// The daemon and we look for the socket in the same place. Both go by XDG_RUNTIME_DIR, which is
/// not set everywhere: not in cron, not always over ssh.
pub fn runtime_folder(paths: &Paths, daemon_answers: bool) -> Finding {
    const CHECK: &str = "runtime folder";
    let folder = paths.socket.parent().unwrap_or(Path::new("/")).display();
    if daemon_answers {
        return Finding::ok(CHECK, folder.to_string());
    }
    let user = rustix::process::getuid().as_raw();
    let usual = PathBuf::from(format!("/run/user/{user}/quarterdeck/qd.sock"));
    let others = [paths.state.join("qd.sock"), usual];
    let elsewhere = others
        .iter()
        .find(|socket| **socket != paths.socket && UnixStream::connect(socket).is_ok());
    match elsewhere {
        None => Finding::ok(CHECK, folder.to_string()),
        Some(socket) => {
            let place = socket.display();
            let reason = format!("a daemon listens at {place}, but we look in {folder}");
            let advice = "start both with the same XDG_RUNTIME_DIR, or both without it";
            Finding::bad(CHECK, reason).advise(advice)
        }
    }
}

/// Session files are watched by the kernel; what it does not watch is looked at now and then.
pub fn watches(paths: &Paths) -> Finding {
    const CHECK: &str = "file watches";
    let limit = |name: &str| {
        let text = fs::read_to_string(format!("/proc/sys/fs/inotify/{name}")).ok()?;
        text.trim().parse::<usize>().ok()
    };
    let (Some(watches), Some(instances)) = (limit("max_user_watches"), limit("max_user_instances"))
    else {
        return Finding::ok(CHECK, "this system has no limit that could be read");
    };
    let places = places(&paths.home, &std::env::vars_os().collect());
    let needed: usize = places.iter().map(folders).sum::<usize>().min(WATCHES_MAX);
    let (name, given, needed) = match (watches < needed, instances < INSTANCES_NEEDED) {
        (true, _) => ("max_user_watches", watches, needed),
        (false, true) => ("max_user_instances", instances, INSTANCES_NEEDED),
        (false, false) => {
            return Finding::ok(CHECK, format!("{needed} folders to watch, {watches} allowed"));
        }
    };
    let reason = format!("{name} is {given}, {needed} are needed: changes are seen seconds later");
    let raised = needed.next_power_of_two().max(8_192);
    Finding::warn(CHECK, reason).advise(format!("sudo sysctl fs.inotify.{name}={raised}"))
}

/// How many folders of a place would be watched, as far as it matters.
fn folders(place: &Place) -> usize {
    if place.channel().is_none() {
        return 0;
    }
    let (enters, mut count) = (place.enters(), 0);
    let mut open = vec![place.path.clone()];
    while let Some(folder) = open.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        count += 1;
        if count >= WATCHES_MAX {
            break;
        }
        for entry in entries.flatten() {
            let path = entry.path();
            let below = path.strip_prefix(&place.path).unwrap_or(&path);
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) && enters(below) {
                open.push(path);
            }
        }
    }
    count
}

pub fn port(about: Option<&About>) -> Finding {
    const CHECK: &str = "port";
    if let Some(about) = about {
        return Finding::ok(CHECK, format!("the daemon listens at 127.0.0.1:{}", about.port));
    }
    match TcpListener::bind((Ipv4Addr::LOCALHOST, PORT)) {
        Ok(_) => Finding::ok(CHECK, format!("127.0.0.1:{PORT} is free")),
        Err(error) if error.kind() == ErrorKind::AddrInUse => {
            Finding::warn(CHECK, format!("another program has 127.0.0.1:{PORT}"))
                .advise("choose another: QD_PORT=47893 qd")
        }
        Err(error) => Finding::warn(CHECK, format!("127.0.0.1:{PORT}: {error}")),
    }
}

/// Ages and the order of things go by the clock.
pub fn clock(paths: &Paths, about: Option<&About>) -> Finding {
    const CHECK: &str = "clock";
    let now = SystemTime::now();
    let told = |set_back: &SetBack| {
        let at = UNIX_EPOCH + Duration::from_millis(set_back.at.0);
        now.duration_since(at).unwrap_or_default() < SET_BACK_TOLD
    };
    if let Some(set_back) = about.and_then(|about| about.health.set_back).filter(told) {
        let reason = format!(
            "it was set back by {}; running sessions were moved with it",
            length(Duration::from_millis(set_back.by_ms))
        );
        return Finding::warn(CHECK, reason)
            .advise("if you did not set it: `timedatectl` shows whether it is synchronised");
    }
    if now < UNIX_EPOCH + CLOCK_MIN {
        return Finding::bad(CHECK, "it is set before 2025").advise("set it: timedatectl");
    }
    let written = fs::metadata(paths.journal()).and_then(|found| found.modified());
    match written {
        Ok(written) if written > now + CLOCK_SLACK => {
            let ahead = length(written.duration_since(now).unwrap_or_default());
            let reason = format!("it was set back: the journal was written {ahead} in the future");
            Finding::warn(CHECK, reason).advise("start `qd`: it moves what it knows with the clock")
        }
        Ok(_) | Err(_) => Finding::ok(CHECK, "plausible"),
    }
}

fn length(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..120 => format!("{seconds} s"),
        seconds @ 120..7_200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3_600),
    }
}
