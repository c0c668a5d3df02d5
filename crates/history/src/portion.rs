//! What one reading of one file told: its responses, small enough to keep all of them.

use std::sync::Arc;

use qd_harness::usage::{MessageKey, Rank, Response, ResponseKey, Speed, Tokens};
use qd_session::moment::Timestamp;

use super::names::{Names, Number};
use super::packing::{Packed, Unpacked};

/// Responses in the order they were told. Names are numbers, of [`Portion::names`].
#[derive(Debug, Clone, Default)]
pub struct Portion {
    names: Names,
    told: Vec<Told>,
}

/// One response.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Told {
    /// None where nobody can say whether it was told before.
    pub key: Option<(ResponseKey, MessageKey)>,
    pub session: Number,
    pub model: Option<Number>,
    /// Where it is not the file's.
    pub project: Option<Number>,
    pub at: Timestamp,
    pub tokens: Counts,
    pub cost: Option<f64>,
    pub speed: Option<Speed>,
    pub aside: bool,
}

/// [`Tokens`] of one response: in half the room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    pub input: u32,
    pub output: u32,
    pub cache_write: u32,
    pub cache_write_1h: u32,
    pub cache_read: u32,
}

impl From<Tokens> for Counts {
    fn from(tokens: Tokens) -> Self {
        // A reader takes nothing larger.
        let count = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
        Self {
            input: count(tokens.input),
            output: count(tokens.output),
            cache_write: count(tokens.cache_write),
            cache_write_1h: count(tokens.cache_write_1h),
            cache_read: count(tokens.cache_read),
        }
    }
}

impl From<Counts> for Tokens {
    fn from(counts: Counts) -> Self {
        Self {
            input: counts.input.into(),
            output: counts.output.into(),
            cache_write: counts.cache_write.into(),
            cache_write_1h: counts.cache_write_1h.into(),
            cache_read: counts.cache_read.into(),
        }
    }
}

impl Told {
    /// Which of several tellings is counted.
    pub fn rank(&self) -> Rank {
        Rank::of(self.aside, self.tokens.into(), self.speed)
    }
}

impl Portion {
    /// `session` is whose the file is, where the line does not say.
    pub fn take(&mut self, response: &Response<'_>, session: &str) {
        self.take_in(response, session, None);
    }

    /// In a file of many projects.
    pub fn take_in(&mut self, response: &Response<'_>, session: &str, project: Option<&str>) {
        let session = response.session.as_deref().unwrap_or(session);
        let told = Told {
            key: response.key(session).zip(response.message_key(session)),
            session: self.names.number(session),
            model: response.model.as_deref().map(|model| self.names.number(model)),
            project: project.map(|project| self.names.number(project)),
            at: response.at,
            tokens: response.tokens.into(),
            cost: response.cost,
            speed: response.speed,
            aside: response.aside,
        };
        // A response is told in a line for each of its parts, one after the other.
        match self.told.last_mut() {
            Some(last) if last.key.is_some() && last.key == told.key => {
                if told.rank() > last.rank() {
                    *last = told;
                }
            }
            _ => self.told.push(told),
        }
    }

    pub fn names(&self) -> &[Arc<str>] {
        self.names.all()
    }

    pub fn told(&self) -> &[Told] {
        &self.told
    }

    pub fn is_empty(&self) -> bool {
        self.told.is_empty()
    }

    /// As the index keeps it.
    pub fn packed(&self) -> Vec<u8> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut out = Packed::default();
        out.number(self.names().len() as u64);
        for name in self.names() {
            out.text(name);
        }
        out.number(self.told.len() as u64);
        for told in &self.told {
            told.pack(&mut out);
        }
        out.sealed()
    }

    /// None for what was not packed by this program.
    pub fn unpacked(bytes: &[u8]) -> Option<Self> {
        let mut from = Unpacked::sealed(bytes)?;
        let mut portion = Self::default();
        for nth in 0..from.number()? {
            // Names are told apart, or numbers would not be theirs.
            let is_new = u64::from(portion.names.number(from.text()?)) == nth;
            is_new.then_some(())?;
        }
        let names = portion.names().len();
        for _ in 0..from.number()? {
            portion.told.push(Told::unpack(&mut from, names)?);
        }
        from.is_done().then_some(portion)
    }

    /// What was told later.
    pub fn append(&mut self, later: &Self) {
        let numbers: Vec<Number> =
            later.names().iter().map(|name| self.names.number(name)).collect();
        self.told.extend(later.told.iter().map(|told| told.renamed(&numbers)));
    }
}

impl Told {
    /// With its names' numbers in another list.
    pub fn renamed(&self, numbers: &[Number]) -> Self {
        Self {
            session: numbers[self.session as usize],
            model: self.model.map(|model| numbers[model as usize]),
            project: self.project.map(|project| numbers[project as usize]),
            ..*self
        }
    }

