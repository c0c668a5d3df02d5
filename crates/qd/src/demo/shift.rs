//! A recording moved to another time.
//!
//! Pure. Handlers read the times that agents write into what they say, so all of them move
//! together: `2026-11-15T18:55:32.608Z`, and the epoch's seconds, milliseconds, microseconds and
//! nanoseconds. A number counts as a time only if it lies within a day of the recording.

use std::sync::LazyLock;

use regex::{Captures, Regex};

/// Maps the times of a recording to new ones.
#[derive(Debug, Clone)]
pub struct Shift {
    /// When the recording began.
    from_ms: u64,
    /// When it begins now.
    to_ms: u64,
    /// How many times as fast it goes.
    speed: f64,
    /// Where it stood still or was skipped, in its order.
    turns: Vec<Turn>,
}

/// From somewhere on all comes earlier or later than it would have.
#[derive(Debug, Clone, Copy)]
struct Turn {
    /// In the recording.
    after_ms: u64,
    by_ms: i128,
    /// What lay in the part that was skipped is not older than what was played before it.
    floor_ms: u64,
}

impl Shift {
    /// The beginning moves by whole seconds, so that times without a fraction move alike.
    pub fn new(from_ms: u64, to_ms: u64, speed: f64) -> Self {
        let to_ms = to_ms / 1_000 * 1_000 + from_ms % 1_000;
        Self { from_ms, to_ms, speed, turns: Vec::new() }
    }

    /// What the recording has at `at_ms` comes now or within a second, by whole seconds as well;
    /// all up to `after_ms` has been played.
    pub fn turn(&mut self, after_ms: u64, at_ms: u64, now_ms: u64) {
        let late_ms = i128::from(now_ms) - i128::from(self.moment(at_ms));
        let by_ms = -(-late_ms).div_euclid(1_000) * 1_000;
        if by_ms != 0 {
            let floor_ms = self.moment(after_ms);
            let by_ms = by_ms + self.turns.last().map_or(0, |turn| turn.by_ms);
            self.turns.push(Turn { after_ms, by_ms, floor_ms });
        }
    }

    pub fn moment(&self, ms: u64) -> u64 {
        let since = i128::from(ms) - i128::from(self.from_ms);
        // Whole numbers stay exact where nothing has to be stretched.
        let scaled = if self.speed == 1.0 { since } else { (since as f64 / self.speed) as i128 };
        let turn = self.turns.iter().rev().find(|turn| turn.after_ms < ms);
        let (by_ms, floor_ms) = turn.map_or((0, 0), |turn| (turn.by_ms, turn.floor_ms));
        let moved = i128::from(self.to_ms) + scaled + by_ms;
        u64::try_from(moved).unwrap_or_default().max(floor_ms)
    }

    /// A payload with all its times moved.
    pub fn text(&self, text: &str) -> String {
        let text = STAMP.replace_all(text, |found: &Captures<'_>| {
            self.stamp(found).unwrap_or_else(|| found[0].to_owned())
        });
        let moved = EPOCH.replace_all(&text, |found: &Captures<'_>| {
            self.number(&found[0]).unwrap_or_else(|| found[0].to_owned())
        });
        moved.into_owned()
    }

    fn stamp(&self, found: &Captures<'_>) -> Option<String> {
        let number = |name: &str| found[name].parse::<i64>().ok();
        let (year, month, day) = (number("year")?, number("month")?, number("day")?);
        let offset = match &found["zone"] {
            "Z" => 0,
            zone => {
                let (hours, minutes) = zone[1..].split_once(':')?;
                let ahead = hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().ok()?;
                if zone.starts_with('-') { -ahead } else { ahead }
            }
        };
        let minutes = (days(year, month, day) * 24 + number("hour")?) * 60 + number("minute")?;
        let seconds = (minutes - offset) * 60 + number("second")?;
        let fraction = found.name("fraction").map_or("", |fraction| fraction.as_str());
        let (thousandths, finer) = fraction.split_at(fraction.len().min(3));
        let ms = format!("{thousandths:0<3}").parse::<i64>().ok()?;
        let moved = self.moment(u64::try_from(seconds * 1_000 + ms).ok()?);
        let written = written(moved);
        let ms = format!("{:03}", moved % 1_000);
        Some(match fraction {
            "" => format!("{written}Z"),
            _ => format!("{written}.{}{finer}Z", &ms[..thousandths.len()]),
        })
    }

    fn number(&self, digits: &str) -> Option<String> {
        // How many digits are finer than a millisecond.
        let (ms, finer) = match digits.len() {
            10 => (digits.parse::<u64>().ok()?.checked_mul(1_000)?, ""),
            longer => {
                let (ms, finer) = digits.split_at(13.min(longer));
                (ms.parse().ok()?, finer)
            }
        };
        if ms.abs_diff(self.from_ms) > NEAR_MS {
            return None;
        }
        let moved = self.moment(ms);
        Some(match digits.len() {
            10 => (moved / 1_000).to_string(),
            _ => format!("{moved}{finer}"),
        })
    }
}

