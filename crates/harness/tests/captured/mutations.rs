//! The rules learnt from the clients, and the patches that switch them off. That their captures
//! fail then is `cargo xtask rules`; here, that the page and the patches name each other and that
//! every patch still fits.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::capture::top;
use super::patch::{How, Patch};
use super::table::table;

const RULES: u32 = 13;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn patches() -> Vec<Patch> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("mutations");
    let paths = fs::read_dir(folder).expect("the patches").map(|entry| entry.expect("one").path());
    let read = |path: PathBuf| {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).expect("a patch is text");
        Patch::read(&name, &text).unwrap_or_else(|why| panic!("{name}: {why}"))
    };
    paths.filter(|path| path.extension().is_some_and(|end| end == "patch")).map(read).collect()
}

/// The rows of one table by the patch they name: the rule's number and what fails.
fn rows(heading: &str) -> BTreeMap<String, (u32, BTreeSet<String>)> {
    let mut rows = BTreeMap::new();
    for row in table(heading) {
        let mut quoted = row[2].split('`').skip(1).step_by(2).map(str::to_owned);
        let patch = quoted.next().unwrap_or_else(|| panic!("a row without a patch: {row:?}"));
        let number = row[0].parse().expect("a row begins with its rule");
        let before = rows.insert(patch, (number, quoted.collect()));
        assert!(before.is_none(), "two rows name one patch: {row:?}");
    }
    rows
}

#[test]
fn every_patch_fits_the_code() {
    for patch in patches() {
        let mut files: BTreeMap<&str, String> = BTreeMap::new();
        for hunk in &patch.hunks {
            let text = files.remove(hunk.path.as_str()).unwrap_or_else(|| {
                fs::read_to_string(workspace().join(&hunk.path)).expect("a file of the workspace")
            });
            let changed = hunk.apply(&text);
            let changed = changed.unwrap_or_else(|| {
                panic!("{}: not once in {}:\n{}", patch.name, hunk.path, hunk.old)
            });
            assert_ne!(changed, text, "{}: a hunk that changes nothing", patch.name);
            files.insert(&hunk.path, changed);
        }
        assert!(!files.is_empty(), "{}: no hunks", patch.name);
        assert!(patch.says.ends_with('.'), "{}: begins with a sentence", patch.name);
    }
}

#[test]
fn the_page_and_the_patches_name_each_other() {
    let captures = rows("Rules learnt from the clients");
    let tests = rows("Rules held by a test of our own");
    let numbers: BTreeSet<u32> = captures.values().chain(tests.values()).map(|row| row.0).collect();
    assert_eq!(numbers, (1..=RULES).collect(), "every rule has a row");
    let mut written = captures.clone();
    written.extend(tests.clone());
    let patches = patches();
    let kept = patches.iter().map(|patch| {
        let fails = patch.fails.iter().map(|fails| fails.what.clone()).collect();
        (patch.name.clone(), (patch.rule(), fails))
    });
    assert_eq!(written, kept.collect(), "on the page, and in crates/harness/mutations");
    for patch in &patches {
        let by_test = patch.fails.iter().all(|fails| fails.how == How::Test);
        assert_eq!(by_test, tests.contains_key(&patch.name), "{}: in which table?", patch.name);
        for fails in patch.fails.iter().filter(|fails| fails.how != How::Test) {
            assert!(top().join(&fails.what).is_dir(), "{}: no {}", patch.name, fails.what);
        }
    }
}
