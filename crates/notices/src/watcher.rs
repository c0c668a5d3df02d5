//! The task beside the loop: the board's changes in, notices out.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use qd_broker::Card;
use qd_broker::news::BoardNews;
use qd_daemon::runtime::{Board, Handle};
use qd_session::moment::Timestamp;
use qd_session::operator::notice::{Herald, Input, Moment, Situation};
use qd_session::operator::{Group, Urgency};
use tokio::sync::watch;
use tokio::time::sleep;
use tracing::warn;

use super::Notices;
use super::message::Message;
use super::private_file::PrivateFile;
use super::situation::situation_of;

/// How long the notices wait between two looks whether everything has been read at the start.
const NOTICE_START_LOOK: Duration = Duration::from_millis(250);

/// Longest sleep of the notices: a machine that was suspended wakes with another time.
const NOTICE_SLEEP_MAX: Duration = Duration::from_secs(60);

pub struct Watcher {
    pub notices: Notices,
    pub herald: Herald,
    pub told: PrivateFile,
    /// Seconds that the operator's clock is ahead of UTC.
    pub offset: Box<dyn FnMut(Timestamp) -> i32 + Send>,
    pub looks: watch::Receiver<bool>,
}

impl Watcher {
    /// Until the loop ends.
    pub async fn run(mut self, handle: Handle) {
        // While old files are being read sessions pass through states of long ago.
        while let Ok(health) = handle.health().await {
            if health.caught_up {
                break;
            }
            sleep(NOTICE_START_LOOK).await;
        }
        while let Ok(board) = handle.board_of(open_matters).await {
            self.follow(board).await;
        }
    }

    /// Until some changes were missed, or the loop has ended; the next question tells which.
    async fn follow(&mut self, board: Board<(Place, Situation)>) {
        let Board { mut cards, mut changes, .. } = board;
        cards.sort_by_key(|(place, _)| *place);
        self.hand_in(Input::Board(cards.into_iter().map(|(_, situation)| situation).collect()));
        self.look();
        loop {
            let pause = self.until_wake();
            let input = tokio::select! {
                biased;
                // Who began to look is known before what they then see.
                Ok(()) = self.looks.changed() => {
                    self.look();
                    continue;
                }
                change = changes.recv() => match change.as_deref() {
                    Ok(change) => match &change.news {
                        BoardNews::Shown(card) => Input::Shown(situation_of(card)),
                        BoardNews::Removed(session) => Input::Removed(session.clone()),
                        BoardNews::Today(_)
                        | BoardNews::Unreadable(_)
                        | BoardNews::Changed(_)
                        | BoardNews::Streamed(_) => continue,
                    },
                    Err(_) => return,
                },
                () = sleep(pause) => Input::Woken,
            };
            self.hand_in(input);
        }
    }

    fn look(&mut self) {
        let is_focused = *self.looks.borrow_and_update();
        self.hand_in(Input::Focus(is_focused));
    }

    fn hand_in(&mut self, input: Input) {
        let moment = self.moment();
        let notices = self.herald.handle(moment, input);
        if notices.is_empty() {
            return;
        }
        // On disk first. On a disk that is full the operator is told all the same: after a restart
        // perhaps once more.
        if let Err(error) = self.told.write_json(self.herald.remembered()) {
            warn!(%error, "what was told is not kept");
        }
        for notice in &notices {
            self.notices.tell(&Arc::new(Message::of(notice)));
        }
    }

    fn until_wake(&self) -> Duration {
        let now = now();
        let next =
            self.herald.next_timeout(now).map(|next| Duration::from_millis(next.ms_since(now)));
        next.map_or(NOTICE_SLEEP_MAX, |next| next.min(NOTICE_SLEEP_MAX))
    }

    fn moment(&mut self) -> Moment {
        const DAY_MINUTES: i64 = 24 * 60;
        let at = now();
        let local_s = i64::try_from(at.0 / 1_000).unwrap_or(0) + i64::from((self.offset)(at));
        let minute = (local_s.div_euclid(60)).rem_euclid(DAY_MINUTES);
        Moment { at, minute: u16::try_from(minute).unwrap_or(0) }
    }
}

/// Where a card stands on the board.
type Place = (Group, Urgency, usize, u64);

/// What a card gives to tell; a session without any is as good as gone.
fn open_matters(card: Card) -> Option<(Place, Situation)> {
    let situation = situation_of(&card);
    (!situation.matters.is_empty()).then(|| (card.agent_state.place(), situation))
}

fn now() -> Timestamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(u64::try_from(now.as_millis()).unwrap_or(u64::MAX))
}
