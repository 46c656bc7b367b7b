//! Following a job to its end: the stream of statuses, the progress shown, the broken connection survived.

use std::io::IsTerminal;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use conclave_proto::error::{ErrorCode, Fault, from_status};
use conclave_proto::v1::jobs_client::JobsClient;
use conclave_proto::v1::{JobRequest, JobStatus};
use indicatif::{ProgressBar, ProgressStyle};
use tonic::transport::Channel;

use crate::table::thousands;

/// A coordinator that does not come back within this time ends the watching, not the job.
const PATIENCE: Duration = Duration::from_secs(120);
/// Pause before the watch is asked for again.
const RETRY: Duration = Duration::from_secs(1);
/// Without a terminal, a line is printed this often while nothing changes but the counts.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Whether a job in this state will not change any more.
pub(crate) fn has_ended(state: &str) -> bool {
    matches!(state, "finished" | "cancelled" | "failed")
}

/// Follows a job until it has ended and gives its last status. Progress goes to standard error.
pub(crate) async fn follow(client: &mut JobsClient<Channel>, job: &str) -> Result<JobStatus, Fault> {
    let mut progress = Progress::new();
    let mut lost_since: Option<Instant> = None;
    loop {
        let fault = match watch_once(client, job, &mut progress, &mut lost_since).await {
            Ok(Some(status)) => {
                progress.finish();
                return Ok(status);
            }
            // A stream that ends before the job does: the coordinator is going down.
            Ok(None) => Fault::new(ErrorCode::Unreachable, "the coordinator closed the connection"),
            Err(fault) => fault,
        };
        if fault.code != ErrorCode::Unreachable {
            progress.finish();
            return Err(fault);
        }
        let since = *lost_since.get_or_insert_with(|| {
            progress.say(&format!("{fault}; the job does not need us, trying again"));
            Instant::now()
        });
        if since.elapsed() > PATIENCE {
            progress.finish();
            return Err(Fault::new(
                ErrorCode::Unreachable,
                format!(
                    "the coordinator has been unreachable for {} s. The job goes on when it is back: \
                     `conclave watch {job}`",
                    PATIENCE.as_secs()
                ),
            ));
        }
        tokio::time::sleep(RETRY).await;
    }
}

async fn watch_once(
    client: &mut JobsClient<Channel>,
    job: &str,
    progress: &mut Progress,
    lost_since: &mut Option<Instant>,
) -> Result<Option<JobStatus>, Fault> {
    let request = JobRequest { job: job.to_owned() };
    let fault = |status: tonic::Status| from_status(&status);
    let mut stream = client.watch(request).await.map_err(fault)?.into_inner();
    while let Some(status) = stream.message().await.map_err(fault)? {
        *lost_since = None;
        progress.show(&status);
        if has_ended(&status.state) {
            return Ok(Some(status));
        }
    }
    Ok(None)
}

/// A bar on a terminal, plain lines elsewhere.
struct Progress {
    bar: Option<ProgressBar>,
    last_line: Option<(Instant, String)>,
    /// Warnings said already.
    warned: Vec<String>,
}

impl Progress {
    fn new() -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(0);
            // The template is a constant that is known to parse; a plain bar would do as well.
            if let Ok(style) = ProgressStyle::with_template("{prefix:>10} [{bar:30}] {msg}") {
                bar.set_style(style.progress_chars("=> "));
            }
            bar.enable_steady_tick(Duration::from_millis(200));
            bar
        });
        Self { bar, last_line: None, warned: Vec::new() }
    }

    fn show(&mut self, status: &JobStatus) {
        let text = describe(status, SystemTime::now());
        for warning in unsaid(&mut self.warned, &status.warnings) {
            self.say(&format!("Warning: {warning}"));
        }
        if let Some(bar) = &self.bar {
            bar.set_length(status.draws_asked.max(1));
            bar.set_position(status.draws);
            bar.set_prefix(heading(status).to_owned());
            bar.set_message(text);
            return;
        }
        let key = format!("{} {:?} {}", heading(status), status.waiting_for, status.waiting_reason);
        let due = match &self.last_line {
            None => true,
            Some((when, last)) => *last != key || when.elapsed() >= LINE_EVERY,
        };
        if due {
            eprintln!("{}: {text}", heading(status));
            self.last_line = Some((Instant::now(), key));
        }
    }

    fn say(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => eprintln!("{text}"),
        }
    }

    fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Drop for Progress {
    // A watch that is broken off by Ctrl-C leaves a clean line too.
    fn drop(&mut self) {
        self.finish();
    }
}

/// Warnings that have not been said, each once; control characters left out.
fn unsaid(said: &mut Vec<String>, warnings: &[String]) -> Vec<String> {
    let fresh: Vec<String> = warnings.iter().filter(|warning| !said.contains(warning)).cloned().collect();
    said.extend_from_slice(&fresh);
    fresh.iter().map(|warning| warning.chars().filter(|c| !c.is_control()).collect()).collect()
}

