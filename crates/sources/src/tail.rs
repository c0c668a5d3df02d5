//! One file, read on as it grows: bytes in, whole lines out.
//!
//! [`Tail`] is pure and knows where reading stands; [`TailReader`] opens the file and asks it.
//! Invariant: each complete line of a generation comes out once, in order. A new generation (the
//! file was replaced, shrank or was written anew) is read from its beginning.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use qd_host::bounded_file::{Links, open_regular};
use qd_session::fnv::{BASIS, fnv};

/// Bytes of a session file read at once, and how much of a big one is read when it is first seen:
/// about the last twenty turns, which is what a card needs.
pub const WINDOW_BYTES: usize = 256 << 10;

/// Longest transcript line we keep. Agents put whole tool results on one line, so it is generous;
/// a longer one is skipped and reported, and does not stop the reader.
pub const TRANSCRIPT_LINE_BYTES_MAX: usize = 4 << 20;

/// Bytes before the place where reading stopped that are looked at again, to know a file that was
/// written anew. A line of any agent differs in that many bytes: they hold a time or an id.
pub const MARK_BYTES: usize = 64;

/// What comes out of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A whole line without its end, and where to go on after it.
    Line { bytes: &'a [u8], position: Position },
    /// A line too long to keep was passed over.
    TooLong { offset: u64, bytes: u64 },
    /// What follows is read from the file's beginning.
    Restarted(Restart),
    /// The file cannot be read now; said once, tried again at its next change.
    Unreadable(ErrorKind),
}

/// Why a file is read from its beginning again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restart {
    /// Another file stands at its path.
    Replaced,
    /// It is shorter than what was read of it.
    Shrank,
    /// It is long enough, but what was read of it stands there no more.
    Rewritten,
}

/// Where to go on reading after a restart of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    #[serde(flatten)]
    pub seen: Seen,
    /// Where the next line begins.
    pub offset: u64,
    /// Of what stands before it.
    pub mark: Mark,
}

/// What a file looked like from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Seen {
    pub device: u64,
    pub inode: u64,
    pub size: u64,
    pub modified_ns: i64,
}

impl Seen {
    pub fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.len(),
            modified_ns: metadata
                .mtime()
                .saturating_mul(1_000_000_000)
                .saturating_add(metadata.mtime_nsec()),
        }
    }

    pub fn same_file(self, other: Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }
}

/// A checksum of the last few bytes that were read: tells whether they still stand there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    len: u8,
    sum: u64,
}

impl Default for Mark {
    fn default() -> Self {
        Self::of(&[])
    }
}

impl Mark {
    fn of(bytes: &[u8]) -> Self {
        let sum = fnv(BASIS, bytes);
        Self { len: u8::try_from(bytes.len()).expect("a mark is short"), sum }
    }
}

/// Where reading of one file stands.
#[derive(Debug, Clone, Default)]
pub struct Tail {
    seen: Option<Seen>,
    /// Where the first line begins that has not come out.
    offset: u64,
    before_offset: Mark,
    /// How far bytes have come in: beyond `offset` by what is in `within`.
    read_to: u64,
    before_read_to: Mark,
    /// The bytes of that mark, once they were read.
    recent: Vec<u8>,
    within: Within,
}

#[derive(Debug, Clone)]
enum Within {
    /// A line whose end has not come.
    Line { partial: Vec<u8> },
    /// A line that is too long already.
    Overlong { bytes: u64 },
    /// A line whose beginning was not read, and which does not come out.
    Middle,
}

impl Default for Within {
    fn default() -> Self {
        Self::Line { partial: Vec::new() }
    }
}

/// What a look at a file tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Look {
    Unchanged,
    ReadOn,
    Restart(Restart),
}

impl Tail {
    /// All lines of a file.
    pub fn from_start() -> Self {
        Self::default()
    }

    /// The lines that begin in the last [`WINDOW_BYTES`] of a file as it is now, and all later
    /// ones.
    pub fn from_last(seen: Seen) -> Self {
        let mut tail = Self { seen: Some(seen), ..Self::default() };
        if let Some(begin) = seen.size.checked_sub(WINDOW_BYTES as u64).filter(|begin| *begin > 0) {
            // From one byte earlier: if that one ends a line, the next one begins here.
            (tail.offset, tail.read_to, tail.within) = (begin - 1, begin - 1, Within::Middle);
        }
        tail
    }

