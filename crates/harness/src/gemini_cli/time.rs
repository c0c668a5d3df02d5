//! Times as Gemini CLI writes them: `2026-11-15T19:37:21.824Z`.

use qd_session::moment::Timestamp;

/// Reads UTC with or without milliseconds; anything else is no time.
pub fn read(text: &str) -> Option<Timestamp> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let (clock, fraction) = time.split_once('.').unwrap_or((time, ""));
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(clock, ':')?;
    let valid = (1970..10_000).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !valid {
        return None;
    }
    let seconds = ((days_since_epoch(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    Some(Timestamp(seconds * 1_000 + millis(fraction)?))
}

fn numbers(text: &str, separator: char) -> Option<[u64; 3]> {
    let parts: Vec<u64> =
        text.split(separator).map(|part| part.parse().ok()).collect::<Option<_>>()?;
    parts.try_into().ok()
}

fn millis(fraction: &str) -> Option<u64> {
    if !fraction.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    format!("{fraction:0<3}").get(..3)?.parse().ok()
}

/// The civil calendar counted from March, so that leap days come last.
fn days_since_epoch(year: u64, month: u64, day: u64) -> u64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year / 400, year % 400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clients_own_times_are_read_to_the_millisecond() {
        assert_eq!(read("2026-11-15T19:37:21.824Z"), Some(Timestamp(1_794_771_441_824)));
        assert_eq!(read("1970-01-01T00:00:00Z"), Some(Timestamp(0)));
        assert_eq!(read("2024-02-29T12:00:00.5Z"), Some(Timestamp(1_709_208_000_500)));
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in ["", "Z", "2026-11-15", "2026-13-15T00:00:00Z", "2026-11-15T25:00:00Z", "x"] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(read("1970-01-00T00:00:00Z"), None);
        assert_eq!(read("2026-11-15T19:37:21.xxxZ"), None);
    }
}
