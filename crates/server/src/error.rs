//! What can go wrong, and the one place that says it in HTTP.

use std::io;
use std::path::PathBuf;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use qd_sources::transcript::Unread;
use tracing::warn;

use crate::wire::Problem;

/// What keeps the server from serving.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot keep tokens at {}: {source}", path.display())]
    Tokens { path: PathBuf, source: io::Error },
    #[error("cannot listen on port {port}: {source}")]
    Port { port: u16, source: io::Error },
    #[error("cannot accept connections: {source}")]
    Accept { source: io::Error },
}

/// Why a request was not answered as asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    NoToken,
    WrongToken,
    /// The browser is not signed in, or shows a proof for another run of the daemon.
    SignedOut,
    WrongCode,
    /// A program in a sandbox came by the socket.
    Confined,
    TooManyGuesses,
    WeakScope,
    ForeignHost,
    ForeignOrigin,
    NotJson,
    NoHeader,
    NoSuchRoute,
    NoSuchSession,
    NoSuchBrowser,
    NoSuchDevice,
    NoSuchTab,
    NotASubscription,
    /// Its push service is on this machine or in a private network.
    PrivateEndpoint,
    NoticesOff,
    TooManyRequests,
    TooManyStreams,
    /// A hook that nobody keeps, not even abridged.
    TooLong,
    /// The body did not come in time.
    TooSlow,
    /// A file could not be written.
    NotKept,
    StillReading,
    SearchIsOff,
    SeveralSessions,
    /// It has no transcript, or the file is gone.
    NoTranscript,
    /// The transcript was written anew: what the cursor stood in is there no more.
    TranscriptChanged,
    TranscriptUnreadable,
    JournalUnreadable,
    BadQuery,
    BadCursor,
    UnknownHarness,
    /// No JSON object, or one that names no session.
    BrokenHook,
    Unreadable,
    /// The loop is behind, or the disk is full.
    NotTaken,
    Stopping,
}

