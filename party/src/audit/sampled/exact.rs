//! Measures the contribution of one unit to the last lattice unit.
//!
//! Two neighbours receive the same queries under the same noise: their releases differ only by the unit's contribution and its
//! rounding. An experiment under fresh noise could not distinguish a length of `K` from `K + 1`, and only the first is charged.

use std::path::Path;

use conclave_common::model::Model;
use conclave_common::query::{Query, QueryTerms};
use conclave_privacy::mechanism::{QueryKind, Sensitivity};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::design::{CLIP, Design, PARAMETERS, Record};
use super::law::wild;
use super::settings::Prepare;
use crate::audit::known_noise::Asked;
use conclave_vault::answer::sandbox::Sandbox;

/// Queries sent.
const QUERIES: u64 = 8;
/// Units tried at each query.
const UNITS: u64 = 64;
const JOB: &str = "exact";

impl Design {
    /// Searches for a unit that changes a release by more than is charged.
    pub(super) fn exact(&self, folder: &Path, prepare: &Prepare) -> Result<Vec<String>, String> {
        let mut sandbox = self.sandbox(&folder.join(JOB), 1)?;
        // Not on any axis, so that contributions added to them are rounded.
        let others = [self.at(1.0), Record { outcome: 0.0, predictors: [0.3, -0.7] }, self.at(-0.37)];
        sandbox.put_on(JOB, &self.spec, self.data(&others))?;
        prepare(&mut sandbox);
        // The seed is not secret: the records and the queries are simulated.
        let mut generator = ChaCha8Rng::seed_from_u64(1);
        for number in 0..QUERIES {
            let query = self.query(number, &mut generator);
            let units = (0..UNITS).map(|_| self.any(&mut generator)).collect::<Vec<_>>().into_iter();
            for unit in units.chain([self.at(1.0), self.at(-1.0)]).chain(wild(self)) {
                if let Some(finding) = self.excess(&sandbox, &query, (&others, unit))? {
                    return Ok(vec![finding]);
                }
            }
        }
        Ok(Vec::new())
    }

    /// Reports the change of a release by a unit if it exceeds the charged sensitivity.
    fn excess(&self, sandbox: &Sandbox, query: &Query, (others, unit): (&[Record], Record)) -> Result<Option<String>, String> {
        let with: Vec<Record> = others.iter().copied().chain([unit]).collect();
        let model = sandbox.model_of(JOB).ok_or("a job that is not on")?;
        let released = |units: &[Record]| self.under_known_noise(model, query, units);
        let ((with, charged), (without, _)) = (released(&with)?, released(others)?);
        let apart = with.iter().zip(&without).map(|(a, b)| u128::from(a.abs_diff(*b)));
        let square = apart.fold(0_u128, |sum, x| sum.saturating_add(x.saturating_mul(x)));
        let most = u128::from(charged.units());
        Ok((square > most * most).then(|| {
            let length = (square as f64).sqrt();
            format!(
                "unit {unit:?} changes a release by {length:.2} lattice units, but only {most} are charged: it exceeds its clip"
            )
        }))
    }

    /// Returns the release of a query over these simulated records, and the charged sensitivity.
    fn under_known_noise(&self, model: &dyn Model, query: &Query, units: &[Record]) -> Result<(Vec<i64>, Sensitivity), String> {
        let numbers = (query.from.as_slice(), query.to.as_slice());
        let (spec, unit, kind) = (&self.spec, self.audit.unit, query.kind);
        let terms = QueryTerms::new(model, spec, unit, kind, numbers).map_err(|e| e.to_string())?;
        let asked = Asked { model, spec, unit, kind, numbers, noise: query.noise };
        Ok((asked.released(&terms, &self.data(units))?, terms.sensitivity()))
    }

    /// Returns the block's own query first, then others: steps or frames of random length and direction.
    fn query(&self, number: u64, generator: &mut ChaCha8Rng) -> Query {
        let (mut from, mut to) = self.points();
        let mut even = |most: f64| most * (2.0 * generator.random::<f64>() - 1.0);
        if number > 0 {
            let scale = 2.0_f64.powi(number as i32 - 4);
            match self.kind {
                QueryKind::SampledRatio => from.iter_mut().chain(&mut to).for_each(|x| *x = even(CLIP * scale)),
                _ => {
                    from.iter_mut().for_each(|x| *x = even(1.0));
                    to.iter_mut().for_each(|x| *x = even(scale));
                }
            }
        }
        Query { chain: 0, kind: self.kind, from, to, noise: self.noise }
    }

    /// Returns a random record within its bounds.
    fn any(&self, generator: &mut ChaCha8Rng) -> Record {
        let mut even = || 2.0 * generator.random::<f64>() - 1.0;
        let predictors = [(); PARAMETERS].map(|()| even());
        let outcome = even();
        let outcome = if self.kind.length() > 1 { f64::from(u8::from(outcome > 0.0)) } else { outcome };
        Record { outcome, predictors }
    }
}
