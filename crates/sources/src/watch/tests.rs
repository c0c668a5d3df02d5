//! With real directories: what a watch tells of, whatever is done to them.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use super::*;
use crate::tail::{Piece, Tail, TailReader};

/// Much longer than anything here takes; only a failing test waits for it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Listing now and then need not take long to be seen here.
const OFTEN: Duration = Duration::from_millis(20);

struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("qd-watch-{}-{count}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn root(&self, path: &str) -> Root {
        Root {
            path: self.0.join(path),
            enters: |_| true,
            wants: |path| path.extension().is_some_and(|ending| ending == "jsonl"),
            tells: Tells::Changes,
        }
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A watch that says what it told in words, relative to the folder.
struct Heard<'a> {
    folder: &'a Folder,
    watch: Watch,
    words: Vec<String>,
    notices: Vec<Notice>,
}

impl<'a> Heard<'a> {
    fn new(folder: &'a Folder, roots: &[&str]) -> Self {
        Self::bounded(folder, roots, Inotify::new(), WATCHES_MAX)
    }

    fn bounded(folder: &'a Folder, roots: &[&str], inotify: Inotify, watches_max: usize) -> Self {
        let roots = roots.iter().map(|root| folder.root(root)).collect();
        let watch = Watch::bounded(inotify, roots, watches_max, OFTEN);
        Self { folder, watch, words: Vec::new(), notices: Vec::new() }
    }

    fn take(&mut self) {
        self.notices.extend(self.watch.take_notices());
        for change in self.watch.take_changes() {
            let path = change.path.strip_prefix(&self.folder.0).unwrap().display();
            self.words.push(format!("{:?} {path}", change.kind));
        }
    }

    /// Waits until it was told, and forgets what was told until then.
    #[track_caller]
    fn tells(&mut self, word: &str) -> Vec<String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.take();
            if self.words.iter().any(|told| told == word) {
                return std::mem::take(&mut self.words);
            }
            assert!(Instant::now() < deadline, "{word} was not told, only {:?}", self.words);
            self.watch.wait(None, Some(PATIENCE)).unwrap();
        }
    }
}

#[test]
fn files_are_new_then_changed_then_gone_and_bursts_are_one() {
    let folder = Folder::new();
    folder.write("root/a/one.jsonl", "1\n");
    folder.write("root/a/other.txt", "1\n");
    let mut heard = Heard::new(&folder, &["root"]);
    assert_eq!(heard.tells("New root/a/one.jsonl"), ["New root/a/one.jsonl"]);
    for _ in 0..100 {
        folder.write("root/a/one.jsonl", "2\n");
        folder.write("root/a/other.txt", "2\n");
    }
    assert_eq!(heard.tells("Changed root/a/one.jsonl"), ["Changed root/a/one.jsonl"]);
    fs::remove_dir_all(folder.0.join("root/a")).unwrap();
    assert_eq!(heard.tells("Gone root/a/one.jsonl").last().unwrap(), "Gone root/a/one.jsonl");
    assert_eq!(heard.notices, []);
}

#[test]
fn of_what_is_only_there_or_not_what_is_written_is_not_told() {
    let folder = Folder::new();
    folder.write("root/one.jsonl", "1\n");
    folder.write("root/old.jsonl", "1\n");
    let mut heard = Heard::new(&folder, &["root"]);
    let present = Root { tells: Tells::Presence, ..folder.root("root") };
    heard.watch = Watch::bounded(Inotify::new(), vec![present], WATCHES_MAX, OFTEN);
    heard.tells("New root/one.jsonl");
    folder.write("root/one.jsonl", "2\n");
    fs::rename(folder.0.join("root/old.jsonl"), folder.0.join("root/two.jsonl")).unwrap();
    let moved = ["Gone root/old.jsonl", "New root/two.jsonl"];
    assert_eq!(heard.tells("New root/two.jsonl"), moved);
    // Replaced, and taken away.
    fs::rename(folder.0.join("root/two.jsonl"), folder.0.join("root/one.jsonl")).unwrap();
    heard.tells("Changed root/one.jsonl");
    fs::remove_file(folder.0.join("root/one.jsonl")).unwrap();
    heard.tells("Gone root/one.jsonl");
}

#[test]
fn a_root_may_come_late_go_and_come_back() {
    let folder = Folder::new();
    let mut heard = Heard::new(&folder, &["home/.agent/projects", "home/.agent/sessions"]);
    folder.write("home/.agent/projects/p/a.jsonl", "1\n");
    heard.tells("New home/.agent/projects/p/a.jsonl");
    fs::remove_dir_all(folder.0.join("home")).unwrap();
    heard.tells("Gone home/.agent/projects/p/a.jsonl");
    folder.write("home/.agent/projects/p/a.jsonl", "1\n");
    heard.tells("New home/.agent/projects/p/a.jsonl");
    folder.write("home/.agent/sessions/s.jsonl", "1\n");
    heard.tells("New home/.agent/sessions/s.jsonl");
    // Moved away by a directory on its way, with another one in its place.
    fs::rename(folder.0.join("home/.agent"), folder.0.join("home/old")).unwrap();
    heard.tells("Gone home/.agent/projects/p/a.jsonl");
    folder.write("home/.agent/projects/q/b.jsonl", "1\n");
    heard.tells("New home/.agent/projects/q/b.jsonl");
    folder.write("home/old/projects/p/a.jsonl", "2\n");
    folder.write("home/.agent/projects/q/b.jsonl", "2\n");
    let told = heard.tells("Changed home/.agent/projects/q/b.jsonl");
    assert!(told.iter().all(|word| word.contains("q/b.jsonl")), "{told:?}");
}

