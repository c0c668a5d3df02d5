//! A world with two sessions, their requests and states, an operator who comes and goes, nights,
//! and a daemon that is restarted. It knows by itself what may be told, and watches what is.

use std::collections::{BTreeMap, BTreeSet};

use qd_session::id::{NoticeTag, RequestKey, SessionId};
use qd_session::moment::Timestamp;
use qd_session::operator::notice::{
    Answering, Asker, Ground, Herald, Input, Kind, Matter, Moment, Notice, Phase, Quiet,
    Remembered, Rules, Situation,
};

pub const SESSIONS: [&str; 2] = ["sess_a", "sess_b"];
pub const UNWANTED: Kind = Kind::Delivered;
const START: u64 = 1_800_000_000_000;
const NIGHT: u16 = 100;
const DAY: u16 = 700;

pub struct World {
    pub herald: Herald,
    pub now: u64,
    pub focused: bool,
    pub focus_lost: u64,
    pub quiet: bool,
    pub sessions: BTreeMap<SessionId, Vec<Matter>>,
    /// When each open matter was first shown to this run.
    opened: BTreeMap<NoticeTag, u64>,
    pub told: BTreeMap<NoticeTag, NoticeTag>,
    pub withdrawn: BTreeSet<NoticeTag>,
    told_at: BTreeMap<SessionId, u64>,
    /// How often the operator let a spent budget go on, and of which the operator was told.
    rounds: BTreeMap<SessionId, u64>,
    budgets_told: BTreeSet<(SessionId, u64)>,
    serial: u64,
    dice: u64,
    pub rows: BTreeSet<[String; 5]>,
}

pub fn rules() -> Rules {
    let mut rules =
        Rules { quiet: vec![Quiet::read("00:00-06:00").expect("a night")], ..Rules::default() };
    assert!(!rules.kinds.contains(&UNWANTED));
    rules.kinds.insert(Kind::Idle);
    rules
}

impl World {
    pub fn new(seed: u64) -> Self {
        Self {
            herald: Herald::new(rules(), Remembered::default()),
            now: START,
            focused: false,
            focus_lost: 0,
            quiet: false,
            sessions: SESSIONS.iter().map(|id| (SessionId::from(*id), Vec::new())).collect(),
            opened: BTreeMap::new(),
            told: BTreeMap::new(),
            withdrawn: BTreeSet::new(),
            told_at: BTreeMap::new(),
            rounds: BTreeMap::new(),
            budgets_told: BTreeSet::new(),
            serial: 0,
            dice: seed,
            rows: BTreeSet::new(),
        }
    }

