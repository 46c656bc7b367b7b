//! Marginal densities of a parameter by chain.

use maud::{Markup, html};

use super::axis::Axis;
use super::effective::effective;
use super::figure::{Field, Figure, class_of, figure};
use super::path::Path;
use crate::precision::{by_width, rough};
use crate::table::{Cell, Table};
use crate::text::{plain_name, thousands};

/// Number of grid points for densities.
const GRID: usize = 128;
/// Cut-off of a kernel, in bandwidths.
const REACH: f64 = 4.0;

/// The content of a density plot.
#[derive(Clone, Copy)]
pub struct Densities<'a> {
    /// Distinguishes the plot from others on the page: letters, digits and `-`.
    pub id: &'a str,
    /// The parameter.
    pub parameter: &'a str,
    /// The scale, in a few words.
    pub scale: &'a str,
    /// Draws of each chain. Chains after the eighth appear only in the table.
    pub chains: &'a [&'a [f64]],
    /// The support of the parameter, infinite if unbounded: densities end at its bounds.
    pub support: (f64, f64),
    /// The prior's log density up to a constant, drawn beside the chains if given.
    pub log_prior: Option<&'a dyn Fn(f64) -> f64>,
}

/// Plots one density per chain on a common grid.
#[must_use]
pub fn density(of: &Densities<'_>) -> Markup {
    let parameter = plain_name(of.parameter);
    let field = Field { left: 24.0, ..Field::new(290.0, 180.0) };
    let kernels: Vec<Kernel> = of.chains.iter().map(|draws| Kernel::new(draws)).collect();
    let x = grid_of(of.chains, &kernels, of.support);
    let step = (x.greatest - x.least) / (GRID - 1) as f64;
    let points: Vec<f64> = (0..GRID).map(|i| x.least + i as f64 * step).collect();
    let apart = of.chains.len().min(super::figure::SERIES);
    let curves: Vec<Vec<f64>> =
        kernels[..apart].iter().zip(of.chains).map(|(kernel, draws)| kernel.curve(draws, &points, of.support)).collect();
    let highest = curves.iter().flatten().copied().fold(0.0_f64, f64::max);
    let y = Axis::between(0.0, if highest > 0.0 { 1.05 * highest } else { 1.0 });
    let prior = of.log_prior.and_then(|log| prior_curve(log, &points, highest));
    let layers = html! {
        @if let Some(prior) = &prior { path.prior d=(line(prior, &points, &field, &x, &y)) {} }
        @for (series, curve) in curves.iter().enumerate() {
            path class={ "line " (class_of(series)) } d=(line(curve, &points, &field, &x, &y)) {}
        }
    };
    let legend: Vec<String> = (1..=apart).map(|chain| format!("chain {chain}")).collect();
    let note = html! { @if prior.is_some() { p.note { "Dotted: the shape of the prior over this range, not on the scale of the densities." } } };
    figure(&Figure {
        id: of.id,
        class: "chart",
        field,
        title: &format!("Density of {parameter}"),
        description: &format!(
            "Marginal posterior density of {parameter}, one line per chain. Gaussian kernels on a grid of {GRID} points, bandwidth by \
             Silverman's rule (1986, equation 3.31), 0.9 min(sd, interquartile range / 1.34) n^(-1/5) for the chain's n effective \
             draws, mirrored where the parameter's range ends. The lines of chains that agree coincide."
        ),
        x: (&x, of.scale),
        y: (None, "density"),
        layers,
        legend: &legend,
        note,
        numbers: numbers(&parameter, &kernels),
    })
}

/// A chain's kernel bandwidth and quantiles.
struct Kernel {
    draws: u64,
    bandwidth: f64,
    /// 5%, 25%, 50%, 75% and 95% quantiles.
    quantiles: [f64; 5],
}

