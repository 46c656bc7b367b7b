//! Progress bar of a rehearsal on a terminal.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use super::run::RehearsalState;

/// A bar on a terminal; nothing elsewhere.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    shown: Instant,
}

impl Progress {
    pub(super) fn new(draws: u64) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(draws);
            // The template is a constant known to parse; a plain bar would serve as well.
            if let Ok(style) = ProgressStyle::with_template("{prefix:>10} [{bar:30}] {msg}") {
                bar.set_style(style.progress_chars("=> "));
            }
            bar
        });
        Self { bar, shown: Instant::now() }
    }

    pub(super) fn show(&mut self, state: &RehearsalState) {
        let RehearsalState { phase, rounds, draws, .. } = *state;
        let Some(bar) = &self.bar else { return };
        if self.shown.elapsed() >= Duration::from_millis(100) {
            self.shown = Instant::now();
            bar.set_position(draws);
            bar.set_prefix(phase.as_str());
            bar.set_message(format!("{draws} draws per chain, {rounds} rounds"));
        }
    }

    pub(super) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
