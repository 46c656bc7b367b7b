//! States of a followed job as objects.

use std::time::{Duration, Instant};

use conclave_proto::v1::{JobStatus, TracesReply};
use serde_json::{Value, json};

use crate::follow::{Observer, RunHistory, has_ended};
use crate::job_status::with_parties;

/// Least time between two states of a job whose state does not change.
const EVERY: Duration = Duration::from_millis(100);

/// Passes each state of a followed job to a callback.
pub(super) struct Reporter<F> {
    observe: F,
    history: RunHistory,
    traces: TracesReply,
    last: Option<(Instant, String)>,
}

impl<F: FnMut(&Value)> Reporter<F> {
    pub(super) fn new(observe: F) -> Self {
        Self { observe, history: RunHistory::new(None), traces: TracesReply::default(), last: None }
    }
}

impl<F: FnMut(&Value) + Send> Observer for Reporter<F> {
    fn begin(&mut self, source: Option<&str>) {
        self.history = RunHistory::new(source);
    }

    fn status(&mut self, status: &JobStatus) {
        let target = self.history.target(status, &self.traces);
        self.history.observe(status, target);
        let key = format!("{} {} {:?}", status.state, status.phase, status.waiting_for);
        let is_new = self.last.as_ref().is_none_or(|(when, last)| *last != key || when.elapsed() >= EVERY);
        if !is_new && !has_ended(&status.state) {
            return;
        }
        self.last = Some((Instant::now(), key));
        let mut object = with_parties(status);
        object["rounds_per_second"] = json!(self.history.rounds_per_second());
        object["seconds_left"] = json!(self.history.seconds_left());
        let party = self.history.ended_by().and_then(|party| status.parties.get(party));
        object["ended_by"] = json!(party.map(|party| &party.name));
        for party in 0..status.parties.len() {
            object["parties"][party]["epsilon_at_end"] = json!(self.history.epsilon_at_end(party));
        }
        object["rhat"] = json!(self.traces.rhat.as_ref().map(|worst| worst.value));
        object["ess"] = json!(self.traces.ess.as_ref().map(|least| least.value));
        (self.observe)(&object);
    }

    fn traces(&mut self, traces: TracesReply) {
        self.traces = traces;
    }

    fn notice(&mut self, text: &str) {
        (self.observe)(&json!({ "notice": text }));
    }

    fn finish(&mut self) {}
}
