//! `GET /metrics`: how the daemon is, in the text format of Prometheus.

use std::fmt::Write;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use qd_broker::runtime::Health;

use crate::error::Refusal;
use crate::server::Server;
use crate::wire::Summary;

pub async fn metrics(State(server): State<Server>) -> Result<Response, Refusal> {
    let health = server.handle().health().await?;
    server.feed().reach(health.changes).await?;
    let text = spelled(&health, &server.feed().summary(), server.readers().count());
    Ok(([(CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response())
}

fn spelled(health: &Health, summary: &Summary, readers: u32) -> String {
    let mut page = Page::default();
    let groups = [
        ("{group=\"needs_you\"}", summary.needs_you_count as u64),
        ("{group=\"autonomous\"}", summary.autonomous_count as u64),
        ("{group=\"delivered\"}", summary.delivered_count as u64),
    ];
    page.add("qd_board_sessions", "gauge", "Sessions on the board.", &groups);
    page.one("qd_known_sessions", "gauge", "Sessions that are known.", health.sessions as u64);
    page.one("qd_hooks_total", "counter", "Hooks taken.", health.hooks);
    let spooled = "Hooks taken that lay in the spool.";
    page.one("qd_hooks_spooled_total", "counter", spooled, health.spooled);
    let refused = "Hooks sent back to be spooled.";
    page.one("qd_hooks_refused_total", "counter", refused, health.refused);
    let unknown = "Hooks of agents that are not known.";
    page.one("qd_hooks_unknown_total", "counter", unknown, health.unknown);
    page.one("qd_board_changes_total", "counter", "Changes shown.", health.changes);
    let notices = "Troubles with session files.";
    page.one("qd_file_notices_total", "counter", notices, health.notices);
    let dropped = "Entries that could never be written.";
    page.one("qd_journal_dropped_total", "counter", dropped, health.dropped);
    let writes = "1 while the journal takes what it is given.";
    page.one("qd_journal_up", "gauge", writes, u64::from(health.journal_error.is_none()));
    page.one("qd_stream_readers", "gauge", "Readers of the stream.", u64::from(readers));
    page.0
}

#[derive(Default)]
struct Page(String);

impl Page {
    fn one(&mut self, name: &str, kind: &str, help: &str, value: u64) {
        self.add(name, kind, help, &[("", value)]);
    }

    fn add(&mut self, name: &str, kind: &str, help: &str, values: &[(&str, u64)]) {
        let head = format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
        self.0.push_str(&head);
        for (labels, value) in values {
            writeln!(self.0, "{name}{labels} {value}").expect("a string takes everything");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_metric_is_explained_once_and_has_a_value() {
        let summary = Summary { needs_you_count: 2, ..Summary::default() };
        let health = Health { hooks: 7, journal_error: Some("full".into()), ..Health::default() };
        let text = spelled(&health, &summary, 3);
        for line in [
            "qd_board_sessions{group=\"needs_you\"} 2",
            "qd_hooks_total 7",
            "qd_journal_up 0",
            "qd_stream_readers 3",
        ] {
            assert!(text.lines().any(|known| known == line), "{line} in\n{text}");
        }
        let names = |word: &str| -> Vec<String> {
            let lines = text.lines().filter_map(|line| line.strip_prefix(word));
            lines.filter_map(|line| line.split(' ').nth(1)).map(str::to_owned).collect()
        };
        assert_eq!(names("# HELP"), names("# TYPE"));
        assert_eq!(names("# HELP").len(), 11);
    }
}
