//! The finished turn: whether an agent's last message asks, breaks off, or delivers.
//!
//! Pure, and no model is asked: a table of signs (`spec/finished-turn.md`) is tried from the top,
//! and the first sign found decides. Invariant: the same message always gets the same judgement.

mod announcing;
mod asking;
mod breaking_off;
mod masking;
mod sentence;
mod text;
// The tables are set by hand, several words to a line.
#[rustfmt::skip]
mod words;

use serde::{Deserialize, Serialize};

use self::asking::Talk;
use self::text::Message;

/// What is known about a turn that has ended.
#[derive(Debug, Clone, Copy, Default)]
pub struct FinishedTurn<'a> {
    pub last_message: Option<&'a str>,
    /// The client says that the reply reached its length limit.
    pub cut_off: bool,
}

/// What the operator does with a finished turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// It asks for something the agent needs before it can go on.
    Asks,
    /// It stopped in the middle of work.
    MidWork,
    /// Everything else: done, answered, refused, acknowledged.
    Delivered,
}

/// How a finished turn was read, and by which row of `spec/finished-turn.md`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judgement {
    pub ending: Ending,
    pub sign: Sign,
    /// Between 0 and 1: how far the sign is trusted, an estimate per row.
    pub confidence: f32,
}

/// The rows of `spec/finished-turn.md`, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sign {
    NoText,
    CutOff,
    OpenFence,
    OpenRow,
    OpenItem,
    OpenHeading,
    Blocked,
    Needs,
    Promise,
    Order,
    QuestionList,
    Question,
    BrokenOff,
    OpenColon,
    Announcement,
    Ellipsis,
    OpenBoxes,
    Offer,
    NothingOpen,
}

/// Reads the last message of a turn that has just ended.
pub fn judge(turn: &FinishedTurn<'_>) -> Judgement {
    let text = turn.last_message.unwrap_or_default();
    let sign = if text.trim().is_empty() {
        Sign::NoText
    } else if turn.cut_off {
        Sign::CutOff
    } else {
        let message = Message::read(text);
        let talk = Talk::of(&message);
        let found = Sign::ALL.iter().copied().find(|sign| sign.is_in(&message, &talk));
        found.unwrap_or(Sign::NothingOpen)
    };
    Judgement { ending: sign.ending(), sign, confidence: sign.confidence() }
}

impl Sign {
    /// In order of precedence.
    pub const ALL: [Self; 19] = [
        Self::NoText,
        Self::CutOff,
        Self::OpenFence,
        Self::OpenRow,
        Self::OpenItem,
        Self::OpenHeading,
        Self::Blocked,
        Self::Needs,
        Self::Promise,
        Self::Order,
        Self::QuestionList,
        Self::Question,
        Self::BrokenOff,
        Self::OpenColon,
        Self::Announcement,
        Self::Ellipsis,
        Self::OpenBoxes,
        Self::Offer,
        Self::NothingOpen,
    ];

    /// The name of its row.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoText => "no_text",
            Self::CutOff => "cut_off",
            Self::OpenFence => "open_fence",
            Self::OpenRow => "open_row",
            Self::OpenItem => "open_item",
            Self::OpenHeading => "open_heading",
            Self::Blocked => "blocked",
            Self::Needs => "needs",
            Self::Promise => "promise",
            Self::Order => "order",
            Self::QuestionList => "question_list",
            Self::Question => "question",
            Self::BrokenOff => "broken_off",
            Self::OpenColon => "open_colon",
            Self::Announcement => "announcement",
            Self::Ellipsis => "ellipsis",
            Self::OpenBoxes => "open_boxes",
            Self::Offer => "offer",
            Self::NothingOpen => "nothing_open",
        }
    }

    pub fn ending(self) -> Ending {
        match self {
            Self::Blocked
            | Self::Needs
            | Self::Promise
            | Self::Order
            | Self::QuestionList
            | Self::Question => Ending::Asks,
            Self::NoText
            | Self::CutOff
            | Self::OpenFence
            | Self::OpenRow
            | Self::OpenItem
            | Self::OpenHeading => Ending::MidWork,
            Self::BrokenOff
            | Self::OpenColon
            | Self::Announcement
            | Self::Ellipsis
            | Self::OpenBoxes => Ending::MidWork,
            Self::Offer | Self::NothingOpen => Ending::Delivered,
        }
    }

    /// Between 0 and 1: an estimate, by row.
    pub fn confidence(self) -> f32 {
        match self {
            Self::CutOff | Self::OpenFence => 0.98,
            Self::OpenRow | Self::OpenItem | Self::OpenHeading | Self::OpenColon => 0.95,
            Self::Blocked | Self::Needs | Self::QuestionList | Self::Question | Self::Offer => 0.9,
            Self::Promise | Self::Order | Self::Announcement | Self::Ellipsis => 0.85,
            Self::NothingOpen | Self::BrokenOff => 0.8,
            Self::OpenBoxes => 0.7,
            Self::NoText => 0.5,
        }
    }

    fn is_in(self, message: &Message, talk: &Talk<'_>) -> bool {
        match self {
            // Known before the message is read.
            Self::NoText | Self::CutOff => false,
            Self::OpenFence => message.ends_inside_fence,
            Self::OpenRow => breaking_off::in_a_table_row(message),
            Self::OpenItem => breaking_off::at_an_empty_item(message),
            Self::OpenHeading => breaking_off::at_a_heading(message),
            Self::Blocked => talk.is_blocked(),
            Self::Needs => talk.names_a_need(),
            Self::Promise => talk.promises_on_condition(),
            Self::Order => talk.orders_the_reader(),
            Self::QuestionList => talk.lists_questions(),
            Self::Question => talk.puts_a_question(),
            Self::BrokenOff => breaking_off::in_a_sentence(message),
            Self::OpenColon => breaking_off::at_a_colon(message),
            Self::Announcement => announcing::says_what_is_next(message),
            Self::Ellipsis => breaking_off::at_an_ellipsis(message),
            Self::OpenBoxes => breaking_off::among_its_boxes(message),
            Self::Offer => talk.offers_more(),
            Self::NothingOpen => true,
        }
    }
}
