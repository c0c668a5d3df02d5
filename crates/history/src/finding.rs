//! Which session files there are.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use qd_harness::Harness;

use qd_sources::places::{Place, PlaceKind};

/// How deep folders of session files are entered. Clients use five levels at most; deeper is a
/// mistake or a trap.
const HISTORY_DEPTH_MAX: usize = 16;

/// Session files of one history. Years of ten agents a day make about ten thousand; with their
/// paths a million would take 200 MB.
const HISTORY_FILES_MAX: usize = 200_000;

/// Entries of folders that are looked at for them: a few files of other kinds lie beside each.
const HISTORY_ENTRIES_MAX: usize = 2_000_000;

/// A file that may tell what something cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundFile {
    pub harness: Harness,
    pub kind: FileKind,
    /// The folder it lies below.
    pub place: Arc<Path>,
    pub path: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// One line a message.
    Lines,
    /// OpenCode's, or Kilo's.
    Database,
    /// Ours.
    Journal,
}

/// Something that could not be read. The rest was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    pub path: PathBuf,
    pub what: String,
}

impl Trouble {
    pub fn at(path: &Path, what: impl ToString) -> Self {
        Self { path: path.to_owned(), what: what.to_string() }
    }
}

/// The session files at these places, sorted by path within each.
pub fn find(places: &[Place]) -> (Vec<FoundFile>, Vec<Trouble>) {
    let mut search = Search {
        place: Path::new("").into(),
        files: Vec::new(),
        troubles: Vec::new(),
        entered: HashSet::new(),
        entries: 0,
    };
    for place in places {
        let begin = search.files.len();
        search.place = place.path.as_path().into();
        match place.kind {
            PlaceKind::Transcripts => search.enter(place, &place.path, 0),
            PlaceKind::Data => search.look_for(place, FileKind::Database, place.database()),
            PlaceKind::Journal => {
                search.look_for(place, FileKind::Journal, Some(place.path.clone()));
            }
            PlaceKind::Registry | PlaceKind::Jobs | PlaceKind::Locks | PlaceKind::Socket => {}
        }
        // By their bytes; part by part would take ten times as long.
        search.files[begin..].sort_unstable_by(|a, b| a.path.as_os_str().cmp(b.path.as_os_str()));
    }
    (search.files, search.troubles)
}

#[derive(Debug)]
struct Search {
    place: Arc<Path>,
    files: Vec<FoundFile>,
    troubles: Vec<Trouble>,
    /// Folders that were entered: a link into its own parent would never end.
    entered: HashSet<(u64, u64)>,
    /// Entries that were looked at, all folders together.
    entries: usize,
}

impl Search {
    fn enter(&mut self, place: &Place, folder: &Path, depth: usize) {
        let opened = fs::metadata(folder).and_then(|about| {
            let is_new = self.entered.insert((about.dev(), about.ino()));
            is_new.then(|| fs::read_dir(folder)).transpose()
        });
        let entries = match opened {
            Ok(Some(entries)) => entries,
            Ok(None) => return,
            // An agent that was never used here, or a folder that has just gone.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return,
            Err(error) => return self.troubles.push(Trouble::at(folder, error)),
        };
        if depth > HISTORY_DEPTH_MAX {
            return self.troubles.push(Trouble::at(folder, "is too deep to be entered"));
        }
        for entry in entries {
            if self.entries == HISTORY_ENTRIES_MAX {
                return;
            }
            self.entries += 1;
            let seen = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)));
            match seen {
                Ok((path, kind)) if kind.is_dir() => self.enter(place, &path, depth + 1),
                Ok((path, kind)) if kind.is_symlink() => self.follow(place, path, depth),
                Ok((path, kind)) if kind.is_file() => self.take(place, path),
                Ok(_) => {}
                Err(error) => self.troubles.push(Trouble::at(folder, error)),
            }
        }
    }

    fn look_for(&mut self, place: &Place, kind: FileKind, path: Option<PathBuf>) {
        if let Some(path) = path.filter(|path| path.is_file()) {
            self.push(place, kind, path);
        }
    }

    fn follow(&mut self, place: &Place, path: PathBuf, depth: usize) {
        match fs::metadata(&path) {
            Ok(end) if end.is_dir() => self.enter(place, &path, depth + 1),
            Ok(end) if end.is_file() => self.take(place, path),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => self.troubles.push(Trouble::at(&path, error)),
        }
    }

    fn take(&mut self, place: &Place, path: PathBuf) {
        let is_wanted = path.strip_prefix(&place.path).is_ok_and(place.wants());
        if is_wanted {
            self.push(place, FileKind::Lines, path);
        }
    }

    fn push(&mut self, place: &Place, kind: FileKind, path: PathBuf) {
        if self.files.len() < HISTORY_FILES_MAX {
            self.files.push(FoundFile {
                harness: place.harness,
                kind,
                place: Arc::clone(&self.place),
                path,
            });
        } else if self.files.len() == HISTORY_FILES_MAX {
            self.troubles.push(Trouble::at(&path, "and what follows: too many files"));
        }
    }
}
