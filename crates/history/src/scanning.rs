//! Reads the files that have something new, on two threads.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

use memchr::memmem::Finder;
use qd_harness::usage::{FileReader, Reading};
use qd_sources::tail::{Seen, open};
use serde::{Deserialize, Serialize};

use super::finding::{FileKind, FoundFile, Trouble};
use super::portion::Portion;
use super::window::{Lines, Mark, Reached, Window, is_unchanged};
use super::{database, journal};

/// Threads that read a history: on most machines half the cores or fewer, because agents are at
/// work beside us.
const HISTORY_THREADS: usize = 2;

/// A file, and what is known of it from before.
#[derive(Debug, Clone)]
pub struct Job {
    pub file: FoundFile,
    pub known: Option<Known>,
}

/// Where reading of a file stopped.
#[derive(Debug, Clone, PartialEq)]
pub struct Known {
    pub position: Position,
    /// What the reader of its lines must remember.
    pub memory: Option<String>,
}

impl Known {
    /// The position, as the index keeps it.
    pub(super) fn spelled(&self) -> String {
        serde_json::to_string(&self.position).expect("a position is plain numbers")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    pub(super) seen: Seen,
    /// Where the next line begins; in a database, the last row that was looked at; in the journal,
    /// the last entry.
    pub(super) offset: u64,
    pub(super) mark: Mark,
}

/// What came of a job.
#[derive(Debug)]
pub enum Scanned {
    /// Nothing new.
    Same,
    Read(Box<News>),
    /// Gone, or not to be read.
    Not(Option<Trouble>),
}

#[derive(Debug)]
pub struct News {
    pub known: Known,
    /// It was read from its beginning: what it told before is void.
    pub anew: bool,
    /// What it told, as [`Portion::packed`]: a tenth of what it takes to work with it.
    pub told: Vec<u8>,
    /// The folder its session began in.
    pub project: Option<String>,
    pub trouble: Option<Trouble>,
}

/// How far it is; looked at while it runs.
#[derive(Debug, Default)]
pub struct Progress {
    /// Files there are; none until they have been found.
    pub found: AtomicUsize,
    pub files: AtomicUsize,
    pub bytes: AtomicU64,
}

impl Progress {
    pub(super) fn begin(&self, found: usize) {
        self.files.store(0, Ordering::Relaxed);
        self.found.store(found, Ordering::Relaxed);
    }
}

/// What came of each job, in their order.
pub fn scan(jobs: &[Job], progress: &Progress) -> Vec<Scanned> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut window = Window::default();
        let mut done = Vec::new();
        loop {
            let nth = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(nth) else { return done };
            done.push((nth, job.run(&mut window, progress)));
            progress.files.fetch_add(1, Ordering::Relaxed);
        }
    };
    let mut all: Vec<(usize, Scanned)> = thread::scope(|scope| {
        let others: Vec<_> =
            (1..HISTORY_THREADS.min(jobs.len())).map(|_| scope.spawn(work)).collect();
        let mut all = work();
        for other in others {
            all.extend(other.join().expect("a scanner does not panic"));
        }
        all
    });
    all.sort_unstable_by_key(|(nth, _)| *nth);
    all.into_iter().map(|(_, scanned)| scanned).collect()
}

impl Job {
    fn run(&self, window: &mut Window, progress: &Progress) -> Scanned {
        let scanned = match self.file.kind {
            FileKind::Lines => self.read(window, progress),
            FileKind::Database => return database::read(self),
            FileKind::Journal => return journal::read(self),
        };
        match scanned {
            Ok(scanned) => scanned,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Scanned::Not(None),
            Err(error) => Scanned::Not(Some(Trouble::at(&self.file.path, error))),
        }
    }

    fn read(&self, window: &mut Window, progress: &Progress) -> io::Result<Scanned> {
        let path = &self.file.path;
        if let Some(known) = &self.known
            && Seen::of(&path.metadata()?) == known.position.seen
        {
            return Ok(Scanned::Same);
        }
        let (file, seen) = open(path)?;
        let before = match &self.known {
            Some(known)
                if known.position.seen.same_file(seen) && known.position.offset <= seen.size =>
            {
                let Position { offset, mark, .. } = known.position;
                let before = Reached { offset, mark, lines_too_long: 0 };
                is_unchanged(&file, before)?.then_some((before, known.memory.as_deref()))
            }
            _ => None,
        };
        let anew = before.is_none();
        let (from, memory) = before.unwrap_or_default();
        let Some(reader) = self.file.harness.usage_reader(memory) else {
            return Ok(Scanned::Same);
        };
        let mut taking = Taking {
            finder: reader.mark().map(Finder::new),
            reader,
            session: session_of(path),
            portion: Portion::default(),
            project: None,
            unreadable: 0,
        };
        let reached = window.read(&file, from, seen.size, &mut taking)?;
        progress.bytes.fetch_add(seen.size - from.offset, Ordering::Relaxed);
        let position = Position { seen, offset: reached.offset, mark: reached.mark };
        let known = Known { position, memory: taking.reader.memory() };
        let trouble = trouble(path, reached.lines_too_long, taking.unreadable);
        let (told, project) = (taking.portion.packed(), taking.project);
        Ok(Scanned::Read(Box::new(News { known, anew, told, project, trouble })))
    }
}

/// What is done with the lines of one file.
#[derive(Debug)]
struct Taking {
    finder: Option<Finder<'static>>,
    reader: Box<dyn FileReader>,
    session: String,
    portion: Portion,
    project: Option<String>,
    unreadable: u32,
}

impl Taking {
    fn take(&mut self, line: &[u8]) -> Taken {
        match self.reader.read(line) {
            Reading::Nothing => Taken::Nothing,
            Reading::Unreadable => Taken::Unreadable,
            Reading::Told(response, others) => {
                if self.project.is_none() {
                    self.project = response.cwd.as_deref().map(str::to_owned);
                }
                self.portion.take(&response, &self.session);
                for other in &others {
                    self.portion.take(other, &self.session);
                }
                Taken::Counted
            }
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Taken {
    Nothing,
    Unreadable,
    Counted,
}

impl Lines for Taking {
    fn mark(&self) -> Option<&Finder<'static>> {
        self.finder.as_ref()
    }

    fn line(&mut self, line: &[u8]) {
        if self.take(line) == Taken::Unreadable {
            self.unreadable += 1;
        }
    }

    fn unended(&mut self, line: &[u8]) -> bool {
        let has_mark = self.finder.as_ref().is_none_or(|mark| mark.find(line).is_some());
        has_mark && self.take(line) == Taken::Counted
    }
}

/// Whose file it is by its name: a subagent's lies in a folder of its session.
pub(super) fn session_of(path: &Path) -> String {
    let name = |path: Option<&Path>| {
        path.and_then(Path::file_stem).unwrap_or_default().to_string_lossy().into_owned()
    };
    match path.parent() {
        Some(folder) if folder.ends_with("subagents") => name(folder.parent()),
        _ => name(Some(path)),
    }
}

pub(super) fn trouble(path: &Path, too_long: u32, unreadable: u32) -> Option<Trouble> {
    let lines = |count: u32| if count == 1 { "line" } else { "lines" };
    let what = match (too_long, unreadable) {
        (0, 0) => return None,
        (0, count) => format!("{count} {} could not be read", lines(count)),
        (count, 0) => format!("{count} {} too long to be read", lines(count)),
        (long, count) => format!("{count} {} could not be read, {long} too long", lines(count)),
    };
    Some(Trouble::at(path, what))
}
