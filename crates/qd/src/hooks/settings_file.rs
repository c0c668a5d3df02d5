//! One settings file on disk: read whole, replaced whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use qd_host::bounded_file::{Links, read_regular};

/// Largest settings file we edit. They are a few kilobytes; what is larger is something else.
pub const FILE_BYTES_MAX: u64 = 4 << 20;

/// As it was when it was read.
#[derive(Debug)]
pub struct SettingsFile {
    named: PathBuf,
    /// Where the text is: the end of a chain of links.
    target: PathBuf,
    found: Option<Found>,
}

#[derive(Debug)]
struct Found {
    text: String,
    mode: u32,
    owner: (u32, u32),
}

impl SettingsFile {
    pub fn read(named: &Path) -> Result<Self> {
        let target = followed(named)?;
        let found = match fs::metadata(&target) {
            Ok(metadata) => Some(Found {
                text: read_text(&target)?,
                mode: metadata.permissions().mode() & 0o7777,
                owner: (metadata.uid(), metadata.gid()),
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => None,
            Err(error) => return Err(error).context(format!("cannot read {}", named.display())),
        };
        Ok(Self { named: named.to_owned(), target, found })
    }

    pub fn named(&self) -> &Path {
        &self.named
    }

    pub fn text(&self) -> Option<&str> {
        self.found.as_ref().map(|found| found.text.as_str())
    }

    pub fn mode(&self) -> u32 {
        self.found.as_ref().map_or(NEW_FILE_MODE, |found| found.mode)
    }

    /// Says early what would stop a change.
    pub fn check_writable(&self) -> Result<()> {
        let name = self.named.display();
        if self.found.is_some() {
            if fs::metadata(&self.target)?.permissions().readonly() {
                bail!("{name} is read-only; nothing was changed");
            }
            let opened = OpenOptions::new().write(true).open(&self.target);
            opened.with_context(|| format!("{name} cannot be written; nothing was changed"))?;
        }
        let folder = self.folder();
        match fs::metadata(folder) {
            Ok(metadata) if metadata.permissions().readonly() => {
                bail!("the folder {} is read-only; nothing was changed", folder.display())
            }
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error).context(format!("cannot look at {}", folder.display())),
        }
    }

    /// Writes the new text, or removes the file. Refuses if somebody else wrote since it was read.
    pub fn replace(&self, text: Option<&str>, mode: u32) -> Result<()> {
        self.check_writable()?;
        match text {
            Some(text) => {
                fs::create_dir_all(self.folder())
                    .with_context(|| format!("cannot create {}", self.folder().display()))?;
                let _lock = locked(self.folder())?;
                self.check_unchanged()?;
                let owner = self.found.as_ref().map(|found| found.owner);
                write_atomically(&self.target, text, mode, owner)
            }
            None => {
                let lock = locked(self.folder())?;
                self.check_unchanged()?;
                fs::remove_file(&self.target)
                    .with_context(|| format!("cannot remove {}", self.named.display()))?;
                lock.sync_all()?;
                // We made the file, and the folder too if it holds nothing else. If it does, it
                // stays: that is the expected error.
                let _ = fs::remove_dir(self.folder());
                Ok(())
            }
        }
    }

    fn check_unchanged(&self) -> Result<()> {
        let now = Self::read(&self.named)?;
        if now.text() != self.text() || now.target != self.target {
            bail!("{} was changed by another program just now; try again", self.named.display());
        }
        Ok(())
    }

    fn folder(&self) -> &Path {
        self.target.parent().unwrap_or(Path::new("/"))
    }
}

/// Whole or not at all, also when the power fails: written beside, synced, renamed.
pub fn write_atomically(
    path: &Path,
    text: &str,
    mode: u32,
    owner: Option<(u32, u32)>,
) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // One name, so that what a killed run left behind is found again; the folder is locked.
    let draft = folder.join(format!(".{name}.quarterdeck-draft"));
    match fs::remove_file(&draft) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            return Err(error).context(format!("cannot remove {}", draft.display()));
        }
        _ => {}
    }
    let written = write_draft(&draft, text, mode, owner)
        .and_then(|()| fs::rename(&draft, path))
        .and_then(|()| File::open(folder)?.sync_all());
    written.map_err(|error| {
        // The first error is the one to tell; a draft that stays is removed by the next run.
        let _ = fs::remove_file(&draft);
        anyhow::Error::new(error)
            .context(format!("cannot write {}; nothing was changed", path.display()))
    })
}

fn write_draft(
    draft: &Path,
    text: &str,
    mode: u32,
    owner: Option<(u32, u32)>,
) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(draft)?;
    file.write_all(text.as_bytes())?;
    if let Some((uid, gid)) = owner {
        let metadata = file.metadata()?;
        if (metadata.uid(), metadata.gid()) != (uid, gid) {
            fchown(&file, Some(uid), Some(gid))?;
        }
    }
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.sync_all()
}

/// Two of us must not change one folder at a time. Freed with the handle, also by a kill.
pub fn locked(folder: &Path) -> Result<File> {
    let handle = File::open(folder).with_context(|| format!("cannot open {}", folder.display()))?;
    handle.try_lock().map_err(|error| {
        anyhow::anyhow!("{} is being changed by another qd ({error}); try again", folder.display())
    })?;
    Ok(handle)
}

pub fn read_text(path: &Path) -> Result<String> {
    let name = path.display();
    let bytes = match read_regular(path, FILE_BYTES_MAX, Links::Followed) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::FileTooLarge => {
            bail!("{name} is larger than {} MiB, too large for settings", FILE_BYTES_MAX >> 20);
        }
        Err(error) if error.kind() == ErrorKind::InvalidInput => bail!("{name} is not a file"),
        Err(error) => return Err(error).context(format!("cannot read {name}")),
    };
    String::from_utf8(bytes).map_err(|_| anyhow::anyhow!("{name} is not UTF-8"))
}

/// A link's target, so that the link stays and its target is written.
fn followed(named: &Path) -> Result<PathBuf> {
    match fs::canonicalize(named) {
        Ok(target) => Ok(target),
        Err(error) if error.kind() == ErrorKind::NotFound => match fs::read_link(named) {
            Ok(to) => {
                bail!("{} is a link to {}, which does not exist", named.display(), to.display())
            }
            Err(_) => Ok(named.to_owned()),
        },
        Err(error) => Err(error).context(format!("cannot read {}", named.display())),
    }
}

/// For a file that we create: settings may hold keys.
const NEW_FILE_MODE: u32 = 0o600;
