//! Times as agents stamp what they write: `2026-11-15T18:55:32.608Z`.

use qd_session::moment::Timestamp;

/// The moment, in milliseconds; `None` for anything that is not one after 1970.
pub fn timestamp(text: &str) -> Option<Timestamp> {
    usual(text.as_bytes()).or_else(|| any(text))
}

/// As nearly all of them are spelled: `2026-11-15T18:55:32.608Z`. Histories hold millions.
fn usual(text: &[u8]) -> Option<Timestamp> {
    let shape = |at: usize, byte: u8| text[at] == byte;
    let is_usual = text.len() == 24
        && (shape(4, b'-') && shape(7, b'-') && shape(10, b'T') && shape(13, b':'))
        && (shape(16, b':') && shape(19, b'.') && shape(23, b'Z'));
    if !is_usual {
        return None;
    }
    let number = |from: usize, to: usize| {
        text[from..to].iter().try_fold(0, |number, byte| {
            byte.is_ascii_digit().then(|| number * 10 + i64::from(byte - b'0'))
        })
    };
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    moment((year, month, day), (hour, minute, second), number(20, 23)?, 0)
}

fn any(text: &str) -> Option<Timestamp> {
    let (date, rest) = text.split_once(['T', ' '])?;
    let mut date = date.splitn(3, '-').map(number);
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let zone_at = rest.find(['Z', 'z', '+', '-'])?;
    let (clock, zone) = rest.split_at(zone_at);
    let (clock, fraction) = clock.split_once('.').unwrap_or((clock, "0"));
    let mut clock = clock.splitn(3, ':').map(number);
    let (hour, minute, second) = (clock.next()??, clock.next()??, clock.next()??);
    let (ms, offset) = (milliseconds(fraction)?, offset_minutes(zone)?);
    moment((year, month, day), (hour, minute, second), ms, offset)
}

fn moment(
    (year, month, day): (i64, i64, i64),
    (hour, minute, second): (i64, i64, i64),
    ms: i64,
    offset_minutes: i64,
) -> Option<Timestamp> {
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let minutes = (days(year, month, day) * 24 + hour) * 60 + minute - offset_minutes;
    u64::try_from((minutes * 60 + second) * 1_000 + ms).ok().map(Timestamp)
}

fn number(text: &str) -> Option<i64> {
    (text.len() <= 4 && text.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}

fn milliseconds(fraction: &str) -> Option<i64> {
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits: String = fraction.chars().chain("000".chars()).take(3).collect();
    digits.parse().ok()
}

fn offset_minutes(zone: &str) -> Option<i64> {
    let (sign, ahead) = match zone.split_at_checked(1)? {
        ("+", ahead) => (1, ahead),
        ("-", ahead) => (-1, ahead),
        (_utc, rest) => return rest.is_empty().then_some(0),
    };
    let (hours, minutes) = ahead.split_once(':')?;
    Some(sign * (number(hours)? * 60 + number(minutes)?))
}

/// Days since 1970-01-01 in the civil calendar.
pub fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, ms: Option<u64>) {
        assert_eq!(timestamp(text), ms.map(Timestamp), "{text}");
    }

    #[test]
    fn a_stamp_is_read_to_the_millisecond() {
        check("1970-01-01T00:00:00Z", Some(0));
        check("2026-11-15T18:55:32.608Z", Some(1_794_768_932_608));
        check("2024-02-29T12:00:00.5Z", Some(1_709_208_000_500));
        check("2024-02-29T14:00:00.500123+02:00", Some(1_709_208_000_500));
        check("2024-02-29T12:00:00.5+02:00", Some(1_709_200_800_500));
        check("2026-11-15T19:37:21.824Z", Some(1_794_771_441_824));
    }

    #[test]
    fn what_is_no_stamp_is_none() {
        for text in [
            "",
            "Z",
            "yesterday",
            "2026-11-15",
            "2026-13-01T00:00:00Z",
            "1970-01-00T00:00:00Z",
            "1969-12-31T23:59:59Z",
            "2026-11-15T25:00:00Z",
            "2026-11-15T18:55Z",
            "2026-11-15T18:48:1xZ",
            "2026-11-15T19:37:21.xxxZ",
            "2026-11-15T18:55:32Zulu",
            "2026-11-15T18:55:32+99999999999999999999:00",
            "-9223372036854775808-01-01T00:00:00Z",
            "2026-11-15T18:55:32é",
        ] {
            check(text, None);
        }
    }
}
