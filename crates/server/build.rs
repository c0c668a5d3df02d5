//! Builds the page, so that one program holds all of it.
//!
//! Runs npm when the page's sources changed. A build that fails is an error. Only where npm is
//! absent is there another way: the page that a release archive brings along, or a placeholder
//! that says so.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    let web = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web");
    let built = PathBuf::from(env::var_os("OUT_DIR").expect("cargo says where")).join("page");
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", web.join(source).display());
    }
    if has_npm() {
        install(&web);
        // Emptied, or the program would hold every page that was ever built here.
        let out = [OsStr::new("--emptyOutDir"), OsStr::new("--outDir"), built.as_os_str()];
        npm(&web, &[&["run", "build", "--"].map(OsStr::new)[..], &out].concat());
        return;
    }
    let _ = fs::remove_dir_all(&built);
    let shipped = web.join("dist");
    if shipped.join("index.html").is_file() {
        copy(&shipped, &built);
    } else {
        println!("cargo::warning=npm was not found: the program will have no page");
        fs::create_dir_all(&built).expect("OUT_DIR can be written");
        fs::write(built.join("index.html"), PLACEHOLDER).expect("OUT_DIR can be written");
    }
}

fn has_npm() -> bool {
    match Command::new("npm").arg("--version").output() {
        Ok(answer) if answer.status.success() => true,
        Ok(answer) => panic!("npm does not work: {}", String::from_utf8_lossy(&answer.stderr)),
        Err(error) if error.kind() == ErrorKind::NotFound => false,
        Err(error) => panic!("npm cannot be run: {error}"),
    }
}

/// Does nothing when what the lock file asks for is there. An install that was broken off has no
/// stamp and is done again from the start.
fn install(web: &Path) {
    let read = |name| fs::read_to_string(web.join(name)).expect("the page's sources are there");
    let wanted = read("package.json") + &read("package-lock.json");
    let stamp = web.join("node_modules/.installed");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return;
    }
    npm(
        web,
        &["ci", "--include=dev", "--ignore-scripts", "--no-audit", "--no-fund"].map(OsStr::new),
    );
    fs::write(stamp, wanted).expect("npm made the folder");
}

fn npm(web: &Path, arguments: &[&OsStr]) {
    let answer = Command::new("npm").args(arguments).current_dir(web).output().expect("npm runs");
    if !answer.status.success() {
        let (said, failed) = (&answer.stdout, &answer.stderr);
        let output = String::from_utf8_lossy(said) + String::from_utf8_lossy(failed);
        panic!("npm {arguments:?} in {} failed:\n{output}", web.display());
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("OUT_DIR can be written");
    for entry in fs::read_dir(from).expect("the shipped page") {
        let entry = entry.expect("the shipped page");
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).expect("OUT_DIR can be written");
        }
    }
}

/// All that decides what is built.
const SOURCES: [&str; 7] = [
    "index.html",
    "package.json",
    "package-lock.json",
    "public",
    "src",
    "tsconfig.json",
    "vite.config.ts",
];

const PLACEHOLDER: &str = "<!doctype html>
<html lang=\"en\">
  <title>Quarterdeck</title>
  <p>This program was built where npm was not found, so it has no page. Build it again with
  Node.js 20 or newer, or use <code>qd watch</code> in a terminal.</p>
</html>
";