    fn pack(&self, out: &mut Packed) {
        let has = |flag: bool, bit: u8| if flag { bit } else { 0 };
        let speed = match self.speed {
            Some(Speed::Fast) => FAST | HAS_SPEED,
            Some(Speed::Standard) => HAS_SPEED,
            None => 0,
        };
        out.byte(
            has(self.key.is_some(), HAS_KEY)
                | has(self.model.is_some(), HAS_MODEL)
                | has(self.cost.is_some(), HAS_COST)
                | has(self.aside, ASIDE)
                | has(self.project.is_some(), HAS_PROJECT)
                | speed,
        );
        if let Some((ResponseKey([first, second]), MessageKey(message))) = self.key {
            for sum in [first, second, message] {
                out.bytes(&sum.to_le_bytes());
            }
        }
        out.number(self.session.into());
        if let Some(model) = self.model {
            out.number(model.into());
        }
        if let Some(project) = self.project {
            out.number(project.into());
        }
        out.number(self.at.0);
        let Counts { input, output, cache_write, cache_write_1h, cache_read } = self.tokens;
        for count in [input, output, cache_write, cache_write_1h, cache_read] {
            out.number(count.into());
        }
        if let Some(cost) = self.cost {
            out.bytes(&cost.to_le_bytes());
        }
    }

    fn unpack(from: &mut Unpacked<'_>, names: usize) -> Option<Self> {
        let flags = from.byte()?;
        let has = |bit: u8| flags & bit != 0;
        let mut sum = || from.bytes().map(u64::from_le_bytes);
        let key = match has(HAS_KEY) {
            true => Some((ResponseKey([sum()?, sum()?]), MessageKey(sum()?))),
            false => None,
        };
        let mut name = || {
            let number = from.number()?;
            ((number as usize) < names).then_some(number as Number)
        };
        let session = name()?;
        let model = if has(HAS_MODEL) { Some(name()?) } else { None };
        let project = if has(HAS_PROJECT) { Some(name()?) } else { None };
        let at = Timestamp(from.number()?);
        let mut count = || u32::try_from(from.number()?).ok();
        let tokens = Counts {
            input: count()?,
            output: count()?,
            cache_write: count()?,
            cache_write_1h: count()?,
            cache_read: count()?,
        };
        let cost = if has(HAS_COST) { Some(f64::from_le_bytes(from.bytes()?)) } else { None };
        let speed = match (has(HAS_SPEED), has(FAST)) {
            (true, true) => Some(Speed::Fast),
            (true, false) => Some(Speed::Standard),
            (false, _) => None,
        };
        Some(Self { key, session, model, project, at, tokens, cost, speed, aside: has(ASIDE) })
    }
}

const HAS_KEY: u8 = 1;
const HAS_MODEL: u8 = 2;
const HAS_COST: u8 = 4;
const HAS_SPEED: u8 = 8;
const FAST: u8 = 16;
const ASIDE: u8 = 32;
const HAS_PROJECT: u8 = 64;

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use proptest::prelude::*;

    use super::*;

    fn response(nth: u64, has: u8) -> Response<'static> {
        let text = |bit: u8, text: String| (has & bit != 0).then_some(Cow::Owned(text));
        Response {
            session: text(1, format!("session-{}", nth % 3)),
            agent: None,
            aside: has & 2 != 0,
            message: text(4, format!("msg_{nth}")),
            request: text(8, format!("req_{nth}")),
            model: text(16, format!("model-{}", nth % 2)),
            speed: match has & 96 {
                0 => None,
                32 => Some(Speed::Fast),
                _ => Some(Speed::Standard),
            },
            at: Timestamp(nth << 20),
            tokens: Tokens {
                input: nth,
                output: u32::MAX.into(),
                cache_write: nth * 300,
                cache_write_1h: 1,
                cache_read: 0,
            },
            cost: (has & 128 != 0).then_some(0.1),
            cwd: None,
        }
    }

    proptest! {
        #[test]
        fn what_was_packed_comes_out_again(has in proptest::collection::vec(any::<u8>(), 0..20)) {
            let mut portion = Portion::default();
            for (nth, has) in has.iter().enumerate() {
                let project = (has % 3 == 0).then_some("project");
                portion.take_in(&response(nth as u64, *has), "file", project);
            }
            let packed = portion.packed();
            if portion.is_empty() {
                prop_assert!(packed.is_empty());
                return Ok(());
            }
            let again = Portion::unpacked(&packed).expect("just packed");
            prop_assert_eq!(again.told(), portion.told());
            prop_assert_eq!(again.names(), portion.names());
            for cut in 0..packed.len() {
                prop_assert!(Portion::unpacked(&packed[..cut]).is_none());
            }
        }

        #[test]
        fn damage_is_noticed(at in any::<proptest::sample::Index>(), bit in 0_u32..8) {
            let mut portion = Portion::default();
            portion.take(&response(1, 0xff), "file");
            portion.take(&response(2, 0xff), "file");
            let mut packed = portion.packed();
            let at = at.index(packed.len());
            packed[at] ^= 1_u8 << bit;
            prop_assert!(Portion::unpacked(&packed).is_none());
        }
    }
}
