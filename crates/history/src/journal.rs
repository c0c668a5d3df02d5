//! What sessions of our own took: their answers stand in the journal, and in no client's file.
//!
//! Entries are numbered as they are written, so reading goes on behind the last one. What the
//! journal no longer keeps stays told.

use std::collections::BTreeMap;
use std::path::Path;

use qd_harness::usage::{Response, Tokens};
use qd_session::event::Event;
use qd_session::id::SessionId;
use qd_session::logbook::{Brief, Frozen, Used};
use qd_session::moment::Timestamp;
use qd_sources::tail::Seen;
use qd_store::limits::PAGE_ROWS_MAX;
use qd_store::{Error, JournalReader, Numbered};

use super::finding::Trouble;
use super::portion::Portion;
use super::scanning::{Job, Known, News, Position, Scanned};
use super::window::Mark;

/// What is new in it.
pub fn read(job: &Job) -> Scanned {
    let path = &job.file.path;
    let Ok(about) = path.metadata() else { return Scanned::Not(None) };
    let seen = Seen::of(&about);
    // One that was begun anew has other sessions: what the old one told stays told.
    let known = job.known.as_ref().map(|known| known.position);
    let known = known.filter(|known| known.seen.same_file(seen)).map(|known| known.offset);
    match look(path, job.file.harness.name(), seen, known) {
        Ok(scanned) => scanned,
        Err(error) => Scanned::Not(Some(Trouble::at(path, error))),
    }
}

fn look(path: &Path, harness: &str, seen: Seen, known: Option<u64>) -> Result<Scanned, Error> {
    let journal = JournalReader::open(path)?;
    let last = journal.last()?;
    if known == Some(last) {
        return Ok(Scanned::Same);
    }
    let mut after = known.filter(|known| *known < last).unwrap_or(0);
    let mut answers = Answers { journal: &journal, briefs: BTreeMap::new() };
    let mut portion = Portion::default();
    loop {
        let page = journal.entries_of(harness, after, PAGE_ROWS_MAX)?;
        let Some(end) = page.last() else { break };
        after = end.seq;
        for entry in page {
            answers.take(entry, &mut portion)?;
        }
    }
    let position = Position { seen, offset: after.max(last), mark: Mark::default() };
    Ok(Scanned::Read(Box::new(News {
        known: Known { position, memory: None },
        anew: false,
        told: portion.packed(),
        project: None,
        trouble: None,
    })))
}

struct Answers<'a> {
    journal: &'a JournalReader,
    /// How sessions were asked for; none where nobody knows any more.
    briefs: BTreeMap<SessionId, Option<Brief>>,
}

impl Answers<'_> {
    fn take(&mut self, numbered: Numbered, portion: &mut Portion) -> Result<(), Error> {
        let Numbered { seq, entry } = numbered;
        let Event::Driven { frozen: Some(frozen), .. } = entry.event else { return Ok(()) };
        if frozen.used == Used::default() {
            return Ok(());
        }
        let brief = self.brief(&entry.session)?;
        let workspace = brief.map(|brief| &*brief.workspace);
        let model = frozen.model.as_deref().or(brief.and_then(|brief| brief.model.as_deref()));
        let seq = seq.to_string();
        let response = response(entry.session.as_str(), &seq, model, entry.at, &frozen);
        portion.take_in(&response, entry.session.as_str(), workspace);
        Ok(())
    }

    fn brief(&mut self, session: &SessionId) -> Result<Option<&Brief>, Error> {
        if !self.briefs.contains_key(session) {
            let loaded = self.journal.load_session(session)?;
            let logbook = loaded.sessions.first().and_then(|replayed| replayed.session.logbook());
            self.briefs.insert(session.clone(), logbook.map(|logbook| logbook.brief().clone()));
        }
        Ok(self.briefs[session].as_ref())
    }
}

/// The entry's number tells it from every other one.
fn response<'a>(
    session: &'a str,
    seq: &'a str,
    model: Option<&'a str>,
    at: Timestamp,
    frozen: &Frozen,
) -> Response<'a> {
    let Used { input_tokens, output_tokens, cache_read_tokens, cache_written_tokens, micro_usd } =
        frozen.used;
    Response {
        session: Some(session.into()),
        agent: None,
        aside: false,
        message: Some(seq.into()),
        request: Some(session.into()),
        model: model.map(Into::into),
        speed: None,
        at,
        tokens: Tokens {
            input: input_tokens,
            output: output_tokens,
            cache_write: cache_written_tokens,
            cache_write_1h: 0,
            cache_read: cache_read_tokens,
        },
        // Where no price was known the table is asked once more.
        cost: (micro_usd > 0).then_some(micro_usd as f64 / 1e6),
        cwd: None,
    }
}
