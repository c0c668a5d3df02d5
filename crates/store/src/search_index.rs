//! What was said in sessions, to be found by its words.
//!
//! A file of its own: it may be deleted at any time and is made again from the session files. It
//! is bounded; what was said first goes first.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rusqlite::{Connection, OpenFlags, OptionalExtension, TransactionBehavior, params};

use crate::file::{self, DamagedFile};
use crate::limits::{
    BUSY_WAIT_MAX, CACHE_KIB, SEARCH_FILE_BYTES_MAX, SEARCH_HITS_MAX, SEARCH_TEXT_BYTES_MAX,
    SEARCH_WORDS_MAX, WAL_BYTES_KEPT,
};
use crate::schema::{Shape, check_header};
use crate::{Error, Result};

#[derive(Debug)]
pub struct SearchIndex {
    connection: Connection,
    text_bytes_max: u64,
}

/// Something that was said. What the names mean is for others to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SaidRow<'a> {
    /// The same for what was said once, in however many files it stands.
    pub sum: u64,
    pub harness: &'a str,
    pub session: &'a str,
    pub project: Option<&'a str>,
    pub who: &'a str,
    pub at_ms: u64,
    pub text: &'a str,
}

/// How far a session file was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchedFile {
    pub position: String,
    pub memory: String,
}

/// What is looked for. Filters that are none let all pass.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SearchQuery {
    /// Words, all of which must stand in it; nothing in it has another meaning.
    pub words: String,
    pub harness: Option<String>,
    /// The project's folder, or a part of its path.
    pub project: Option<String>,
    pub since_ms: Option<u64>,
    pub hits_max: usize,
}

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    pub harness: String,
    pub session: String,
    pub project: Option<String>,
    pub who: String,
    pub at_ms: u64,
    /// The words' surroundings; each is between [`Hit::BEGIN`] and [`Hit::END`].
    pub snippet: String,
}

impl Hit {
    pub const BEGIN: char = '\u{2}';
    pub const END: char = '\u{3}';
}

impl SearchIndex {
    /// Opens it, makes it if there is none. The damaged one is where it says.
    pub fn open(path: &Path) -> Result<(Self, Option<DamagedFile>)> {
        file::make_folder(path)?;
        match Self::connect(path) {
            Err(Error::Damaged(reason)) => {
                let aside = file::set_aside(path)?;
                Ok((Self::connect(path)?, Some(DamagedFile { path: aside, reason })))
            }
            opened => Ok((opened?, None)),
        }
    }

    /// With another bound on its texts than the usual one.
    pub fn bounded(mut self, text_bytes_max: u64) -> Self {
        self.text_bytes_max = text_bytes_max;
        self
    }

    fn connect(path: &Path) -> Result<Self> {
        file::make_file(path)?;
        check_header(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY_WAIT_MAX)?;
        connection.pragma_update(None, "cache_size", -i64::from(CACHE_KIB))?;
        SHAPE.version(&connection, path)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.pragma_update(None, "journal_size_limit", WAL_BYTES_KEPT)?;
        let page_size: u64 = connection.query_row("PRAGMA page_size", [], |row| row.get(0))?;
        connection.pragma_update(None, "max_page_count", SEARCH_FILE_BYTES_MAX / page_size)?;
        SHAPE.migrate(&mut connection, path)?;
        Ok(Self { connection, text_bytes_max: SEARCH_TEXT_BYTES_MAX })
    }

    pub fn file(&self, path: &Path) -> Result<Option<SearchedFile>> {
        let mut select = self
            .connection
            .prepare_cached("SELECT position, memory FROM searched WHERE path = ?1")?;
        let found = select.query_row(params![path.as_os_str().as_bytes()], |row| {
            Ok(SearchedFile { position: row.get(0)?, memory: row.get(1)? })
        });
        Ok(found.optional()?)
    }

