//! A session's transcript in pages, read from the file or the database its client writes.
//!
//! The path is the one on the session's card and comes from nowhere else; a cursor holds numbers
//! only. Reading blocks, so it is done off the loop. Each page costs a bounded amount of reading
//! and of memory, however long the file and its lines are.

mod chat;
mod cursor;
mod lines;
mod rows;

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use qd_broker::NotFound;
use qd_harness::Harness;
use qd_harness::conversation::{Entry, Form};
use rustix::fs::OFlags;
use serde::Serialize;

use self::cursor::Cursor;
pub use self::lines::TRANSCRIPT_PAGE_READ_MAX;

/// Entries of one page of a transcript, about: a line may hold several.
pub const TRANSCRIPT_ENTRIES_MAX: usize = 200;

/// Entries, oldest first, and where to go on.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Page {
    pub entries: Vec<Entry>,
    /// Where the page before this one is; none at the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<String>,
    /// Where what comes after this page will be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// There is more in the direction that was asked for.
    pub more: bool,
    /// Why there is nothing, where there never will be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
}

/// Which part is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    Newest,
    Before(String),
    After(String),
}

/// Why there is no page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    #[error("no session is meant")]
    Session(NotFound),
    #[error("the session has no transcript, or it is gone")]
    NoTranscript,
    #[error("the transcript cannot be read: {0}")]
    Unreadable(ErrorKind),
    #[error("that is no cursor of ours")]
    NoCursor,
    /// What the cursor stood in is there no more.
    #[error("the transcript was written anew")]
    Changed,
}

impl From<io::Error> for Unread {
    fn from(error: io::Error) -> Self {
        let kind = error.kind();
        if kind == ErrorKind::NotFound {
            return Self::NoTranscript;
        }
        // It became shorter while it was read.
        match kind == ErrorKind::UnexpectedEof {
            true => Self::Changed,
            false => Self::Unreadable(kind),
        }
    }
}

/// Whose transcript it is.
#[derive(Debug, Clone, Copy)]
pub struct Whose<'a> {
    pub harness: Harness,
    /// The agent's own id for the session.
    pub session: &'a str,
    /// The file on its card.
    pub path: Option<&'a str>,
    /// Where its client may keep conversations instead.
    pub databases: &'a [PathBuf],
    /// The folders that its client keeps transcripts in.
    pub folders: &'a [PathBuf],
}

/// Reads a page of about `limit` entries. Blocks.
pub fn read(whose: &Whose<'_>, part: &Part, limit: usize) -> Result<Page, Unread> {
    let Whose { harness, session, path, databases, folders } = *whose;
    let Some(form) = harness.transcript_form() else {
        let reason = Some("this agent keeps its conversations in a form that is not read yet");
        return Ok(Page { reason, ..Page::default() });
    };
    let limit = limit.clamp(1, TRANSCRIPT_ENTRIES_MAX);
    let cursor = match part {
        Part::Newest => None,
        Part::Before(cursor) | Part::After(cursor) => Some(Cursor::parse(cursor)?),
    };
    let transcript = || {
        let path = Path::new(path.ok_or(Unread::NoTranscript)?);
        Transcript::open(harness, path, folders)
    };
    let all = || match form {
        Form::Rows => rows::entries(databases, session),
        Form::Lines(_) | Form::Whole => chat::entries(&transcript()?),
    };
    match (form, part, cursor) {
        (Form::Lines(read), Part::Newest | Part::Before(_), cursor) => {
            lines::page_before(&transcript()?, read, cursor, limit)
        }
        (Form::Lines(read), Part::After(_), Some(cursor)) => {
            lines::page_after(&transcript()?, read, cursor, limit)
        }
        (Form::Whole | Form::Rows, Part::Newest | Part::Before(_), cursor) => {
            chat::page_before(all()?, cursor, limit)
        }
        (Form::Whole | Form::Rows, Part::After(_), Some(cursor)) => {
            chat::page_after(all()?, cursor, limit)
        }
        (Form::Lines(_) | Form::Whole | Form::Rows, Part::After(_), None) => Err(Unread::NoCursor),
    }
}

/// An open transcript, as long as it was when it was opened.
#[derive(Debug)]
struct Transcript {
    file: File,
    size: u64,
    /// Device and inode: another file at the same path is another transcript.
    identity: [u64; 2],
    /// One document that is written anew each time, and no lines.
    is_document: bool,
}

impl Transcript {
    /// A hook may name any path as its transcript, so only a plain file of this user is opened that
    /// is called like one and really lies in a folder of its client, wherever links lead.
    fn open(harness: Harness, path: &Path, folders: &[PathBuf]) -> Result<Self, Unread> {
        let ending = path.extension().and_then(|ending| ending.to_str());
        let is_document = match (harness, ending) {
            (_, Some("jsonl")) => false,
            (Harness::GeminiCli, Some("json")) => true,
            (_, _) => return Err(Unread::NoTranscript),
        };
        if !path.is_absolute() {
            return Err(Unread::NoTranscript);
        }
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let flags = i32::try_from(flags.bits()).unwrap_or_default();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        // Where the file lies that was opened, whatever has become of its path meanwhile.
        let opened = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let place = if cfg!(target_os = "linux") { opened? } else { path.canonicalize()? };
        let has_it = |folder: &PathBuf| folder.canonicalize().is_ok_and(|it| place.starts_with(it));
        if !folders.iter().any(has_it) {
            return Err(Unread::NoTranscript);
        }
        let metadata = file.metadata()?;
        let ours = metadata.uid() == rustix::process::geteuid().as_raw();
        if !metadata.is_file() || !ours {
            return Err(Unread::NoTranscript);
        }
        let identity = [metadata.dev(), metadata.ino()];
        Ok(Self { file, size: metadata.len(), identity, is_document })
    }
}