impl Kernel {
    fn new(draws: &[f64]) -> Self {
        let mut sorted: Vec<f64> = draws.iter().copied().filter(|x| x.is_finite()).collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let quantiles = [0.05, 0.25, 0.5, 0.75, 0.95].map(|p| quantile(&sorted, p));
        let n = sorted.len() as f64;
        let mean = sorted.iter().map(|x| x / n).sum::<f64>();
        let sd = (sorted.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0)).sqrt();
        let quartiles = (quantiles[3] - quantiles[1]) / 1.34;
        // A chain that does not move for half of its draws has an interquartile range of 0.
        let spread = if quartiles > 0.0 { sd.min(quartiles) } else { sd };
        let bandwidth = 0.9 * spread * libm::pow(effective(draws), -0.2);
        Self { draws: draws.len() as u64, bandwidth: if bandwidth.is_finite() { bandwidth } else { 0.0 }, quantiles }
    }

    /// Returns the density at the grid points; zero everywhere for a chain that never moved.
    fn curve(&self, draws: &[f64], points: &[f64], (least, greatest): (f64, f64)) -> Vec<f64> {
        let (from, step) = (points[0], points[1] - points[0]);
        let mut curve = vec![0.0; points.len()];
        if self.bandwidth.is_nan() || self.bandwidth <= 0.0 || !step.is_finite() {
            return curve;
        }
        // Each draw is split between the two adjacent grid points (linear binning, Wand 1994).
        let mut weights = vec![0.0; points.len()];
        let finite = draws.iter().filter(|x| x.is_finite());
        for share in finite.map(|x| ((x - from) / step).clamp(0.0, (points.len() - 1) as f64)) {
            let below = (share.floor() as usize).min(points.len() - 2);
            weights[below] += 1.0 - (share - below as f64);
            weights[below + 1] += share - below as f64;
        }
        let total: f64 = weights.iter().sum();
        let kernel = |distance: f64| {
            let z = distance / self.bandwidth;
            if z.abs() > REACH { 0.0 } else { libm::exp(-0.5 * z * z) }
        };
        let height = 1.0 / (total * self.bandwidth * (2.0 * std::f64::consts::PI).sqrt());
        for (value, at) in curve.iter_mut().zip(points) {
            for (weight, draw) in weights.iter().zip(points).filter(|(weight, _)| **weight > 0.0) {
                let mirrored = kernel(at - (2.0 * least - draw)) + kernel(at - (2.0 * greatest - draw));
                *value += weight * (kernel(at - draw) + mirrored) * height;
            }
        }
        curve
    }
}

/// Returns the prior on the grid, scaled to a maximum of a third of the plot: it shows only the shape, since the true height
/// would be invisible beside a posterior's.
fn prior_curve(log: &dyn Fn(f64) -> f64, points: &[f64], highest: f64) -> Option<Vec<f64>> {
    let logs: Vec<f64> = points.iter().map(|x| log(*x)).collect();
    let top = logs.iter().copied().filter(|x| x.is_finite()).fold(f64::NEG_INFINITY, f64::max);
    top.is_finite().then(|| logs.iter().map(|x| highest / 3.0 * libm::exp(x - top)).collect())
}

/// Returns the range of all draws with room for the kernels, within the support.
fn grid_of(chains: &[&[f64]], kernels: &[Kernel], (least, greatest): (f64, f64)) -> Axis {
    let all = chains.iter().flat_map(|draws| draws.iter().copied()).filter(|x| x.is_finite());
    let (low, high) = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), x| (a.min(x), b.max(x)));
    let room = 3.0 * kernels.iter().map(|kernel| kernel.bandwidth).fold(0.0, f64::max);
    let (low, high) = ((low - room).max(least), (high + room).min(greatest));
    if low < high { Axis::between(low, high) } else { Axis::around([low, high]) }
}

fn line(curve: &[f64], points: &[f64], field: &Field, x: &Axis, y: &Axis) -> String {
    let mut path = Path::default();
    for (at, value) in points.iter().zip(curve) {
        match (x.share(*at), y.share(*value)) {
            (Some(across), Some(up)) => path.to(field.x(across), field.y(up)),
            _ => path.lift(),
        }
    }
    path.finish()
}

/// Returns the quantile of sorted values with linear interpolation (Hyndman & Fan's type 7); `NaN` without values.
fn quantile(sorted: &[f64], probability: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = probability * last as f64;
    let below = place.floor() as usize;
    sorted[below] + (place - below as f64) * (sorted[(below + 1).min(last)] - sorted[below])
}

