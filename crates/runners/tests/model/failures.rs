//! Whatever goes wrong on the way: one failure, with its cause, and never a hang.

use qd_harness::native::{Cause, Piece, Provider};
use qd_runners::model::{CallEnd, Heard};
use qd_session::machine::TroubleKind;
use qd_testbed::{Delivery, Gate, Model, Reply, Script};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{HEARD_MAX, KEY, asking, endpoint, failure, impatient, line, prompt};

async fn check(reply: Reply, cause: Cause) {
    for provider in Provider::ALL {
        let model = Model::start(Script::new().replies(reply.clone())).expect("a model");
        let failure = failure(&line(), &endpoint(provider, &model.url())).await;
        assert_eq!(failure.cause, cause, "{provider:?} {failure:?}");
        assert_eq!(failure.request_id.as_deref(), Some("req_0000"), "{provider:?} {cause:?}");
        assert_eq!(model.requests().len(), 1, "nothing is tried again here");
    }
}

#[tokio::test]
async fn a_refusal_has_the_cause_of_its_status() {
    check(Reply::fails(529), Cause::Overloaded).await;
    check(Reply::fails(500), Cause::ServerError).await;
    check(Reply::fails(401), Cause::SignInNeeded).await;
    check(Reply::fails(403), Cause::NotAllowed).await;
    check(Reply::fails(404), Cause::UnknownModel).await;
    check(Reply::fails(400), Cause::BadRequest).await;
    let long = Reply::fails(400).with_message("prompt is too long: 210000 tokens > 200000 maximum");
    check(long, Cause::ContextFull).await;
}

#[tokio::test]
async fn a_limit_says_how_long_to_wait() {
    for (reply, wait_ms) in [
        (Reply::fails(429).retry_after_s(7), Some(7_000)),
        (Reply::fails(429).with_header("retry-after-ms", "250"), Some(250)),
        (Reply::fails(429), None),
    ] {
        let model = Model::start(Script::new().replies(reply)).expect("a model");
        let failure = failure(&line(), &endpoint(Provider::Anthropic, &model.url())).await;
        let trouble = failure.trouble();
        assert_eq!((trouble.trouble, trouble.retry_after_ms), (TroubleKind::Passing, wait_ms));
    }
}

#[tokio::test]
async fn a_broken_stream_is_no_answer() {
    let said = || Reply::says("hello there");
    check(said().cut_after(4), Cause::Dropped).await;
    check(said().cut_within(4), Cause::Dropped).await;
    check(said().garbled_after(3), Cause::Garbled).await;
    let model = Model::start(Script::new().replies(said().breaks_with("Overloaded"))).expect("one");
    let broken = failure(&line(), &endpoint(Provider::Anthropic, &model.url())).await;
    assert_eq!(broken.cause, Cause::Overloaded);
}

#[tokio::test(flavor = "multi_thread")]
async fn silence_is_waited_for_only_so_long() {
    let never = Gate::new();
    for reply in [
        Reply::says("hello there").held_before_start(&never),
        Reply::says("hello there").held_after(3, &never),
    ] {
        let model = Model::start(Script::new().replies(reply)).expect("a model");
        let failure = failure(&impatient(), &endpoint(Provider::Anthropic, &model.url())).await;
        assert_eq!(failure.cause, Cause::TimedOut);
        gone(&model).await;
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Model::start(Script::new()).expect("a model");
    let reply =
        Reply::fails(307).with_header("location", format!("{}/v1/messages", elsewhere.url()));
    check(reply, Cause::Redirected).await;
    assert_eq!(elsewhere.requests().len(), 0);
}

#[tokio::test]
async fn nobody_there_and_no_tls_are_told_apart() {
    let model = Model::start(Script::new()).expect("a model");
    let address = model.url();
    let tls = endpoint(Provider::OpenAi, &address.replace("http://", "https://"));
    assert_eq!(failure(&line(), &tls).await.cause, Cause::Untrusted);
    drop(model);
    let nobody = failure(&line(), &endpoint(Provider::OpenAi, &address)).await;
    assert_eq!(nobody.cause, Cause::Unreachable);
}

#[tokio::test]
async fn a_key_that_is_repeated_is_not_shown() {
    let reply = Reply::fails(401).with_message(format!("incorrect key: {KEY}"));
    let model = Model::start(Script::new().replies(reply)).expect("a model");
    let failure = failure(&line(), &endpoint(Provider::OpenAi, &model.url())).await;
    assert_eq!(failure.detail.as_deref(), Some("incorrect key: REDACTED"));
}

/// The provider has seen that we left.
async fn gone(model: &Model) {
    tokio::task::block_in_place(|| {
        let left = |request: &qd_testbed::Request| request.delivery == Delivery::ClientGone;
        model.wait_for_request("our leaving", left).expect("the connection is closed");
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_canceled_call_ends_at_once_and_closes_its_connection() {
    let never = Gate::new();
    for reply in [
        Reply::says("hello there").held_before_start(&never),
        Reply::says("hello there").held_after(4, &never),
    ] {
        let model = Model::start(Script::new().replies(reply)).expect("a model");
        let endpoint = endpoint(Provider::Anthropic, &model.url());
        let (sender, mut heard) = mpsc::channel(HEARD_MAX);
        let cancel = CancellationToken::new();
        let request = asking(&endpoint, &prompt("go"));
        let call = {
            let (line, cancel) = (line(), cancel.clone());
            tokio::spawn(async move {
                line.call(&endpoint, request, "turn_1".into(), &cancel, &sender).await
            })
        };
        tokio::task::block_in_place(|| {
            model.wait_for_request("the request", |_| true).expect("a request");
        });
        cancel.cancel();
        assert_eq!(call.await.expect("no panic"), CallEnd::Canceled);
        while let Some(heard) = heard.recv().await {
            assert!(!matches!(heard, Heard::Piece(Piece::End { .. } | Piece::Failed(_))));
        }
        gone(&model).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_nobody_listens_to_ends() {
    let model = Model::start(Script::new().says("hello there")).expect("a model");
    let endpoint = endpoint(Provider::Anthropic, &model.url());
    let (sender, heard) = mpsc::channel(1);
    drop(heard);
    let cancel = CancellationToken::new();
    let request = asking(&endpoint, &prompt("go"));
    let end = line().call(&endpoint, request, "turn_1".into(), &cancel, &sender).await;
    assert_eq!(end, CallEnd::Canceled);
}
