//! Prompts and answers of all sessions, found by their words.
//!
//! A reading of its own, beside the one that counts: most lines that say something cost nothing,
//! and nobody who asks what he spent should wait for it. Blocking: for a command, or a thread of
//! the daemon's own; whoever runs it may stop it at any time, and the next one goes on.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use memchr::memmem::Finder;
use qd_harness::Harness;
use qd_harness::said::{LineReader, Listener, Said};
use qd_session::fnv::{BASIS, fnv};
use qd_sources::places::Place;
use qd_sources::tail::{Seen, open};
pub use qd_store::{Hit, SearchQuery};
use qd_store::{SaidRow, SearchIndex, SearchedFile};

use super::finding::{FileKind, FoundFile, Trouble, find};
use super::scanning::{Position, Progress, session_of};
use super::window::{Lines, Reached, Window, is_unchanged};
use crate::history::HISTORY_TROUBLES_MAX;

/// Bytes of prompts and answers of one file that are held before they are written.
const SAID_BATCH_BYTES_MAX: usize = 2 << 20;

#[derive(Debug)]
pub struct Search {
    places: Vec<Place>,
    index: SearchIndex,
    path: PathBuf,
    troubles: Vec<Trouble>,
}

impl Search {
    pub fn open(places: Vec<Place>, path: &Path) -> Result<Self, qd_store::Error> {
        let (index, damaged) = SearchIndex::open(path)?;
        let what = |reason| format!("was damaged and is set aside ({reason})");
        let damaged = damaged.map(|found| Trouble::at(&found.path, what(found.reason)));
        Ok(Self { places, index, path: path.to_owned(), troubles: damaged.into_iter().collect() })
    }

    /// Reads what is new, the newest files first; `stop` ends it after the piece at hand.
    pub fn refresh(&mut self, progress: &Progress, stop: &AtomicBool) {
        let (mut files, troubles) = find(&self.places);
        for trouble in troubles {
            self.note(trouble);
        }
        files.retain(|file| file.kind == FileKind::Lines && file.harness.said_reader().is_some());
        // What does not fit is the oldest.
        files.sort_by_cached_key(|file| {
            let about = file.path.metadata().map(|about| Seen::of(&about).modified_ns);
            std::cmp::Reverse(about.unwrap_or(0))
        });
        progress.begin(files.len());
        let mut window = Window::default();
        for file in files {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            match self.read(&file, &mut window, progress) {
                Ok(()) => {}
                Err(Stuck::File(error)) if error.kind() == io::ErrorKind::NotFound => {}
                Err(Stuck::File(error)) => self.note(Trouble::at(&file.path, error)),
                // It takes nothing now; what it has can be searched.
                Err(Stuck::Index(error)) => return self.note(Trouble::at(&self.path, error)),
            }
            progress.files.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub fn find(&self, query: &SearchQuery) -> Result<Vec<Hit>, qd_store::Error> {
        self.index.find(query)
    }

    /// What could not be read.
    pub fn troubles(&self) -> &[Trouble] {
        &self.troubles
    }

    fn note(&mut self, trouble: Trouble) {
        if !self.troubles.contains(&trouble) && self.troubles.len() < HISTORY_TROUBLES_MAX {
            self.troubles.push(trouble);
        }
    }

    fn read(
        &mut self,
        found: &FoundFile,
        window: &mut Window,
        progress: &Progress,
    ) -> Result<(), Stuck> {
        let Some(reader) = found.harness.said_reader() else { return Ok(()) };
        let path = &found.path;
        let known = self.index.file(path)?;
        let position: Option<Position> =
            known.as_ref().and_then(|known| serde_json::from_str(&known.position).ok());
        if let Some(position) = position
            && Seen::of(&path.metadata()?) == position.seen
        {
            return Ok(());
        }
        let (file, seen) = open(path)?;
        let from = match position {
            Some(Position { seen: before, offset, mark })
                if before.same_file(seen) && offset <= seen.size =>
            {
                let before = Reached { offset, mark, lines_too_long: 0 };
                is_unchanged(&file, before)?.then_some(before)
            }
            _ => None,
        };
        let listener: Option<Listener> = known
            .filter(|_| from.is_some())
            .and_then(|known| serde_json::from_str(&known.memory).ok());
        let mut hearing = Hearing {
            index: &mut self.index,
            harness: found.harness,
            reader,
            file_session: session_of(path),
            listener: listener.unwrap_or_default(),
            said: Vec::new(),
            bytes: 0,
            stuck: None,
        };
        let from = from.unwrap_or_default();
        let reached = window.read(&file, from, seen.size, &mut hearing)?;
        progress.bytes.fetch_add(seen.size - from.offset, Ordering::Relaxed);
        let position = Position { seen, offset: reached.offset, mark: reached.mark };
        let spell = |what: serde_json::Result<String>| what.expect("texts and numbers");
        let searched = SearchedFile {
            position: spell(serde_json::to_string(&position)),
            memory: spell(serde_json::to_string(&hearing.listener)),
        };
        hearing.write(Some((path, &searched)));
        hearing.stuck.map_or(Ok(()), |error| Err(error.into()))
    }
}

/// Why a file was not read.
#[derive(Debug)]
enum Stuck {
    File(io::Error),
    Index(qd_store::Error),
}

impl From<io::Error> for Stuck {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

impl From<qd_store::Error> for Stuck {
    fn from(error: qd_store::Error) -> Self {
        Self::Index(error)
    }
}

/// What is done with the lines of one file.
#[derive(Debug)]
struct Hearing<'a> {
    index: &'a mut SearchIndex,
    harness: Harness,
    reader: LineReader,
    file_session: String,
    listener: Listener,
    said: Vec<Said>,
    bytes: usize,
    stuck: Option<qd_store::Error>,
}

impl Hearing<'_> {
    /// Pieces of a file may be written before the rest: what is told again is the same.
    fn write(&mut self, file: Option<(&Path, &SearchedFile)>) {
        if self.stuck.is_some() {
            return;
        }
        let session = self.listener.session.as_deref().unwrap_or(&self.file_session);
        let rows: Vec<SaidRow<'_>> = self
            .said
            .iter()
            .map(|said| SaidRow {
                sum: sum(self.harness, session, said),
                harness: self.harness.name(),
                session,
                project: self.listener.project.as_deref(),
                who: said.who.name(),
                at_ms: said.at.0,
                text: &said.text,
            })
            .collect();
        self.stuck = self.index.write(&rows, file).err();
        (self.said, self.bytes) = (Vec::new(), 0);
    }
}

impl Lines for Hearing<'_> {
    fn mark(&self) -> Option<&Finder<'static>> {
        None
    }

    fn line(&mut self, line: &[u8]) {
        for said in self.listener.read(self.reader, line) {
            self.bytes += said.text.len();
            self.said.push(said);
        }
        if self.bytes > SAID_BATCH_BYTES_MAX {
            self.write(None);
        }
    }

    /// It is read when it has an end.
    fn unended(&mut self, _: &[u8]) -> bool {
        false
    }
}

/// A fork repeats the words of another session at the same time; a message that grows has an id.
fn sum(harness: Harness, session: &str, said: &Said) -> u64 {
    let sum = fnv(fnv(BASIS, harness.name().as_bytes()), said.who.name().as_bytes());
    match &said.key {
        Some(key) => fnv(fnv(sum, session.as_bytes()), key.as_bytes()),
        None => fnv(fnv(sum, &said.at.0.to_le_bytes()), said.text.as_bytes()),
    }
}