#[test]
fn a_root_that_is_replaced_is_followed_whether_or_not_a_file_in_it_is_open() {
    for keeps_open in [true, false] {
        let folder = Folder::new();
        folder.write("a/root/s.jsonl", "one");
        let mut heard = Heard::new(&folder, &["a/root"]);
        heard.tells("New a/root/s.jsonl");
        for (gone, first, second) in [("a/root", "t", "u"), ("a", "v", "s")] {
            // The kernel says that a directory is gone when the last file in it is closed.
            let open = fs::File::open(folder.0.join("a/root/s.jsonl")).unwrap();
            let open = keeps_open.then_some(open);
            fs::remove_dir_all(folder.0.join(gone)).unwrap();
            // Often it has the number of the one before.
            folder.write(&format!("a/root/{first}.jsonl"), "one");
            heard.tells(&format!("New a/root/{first}.jsonl"));
            folder.write(&format!("a/root/{second}.jsonl"), "one");
            heard.tells(&format!("New a/root/{second}.jsonl"));
            folder.write("a/root/s.jsonl", "one");
            drop(open);
        }
    }
}

#[test]
fn a_directory_moved_inside_is_told_of_where_it_is() {
    let folder = Folder::new();
    folder.write("root/a/deep/one.jsonl", "1\n");
    let mut heard = Heard::new(&folder, &["root"]);
    heard.tells("New root/a/deep/one.jsonl");
    fs::rename(folder.0.join("root/a"), folder.0.join("root/b")).unwrap();
    let told = heard.tells("New root/b/deep/one.jsonl");
    assert!(told.contains(&"Gone root/a/deep/one.jsonl".to_owned()), "{told:?}");
    folder.write("root/b/deep/one.jsonl", "2\n");
    heard.tells("Changed root/b/deep/one.jsonl");
}

/// File systems give the number of a removed directory to the next one that is made, and that one
/// may be found before the removal is heard of.
#[test]
fn a_directory_with_the_number_of_one_that_is_gone_is_entered() {
    let folder = Folder::new();
    folder.write("root/a/one.jsonl", "1\n");
    let mut heard = Heard::new(&folder, &["root"]);
    heard.tells("New root/a/one.jsonl");
    folder.write("fresh/deep/two.jsonl", "1\n");
    let number = identity(&folder.0.join("fresh/deep")).unwrap();
    heard.watch.identities.insert(number, folder.0.join("root/gone"));
    fs::rename(folder.0.join("fresh"), folder.0.join("root/fresh")).unwrap();
    heard.tells("New root/fresh/deep/two.jsonl");
}

#[test]
fn loops_of_links_end_and_linked_directories_are_entered() {
    let folder = Folder::new();
    folder.write("root/a/one.jsonl", "1\n");
    folder.write("elsewhere/two.jsonl", "1\n");
    symlink(folder.0.join("root"), folder.0.join("root/a/loop")).unwrap();
    symlink("self.jsonl", folder.0.join("root/self.jsonl")).unwrap();
    let mut heard = Heard::new(&folder, &["root"]);
    assert_eq!(heard.tells("New root/a/one.jsonl"), ["New root/a/one.jsonl"]);
    symlink(folder.0.join("elsewhere"), folder.0.join("root/linked")).unwrap();
    heard.tells("New root/linked/two.jsonl");
    folder.write("elsewhere/two.jsonl", "2\n");
    heard.tells("Changed root/linked/two.jsonl");
}

#[test]
fn an_unreadable_directory_is_spoken_of_once_and_entered_later() {
    let folder = Folder::new();
    folder.write("root/a/one.jsonl", "1\n");
    let locked = folder.0.join("root/a");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o000)).unwrap();
    let mut heard = Heard::new(&folder, &["root"]);
    heard.take();
    // The superuser reads everything.
    let refused = fs::read_dir(&locked).is_err();
    assert_eq!(heard.notices.len(), usize::from(refused));
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o700)).unwrap();
    heard.tells("New root/a/one.jsonl");
}

