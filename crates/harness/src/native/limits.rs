//! Everything here that can grow, with its maximum and the reason for it.

/// Longest event of a stream. Some providers send the arguments of a call, a whole file, at once.
pub const SSE_EVENT_BYTES_MAX: usize = 8 << 20;

/// Blocks and calls of one answer. Models make a dozen calls at once; a thousand is a loop.
pub const ANSWER_BLOCKS_MAX: usize = 1_000;

/// Bytes of one answer, all blocks together. The longest output there is, 128 k tokens, has about
/// half a megabyte; thinking beside it as much again.
pub const ANSWER_BYTES_MAX: usize = 16 << 20;

/// Deepest nest of a call's arguments. JSON is read 128 deep, and arguments are kept within other
/// values: what is taken in must be readable from the journal, too.
pub const ARGUMENTS_DEPTH_MAX: usize = 64;

/// Longest message of a failure: a provider's own words, which a person reads.
pub const FAILURE_MESSAGE_BYTES_MAX: usize = 2 << 10;

/// What is kept of an answer's beginning, to say what came where a stream was expected.
pub const BEGINNING_BYTES_MAX: usize = 300;

/// Longest id or name a provider gives to an answer, a call or a model.
pub const NAME_BYTES_MAX: usize = 256;

/// Tokens of an answer where nobody says otherwise. Anthropic wants a number; this is within what
/// every current model can do.
pub const ANSWER_TOKENS: u32 = 16_384;

/// The least that Anthropic takes as a budget for thinking; below it there is none.
pub const THINKING_TOKENS_MIN: u32 = 1_024;
