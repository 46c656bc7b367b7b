//! Progress of a followed job: bars on a terminal, plain lines elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant, SystemTime};

use conclave_common::epsilon;
use conclave_common::text::{lines, one_line};
use conclave_pages::document::wrap;
use conclave_pages::plot::spark_text;
use conclave_pages::target::Target;
use conclave_pages::text::{percent, plain_name};
use conclave_proto::v1::{JobStatus, PartyStatus, TracesReply};
use console::{Term, style};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::chain_table;
use super::observer::Observer;
use super::pace::{HISTORY, RunHistory, most_spent};
use super::text::{describe, heading, new_warnings, waits_for_consent};
use crate::output::note;

/// Interval between printed lines without a terminal while only the counts change.
const LINE_EVERY: Duration = Duration::from_secs(5);
const BARS: usize = 8;

/// Bars on a terminal, plain lines elsewhere.
pub(super) struct Screen {
    terminal: Option<Terminal>,
    last_line: Option<(Instant, String)>,
    /// Warnings already printed.
    warned: Vec<String>,
    history: RunHistory,
    traces: TracesReply,
}

impl Default for Screen {
    fn default() -> Self {
        // A terminal without cursor control is treated as none.
        let terminal = std::io::stderr().is_terminal().then(Terminal::new).filter(|terminal| !terminal.bars.is_hidden());
        Self { terminal, last_line: None, warned: Vec::new(), history: RunHistory::new(None), traces: TracesReply::default() }
    }
}

impl Observer for Screen {
    fn begin(&mut self, source: Option<&str>) {
        self.history = RunHistory::new(source);
    }

    fn status(&mut self, status: &JobStatus) {
        let target = self.history.target(status, &self.traces);
        self.history.observe(status, target);
        let text = one_line(&describe(status, target, SystemTime::now()));
        for warning in new_warnings(&mut self.warned, &status.warnings) {
            self.notice(&format!("Warning: {warning}"));
        }
        if let Some(terminal) = &mut self.terminal {
            terminal.show(status, (text, target), &self.history);
            terminal.trace(&self.traces);
            return;
        }
        let key = format!("{} {:?} {}", heading(status), status.waiting_for, status.waiting_reason);
        let due = match &self.last_line {
            None => true,
            Some((when, last)) => *last != key || when.elapsed() >= LINE_EVERY,
        };
        if due {
            let pace = self.history.pace_text(status);
            let mixing = chain_table::worst(&self.traces).filter(|_| !self.traces.warmup);
            let mixing = mixing.map(|worst| format!("; {worst}")).unwrap_or_default();
            let lead = if waits_for_consent(status) { String::new() } else { format!("{}: ", one_line(heading(status))) };
            note!("{lead}{text}{pace}{}{mixing}", largest_spending(status, &self.history));
            self.last_line = Some((Instant::now(), key));
        }
    }

    fn traces(&mut self, traces: TracesReply) {
        if let Some(terminal) = &mut self.terminal {
            terminal.trace(&traces);
        }
        self.traces = traces;
    }

    fn notice(&mut self, text: &str) {
        match &self.terminal {
            Some(terminal) => terminal.main.println(lines(text)),
            None => note!("{text}"),
        }
    }

    fn finish(&mut self) {
        if let Some(terminal) = &self.terminal {
            terminal.finish();
        }
    }
}

impl Drop for Screen {
    // A watch interrupted by Ctrl-C leaves a clean line too.
    fn drop(&mut self) {
        self.finish();
    }
}

/// Formats "; epsilon 1.20 of 3 at hospital-a, 2.90 expected at the end" for the party nearest to its budget's end.
fn largest_spending(status: &JobStatus, history: &RunHistory) -> String {
    let nearest = most_spent(status, 1).first().and_then(|index| Some((*index, status.parties.get(*index)?)));
    let spent = nearest.filter(|(_, party)| party.epsilon_spent > 0.0);
    spent
        .map(|(index, party)| format!("; {} at {}", budget(party, history.epsilon_at_end(index)), plain_name(&party.name)))
        .unwrap_or_default()
}

/// Formats "epsilon 1.20 of 3 (40%), 2.90 expected at the end".
fn budget(party: &PartyStatus, projected: Option<f64>) -> String {
    let share = percent(party.epsilon_spent / party.epsilon_budget);
    let at_end = projected.map(|epsilon| format!(", {} expected at the end", epsilon::spent(epsilon))).unwrap_or_default();
    format!("epsilon {} of {} ({share}){at_end}", epsilon::spent(party.epsilon_spent), party.epsilon_budget)
}

/// From the top: the awaited parties, progress, the parties' budgets, recent pace, and mixing of the chains.
struct Terminal {
    bars: MultiProgress,
    waiting: ProgressBar,
    main: ProgressBar,
    parties: Vec<ProgressBar>,
    others: ProgressBar,
    pace: ProgressBar,
    history: ProgressBar,
    chains: Vec<ProgressBar>,
}

/// Resolution of a budget's bar.
const STEPS: f64 = 1000.0;

/// Sets a bar's template, a constant known to parse; a plain bar would serve as well.
fn styled(bar: ProgressBar, template: &str, characters: &str) -> ProgressBar {
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style.progress_chars(characters)),
        Err(_) => bar,
    }
}

