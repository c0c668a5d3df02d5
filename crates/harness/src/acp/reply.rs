//! The operator's decision in, the protocol's message out.
//!
//! A placeholder line until the rest is written.
