//! Raw signals as they are taken in: what a recorder writes down.
//!
//! Each `signal` has the harness's name as its id and a line of a capture as its data; `missed`
//! says how many were left out since the last one.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use qd_daemon::runtime::Tapped;
use qd_harness::capture::line;
use tokio::sync::broadcast::Receiver;
use tokio::sync::broadcast::error::RecvError;
use tokio_stream::Stream;

use crate::acting::Caller;
use crate::budget::OpenStream;
use crate::error::Refusal;
use crate::limits::STREAM_PING_EVERY;
use crate::server::Server;
use crate::stream::opened;

pub async fn signals(
    State(server): State<Server>,
    Extension(caller): Extension<Caller>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Refusal> {
    let open = opened(server.streams(), &caller)?;
    let signals = server.handle().signals().await?;
    Ok(Sse::new(told(signals, open)).keep_alive(KeepAlive::new().interval(STREAM_PING_EVERY)))
}

/// Says first that it listens: whoever waits for that misses nothing afterwards.
fn told(
    mut signals: Receiver<Arc<Tapped>>,
    open: Option<OpenStream>,
) -> impl Stream<Item = Result<Event, Infallible>> {
    let (tell, events) = tokio::sync::mpsc::channel(1);
    tokio::spawn(async move {
        let _open = open;
        let mut event = Some(Event::default().event("listening").data("{}"));
        while let Some(next) = event.take() {
            if tell.send(Ok(next)).await.is_err() {
                break;
            }
            // The wait for a signal ends as well when nobody reads any more.
            event = tokio::select! {
                event = next_event(&mut signals) => event,
                () = tell.closed() => None,
            };
        }
    });
    tokio_stream::wrappers::ReceiverStream::new(events)
}

/// None when the daemon stops.
async fn next_event(signals: &mut Receiver<Arc<Tapped>>) -> Option<Event> {
    match signals.recv().await {
        Ok(tapped) => Some(match &*tapped {
            Tapped::Signal(signal) => {
                let event = Event::default().event("signal").id(signal.harness.name());
                event.data(line(&signal.signal()))
            }
            Tapped::TooLong => missed(1),
        }),
        Err(RecvError::Lagged(count)) => Some(missed(count)),
        Err(RecvError::Closed) => None,
    }
}

fn missed(count: u64) -> Event {
    Event::default().event("missed").data(count.to_string())
}
