//! The figures of a forest plot: medians and intervals from the result, 50% intervals and probabilities from the draws.

use std::collections::HashMap;

use conclave_common::job::{JobSpec, Sites};
use conclave_draws::new_party_intervals;
use conclave_pages::ends::Ends;
use conclave_pages::object::{rows, text};
use conclave_pages::plot::Estimate;
use conclave_predict::{Interval, Level, interval_of};
use serde_json::Value;

use super::quantity::{mixed, quantity};
use crate::report::material::Material;
use crate::report::units::Units;

/// The result and the draws in the data's units.
pub(super) struct Figures<'a> {
    material: &'a Material<'a>,
    /// The draws of each value, `[value][chain][draw]`; empty without draws.
    draws: Vec<Vec<Vec<f64>>>,
    places: HashMap<String, usize>,
    /// The values that others move in the data's units, and whose share of noise is therefore not that of their own coding.
    mixed: Vec<bool>,
    is_ratio: bool,
}

impl<'a> Figures<'a> {
    pub(super) fn new(material: &'a Material<'a>) -> Self {
        let spec = material.spec;
        let names = spec.draw_names();
        let draws = material.draws.map(|draws| in_original_units(spec, &draws.sampling.theta, names.len())).unwrap_or_default();
        let places = names.into_iter().enumerate().map(|(at, name)| (name, at)).collect();
        Self { material, draws, places, mixed: mixed(spec), is_ratio: quantity(spec).neutral == Some(1.0) }
    }

    pub(super) fn spec(&self) -> &'a JobSpec {
        self.material.spec
    }

    pub(super) fn units(&self) -> &'a Units {
        self.material.units
    }

    /// Returns true if a parameter varies by party.
    pub(super) fn varies(&self, name: &str) -> bool {
        self.places.contains_key(&Sites::sd_name(name))
    }

    /// Returns the figures of `scale` units of a coefficient: a ratio, or a difference.
    pub(super) fn coefficient(&self, name: &str, scale: f64) -> Option<Estimate> {
        let row = self.row(if self.is_ratio { "ratios" } else { "posterior_original" }, name)?;
        let scaled = |x: f64| if self.is_ratio { libm::pow(x, scale) } else { scale * x };
        let of_draws = |x: f64| if self.is_ratio { libm::exp(scale * x) } else { scale * x };
        Some(self.estimate(name, row, scaled, of_draws))
    }

    /// Returns the figures of a parameter in the data's units.
    pub(super) fn parameter(&self, name: &str) -> Option<Estimate> {
        Some(self.estimate(name, self.row("posterior_original", name)?, |x| x, |x| x))
    }

    fn estimate(&self, name: &str, row: &Value, scaled: impl Fn(f64) -> f64, of_draws: impl Fn(f64) -> f64) -> Estimate {
        let ends = Ends::of(std::slice::from_ref(row));
        let figure = |value: &Value| value.as_f64().map_or(f64::NAN, &scaled);
        let draws = self.draws_of(name);
        Estimate {
            label: name.to_owned(),
            indented: false,
            median: figure(&row["median"]),
            ends: [figure(ends.low(row)), figure(ends.high(row))],
            half: draws.as_ref().and_then(|draws| half(draws.clone())).map(|ends| ends.map(of_draws)),
            above: draws.map(|draws| share_above(&draws)),
            effective: self.effective(name),
            noise: self.noise(name),
        }
    }

    /// Returns the figures of a coefficient at a party that is not in the job, which exist with draws only.
    pub(super) fn new_party(&self, name: &str, scale: f64) -> Option<Estimate> {
        let spec = self.spec();
        let parameters = spec.model.parameter_names();
        let at = spec.varying().iter().position(|site| parameters[site.index] == name)?;
        let samples: Vec<Vec<&[f64]>> = self.draws.iter().map(|chains| chains.iter().map(Vec::as_slice).collect()).collect();
        let has_draws = samples.first()?.iter().any(|chain| !chain.is_empty());
        let transformed = |x: f64| if self.is_ratio { libm::exp(scale * x) } else { scale * x };
        let ends = |level: Level| new_party_intervals(spec, &samples, level.tails()).get(at).map(|ends| ends.map(transformed));
        let asked =
            Ends::of(rows(self.material.result, "posterior_original")).level.to_string().parse().unwrap_or(Level::DEFAULT);
        let half = ends(HALF.parse().ok()?);
        let median = new_party_intervals(spec, &samples, [0.5, 0.5]).get(at).map(|[median, _]| transformed(*median))?;
        let above = normal_above(&self.draws_of(name)?, &self.draws_of(&Sites::sd_name(name))?);
        let effective = self.effective(name).min(self.effective(&Sites::sd_name(name)));
        let above = Some(above);
        has_draws.then_some(Estimate {
            label: String::new(),
            indented: true,
            median,
            ends: ends(asked)?,
            half,
            above,
            effective,
            noise: None,
        })
    }

    /// Returns the share of the noise in the variance of a value; `None` where it is not known in the data's units.
    fn noise(&self, name: &str) -> Option<f64> {
        let is_mixed = self.places.get(name).and_then(|at| self.mixed.get(*at)).copied().unwrap_or(true);
        self.row("posterior", name).filter(|_| !is_mixed).and_then(|row| row["noise_share"].as_f64())
    }

    /// Returns the smaller of a parameter's effective sample sizes; `NaN` if one is not known.
    fn effective(&self, name: &str) -> f64 {
        let of = |key: &str| self.row("posterior", name).and_then(|row| row[key].as_f64());
        of("ess_bulk").zip(of("ess_tail")).map_or(f64::NAN, |(bulk, tail)| bulk.min(tail))
    }

    fn row(&self, key: &str, name: &str) -> Option<&'a Value> {
        rows(self.material.result, key).iter().find(|row| text(row, "name") == name)
    }

    /// Returns all finite draws of a value.
    fn draws_of(&self, name: &str) -> Option<Vec<f64>> {
        let chains = self.draws.get(*self.places.get(name)?)?;
        let values: Vec<f64> = chains.iter().flatten().copied().collect();
        (!values.is_empty() && values.iter().all(|x| x.is_finite())).then_some(values)
    }
}