    /// The lines after a position that was kept.
    pub fn resume(position: Position) -> Self {
        Self {
            seen: Some(position.seen),
            offset: position.offset,
            before_offset: position.mark,
            read_to: position.offset,
            before_read_to: position.mark,
            ..Self::default()
        }
    }

    /// Bytes held because their line has no end yet.
    pub fn partial_len(&self) -> usize {
        match &self.within {
            Within::Line { partial } => partial.len(),
            Within::Overlong { .. } | Within::Middle => 0,
        }
    }

    /// Forgets a half line; it is read again from its beginning.
    pub fn let_go(&mut self) {
        if matches!(self.within, Within::Line { .. }) {
            self.within = Within::default();
            self.recent = Vec::new();
            (self.read_to, self.before_read_to) = (self.offset, self.before_offset);
        }
    }

    /// False if the file looks as it did when it was read to its end.
    pub fn is_behind(&self, seen: Seen) -> bool {
        self.seen != Some(seen) || self.read_to != seen.size
    }

    fn look(&mut self, seen: Seen) -> Look {
        let before = self.seen.replace(seen);
        if before.is_some_and(|before| !before.same_file(seen)) {
            return Look::Restart(Restart::Replaced);
        }
        if seen.size < self.read_to {
            return Look::Restart(Restart::Shrank);
        }
        if before == Some(seen) && self.read_to == seen.size {
            return Look::Unchanged;
        }
        Look::ReadOn
    }

    fn restart(&mut self) {
        *self = Self { seen: self.seen, ..Self::default() };
    }

    /// True if these bytes, which stand before what comes next, are those that were read.
    fn recognises(&mut self, bytes: &[u8]) -> bool {
        let known = Mark::of(bytes) == self.before_read_to;
        if known {
            self.recent = bytes.to_vec();
        }
        known
    }

    fn take(&mut self, bytes: &[u8], emit: &mut dyn FnMut(Piece<'_>)) {
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            let (line, after) = rest.split_at(end + 1);
            self.remember(line);
            self.end_line(&line[..end], emit);
            rest = after;
        }
        if rest.is_empty() {
            return;
        }
        self.remember(rest);
        match &mut self.within {
            Within::Middle => {}
            Within::Overlong { bytes } => *bytes += rest.len() as u64,
            Within::Line { partial } if partial.len() + rest.len() > TRANSCRIPT_LINE_BYTES_MAX => {
                self.within = Within::Overlong { bytes: (partial.len() + rest.len()) as u64 };
            }
            Within::Line { partial } => partial.extend_from_slice(rest),
        }
    }

    /// `head` is what came of the line just now; its end has been read.
    fn end_line(&mut self, head: &[u8], emit: &mut dyn FnMut(Piece<'_>)) {
        let begun_at = std::mem::replace(&mut self.offset, self.read_to);
        self.before_offset = self.before_read_to;
        let position = Position {
            seen: self.seen.unwrap_or_default(),
            offset: self.offset,
            mark: self.before_offset,
        };
        let too_long = |bytes| Piece::TooLong { offset: begun_at, bytes };
        match &mut self.within {
            Within::Middle => self.within = Within::default(),
            Within::Overlong { bytes } => {
                emit(too_long(*bytes + head.len() as u64));
                self.within = Within::default();
            }
            Within::Line { partial } if partial.len() + head.len() > TRANSCRIPT_LINE_BYTES_MAX => {
                emit(too_long((partial.len() + head.len()) as u64));
                self.within = Within::default();
            }
            Within::Line { partial } if partial.is_empty() => {
                emit(Piece::Line { bytes: head, position });
            }
            Within::Line { partial } => {
                partial.extend_from_slice(head);
                emit(Piece::Line { bytes: partial, position });
                // A line may be long; most files wait for their next one for hours.
                *partial = Vec::new();
            }
        }
    }

    fn remember(&mut self, bytes: &[u8]) {
        self.read_to += bytes.len() as u64;
        let kept = MARK_BYTES.saturating_sub(bytes.len()).min(self.recent.len());
        self.recent.drain(..self.recent.len() - kept);
        self.recent.extend_from_slice(&bytes[bytes.len().saturating_sub(MARK_BYTES)..]);
        self.before_read_to = Mark::of(&self.recent);
    }
}

/// Whether there is more to read at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Read to its end, or not readable: its next change is worth waiting for.
    Waiting,
    /// The budget is used up.
    More,
}

