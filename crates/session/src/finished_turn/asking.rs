//! Signs that the agent asks for something it needs before it can go on.
//!
//! Pure. A courtesy at the end of finished work ("anything else?") is told from a need here.

use super::sentence::{Mark, Sentence};
use super::text::{Block, Kind, Message};
use super::words;

/// A message with its courtesies marked, so that no sign takes one for a request.
#[derive(Debug)]
pub struct Talk<'a> {
    message: &'a Message,
    remarks: Vec<Remark<'a>>,
    stands_still: bool,
}

/// A sentence and where it stands: the block, and the place in it.
#[derive(Debug)]
struct Remark<'a> {
    block: usize,
    nth: usize,
    said: &'a Sentence,
    is_courtesy: bool,
}

impl<'a> Talk<'a> {
    pub fn of(message: &'a Message) -> Self {
        let mut remarks = Vec::new();
        for (at, block) in message.blocks.iter().enumerate() {
            for (nth, said) in block.sentences.iter().enumerate() {
                let is_courtesy = is_courtesy(message, at, said);
                remarks.push(Remark { block: at, nth, said, is_courtesy });
            }
        }
        let stands_still = message.blocks.iter().any(meets_an_obstacle);
        Self { message, remarks, stands_still }
    }

    pub fn is_blocked(&self) -> bool {
        let waits_for_work =
            |said: &Sentence| said.says_any(words::WAITING) && ends_with_work(said);
        let has_a_step_first =
            |said: &Sentence| said.says("before i can") && said.opens_with(words::OWN_STEPS);
        let halts = |said: &Sentence| {
            said.says_any(words::BLOCKED)
                && !said.says_any(words::WAIT)
                && !said.says_any(words::NOT_BLOCKED)
                && !waits_for_work(said)
                && !has_a_step_first(said)
        };
        self.statements().any(|remark| halts(remark.said)) || self.is_left_to_reader()
    }

    fn is_left_to_reader(&self) -> bool {
        let last = self.message.blocks.iter().rfind(|block| block.kind == Kind::Paragraph);
        let leaves = |said: &Sentence| {
            said.says_any(words::LEFT_TO_READER) && !said.says_any(words::DECIDED)
        };
        last.is_some_and(|block| block.sentences.iter().any(leaves))
    }

    pub fn names_a_need(&self) -> bool {
        self.statements().any(|remark| is_need(remark.said))
    }

    pub fn promises_on_condition(&self) -> bool {
        let promises = |said: &Sentence| {
            (said.says_any(words::PROMISES) && !ends_with_work(said)) || is_deed_for_promise(said)
        };
        self.statements().any(|remark| promises(remark.said))
    }

    pub fn orders_the_reader(&self) -> bool {
        self.statements().any(|remark| {
            let said = remark.said;
            let block = &self.message.blocks[remark.block];
            match block.kind {
                Kind::Paragraph => !said.says_any(words::WAIT) && is_order(said, self.stands_still),
                // The steps of a list are for whoever follows it, unless they speak of the agent.
                Kind::Item(_) => said.says("me") && said.says_any(words::ORDERS),
                Kind::Heading | Kind::Code | Kind::Table | Kind::Quotation => false,
            }
        })
    }

    /// Questions as list items are the agent's own only when the line above them says so;
    /// otherwise they are the content of a form, a guide or a review.
    pub fn lists_questions(&self) -> bool {
        let blocks = &self.message.blocks;
        self.questions()
            .filter(|remark| blocks[remark.block].is_item())
            .any(|remark| questions_follow(&introduction(blocks, remark.block)))
    }

    pub fn puts_a_question(&self) -> bool {
        let blocks = &self.message.blocks;
        self.questions()
            .filter(|remark| {
                blocks[remark.block].kind == Kind::Paragraph || self.ends_last_item(remark)
            })
            .any(|remark| self.is_put_to_reader(remark))
    }

    fn is_put_to_reader(&self, question: &Remark<'_>) -> bool {
        let after = &self.message.blocks[question.block].sentences[question.nth + 1..];
        // "(y/n)" after a question belongs to it.
        match after.first().filter(|next| next.word_count() > 2 || next.mark == Mark::Stop) {
            Some(next) => is_left_open(question.said, next),
            None => self.ends_the_talk(question.block) || question.said.says_any(words::ADDRESSED),
        }
    }

    /// A question after other words in the last item of a list closes the message, not the list.
    fn ends_last_item(&self, question: &Remark<'_>) -> bool {
        let block = &self.message.blocks[question.block];
        let is_last = question.block + 1 == self.message.blocks.len();
        block.is_item() && is_last && question.nth > 0 && question.nth + 1 == block.sentences.len()
    }

    fn ends_the_talk(&self, block: usize) -> bool {
        let later = &self.message.blocks[block + 1..];
        !later.iter().any(|block| block.kind == Kind::Paragraph)
    }

    pub fn offers_more(&self) -> bool {
        self.remarks.iter().any(|remark| remark.is_courtesy)
    }

    fn statements(&self) -> impl Iterator<Item = &Remark<'a>> {
        self.remarks
            .iter()
            .filter(|remark| remark.said.mark != Mark::Question && !remark.is_courtesy)
    }

    fn questions(&self) -> impl Iterator<Item = &Remark<'a>> {
        self.remarks
            .iter()
            .filter(|remark| remark.said.mark == Mark::Question && !remark.is_courtesy)
    }
}

