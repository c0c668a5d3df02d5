//! The sums that a person asks for: by day, by model, by session.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use qd_broker::session_key::SessionKey;
use qd_harness::Harness;
use qd_harness::usage::{Charge, Day, Found, Limit, PriceTable, Speed, Standing, Sum};
use qd_session::moment::Timestamp;
use serde::Serialize;

use super::ledger::{Counted, Ledger};

/// What is asked for. Both days are included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Query {
    pub since: Option<Day>,
    pub until: Option<Day>,
    pub by: By,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    Day,
    Week,
    Month,
    Model,
    Project,
    Session,
    Harness,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// By time, oldest first; else the dearest first.
    pub rows: Vec<Row>,
    pub totals: Sum,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The day, the model, …; none where the files do not say.
    #[serde(skip)]
    pub name: Option<String>,
    #[serde(flatten)]
    pub sum: Sum,
    #[serde(rename = "modelBreakdowns")]
    pub models: Vec<ModelRow>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionRow>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelRow {
    #[serde(rename = "modelName")]
    pub model: String,
    #[serde(flatten)]
    pub sum: Sum,
}

/// What a session's row has beyond the sums.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionRow {
    pub harness: Harness,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    pub last_activity: Timestamp,
    /// What the main agent's last response had before it, and how much fits.
    pub context_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// How much of its plan is spent, where its client says so; and when it said it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<Limit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits_at: Option<Timestamp>,
}

impl Row {
    /// What the session's files say beside its responses.
    pub(super) fn stand(&mut self, standings: &BTreeMap<SessionKey, Standing>) {
        let (Some(name), Some(session)) = (&self.name, &mut self.session) else { return };
        let key = SessionKey { harness: session.harness, session: name.as_str().into() };
        let Some(standing) = standings.get(&key) else { return };
        session.context_window = standing.context_window.or(session.context_window);
        session.limits.clone_from(&standing.limits);
        session.limits_at = standing.limits_at;
    }
}

/// Adds up. `offset` says how many seconds the operator's clock was ahead of UTC at a moment:
/// today is his day.
pub fn report(
    ledger: &Ledger,
    query: Query,
    prices: &PriceTable,
    offset: impl FnMut(Timestamp) -> i32,
) -> Report {
    report_of(ledger.counted(), query, prices, offset)
}

/// The same of some responses.
pub(super) fn report_of<'a>(
    counted: impl Iterator<Item = Counted<'a>>,
    query: Query,
    prices: &'a PriceTable,
    mut offset: impl FnMut(Timestamp) -> i32,
) -> Report {
    let prices = Prices { table: prices, met: Vec::new() };
    let mut sums =
        Sums { prices, groups: Vec::new(), numbers: HashMap::new(), totals: Sum::default() };
    for counted in counted {
        let day = Day::of(counted.at, offset(counted.at));
        let is_in = query.since.is_none_or(|since| since <= day)
            && query.until.is_none_or(|until| day <= until);
        if is_in {
            sums.add(Key::of(query.by, day, &counted), &counted, query.by == By::Session);
        }
    }
    sums.report(query.by)
}

/// What is summed under one name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Key {
    Day(Day),
    Month(String),
    Name(Option<Arc<str>>, bool),
    Session(Harness, Arc<str>),
    Harness(Harness),
}

impl Key {
    fn of(by: By, day: Day, counted: &Counted<'_>) -> Self {
        match by {
            By::Day => Self::Day(day),
            By::Week => Self::Day(day.week()),
            By::Month => Self::Month(day.month()),
            By::Model => Self::Name(counted.model.cloned(), is_fast(counted)),
            By::Project => Self::Name(counted.project.cloned(), false),
            By::Session => Self::Session(counted.harness, Arc::clone(counted.session)),
            By::Harness => Self::Harness(counted.harness),
        }
    }

    fn name(&self) -> Option<String> {
        match self {
            Self::Day(day) => Some(day.to_string()),
            Self::Month(month) => Some(month.clone()),
            Self::Name(name, is_fast) => name.as_ref().map(|name| spelled(name, *is_fast)),
            Self::Session(_, session) => Some(session.to_string()),
            Self::Harness(harness) => Some(harness.name().to_owned()),
        }
    }
}

#[derive(Debug)]
struct Sums<'a> {
    prices: Prices<'a>,
    groups: Vec<(Key, Group<'a>)>,
    numbers: HashMap<Key, usize>,
    totals: Sum,
}

