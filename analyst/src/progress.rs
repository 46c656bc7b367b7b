//! Progress of a command as lines of JSON on standard error, for programs that run it.

use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use conclave_ops::terminal;
use serde_json::{Value, json};

/// Interval between lines while only the counts change.
const LINE_EVERY: Duration = Duration::from_millis(100);

/// The format of progress on standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProgressFormat {
    /// Bars on a terminal, lines of text elsewhere
    #[default]
    Text,
    /// One JSON object per line
    Json,
}

/// The option of commands that show progress.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct ProgressArgs {
    /// Progress on standard error
    #[arg(long = "progress", value_name = "FORMAT", value_enum, default_value_t)]
    pub(crate) format: ProgressFormat,
}

/// Lines of JSON, at most one each 100 ms while the phase stays.
#[derive(Default)]
pub(crate) struct Lines {
    last: Option<(Instant, String)>,
}

impl Lines {
    /// Prints the state that `state` returns if the phase is new or the last line is old enough.
    pub(crate) fn show(&mut self, phase: &str, state: impl FnOnce() -> Value) {
        let recent = |(when, last): &(Instant, String)| last == phase && when.elapsed() < LINE_EVERY;
        if self.last.as_ref().is_some_and(recent) {
            return;
        }
        self.last = Some((Instant::now(), phase.to_owned()));
        print("progress", state());
    }
}

/// Prints one event as a line of JSON on standard error.
pub(crate) fn print(event: &str, value: impl Into<Value>) {
    let value: Value = value.into();
    terminal::print_json_error(&json!({ event: value }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_printed_for_each_phase_and_not_for_each_count() {
        let (mut lines, mut printed) = (Lines::default(), 0);
        for phase in ["a", "a", "a", "b", "b", "a"] {
            lines.show(phase, || {
                printed += 1;
                json!({})
            });
        }
        assert_eq!(printed, 3);
        std::thread::sleep(LINE_EVERY);
        lines.show("a", || {
            printed += 1;
            json!({})
        });
        assert_eq!(printed, 4);
    }
}
