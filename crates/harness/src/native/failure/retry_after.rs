//! How long a provider asks to wait, in each of the ways it is said.

use qd_session::moment::Timestamp;

use super::ResponseHead;
use crate::rfc3339;

/// `retry-after-ms`, `retry-after` (seconds, or a date), else when the limits that are used up
/// are reset. None where nothing, or nothing sensible, is said.
pub(super) fn wait_ms(now: Timestamp, response: &ResponseHead) -> Option<u64> {
    let asked_ms = response.header("retry-after-ms").and_then(|text| text.trim().parse().ok());
    let asked = || response.header("retry-after").and_then(|text| retry_after(now, text.trim()));
    let reset = || limits_reset(now, response);
    asked_ms.or_else(asked).or_else(reset).map(|wait: u64| wait.min(WAIT_MAX_MS))
}

fn retry_after(now: Timestamp, text: &str) -> Option<u64> {
    match text.parse::<f64>() {
        Ok(seconds) => whole_ms(seconds),
        Err(_) => Some(http_date(text)?.ms_since(now)),
    }
}

/// The latest reset of those limits of which nothing remains.
fn limits_reset(now: Timestamp, response: &ResponseHead) -> Option<u64> {
    let value = |name: String| response.header(&name).map(str::trim);
    let anthropic = ["requests", "tokens", "input-tokens", "output-tokens"].iter().map(|what| {
        let of = |field: &str| value(format!("anthropic-ratelimit-{what}-{field}"));
        (of("remaining") == Some("0")).then(|| until(now, of("reset")?)).flatten()
    });
    let unified = std::iter::once_with(|| {
        let of = |field: &str| value(format!("anthropic-ratelimit-unified-{field}"));
        (of("status") == Some("rejected")).then(|| until(now, of("reset")?)).flatten()
    });
    let openai = ["requests", "tokens"].iter().map(|what| {
        let of = |field: &str| value(format!("x-ratelimit-{field}-{what}"));
        (of("remaining") == Some("0")).then(|| duration_ms(of("reset")?)).flatten()
    });
    anthropic.chain(unified).chain(openai).flatten().max()
}

/// A moment as RFC 3339 spells it, or in seconds since 1970.
fn until(now: Timestamp, text: &str) -> Option<u64> {
    let seconds = || text.parse::<u64>().ok()?.checked_mul(1_000).map(Timestamp);
    let moment = rfc3339::timestamp(text).or_else(seconds)?;
    Some(moment.ms_since(now))
}

/// `6m0s`, `1.5s`, `20ms`, `1h2m3s`; a bare number is seconds.
fn duration_ms(text: &str) -> Option<u64> {
    if let Ok(seconds) = text.parse::<f64>() {
        return whole_ms(seconds);
    }
    let (mut rest, mut sum) = (text, 0.0);
    while !rest.is_empty() {
        let number_end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let (number, after) = rest.split_at(number_end);
        let unit_end = after.find(|letter: char| letter.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        let seconds = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3_600.0,
            "d" => 86_400.0,
            _ => return None,
        };
        sum += number.parse::<f64>().ok()? * seconds;
        rest = after;
    }
    whole_ms(sum)
}

fn whole_ms(seconds: f64) -> Option<u64> {
    // A cast of what is too large gives the largest number; the bound above takes care of it.
    (seconds.is_finite() && seconds >= 0.0).then_some((seconds * 1_000.0).ceil() as u64)
}

/// `Sun, 15 Nov 2026 18:55:32 GMT`, as HTTP writes dates; the two older forms are not sent.
fn http_date(text: &str) -> Option<Timestamp> {
    let (_, rest) = text.split_once(", ")?;
    let mut words = rest.split(' ');
    let (day, month, year) = (words.next()?, words.next()?, words.next()?);
    let (clock, zone) = (words.next()?, words.next()?);
    let month = MONTHS.iter().position(|known| *known == month)? + 1;
    if zone != "GMT" {
        return None;
    }
    rfc3339::timestamp(&format!("{year}-{month:02}-{day}T{clock}Z"))
}

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// Longest wait that is believed: limits are of minutes, hours, a week, a month.
const WAIT_MAX_MS: u64 = 31 * 24 * 60 * 60 * 1_000;
