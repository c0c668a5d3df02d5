//! The fuzzers' corpus, and every input that ever broke something, through the fuzzers' own entry.

#![allow(clippy::disallowed_methods, reason = "the corpus is files")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use qd_harness::fuzzing::{TARGETS, run};

/// Seeds a target cannot do without.
const SEEDS_MIN: usize = 1;

/// A target's seeds are read by people and carried by every clone: they stay small.
const SEED_BYTES_MAX: u64 = 16 << 10;

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder of the corpus");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus")
}

#[test]
fn every_input_of_the_corpus_is_survived() {
    for (name, parser) in TARGETS {
        let inputs = files(&corpus().join(name));
        assert!(inputs.len() >= SEEDS_MIN, "{name} has no seeds");
        for path in inputs {
            println!("{}", path.display());
            run(parser, &fs::read(&path).expect("an input"));
        }
    }
}

#[test]
fn the_corpus_is_small_and_every_folder_has_its_target() {
    let targets: BTreeSet<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
    for folder in files(&corpus()) {
        let name = folder.file_name().and_then(|name| name.to_str()).expect("a name");
        assert!(targets.contains(name), "{name} is no target");
        for path in files(&folder) {
            let bytes = fs::metadata(&path).expect("an input").len();
            assert!(bytes <= SEED_BYTES_MAX, "{} has {bytes} bytes", path.display());
        }
    }
}
