//! Rényi bounds of Heikkilä, Jälkö, Dikmen & Honkela (2019) on Barker's test: Theorems 1 and 2 with their corollaries.
//!
//! They are shown beside the ledger's accounting, and no ledger charges by them.

/// The best bound on epsilon, and the order at which it holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bound {
    pub(super) epsilon: f64,
    pub(super) order: f64,
}

/// Barker's tests on samples: `steps` tests, each on `size` of `records` records drawn without replacement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SampledTests {
    pub(super) size: f64,
    pub(super) records: f64,
    pub(super) steps: f64,
}

/// Orders up to this are all tried. Beyond it they grow by a sixteenth: each order gives a bound, so fewer orders only raise it.
const DENSE: u32 = 256;
/// The greatest order.
const MOST: u32 = 16_384;

/// Returns the bound of Corollary 1 at `delta`: `steps` tests on all records, each of whose log ratios is at most `bound`, with
/// the normal noise `variance`.
///
/// A test is `(order, 2 order bound² / variance)`-RDP at every order (Theorem 1). The sum over the tests converts to
/// `rho + 2 sqrt(rho log(1/delta))` with `rho = 2 steps bound² / variance` at the best order, which is real.
pub(super) fn corollary_1(bound: f64, variance: f64, steps: f64, delta: f64) -> Bound {
    let (rho, log) = (2.0 * steps * bound * bound / variance, -libm::log(delta));
    Bound { epsilon: rho + 2.0 * (rho * log).sqrt(), order: 1.0 + (log / rho).sqrt() }
}

impl SampledTests {
    /// Returns the Rényi divergence of one test on its sample at this order (Theorem 2); `None` where the theorem requires a
    /// lower order.
    fn theorem_2(&self, order: f64) -> Option<f64> {
        let room = self.size - 5.0 * order;
        let terms = 2.5 / self.size + libm::log(2.0 * self.size / room) / (2.0 * (order - 1.0)) + 2.0 * order / room;
        (room > 0.0).then_some(terms)
    }

    /// Returns the best bound of Corollary 2 at `delta`; `None` if the sample is too small for order 2.
    pub(super) fn corollary_2(&self, delta: f64) -> Option<Bound> {
        let mut best: Option<Bound> = None;
        for order in orders() {
            let Some(amplified) = self.amplified(order) else { break };
            let epsilon = (self.steps * amplified - libm::log(delta)) / f64::from(order - 1);
            if best.is_none_or(|found| epsilon < found.epsilon) {
                best = Some(Bound { epsilon, order: f64::from(order) });
            }
        }
        best
    }

    /// Returns `order - 1` times the divergence of one test on a hidden sample (equation 22).
    fn amplified(&self, order: u32) -> Option<f64> {
        // Theorem 2 holds for the highest order, so it holds for all.
        self.theorem_2(f64::from(order))?;
        let ln_share = libm::log(self.size / self.records);
        let second = self.theorem_2(2.0)?;
        let mut ln_choose = libm::log(f64::from(order)) + libm::log(f64::from(order - 1)) - std::f64::consts::LN_2;
        let mut sum = LogSum::ZERO;
        sum.add(2.0 * ln_share + ln_choose + libm::log((4.0 * libm::expm1(second)).min(2.0 * libm::exp(second))));
        for j in 3..=order {
            ln_choose += libm::log(f64::from(order - j + 1)) - libm::log(f64::from(j));
            let power = f64::from(j);
            sum.add(std::f64::consts::LN_2 + power * ln_share + ln_choose + (power - 1.0) * self.theorem_2(power)?);
        }
        Some(sum.ln_one_plus())
    }
}

/// Returns the orders that are tried, in increasing order.
fn orders() -> impl Iterator<Item = u32> {
    std::iter::successors(Some(2_u32), |&order| Some(if order < DENSE { order + 1 } else { order + order / 16 }))
        .take_while(|&order| order <= MOST)
}

/// A sum of positive numbers that may exceed the range of floating point.
struct LogSum {
    /// Logarithm of the greatest term.
    top: f64,
    /// Sum of the terms in units of the greatest.
    units: f64,
}

impl LogSum {
    const ZERO: Self = Self { top: f64::NEG_INFINITY, units: 0.0 };

    /// Adds a number by its logarithm.
    fn add(&mut self, ln: f64) {
        if ln > self.top {
            (self.units, self.top) = (self.units * libm::exp(self.top - ln) + 1.0, ln);
        } else {
            self.units += libm::exp(ln - self.top);
        }
    }

    /// Returns `ln(1 + sum)`.
    fn ln_one_plus(&self) -> f64 {
        let ln = self.top + libm::log(self.units);
        if ln < 0.0 { libm::log1p(libm::exp(ln)) } else { ln + libm::log1p(libm::exp(-ln)) }
    }
}

#[cfg(test)]
#[path = "tests/renyi.rs"]
mod tests;
