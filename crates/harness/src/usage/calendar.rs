//! Days, weeks and months of the operator's calendar.
//!
//! Which day a moment is in depends on where the operator is; how far his clock is from UTC at
//! that moment comes in.

use std::fmt;

use qd_session::moment::Timestamp;

/// A day of the civil calendar: so many after 1970-01-01.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(i32);

impl Day {
    /// The day of a moment where clocks are `offset_seconds` ahead of UTC.
    pub fn of(at: Timestamp, offset_seconds: i32) -> Self {
        let seconds = i64::try_from(at.0 / 1_000).unwrap_or(i64::MAX / 2);
        let days = (seconds + i64::from(offset_seconds)).div_euclid(SECONDS_PER_DAY);
        Self(i32::try_from(days).unwrap_or(i32::MAX))
    }

    /// `2026-11-16` or `20261116`.
    pub fn named(text: &str) -> Option<Self> {
        let digits: String = match text.as_bytes() {
            [_, _, _, _, b'-', _, _, b'-', _, _] => text.split('-').collect(),
            _ => text.to_owned(),
        };
        if digits.len() != 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let number = |from: usize, to: usize| digits[from..to].parse::<i64>().ok();
        let day = Self::on(number(0, 4)?, number(4, 6)?, number(6, 8)?);
        // The thirty-first of June would be another day.
        (day.to_string() == format!("{}-{}-{}", &digits[..4], &digits[4..6], &digits[6..]))
            .then_some(day)
    }

    /// As an operator says it: a day's name, `today`, `yesterday`, or `7d` for the last seven days,
    /// today included.
    pub fn asked(text: &str, today: Self) -> Option<Self> {
        match text {
            "today" => Some(today),
            "yesterday" => Some(Self(today.0 - 1)),
            _ => match text.strip_suffix('d') {
                Some(count) => {
                    let count = count.parse::<u16>().ok().filter(|count| *count > 0)?;
                    Some(Self(today.0 - (i32::from(count) - 1)))
                }
                None => Self::named(text),
            },
        }
    }

    /// Its first moment where clocks are `offset_seconds` ahead of UTC.
    pub fn begin(self, offset_seconds: i32) -> Timestamp {
        let seconds = i64::from(self.0) * SECONDS_PER_DAY - i64::from(offset_seconds);
        Timestamp(u64::try_from(seconds).unwrap_or(0).saturating_mul(1_000))
    }

    /// The Monday of its week.
    pub fn week(self) -> Self {
        // 1970-01-01 was a Thursday.
        Self(self.0 - (self.0 + 3).rem_euclid(7))
    }

    /// `2026-11`.
    pub fn month(self) -> String {
        let (year, month, _) = self.civil();
        format!("{year:04}-{month:02}")
    }

    fn on(year: i64, month: i64, day: i64) -> Self {
        Self(i32::try_from(crate::rfc3339::days(year, month, day)).unwrap_or(i32::MAX))
    }

    /// Year, month and day.
    fn civil(self) -> (i64, i64, i64) {
        let days = i64::from(self.0) + 719_468;
        let era = days.div_euclid(146_097);
        let day_of_era = days.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted_month = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
        let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
        (year_of_era + era * 400 + i64::from(month <= 2), month, day)
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = self.civil();
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

const SECONDS_PER_DAY: i64 = 86_400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_in_the_day_of_its_place() {
        let midnight = Timestamp(1_794_787_200_000); // 2026-11-16T00:00:00Z
        let day = |offset| Day::of(midnight, offset).to_string();
        assert_eq!((day(0), day(3_600)), ("2026-11-16".to_owned(), "2026-11-16".to_owned()));
        assert_eq!(day(-1), "2026-11-15");
        assert_eq!(Day::of(Timestamp(0), -3_600).to_string(), "1969-12-31");
    }

    #[test]
    fn days_are_named_both_ways_and_only_if_they_exist() {
        for text in ["2024-02-29", "20240229"] {
            assert_eq!(Day::named(text).map(|day| day.to_string()), Some("2024-02-29".to_owned()));
        }
        for text in
            ["2023-02-29", "2024-13-01", "2024-2-9", "", "yesterday", "2024/02/29", "20240630x"]
        {
            assert_eq!(Day::named(text), None, "{text}");
        }
    }

    #[test]
    fn days_are_asked_for_in_the_operators_words() {
        let today = Day::named("2026-11-16").unwrap();
        let asked = |text| Day::asked(text, today).map(|day| day.to_string());
        for (text, day) in [
            ("today", "2026-11-16"),
            ("yesterday", "2026-11-15"),
            ("1d", "2026-11-16"),
            ("7d", "2026-11-10"),
            ("2026-01-31", "2026-01-31"),
            ("20260131", "2026-01-31"),
        ] {
            assert_eq!(asked(text).as_deref(), Some(day), "{text}");
        }
        for text in ["", "d", "0d", "-1d", "7", "7w", "99999d", "tomorrow"] {
            assert_eq!(asked(text), None, "{text}");
        }
        assert_eq!(Day::of(today.begin(3_600), 3_600), today);
        assert_eq!(today.begin(0), Timestamp(1_794_787_200_000));
    }

    #[test]
    fn every_day_has_a_name_that_finds_it_and_a_monday() {
        for number in 0..40_000 {
            let day = Day(number);
            assert_eq!(Day::named(&day.to_string()), Some(day));
            assert!((0..7).contains(&(number - day.week().0)));
        }
        assert_eq!(Day::named("2026-11-15").unwrap().week().to_string(), "2026-11-09");
        assert_eq!(Day::named("2026-11-16").unwrap().week().to_string(), "2026-11-16");
        assert_eq!(Day::named("2026-11-16").unwrap().month(), "2026-11");
    }
}
