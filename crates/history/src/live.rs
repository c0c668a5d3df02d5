//! Lines that somebody else has read, one by one, and what they change.
//!
//! The daemon's file source reads what agents write; here nothing of it is read again. A line is
//! known by where it ends, so those that a scan has counted do not count again, and one that does
//! not follow the line before it is noticed. What lines told goes into the index all at once, by
//! [`History::save`].

use std::path::Path;

use memchr::memmem;
use qd_broker::session_key::SessionKey;
use qd_harness::Harness;
use qd_harness::usage::{FileReader, PriceTable, Reading};
use qd_sources::tail::{self, Seen};

use super::history::{History, Kept};
use super::portion::Portion;
use super::report::{By, Query, Row, report_of};
use super::scanning::{Known, Position, session_of};
use super::window::Mark;

/// Lines of one file that came in one by one before what they told is written into the index. A
/// crash costs reading them again.
const LIVE_LINES_MAX: usize = 1_024;

/// What a line changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    Nothing,
    /// These sessions have other sums now: mostly one, two where a fork tells more of a response.
    Sessions(Vec<SessionKey>),
    /// Something before the line was not seen here. [`History::refresh`] reads it.
    Behind,
}

/// A file whose lines come in one by one.
#[derive(Debug)]
pub(super) struct Live {
    reader: Box<dyn FileReader>,
    /// What was told and is not in the index.
    told: Portion,
    lines: usize,
}

impl History {
    /// Takes a line without its end; `end` is where the next one begins. After
    /// [`Restarted`](qd_sources::files::FileNotice::Restarted) the file is to be read with
    /// [`History::refresh`] first.
    pub fn take_line(
        &mut self,
        harness: Harness,
        path: &Path,
        line: &[u8],
        end: tail::Position,
    ) -> Change {
        let Some(begin) = end.offset.checked_sub(line.len() as u64 + 1) else {
            return Change::Behind;
        };
        if !self.files.contains_key(path) {
            if begin > 0 {
                return Change::Behind;
            }
            self.files.insert(path.to_owned(), Kept::new_file(end.seen));
        }
        let kept = self.files.get_mut(path).expect("it is there now");
        let position = &mut kept.known.position;
        if !position.seen.same_file(end.seen) || end.seen.size < position.offset {
            return Change::Behind;
        }
        if end.offset <= position.offset {
            return Change::Nothing;
        }
        // A scan takes a last line that is whole before its end has come.
        let is_counted = position.offset == end.offset - 1 && begin < position.offset;
        if begin != position.offset && !is_counted {
            return Change::Behind;
        }
        let ended = [&line[line.len().saturating_sub(MARKED_BYTES)..], b"\n"].concat();
        // Of another size than the file has, while lines of it are still to come.
        let seen = Seen { size: end.offset, ..end.seen };
        *position = Position { seen, offset: end.offset, mark: Mark::of(&ended) };
        if is_counted {
            return Change::Nothing;
        }
        let told = kept.read(harness, path, line);
        if let Some(standings) = &mut self.standings
            && let Some((key, standing)) = kept.standing(path, harness)
        {
            standings.insert(key, standing);
        }
        let Some(told) = told else { return Change::Nothing };
        let changed = self.ledger.take_live(harness, kept.project.as_deref(), &told);
        if kept.is_full() {
            self.save();
        }
        match changed.is_empty() {
            true => Change::Nothing,
            false => Change::Sessions(changed),
        }
    }

    /// Writes into the index what lines have told since the last time.
    pub fn save(&mut self) {
        let live: Vec<_> =
            self.files.iter_mut().filter_map(|(path, kept)| kept.settle(path)).collect();
        let live: Vec<_> =
            live.into_iter().filter_map(|(path, news)| Some((self.found(path)?, news))).collect();
        let is_written = self.write(&live);
        for (file, news) in live {
            let kept = self.files.get_mut(&file.path).expect("it was there");
            if is_written {
                kept.indexed = Some(news.known.spelled());
            }
        }
    }

    /// What a session has cost so far; none if nothing of it was told.
    pub fn session(&mut self, key: &SessionKey, prices: &PriceTable) -> Option<Row> {
        let query = Query { since: None, until: None, by: By::Session };
        let mut report = report_of(self.ledger.counted_of(key), query, prices, |_| 0);
        if self.standings.is_none() {
            self.standings = Some(self.all_standings());
        }
        let mut row = report.rows.pop()?;
        self.standings.iter().for_each(|standings| row.stand(standings));
        Some(row)
    }
}

impl Kept {
    /// One of which nothing was read.
    fn new_file(seen: Seen) -> Self {
        let position = Position { seen, offset: 0, mark: Mark::default() };
        Self { known: Known { position, memory: None }, indexed: None, project: None, live: None }
    }

    /// What a line tells of responses; none where it does not.
    fn read(&mut self, harness: Harness, path: &Path, line: &[u8]) -> Option<Portion> {
        if self.live.is_none() {
            let reader = harness.usage_reader(self.known.memory.as_deref())?;
            self.live = Some(Box::new(Live { reader, told: Portion::default(), lines: 0 }));
        }
        let live = self.live.as_mut().expect("it is there now");
        live.lines += 1;
        if live.reader.mark().is_some_and(|mark| memmem::find(line, mark).is_none()) {
            return None;
        }
        let Reading::Told(response, others) = live.reader.read(line) else { return None };
        if self.project.is_none() {
            self.project = response.cwd.as_deref().map(str::to_owned);
        }
        let mut told = Portion::default();
        let session = session_of(path);
        for response in std::iter::once(&*response).chain(&others) {
            told.take(response, &session);
        }
        live.told.append(&told);
        Some(told)
    }

    fn is_full(&self) -> bool {
        self.live.as_ref().is_some_and(|live| live.lines >= LIVE_LINES_MAX)
    }
}

impl Live {
    pub(super) fn memory(&self) -> Option<String> {
        self.reader.memory()
    }

    pub(super) fn told(&self) -> &Portion {
        &self.told
    }

    pub(super) fn reader(&self) -> &dyn FileReader {
        &*self.reader
    }
}

/// Of the end of a line, for the mark: a byte less than a mark has, for the line's end.
const MARKED_BYTES: usize = crate::window::HISTORY_MARK_BYTES - 1;
