//! All of it together: what the index knows, what is new, and the ledger of both.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use qd_broker::session_key::SessionKey;
use qd_harness::Harness;
use qd_harness::usage::{PriceTable, Standing};
use qd_session::moment::Timestamp;
use qd_sources::places::{Place, PlaceKind};
use qd_store::{FileChange, UsageIndex};

use super::finding::{FileKind, FoundFile, Trouble, find};
use super::ledger::Ledger;
use super::live::Live;
use super::portion::Portion;
use super::report::{By, Query, Report, report};
use super::scanning::{Job, Known, News, Progress, Scanned, scan, session_of};

/// Portions of one file in the index before they are joined: a file that grows while somebody
/// looks again and again adds one each time.
const PORTIONS_PER_FILE_MAX: usize = 64;

/// Troubles of a history that are told, of thousands that a lost disk may cause.
pub const HISTORY_TROUBLES_MAX: usize = 200;

/// What this machine's session files have told so far.
#[derive(Debug)]
pub struct History {
    places: Vec<Place>,
    index: Option<UsageIndex>,
    index_path: PathBuf,
    pub(super) files: HashMap<PathBuf, Kept>,
    pub(super) ledger: Ledger,
    /// What files say beside their responses; looked up when somebody asks, and kept while lines
    /// come in one by one.
    pub(super) standings: Option<BTreeMap<SessionKey, Standing>>,
    troubles: Vec<Trouble>,
}

/// A file that was read. One that is there no more stays: what it told is told.
#[derive(Debug)]
pub(super) struct Kept {
    pub known: Known,
    /// The position as the index has it.
    pub indexed: Option<String>,
    pub project: Option<String>,
    /// Its lines come in one by one.
    pub live: Option<Box<Live>>,
}

impl Kept {
    /// What lines told that came one by one, as if it had been read at once; none if none came.
    pub fn settle(&mut self, path: &Path) -> Option<(PathBuf, News)> {
        let live = self.live.take()?;
        self.known.memory = live.memory();
        let news = News {
            known: self.known.clone(),
            anew: false,
            told: live.told().packed(),
            project: self.project.clone(),
            trouble: None,
        };
        Some((path.to_owned(), news))
    }

    /// What its file says beside its responses, and of whom.
    pub fn standing(&self, file: &Path, harness: Harness) -> Option<(SessionKey, Standing)> {
        let resumed;
        let reader = match (&self.live, &self.known.memory) {
            (Some(live), _) => live.reader(),
            (None, Some(memory)) => {
                resumed = harness.usage_reader(Some(memory))?;
                &*resumed
            }
            (None, None) => return None,
        };
        let (session, standing) = reader.standing()?;
        let session = session.map_or_else(|| session_of(file).into(), Arc::from);
        Some((SessionKey { harness, session }, standing.clone()))
    }
}

impl History {
    /// `index` is where it is kept how far files were read. Without it, or where it cannot be
    /// used, all is read each time; [`History::troubles`] says so.
    pub fn open(places: Vec<Place>, index: Option<&Path>) -> Self {
        let mut history = Self {
            places: places
                .into_iter()
                .filter(|place| match place.kind {
                    PlaceKind::Transcripts | PlaceKind::Data | PlaceKind::Journal => true,
                    PlaceKind::Registry
                    | PlaceKind::Jobs
                    | PlaceKind::Locks
                    | PlaceKind::Socket => false,
                })
                .collect(),
            index: None,
            index_path: index.unwrap_or(Path::new("")).to_owned(),
            files: HashMap::new(),
            ledger: Ledger::default(),
            standings: None,
            troubles: Vec::new(),
        };
        match index.map(UsageIndex::open) {
            None => {}
            Some(Err(error)) => history.troubles.push(Trouble::at(&history.index_path, error)),
            Some(Ok((index, damaged))) => {
                let what = |reason| format!("was damaged and is set aside ({reason})");
                let damaged = damaged.map(|found| Trouble::at(&found.path, what(found.reason)));
                history.troubles.extend(damaged);
                history.index = Some(index);
                history.load();
            }
        }
        history
    }

    /// Reads what is new since the last time, and blocks while it does.
    pub fn refresh(&mut self, progress: &Progress) {
        self.save();
        self.standings = None;
        let news = self.scan(progress);
        let is_void =
            |(file, read): &(FoundFile, News)| read.anew && self.files.contains_key(&file.path);
        if !news.iter().any(is_void) {
            self.take(news);
            return;
        }
        // Somebody edited a session file. What others told of the same responses may count again,
        // so the ledger is made anew: from the index, or from all files.
        self.write(&news);
        self.forget();
        if self.index.is_some() {
            self.load();
        }
        let rest = self.scan(progress);
        self.take(rest);
    }

    /// Every response that counts.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The sums a person asks for; with [`By::Session`], what the files say about each session
    /// beside its responses.
    pub fn report(
        &self,
        query: Query,
        prices: &PriceTable,
        offset: impl FnMut(Timestamp) -> i32,
    ) -> Report {
        let mut report = report(&self.ledger, query, prices, offset);
        if query.by == By::Session {
            let standings = self.all_standings();
            report.rows.iter_mut().for_each(|row| row.stand(&standings));
        }
        report
    }

    pub(super) fn all_standings(&self) -> BTreeMap<SessionKey, Standing> {
        let mut standings: BTreeMap<SessionKey, Standing> = BTreeMap::new();
        for (path, kept) in &self.files {
            let harness = self.place_of(path).map(|place| place.harness);
            if let Some((key, standing)) = harness.and_then(|harness| kept.standing(path, harness))
            {
                standings.entry(key).or_default().join(&standing);
            }
        }
        standings
    }

