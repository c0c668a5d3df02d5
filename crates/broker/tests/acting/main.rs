//! The broker answers: what is carried is on record first, once, and closes by the agent's own
//! signals alone; and what the operator's rules answer needs nobody, and what they limit calls somebody.

mod answering;
mod budgets;
mod client_switch;
mod deck;
mod fitting;
mod recording;
mod ruling;
mod scopes;
mod sending_again;
mod served;
