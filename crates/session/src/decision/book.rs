//! The book of decisions: who answered what, and that one answer takes effect and no more.
//!
//! Pure: folded from records, told what agents and ways report; what it decides it puts on record.
//! `spec/decisions.md` has the whole table.
//!
//! **Invariant:** of each request at most one decision is ever delivered, and everybody who answers
//! it meanwhile or later is told of that one. An answer stands from its `given` record on; only
//! `failed` (it surely did not arrive) makes room for another.
//!
//! A request that its agent closes while our answer is on its way is not judged at once: the way
//! still has to say whether it took the answer. If it did, the answer is confirmed; if not, it was
//! overtaken; if nobody can say any more, that is what the record says (`unclear`). Confirmed means
//! that the answer had arrived and the agent went on; where somebody answered in the terminal in
//! the same instant, only the agent knows whose answer it took.

use std::collections::{BTreeMap, VecDeque};

use super::chain::Link;
use super::record::{Body, By, Offer, Order, Record, Subject, cut};
use super::standing::{Decided, Given, Refused, Standing};
use crate::id::{DecisionId, IdempotencyKey, RequestKey, Way};
use crate::limits::{
    BOOK_BYTES_MAX, BOOK_CLOSED_MAX, BOOK_DECISIONS_MAX, BOOK_REQUESTS_MAX, RECORD_BYTES_MAX,
    WHY_BYTES_MAX,
};
use crate::moment::Timestamp;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Book {
    /// The last record.
    last: Link,
    requests: BTreeMap<RequestKey, Request>,
    /// Those closed without us, the oldest first.
    elsewhere: VecDeque<RequestKey>,
    decisions: BTreeMap<DecisionId, Decided>,
    /// By the number of their first record.
    order: BTreeMap<u64, DecisionId>,
    keys: BTreeMap<(By, IdempotencyKey), DecisionId>,
    bytes: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Request {
    Open,
    /// The agent closed it; no answer of ours was given.
    Elsewhere,
    /// How it stands is how the decision stands; never `Failed`.
    Answered(DecisionId),
}

impl Book {
    /// An empty book whose first record follows `last`.
    pub fn after(last: Link) -> Self {
        Self { last, ..Self::default() }
    }

    /// The next record follows this one, whatever was read: where lines were damaged the store
    /// still knows the chain's end.
    pub fn follow(&mut self, last: Link) {
        self.last = last;
    }

    /// Takes a record in, as after a start. What was given and has no outcome is unsettled; what
    /// is open the caller says with [`Self::opened`].
    pub fn apply(&mut self, record: &Record) {
        self.last = record.link();
        match &record.body {
            Body::Given(offer) => {
                let answered = Request::Answered(offer.decision.clone());
                self.requests.insert(offer.request.clone(), answered);
                self.hold(record, Subject::Answer(offer.clone()));
            }
            // It is settled, and its request was never open.
            Body::Ruled(_) => {}
            Body::Commanded(order) => self.hold(record, Subject::Command(order.clone())),
            Body::Delivered { decision, way } => {
                self.stand(decision, Standing::Delivered { way: way.clone() });
            }
            Body::Confirmed { decision } => {
                // Only what was delivered is confirmed; where that record is damaged, no way is known.
                let way = match self.decisions.get(decision).map(|decided| &decided.standing) {
                    Some(Standing::Delivered { way }) => way.clone(),
                    _ => Way::new(""),
                };
                self.stand(decision, Standing::Confirmed { way });
            }
            Body::Failed { decision, why } => {
                self.stand(decision, Standing::Failed { why: why.clone() });
                self.forget_answer(decision);
            }
            Body::Overtaken { decision } => self.stand(decision, Standing::Overtaken),
            Body::Unclear { decision } => self.stand(decision, Standing::Unclear),
        }
        self.forget_settled();
    }

    /// An agent waits for this. False if there is no room for another request.
    pub fn opened(&mut self, request: &RequestKey) -> bool {
        match self.requests.get(request) {
            None if self.requests.len() >= BOOK_REQUESTS_MAX => return false,
            None => {}
            Some(Request::Open) => return true,
            Some(Request::Elsewhere) => self.elsewhere.retain(|closed| closed != request),
            Some(Request::Answered(decision)) => {
                let Some(decided) = self.decisions.get_mut(decision) else { return false };
                if decided.standing == Standing::Ending {
                    decided.standing = Standing::InFlight;
                }
                if decided.standing != Standing::Overtaken {
                    return true;
                }
                // It did not arrive, and the agent asks all the same.
            }
        }
        self.requests.insert(request.clone(), Request::Open);
        true
    }

    /// The agent's own signals say that it waits for this no more.
    pub fn closed(&mut self, now: Timestamp, request: &RequestKey) -> Vec<Record> {
        let decision = match self.requests.get_mut(request) {
            None | Some(Request::Elsewhere) => return Vec::new(),
            Some(open @ Request::Open) => {
                *open = Request::Elsewhere;
                self.elsewhere.push_back(request.clone());
                self.forget_elsewhere();
                return Vec::new();
            }
            Some(Request::Answered(decision)) => decision.clone(),
        };
        let Some(decided) = self.decisions.get_mut(&decision) else { return Vec::new() };
        match decided.standing {
            Standing::InFlight => {
                decided.standing = Standing::Ending;
                Vec::new()
            }
            Standing::Unsettled => vec![self.write(now, Body::Unclear { decision })],
            Standing::Delivered { .. } => vec![self.write(now, Body::Confirmed { decision })],
            Standing::Ending
            | Standing::Confirmed { .. }
            | Standing::Failed { .. }
            | Standing::Overtaken
            | Standing::Unclear => Vec::new(),
        }
    }

    /// Answers a request. What comes back is to be delivered once it is on disk.
    pub fn give(&mut self, now: Timestamp, offer: Offer) -> Result<Given, Refused> {
        let request = offer.request.clone();
        let subject = Subject::Answer(Box::new(offer));
        if let Some(first) = self.repeated(&subject)? {
            return Ok(first);
        }
        match self.requests.get(&request) {
            None => return Err(Refused::Unknown),
            Some(Request::Elsewhere) => return Err(Refused::Closed),
            Some(Request::Open) => {}
            Some(Request::Answered(decision)) => {
                let first = self.decisions.get(decision).ok_or(Refused::Unknown)?;
                return Err(match first.standing {
                    Standing::Overtaken => Refused::Closed,
                    Standing::InFlight
                    | Standing::Ending
                    | Standing::Unsettled
                    | Standing::Delivered { .. }
                    | Standing::Confirmed { .. }
                    | Standing::Failed { .. }
                    | Standing::Unclear => {
                        Refused::AlreadyAnswered { first: Box::new(first.clone()) }
                    }
                });
            }
        }
        self.take(now, &subject)
    }

    /// A rule has answered in a session that we drive: nobody was asked, and nothing is delivered.
    pub fn ruled(&mut self, now: Timestamp, offer: Offer) -> Record {
        self.write(now, Body::Ruled(Box::new(offer)))
    }

    /// Puts a command on record, to be carried out once it is on disk.
    pub fn command(&mut self, now: Timestamp, order: Order) -> Result<Given, Refused> {
        let subject = Subject::Command(Box::new(order));
        match self.repeated(&subject)? {
            Some(first) => Ok(first),
            None => self.take(now, &subject),
        }
    }

    /// The way took it.
    pub fn delivered(&mut self, now: Timestamp, decision: &DecisionId, way: Way) -> Vec<Record> {
        let ending = match self.decisions.get(decision).map(|decided| &decided.standing) {
            Some(Standing::InFlight | Standing::Unsettled) => false,
            Some(Standing::Ending) => true,
            _ => return Vec::new(),
        };
        let decision = decision.clone();
        let delivered = Body::Delivered { decision: decision.clone(), way };
        let mut records = vec![self.write(now, delivered)];
        if ending {
            records.push(self.write(now, Body::Confirmed { decision }));
        }
        records
    }

    /// It did not arrive, surely, and no copy of it is under way any more. Where nobody can be
    /// sure, it is [`Self::lost`].
    pub fn failed(&mut self, now: Timestamp, decision: &DecisionId, why: &str) -> Vec<Record> {
        let Some(decided) = self.decisions.get(decision) else { return Vec::new() };
        let decision = decision.clone();
        match decided.standing {
            Standing::InFlight | Standing::Unsettled => {
                let request = decided.subject.request().cloned();
                let why = cut(why, WHY_BYTES_MAX);
                let record = self.write(now, Body::Failed { decision, why });
                if let Some(request) = request {
                    self.requests.insert(request, Request::Open);
                }
                vec![record]
            }
            Standing::Ending => vec![self.write(now, Body::Overtaken { decision })],
            Standing::Delivered { .. }
            | Standing::Confirmed { .. }
            | Standing::Failed { .. }
            | Standing::Overtaken
            | Standing::Unclear => Vec::new(),
        }
    }

    /// It was sent, and no acknowledgement will come: it may have arrived or not. An answer still
    /// stands, and the way may come back for it; for a command nobody comes back.
    pub fn lost(&mut self, now: Timestamp, decision: &DecisionId) -> Vec<Record> {
        let Some(decided) = self.decisions.get_mut(decision) else { return Vec::new() };
        let is_command = decided.subject.request().is_none();
        match decided.standing {
            Standing::InFlight | Standing::Unsettled if is_command => {
                vec![self.write(now, Body::Unclear { decision: decision.clone() })]
            }
            Standing::InFlight => {
                decided.standing = Standing::Unsettled;
                Vec::new()
            }
            Standing::Ending => {
                vec![self.write(now, Body::Unclear { decision: decision.clone() })]
            }
            Standing::Unsettled
            | Standing::Delivered { .. }
            | Standing::Confirmed { .. }
            | Standing::Failed { .. }
            | Standing::Overtaken
            | Standing::Unclear => Vec::new(),
        }
    }

    /// The way has come back for what is unsettled: it is delivered once more. True if it is to be.
    pub fn sent_again(&mut self, decision: &DecisionId) -> bool {
        let decided = self.decisions.get_mut(decision);
        let unsettled = decided.filter(|decided| decided.standing == Standing::Unsettled);
        unsettled.map(|decided| decided.standing = Standing::InFlight).is_some()
    }

    pub fn decision(&self, decision: &DecisionId) -> Option<&Decided> {
        self.decisions.get(decision)
    }

    /// The decision that this caller gave under this key.
    pub fn first_of(&self, by: &By, key: &IdempotencyKey) -> Option<&Decided> {
        self.decisions.get(self.keys.get(&(by.clone(), key.clone()))?)
    }

    /// The decision that stands for a request.
    pub fn answer_to(&self, request: &RequestKey) -> Option<&Decided> {
        match self.requests.get(request)? {
            Request::Answered(decision) => self.decisions.get(decision),
            Request::Open | Request::Elsewhere => None,
        }
    }

    /// What is not settled, the oldest first. After a start the caller closes those whose agents
    /// wait no more, and delivers or fails the rest.
    pub fn unsettled(&self) -> impl Iterator<Item = &Decided> {
        let decided = self.order.values().filter_map(|decision| self.decisions.get(decision));
        decided.filter(|decided| !decided.is_settled())
    }

    /// The last record.
    pub fn last(&self) -> Link {
        self.last
    }

    /// The first outcome, where the same caller repeats itself.
    fn repeated(&self, subject: &Subject) -> Result<Option<Given>, Refused> {
        let named = subject.key().map(|key| (subject.by().clone(), key.clone()));
        let named = named.and_then(|named| self.keys.get(&named));
        let Some(first) = self.decisions.get(named.unwrap_or(subject.decision())) else {
            return Ok(None);
        };
        let same = first.subject.says_the_same(subject);
        let first = Box::new(first.clone());
        if same { Ok(Some(Given::Repeated { first })) } else { Err(Refused::KeyReused { first }) }
    }

    fn take(&mut self, now: Timestamp, subject: &Subject) -> Result<Given, Refused> {
        let is_full = self.decisions.len() >= BOOK_DECISIONS_MAX || self.bytes >= BOOK_BYTES_MAX;
        if is_full && self.oldest_settled().is_none() {
            return Err(Refused::Full);
        }
        let record = Record::after(self.last, now, subject.body());
        let line = record.line();
        if line.len() > RECORD_BYTES_MAX {
            let why = format!("it is {} long; {RECORD_BYTES_MAX} is the most", line.len());
            return Err(Refused::Unrecordable { why });
        }
        // As deep as an input may nest, it must be readable again.
        Record::read(&line).map_err(|why| Refused::Unrecordable { why })?;
        self.apply(&record);
        self.stand(subject.decision(), Standing::InFlight);
        Ok(Given::Fresh { record: Box::new(record) })
    }

    fn write(&mut self, now: Timestamp, body: Body) -> Record {
        let record = Record::after(self.last, now, body);
        self.apply(&record);
        record
    }

    fn hold(&mut self, record: &Record, subject: Subject) {
        let decision = subject.decision().clone();
        let bytes = record.line().len();
        self.bytes += bytes;
        if let Some(key) = subject.key() {
            self.keys.insert((subject.by().clone(), key.clone()), decision.clone());
        }
        self.order.insert(record.seq, decision.clone());
        let (seq, at, standing) = (record.seq, record.at, Standing::Unsettled);
        self.decisions.insert(decision, Decided { seq, at, subject, standing, bytes });
    }

    fn stand(&mut self, decision: &DecisionId, standing: Standing) {
        if let Some(decided) = self.decisions.get_mut(decision) {
            decided.standing = standing;
        }
    }

    /// The request is no more answered by this one.
    fn forget_answer(&mut self, decision: &DecisionId) {
        let decided = self.decisions.get(decision);
        let Some(request) = decided.and_then(|decided| decided.subject.request()) else { return };
        if matches!(self.requests.get(request), Some(Request::Answered(last)) if last == decision) {
            self.requests.remove(request);
        }
    }

    fn forget_settled(&mut self) {
        while self.decisions.len() > BOOK_DECISIONS_MAX || self.bytes > BOOK_BYTES_MAX {
            let Some((seq, decision)) = self.oldest_settled() else { return };
            self.forget_answer(&decision);
            self.order.remove(&seq);
            let Some(gone) = self.decisions.remove(&decision) else { return };
            self.bytes -= gone.bytes;
            if let Some(key) = gone.subject.key() {
                self.keys.remove(&(gone.subject.by().clone(), key.clone()));
            }
        }
    }

    fn oldest_settled(&self) -> Option<(u64, DecisionId)> {
        let settled = |decision| self.decisions.get(decision).is_some_and(Decided::is_settled);
        let oldest = self.order.iter().find(|(_, decision)| settled(decision))?;
        Some((*oldest.0, oldest.1.clone()))
    }

    fn forget_elsewhere(&mut self) {
        if self.elsewhere.len() > BOOK_CLOSED_MAX
            && let Some(oldest) = self.elsewhere.pop_front()
        {
            self.requests.remove(&oldest);
        }
    }
}
