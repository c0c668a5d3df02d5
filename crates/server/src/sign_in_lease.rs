//! A browser's sign-in as its requests hold it: when it ends, what it opened ends with it.

use std::future::Future;

use axum::body::{Body, HttpBody};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use tokio::sync::watch;

use crate::auth::Scope;
use crate::error::Refusal;

#[derive(Debug, Clone)]
pub struct Lease {
    pub browser: String,
    pub name: String,
    pub scope: Scope,
    /// Its other end is in the list of browsers, and goes when the browser leaves the list.
    listed: watch::Receiver<()>,
}

impl Lease {
    pub fn new(browser: String, name: String, scope: Scope, listed: watch::Receiver<()>) -> Self {
        Self { browser, name, scope, listed }
    }

    pub fn has_ended(&self) -> bool {
        self.listed.has_changed().is_err()
    }

    async fn ended(mut self) {
        while self.listed.changed().await.is_ok() {}
    }

    /// The answer, as long as the browser is signed in: one that is waited for is refused when the
    /// browser is signed out meanwhile, and one that is being streamed ends.
    pub async fn hold(self, answer: impl Future<Output = Response>) -> Response {
        let response = tokio::select! {
            // The answer to a sign-out is given although it ended the lease.
            biased;
            response = answer => response,
            () = self.clone().ended() => return Refusal::SignedOut.into_response(),
        };
        // An answer of a known length is whole already; only a stream has more to tell.
        if response.body().size_hint().exact().is_some() {
            return response;
        }
        response.map(|body| {
            Body::from_stream(body.into_data_stream().take_until(Box::pin(self.ended())))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::future::pending;

    use axum::body::to_bytes;
    use axum::http::StatusCode;
    use futures_util::stream;

    use super::*;

    fn lease() -> (watch::Sender<()>, Lease) {
        let listed = watch::Sender::default();
        let lease = Lease::new("1".into(), "Firefox".into(), Scope::Operate, listed.subscribe());
        (listed, lease)
    }

    /// As a chat that is answered at once, when its turn is over.
    #[tokio::test]
    async fn an_answer_that_is_waited_for_is_refused_when_the_browser_is_out() {
        let (listed, lease) = lease();
        let held = tokio::spawn(lease.clone().hold(pending()));
        assert!(!lease.has_ended());
        drop(listed);
        assert_eq!(held.await.expect("answered").status(), StatusCode::UNAUTHORIZED);
        assert!(lease.has_ended());
    }

    /// As a chat that is streamed, or the board: also one that always has something to say.
    #[tokio::test]
    async fn a_stream_ends_when_the_browser_is_out() {
        let endless = [
            stream::pending::<Result<&str, Infallible>>().boxed(),
            stream::repeat(Ok("more")).boxed(),
        ];
        for endless in endless {
            let (listed, lease) = lease();
            let body = Body::from_stream(endless);
            let response = lease.hold(async { body.into_response() }).await;
            drop(listed);
            let told = to_bytes(response.into_body(), 1_024).await.expect("it ends");
            assert!(told.is_empty());
        }
    }

    #[tokio::test]
    async fn the_answer_to_a_sign_out_is_given() {
        let (listed, lease) = lease();
        let response = lease
            .hold(async move {
                drop(listed);
                "out".into_response()
            })
            .await;
        assert_eq!(to_bytes(response.into_body(), 9).await.expect("whole"), "out");
    }
}
