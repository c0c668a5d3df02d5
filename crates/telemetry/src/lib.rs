//! What driven sessions did, told as numbers, as spans and as lines of the log.
//!
//! All of it is folded from what is shown: changes and pieces of answers, each with its own time.
//! [`Meter`] counts, for `/metrics`; [`Tracer`] makes one trace of each turn, and an [`Exporter`]
//! carries its spans to a [`Collector`]; `log` says the same in words.
//! Invariant: no number, no span and no line above debug has anything in it that an agent, a model
//! or the operator wrote, but for the names of tools and hooks.

mod collector;
mod exporter;
mod histogram;
mod log;
mod meter;
mod otlp;
mod span;
mod tracer;
mod word;

use qd_broker::news::BoardNews;
use qd_harness::Harness;
use qd_session::id::SessionId;

pub use self::collector::Collector;
pub use self::exporter::{Exporter, SPANS_WAITING_MAX, SpanTally};
pub use self::histogram::Histogram;
pub use self::log::{job as log_job, report as log_report};
pub use self::meter::{LABELS_MAX, Meter};
pub use self::span::{Attribute, Span, SpanId, TraceId, trace_id};
pub use self::tracer::Tracer;
pub use self::word::word;

/// Held by the loop, and shown each thing after the journal has it.
#[derive(Debug, Default)]
pub struct Telemetry {
    meter: Meter,
    tracer: Tracer,
    exporter: Option<Exporter>,
}

impl Telemetry {
    /// Turns are traced from now on.
    pub fn export(&mut self, exporter: Exporter) {
        self.exporter = Some(exporter);
    }

    pub fn take(&mut self, news: &BoardNews, harness: impl Fn(&SessionId) -> Option<Harness>) {
        match news {
            BoardNews::Changed(shown) => {
                self::log::change(shown);
                self.meter.fold(shown);
                if let (Some(exporter), Some(harness)) =
                    (&self.exporter, harness(&shown.session_id))
                {
                    let spans = self.tracer.fold(harness, shown);
                    spans.into_iter().for_each(|span| exporter.offer(span));
                }
            }
            BoardNews::Streamed(event) => self.meter.fold_piece(event),
            BoardNews::Shown(_)
            | BoardNews::Removed(_)
            | BoardNews::Today(_)
            | BoardNews::Unreadable(_) => {}
        }
    }

    pub fn meter(&self) -> Meter {
        let mut meter = self.meter.clone();
        meter.spans = self.exporter.as_ref().map(Exporter::tally).unwrap_or_default();
        meter
    }

    /// Sends what waits to be sent, within a bound.
    pub async fn finish(self) {
        if let Some(exporter) = self.exporter {
            exporter.finish().await;
        }
    }
}
