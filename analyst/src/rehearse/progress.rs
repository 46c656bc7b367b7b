//! Progress of a rehearsal: a bar on a terminal, or lines of JSON.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use super::run::RehearsalState;
use crate::progress::{Lines, ProgressFormat};

/// A bar on a terminal or lines of JSON; nothing elsewhere.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    lines: Option<Lines>,
    shown: Instant,
}

impl Progress {
    pub(super) fn new(draws: u64, format: ProgressFormat) -> Self {
        let lines = (format == ProgressFormat::Json).then(Lines::default);
        let bar = (lines.is_none() && std::io::stderr().is_terminal()).then(|| {
            let bar = ProgressBar::new(draws);
            // The template is a constant known to parse; a plain bar would serve as well.
            if let Ok(style) = ProgressStyle::with_template("{prefix:>10} [{bar:30}] {msg}") {
                bar.set_style(style.progress_chars("=> "));
            }
            bar
        });
        Self { bar, lines, shown: Instant::now() }
    }

    pub(super) fn show(&mut self, state: &RehearsalState) {
        let RehearsalState { phase, rounds, draws, draws_asked } = *state;
        if let Some(lines) = &mut self.lines {
            let state = || json!({ "phase": phase.as_str(), "rounds": rounds, "draws": draws, "draws_asked": draws_asked });
            lines.show(phase.as_str(), state);
        }
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
