//! What OpenCode's database told: its rows instead of a file's lines.
//!
//! Rows are written in the order of their numbers, so reading goes on behind the last one. Where
//! that row has become another, as after a vacuum, all are read once more; what was told before
//! stays told, because each response has a key.

use std::collections::HashMap;
use std::path::Path;

use qd_harness::opencode::usage::{MARK, PartRow, read as read_part};
use qd_harness::usage::Reading;
use qd_session::moment::Timestamp;
use qd_sources::tail::Seen;
use qd_store::{ClientPart, ClientSession, Error, OpencodeDatabase};

use super::finding::Trouble;
use super::portion::Portion;
use super::scanning::{Job, Known, News, Position, Scanned, trouble};
use super::window::Mark;

/// How far from a subagent its operator's session is looked for: subagents of subagents are rare,
/// and a damaged database may have a circle.
const SUBAGENT_DEPTH_MAX: usize = 16;

/// What is new in it.
pub fn read(job: &Job) -> Scanned {
    let path = &job.file.path;
    let Ok(about) = path.metadata() else { return Scanned::Not(None) };
    let known = job.known.as_ref().map(|known| known.position);
    match look(path, Seen::of(&about), known) {
        Ok(scanned) => scanned,
        Err(error) => Scanned::Not(Some(Trouble::at(path, told(&error)))),
    }
}

fn look(path: &Path, seen: Seen, known: Option<Position>) -> Result<Scanned, Error> {
    let database = OpencodeDatabase::open(path)?;
    let after = match known {
        Some(known) if is_there(&database, known)? => row_of(known),
        _ => 0,
    };
    let sessions = Sessions::of(database.sessions()?);
    let (mut portion, mut unreadable) = (Portion::default(), 0);
    let last = database.parts(after, MARK, |part| match read_part(&sessions.row(&part)) {
        Reading::Nothing => {}
        Reading::Unreadable => unreadable += 1,
        Reading::Told(response, _) => {
            portion.take_in(&response, part.session, response.cwd.as_deref());
        }
    })?;
    if last == after && known.is_some() {
        return Ok(Scanned::Same);
    }
    let mark = Mark::of(database.part_id(last)?.unwrap_or_default().as_bytes());
    let position = Position { seen, offset: u64::try_from(last).unwrap_or(0), mark };
    Ok(Scanned::Read(Box::new(News {
        known: Known { position, memory: None },
        anew: false,
        told: portion.packed(),
        project: None,
        trouble: trouble(path, 0, unreadable),
    })))
}

fn is_there(database: &OpencodeDatabase, known: Position) -> Result<bool, Error> {
    let id = database.part_id(row_of(known))?;
    Ok(Mark::of(id.unwrap_or_default().as_bytes()) == known.mark)
}

fn row_of(position: Position) -> i64 {
    i64::try_from(position.offset).unwrap_or(0)
}

/// The store speaks of its own files; this one is a client's.
fn told(error: &Error) -> String {
    if error.is_temporary() {
        return "is in use; it is read the next time".to_owned();
    }
    if let Error::Damaged(reason) = error {
        return format!("is no database we can read: {reason}");
    }
    error.to_string()
}

#[derive(Debug)]
struct Sessions(HashMap<String, ClientSession>);

impl Sessions {
    fn of(all: Vec<ClientSession>) -> Self {
        Self(all.into_iter().map(|session| (session.id.clone(), session)).collect())
    }

    fn row<'a>(&'a self, part: &ClientPart<'a>) -> PartRow<'a> {
        let session = self.0.get(part.session);
        let root = session.map(|session| self.root(session));
        PartRow {
            id: part.id,
            session: root.map_or(part.session, |root| root.id.as_str()),
            is_subagent: session.is_some_and(|session| session.parent.is_some()),
            directory: root.and_then(|root| root.directory.as_deref()),
            at: Timestamp(u64::try_from(part.created_ms).unwrap_or(0)),
            part: part.part,
            message: part.message,
        }
    }

    /// The session that the operator began.
    fn root<'a>(&'a self, mut session: &'a ClientSession) -> &'a ClientSession {
        for _ in 0..SUBAGENT_DEPTH_MAX {
            match session.parent.as_ref().and_then(|parent| self.0.get(parent)) {
                Some(parent) => session = parent,
                None => break,
            }
        }
        session
    }
}
