//! Chat completions, as OpenAI and the many who imitate it speak them.

mod calls;
mod request;
mod stream;

pub(super) use self::request::body;
pub(super) use self::stream::Reader;