fn is_need(said: &Sentence) -> bool {
    let own_work = || said.says_any(words::OWN_WORK) && !said.says_any(words::NEEDS_TO_LEARN);
    said.says_any(words::NEEDS) && !said.says_any(words::NEEDS_NOTHING) && !own_work()
}

/// "Connect it and I'll go on": an order, and what the agent will do for it.
fn is_deed_for_promise(said: &Sentence) -> bool {
    said.says_any(words::IN_RETURN)
        && !said.opens_with(words::SUBJECTS)
        && !said.opens_with(words::GOING_ON)
        && !said.says("i .. and i'll")
}

/// What is waited for is the end of work that runs, and nothing that the reader does.
fn ends_with_work(said: &Sentence) -> bool {
    said.says_any(words::WORK_ENDS) && !said.says_any(words::READER_ENDS)
}

/// "Have a look at it before I merge": the agent holds still for what the reader is to do.
fn is_due_before_the_agent(said: &Sentence) -> bool {
    let past = |verb: &&str| said.says(&format!("before i {verb}"));
    said.says("before i")
        && said.mark != Mark::Colon
        && !words::PAST_VERBS.iter().any(past)
        && !said.opens_with(words::FIRST_PERSON)
}

fn is_order(said: &Sentence, stands_still: bool) -> bool {
    let opening = said.without_opening(words::BEFORE_ORDERS);
    let hands_over = || stands_still || said.says_any(words::HANDED_OVER);
    (said.says_any(words::ORDERS) && !said.says_any(words::OWN_REPORTS))
        || is_due_before_the_agent(said)
        || opening.opens_with(words::OPENING_ORDERS)
        || (stands_still
            && opening.opens_with(words::REQUESTS)
            && !said.says_any(words::FOR_THE_READER))
        || (stands_still && said.says_any(words::REQUIRED_OF_YOU))
        || (said.says_any(words::PLEASE) && hands_over())
}

/// What stands above a list: the block before it and the heading over both.
fn introduction(blocks: &[Block], item: usize) -> Vec<&Block> {
    let Some(above) = blocks[..item].iter().rposition(|block| !block.is_item()) else {
        return Vec::new();
    };
    let heading = blocks[..above].iter().rfind(|block| block.kind == Kind::Heading);
    std::iter::once(&blocks[above]).chain(heading).collect()
}

fn questions_follow(introduction: &[&Block]) -> bool {
    let says = |phrases: &[&str]| introduction.iter().any(|block| block.says_any(phrases));
    introduction.is_empty() || (says(words::QUESTIONS_FOLLOW) && !says(words::QUESTIONS_QUOTED))
}

/// A question that the writer goes on to answer is not one for the reader.
fn is_left_open(question: &Sentence, next: &Sentence) -> bool {
    // Where words are not spaced, "why" stands anywhere and an answer repeats the question's verb.
    let unspaced = question.is_unspaced();
    let asks_why = question.opens_with(words::WHY) || (unspaced && question.says_any(words::WHY));
    let echoes = unspaced && question.opens_like(next);
    let answers = next.opens_with(words::ANSWERS) && !next.opens_with(words::CANNOT);
    if asks_why || echoes || answers {
        return false;
    }
    let waits = next.mark == Mark::Question
        || next.opens_with(words::DEPENDING)
        || next.opens_with(words::REMARKS)
        || next.says_any(words::CANNOT);
    waits || unspaced || question.says_any(words::ADDRESSED)
}

/// More work that nobody has to decide on now.
pub fn is_courtesy(message: &Message, block: usize, said: &Sentence) -> bool {
    if said.mark != Mark::Question {
        return said.says_any(words::OFFERS) && !said.says_any(words::OFFER_IS_REQUEST);
    }
    if said.says_any(words::ANYTHING_ELSE) {
        return true;
    }
    let is_pick = || said.says_any(words::ASKS_WHICH);
    if is_choice(said) || is_pick() || !has_said_something(message) {
        return false;
    }
    let is_brief = || said.word_count() <= 3 && !said.is_unspaced();
    let adds =
        || said.says_any(words::ADDITIONS) && (said.says_any(words::PROPOSALS) || is_brief());
    let is_soft = || said.says_any(words::SOFT_PROPOSALS) && !said.says_any(words::RISKY);
    (adds() || is_soft()) && !follows_an_obstacle(message, block)
}

fn is_choice(said: &Sentence) -> bool {
    let or = || said.says_any(words::OR_UNLESS_PORTUGUESE) && !said.says_any(words::PORTUGUESE);
    said.says_any(words::CHOICES) || or()
}

/// More than a greeting: there is work that the courtesy follows.
fn has_said_something(message: &Message) -> bool {
    let sentences = message.blocks.iter().flat_map(|block| &block.sentences);
    sentences.filter(|said| said.mark != Mark::Question).any(|said| said.word_count() > 1)
        || message.blocks.len() > 1
}

/// The obstacle that a proposal would get around stands right before it.
fn follows_an_obstacle(message: &Message, block: usize) -> bool {
    message.blocks[block.saturating_sub(1)..=block].iter().any(meets_an_obstacle)
}

fn meets_an_obstacle(block: &Block) -> bool {
    block.kind == Kind::Paragraph && block.says_any(words::OBSTACLES)
}
