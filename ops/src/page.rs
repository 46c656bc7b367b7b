//! The page of metrics, in the text format of Prometheus (OpenMetrics 1.0).

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::usage::Usage;

/// The page's content type.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A daemon's source of metrics, read at each request of the page.
pub trait Source: fmt::Debug + Send + Sync + 'static {
    /// Writes every metric.
    ///
    /// # Errors
    /// Those of the page's methods.
    fn write(&self, page: &mut Page<'_>) -> fmt::Result;

    /// Checks that the daemon works.
    ///
    /// # Errors
    /// The reason in a few words.
    fn health(&self) -> Result<(), String>;
}

/// Renders the current page.
///
/// # Errors
/// An error if a metric can't be written.
pub fn render(source: &Arc<dyn Source>) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(AsCollector(Arc::clone(source))));
    let mut page = String::new();
    text::encode(&mut page, &registry)?;
    Ok(page)
}

#[derive(Debug)]
struct AsCollector(Arc<dyn Source>);

impl Collector for AsCollector {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.write(&mut Page(encoder))
    }
}

/// A writer of a page. Names end in their unit, as Prometheus recommends; a counter's `_total` is added.
#[derive(Debug)]
pub struct Page<'a>(DescriptorEncoder<'a>);

/// A label's value with the metric's value.
pub type Labelled<V> = (String, V);

impl Page<'_> {
    /// Writes a value that may rise and fall.
    ///
    /// # Errors
    /// An error if it can't be written.
    pub fn gauge(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        let metric = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(value).encode(metric)
    }

    /// Writes a count that never decreases while the process runs.
    ///
    /// # Errors
    /// An error if it can't be written.
    pub fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        let metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(value).encode(metric)
    }

    /// Writes gauges that differ in one label.
    ///
    /// # Errors
    /// An error if one can't be written.
    pub fn gauges(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = Labelled<f64>>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        values
            .into_iter()
            .try_for_each(|(of, value)| ConstGauge::new(value).encode(family.encode_family(&[(label, of.as_str())])?))
    }

    /// Writes counters that differ in one label.
    ///
    /// # Errors
    /// An error if one can't be written.
    pub fn counters(
        &mut self,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = Labelled<u64>>,
    ) -> fmt::Result {
        let mut family = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        values
            .into_iter()
            .try_for_each(|(of, value)| ConstCounter::new(value).encode(family.encode_family(&[(label, of.as_str())])?))
    }

    /// Writes a histogram.
    ///
    /// # Errors
    /// An error if it can't be written.
    pub fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) -> fmt::Result {
        let metric = self.0.encode_descriptor(name, help, None, MetricType::Histogram)?;
        histogram.encode(metric)
    }

    /// Writes the start time of the process, under the name used by Prometheus's own libraries, and its software.
    ///
    /// # Errors
    /// An error if it can't be written.
    pub fn process(&mut self, started: SystemTime, software: &str) -> fmt::Result {
        self.gauge("process_start_time_seconds", "Start time of the process, Unix time", unix_seconds(started))?;
        self.gauges("conclave_build_info", "The running software", "software", [(software.to_owned(), 1.0)])
    }

    /// Writes the resource usage of the process, under the names used by Prometheus's own libraries; nothing if the system does
    /// not report it. A daemon that holds records must not call it, since its usage depends on them.
    ///
    /// # Errors
    /// An error if it can't be written.
    pub fn process_usage(&mut self) -> fmt::Result {
        let Usage { resident_bytes, open_fds, max_fds } = Usage::now();
        let figures = [
            ("process_resident_memory_bytes", "Memory in use", resident_bytes),
            ("process_open_fds", "Open file descriptors", open_fds),
            ("process_max_fds", "Maximum number of open file descriptors", max_fds),
        ];
        figures
            .into_iter()
            .try_for_each(|(name, help, figure)| figure.map_or(Ok(()), |value| self.gauge(name, help, value as f64)))
    }
}

/// Returns the seconds since 1970, as in Prometheus.
pub fn unix_seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).map(|since| since.as_secs_f64()).unwrap_or_default()
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[derive(Debug)]
    pub(crate) struct Sample(pub(crate) Result<(), String>);

    impl Source for Sample {
        fn write(&self, page: &mut Page<'_>) -> fmt::Result {
            page.gauge("things", "How many", 1.5)?;
            page.counter("rounds", "Done", 7)?;
            page.gauges("jobs", "By state", "state", [("running \"now\"".to_owned(), 2.0), ("queued".to_owned(), 0.0)])?;
            page.counters("replies", "By status", "status", [("released".to_owned(), 3)])?;
            let seconds = Histogram::new([0.1, 1.0]);
            seconds.observe(0.5);
            page.histogram("commit_seconds", "Took", &seconds)
        }

        fn health(&self) -> Result<(), String> {
            self.0.clone()
        }
    }

    #[test]
    fn a_page_reads_as_prometheus_expects() {
        let source: Arc<dyn Source> = Arc::new(Sample(Ok(())));
        let page = render(&source).unwrap();
        for line in [
            "# TYPE things gauge",
            "things 1.5",
            "rounds_total 7",
            "jobs{state=\"running \\\"now\\\"\"} 2.0",
            "replies_total{status=\"released\"} 3",
            "commit_seconds_bucket{le=\"0.1\"} 0",
            "commit_seconds_bucket{le=\"1.0\"} 1",
            "commit_seconds_count 1",
            "# EOF",
        ] {
            assert!(page.lines().any(|l| l == line), "no {line:?} in\n{page}");
        }
    }
}
