//! Every cause there is.

use qd_session::machine::TroubleKind;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    RateLimited,
    OutOfCredit,
    Overloaded,
    ServerError,
    TimedOut,
    Unreachable,
    Dropped,
    Garbled,
    BadArguments,
    SignInNeeded,
    NotAllowed,
    ContextFull,
    UnknownModel,
    BadRequest,
    Untrusted,
    Redirected,
    NotAStream,
    TooLong,
}

impl Cause {
    pub const ALL: [Self; 18] = [
        Self::RateLimited,
        Self::OutOfCredit,
        Self::Overloaded,
        Self::ServerError,
        Self::TimedOut,
        Self::Unreachable,
        Self::Dropped,
        Self::Garbled,
        Self::BadArguments,
        Self::SignInNeeded,
        Self::NotAllowed,
        Self::ContextFull,
        Self::UnknownModel,
        Self::BadRequest,
        Self::Untrusted,
        Self::Redirected,
        Self::NotAStream,
        Self::TooLong,
    ];

    /// As the table spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::RateLimited => "rate_limited",
            Self::OutOfCredit => "out_of_credit",
            Self::Overloaded => "overloaded",
            Self::ServerError => "server_error",
            Self::TimedOut => "timed_out",
            Self::Unreachable => "unreachable",
            Self::Dropped => "dropped",
            Self::Garbled => "garbled",
            Self::BadArguments => "bad_arguments",
            Self::SignInNeeded => "sign_in_needed",
            Self::NotAllowed => "not_allowed",
            Self::ContextFull => "context_full",
            Self::UnknownModel => "unknown_model",
            Self::BadRequest => "bad_request",
            Self::Untrusted => "untrusted",
            Self::Redirected => "redirected",
            Self::NotAStream => "not_a_stream",
            Self::TooLong => "too_long",
        }
    }

    /// What the machine makes of it: whether asking again helps.
    pub fn trouble(self) -> TroubleKind {
        match self {
            Self::RateLimited
            | Self::Overloaded
            | Self::ServerError
            | Self::TimedOut
            | Self::Unreachable
            | Self::Dropped
            | Self::Garbled
            | Self::BadArguments => TroubleKind::Passing,
            Self::OutOfCredit => TroubleKind::UsageLimit,
            Self::SignInNeeded | Self::NotAllowed => TroubleKind::Auth,
            Self::ContextFull => TroubleKind::ContextFull,
            Self::UnknownModel => TroubleKind::UnknownModel,
            Self::BadRequest
            | Self::Untrusted
            | Self::Redirected
            | Self::NotAStream
            | Self::TooLong => TroubleKind::Lasting,
        }
    }

    /// What the operator is told, before the provider's own words.
    pub fn words(self) -> &'static str {
        match self {
            Self::RateLimited => "the provider limits how often it is asked",
            Self::OutOfCredit => "the account has no credit or quota left",
            Self::Overloaded => "the model is overloaded",
            Self::ServerError => "the provider failed",
            Self::TimedOut => "the provider did not answer in time",
            Self::Unreachable => "the provider cannot be reached",
            Self::Dropped => "the connection ended before the answer did",
            Self::Garbled => "the answer cannot be understood",
            Self::BadArguments => "the model called a tool with arguments that are no JSON object",
            Self::SignInNeeded => "the provider does not accept the key",
            Self::NotAllowed => "the key does not allow this",
            Self::ContextFull => {
                "the conversation no longer fits into the model's context; start a new session"
            }
            Self::UnknownModel => {
                "the provider has no such model or address; start a session with another one"
            }
            Self::BadRequest => "the provider refused the request",
            Self::Untrusted => "no trusted connection to the provider can be made",
            Self::Redirected => "the provider points to another address, which is not followed",
            Self::NotAStream => "what came is no event stream; is the base_url right?",
            Self::TooLong => "the answer is longer than can be taken in",
        }
    }

    /// A time to wait, where the provider names one, is for this.
    pub(super) fn may_wait(self) -> bool {
        match self {
            Self::RateLimited
            | Self::OutOfCredit
            | Self::Overloaded
            | Self::ServerError
            | Self::TimedOut => true,
            Self::Unreachable
            | Self::Dropped
            | Self::Garbled
            | Self::BadArguments
            | Self::SignInNeeded
            | Self::NotAllowed
            | Self::ContextFull
            | Self::UnknownModel
            | Self::BadRequest
            | Self::Untrusted
            | Self::Redirected
            | Self::NotAStream
            | Self::TooLong => false,
        }
    }
}
