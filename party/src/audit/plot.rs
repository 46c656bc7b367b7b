//! The audit's plot: the test statistic in both worlds, and the trade-off between the two error rates.

use std::fmt::Write;

use statrs::distribution::{ContinuousCDF, Normal};

use super::report::Report;
use super::statistics::Samples;

const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 420.0;
const PANEL: f64 = 340.0;
const LEFT: f64 = 50.0;
const RIGHT: f64 = 480.0;
const TOP: f64 = 50.0;
const BARS: usize = 60;

/// Returns a standalone SVG document, readable in light and dark mode.
pub(crate) fn svg(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
         font-size=\"13\">\n<style>text{{fill:#222}}.axis{{stroke:#222}}@media(prefers-color-scheme:dark){{text{{fill:#ddd}}\
         .axis{{stroke:#ddd}}}}</style>\n<title>Privacy audit: mu claimed {:.4}, lower bound {:.4}</title>\n",
        report.mu_claimed, report.mu_lower
    );
    if let Some(samples) = &report.samples {
        histogram(&mut out, samples, report.threshold);
        trade_off(&mut out, samples, report);
    }
    let _ = write!(
        out,
        "<text x=\"{LEFT}\" y=\"{}\">{} replicates per world; mu: claimed {:.4}, at least {:.4} (95%); epsilon at delta {:e}: \
         claimed {:.3}, at least {:.3}</text>\n</svg>\n",
        HEIGHT - 12.0,
        report.replicates,
        report.mu_claimed,
        report.mu_lower,
        report.delta,
        report.epsilon_claimed,
        report.epsilon_at_mu_lower
    );
    out
}

fn frame(out: &mut String, x: f64, title: &str, below: &str) {
    let (bottom, middle) = (TOP + PANEL - 40.0, x + PANEL / 2.0);
    let _ = write!(
        out,
        "<text x=\"{x}\" y=\"{}\" font-weight=\"bold\">{title}</text>\n\
         <path class=\"axis\" fill=\"none\" d=\"M{x} {TOP}V{bottom}H{}\"/>\n\
         <text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{below}</text>\n",
        TOP - 14.0,
        x + PANEL,
        bottom + 20.0
    );
}

fn histogram(out: &mut String, samples: &Samples, threshold: f64) {
    frame(out, LEFT, "Test statistic in each world", "likelihood ratio statistic, noise standard deviations");
    let mut all: Vec<f64> = samples.without.iter().chain(&samples.with).copied().collect();
    all.sort_by(f64::total_cmp);
    // The outermost values are left out: a fault may produce single extreme values.
    let at = |share: f64| all[((all.len() - 1) as f64 * share) as usize];
    let (low, high) = (at(0.001), at(0.999).max(at(0.001) + 1e-9));
    let height = PANEL - 40.0;
    let x_of = |value: f64| LEFT + PANEL * (value - low) / (high - low);
    let counts = |sample: &[f64]| {
        let mut counts = [0_u32; BARS];
        for value in sample.iter().filter(|v| (low..high).contains(*v)) {
            counts[(((value - low) / (high - low) * BARS as f64) as usize).min(BARS - 1)] += 1;
        }
        counts
    };
    let both = [(counts(&samples.without), "#2b6cb0", "without"), (counts(&samples.with), "#c05621", "with the record")];
    let most = f64::from(both.iter().flat_map(|(c, ..)| c).copied().max().unwrap_or(1).max(1));
    for (index, (counts, colour, name)) in both.iter().enumerate() {
        let mut path = format!("M{LEFT} {}", TOP + height);
        for (bar, count) in counts.iter().enumerate() {
            let (x, y) = (LEFT + PANEL * bar as f64 / BARS as f64, TOP + height * (1.0 - f64::from(*count) / most));
            let _ = write!(path, "L{x:.1} {y:.1}H{:.1}", x + PANEL / BARS as f64);
        }
        let _ = write!(
            out,
            "<path d=\"{path}V{}Z\" fill=\"{colour}\" fill-opacity=\"0.25\" stroke=\"{colour}\"/>\n\
             <text x=\"{}\" y=\"{}\" style=\"fill:{colour}\">{name}</text>\n",
            TOP + height,
            LEFT + 8.0,
            TOP + 14.0 + 18.0 * index as f64
        );
    }
    if (low..high).contains(&threshold) {
        let _ =
            writeln!(out, "<path class=\"axis\" stroke-dasharray=\"4\" d=\"M{:.1} {TOP}V{}\"/>", x_of(threshold), TOP + height);
    }
}

/// Draws false negatives against false positives, observed and as bounded by the claim.
fn trade_off(out: &mut String, samples: &Samples, report: &Report) {
    frame(out, RIGHT, "Errors of every threshold", "false positives (0 to 1); upwards: false negatives (0 to 1)");
    let height = PANEL - 40.0;
    let point = |alpha: f64, beta: f64| format!("{:.1} {:.1}", RIGHT + PANEL * alpha, TOP + height * (1.0 - beta));
    let normal = Normal::standard();
    let claimed = |alpha: f64| normal.cdf(normal.inverse_cdf(1.0 - alpha) - report.mu_claimed);
    let curve = |points: &mut dyn Iterator<Item = String>| points.collect::<Vec<_>>().join("L");
    let steps = (1..200).map(|i| f64::from(i) / 200.0);
    let _ = writeln!(
        out,
        "<path fill=\"none\" stroke=\"#2b6cb0\" stroke-dasharray=\"6 3\" d=\"M{}\"/>",
        curve(&mut steps.map(|alpha| point(alpha, claimed(alpha))))
    );
    let (mut without, mut with) = (samples.without.clone(), samples.with.clone());
    without.sort_by(f64::total_cmp);
    with.sort_by(f64::total_cmp);
    let seen = (1..200).filter_map(|i| {
        let threshold = *without.get(i * without.len() / 200)?;
        let below = |v: &[f64]| v.partition_point(|x| *x < threshold) as f64 / v.len() as f64;
        Some(point(1.0 - below(&without), below(&with)))
    });
    let _ = write!(
        out,
        "<path fill=\"none\" stroke=\"#c05621\" stroke-width=\"2\" d=\"M{}\"/>\n\
         <text x=\"{}\" y=\"{}\" text-anchor=\"end\" style=\"fill:#2b6cb0\">minimum for mu = {:.3} (dashed)</text>\n\
         <text x=\"{}\" y=\"{}\" text-anchor=\"end\" style=\"fill:#c05621\">observed</text>\n",
        curve(&mut seen.into_iter()),
        RIGHT + PANEL,
        TOP + 14.0,
        report.mu_claimed,
        RIGHT + PANEL,
        TOP + 32.0
    );
}
