//! Seeded writers that do to session files whatever can be done to files, all at once. When they
//! are done, each file's lines have come, those of its last generation last and in order.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use qd_sources::files::{FileNotice, News};
use tokio::time::timeout;

use super::{Home, PATIENCE, text};

const WRITERS: u64 = 4;
const STEPS: u64 = 400;

/// Between two looks whether the writers are done.
const BREATH: Duration = Duration::from_millis(10);

/// A generator of numbers that is the same everywhere (xorshift).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// One writer, with a few sessions of its own.
struct Writer<'a> {
    home: &'a Home,
    name: u64,
    dice: Dice,
    lines: u64,
    /// What each of its files has in it.
    files: BTreeMap<PathBuf, Vec<String>>,
}

impl Writer<'_> {
    fn session(&mut self) -> PathBuf {
        let (name, session) = (self.name, self.dice.below(3));
        let project = format!("w{name}-{}", self.dice.below(2));
        let main = Path::new(".claude/projects").join(project);
        match self.dice.below(2) {
            0 => main.join(format!("s{session}.jsonl")),
            _ => main.join(format!("s{session}/subagents/agent-a.jsonl")),
        }
    }

    fn fresh_lines(&mut self) -> Vec<String> {
        let count = 1 + self.dice.below(4);
        let first = self.lines;
        self.lines += count;
        (first..self.lines).map(|line| format!("{{\"w\":{},\"line\":{line}}}", self.name)).collect()
    }

    fn step(&mut self) {
        let file = self.session();
        let path = self.home.0.join(&file);
        let lines = self.fresh_lines();
        let whole = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        let folder = path.parent().unwrap().to_owned();
        match self.dice.below(12) {
            0 => {
                // Another one at its place.
                fs::create_dir_all(&folder).unwrap();
                let aside = self.home.0.join(format!("aside-{}", self.name));
                fs::write(&aside, whole).unwrap();
                fs::rename(aside, &path).unwrap();
                self.files.insert(file, lines);
            }
            1 => {
                fs::create_dir_all(&folder).unwrap();
                fs::write(&path, whole).unwrap();
                self.files.insert(file, lines);
            }
            2 => {
                // Gone, and perhaps another with its number.
                match fs::remove_file(&path) {
                    Ok(()) | Err(_) => {}
                }
                self.files.remove(&file);
            }
            3 => self.remove_project(&file),
            4 => self.bring_project(&file, &whole, lines),
            _ => {
                fs::create_dir_all(&folder).unwrap();
                let mut open = OpenOptions::new().create(true).append(true).open(&path).unwrap();
                let middle = usize::try_from(self.dice.below(whole.len() as u64)).unwrap();
                for piece in [&whole[..middle], &whole[middle..]] {
                    open.write_all(piece.as_bytes()).unwrap();
                }
                self.files.entry(file).or_default().extend(lines);
            }
        }
    }

    fn remove_project(&mut self, file: &Path) {
        let project: PathBuf = file.iter().take(3).collect();
        match fs::remove_dir_all(self.home.0.join(&project)) {
            Ok(()) | Err(_) => {}
        }
        self.files.retain(|known, _| !known.starts_with(&project));
    }

    /// A whole tree at once: nothing of it has an event of its own.
    fn bring_project(&mut self, file: &Path, whole: &str, lines: Vec<String>) {
        self.remove_project(file);
        let project: PathBuf = file.iter().take(3).collect();
        let aside = self.home.0.join(format!("tree-{}", self.name));
        let within = aside.join(file.strip_prefix(&project).unwrap());
        fs::create_dir_all(within.parent().unwrap()).unwrap();
        fs::write(within, whole).unwrap();
        fs::create_dir_all(self.home.0.join(&project).parent().unwrap()).unwrap();
        fs::rename(aside, self.home.0.join(&project)).unwrap();
        self.files.insert(file.to_owned(), lines);
    }
}

/// What was told of each file.
#[derive(Default)]
struct Told(BTreeMap<String, Vec<String>>);

impl Told {
    fn take(&mut self, home: &Home, news: Option<News>) {
        match news {
            Some(News::Signal(signal)) => {
                self.0.entry(home.name(&signal.path)).or_default().push(text(&signal));
            }
            Some(
                News::CaughtUp
                | News::Notice(
                    FileNotice::Restarted { .. }
                    | FileNotice::Unreadable { .. }
                    | FileNotice::Watch(_),
                ),
            ) => {}
            other => panic!("{other:?}"),
        }
    }

    /// The files of which the last lines have not come.
    fn missing(&self, files: &BTreeMap<PathBuf, Vec<String>>) -> Vec<PathBuf> {
        let came = |(file, lines): &(&PathBuf, &Vec<String>)| {
            let told = self.0.get(&file.display().to_string());
            told.is_some_and(|told| told.ends_with(lines))
        };
        files.iter().filter(|file| !came(file)).map(|(file, _)| file.clone()).collect()
    }
}

fn check(seed: u64) {
    let home = Home::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut files = runtime.block_on(async { home.files(BTreeMap::new()) });
    let mut told = Told::default();
    let home = &home;
    let write = move |name: u64| {
        let dice = Dice((seed << 8 | name) * 0x9e37_79b9 + 1);
        let mut writer = Writer { home, name, dice, lines: 0, files: BTreeMap::new() };
        (0..STEPS).for_each(|_| writer.step());
        writer.files
    };
    thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS).map(|name| scope.spawn(move || write(name))).collect();
        runtime.block_on(async {
            while !writers.iter().all(thread::ScopedJoinHandle::is_finished) {
                if let Ok(news) = timeout(BREATH, files.next()).await {
                    told.take(home, news);
                }
            }
            let written: BTreeMap<PathBuf, Vec<String>> =
                writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect();
            loop {
                let missing = told.missing(&written);
                if missing.is_empty() {
                    return;
                }
                match timeout(PATIENCE, files.next()).await {
                    Ok(news) => told.take(home, news),
                    Err(_) => panic!("seed {seed}: lines of {missing:?} never came"),
                }
            }
        });
    });
}

#[test]
fn whatever_is_done_to_files_the_lines_they_end_with_are_told() {
    for seed in 1..=6 {
        check(seed);
    }
}
