//! Mixing of a followed job's chains as a text table.

use conclave_common::job::RHAT;
use conclave_inference::diagnostics::worst_mixing;
use conclave_pages::plot::{evenly_spaced, spark_texts};
use conclave_pages::text::{effective, plain_name};
use conclave_proto::v1::{ParameterFigure, ParameterTraces, TracesReply};
use console::{Alignment, pad_str};

const NAME: usize = 14;
/// Width of all columns before the traces, spaces included.
const NUMBERS: usize = NAME + 38;
/// Minimum width of a legible trace, and the number of draws available.
const TRACE: (usize, usize) = (6, 64);

/// Formats a table of at most `most` lines for a terminal of `width` columns: each parameter's mean, standard deviation, R-hat,
/// ESS, and as many chains' traces as fit, on one scale. Empty if no row fits.
pub(super) fn table(reply: &TracesReply, width: usize, most: usize) -> Vec<String> {
    // One line for the header, and one for the omitted parameters.
    let left_out = |shown: usize| reply.parameters as usize > shown;
    let shown = reply.traces.len().min(most.saturating_sub(1));
    let shown = if left_out(shown) { shown.min(most.saturating_sub(2)) } else { shown };
    if shown == 0 {
        return Vec::new();
    }
    let chains = reply.traces.iter().map(|of| of.chains.len()).max().unwrap_or(0);
    let (chains, each) = room(width, chains);
    let ess = if reply.every > 1 { "ESS ≥" } else { "ESS" };
    let words = if reply.warmup { ["traces, warm-up", "warm-up"] } else { ["trace of each chain", "traces"] };
    let traces = words.into_iter().find(|word| word.len() < chains * (each + 1)).unwrap_or_default();
    let mut lines =
        vec![format!("{:NAME$} {:>19} {:>7} {ess:>7}  {traces}", "parameter", "mean ± sd", "R-hat ").trim_end().to_owned()];
    lines.extend(
        worst_mixing(reply.traces.iter().map(|of| of.rhat), shown)
            .into_iter()
            .map(|place| row(&reply.traces[place], chains, each)),
    );
    if left_out(shown) {
        let left = reply.parameters as usize - shown;
        lines.push(format!("and {left} more; {}", worst(reply).unwrap_or_default()).trim_end_matches("; ").to_owned());
    }
    lines
}

/// Returns the number of traces that fit, and the width of each.
fn room(width: usize, chains: usize) -> (usize, usize) {
    // A space after each: the last column of a terminal stays empty.
    let room = width.saturating_sub(NUMBERS);
    let chains = chains.min(room / (TRACE.0 + 1));
    (chains, (room / chains.max(1)).saturating_sub(1).min(TRACE.1))
}

