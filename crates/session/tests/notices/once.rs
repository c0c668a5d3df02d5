//! Single cases, one a rule.

use qd_session::id::{RequestKey, SessionId};
use qd_session::limits::{NOTICE_MATTERS_MAX, NOTICE_SESSIONS_MAX, NOTICES_REMEMBERED_MAX};
use qd_session::moment::Timestamp;
use qd_session::operator::notice::{
    Answering, Asker, Herald, Input, Kind, Matter, Moment, Notice, Quiet, Remembered, Rules,
    Situation,
};

const START: u64 = 1_800_000_000_000;
const DAY: u16 = 700;

struct Told {
    herald: Herald,
}

impl Told {
    fn by(rules: Rules) -> Self {
        Self { herald: Herald::new(rules, Remembered::default()) }
    }

    /// What is said at a second, in short.
    fn at(&mut self, second: u64, minute: u16, input: Input) -> Vec<String> {
        let at = Timestamp(START + second * 1_000);
        let said = self.herald.handle(Moment { at, minute }, input);
        said.iter().map(short).collect()
    }
}

fn short(notice: &Notice) -> String {
    match notice {
        Notice::Tell { matter, .. } => format!("tell {}", matter.tag),
        Notice::Sum { matters, .. } => {
            let tags: Vec<&str> = matters.iter().map(|(_, matter)| matter.tag.as_str()).collect();
            format!("sum {}", tags.join(" "))
        }
        Notice::Withdraw { tag } => format!("withdraw {tag}"),
    }
}

fn request(name: &str) -> Matter {
    let (key, since) = (RequestKey::from(name), Timestamp(START));
    let how = (Answering::FromHere, Asker::Main);
    Matter::of_request(key, Kind::Permission, how, since, "title", "text")
}

fn of_subagent(name: &str) -> Matter {
    let (key, since) = (RequestKey::from(name), Timestamp(START));
    let how = (Answering::FromHere, Asker::Subagent);
    Matter::of_request(key, Kind::Permission, how, since, "title", "text")
}

fn idle(second: u64) -> Matter {
    let since = Timestamp(START + second * 1_000);
    Matter::of_state(&SessionId::from("s"), Kind::Idle, since, "title", "text")
}

fn shown(matters: &[Matter]) -> Input {
    Input::Shown(Situation { session: "s".into(), matters: matters.to_vec() })
}

const NOTHING: [&str; 0] = [];

#[test]
fn who_answers_in_the_terminal_at_once_hears_nothing() {
    let mut told = Told::by(Rules::default());
    assert_eq!(told.at(0, DAY, shown(&[request("r1")])), NOTHING);
    assert_eq!(told.at(4, DAY, shown(&[])), NOTHING);
    assert_eq!(told.at(60, DAY, Input::Woken), NOTHING);
}

#[test]
fn a_new_request_comes_through_a_cooldown_and_a_state_waits_for_its_end() {
    let mut told = Told::by(Rules::default());
    told.at(0, DAY, shown(&[request("r1")]));
    assert_eq!(told.at(5, DAY, Input::Woken), ["tell r1"]);
    assert_eq!(told.at(6, DAY, shown(&[request("r1"), request("r2")])), NOTHING);
    assert_eq!(told.at(11, DAY, Input::Woken), ["tell r2"]);
    assert_eq!(told.at(12, DAY, shown(&[idle(12)])), ["withdraw r1", "withdraw r2"]);
    assert_eq!(told.at(30, DAY, Input::Woken), NOTHING);
    let next = told.herald.next_timeout(Timestamp(START + 30_000));
    assert_eq!(next, Some(Timestamp(START + 71_000)));
    let tag = idle(12).tag;
    assert_eq!(told.at(71, DAY, Input::Woken), [format!("tell {tag}")]);
}

#[test]
fn what_subagents_ask_is_told_together_and_not_before_a_cooldown_is_over() {
    let mut told = Told::by(Rules::default());
    let all = ["r1", "r2", "r3", "r4"].map(of_subagent);
    told.at(0, DAY, shown(&all[..2]));
    assert_eq!(told.at(5, DAY, Input::Woken), ["sum r1 r2"]);
    assert_eq!(told.at(6, DAY, shown(&all[..3])), NOTHING);
    assert_eq!(told.at(20, DAY, shown(&all)), NOTHING);
    assert_eq!(told.at(64, DAY, Input::Woken), NOTHING);
    assert_eq!(told.at(65, DAY, Input::Woken), ["sum r3 r4"]);
    // What the agent itself asks comes through, and the next of a subagent waits for that, too.
    let main = [request("m"), of_subagent("r5")];
    let withdrawn = told.at(126, DAY, shown(&main));
    assert_eq!(withdrawn.len(), 2, "{withdrawn:?}");
    assert_eq!(told.at(131, DAY, Input::Woken), ["tell m"]);
    assert_eq!(told.at(190, DAY, Input::Woken), NOTHING);
    assert_eq!(told.at(191, DAY, Input::Woken), ["tell r5"]);
}