    pub fn roll(&mut self, sides: u64) -> u64 {
        self.dice = self.dice.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.dice ^ (self.dice >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    /// Something happens.
    pub fn step(&mut self) {
        let session = SessionId::from(SESSIONS[usize::from(self.roll(2) == 1)]);
        match self.roll(16) {
            0..=2 => self.open_request(&session),
            3..=4 => self.change_state(&session),
            5..=6 => self.close_one(&session),
            7 => self.change_answer(&session),
            8 => self.look(),
            9 => self.quiet = !self.quiet,
            10 => return self.restart(),
            11 => {
                // A card that has left the board may come back as it was.
                if self.roll(2) == 0 {
                    self.sessions.insert(session.clone(), Vec::new());
                }
                return self.hand_in(Input::Removed(session));
            }
            12 => return self.hand_in(Input::Focus(self.focused)),
            13 => self.now += 61_000,
            14 => self.now += 1_000,
            _ => self.now += 5_000,
        }
        let situation = self.situation(&session);
        let input = match self.roll(3) {
            0 => Input::Woken,
            1 => Input::Board(self.board()),
            _ => Input::Shown(situation),
        };
        self.hand_in(Input::Focus(self.focused));
        self.hand_in(input);
        // Sooner or later everything is shown.
        let board = self.board();
        self.hand_in(Input::Board(board));
    }

    /// By day, with nobody at the page, for longer than any rule waits.
    pub fn calm(&mut self) {
        self.quiet = false;
        if self.focused {
            self.look();
        }
        self.hand_in(Input::Focus(false));
        for session in SESSIONS {
            let matters = self.sessions.get_mut(&SessionId::from(session)).expect("there");
            matters.iter_mut().for_each(|matter| answer(matter, Answering::FromHere));
        }
        let board = self.board();
        self.hand_in(Input::Board(board));
        for _ in 0..8 {
            self.now += 61_000;
            self.hand_in(Input::Woken);
        }
    }

    pub fn board(&self) -> Vec<Situation> {
        self.sessions.keys().map(|session| self.situation(session)).collect()
    }

    fn situation(&self, session: &SessionId) -> Situation {
        let open = &self.sessions[session];
        // A state shows where no request is open.
        let has_request = open.iter().any(|matter| matter.ground != Ground::State);
        let shown = open.iter().filter(|matter| !has_request || matter.ground != Ground::State);
        Situation { session: session.clone(), matters: shown.cloned().collect() }
    }

    fn open_request(&mut self, session: &SessionId) {
        self.serial += 1;
        // Kinds of requests are all wanted; a delivered one stands for one that is not.
        let kind = [Kind::Permission, Kind::Question, Kind::Plan, UNWANTED][self.roll(4) as usize];
        let (asker, prefix) = match self.roll(3) {
            0 => (Asker::Subagent, SUBAGENT),
            _ => (Asker::Main, REQUEST),
        };
        let key = RequestKey::new(format!("{prefix}{}", self.serial));
        let (how, since) = ((Answering::FromHere, asker), Timestamp(self.now));
        let matter = Matter::of_request(key, kind, how, since, "title", "text");
        self.sessions.get_mut(session).expect("there").push(matter);
    }

    fn change_state(&mut self, session: &SessionId) {
        let kind = [Kind::Idle, Kind::Error, Kind::Limit, UNWANTED][self.roll(4) as usize];
        let age = [0, 0, 2_000, 700_000][self.roll(4) as usize];
        let state = self.state(session, kind, Timestamp(self.now - age));
        let matters = self.sessions.get_mut(session).expect("there");
        match matters.iter().position(|matter| matter.ground == Ground::State) {
            Some(at) => {
                if matters.remove(at).kind == Kind::Limit {
                    // Somebody has said that it may go on.
                    *self.rounds.entry(session.clone()).or_default() += 1;
                }
            }
            None => matters.push(state),
        }
    }

    /// Since when a budget is spent nobody remembers: it is known by how often it was.
    fn state(&self, session: &SessionId, kind: Kind, since: Timestamp) -> Matter {
        let matter = Matter::of_state(session, kind, since, "title", "text");
        let round = self.rounds.get(session).copied().unwrap_or_default();
        match kind == Kind::Limit {
            true => matter.known_by(session, &format!("session-usd-{round}")),
            false => matter,
        }
    }

    fn close_one(&mut self, session: &SessionId) {
        let count = self.sessions[session].len() as u64;
        if count > 0 {
            let at = self.roll(count) as usize;
            self.sessions.get_mut(session).expect("there").remove(at);
        }
    }

    fn change_answer(&mut self, session: &SessionId) {
        let to = if self.roll(2) == 0 { Answering::UnderWay } else { Answering::FromHere };
        let matters = self.sessions.get_mut(session).expect("there");
        matters.iter_mut().for_each(|matter| answer(matter, to));
    }

    fn look(&mut self) {
        self.focused = !self.focused;
        if !self.focused {
            self.focus_lost = self.now;
        }
    }

    /// What was remembered goes through a file.
    fn restart(&mut self) {
        let kept = serde_json::to_string(self.herald.remembered()).expect("JSON");
        let remembered = serde_json::from_str(&kept).expect("what was kept");
        self.herald = Herald::new(rules(), remembered);
        self.opened.clear();
        self.told_at.clear();
        // A spent budget is first seen to be spent when we begin to look.
        for session in SESSIONS.map(SessionId::from) {
            let spent = self.state(&session, Kind::Limit, Timestamp(self.now));
            let matters = self.sessions.get_mut(&session).expect("there");
            let budgets = matters.iter_mut().filter(|matter| matter.kind == Kind::Limit);
            budgets.for_each(|budget| *budget = spent.clone());
        }
        // The page comes back, or does not.
        self.focused = false;
        self.focus_lost = 0;
        let board = self.board();
        self.hand_in(Input::Board(board));
    }

    /// Hands it in, and holds what comes out against what may.
    fn hand_in(&mut self, input: Input) {
        let shown: Option<BTreeMap<SessionId, Vec<Matter>>> = match &input {
            Input::Board(board) => Some(listed(board.clone())),
            Input::Shown(situation) => Some(listed(vec![situation.clone()])),
            Input::Removed(session) => Some(BTreeMap::from([(session.clone(), Vec::new())])),
            Input::Focus(_) | Input::Woken => None,
        };
        let before = self.phases();
        let remembered = self.herald.remembered().clone();
        let minute = if self.quiet { NIGHT } else { DAY };
        let notices = self.herald.handle(Moment { at: Timestamp(self.now), minute }, input);
        let after = self.phases();
        for (_, matter) in shown.into_iter().flatten().flat_map(|(session, matters)| {
            matters.into_iter().map(move |matter| (session.clone(), matter))
        }) {
            if after.contains_key(&matter.tag) && !before.contains_key(&matter.tag) {
                self.opened.insert(matter.tag.clone(), self.now);
            }
        }
        notices.iter().for_each(|notice| self.check(notice, &before));
        self.note_rows(&before, &after, &remembered, &notices);
        for tag in before.keys().filter(|tag| !after.contains_key(*tag)) {
            self.opened.remove(tag);
        }
        self.check_withdrawn(&after);
        let next = self.herald.next_timeout(Timestamp(self.now));
        assert!(next.is_none_or(|next| next.0 > self.now), "it would never sleep: {next:?}");
    }

    fn phases(&self) -> Phases {
        let tags = self.opened.keys().chain(self.told.keys());
        let tags = tags.chain(self.sessions.values().flatten().map(|matter| &matter.tag));
        let tags: BTreeSet<&NoticeTag> = tags.collect();
        let sessions: Vec<SessionId> = SESSIONS.map(SessionId::from).into();
        let mut phases = BTreeMap::new();
        for tag in tags {
            let phase = sessions.iter().find_map(|session| self.herald.phase_of(session, tag));
            if let Some(phase) = phase {
                phases.insert(tag.clone(), (whose(tag), phase));
            }
        }
        phases
    }

    fn check(&mut self, notice: &Notice, before: &Phases) {
        let told_at = self.told_at.clone();
        match notice {
            Notice::Tell { session, matter } => {
                self.check_told(session, matter, &matter.tag, before, &told_at);
            }
            Notice::Sum { tag, matters } => {
                assert!(matters.len() > 1, "a summary of one");
                for (session, matter) in matters {
                    self.check_told(session, matter, tag, before, &told_at);
                }
            }
            Notice::Withdraw { tag } => {
                assert!(self.told.values().any(|told| told == tag), "{tag} was never told");
                assert!(self.withdrawn.insert(tag.clone()), "{tag} is withdrawn twice");
            }
        }
    }

    fn check_told(
        &mut self,
        session: &SessionId,
        matter: &Matter,
        notice: &NoticeTag,
        before: &Phases,
        told_at: &BTreeMap<SessionId, u64>,
    ) {
        let tag = &matter.tag;
        let twice = self.told.insert(tag.clone(), notice.clone());
        assert_eq!(twice, None, "{tag} is told twice");
        assert!(!self.focused, "{tag} is told although somebody looks");
        assert!(!self.quiet, "{tag} is told at night");
        assert_ne!(matter.kind, UNWANTED, "{tag}");
        if matter.kind == Kind::Limit {
            let round = self.rounds.get(session).copied().unwrap_or_default();
            assert!(self.budgets_told.insert((session.clone(), round)), "{tag} once more");
        }
        let opened = *self.opened.get(tag).expect("it is open");
        assert!(self.now >= opened + rules().dwell_ms, "{tag} before its dwell");
        let cools_down = match &matter.ground {
            Ground::Request { answering, asker, .. } => {
                assert_ne!(*answering, Answering::UnderWay, "{tag} is being answered");
                *asker == Asker::Subagent
            }
            Ground::State => true,
        };
        if cools_down {
            let held = before.get(tag).is_some_and(|(_, phase)| *phase == Phase::Held);
            let told_at = told_at.get(session).copied().unwrap_or_default();
            assert!(held || self.now >= told_at + rules().cooldown_ms, "{tag} too soon");
        }
        self.told_at.insert(session.clone(), self.now);
    }

    /// Whatever stands on a device stands for something that is open.
    fn check_withdrawn(&self, open: &Phases) {
        for notice in self.told.values().filter(|notice| !self.withdrawn.contains(*notice)) {
            let mut matters = self.told.iter().filter(|(_, stands)| *stands == notice);
            assert!(matters.any(|(matter, _)| open.contains_key(matter)), "{notice} is stale");
        }
    }

    /// What happened to each matter, as the table spells it.
    fn note_rows(
        &mut self,
        before: &Phases,
        after: &Phases,
        remembered: &Remembered,
        notices: &[Notice],
    ) {
        let tags: BTreeSet<&NoticeTag> = before.keys().chain(after.keys()).collect();
        for tag in tags {
            let (from, to) = (before.get(tag), after.get(tag));
            if from.map(|(_, phase)| name(*phase)) == to.map(|(_, phase)| name(*phase)) {
                continue;
            }
            let when = match (from, to) {
                (None, _) => self.opening(tag, remembered),
                (_, None) => "closes",
                _ if self.focused => "focused",
                _ if self.quiet => "quiet",
                _ => "time",
            };
            let stood = remembered.of(tag).and_then(|told| told.notice.clone());
            let says = notices.iter().find_map(|notice| match notice {
                Notice::Tell { matter, .. } => (matter.tag == *tag).then_some("tell"),
                Notice::Sum { matters, .. } => {
                    matters.iter().any(|(_, matter)| matter.tag == *tag).then_some("sum")
                }
                Notice::Withdraw { tag } => (stood.as_ref() == Some(tag)).then_some("withdraw"),
            });
            let cells = [
                whose(tag),
                from.map_or("-", |(_, phase)| name(*phase)),
                when,
                to.map_or("-", |(_, phase)| name(*phase)),
                says.unwrap_or("-"),
            ];
            self.rows.insert(cells.map(str::to_owned));
        }
    }

    fn opening(&self, tag: &NoticeTag, remembered: &Remembered) -> &'static str {
        let matter = self.sessions.values().flatten().find(|matter| matter.tag == *tag);
        let matter = matter.expect("it is open");
        let is_old = matter.ground == Ground::State && self.now - matter.since.0 >= 600_000;
        match remembered.of(tag) {
            Some(told) if told.notice.is_some() => "opens, told before",
            Some(_) => "opens, withdrawn before",
            None if matter.kind == UNWANTED => "opens, unwanted",
            None if is_old => "opens, old",
            None => "opens",
        }
    }
}

/// What stands under each tag, and how far it is told.
type Phases = BTreeMap<NoticeTag, (&'static str, Phase)>;

const REQUEST: &str = "req_";
const SUBAGENT: &str = "req_sub_";

/// In the table's words.
fn whose(tag: &NoticeTag) -> &'static str {
    match tag.as_str() {
        tag if tag.starts_with(SUBAGENT) => "subagent",
        tag if tag.starts_with(REQUEST) => "request",
        _ => "state",
    }
}

fn answer(matter: &mut Matter, to: Answering) {
    if let Ground::Request { answering, .. } = &mut matter.ground {
        *answering = to;
    }
}

fn listed(board: Vec<Situation>) -> BTreeMap<SessionId, Vec<Matter>> {
    board.into_iter().map(|situation| (situation.session, situation.matters)).collect()
}

pub fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::Waiting { .. } => "Waiting",
        Phase::Seen => "Seen",
        Phase::Held => "Held",
        Phase::Told => "Told",
        Phase::Silent => "Silent",
    }
}
