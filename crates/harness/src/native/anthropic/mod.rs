//! Anthropic Messages, version 2023-06-01.

mod request;
mod stream;

pub(super) use self::request::body;
pub(super) use self::stream::Reader;

pub(super) const VERSION: &str = "2023-06-01";