#[test]
fn a_budget_whose_beginning_is_forgotten_by_a_restart_is_told_once() {
    let spent = |second: u64, beyond: &str| {
        let (session, since) = (SessionId::from("s"), Timestamp(START + second * 1_000));
        let matter = Matter::of_state(&session, Kind::Limit, since, "title", "text");
        matter.known_by(&session, &format!("session-usd-{beyond}"))
    };
    let mut told = Told::by(Rules::default());
    told.at(0, DAY, shown(&[spent(0, "0")]));
    assert_eq!(told.at(5, DAY, Input::Woken), ["tell limit:s:session-usd-0"]);
    let remembered = told.herald.remembered().clone();
    let mut again = Told { herald: Herald::new(Rules::default(), remembered) };
    assert_eq!(again.at(600, DAY, shown(&[spent(600, "0")])), NOTHING);
    assert_eq!(again.at(900, DAY, Input::Woken), NOTHING);
    // Hidden by something more urgent, it is no other one afterwards.
    again.at(901, DAY, shown(&[request("r1")]));
    again.at(902, DAY, shown(&[spent(902, "0")]));
    assert_eq!(again.at(999, DAY, Input::Woken), NOTHING);
    // The operator let it go on, and as much again is spent.
    again.at(1_000, DAY, shown(&[]));
    again.at(1_100, DAY, shown(&[spent(1_100, "5.1")]));
    assert_eq!(again.at(1_160, DAY, Input::Woken), ["tell limit:s:session-usd-5.1"]);
}

#[test]
fn a_state_that_a_later_signal_confirms_is_the_same_one() {
    let mut told = Told::by(Rules::default());
    told.at(0, DAY, shown(&[idle(0)]));
    assert_eq!(told.at(5, DAY, Input::Woken).len(), 1);
    assert_eq!(told.at(60, DAY, shown(&[idle(60)])), NOTHING);
    assert_eq!(told.at(300, DAY, Input::Woken), NOTHING);
}

#[test]
fn what_a_rule_answers_is_told_only_if_that_fails() {
    let mut told = Told::by(Rules::default());
    let (key, since) = (RequestKey::from("r1"), Timestamp(START));
    let how = (Answering::UnderWay, Asker::Main);
    let under_way = Matter::of_request(key, Kind::Permission, how, since, "title", "text");
    told.at(0, DAY, shown(std::slice::from_ref(&under_way)));
    assert_eq!(told.at(60, DAY, Input::Woken), NOTHING);
    assert_eq!(told.herald.next_timeout(Timestamp(START + 60_000)), None);
    assert_eq!(told.at(61, DAY, shown(&[request("r1")])), ["tell r1"]);
}

#[test]
fn a_night_ends_with_one_summary_of_what_still_stands() {
    let quiet = vec![Quiet::read("22:00-07:00").expect("a night")];
    let mut told = Told::by(Rules { quiet, ..Rules::default() });
    let three = [request("r1"), request("r2"), request("r3")];
    told.at(0, 1_400, shown(&three));
    assert_eq!(told.at(60, 1_401, Input::Woken), NOTHING);
    assert_eq!(told.at(120, 1_402, shown(&three[..2])), NOTHING);
    assert_eq!(told.at(900, 420, Input::Woken), ["sum r1 r2"]);
    assert_eq!(told.at(901, 420, shown(&three[..1])), NOTHING);
    let summary = format!("withdraw summary:{}", START + 900_000);
    assert_eq!(told.at(902, 420, shown(&[])), [summary]);
}

#[test]
fn nothing_is_told_while_somebody_looks_and_an_open_request_once_they_have_gone() {
    let mut told = Told::by(Rules::default());
    told.at(0, DAY, Input::Focus(true));
    told.at(0, DAY, shown(&[request("r1")]));
    assert_eq!(told.at(600, DAY, Input::Woken), NOTHING);
    assert_eq!(told.at(700, DAY, Input::Focus(false)), NOTHING);
    assert_eq!(told.at(759, DAY, Input::Woken), NOTHING);
    assert_eq!(told.at(760, DAY, Input::Woken), ["tell r1"]);
}

#[test]
fn everything_is_bounded() {
    let mut told = Told::by(Rules { dwell_ms: 0, ..Rules::default() });
    let mut count = 0;
    for session in 0..NOTICE_SESSIONS_MAX + 10 {
        let matters: Vec<Matter> = (0..if session == 0 { NOTICE_MATTERS_MAX + 10 } else { 2 })
            .map(|matter| request(&format!("r{session}-{matter}")))
            .collect();
        let situation = Situation { session: SessionId::new(format!("s{session}")), matters };
        count += told.at(1, DAY, Input::Shown(situation)).len();
    }
    assert_eq!(count, NOTICE_MATTERS_MAX + 2 * (NOTICE_SESSIONS_MAX - 1));
    assert_eq!(told.herald.remembered().iter().count(), NOTICES_REMEMBERED_MAX);
}
