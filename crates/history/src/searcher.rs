//! The daemon's own search: a thread that keeps the index new, and anybody who asks it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use qd_sources::places::Place;
use qd_store::{Hit, SearchIndex, SearchQuery};
use tracing::warn;

use super::scanning::Progress;
use super::search::Search;

/// What was said is put into the search index at most this often.
const SEARCH_READ_AGAIN_AFTER: Duration = Duration::from_secs(20);

/// A way to the index. Its thread ends when the last one is dropped.
#[derive(Debug, Clone)]
pub struct Searcher {
    bell: SyncSender<()>,
    path: Arc<PathBuf>,
    /// For those who ask; the thread has a connection of its own.
    reader: Arc<Mutex<Option<SearchIndex>>>,
    _alive: Arc<Alive>,
}

/// Says that nobody is left.
#[derive(Debug)]
struct Alive(Arc<AtomicBool>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Searcher {
    pub fn start(places: Vec<Place>, path: PathBuf) -> std::io::Result<Self> {
        let (bell, rung) = sync_channel(1);
        let stop = Arc::new(AtomicBool::new(false));
        let alive = Arc::new(Alive(stop.clone()));
        let index = path.clone();
        std::thread::Builder::new()
            .name("qd-search".to_owned())
            .spawn(move || keep_new(places, &index, &rung, &stop))?;
        let path = Arc::new(path);
        Ok(Self { bell, path, reader: Arc::default(), _alive: alive })
    }

    /// Somebody said something: it will be found in a while.
    pub fn look(&self) {
        // One ring is enough.
        let _ = self.bell.try_send(());
    }

    /// Blocks while it looks.
    pub fn find(&self, query: &SearchQuery) -> Result<Vec<Hit>, qd_store::Error> {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let index = match reader.take() {
            Some(index) => index,
            None => SearchIndex::open(&self.path)?.0,
        };
        let found = index.find(query);
        // One that failed is opened anew by the next.
        if found.is_ok() {
            *reader = Some(index);
        }
        found
    }
}

fn keep_new(places: Vec<Place>, path: &std::path::Path, bell: &Receiver<()>, stop: &AtomicBool) {
    let mut search = match Search::open(places, path) {
        Ok(search) => search,
        Err(error) => return warn!(%error, path = %path.display(), "there is no search"),
    };
    let mut told = 0;
    loop {
        search.refresh(&Progress::default(), stop);
        for trouble in search.troubles().iter().skip(told) {
            warn!(path = %trouble.path.display(), what = %trouble.what, "search");
        }
        told = search.troubles().len();
        if bell.recv().is_err() {
            return;
        }
        // What was said now is seldom searched for at once, and a busy machine says much.
        let pause = std::time::Instant::now() + SEARCH_READ_AGAIN_AFTER;
        loop {
            let left = pause.saturating_duration_since(std::time::Instant::now());
            match bell.recv_timeout(left) {
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }
}
