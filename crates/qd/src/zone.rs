//! Where the operator is: how far his clock is from UTC at a moment.

use jiff::tz::TimeZone;
use qd_harness::usage::Day;
use qd_session::moment::Timestamp;

/// `TZ`, else what the machine is set to.
#[derive(Debug)]
pub struct Zone {
    zone: TimeZone,
    /// The quarter of an hour that was asked about last: no clock changes within one.
    last: Option<(u64, i32)>,
}

impl Zone {
    pub fn of_operator() -> Self {
        Self { zone: TimeZone::system(), last: None }
    }

    pub fn named(name: &str) -> Option<Self> {
        // A machine may have no table of zones; this one needs none.
        let zone = match name.eq_ignore_ascii_case("UTC") {
            true => TimeZone::UTC,
            false => TimeZone::get(name).ok()?,
        };
        Some(Self { zone, last: None })
    }

    /// A day as the operator says it.
    pub fn day(&mut self, text: &str) -> Result<Day, String> {
        let now = u64::try_from(jiff::Timestamp::now().as_millisecond()).map(Timestamp);
        let now = now.map_err(|_| "this machine's clock is before 1970".to_owned())?;
        let today = Day::of(now, self.offset(now));
        Day::asked(text, today).ok_or_else(|| {
            format!("`{text}` is no day: write 2026-11-16, 20261116, today, yesterday or 7d")
        })
    }

    /// `2026-11-16 09:30`.
    pub fn clock(&mut self, at: Timestamp) -> String {
        let offset = self.offset(at);
        let minutes = (i64::try_from(at.0 / 1_000).unwrap_or(0) + i64::from(offset)) / 60;
        let (hour, minute) = (minutes.div_euclid(60).rem_euclid(24), minutes.rem_euclid(60));
        format!("{} {hour:02}:{minute:02}", Day::of(at, offset))
    }

    /// Seconds ahead of UTC.
    pub fn offset(&mut self, at: Timestamp) -> i32 {
        let quarter = at.0 / (15 * 60 * 1_000);
        match self.last {
            Some((known, offset)) if known == quarter => offset,
            _ => {
                let moment = i64::try_from(at.0)
                    .ok()
                    .and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
                let offset = moment.map_or(0, |moment| self.zone.to_offset(moment).seconds());
                self.last = Some((quarter, offset));
                offset
            }
        }
    }
}
