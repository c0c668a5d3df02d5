//! A pattern for paths, as in a `.gitignore`: `*.rs`, `src/**/mod.rs`.

use std::path::Path;

use ignore::overrides::{Override, OverrideBuilder};

use super::answer::Trouble;
use super::limits::PATTERN_BYTES_MAX;

#[derive(Debug)]
pub(super) struct Glob(Override);

impl Glob {
    pub fn new(pattern: &str) -> Result<Self, Trouble> {
        if pattern.len() > PATTERN_BYTES_MAX || pattern.is_empty() {
            return Err(Trouble::mistake("the glob is empty or too long"));
        }
        let mut builder = OverrideBuilder::new("/");
        let built = builder.add(pattern).and_then(|builder| builder.build());
        built.map(Self).map_err(|error| Trouble::mistake(format!("the glob: {error}")))
    }

    /// Whether a file's path, seen from the root, is meant.
    pub fn matches(&self, path: &Path) -> bool {
        self.0.matched(Path::new("/").join(path), false).is_whitelist()
    }
}
