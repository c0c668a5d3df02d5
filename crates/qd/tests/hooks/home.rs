//! An isolated HOME with `qd` and a forwarder in it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

pub struct Home {
    root: PathBuf,
}

impl Home {
    /// `name` is the test's own, so that tests do not meet.
    pub fn new(name: &str) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hooks").join(name);
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(root.join("bin")).unwrap();
        fs::create_dir_all(root.join("home")).unwrap();
        let home = Self { root };
        let qd = env!("CARGO_BIN_EXE_qd");
        if fs::hard_link(qd, home.qd()).is_err() {
            fs::copy(qd, home.qd()).unwrap();
        }
        home.program("bin/qd-hook", "cat >/dev/null");
        home
    }

    pub fn qd(&self) -> PathBuf {
        self.root.join("bin/qd")
    }

    pub fn path(&self, below: &str) -> PathBuf {
        self.root.join("home").join(below)
    }

    pub fn write(&self, below: &str, text: &str) -> PathBuf {
        let path = self.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub fn read(&self, below: &str) -> String {
        fs::read_to_string(self.path(below)).unwrap()
    }

    pub fn program(&self, below: &str, script: &str) -> PathBuf {
        let path = self.root.join(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// A command that sees nothing of this machine but the system's programs and ours in `tools`.
    pub fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        let path = format!("{}:/usr/bin:/bin", self.root.join("tools").display());
        command.env_clear().env("HOME", self.root.join("home")).env("PATH", path);
        command
    }

    pub fn hooks(&self, args: &[&str]) -> Outcome {
        let output = self.command(self.qd()).arg("hooks").args(args).output().unwrap();
        Outcome::of(output)
    }

    /// Every file below HOME with its bytes and mode; links as such.
    pub fn picture(&self) -> Vec<(PathBuf, u32, Vec<u8>)> {
        let mut picture = Vec::new();
        let mut folders = vec![self.path("")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                let metadata = fs::symlink_metadata(&path).unwrap();
                let bytes = if metadata.is_symlink() {
                    fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
                } else if metadata.is_dir() {
                    folders.push(path.clone());
                    Vec::new()
                } else {
                    fs::read(&path).unwrap()
                };
                picture.push((path, metadata.permissions().mode(), bytes));
            }
        }
        picture.sort();
        picture
    }
}

#[derive(Debug)]
pub struct Outcome {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Outcome {
    pub fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        self
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap()
    }
}