#[derive(Debug, Default)]
struct Group<'a> {
    sum: Sum,
    models: Vec<(Option<&'a Arc<str>>, bool, Sum)>,
    /// The last response of all, and of the main agent.
    last: Option<Counted<'a>>,
    last_of_main: Option<Counted<'a>>,
}

impl<'a> Sums<'a> {
    fn add(&mut self, key: Key, counted: &Counted<'a>, keeps_last: bool) {
        let charge = self.prices.charge(counted);
        self.totals.add(counted.tokens, charge);
        // Files are read one after the other: mostly it is the group of the response before.
        let number = match self.groups.last() {
            Some((last, _)) if *last == key => self.groups.len() - 1,
            _ => match self.numbers.get(&key) {
                Some(number) => *number,
                None => {
                    self.numbers.insert(key.clone(), self.groups.len());
                    self.groups.push((key, Group::default()));
                    self.groups.len() - 1
                }
            },
        };
        let group = &mut self.groups[number].1;
        group.sum.add(counted.tokens, charge);
        let fast = is_fast(counted);
        let of_model = |(model, is_fast, _): &&mut (Option<&Arc<str>>, bool, Sum)| {
            *is_fast == fast && same(*model, counted.model)
        };
        match group.models.iter_mut().find(of_model) {
            Some((_, _, sum)) => sum.add(counted.tokens, charge),
            None => {
                let mut sum = Sum::default();
                sum.add(counted.tokens, charge);
                group.models.push((counted.model, fast, sum));
            }
        }
        if keeps_last {
            let is_later =
                |last: &Option<Counted<'_>>| last.is_none_or(|last| last.at <= counted.at);
            if is_later(&group.last) {
                group.last = Some(*counted);
            }
            if !counted.aside && is_later(&group.last_of_main) {
                group.last_of_main = Some(*counted);
            }
        }
    }

    fn report(self, by: By) -> Report {
        let Self { prices, mut groups, totals, .. } = self;
        match by {
            By::Day | By::Week | By::Month => groups.sort_by(|a, b| a.0.cmp(&b.0)),
            By::Model | By::Project | By::Session | By::Harness => groups.sort_by(|a, b| {
                let (left, right) = (&a.1.sum, &b.1.sum);
                right.dollars.total_cmp(&left.dollars).then_with(|| a.0.cmp(&b.0))
            }),
        }
        let rows = groups.into_iter().map(|(key, group)| group.row(&key, &prices)).collect();
        Report { rows, totals }
    }
}

impl Group<'_> {
    fn row(mut self, key: &Key, prices: &Prices<'_>) -> Row {
        self.models.sort_by(|a, b| b.2.dollars.total_cmp(&a.2.dollars));
        let models = self.models.into_iter().filter_map(|(model, is_fast, sum)| {
            Some(ModelRow { model: spelled(model?, is_fast), sum })
        });
        let (last, main) = (self.last, self.last_of_main);
        let session = last.map(|last| SessionRow {
            harness: last.harness,
            project: last.project.map(ToString::to_string),
            last_activity: last.at,
            context_tokens: main.map_or(0, |main| main.tokens.context()),
            context_window: main.and_then(|main| prices.table.window(main.model?)),
            limits: Vec::new(),
            limits_at: None,
        });
        Row { name: key.name(), sum: self.sum, models: models.collect(), session }
    }
}

/// Prices of the models that were met: looked up once.
#[derive(Debug)]
struct Prices<'a> {
    table: &'a PriceTable,
    met: Vec<(&'a Arc<str>, Option<Found<'a>>)>,
}

impl<'a> Prices<'a> {
    fn charge(&mut self, counted: &Counted<'a>) -> Charge {
        if let Some(dollars) = counted.cost {
            return Charge { dollars, is_estimate: false };
        }
        let Some(model) = counted.model else { return Charge::default() };
        let found = match self.met.iter().find(|(met, _)| Arc::ptr_eq(met, model)) {
            Some((_, found)) => *found,
            None => {
                let found = self.table.find(model);
                self.met.push((model, found));
                found
            }
        };
        PriceTable::charge_by(found, &counted.tokens, counted.speed)
    }
}

fn is_fast(counted: &Counted<'_>) -> bool {
    counted.speed == Some(Speed::Fast)
}

fn same(a: Option<&Arc<str>>, b: Option<&Arc<str>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b) || a == b,
        (None, None) => true,
        _ => false,
    }
}

/// As ccusage names a model's fast answers.
fn spelled(model: &str, is_fast: bool) -> String {
    if is_fast { format!("{model}-fast") } else { model.to_owned() }
}
