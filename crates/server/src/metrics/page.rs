//! A page in the text format of Prometheus: each metric explained once, then its values.

use std::fmt::Write;

use qd_telemetry::Histogram;

#[derive(Debug, Default)]
pub struct Page(String);

impl Page {
    pub fn into_text(self) -> String {
        self.0
    }

    pub fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, "counter", help);
        self.line(name, &[], value);
    }

    pub fn gauge(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, "gauge", help);
        self.line(name, &[], value);
    }

    /// Values by their labels: none where nothing was counted yet.
    pub fn counters<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = ([(&'static str, String); N], u64)>,
    ) {
        self.head(name, "counter", help);
        self.lines(name, values);
    }

    pub fn gauges<const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = ([(&'static str, String); N], u64)>,
    ) {
        self.head(name, "gauge", help);
        self.lines(name, values);
    }

    /// Milliseconds, by their labels.
    pub fn histograms<'a, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        values: impl IntoIterator<Item = ([(&'static str, String); N], &'a Histogram)>,
    ) {
        self.head(name, "histogram", help);
        let bucket = format!("{name}_bucket");
        for (labels, histogram) in values {
            let bounds = histogram.cumulated().map(|(bound, count)| (bound.to_string(), count));
            for (bound, count) in bounds.chain([("+Inf".to_owned(), histogram.count())]) {
                let mut labels = labels.to_vec();
                labels.push(("le", bound));
                self.line(&bucket, &labels, count);
            }
            self.line(&format!("{name}_sum"), &labels, histogram.sum_ms());
            self.line(&format!("{name}_count"), &labels, histogram.count());
        }
    }

    fn lines<const N: usize>(
        &mut self,
        name: &str,
        values: impl IntoIterator<Item = ([(&'static str, String); N], u64)>,
    ) {
        for (labels, value) in values {
            self.line(name, &labels, value);
        }
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        self.write(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    fn line(&mut self, name: &str, labels: &[(&'static str, String)], value: u64) {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        match labels.is_empty() {
            true => self.write(format_args!("{name} {value}\n")),
            false => self.write(format_args!("{name}{{{}}} {value}\n", labels.join(","))),
        }
    }

    fn write(&mut self, words: std::fmt::Arguments<'_>) {
        self.0.write_fmt(words).expect("a string takes everything");
    }
}

/// A model may call a tool by any name.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_cannot_leave_its_line() {
        let mut page = Page::default();
        page.counters("runs", "Runs.", [([("tool_name", "a\"b\\c\nd 7".to_owned())], 1)]);
        let written =
            "# HELP runs Runs.\n# TYPE runs counter\nruns{tool_name=\"a\\\"b\\\\c\\nd 7\"} 1\n";
        assert_eq!(page.into_text(), written);
    }

    #[test]
    fn a_histogram_ends_with_all_of_them() {
        let mut histogram = Histogram::default();
        histogram.add(7);
        histogram.add(400_000);
        let mut page = Page::default();
        page.histograms("took_ms", "Time.", [([("of", "a".to_owned())], &histogram)]);
        let text = page.into_text();
        for line in [
            "took_ms_bucket{of=\"a\",le=\"5\"} 0",
            "took_ms_bucket{of=\"a\",le=\"10\"} 1",
            "took_ms_bucket{of=\"a\",le=\"300000\"} 1",
            "took_ms_bucket{of=\"a\",le=\"+Inf\"} 2",
            "took_ms_sum{of=\"a\"} 400007",
            "took_ms_count{of=\"a\"} 2",
        ] {
            assert!(text.lines().any(|known| known == line), "{line} in\n{text}");
        }
    }
}