impl Terminal {
    fn new() -> Self {
        let bars = MultiProgress::new();
        let line = |template: &str| styled(bars.add(ProgressBar::new(1)), template, "=> ");
        let waiting = line("{msg}");
        let main = line("{prefix:>10} [{bar:24}] {wide_msg}");
        main.enable_steady_tick(Duration::from_millis(200));
        let (others, pace, history) = (line("{wide_msg:.dim}"), line("{wide_msg}"), line("{wide_msg}"));
        Self { waiting, main, parties: Vec::new(), others, pace, history, chains: Vec::new(), bars }
    }

    fn show(&mut self, status: &JobStatus, (text, target): (String, Option<Target>), history: &RunHistory) {
        let paused = !status.waiting_for.is_empty();
        // The reason stands on as many lines as it needs.
        let width = usize::from(Term::stderr().size().1);
        let waits = match (paused, waits_for_consent(status)) {
            (false, _) => String::new(),
            // An owner's decision is no fault.
            (true, true) => style(wrap(&format!("◌ {text}"), width)).blue().to_string(),
            (true, false) => style(wrap(&format!("! {text}"), width)).yellow().bold().to_string(),
        };
        self.waiting.set_message(waits);
        // The bar runs toward the rule that ends the job.
        let (done, all) = target.map_or((status.draws, status.draws_asked), |target| target.effective());
        self.main.set_length(all.max(1));
        self.main.set_position(done);
        self.main.set_prefix(one_line(heading(status)));
        self.main.set_message(if paused { format!("{} of {} draws per chain", status.draws, status.draws_asked) } else { text });
        let shown = most_spent(status, BARS);
        while self.parties.len() < shown.len() {
            self.parties.push(self.party());
        }
        for (bar, index) in self.parties.iter().zip(&shown) {
            let Some(party) = status.parties.get(*index) else { continue };
            let away = if party.attached { "" } else { ", away" };
            bar.set_prefix(plain_name(&party.name));
            bar.set_position((STEPS * (party.epsilon_spent / party.epsilon_budget).clamp(0.0, 1.0)) as u64);
            bar.set_message(budget(party, history.epsilon_at_end(*index)) + away);
        }
        let rest = status.parties.len() - shown.len();
        self.others.set_message(if rest > 0 { format!("{rest} other parties have spent less") } else { String::new() });
        let line = |name: &str, values: &[f64]| format!("{name} {}", spark_text(values, HISTORY));
        self.pace.set_message(history.pace_text(status).trim_start_matches(", ").to_owned());
        let late = format!("{}   {}", line("rounds/s", &history.rates), line("accepted", &history.accepted));
        self.history.set_message(if history.rates.len() > 1 { late } else { String::new() });
    }

    /// Shows the chains on the lines remaining below everything else.
    fn trace(&mut self, traces: &TracesReply) {
        let (height, width) = Term::stderr().size();
        // The five permanent lines, and the last one, which holds the cursor.
        let left = usize::from(height).saturating_sub(self.parties.len() + 6);
        let table = chain_table::table(traces, usize::from(width), left);
        while self.chains.len() > table.len() {
            self.chains.pop().iter().for_each(|bar| self.bars.remove(bar));
        }
        while self.chains.len() < table.len() {
            self.chains.push(styled(self.bars.add(ProgressBar::new(1)), "{wide_msg}", "=> "));
        }
        self.chains.iter().zip(table).for_each(|(bar, line)| bar.set_message(line));
    }

    fn party(&self) -> ProgressBar {
        let bar = self.bars.insert_before(&self.others, ProgressBar::new(STEPS as u64));
        styled(bar, "{prefix:>16} [{bar:18}] {wide_msg}", "## ")
    }

    fn finish(&self) {
        for bar in [&self.waiting, &self.main, &self.others, &self.pace, &self.history]
            .into_iter()
            .chain(&self.parties)
            .chain(&self.chains)
        {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_said_in_one_line() {
        let party =
            PartyStatus { name: "a\u{1b}[2J".to_owned(), epsilon_spent: 1.2, epsilon_budget: 3.0, ..PartyStatus::default() };
        assert_eq!(budget(&party, Some(2.9)), "epsilon 1.20 of 3 (40%), 2.90 expected at the end");
        let status = JobStatus { parties: vec![PartyStatus::default(), party], ..JobStatus::default() };
        assert_eq!(largest_spending(&status, &RunHistory::new(None)), "; epsilon 1.20 of 3 (40%) at a [2J");
        assert_eq!(largest_spending(&JobStatus::default(), &RunHistory::new(None)), "");
    }

    #[test]
    fn bars_take_any_status() {
        let mut terminal = Terminal::new();
        let party = |name: &str| PartyStatus { name: name.to_owned(), epsilon_spent: f64::NAN, ..PartyStatus::default() };
        let many = JobStatus { parties: (0..20).map(|i| party(&i.to_string())).collect(), ..JobStatus::default() };
        for status in [JobStatus::default(), many] {
            terminal.show(&status, ("words".to_owned(), None), &RunHistory::new(None));
        }
        assert_eq!(terminal.parties.len(), BARS);
        terminal.finish();
    }
}
