//! Signs that the agent said what it does next, and then did not do it.
//!
//! Pure. Only the end of the message counts: what was announced above has been done below.

use super::asking::is_courtesy;
use super::sentence::{Mark, Sentence};
use super::text::{Block, Kind, Message};
use super::words;

pub fn says_what_is_next(message: &Message) -> bool {
    let Some(last) =
        message.blocks.len().checked_sub(1).filter(|at| message.blocks[*at].is_prose())
    else {
        return false;
    };
    let announces = |at: usize| {
        let block = &message.blocks[at];
        if block.kind == Kind::Paragraph && block.says_any(words::HOLD_ON) {
            return true;
        }
        closing_sentence(block)
            .is_some_and(|said| is_announcement(said) && !is_courtesy(message, at, said))
    };
    announces(last)
        || (message.blocks[last].is_item() && above_the_list(message).is_some_and(announces))
}

/// The last sentence, or the one before it when the last only says how long it will take.
fn closing_sentence(block: &Block) -> Option<&Sentence> {
    let (last, before) = block.sentences.split_last()?;
    match before.last() {
        Some(previous) if last.opens_with(words::TAKES_TIME) => Some(previous),
        _ => Some(last),
    }
}

fn above_the_list(message: &Message) -> Option<usize> {
    let above = message.blocks.iter().rposition(|block| !block.is_item())?;
    (message.blocks[above].kind == Kind::Paragraph).then_some(above)
}

fn is_announcement(said: &Sentence) -> bool {
    if said.mark == Mark::Question
        || said.opens_with(words::CONDITIONS)
        || said.says_any(words::KEPT_IN_MIND)
        || said.says_any(words::OPINIONS)
    {
        return false;
    }
    if said.says_any(words::PAST) {
        return said.says_any(words::PAST_AND_NOW);
    }
    said.says_any(words::ANNOUNCES)
        || said.clauses().iter().any(is_going_on)
        || is_at_it(said)
        || is_bare_next(said)
}

/// "Running the tests now": an activity without a verb that would make it a subject.
fn is_going_on(clause: &Sentence) -> bool {
    clause.without_opening(words::THEN).opens_with(words::GOING_ON)
        && !clause.says_any(words::FINITE)
}

/// "I'm running the tests."
fn is_at_it(said: &Sentence) -> bool {
    words::GOING_ON
        .iter()
        .any(|verb| said.says(&format!("i'm {verb}")) || said.says(&format!("i am {verb}")))
}

/// "Now the frontend."
fn is_bare_next(said: &Sentence) -> bool {
    said.opens_with(words::BARE_NEXT) && said.word_count() <= 4 && !said.says_any(words::FINITE)
}