impl Refusal {
    fn parts(self) -> (StatusCode, &'static str, &'static str) {
        use StatusCode as S;
        match self {
            Self::NoToken => {
                (S::UNAUTHORIZED, "no_token", "sign in with `qd open`, or send a token: `qd token`")
            }
            Self::WrongToken => (S::UNAUTHORIZED, "wrong_token", "this token opens nothing"),
            Self::SignedOut => {
                (S::UNAUTHORIZED, "signed_out", "this browser is signed out: `qd open` signs it in")
            }
            Self::WrongCode => (
                S::UNAUTHORIZED,
                "wrong_code",
                "the link was used or is too old: `qd open` makes one",
            ),
            Self::Confined => (
                S::FORBIDDEN,
                "confined",
                "a program in a sandbox can't use the daemon; run this in a terminal of your own",
            ),
            Self::NoSuchBrowser => (S::NOT_FOUND, "no_such_browser", "no browser of that id"),
            Self::NoSuchDevice => (S::NOT_FOUND, "no_such_device", "no device of that id"),
            Self::NoSuchTab => (S::NOT_FOUND, "no_such_tab", "no stream of that tab is open"),
            Self::NotASubscription => (
                S::BAD_REQUEST,
                "not_a_subscription",
                "this is not a subscription of a browser: its endpoint must begin with https://, \
                 and its keys must be those of the Push API",
            ),
            Self::PrivateEndpoint => (
                S::BAD_REQUEST,
                "private_endpoint",
                "this push service is on this machine or in a private network. If you want that, \
                 name its host in config.toml: [notify] allow_private = [\"host:port\"]",
            ),
            Self::NoticesOff => (S::NOT_FOUND, "notices_off", "nobody is told from here"),
            Self::TooManyRequests => {
                (S::TOO_MANY_REQUESTS, "too_many_requests", "too many requests; slow down")
            }
            Self::TooManyStreams => (
                S::TOO_MANY_REQUESTS,
                "too_many_streams",
                "this browser or token has too many streams open; close some of its tabs",
            ),
            Self::TooLong => (
                S::PAYLOAD_TOO_LARGE,
                "too_long",
                "a hook's payload may have 64 MiB; send less of it",
            ),
            Self::TooSlow => (
                S::REQUEST_TIMEOUT,
                "too_slow",
                "the body of the request did not arrive in time; send it again",
            ),
            Self::NotKept => {
                (S::INTERNAL_SERVER_ERROR, "not_kept", "it could not be written; see the log")
            }
            Self::SearchIsOff => (S::NOT_FOUND, "search_is_off", "search is off in config.toml"),
            Self::StillReading => {
                (S::SERVICE_UNAVAILABLE, "still_reading", "session files are still being read")
            }
            Self::TooManyGuesses => {
                (S::TOO_MANY_REQUESTS, "too_many_guesses", "too many wrong tokens; wait a minute")
            }
            Self::WeakScope => (S::FORBIDDEN, "weak_scope", "this token may not do that"),
            Self::ForeignHost => (S::FORBIDDEN, "foreign_host", "this is not a name of ours"),
            Self::ForeignOrigin => {
                (S::FORBIDDEN, "foreign_origin", "requests of other sites are refused")
            }
            Self::NotJson => (S::UNSUPPORTED_MEDIA_TYPE, "not_json", "application/json is needed"),
            Self::NoHeader => (S::FORBIDDEN, "no_header", "the header x-quarterdeck is needed"),
            Self::NoSuchRoute => (S::NOT_FOUND, "no_such_route", "there is nothing here"),
            Self::NoSuchSession => (S::NOT_FOUND, "no_such_session", "no session of that name"),
            Self::SeveralSessions => {
                (S::CONFLICT, "several_sessions", "several sessions begin like that")
            }
            Self::NoTranscript => {
                (S::NOT_FOUND, "no_transcript", "the session has no transcript, or it is gone")
            }
            Self::TranscriptChanged => (
                S::CONFLICT,
                "transcript_changed",
                "the transcript was written anew; ask without a cursor",
            ),
            Self::TranscriptUnreadable => {
                (S::SERVICE_UNAVAILABLE, "transcript_unreadable", "the transcript cannot be read")
            }
            Self::JournalUnreadable => {
                (S::SERVICE_UNAVAILABLE, "journal_unreadable", "the journal cannot be read")
            }
            Self::BadQuery => (S::BAD_REQUEST, "bad_query", "the query cannot be understood"),
            Self::BadCursor => (S::BAD_REQUEST, "bad_cursor", "that is no cursor of ours"),
            Self::UnknownHarness => {
                (S::BAD_REQUEST, "unknown_harness", "no agent of that name is known here")
            }
            Self::BrokenHook => (
                S::BAD_REQUEST,
                "broken_hook",
                "this is no hook: post the JSON object that the agent gave the hook, with its session_id",
            ),
            Self::Unreadable => (S::BAD_REQUEST, "unreadable", "the body cannot be read"),
            Self::NotTaken => {
                (S::SERVICE_UNAVAILABLE, "not_taken", "it was not taken; send it again")
            }
            Self::Stopping => (S::SERVICE_UNAVAILABLE, "stopping", "the daemon is stopping"),
        }
    }
}

impl From<qd_daemon::runtime::Gone> for Refusal {
    fn from(_: qd_daemon::runtime::Gone) -> Self {
        Self::Stopping
    }
}

impl From<qd_broker::NotFound> for Refusal {
    fn from(why: qd_broker::NotFound) -> Self {
        match why {
            qd_broker::NotFound::Nobody => Self::NoSuchSession,
            qd_broker::NotFound::Several => Self::SeveralSessions,
        }
    }
}

impl From<qd_daemon::detail::NoDetail> for Refusal {
    fn from(why: qd_daemon::detail::NoDetail) -> Self {
        match why {
            qd_daemon::detail::NoDetail::Session(why) => why.into(),
            qd_daemon::detail::NoDetail::Journal(error) => {
                warn!(%error, "a session's history");
                Self::JournalUnreadable
            }
        }
    }
}

impl From<Unread> for Refusal {
    fn from(why: Unread) -> Self {
        match why {
            Unread::Session(why) => why.into(),
            Unread::NoTranscript => Self::NoTranscript,
            Unread::NoCursor => Self::BadCursor,
            Unread::Changed => Self::TranscriptChanged,
            Unread::Unreadable(error) => {
                warn!(%error, "a transcript");
                Self::TranscriptUnreadable
            }
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, code, message) = self.parts();
        let retryable = matches!(
            self,
            Self::NotTaken
                | Self::Stopping
                | Self::StillReading
                | Self::TooManyGuesses
                | Self::TooManyRequests
                | Self::TooManyStreams
                | Self::TooSlow
                | Self::TranscriptUnreadable
                | Self::JournalUnreadable
        );
        let problem = Problem { code: code.to_owned(), message: message.to_owned(), retryable };
        (status, Json(problem)).into_response()
    }
}
