//! Sessions that we drive, in the broker: pure, with a runner made of dice or of a script.

mod agents;
mod budgets;
mod deck;
mod meter;
mod one_card;
mod recovery;
mod simulation;
mod streams;
mod tracer;
mod turns;
