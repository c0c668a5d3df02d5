//! RFC 3339 times, as rollouts and telemetry write them (`2026-11-15T18:48:13.359Z`).

use qd_session::moment::Timestamp;

/// The moment a text names, or nothing if it is not one.
pub fn parse(text: &str) -> Option<Timestamp> {
    let (date, rest) = text.split_once(['T', ' '])?;
    let (clock, offset_ms) = split_offset(rest)?;
    let mut date = date.splitn(3, '-').map(|part| part.parse::<i64>().ok());
    let (year, month, day) = (date.next()??, date.next()??, date.next()??);
    let mut clock = clock.splitn(3, ':');
    let hour: i64 = clock.next()?.parse().ok()?;
    let minute: i64 = clock.next()?.parse().ok()?;
    let (second, millis) = seconds(clock.next()?)?;
    let in_range = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..=60).contains(&second);
    if !in_range {
        return None;
    }
    let days = days_since_epoch(year, month, day);
    let ms = ((days * 24 + hour) * 60 + minute) * 60_000 + second * 1_000 + millis - offset_ms;
    u64::try_from(ms).ok().map(Timestamp)
}

/// The clock and how far it runs ahead of UTC.
fn split_offset(text: &str) -> Option<(&str, i64)> {
    if let Some(clock) = text.strip_suffix(['Z', 'z']) {
        return Some((clock, 0));
    }
    let at = text.rfind(['+', '-'])?;
    let (hours, minutes) = text.get(at + 1..)?.split_once(':')?;
    let ms = (hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().ok()?) * 60_000;
    Some((text.get(..at)?, if text.as_bytes()[at] == b'-' { -ms } else { ms }))
}

fn seconds(text: &str) -> Option<(i64, i64)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !fraction.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let millis: String = fraction.chars().chain("000".chars()).take(3).collect();
    Some((whole.parse().ok()?, millis.parse().ok()?))
}

/// Days of the Gregorian calendar since 1970-01-01, counted in eras of 400 years from March on.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
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

    #[test]
    fn a_rollout_time_is_read_to_the_millisecond() {
        assert_eq!(parse("2026-11-15T18:48:13.359Z"), Some(Timestamp(1_794_768_493_359)));
        assert_eq!(parse("1970-01-01T00:00:00Z"), Some(Timestamp(0)));
        assert_eq!(parse("2024-02-29T12:00:00.5+02:00"), Some(Timestamp(1_709_200_800_500)));
    }

    #[test]
    fn what_is_no_time_is_nothing() {
        for text in ["", "soon", "2026-11-15", "2026-13-15T18:48:13Z", "2026-11-15T18:48:1xZ"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
