//! Metrics as text for Prometheus.
//!
//! # What it is
//! A [`Page`] writes families of samples, all with the label `mount`. [`Snapshot::to_prometheus`](crate::Snapshot) writes
//! the metrics of a session with it; a program adds its own families to the page.
//!
//! # What it is not
//! A registry or a server. The crate `prometheus-client` is not used: it writes OpenMetrics, which the textfile collector of
//! Prometheus' node exporter cannot read.
//!
//! # Where it comes from
//! "Exposition formats", version 0.0.4, and "Metric and label naming", both at prometheus.io.

use std::fmt::{Arguments, Display, Write};
use vfs::Foreign;

/// The kind of a family of samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FamilyKind {
    /// Never falls; its name ends in `_total`.
    Counter,
    /// Rises and falls.
    Gauge,
    /// Cumulative counts by upper bound: see [`Family::histogram`].
    Histogram,
}

/// A page of metrics of one mount.
#[derive(Debug)]
pub struct Page {
    text: String,
    /// The label of every sample, escaped.
    mount: String,
}

/// A family of a [`Page`]: samples with one name and different labels.
#[derive(Debug)]
pub struct Family<'p> {
    page: &'p mut Page,
    name: String,
}

impl Page {
    /// Returns an empty page whose samples have the label `mount`.
    #[must_use]
    pub fn new(mount: &str) -> Self {
        Self { text: String::new(), mount: escaped(mount) }
    }

    /// Begins a family. Characters that a name cannot have become underscores. `help` is one line, without a full stop.
    pub fn family(&mut self, name: &str, kind: FamilyKind, help: &str) -> Family<'_> {
        let is_valid = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let name: String = name.chars().map(|c| if is_valid(c) { c } else { '_' }).collect();
        let kind = match kind {
            FamilyKind::Counter => "counter",
            FamilyKind::Gauge => "gauge",
            FamilyKind::Histogram => "histogram",
        };
        self.line(format_args!("# HELP {name} {help}."));
        self.line(format_args!("# TYPE {name} {kind}"));
        Family { page: self, name }
    }

    /// Returns the text of the page.
    #[must_use]
    pub fn into_text(self) -> String {
        self.text
    }

    fn line(&mut self, line: Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{line}");
    }
}

impl Family<'_> {
    /// Adds a sample. The labels are pairs of name and value; values may be any text: see [`Foreign`].
    pub fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.part("", labels, value);
    }

    /// Adds a histogram: the number of values up to each bound (cumulative, bounds rising), and the sum and the number of all
    /// values.
    pub fn histogram(
        &mut self,
        labels: &[(&str, &str)],
        buckets: impl IntoIterator<Item = (String, u64)>,
        sum: impl Display,
        count: u64,
    ) {
        for (bound, below) in buckets.into_iter().chain([("+Inf".into(), count)]) {
            let labels: Vec<_> = labels.iter().copied().chain([("le", &*bound)]).collect();
            self.part("_bucket", &labels, below);
        }
        self.part("_sum", labels, sum);
        self.part("_count", labels, count);
    }

    fn part(&mut self, suffix: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: String = labels.iter().map(|(label, text)| format!(",{label}=\"{}\"", escaped(text))).collect();
        let line = format!("{}{suffix}{{mount=\"{}\"{labels}}} {value}", self.name, self.page.mount);
        self.page.line(format_args!("{line}"));
    }
}

/// Returns the value of a label, with the escapes of the format.
fn escaped(text: &str) -> String {
    Foreign::of(text).to_string().replace('\\', "\\\\").replace('"', "\\\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_a_head_for_each_family_and_a_line_for_each_sample() {
        let mut page = Page::new("/a\"b\\c\nd");
        let mut family = page.family("x.y-total", FamilyKind::Counter, "What it counts");
        family.sample(&[], 1);
        family.sample(&[("user", "\"me\"")], 2.5);
        let times = [("0.1".to_owned(), 3), ("0.2".to_owned(), 4)];
        page.family("t", FamilyKind::Histogram, "Times").histogram(&[("op", "read")], times, "0.7", 5);
        let expected = r#"# HELP x_y_total What it counts.
# TYPE x_y_total counter
x_y_total{mount="/a\"b\\c\\nd"} 1
x_y_total{mount="/a\"b\\c\\nd",user="\"me\""} 2.5
# HELP t Times.
# TYPE t histogram
t_bucket{mount="/a\"b\\c\\nd",op="read",le="0.1"} 3
t_bucket{mount="/a\"b\\c\\nd",op="read",le="0.2"} 4
t_bucket{mount="/a\"b\\c\\nd",op="read",le="+Inf"} 5
t_sum{mount="/a\"b\\c\\nd",op="read"} 0.7
t_count{mount="/a\"b\\c\\nd",op="read"} 5
"#;
        assert_eq!(page.into_text(), expected);
    }
}