    /// What could not be read.
    pub fn troubles(&self) -> &[Trouble] {
        &self.troubles
    }

    fn scan(&mut self, progress: &Progress) -> Vec<(FoundFile, News)> {
        let (found, troubles) = find(&self.places);
        let mut all_troubles = troubles;
        let known = |file: &FoundFile| self.files.get(&file.path).map(|kept| kept.known.clone());
        let jobs: Vec<Job> =
            found.into_iter().map(|file| Job { known: known(&file), file }).collect();
        progress.begin(jobs.len());
        let scanned = scan(&jobs, progress);
        let mut news = Vec::new();
        for (job, scanned) in jobs.into_iter().zip(scanned) {
            match scanned {
                Scanned::Same => {}
                Scanned::Not(trouble) => all_troubles.extend(trouble),
                Scanned::Read(mut read) => {
                    all_troubles.extend(read.trouble.take());
                    let before = self.files.get(&job.file.path);
                    let project = before.and_then(|kept| kept.project.clone());
                    read.project = project.or(read.project);
                    news.push((job.file, *read));
                }
            }
        }
        for trouble in all_troubles {
            if !self.troubles.contains(&trouble) && self.troubles.len() < HISTORY_TROUBLES_MAX {
                self.troubles.push(trouble);
            }
        }
        news
    }

    fn take(&mut self, news: Vec<(FoundFile, News)>) {
        for (file, read) in news.iter().filter(|(_, read)| !read.told.is_empty()) {
            let portion = Portion::unpacked(&read.told).expect("just packed");
            self.ledger.take(file.harness, read.project.as_deref(), &portion);
        }
        let is_written = self.write(&news);
        for (file, read) in news {
            let before = self.files.get_mut(&file.path);
            let mut indexed = before.and_then(|kept| kept.indexed.take());
            if is_written {
                indexed = Some(read.known.spelled());
            }
            let kept = Kept { known: read.known, indexed, project: read.project, live: None };
            self.files.insert(file.path, kept);
        }
    }

    /// False where there is no index, or it does not take anything.
    pub(super) fn write(&mut self, news: &[(FoundFile, News)]) -> bool {
        let Some(index) = &mut self.index else { return false };
        let positions: Vec<String> = news.iter().map(|(_, read)| read.known.spelled()).collect();
        let changes: Vec<FileChange<'_>> = news
            .iter()
            .zip(&positions)
            .map(|((file, read), position)| FileChange {
                place: &file.place,
                path: &file.path,
                harness: file.harness.name(),
                before: self.files.get(&file.path).and_then(|kept| kept.indexed.as_deref()),
                position,
                memory: read.known.memory.as_deref(),
                project: read.project.as_deref(),
                anew: read.anew,
                told: &read.told,
            })
            .collect();
        match index.write(&changes) {
            Ok(()) => true,
            Err(error) => {
                self.troubles.push(Trouble::at(&self.index_path, error));
                false
            }
        }
    }

    /// A file of lines at one of our places.
    pub(super) fn found(&self, path: PathBuf) -> Option<FoundFile> {
        let place = self.place_of(&path)?;
        let (harness, place) = (place.harness, place.path.as_path().into());
        Some(FoundFile { harness, kind: FileKind::Lines, place, path })
    }

    fn place_of(&self, path: &Path) -> Option<&Place> {
        self.places.iter().find(|place| path.starts_with(&place.path))
    }

    fn forget(&mut self) {
        self.files.clear();
        self.ledger = Ledger::default();
    }

    /// Takes in what the index knows; what it cannot tell is read from the files again.
    fn load(&mut self) {
        let Some(index) = &mut self.index else { return };
        let mut many = Vec::new();
        for place in &self.places {
            let files = match index.files(&place.path) {
                Ok(files) => files,
                Err(error) => {
                    self.troubles.push(Trouble::at(&self.index_path, error));
                    continue;
                }
            };
            for file in files {
                let unpacked = file.told.iter().map(|told| Portion::unpacked(told));
                let portions: Option<Vec<Portion>> = unpacked.collect();
                let (Some(portions), Ok(position)) =
                    (portions, serde_json::from_str(&file.position))
                else {
                    continue;
                };
                for portion in &portions {
                    self.ledger.take(place.harness, file.project.as_deref(), portion);
                }
                let kept = Kept {
                    known: Known { position, memory: file.memory },
                    indexed: Some(file.position),
                    project: file.project,
                    live: None,
                };
                if portions.len() > PORTIONS_PER_FILE_MAX {
                    many.push((place.clone(), file.path.clone(), portions));
                }
                self.files.insert(file.path, kept);
            }
        }
        self.join(many);
    }

    /// A file that was read on many times has many portions: they become one.
    fn join(&mut self, many: Vec<(Place, PathBuf, Vec<Portion>)>) {
        let Some(index) = &mut self.index else { return };
        for (place, path, portions) in many {
            let mut all = Portion::default();
            for portion in &portions {
                all.append(portion);
            }
            let Some(Kept { known, indexed: Some(position), project, .. }) = self.files.get(&path)
            else {
                continue;
            };
            let written = index.write(&[FileChange {
                place: &place.path,
                path: &path,
                harness: place.harness.name(),
                before: Some(position),
                position,
                memory: known.memory.as_deref(),
                project: project.as_deref(),
                anew: true,
                told: &all.packed(),
            }]);
            if let Err(error) = written {
                self.troubles.push(Trouble::at(&self.index_path, error));
            }
        }
    }
}
