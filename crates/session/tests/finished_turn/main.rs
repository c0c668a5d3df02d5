//! Rule 10: the finished turn, by its table and by messages with a known ending.

mod clauses;
mod endings;
mod table;
