//! What is logged on this thread, for as long as somebody listens.

use std::io::Write;
use std::sync::{Arc, Mutex};

use tracing::subscriber::DefaultGuard;
use tracing_subscriber::EnvFilter;

pub struct Log {
    paper: Paper,
    _guard: DefaultGuard,
}

impl Log {
    /// A test has one thread, and all that it starts runs there.
    pub fn listen(level: &str) -> Self {
        let paper = Paper::default();
        let writer = paper.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_env_filter(EnvFilter::new(level))
            .with_ansi(false)
            .without_time()
            .with_writer(move || writer.clone())
            .finish();
        Self { paper, _guard: tracing::subscriber::set_default(subscriber) }
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.paper.0.lock().expect("no panic").clone()).expect("text")
    }
}

#[derive(Clone, Default)]
struct Paper(Arc<Mutex<Vec<u8>>>);

impl Write for Paper {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