#[test]
fn what_cannot_be_watched_is_listed_and_that_is_said_once() {
    let way = std::env::temp_dir().join("folder/root").ancestors().count();
    for (inotify, watches_max) in [(Inotify::new(), way + 5), (Inotify::refused(), WATCHES_MAX)] {
        let folder = Folder::new();
        for dir in 0..20 {
            folder.write(&format!("root/{dir}/one.jsonl"), "1\n");
        }
        let mut heard = Heard::bounded(&folder, &["root", "late"], inotify, watches_max);
        heard.take();
        assert_eq!(heard.words.len(), 20);
        for dir in 0..20 {
            folder.write(&format!("root/{dir}/one.jsonl"), "2\n");
            heard.tells(&format!("Changed root/{dir}/one.jsonl"));
        }
        folder.write("root/fresh/deep/two.jsonl", "1\n");
        heard.tells("New root/fresh/deep/two.jsonl");
        fs::rename(folder.0.join("root/fresh"), folder.0.join("root/moved")).unwrap();
        heard.tells("New root/moved/deep/two.jsonl");
        fs::remove_file(folder.0.join("root/moved/deep/two.jsonl")).unwrap();
        heard.tells("Gone root/moved/deep/two.jsonl");
        folder.write("late/l.jsonl", "1\n");
        heard.tells("New late/l.jsonl");
        assert_eq!(heard.notices, [Notice::WatchesExhausted]);
    }
}

#[test]
fn an_overflow_of_the_queue_loses_nothing() {
    let folder = Folder::new();
    folder.write("root/a/one.jsonl", "");
    folder.write("root/a/two.jsonl", "");
    folder.write("root/b/late.jsonl", "");
    folder.write("root/c/gone.jsonl", "");
    let mut heard = Heard::new(&folder, &["root"]);
    heard.tells("New root/b/late.jsonl");
    let queue_len_max = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let queue_len_max: usize = queue_len_max.trim().parse().unwrap();
    let open = |path| OpenOptions::new().append(true).open(folder.0.join(path)).unwrap();
    let mut files = [open("root/a/one.jsonl"), open("root/a/two.jsonl")];
    for number in 0..=queue_len_max {
        files[number % 2].write_all(b"x").unwrap();
    }
    // None of these has an event any more.
    folder.write("root/b/late.jsonl", "late\n");
    folder.write("root/d/deep/fresh.jsonl", "1\n");
    fs::rename(folder.0.join("root/c"), folder.0.join("root/e")).unwrap();
    let mut told = heard.tells("New root/d/deep/fresh.jsonl");
    told.sort();
    told.dedup();
    assert_eq!(
        told,
        [
            "Changed root/a/one.jsonl",
            "Changed root/a/two.jsonl",
            "Changed root/b/late.jsonl",
            "Gone root/c/gone.jsonl",
            "New root/d/deep/fresh.jsonl",
            "New root/e/gone.jsonl",
        ]
    );
    assert_eq!(heard.notices, [Notice::Overflowed]);
    folder.write("root/d/deep/fresh.jsonl", "2\n");
    heard.tells("Changed root/d/deep/fresh.jsonl");
    folder.write("root/e/gone.jsonl", "2\n");
    heard.tells("Changed root/e/gone.jsonl");
}

/// Four writers, 200 files, each right after its own directories were made.
#[test]
fn of_two_hundred_files_written_at_once_no_line_is_lost() {
    const FILES: usize = 200;
    const LINES: usize = 50;
    let folder = Folder::new();
    let mut watch = Watch::new(vec![folder.root("home/projects")]);
    let path = |file: usize| format!("home/projects/p{}/s{file}/subagents/a.jsonl", file % 40);
    thread::scope(|scope| {
        for writer in 0..4 {
            let folder = &folder;
            scope.spawn(move || {
                for line in 0..LINES {
                    for file in (writer..FILES).step_by(4) {
                        folder.write(&path(file), &format!("{line}\n"));
                    }
                }
            });
        }
        let mut readers: BTreeMap<Arc<Path>, TailReader> = BTreeMap::new();
        let mut lines: BTreeMap<Arc<Path>, Vec<String>> = BTreeMap::new();
        let mut window = vec![0; 4096];
        let deadline = Instant::now() + PATIENCE;
        while lines.values().map(Vec::len).sum::<usize>() < FILES * LINES {
            assert!(Instant::now() < deadline, "only {} files", lines.len());
            watch.wait(None, Some(PATIENCE)).unwrap();
            for Change { path, .. } in watch.take_changes() {
                let fresh = || TailReader::new(path.clone(), Tail::from_start());
                let reader = readers.entry(path.clone()).or_insert_with(fresh);
                let lines = lines.entry(path).or_default();
                reader.read_on(&mut window, 1 << 30, &mut |piece| match piece {
                    Piece::Line { bytes, .. } => {
                        lines.push(String::from_utf8(bytes.to_vec()).unwrap());
                    }
                    other
                    @ (Piece::TooLong { .. } | Piece::Restarted(_) | Piece::Unreadable(_)) => {
                        panic!("{other:?}")
                    }
                });
            }
        }
        let expected: Vec<String> = (0..LINES).map(|line| line.to_string()).collect();
        assert!(lines.values().all(|lines| *lines == expected));
        assert_eq!(lines.len(), FILES);
    });
}