/// The one word for where the job is.
fn heading(status: &JobStatus) -> &str {
    match (status.state.as_str(), status.phase.as_str()) {
        ("running", "") => "running",
        ("running", phase) => phase,
        (state, _) => state,
    }
}

/// What there is to say about a job that goes on.
fn describe(status: &JobStatus, now: SystemTime) -> String {
    let undecided = &status.awaiting_consent;
    if !undecided.is_empty() && status.waiting_for.iter().all(|party| undecided.contains(party)) {
        return format!(
            "waiting for the consent of the owner of {}; the job starts by itself once it is given",
            undecided.join(", ")
        );
    }
    if !status.waiting_for.is_empty() {
        return format!(
            "waiting for {}{}{}; the chain goes on by itself when {} back",
            status.waiting_for.join(", "),
            waiting_since(status.waiting_since_unix_ms, now),
            waiting_reason(&status.waiting_reason),
            if status.waiting_for.len() == 1 { "it is" } else { "they are" }
        );
    }
    match heading(status) {
        "queued" => "waiting for its turn".to_owned(),
        "opening" => "asking the parties for their consent".to_owned(),
        "locate" => format!("round {}, finding the mode", thousands(status.iteration)),
        "warmup" => format!("round {}, adapting{}", thousands(status.iteration), accepted(status)),
        _ => format!(
            "{} of at most {} draws per chain{}, {:.0} s",
            thousands(status.draws),
            thousands(status.draws_asked),
            accepted(status),
            status.seconds
        ),
    }
}

fn accepted(status: &JobStatus) -> String {
    if status.acceptance_rate > 0.0 { format!(", {:.0}% accepted", 100.0 * status.acceptance_rate) } else { String::new() }
}

/// " (its ledger is ...)", what the parties waited for say of it; nothing where they say nothing.
fn waiting_reason(reason: &str) -> String {
    let reason: String = reason.chars().filter(|c| !c.is_control()).take(500).collect();
    if reason.is_empty() { reason } else { format!(" ({reason})") }
}

/// ", since 14:03:11 UTC (40 s)"; nothing where the moment is not known.
fn waiting_since(unix_ms: i64, now: SystemTime) -> String {
    let since = u64::try_from(unix_ms).ok().filter(|ms| *ms > 0).map(Duration::from_millis);
    let Some(since) = since else {
        return String::new();
    };
    let elapsed = now.duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(since);
    let of_day = since.as_secs() % 86_400;
    format!(" since {:02}:{:02}:{:02} UTC ({} s)", of_day / 3600, of_day / 60 % 60, of_day % 60, elapsed.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_names_the_party_and_since_when() {
        let status = JobStatus {
            state: "paused".to_owned(),
            phase: "sampling".to_owned(),
            waiting_for: vec!["hospital-b".to_owned()],
            waiting_since_unix_ms: 1_000_000,
            ..JobStatus::default()
        };
        let now = UNIX_EPOCH + Duration::from_secs(1_040);
        let text = describe(&status, now);
        assert!(text.contains("waiting for hospital-b since 00:16:40 UTC (40 s)"), "{text}");
        assert_eq!(heading(&status), "paused");
        let status = JobStatus { waiting_reason: "its data have changed".to_owned(), ..status };
        assert!(describe(&status, now).contains("(40 s) (its data have changed); the chain goes on"));
    }

    #[test]
    fn an_owner_who_has_yet_to_decide_is_named() {
        let both = vec!["hospital-a".to_owned(), "hospital-b".to_owned()];
        let status = JobStatus {
            state: "opening".to_owned(),
            waiting_for: both.clone(),
            awaiting_consent: both.clone(),
            ..JobStatus::default()
        };
        let text = describe(&status, UNIX_EPOCH);
        assert!(text.contains("consent of the owner of hospital-a, hospital-b"), "{text}");
        // Where another party is away, that is what holds the job up.
        let text = describe(&JobStatus { awaiting_consent: both[..1].to_vec(), ..status }, UNIX_EPOCH);
        assert!(text.contains("waiting for hospital-a, hospital-b"), "{text}");
    }

    #[test]
    fn a_warning_is_said_once() {
        let mut said = Vec::new();
        let two = ["the clip\u{1b} cuts 3%".to_owned(), "another".to_owned()];
        assert_eq!(unsaid(&mut said, &two[..1]), ["the clip cuts 3%"]);
        assert_eq!(unsaid(&mut said, &two), ["another"]);
        assert!(unsaid(&mut said, &two).is_empty());
    }

    #[test]
    fn each_phase_has_its_words() {
        for (state, phase, part) in [
            ("queued", "", "turn"),
            ("opening", "", "consent"),
            ("running", "locate", "mode"),
            ("running", "warmup", "adapting"),
            ("running", "sampling", "3 of at most 10 draws"),
        ] {
            let status =
                JobStatus { state: state.to_owned(), phase: phase.to_owned(), draws: 3, draws_asked: 10, ..JobStatus::default() };
            let text = describe(&status, UNIX_EPOCH);
            assert!(text.contains(part), "{text}");
        }
    }
}
