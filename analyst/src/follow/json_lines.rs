//! Progress of a followed job as lines of JSON.

use conclave_proto::v1::{JobStatus, TracesReply};
use serde_json::{Value, json};

use super::observer::Observer;
use super::pace::RunHistory;
use super::text::heading;
use crate::job_status::with_parties;
use crate::progress::{Lines, print};

/// An observer that prints every state as a line of JSON.
pub(super) struct JsonLines {
    lines: Lines,
    history: RunHistory,
    traces: TracesReply,
}

impl Default for JsonLines {
    fn default() -> Self {
        Self { lines: Lines::default(), history: RunHistory::new(None), traces: TracesReply::default() }
    }
}

impl Observer for JsonLines {
    fn begin(&mut self, source: Option<&str>) {
        self.history = RunHistory::new(source);
    }

    fn status(&mut self, status: &JobStatus) {
        let target = self.history.target(status, &self.traces);
        self.history.observe(status, target);
        let key = format!("{} {:?}", heading(status), status.waiting_for);
        self.lines.show(&key, || state(status, &self.history));
    }

    fn traces(&mut self, traces: TracesReply) {
        self.traces = traces;
    }

    fn notice(&mut self, text: &str) {
        print("message", text);
    }

    fn finish(&mut self) {}
}

/// Returns a job's state with its parties, pace and time left.
fn state(status: &JobStatus, history: &RunHistory) -> Value {
    let mut state = with_parties(status);
    state["rounds_per_second"] = json!(history.rounds_per_second());
    state["seconds_left"] = json!(history.seconds_left());
    let ended_by = history.ended_by().and_then(|index| status.parties.get(index));
    state["ended_by"] = json!(ended_by.map(|party| party.name.as_str()));
    state
}

#[cfg(test)]
mod tests {
    use super::*;
    use conclave_proto::v1::PartyStatus;

    #[test]
    fn a_state_has_its_parties_and_no_unknown_figures() {
        let party = PartyStatus { name: "a".to_owned(), epsilon_spent: 1.5, epsilon_budget: 3.0, ..PartyStatus::default() };
        let status = JobStatus { state: "running".to_owned(), draws: 7, parties: vec![party], ..JobStatus::default() };
        let state = state(&status, &RunHistory::new(None));
        assert_eq!((state["state"].as_str(), state["draws"].as_u64()), (Some("running"), Some(7)));
        let party = json!({ "name": "a", "attached": false, "epsilon_spent": 1.5, "epsilon_budget": 3.0 });
        assert_eq!(state["parties"], json!([party]));
        assert!(["rounds_per_second", "seconds_left", "ended_by"].iter().all(|key| state[*key].is_null()), "{state}");
    }
}