fn numbers(parameter: &str, kernels: &[Kernel]) -> Markup {
    let numbers: Vec<usize> = (1..=kernels.len()).collect();
    let mut table = Table::new(format!("Quantiles of {parameter} by chain"), &numbers, &[("chain", &|chain| Cell::text(chain))]);
    table.push("draws", kernels.iter().map(|kernel| Cell::number(thousands(kernel.draws))));
    for (at, heading) in ["5%", "25%", "median", "75%", "95%"].into_iter().enumerate() {
        table.push(
            heading,
            kernels.iter().map(|kernel| Cell::number(by_width(kernel.quantiles[at], kernel.quantiles[4] - kernel.quantiles[0]))),
        );
    }
    table.push("bandwidth", kernels.iter().map(|kernel| Cell::number(rough(kernel.bandwidth))));
    table.html()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns approximate standard normal draws at even quantiles, by a logistic approximation.
    fn bell(n: usize) -> Vec<f64> {
        (0..n).map(|i| (i as f64 + 0.5) / n as f64).map(|p| (p / (1.0 - p)).ln() / 1.702).collect()
    }

    fn area(draws: &[f64], support: (f64, f64)) -> f64 {
        let kernel = Kernel::new(draws);
        let x = grid_of(&[draws], std::slice::from_ref(&kernel), support);
        let step = (x.greatest - x.least) / (GRID - 1) as f64;
        let points: Vec<f64> = (0..GRID).map(|i| x.least + i as f64 * step).collect();
        let curve = kernel.curve(draws, &points, support);
        curve.iter().sum::<f64>() * step - 0.5 * step * (curve[0] + curve[GRID - 1])
    }

    #[test]
    fn a_density_integrates_to_one_up_to_its_bounds() {
        let everywhere = (f64::NEG_INFINITY, f64::INFINITY);
        assert!((area(&bell(4000), everywhere) - 1.0).abs() < 2e-3);
        let positive: Vec<f64> = bell(4000).iter().map(|x| x.abs()).collect();
        assert!((area(&positive, (0.0, f64::INFINITY)) - 1.0).abs() < 2e-3);
    }

    /// Silverman's rule for independent draws; the same draws in order, which is one slow movement, have a wider kernel.
    #[test]
    fn the_bandwidth_follows_the_effective_draws() {
        let (ordered, mut draws) = (bell(1000), bell(1000));
        let mut state = 12_345_usize;
        for at in (1..draws.len()).rev() {
            state = (state * 1_103_515_245 + 12_345) % (1 << 31);
            draws.swap(at, state % (at + 1));
        }
        let kernel = Kernel::new(&draws);
        let quartiles = (kernel.quantiles[3] - kernel.quantiles[1]) / 1.34;
        let of_all = 0.9 * quartiles * 1000f64.powf(-0.2);
        assert!(kernel.bandwidth >= of_all && kernel.bandwidth < 1.15 * of_all, "{} {of_all}", kernel.bandwidth);
        assert!(Kernel::new(&ordered).bandwidth > 2.0 * of_all, "{}", Kernel::new(&ordered).bandwidth);
    }

    #[test]
    fn any_draws_make_a_plot_of_bounded_size() {
        let long = bell(100_000);
        let odd: [&[f64]; 6] = [&[], &[1.0], &[2.0; 50], &[f64::NAN, f64::INFINITY], &[f64::MAX, f64::MIN, 0.0], &long];
        let flat = |_: f64| f64::NEG_INFINITY;
        for draws in odd {
            for count in [0, 1, 4, 40] {
                let chains = vec![draws; count];
                let of = Densities {
                    id: "d",
                    parameter: "]]><",
                    scale: "",
                    chains: &chains,
                    support: (0.0, 1.0),
                    log_prior: Some(&flat),
                };
                let text = density(&of).into_string();
                assert!(!text.contains("NaN") && !text.contains("inf") && !text.contains("]]><"), "{text}");
                assert!(text.len() < 40_000, "{}", text.len());
            }
        }
    }
}