    /// Adds what was said, and how far its file was read once all of it is in: all, or on an
    /// error nothing.
    pub fn write(
        &mut self,
        said: &[SaidRow<'_>],
        file: Option<(&Path, &SearchedFile)>,
    ) -> Result<()> {
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut added = 0;
        {
            let mut delete = transaction
                .prepare_cached("DELETE FROM said WHERE sum = ?1 RETURNING length(text)")?;
            let mut insert = transaction.prepare_cached(
                "INSERT INTO said (sum, harness, session, project, who, at_ms, text)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?;
            for row in said {
                let sum = row.sum.cast_signed();
                let before: Option<i64> =
                    delete.query_row(params![sum], |row| row.get(0)).optional()?;
                let SaidRow { harness, session, project, who, at_ms, text, .. } = *row;
                insert.execute(params![sum, harness, session, project, who, at_ms, text])?;
                added += text.chars().count() as i64 - before.unwrap_or(0);
            }
        }
        if let Some((path, SearchedFile { position, memory })) = file {
            transaction
                .prepare_cached("INSERT OR REPLACE INTO searched VALUES (?1, ?2, ?3)")?
                .execute(params![path.as_os_str().as_bytes(), position, memory])?;
        }
        transaction.execute("UPDATE extent SET letters = letters + ?1", params![added])?;
        transaction.commit()?;
        self.trim()
    }

    /// What was said first goes, a piece at a time.
    fn trim(&mut self) -> Result<()> {
        loop {
            let letters: i64 =
                self.connection.query_row("SELECT letters FROM extent", [], |row| row.get(0))?;
            if letters.cast_unsigned() <= self.text_bytes_max {
                return Ok(());
            }
            let transaction =
                self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let gone: i64 = {
                let mut delete = transaction.prepare_cached(
                    "DELETE FROM said WHERE id IN
                         (SELECT id FROM said ORDER BY at_ms, id LIMIT 256)
                     RETURNING length(text)",
                )?;
                let rows = delete.query_map([], |row| row.get::<_, i64>(0))?;
                rows.sum::<std::result::Result<i64, _>>()?
            };
            // Nothing left, and yet too much: the count was wrong.
            let left = if gone == 0 { 0 } else { letters - gone };
            transaction.execute("UPDATE extent SET letters = ?1", params![left])?;
            transaction.commit()?;
        }
    }

    /// The best first.
    pub fn find(&self, query: &SearchQuery) -> Result<Vec<Hit>> {
        let Some(words) = quoted(&query.words) else { return Ok(Vec::new()) };
        let mut select = self.connection.prepare_cached(
            "SELECT said.harness, said.session, said.project, said.who, said.at_ms,
                 snippet(said_words, 0, char(2), char(3), '…', 24)
             FROM said_words JOIN said ON said.id = said_words.rowid
             WHERE said_words MATCH ?1 AND (?2 IS NULL OR said.harness = ?2)
                 AND (?3 IS NULL OR instr(coalesce(said.project, ''), ?3) > 0)
                 AND (?4 IS NULL OR said.at_ms >= ?4)
             ORDER BY rank, said.at_ms DESC LIMIT ?5",
        )?;
        let hits_max = query.hits_max.min(SEARCH_HITS_MAX) as u64;
        let values = params![words, query.harness, query.project, query.since_ms, hits_max];
        let rows = select.query_map(values, |row| {
            Ok(Hit {
                harness: row.get(0)?,
                session: row.get(1)?,
                project: row.get(2)?,
                who: row.get(3)?,
                at_ms: row.get(4)?,
                snippet: row.get(5)?,
            })
        })?;
        rows.map(|row| Ok(row?)).collect()
    }
}

/// Each word in quotes, so that none has a meaning of its own; the last one may go on. None where
/// there is no letter to look for.
fn quoted(words: &str) -> Option<String> {
    let words: Vec<String> = words
        .split(|sign: char| sign.is_whitespace() || sign.is_control())
        .filter(|word| word.chars().any(char::is_alphanumeric))
        .take(SEARCH_WORDS_MAX)
        .map(|word| format!("\"{}\"", word.replace('"', "\"\"")))
        .collect();
    (!words.is_empty()).then(|| words.join(" ") + "*")
}

static SHAPE: Shape = Shape {
    // `qdsr`
    application_id: 0x7164_7372,
    steps: &[
        // 1: what was said; its words; how far files were read; how much it is.
        "CREATE TABLE said (id INTEGER PRIMARY KEY, sum INTEGER NOT NULL UNIQUE,
             harness TEXT NOT NULL, session TEXT NOT NULL, project TEXT, who TEXT NOT NULL,
             at_ms INTEGER NOT NULL, text TEXT NOT NULL);
         CREATE INDEX said_at ON said (at_ms);
         CREATE VIRTUAL TABLE said_words USING fts5(text, content='said', content_rowid='id',
             tokenize='unicode61 remove_diacritics 2');
         CREATE TRIGGER said_added AFTER INSERT ON said BEGIN
             INSERT INTO said_words (rowid, text) VALUES (new.id, new.text); END;
         CREATE TRIGGER said_gone AFTER DELETE ON said BEGIN
             INSERT INTO said_words (said_words, rowid, text)
                 VALUES ('delete', old.id, old.text); END;
         CREATE TABLE searched (path BLOB PRIMARY KEY, position TEXT NOT NULL,
             memory TEXT NOT NULL);
         CREATE TABLE extent (letters INTEGER NOT NULL);
         INSERT INTO extent VALUES (0);",
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    fn index(name: &str) -> SearchIndex {
        let name = format!("qd-search-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&folder);
        let (index, damaged) = SearchIndex::open(&folder.join("search.db")).unwrap();
        assert_eq!(damaged, None);
        // Gone from the folder, and usable until it is closed.
        std::fs::remove_dir_all(&folder).unwrap();
        index
    }

    fn row(sum: u64, at_ms: u64, text: &str) -> SaidRow<'_> {
        let (harness, session, who) = ("codex", "s1", "agent");
        SaidRow { sum, harness, session, project: Some("/home/ann/acme"), who, at_ms, text }
    }

    fn find(index: &SearchIndex, words: &str) -> Vec<String> {
        let query = SearchQuery { words: words.to_owned(), hits_max: 10, ..SearchQuery::default() };
        index.find(&query).unwrap().into_iter().map(|hit| hit.snippet).collect()
    }

    #[test]
    fn words_are_found_and_marked() {
        let mut index = index("words");
        index.write(&[row(1, 1, "fix the Größe of it"), row(2, 2, "nothing")], None).unwrap();
        assert_eq!(find(&index, "grosse"), [""; 0]);
        assert_eq!(find(&index, "fix große"), ["\u{2}fix\u{3} the \u{2}Größe\u{3} of it"]);
        assert_eq!(find(&index, "noth"), ["\u{2}nothing\u{3}"]);
        // What is told again takes the place of what was told.
        index.write(&[row(2, 2, "something")], None).unwrap();
        assert_eq!((find(&index, "nothing").len(), find(&index, "something").len()), (0, 1));
    }

    #[test]
    fn no_query_has_a_meaning_of_its_own() {
        let mut index = index("hostile");
        index.write(&[row(1, 1, "NEAR the text: a AND b")], None).unwrap();
        for words in [
            "",
            " ",
            "\"",
            "*",
            "a*",
            "\"a",
            "a\"b",
            "text:a",
            "NEAR(",
            "NEAR(a b)",
            "a AND",
            "OR",
            "NOT a",
            "(",
            ")",
            "-a",
            "+",
            "^a",
            "{text}:a",
            "a\0b",
            "'; DROP TABLE said;--",
            "\\",
            "a;b",
            "☃",
            "%",
            "_",
            "\u{2}",
            "a:b:c",
            "--",
            "ſ",
            "\u{301}",
        ] {
            find(&index, words);
            find(&index, &words.repeat(500));
        }
        assert_eq!(find(&index, "NEAR").len(), 1);
        assert_eq!(find(&index, "AND b").len(), 1);
    }

    #[test]
    fn filters_hold() {
        let mut index = index("filters");
        index.write(&[row(1, 1_000, "word")], None).unwrap();
        let count = |change: fn(&mut SearchQuery)| {
            let mut query =
                SearchQuery { words: "word".to_owned(), hits_max: 10, ..SearchQuery::default() };
            change(&mut query);
            index.find(&query).unwrap().len()
        };
        assert_eq!(count(|_| {}), 1);
        assert_eq!(count(|query| query.harness = Some("codex".to_owned())), 1);
        assert_eq!(count(|query| query.harness = Some("gemini_cli".to_owned())), 0);
        assert_eq!(count(|query| query.project = Some("acme".to_owned())), 1);
        assert_eq!(count(|query| query.project = Some("a%e".to_owned())), 0);
        assert_eq!(count(|query| query.since_ms = Some(1_000)), 1);
        assert_eq!(count(|query| query.since_ms = Some(1_001)), 0);
        assert_eq!(count(|query| query.hits_max = 0), 0);
    }

    #[test]
    fn the_oldest_goes_first_when_it_is_full() {
        let mut index = index("full").bounded(100_000);
        let text = format!("word {}", "x".repeat(995));
        for nth in 0..600 {
            index.write(&[row(nth, nth, &text)], None).unwrap();
        }
        let count = || -> (i64, i64, i64) {
            let counts = "SELECT count(*), min(at_ms), sum(length(text)) FROM said";
            let get = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
            index.connection.query_row(counts, [], get).unwrap()
        };
        let (rows, oldest, letters) = count();
        assert!(letters <= 100_000 && oldest == 600 - rows, "{rows} from {oldest}: {letters}");
        let check = "INSERT INTO said_words (said_words) VALUES ('integrity-check')";
        index.connection.execute(check, []).unwrap();
    }
}
