//! Where the operator is: how far his clock is from UTC at a moment.

use jiff::tz::TimeZone;
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
        Some(Self { zone: TimeZone::get(name).ok()?, last: None })
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
