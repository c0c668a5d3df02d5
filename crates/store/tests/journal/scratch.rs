//! A folder of a test's own, gone when the test ends.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use qd_store::{Journal, Opened, Settings};
use rusqlite::Connection;

pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Self {
        static NTH: AtomicU32 = AtomicU32::new(0);
        let nth = NTH.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("qd-store-{}-{nth}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder to work in");
        Self(path)
    }

    pub fn folder(&self) -> &Path {
        &self.0
    }

    pub fn journal(&self) -> PathBuf {
        self.0.join("journal.db")
    }

    pub fn open(&self) -> Journal {
        self.opened(Settings::default()).0
    }

    pub fn opened(&self, settings: Settings) -> (Journal, Opened) {
        Journal::open(self.journal(), settings).expect("it opens")
    }

    /// The database itself, for damage.
    pub fn sql(&self) -> Connection {
        Connection::open(self.journal()).expect("a database")
    }

    pub fn files(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(&self.0)
            .expect("the folder")
            .map(|entry| entry.expect("a file").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("{} is left behind: {error}", self.0.display());
        }
    }
}
