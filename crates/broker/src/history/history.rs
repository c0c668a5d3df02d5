//! All of it together: what the index knows, what is new, and the ledger of both.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use qd_store::{FileChange, UsageIndex};

use super::finding::{FoundFile, Trouble, find};
use super::ledger::Ledger;
use super::portion::Portion;
use super::scanning::{Job, Known, News, Progress, Scanned, scan};
use crate::limits::{HISTORY_TROUBLES_MAX, PORTIONS_PER_FILE_MAX};
use crate::sources::places::{Place, PlaceKind};

/// What this machine's session files have told so far.
#[derive(Debug)]
pub struct History {
    places: Vec<Place>,
    index: Option<UsageIndex>,
    index_path: PathBuf,
    files: HashMap<PathBuf, Kept>,
    ledger: Ledger,
    troubles: Vec<Trouble>,
}

/// A file that was read. One that is there no more stays: what it told is told.
#[derive(Debug)]
struct Kept {
    known: Known,
    /// The position as the index has it.
    indexed: Option<String>,
    project: Option<String>,
}

impl History {
    /// `index` is where it is kept how far files were read. Without it, or where it cannot be
    /// used, all is read each time; [`History::troubles`] says so.
    pub fn open(places: Vec<Place>, index: Option<&Path>) -> Self {
        let mut history = Self {
            places: places
                .into_iter()
                .filter(|place| place.kind == PlaceKind::Transcripts)
                .collect(),
            index: None,
            index_path: index.unwrap_or(Path::new("")).to_owned(),
            files: HashMap::new(),
            ledger: Ledger::default(),
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
                indexed = Some(spelled(&read.known));
            }
            let kept = Kept { known: read.known, indexed, project: read.project };
            self.files.insert(file.path, kept);
        }
    }

    /// False where there is no index, or it does not take anything.
    fn write(&mut self, news: &[(FoundFile, News)]) -> bool {
        let Some(index) = &mut self.index else { return false };
        let positions: Vec<String> = news.iter().map(|(_, read)| spelled(&read.known)).collect();
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
            let Some(Kept { known, indexed: Some(position), project }) = self.files.get(&path)
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

fn spelled(known: &Known) -> String {
    serde_json::to_string(&known.position).expect("a position is plain numbers")
}
