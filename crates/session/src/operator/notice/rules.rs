//! What the operator wants to be told, and when not.

use std::collections::BTreeSet;

use crate::limits::{NOTICE_COOLDOWN_MS, NOTICE_DWELL_MS};

use super::Kind;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    pub kinds: BTreeSet<Kind>,
    pub dwell_ms: u64,
    pub cooldown_ms: u64,
    /// Hours in which nothing is told. What still stands afterwards is, at once.
    pub quiet: Vec<Quiet>,
}

impl Default for Rules {
    fn default() -> Self {
        let kinds = Kind::ALL.into_iter().filter(|kind| *kind != Kind::Delivered).collect();
        Self {
            kinds,
            dwell_ms: NOTICE_DWELL_MS,
            cooldown_ms: NOTICE_COOLDOWN_MS,
            quiet: Vec::new(),
        }
    }
}

impl Rules {
    pub fn is_quiet(&self, minute: u16) -> bool {
        self.quiet.iter().any(|quiet| quiet.contains(minute))
    }
}

/// A part of the operator's day, in minutes since midnight. It may go over midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quiet {
    from: u16,
    until: u16,
}

impl Quiet {
    /// As the operator writes it: `22:00-07:30`. None for what is no such range, and for an empty
    /// one.
    pub fn read(text: &str) -> Option<Self> {
        let (from, until) = text.split_once('-')?;
        let quiet = Self { from: minute(from)?, until: minute(until)? };
        (quiet.from != quiet.until && quiet.from < DAY).then_some(quiet)
    }

    fn contains(self, minute: u16) -> bool {
        match self.from < self.until {
            true => (self.from..self.until).contains(&minute),
            false => minute >= self.from || minute < self.until,
        }
    }
}

const DAY: u16 = 24 * 60;

fn minute(text: &str) -> Option<u16> {
    let (hour, minute) = text.trim().split_once(':')?;
    let digits = |text: &str| match text.len() {
        1..=2 if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse::<u16>().ok(),
        _ => None,
    };
    let (hour, minute) = (digits(hour)?, digits(minute)?);
    let of_day = hour * 60 + minute;
    (minute < 60 && of_day <= DAY).then_some(of_day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_hours_may_go_over_midnight() {
        let night = Quiet::read("22:00-07:30").expect("a range");
        let minutes = [21 * 60 + 59, 22 * 60, 1_439, 0, 449, 450, 720];
        let held = minutes.map(|minute| night.contains(minute));
        assert_eq!(held, [false, true, true, true, true, false, false]);
        let noon = Quiet::read("12:00 - 13:00").expect("a range");
        assert_eq!([719, 720, 779, 780].map(|at| noon.contains(at)), [false, true, true, false]);
        let always = Quiet::read("00:00-24:00").expect("a range");
        assert!((0..1_440).all(|minute| always.contains(minute)));
    }

    #[test]
    fn what_is_no_range_is_none() {
        for text in [
            "",
            "22:00",
            "22-7",
            "24:30-07:00",
            "22:60-07:00",
            "7:00-7:00",
            "-1:00-2:00",
            "24:00-01:00",
            "a:b-c:d",
        ] {
            assert_eq!(Quiet::read(text), None, "{text:?}");
        }
    }
}