/// A [`Tail`] and its file, which is open only while it is read.
#[derive(Debug)]
pub struct TailReader {
    path: Arc<Path>,
    tail: Tail,
    trouble: Option<ErrorKind>,
}

impl TailReader {
    pub fn new(path: Arc<Path>, tail: Tail) -> Self {
        Self { path, tail, trouble: None }
    }

    pub fn path(&self) -> &Arc<Path> {
        &self.path
    }

    pub fn tail(&self) -> &Tail {
        &self.tail
    }

    /// See [`Tail::let_go`].
    pub fn let_go(&mut self) {
        self.tail.let_go();
    }

    /// Gives out what is new, about `budget_bytes` of it at most, through `window` (longer than
    /// [`MARK_BYTES`]).
    pub fn read_on(
        &mut self,
        window: &mut [u8],
        budget_bytes: u64,
        emit: &mut dyn FnMut(Piece<'_>),
    ) -> Progress {
        let read = open(&self.path).and_then(|(file, seen)| {
            let read_at = |buffer: &mut [u8], offset| retry(|| file.read_at(buffer, offset));
            read_on(&mut self.tail, seen, read_at, window, budget_bytes, emit)
        });
        match read {
            Ok(progress) => {
                self.trouble = None;
                progress
            }
            Err(error) => {
                if self.trouble.replace(error.kind()) != Some(error.kind()) {
                    emit(Piece::Unreadable(error.kind()));
                }
                Progress::Waiting
            }
        }
    }
}

/// Opens a plain file, without ever waiting for one that is not.
pub fn open(path: &Path) -> io::Result<(File, Seen)> {
    let (file, metadata) = open_regular(path, Links::Followed)?;
    Ok((file, Seen::of(&metadata)))
}

fn retry(mut read: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match read() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

fn read_on(
    tail: &mut Tail,
    seen: Seen,
    mut read_at: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
    window: &mut [u8],
    budget_bytes: u64,
    emit: &mut dyn FnMut(Piece<'_>),
) -> io::Result<Progress> {
    let mut restart = match tail.look(seen) {
        Look::Unchanged => return Ok(Progress::Waiting),
        Look::Restart(why) => Some(why),
        Look::ReadOn => None,
    };
    let mut budget = budget_bytes;
    loop {
        if let Some(why) = restart.take() {
            tail.restart();
            emit(Piece::Restarted(why));
        }
        if budget == 0 {
            return Ok(Progress::More);
        }
        // Together with the bytes before them: a file may be written anew between two reads.
        let mark_len = usize::from(tail.before_read_to.len);
        let offset = tail.read_to - mark_len as u64;
        let mut filled = 0;
        while filled <= mark_len {
            match read_at(&mut window[filled..], offset + filled as u64)? {
                0 => break,
                count => filled += count,
            }
        }
        let (mark, fresh) = window[..filled].split_at(filled.min(mark_len));
        if !tail.recognises(mark) {
            restart = Some(Restart::Rewritten);
        } else if fresh.is_empty() {
            return Ok(Progress::Waiting);
        } else {
            tail.take(fresh, emit);
            budget = budget.saturating_sub(fresh.len() as u64);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    /// A file that is nowhere, with short reads.
    struct Paper {
        seen: Seen,
        bytes: Vec<u8>,
        chunk: usize,
    }

    impl Paper {
        fn read(&mut self, tail: &mut Tail) -> Vec<Piece<'static>> {
            self.seen.size = self.bytes.len() as u64;
            let mut pieces = Vec::new();
            let mut window = [0; 128];
            let read_at = |buffer: &mut [u8], offset: u64| {
                let rest = self.bytes.get(usize::try_from(offset).unwrap()..).unwrap_or_default();
                let count = rest.len().min(self.chunk).min(buffer.len());
                buffer[..count].copy_from_slice(&rest[..count]);
                Ok(count)
            };
            let progress = read_on(tail, self.seen, read_at, &mut window, 1 << 40, &mut |piece| {
                pieces.push(match piece {
                    Piece::Line { bytes, position } => {
                        Piece::Line { bytes: bytes.to_vec().leak(), position }
                    }
                    Piece::TooLong { offset, bytes } => Piece::TooLong { offset, bytes },
                    Piece::Restarted(why) => Piece::Restarted(why),
                    Piece::Unreadable(kind) => Piece::Unreadable(kind),
                });
            });
            assert_eq!(progress.unwrap(), Progress::Waiting);
            pieces
        }
    }

    fn lines(pieces: &[Piece<'_>]) -> Vec<Vec<u8>> {
        let line = |piece: &Piece<'_>| match piece {
            Piece::Line { bytes, .. } => Some(bytes.to_vec()),
            Piece::TooLong { .. } | Piece::Restarted(_) | Piece::Unreadable(_) => None,
        };
        pieces.iter().filter_map(line).collect()
    }

    fn complete_lines(bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut lines: Vec<_> = bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
        lines.pop();
        lines
    }

    #[derive(Debug, Clone)]
    enum Step {
        Append(Vec<u8>),
        Truncate(usize),
        Replace,
        /// The daemon reads; the number is how much a read returns.
        Read(usize),
        /// The daemon reads, forgets its half lines, and starts again from the kept position.
        Resume,
        LetGo,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => proptest::collection::vec(
                prop_oneof![4 => any::<u8>(), 2 => Just(b'\n')], 0..200).prop_map(Step::Append),
            1 => (0_usize..300).prop_map(Step::Truncate),
            1 => Just(Step::Replace),
            4 => (1_usize..200).prop_map(Step::Read),
            1 => Just(Step::Resume),
            1 => Just(Step::LetGo),
        ]
    }

    proptest! {
        #[test]
        fn every_complete_line_of_each_generation_comes_out_once(
            steps in proptest::collection::vec(step(), 0..40)
        ) {
            let mut paper = Paper { seen: Seen::default(), bytes: Vec::new(), chunk: 1 };
            let mut tail = Tail::from_start();
            let (mut kept, mut read_to, mut given, mut again) = (None, 0, 0, false);
            for (number, step) in steps.into_iter().enumerate() {
                paper.seen.modified_ns += 1;
                match step {
                    Step::Append(bytes) => {
                        // Agents never write the same bytes twice: each line has its time or id.
                        paper.bytes.extend_from_slice(format!("<{number}>").as_bytes());
                        paper.bytes.extend_from_slice(&bytes);
                    }
                    Step::Truncate(len) if len < paper.bytes.len() => {
                        paper.bytes.truncate(len);
                        again |= len < read_to;
                    }
                    Step::Truncate(_) => {}
                    Step::Replace => {
                        paper.bytes.clear();
                        paper.seen.inode += 1;
                        again = true;
                    }
                    Step::LetGo => {
                        tail.let_go();
                    }
                    Step::Read(chunk) => {
                        paper.chunk = chunk;
                        let pieces = paper.read(&mut tail);
                        let restarted = matches!(pieces.first(), Some(Piece::Restarted(_)));
                        let mut whole = complete_lines(&paper.bytes);
                        if again && !restarted {
                            // Only a half line that had been let go was cut off.
                            prop_assert!(whole.len() >= given);
                        }
                        if restarted {
                            prop_assert!(again);
                            given = 0;
                        }
                        let fresh = whole.split_off(given);
                        prop_assert_eq!(lines(&pieces), fresh.clone());
                        given += fresh.len();
                        (read_to, again) = (paper.bytes.len(), false);
                        if let Some(Piece::Line { position, .. }) = pieces.last() {
                            kept = Some(*position);
                        } else if restarted {
                            kept = None;
                        }
                    }
                    Step::Resume => {
                        // Kept as JSON, as a journal would.
                        let json = serde_json::to_string(&kept).unwrap();
                        let kept: Option<Position> = serde_json::from_str(&json).unwrap();
                        tail = kept.map_or_else(Tail::from_start, Tail::resume);
                    }
                }
            }
        }
    }

    fn paper(bytes: &[u8]) -> Paper {
        Paper { seen: Seen::default(), bytes: bytes.to_vec(), chunk: 1 << 20 }
    }

    #[test]
    fn a_line_too_long_is_reported_and_does_not_stop_the_reader() {
        let long = vec![b'x'; TRANSCRIPT_LINE_BYTES_MAX + 1];
        let mut paper = paper(&[b"a\n".as_slice(), &long, b"\nb\n"].concat());
        let pieces = paper.read(&mut Tail::from_start());
        assert_eq!(lines(&pieces), [b"a", b"b"]);
        assert_eq!(pieces[1], Piece::TooLong { offset: 2, bytes: long.len() as u64 });
        let just_fits = [&long[1..], b"\n"].concat();
        paper.bytes = just_fits;
        assert_eq!(lines(&paper.read(&mut Tail::from_start())), [&long[1..]]);
    }

    #[test]
    fn a_big_file_is_read_from_a_lines_beginning_near_its_end() {
        let history = format!("{:099}\n", 0).repeat(WINDOW_BYTES / 100 + 50);
        for (ending, expected) in [("", WINDOW_BYTES / 100), ("x\n", WINDOW_BYTES / 100 + 1)] {
            let mut paper = paper(format!("{history}{ending}").as_bytes());
            paper.seen.size = paper.bytes.len() as u64;
            let mut tail = Tail::from_last(paper.seen);
            paper.bytes.extend_from_slice(b"later\n");
            let lines = lines(&paper.read(&mut tail));
            assert_eq!(lines.len(), expected + 1);
            assert!(lines[..lines.len() - 1].iter().all(|line| line.len() == 99 || line == b"x"));
            assert_eq!(lines.last().unwrap(), b"later");
        }
    }

    #[test]
    fn a_file_written_anew_at_the_same_length_is_noticed() {
        let mut paper = paper(b"one\ntwo\nhal");
        let mut tail = Tail::from_start();
        paper.read(&mut tail);
        paper.bytes = b"six\nten\nnew".to_vec();
        paper.seen.modified_ns += 1;
        let pieces = paper.read(&mut tail);
        assert_eq!(pieces[0], Piece::Restarted(Restart::Rewritten));
        assert_eq!(lines(&pieces), [b"six", b"ten"]);
    }

    #[test]
    fn a_file_written_anew_while_it_is_read_loses_no_line() {
        let generation = |name: &str| {
            let lines: Vec<String> = (0..40).map(|line| format!("{name} {line}\n")).collect();
            lines.concat().into_bytes()
        };
        let (old, new) = (generation("old"), generation("fresh"));
        for rewritten_after in 1..4 {
            let mut reads = 0;
            let read_at = |buffer: &mut [u8], offset: u64| {
                reads += 1;
                let bytes = if reads <= rewritten_after { &old } else { &new };
                let rest = bytes.get(usize::try_from(offset).unwrap()..).unwrap_or_default();
                let count = rest.len().min(buffer.len());
                buffer[..count].copy_from_slice(&rest[..count]);
                Ok(count)
            };
            let seen = Seen { size: old.len() as u64, ..Seen::default() };
            let mut told: Vec<Vec<u8>> = Vec::new();
            let mut window = [0; 128];
            let mut tail = Tail::from_start();
            read_on(&mut tail, seen, read_at, &mut window, 1 << 20, &mut |piece| match piece {
                Piece::Line { bytes, .. } => told.push(bytes.to_vec()),
                Piece::Restarted(_) => told.clear(),
                Piece::TooLong { .. } | Piece::Unreadable(_) => panic!("{piece:?}"),
            })
            .unwrap();
            assert_eq!(told, complete_lines(&new));
        }
    }

    #[test]
    fn trouble_is_said_once_and_reading_goes_on_after_it() {
        let folder = std::env::temp_dir().join(format!("qd-tail-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path: Arc<Path> = folder.join("a.jsonl").into();
        let mut reader = TailReader::new(path.clone(), Tail::from_start());
        let mut read = || {
            let mut told = Vec::new();
            reader.read_on(&mut [0; 4096], 1 << 20, &mut |piece| match piece {
                Piece::Line { bytes, .. } => told.push(String::from_utf8_lossy(bytes).into_owned()),
                Piece::Unreadable(kind) => told.push(format!("{kind:?}")),
                Piece::TooLong { .. } | Piece::Restarted(_) => told.push(format!("{piece:?}")),
            });
            told
        };
        assert_eq!(read(), ["NotFound"]);
        assert_eq!(read(), [""; 0]);
        fs::create_dir(&path).unwrap();
        assert_eq!(read(), ["InvalidInput"]);
        fs::remove_dir(&path).unwrap();
        fs::write(&path, "one\ntw").unwrap();
        assert_eq!(read(), ["one"]);
        fs::remove_file(&path).unwrap();
        assert_eq!(read(), ["NotFound"]);
        fs::write(folder.join("b"), "other\n").unwrap();
        fs::rename(folder.join("b"), &path).unwrap();
        assert_eq!(read().last().unwrap(), "other");
        fs::remove_dir_all(folder).unwrap();
    }
}
