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
        || (said.says_any(words::KEPT_IN_MIND) && !keeps_at_it(said))
        || said.says_any(words::OPINIONS)
        || speaks_of_something_else(said)
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
        || said.without_opening(words::THEN).opens_with(words::SUBJECTLESS)
        || said.last_word() == "next"
        || says_a_step(said)
}

/// "I'll keep watching it": the work at hand, not a promise about manners.
fn keeps_at_it(said: &Sentence) -> bool {
    words::GOING_ON.iter().any(|verb| said.says(&format!("i'll keep {verb}")))
        || said.says("i'll keep an eye")
}

/// "Running the tests now": an activity without a verb that would make it a subject.
fn is_going_on(clause: &Sentence) -> bool {
    let clause = clause.without_opening(words::THEN);
    (clause.opens_with(words::GOING_ON) || opens_with_an_activity(&clause))
        && !clause.says_any(words::FINITE)
}

fn opens_with_an_activity(clause: &Sentence) -> bool {
    clause.clause_openings().next().is_some_and(|(verb, object)| {
        verb.ends_with("ing")
            && verb.len() > "thing".len()
            && !words::NOT_GOING_ON.contains(&verb)
            && words::ACTED_ON.contains(&object)
    })
}

/// "I'm running the tests."
fn is_at_it(said: &Sentence) -> bool {
    said.says_any(&["i'm *ing", "i am *ing"]) && !said.says_any(words::STANDING)
}

/// "Now the frontend."
fn is_bare_next(said: &Sentence) -> bool {
    let said = said.without_opening(words::BEFORE_NEXT);
    said.opens_with(words::BARE_NEXT) && said.word_count() <= 4 && !said.says_any(words::FINITE)
}

/// A first person that no pronoun shows: "Lanzo las pruebas", "修正します", "我从模型开始".
fn says_a_step(said: &Sentence) -> bool {
    said.clause_openings().any(|(first, second)| {
        let acts_on = words::ARTICLES.contains(&second) || second.starts_with("l'");
        (is_romance_step(first) && acts_on)
            || (words::OBJECTS.contains(&first) && is_romance_step(second))
    }) || (said.last_word().ends_with("します") && !said.says_any(words::STATES_JA))
        || (said.last_word().starts_with('我') && !said.says_any(words::NO_STEPS_ZH))
}

/// A word that has the shape of a first-person verb in Spanish, Portuguese and Italian.
fn is_romance_step(word: &str) -> bool {
    word.ends_with('o')
        && word.chars().count() >= 4
        && !words::PARTICIPLES.iter().any(|ending| word.ends_with(ending))
        && !words::NO_STEPS.contains(&word)
}

/// Japanese and Korean leave "I" out, so a topic of its own makes the sentence one about that.
fn speaks_of_something_else(said: &Sentence) -> bool {
    said.is_unspaced() && said.says_any(words::DESCRIBES) && !said.says_any(words::OWN_TOPICS)
}
