//! Placeholder interface until the table lands.
#[derive(Debug)]
pub struct FinishedTurn<'a> {
    pub last_message: Option<&'a str>,
    pub cut_off: bool,
}
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Asks,
    MidWork,
    Delivered,
}
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    NoText,
    Plain,
}
impl Sign {
    pub fn name(self) -> &'static str {
        match self {
            Sign::NoText => "no_text",
            Sign::Plain => "plain",
        }
    }
}
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judgement {
    pub ending: Ending,
    pub sign: Sign,
    pub confidence: f32,
}
pub fn judge(turn: &FinishedTurn<'_>) -> Judgement {
    match turn.last_message {
        None => Judgement { ending: Ending::MidWork, sign: Sign::NoText, confidence: 0.8 },
        Some(_) => Judgement { ending: Ending::Delivered, sign: Sign::Plain, confidence: 0.8 },
    }
}
