//! Noise of a query to parties that protect different units: the largest that any of them needs. Each party pays its own price
//! for it.
#![allow(clippy::unwrap_used)]

use super::*;
use conclave_privacy::accounting::Adjacency;
use conclave_privacy::pass::Frame;

fn spec(colluders: &str) -> JobSpec {
    JobSpec::parse(&format!(
        "name = \"u\"\nparties = [\"a\", \"b\", \"c\"]\n[model]\nkind = \"logistic\"\noutcome = \"y\"\npredictors = [\"u\", \"v\"]\n\
         [columns]\ny = {{ binary = true }}\nu = {{ min = -1, max = 1 }}\nv = {{ min = -1, max = 1 }}\n[sampler]\nlocate = \"gradients\"\n\
         [privacy]\nepsilon = 3.0\ndelta = 1e-6\n{colluders}"
    ))
    .unwrap()
}

/// Returns the remaining units of an allotment, party by party.
fn left(budget: &Allotment) -> Vec<u64> {
    budget.parties.iter().map(|(_, units)| *units).collect()
}

/// Returns the price, in units of 2^-48, of a sum of sensitivity `moved` lattice units, released as `integers` integers under
/// noise of `j` 2^16 units at each of `honest` parties.
fn price(moved: u128, j: u128, honest: u128, integers: u128) -> u64 {
    let slack = (6_u128 << 48).div_ceil(honest * j * j);
    let least = integers * (8 * slack).max(1 << 24);
    u64::try_from(((moved * moved) << 16).div_ceil(honest * j * j).max(least)).unwrap()
}

/// The points of a query.
type Points<'a> = (&'a [f64], &'a [f64]);

/// The result of taking a share from parties of these units.
struct Taken {
    noise: u64,
    /// Units that each party paid.
    paid: Vec<u64>,
}

fn take(spec: &JobSpec, units: &[PrivacyUnit], kind: QueryKind, points: Points<'_>) -> Taken {
    let parties: Vec<PartyMetadata> = units.iter().map(|unit| PartyMetadata::new(*unit, 1000)).collect();
    let mut budget = Allotment::new(spec, &parties).unwrap();
    let before = left(&budget);
    let noise = budget.take(spec, spec.build_model().as_ref(), kind, points, 0.03).unwrap();
    Taken { noise: noise.units(), paid: before.iter().zip(left(&budget)).map(|(before, left)| before - left).collect() }
}

#[test]
fn the_noise_is_the_most_that_any_party_needs_and_each_pays_its_own_price() {
    let (row, one_less) = (PrivacyUnit::default(), PrivacyUnit::row(Adjacency::AddRemove));
    let person = PrivacyUnit::person(Adjacency::Replace, 3).unwrap();
    let (theta, near, frame) = ([0.1, -0.2, 0.3], [0.12, -0.2, 0.29], vec![0.0; Frame::length(3)]);
    let kinds: [(QueryKind, Points<'_>); 3] = [
        (QueryKind::Ratio, (&theta, &near)),
        (QueryKind::Gradient { parameters: 3 }, (&theta, &frame)),
        (QueryKind::Curvature { parameters: 3 }, (&theta, &[1.0; 2])),
    ];
    for (colluders, honest) in [("", 1), ("[aggregation]\nmode = \"secure\"\ncolluders = 1\n", 2)] {
        let spec = spec(colluders);
        let most = (0.03 * PrivacyFilter::new(&spec.privacy.budget).unwrap().limit_units() as f64) as u64;
        for (kind, points) in kinds {
            let alone = |unit| take(&spec, &[unit; 3], kind, points).noise;
            // The order of the parties does not matter.
            for units in [[row, person, one_less], [person, row, one_less], [one_less, row, person]] {
                let Taken { noise, paid } = take(&spec, &units, kind, points);
                let needs = units.map(alone);
                assert_eq!(Some(&noise), needs.iter().max(), "{kind:?} of {units:?}");
                assert!(alone(person) == noise && alone(row) < noise && alone(one_less) < noise, "{kind:?}: {needs:?}");
                for (unit, paid) in units.into_iter().zip(&paid) {
                    let terms = QueryTerms::new(spec.build_model().as_ref(), &spec, unit, kind, points).unwrap();
                    let moved = kind.moves(unit.adjacency.factor()) * terms.sensitivity().units();
                    let expected = price(moved.into(), (noise >> 16).into(), honest, kind.length() as u128);
                    assert_eq!(*paid, expected, "{kind:?} at {unit}, {honest} honest");
                    assert!(
                        *paid <= most && (unit != person || *paid > most - most / 1000),
                        "{kind:?} at {unit}: {paid} of {most}"
                    );
                }
                // The party with the highest price pays what was allotted, and no other party pays as much.
                assert_eq!(paid.iter().filter(|one| **one == *paid.iter().max().unwrap()).count(), 1, "{paid:?}");
            }
        }
    }
}
