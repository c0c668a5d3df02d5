//! What the operator answers to a request, in no vendor's words.
//!
//! Each harness turns it into what its client expects. Who answered, when and how it was delivered
//! is the [`Record`] around it; [`Book`] sees to it that one answer takes effect and no more, and
//! [`Chain`] that no record can be changed or taken away unnoticed.

mod book;
mod chain;
mod record;
mod standing;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use self::book::Book;
pub use self::chain::{Broken, Chain, Flaw, Hash, Link, Verified, verify};
pub use self::record::{Body, By, Command, Offer, Order, Record, RetryTarget, Shown, Subject};
pub use self::standing::{Decided, Given, Refused, Standing};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum Decision {
    Allow {
        /// The whole input, where the operator changed it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schema(value_type = Option<Value>))]
        input: Option<Value>,
        #[serde(default)]
        scope: Scope,
    },
    Deny {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// End the turn as well.
        #[serde(default)]
        interrupt: bool,
    },
    Answer {
        answers: Vec<Answer>,
    },
    ApprovePlan {
        /// The permission mode that follows, in the client's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<String>,
    },
    RejectPlan {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        feedback: Option<String>,
    },
}

/// How far an allowance reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = Reach))]
pub enum Scope {
    #[default]
    Once,
    Session,
    /// As the client itself suggested: a rule it keeps.
    Always,
}

/// The answer to one question of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Answer {
    /// The question's id or, where it has none, its text.
    pub question: String,
    /// The labels chosen, or the text typed.
    pub values: Vec<String>,
}
