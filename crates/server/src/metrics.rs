//! `GET /metrics`: how the daemon is and what driven sessions did, for Prometheus.
//!
//! `spec/metrics.md` is the table of all that is on the page.

mod page;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use qd_daemon::runtime::Health;
use qd_notices::{Notices, ReceiverView};
use qd_telemetry::{Meter, word};

use self::page::Page;
use crate::error::Refusal;
use crate::hook_posts::RefusedHooks;
use crate::server::Server;
use crate::wire::Summary;

pub async fn metrics(State(server): State<Server>) -> Result<Response, Refusal> {
    let health = server.handle().health().await?;
    server.feed().reach(health.changes).await?;
    let meter = server.handle().meter().await?;
    let mut page = Page::default();
    daemon(&mut page, &health, &server.feed().summary());
    let RefusedHooks { without_token, wrong_token, broken } = server.hook_posts().view();
    let refused = "Hooks posted over HTTP without a token that opens it.";
    page.counter("qd_hooks_unauthorised_total", refused, without_token + wrong_token);
    page.counter("qd_hooks_broken_total", "Hooks posted over HTTP that are none.", broken);
    let readers = u64::from(server.readers().count());
    page.gauge("qd_stream_readers", "Readers of the stream.", readers);
    let receivers = server.notices().map(Notices::receivers_view).unwrap_or_default();
    notices(&mut page, &receivers);
    driven(&mut page, &meter);
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4")], page.into_text()).into_response())
}

fn daemon(page: &mut Page, health: &Health, summary: &Summary) {
    let group = |name: &str, count: usize| ([("group", name.to_owned())], count as u64);
    let groups = [
        group("needs_you", summary.needs_you_count),
        group("autonomous", summary.autonomous_count),
        group("delivered", summary.delivered_count),
    ];
    page.gauges("qd_board_sessions", "Sessions on the board.", groups);
    page.gauge("qd_known_sessions", "Sessions that are known.", health.sessions as u64);
    page.counter("qd_hooks_total", "Hooks taken.", health.hooks);
    page.counter("qd_hooks_spooled_total", "Hooks taken that lay in the spool.", health.spooled);
    page.counter("qd_hooks_refused_total", "Hooks sent back to be spooled.", health.refused);
    page.counter("qd_hooks_unknown_total", "Hooks of agents that are not known.", health.unknown);
    page.counter("qd_hooks_cut_total", "Hooks that were too long to be kept whole.", health.cut);
    let strangers = "Hooks ignored: their process does not hold the session.";
    page.counter("qd_hooks_strangers_total", strangers, health.strangers);
    let others = "Hooks ignored: run by another program than the client they are for.";
    page.counter("qd_hooks_others_total", others, health.other_callers.values().sum());
    page.counter("qd_board_changes_total", "Changes shown.", health.changes);
    page.counter("qd_file_notices_total", "Troubles with session files.", health.notices);
    let dropped = "Entries that could never be written.";
    page.counter("qd_journal_dropped_total", dropped, health.dropped);
    let writes = "1 while the journal takes what it is given.";
    page.gauge("qd_journal_up", writes, u64::from(health.journal_error.is_none()));
}

fn notices(page: &mut Page, receivers: &[ReceiverView]) {
    let sent = receivers.iter().map(|receiver| receiver.sent).sum();
    page.counter("qd_notices_sent_total", "Notices that receivers took.", sent);
    let failed = receivers.iter().map(|receiver| receiver.failed + receiver.dropped).sum();
    page.counter("qd_notices_failed_total", "Notices that did not arrive.", failed);
}

/// Their names are those that other programs of the kind use, without a prefix of ours.
fn driven(page: &mut Page, meter: &Meter) {
    let transitions = meter.transitions.iter().map(|((from, to), count)| {
        ([("from", word(from).to_string()), ("to", word(to).to_string())], *count)
    });
    let moved = "State changes of driven sessions.";
    page.counters("agent_state_transitions_total", moved, transitions);
    let tools =
        meter.tool_runs.iter().map(|(name, took)| ([("tool_name", name.to_string())], took));
    page.histograms("tool_run_duration_ms", "Time that tools of driven sessions took.", tools);
    let hooks =
        meter.hook_runs.iter().map(|(name, took)| ([("hook_name", name.to_string())], took));
    page.histograms("hook_run_duration_ms", "Time that post-tool hooks took.", hooks);
    let errors =
        meter.errors.iter().map(|(code, count)| ([("code", word(code).to_string())], *count));
    page.counters("session_errors_total", "Errors of driven sessions.", errors);
    let events = meter.stream_events.iter();
    let events = events.map(|(name, count)| ([("type", (*name).to_owned())], *count));
    page.counters("stream_event_count", "Pieces of answers shown.", events);
    let latency = "Time from the first delta of an answer to its completion.";
    page.histograms("stream_latency_ms", latency, [([], &meter.stream_latency)]);
    page.counter("qd_spans_sent_total", "Spans that the collector took.", meter.spans.sent);
    let dropped = "Spans that found no room, or that the collector did not take.";
    page.counter("qd_spans_dropped_total", dropped, meter.spans.dropped);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_daemon_are_those_of_its_health() {
        let summary = Summary { needs_you_count: 2, ..Summary::default() };
        let health = Health { hooks: 7, journal_error: Some("full".into()), ..Health::default() };
        let receiver = ReceiverView { sent: 5, failed: 1, dropped: 1, ..ReceiverView::default() };
        let mut page = Page::default();
        daemon(&mut page, &health, &summary);
        notices(&mut page, &[receiver]);
        let text = page.into_text();
        for line in [
            "qd_board_sessions{group=\"needs_you\"} 2",
            "qd_hooks_total 7",
            "qd_journal_up 0",
            "qd_notices_sent_total 5",
            "qd_notices_failed_total 2",
        ] {
            assert!(text.lines().any(|known| known == line), "{line} in\n{text}");
        }
    }
}
