//! Draws in the data's own units.

use super::spec::JobSpec;
use crate::model::Model;

impl JobSpec {
    /// Maps draws to the data's units, `[value][chain][draw]` as in the input, whose values are those of [`JobSpec::draw_names`].
    ///
    /// All chains have the same length. A coefficient that all parties share on the priors' scale is mapped with the means of those that
    /// vary by party.
    #[must_use]
    pub fn in_original_units(&self, samples: &[Vec<&[f64]>]) -> Vec<Vec<Vec<f64>>> {
        let model = self.build_model();
        let chains = samples.first().map_or(0, Vec::len);
        let mut mapped = vec![vec![Vec::new(); chains]; samples.len()];
        let mut values = vec![0.0; samples.len()];
        for chain in 0..chains {
            for draw in 0..samples[0][chain].len() {
                values.iter_mut().zip(samples).for_each(|(value, of)| *value = of[chain][draw]);
                for (mapped, value) in mapped.iter_mut().zip(self.original(model.as_ref(), &values)) {
                    mapped[chain].push(value);
                }
            }
        }
        mapped
    }

    /// Maps one draw.
    fn original(&self, model: &dyn Model, values: &[f64]) -> Vec<f64> {
        let (theta, rest) = values.split_at(self.dimension().min(values.len()));
        let mut mapped = model.to_original(theta);
        if self.sites.is_none() {
            return mapped;
        }
        let (varying, parties) = (self.varying(), self.parties.len());
        let of = |at: usize| &rest[at * (parties + 1)..(at + 1) * (parties + 1)];
        let common = mapped.clone();
        // The map is linear in the coefficients, so differences have slopes alone.
        let slope = |by: usize, to: usize| {
            let mut moved = theta.to_vec();
            moved[varying[by].index] += 1.0;
            model.to_original(&moved)[varying[to].index] - common[varying[to].index]
        };
        let at_party = |party: usize| {
            let mut own = theta.to_vec();
            varying.iter().enumerate().for_each(|(at, site)| own[site.index] = of(at)[party]);
            model.to_original(&own)
        };
        let at_parties: Vec<Vec<f64>> = (0..parties).map(at_party).collect();
        for (at, site) in varying.iter().enumerate() {
            mapped.extend(at_parties.iter().map(|own| own[site.index]));
            let squares = (0..varying.len()).map(|by| {
                let part = slope(by, at) * of(by)[parties];
                part * part
            });
            mapped.push(squares.sum::<f64>().sqrt());
        }
        mapped
    }
}