/// The level of the inner interval.
const HALF: &str = "0.5";

/// Returns the draws in the data's units; nothing if they are not those of the job.
fn in_original_units(spec: &JobSpec, theta: &[Vec<Vec<f64>>], values: usize) -> Vec<Vec<Vec<f64>>> {
    let lengths = |chains: &Vec<Vec<f64>>| chains.iter().map(Vec::len).collect::<Vec<_>>();
    let first = theta.first().map(lengths).unwrap_or_default();
    let is_even = first.iter().all(|length| Some(length) == first.first());
    if theta.len() != values || !is_even || theta.iter().any(|chains| lengths(chains) != first) {
        return Vec::new();
    }
    let samples: Vec<Vec<&[f64]>> = theta.iter().map(|chains| chains.iter().map(Vec::as_slice).collect()).collect();
    spec.in_original_units(&samples)
}

fn half(draws: Vec<f64>) -> Option<[f64; 2]> {
    let Interval { low, high } = interval_of(draws, HALF.parse().ok()?);
    Some([low, high])
}

fn share_above(draws: &[f64]) -> f64 {
    draws.iter().filter(|x| **x > 0.0).count() as f64 / draws.len() as f64
}

/// Returns the probability above 0 under the normal laws with these means and sds together.
fn normal_above(means: &[f64], sds: &[f64]) -> f64 {
    let above = |(mean, sd): (&f64, &f64)| 0.5 * libm::erfc(-mean / (sd.max(f64::MIN_POSITIVE) * std::f64::consts::SQRT_2));
    means.iter().zip(sds).map(above).sum::<f64>() / means.len().max(1) as f64
}
