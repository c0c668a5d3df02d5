//! Files that nobody wants to meet: told, passed over, and the rest is right.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::thread;

use qd_history::{History, Progress};

use super::{FILE, Home, counted, lines, numbered};

fn told(history: &History) -> Vec<(&str, &str)> {
    let name = |path: &Path| path.file_name()?.to_str().map(str::len);
    let troubles = history.troubles().iter();
    let mut told: Vec<(&str, &str)> = troubles
        .map(|trouble| {
            let path = trouble.path.to_str().unwrap();
            (&path[path.len() - name(&trouble.path).unwrap()..], trouble.what.as_str())
        })
        .collect();
    told.sort_unstable();
    told
}

/// The most memory this process has had, in KB.
fn peak_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn a_line_of_200_mb_is_passed_over_without_holding_it() {
    let home = Home::new();
    let mut file = File::create(home.path("-p/long.jsonl")).unwrap();
    file.write_all(lines(0..1).as_bytes()).unwrap();
    file.write_all(b"{\"message\":{\"usage\":{\"input_tokens\":\"").unwrap();
    // A hole: as long for a reader, and nothing on the disk.
    file.seek(SeekFrom::Current(200 << 20)).unwrap();
    file.write_all(b"\"}}}\n").unwrap();
    file.write_all(lines(1..2).as_bytes()).unwrap();
    let before = peak_kb();
    let (history, bytes) = home.read();
    assert_eq!(counted(&history), (2, 20));
    assert_eq!(told(&history), [("long.jsonl", "1 line too long to be read")]);
    assert!(bytes > 200 << 20);
    assert!(peak_kb() - before < 64 << 10, "{} KB more", peak_kb() - before);
}

#[test]
fn what_is_no_text_is_passed_over() {
    let home = Home::new();
    home.write("-p/bytes.jsonl", [b"\"usage\"\xff\xfe\n", lines(2..3).as_bytes()].concat());
    home.write("-p/zeros.jsonl", [&[0; 4096][..], b"\n", lines(3..4).as_bytes()].concat());
    let (history, _) = home.read();
    assert_eq!(counted(&history), (2, 20));
    assert_eq!(told(&history), [("bytes.jsonl", "1 line could not be read")]);
}

#[test]
fn links_and_pipes_lead_nowhere() {
    let home = Home::new();
    home.write("-p/good.jsonl", lines(0..2));
    // A folder within itself, a link to itself, and one to nowhere.
    symlink(home.path("-p/x").parent().unwrap(), home.path("-p/folder")).unwrap();
    symlink("itself.jsonl", home.path("-p/itself.jsonl")).unwrap();
    symlink("/nowhere", home.path("-p/gone.jsonl")).unwrap();
    // Nobody writes to it.
    let pipe = home.path("-p/pipe.jsonl");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    // A folder in a file's place.
    fs::create_dir(home.path("-p/dir.jsonl")).unwrap();
    let (history, _) = home.read();
    assert_eq!(counted(&history), (2, 20));
    let [("itself.jsonl", what)] = told(&history)[..] else { panic!("{:?}", history.troubles()) };
    assert!(what.contains("symbolic links"), "{what}");
}

#[test]
fn a_file_that_may_not_be_read_is_told() {
    let home = Home::new();
    home.write("-p/good.jsonl", lines(0..2));
    home.write("-p/secret.jsonl", lines(3..4));
    let secret = home.path("-p/secret.jsonl");
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o000)).unwrap();
    // Root may read all.
    let may_read_all = File::open(&secret).is_ok();
    let (history, _) = home.read();
    assert_eq!(counted(&history).0, if may_read_all { 3 } else { 2 });
    assert_eq!(told(&history).len(), if may_read_all { 0 } else { 1 });
}

#[test]
fn a_file_that_grows_while_it_is_read_is_read_to_its_end() {
    let home = Home::new();
    home.write(FILE, "");
    let path = home.path(FILE);
    let writer = thread::spawn(move || {
        let mut file = OpenOptions::new().append(true).open(path).unwrap();
        for nth in 0..2_000 {
            // In two pieces, so that half a line is often the last one.
            let line = numbered(nth) + "\n";
            let (begin, end) = line.split_at(nth as usize % line.len());
            file.write_all(begin.as_bytes()).unwrap();
            file.write_all(end.as_bytes()).unwrap();
        }
    });
    let mut history = home.open();
    while !writer.is_finished() {
        history.refresh(&Progress::default());
    }
    writer.join().unwrap();
    history.refresh(&Progress::default());
    assert_eq!((counted(&history), history.troubles()), ((2_000, 20_000), &[][..]));
    assert_eq!(home.counted(), (2_000, 20_000));
}