fn row(of: &ParameterTraces, chains: usize, each: usize) -> String {
    let name = plain_name(&of.parameter);
    let rhat = match of.rhat {
        x if x > RHAT => in_digits(x) + "!",
        x if x.is_finite() => format!("{x:.3} "),
        _ => "- ".to_owned(),
    };
    let ess = of.ess_bulk.min(of.ess_tail);
    let ess = if ess.is_finite() { effective(ess) } else { "-".to_owned() };
    let traces: Vec<Vec<f64>> = of.chains.iter().take(chains).map(|chain| thinned(&chain.draws, each)).collect();
    let traces: Vec<String> = spark_texts(&traces.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let traces: Vec<String> = traces.iter().map(|trace| format!("{trace:each$}")).collect();
    let name = pad_str(&name, NAME, Alignment::Left, Some("…"));
    format!("{name} {:>19} {rhat:>7} {ess:>7}  {}", mean_and_sd(of.mean, of.sd), traces.join(" ")).trim_end().to_owned()
}

fn in_digits(rhat: f64) -> String {
    if rhat.is_finite() { format!("{rhat:.3}") } else { "∞".to_owned() }
}

fn thinned(draws: &[f32], most: usize) -> Vec<f64> {
    evenly_spaced(&draws.iter().map(|draw| f64::from(*draw)).collect::<Vec<_>>(), most)
}

/// Formats "0.31 ± 0.12", to two digits of the standard deviation, and to the unit if that is larger.
fn mean_and_sd(mean: f64, sd: f64) -> String {
    if !mean.is_finite() || !sd.is_finite() {
        return "-".to_owned();
    }
    let digits = (1.0 - if sd > 0.0 { libm::log10(sd).floor() } else { 0.0 }).max(0.0);
    match digits {
        0.0..=6.0 if mean.abs().max(sd) < 1e6 => format!("{mean:.0$} ± {sd:.0$}", digits as usize),
        // Enough digits to show the mean to a tenth of the standard deviation.
        _ => {
            let digits = if sd > 0.0 { libm::log10(mean.abs() / sd).ceil().clamp(0.0, 6.0) as usize + 1 } else { 1 };
            format!("{mean:.digits$e} ± {sd:.1e}")
        }
    }
}

/// Formats "worst R-hat 1.034 (age), least ESS 41 (bmi)"; `None` before either is known.
pub(super) fn worst(reply: &TracesReply) -> Option<String> {
    let named = |figure: &ParameterFigure, value: String| format!("{value} ({})", plain_name(&figure.parameter));
    let rhat = reply.rhat.as_ref().map(|figure| format!("worst R-hat {}", named(figure, in_digits(figure.value))));
    let least = if reply.every > 1 { "≥ " } else { "" };
    let ess = reply.ess.as_ref().map(|figure| format!("least ESS {least}{}", named(figure, effective(figure.value))));
    let known: Vec<String> = rhat.into_iter().chain(ess).collect();
    (!known.is_empty()).then(|| known.join(", "))
}

#[cfg(test)]
mod tests {
    use conclave_proto::v1::ChainTrace;
    use console::measure_text_width;

    use super::*;

    fn reply(parameters: u32, chains: usize) -> TracesReply {
        let chain = |c: usize| ChainTrace { draws: (0..64).map(|i| (c * 100 + i) as f32).collect() };
        let traces = (0..parameters.min(8)).map(|p| ParameterTraces {
            parameter: ["a\u{1b}[2J", "年齢年齢年齢年齢年齢", "a_rather_long_name_of_a_column", "x"][p as usize % 4].to_owned(),
            mean: -0.3123,
            sd: 0.0412,
            rhat: if p == 1 { 1.034 } else { 1.002 },
            ess_bulk: 1234.5,
            ess_tail: 812.9,
            chains: (0..chains).map(chain).collect(),
        });
        let figure = |value| Some(ParameterFigure { parameter: "a\u{1b}ge".to_owned(), value });
        let (traces, rhat, ess) = (traces.collect(), figure(1.0341), figure(41.7));
        TracesReply { warmup: false, every: 1, parameters, traces, rhat, ess }
    }

    #[test]
    fn every_width_has_its_table() {
        for (width, traces) in [(20, 0), (53, 0), (59, 1), (70, 2), (79, 3), (80, 4), (140, 4), (400, 4)] {
            let lines = table(&reply(3, 4), width, 20);
            assert_eq!(lines.len(), 4, "{lines:#?}");
            let spark = |line: &str| line.chars().filter(|c| ('▁'..='█').contains(c)).count();
            for line in &lines[1..] {
                assert!(line.chars().all(|c| !c.is_control()) && line.contains("-0.312 ± 0.041"), "{line:?}");
                assert_eq!(line.split(' ').filter(|word| spark(word) > 0).count(), traces, "{width}: {line}");
            }
            assert!(width < 59 || lines.iter().all(|line| measure_text_width(line) < width), "{width}: {lines:#?}");
        }
        let lines = table(&reply(3, 4), 140, 20);
        assert!(lines[2].contains("1.034!") && lines[1].contains("1.002 ") && lines[1].contains(" 812 "), "{lines:#?}");
        // One scale: each chain is above the one before.
        let words: Vec<&str> = lines[1].split(' ').collect();
        assert!(words[words.len() - 4].starts_with('▁') && words[words.len() - 1].ends_with('█'), "{}", lines[1]);
        assert_eq!(table(&TracesReply::default(), 80, 20), Vec::<String>::new());
    }

    #[test]
    fn what_there_is_no_room_for_is_counted() {
        assert_eq!(table(&reply(8, 2), 80, 9).len(), 9);
        for (most, lines) in [(0, 0), (1, 0), (2, 0), (3, 3), (8, 8)] {
            assert_eq!(table(&reply(8, 2), 80, most).len(), lines, "{most}");
        }
        let many = table(&reply(30, 2), 100, 20);
        assert_eq!((many.len(), many[9].as_str()), (10, "and 22 more; worst R-hat 1.034 (a ge), least ESS 41 (a ge)"));
    }

    #[test]
    fn numbers_that_are_not_known_are_dashes() {
        let nan =
            ParameterTraces { mean: f64::NAN, rhat: f64::NAN, ess_bulk: f64::NAN, ess_tail: f64::NAN, ..Default::default() };
        let lines = table(&TracesReply { traces: vec![nan], parameters: 1, warmup: true, ..Default::default() }, 80, 9);
        assert_eq!(lines[1].split_whitespace().collect::<Vec<_>>(), ["-", "-", "-"]);
        assert_eq!(
            (mean_and_sd(12.5, 0.0), mean_and_sd(1e9, 3e-9)),
            ("12.5 ± 0.0".to_owned(), "1.0000000e9 ± 3.0e-9".to_owned())
        );
        assert_eq!(
            (mean_and_sd(54321.4, 123.2), mean_and_sd(3.2e7, 1.5e4)),
            ("54321 ± 123".to_owned(), "3.20000e7 ± 1.5e4".to_owned())
        );
        assert_eq!(worst(&TracesReply::default()), None);
    }
}
