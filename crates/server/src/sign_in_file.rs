//! A file that leads a browser to a sign-in link.
//!
//! Every user of the machine can read the arguments of a browser, so `qd open` gives it the path of
//! this file, which only this user can read, and never the link itself. The file goes when its link
//! is used or taken back.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use tracing::warn;

use crate::auth::random_hex;

const PREFIX: &str = "sign-in-";

#[derive(Debug)]
pub struct SignInFile {
    path: PathBuf,
}

impl SignInFile {
    pub fn write(folder: &Path, link: &str) -> io::Result<Self> {
        let path = folder.join(format!("{PREFIX}{}.html", random_hex::<8>()?));
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(0o600).open(&path)?;
        let written = Self { path };
        file.write_all(page(link).as_bytes())?;
        Ok(written)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes what a daemon left behind that was killed.
    pub fn sweep(folder: &Path) {
        for found in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = found.file_name();
            let name = name.to_string_lossy();
            if name.starts_with(PREFIX) && name.ends_with(".html") {
                remove(&found.path());
            }
        }
    }
}

impl Drop for SignInFile {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

fn remove(path: &Path) {
    match fs::remove_file(path) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => warn!(%error, path = %path.display(), "a sign-in file stays"),
    }
}

/// Our links hold nothing that HTML would read in another way.
fn page(link: &str) -> String {
    format!(
        "<!doctype html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <meta http-equiv=\"refresh\" content=\"0;url={link}\">\n<title>Quarterdeck</title>\n\
         <p><a href=\"{link}\">Sign in to Quarterdeck</a></p>\n"
    )
}