/// A time this near to the recording is one of its own: nothing in it is older than its session.
const NEAR_MS: u64 = 24 * 60 * 60 * 1_000;

static STAMP: LazyLock<Regex> = LazyLock::new(|| {
    let date = r"\b(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})";
    let clock = r"[T ](?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})";
    let rest = r"(?:\.(?P<fraction>[0-9]{1,9}))?(?P<zone>Z|[+-][0-9]{2}:[0-9]{2})";
    Regex::new(&[date, clock, rest].concat()).expect("a pattern of ours")
});

static EPOCH: LazyLock<Regex> = LazyLock::new(|| {
    let text = r"\b(?:[0-9]{10}|[0-9]{13}|[0-9]{16}|[0-9]{19})\b";
    Regex::new(text).expect("a pattern of ours")
});

/// Days since 1970-01-01 in the civil calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// `2026-11-15T18:55:32`.
fn written(ms: u64) -> String {
    let seconds = ms / 1_000;
    let days = (seconds / 86_400) as i64 + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use qd_harness::replay::{Replay, Scene};
    use qd_harness::{Harness, Signal};
    use qd_session::moment::Timestamp;

    use super::super::captures::{CAPTURES, Embedded};
    use super::super::round::renamed;
    use super::*;

    const BEGAN: u64 = 1_794_768_932_608;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        // A day and a second later.
        let shift = Shift::new(BEGAN, BEGAN + 86_401_000, 1.0);
        assert_eq!(shift.text(text), expected);
    }

    #[test]
    fn times_of_every_spelling_move_alike() {
        check(r#"{"t":"2026-11-15T18:55:32.608Z"}"#, r#"{"t":"2026-11-16T18:55:33.608Z"}"#);
        check("2026-11-15T18:55:32Z", "2026-11-16T18:55:33Z");
        check("2026-11-15T18:55:32.608123456Z", "2026-11-16T18:55:33.608123456Z");
        check("2026-11-15T20:55:32.6+02:00", "2026-11-16T18:55:33.6Z");
        check("[1794768932608,1794768932609]", "[1794855333608,1794855333609]");
        check("1794768932 1794768932.5", "1794855333 1794855333.5");
        check("1794768932608001 1794768932608001002", "1794855333608001 1794855333608001002");
    }

    #[test]
    fn other_numbers_and_dates_stay() {
        for text in [
            "1234567890",
            "1700000000000",
            "0199a1b2-1794768932608ab",
            "2026-11-15",
            "2026-11-15T18-55-32",
            "0.25 4711 -7",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn twice_as_fast_takes_half_as_long() {
        let shift = Shift::new(BEGAN, BEGAN, 2.0);
        assert_eq!(shift.moment(BEGAN + 1_001), BEGAN + 500);
        assert_eq!(shift.text("2026-11-15T18:55:42.608Z"), "2026-11-15T18:55:37.608Z");
    }

    #[test]
    fn a_recording_stands_still_until_it_is_answered_and_skips_what_is_left_then() {
        let mut shift = Shift::new(BEGAN, BEGAN, 1.0);
        // Held for 4.2 s before what comes at 10 s; what lies just before that comes with it.
        shift.turn(BEGAN + 2_000, BEGAN + 10_000, BEGAN + 14_200);
        let moved = |shift: &Shift, ms: u64| shift.moment(BEGAN + ms) - BEGAN;
        assert_eq!(moved(&shift, 2_000), 2_000);
        assert_eq!(moved(&shift, 9_990), 14_990);
        assert_eq!(moved(&shift, 10_000), 15_000);
        // Answered at 16 s: what would come at 25 s comes at once, and nothing is older than before.
        shift.turn(BEGAN + 11_000, BEGAN + 20_000, BEGAN + 16_000);
        assert_eq!(moved(&shift, 11_000), 16_000);
        assert_eq!(moved(&shift, 12_000), 16_000);
        assert_eq!(moved(&shift, 20_000), 16_000);
        assert_eq!(moved(&shift, 21_500), 17_500);
        // What is due within a second keeps its time.
        shift.turn(BEGAN + 20_000, BEGAN + 20_700, BEGAN + 16_000);
        assert_eq!(moved(&shift, 20_700), 16_700);
        assert_eq!(shift.text("2026-11-15T18:55:34.608Z"), "2026-11-15T18:55:34.608Z");
    }

    #[test]
    fn calendars_agree() {
        for day in (0..60_000).step_by(7) {
            let date = written(day * 86_400_000);
            let part = |range: std::ops::Range<usize>| date[range].parse::<i64>().expect("digits");
            assert_eq!(days(part(0..4), part(5..7), part(8..10)), day as i64, "{date}");
        }
    }

    /// What an operator sees of a capture: when, which session, and what is said of it.
    type Story = Vec<(u64, Arc<str>, String)>;

    fn play(replay: &mut Replay, capture: &Embedded, began: u64, round: u32) -> Story {
        let (signals, sessions) = (capture.signals(), capture.sessions());
        let shift = Shift::new(signals[0].at_ms, began, 1.0);
        let start = shift.moment(signals[0].at_ms);
        let mut scenes = Vec::new();
        for recorded in &signals {
            let signal = recorded.signal().expect("a known source");
            let text = shift.text(std::str::from_utf8(signal.payload).expect("text"));
            let text = renamed(&text, round, &sessions);
            let at = Timestamp(shift.moment(recorded.at_ms));
            scenes.extend(replay.play(&Signal { at, payload: text.as_bytes(), ..signal }));
        }
        let last = shift.moment(signals[signals.len() - 1].at_ms);
        scenes.extend(replay.run_until(Timestamp(last + 2_000)));
        let changed = scenes.into_iter().filter_map(|scene| match scene {
            Scene::Changed { at, session, state } => {
                Some((at.0 - start, session, format!("{:?} {}", state.group, state.label)))
            }
            Scene::Event { .. } => None,
        });
        changed.collect()
    }

    #[test]
    fn a_shifted_capture_tells_the_same_story() {
        for capture in &CAPTURES {
            let began = capture.signals()[0].at_ms;
            let tell = |began| play(&mut Replay::new(capture.harness()), capture, began, 0);
            let (before, after) = (tell(began), tell(began + 400 * 86_400_000));
            assert!(before.len() > 2, "{}", capture.name);
            assert_eq!(before, after, "{}", capture.name);
        }
    }

    #[test]
    fn a_capture_played_again_tells_its_story_again() {
        for capture in &CAPTURES {
            let mut replay = Replay::new(capture.harness());
            let began = capture.signals()[0].at_ms;
            let mut round = |round: u32| {
                let began = began + u64::from(round) * 120_000;
                let story = play(&mut replay, capture, began, round);
                // How it begins depends on how it ended before.
                let said = story.into_iter().map(|(_, _, said)| said);
                let begun = said.skip_while(|said| !said.starts_with("Autonomous"));
                begun.filter(|said| !said.starts_with("Autonomous")).collect::<Vec<_>>()
            };
            let first = round(0);
            assert!(!first.is_empty(), "{}", capture.name);
            for again in 1..3 {
                assert_eq!(first, round(again), "{} for the {again}. time", capture.name);
            }
        }
    }

    #[test]
    fn there_is_something_of_everything_and_not_much() {
        let bytes: usize = CAPTURES.iter().map(|capture| capture.bytes()).sum();
        assert!(bytes < 600_000, "{bytes} bytes");
        for harness in [Harness::ClaudeCode, Harness::Codex, Harness::GeminiCli, Harness::Opencode]
        {
            assert!(CAPTURES.iter().any(|capture| capture.harness() == harness), "{harness:?}");
        }
    }
}
