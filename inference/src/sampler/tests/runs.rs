//! Samplers as their callers see them: their queries, the order of these, and the places of the chains.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use rand::SeedableRng;

use super::fixtures::{asked, give, sampler_of};
use crate::diagnostics;
use crate::sampler::proposal::{Proposal, ProposalScale};
use crate::sampler::{SamplerError, Totals, build};
use conclave_common::job::JobSpec;
use conclave_common::query::{Draw, PartyMetadata, Phase, Round};
use conclave_privacy::accounting::PrivacyFilter;

fn spec(sampler: &str) -> JobSpec {
    JobSpec::parse(&format!(
        r#"
        name = "t"
        parties = ["a", "b"]
        [model]
        kind = "logistic"
        outcome = "y"
        predictors = ["x"]
        [columns]
        y = {{ binary = true }}
        x = {{ min = 0, max = 2 }}
        [parameters]
        x = {{ min = -1, max = 1.5 }}
        [sampler]
        chains = 3
        draws = 40
        {sampler}
        [privacy]
        epsilon = 3.0
        delta = 1e-6
        "#
    ))
    .unwrap()
}

/// Answers as if both parties held no records and added no noise.
fn run_to_end(spec: &JobSpec) -> (Vec<Round>, Vec<Draw>) {
    let mut sampler = sampler_of(spec, &[100, 100]);
    let (mut rounds, mut draws) = (Vec::new(), Vec::new());
    while let Some(round) = asked(sampler.as_mut()) {
        assert_eq!(asked(sampler.as_mut()).as_ref(), Some(&round), "asking again gives the same round");
        give(sampler.as_mut(), &round, &[vec![1 << 30; round.queries.len()], vec![-5; round.queries.len()]]);
        rounds.push(round);
        draws.extend(sampler.take_draws());
    }
    (rounds, draws)
}

#[test]
fn every_chain_makes_the_draws_asked_for() {
    for kind in ["guided", "componentwise", "random_walk", "truncated_walk"] {
        let spec =
            spec(&format!("warmup = 7\nproposal = {{ kind = \"{kind}\", radius = 0.9 }}\nstart = {{ intercept = 0, x = 1 }}"));
        let (rounds, draws) = run_to_end(&spec);
        for chain in 0..3 {
            assert_eq!(draws.iter().filter(|d| d.chain == chain && !d.warmup).count(), 40);
            assert_eq!(draws.iter().filter(|d| d.chain == chain && d.warmup).count(), 14, "two coordinates, seven sweeps");
        }
        assert!(rounds.iter().zip(0..).all(|(r, i)| r.iteration == i), "iterations number the messages without gaps");
        assert!(rounds.iter().all(|r| !r.queries.is_empty() && r.queries.iter().all(|q| spec.in_support(&q.to))));
        assert!(draws.iter().all(|d| spec.in_support(&d.theta)));
        assert!(draws.iter().any(|d| d.log_alpha == f64::NEG_INFINITY), "some proposals fell outside the box of x");
    }
}

#[test]
fn the_same_releases_give_the_same_run() {
    for sampler in ["", "warmup = { until_rhat = 1.05, max = 60 }", "start = { intercept = 0.1, x = 0.2 }"] {
        let spec = spec(sampler);
        assert_eq!(run_to_end(&spec), run_to_end(&spec));
    }
}

#[test]
fn releases_of_another_shape_change_nothing() {
    let spec = spec("");
    let mut sampler = sampler_of(&spec, &[5, 5]);
    let round = asked(sampler_of(&spec, &[5, 5]).as_mut()).unwrap();
    let totals = |releases: &[Vec<i64>]| Totals::of(&round, releases);
    assert_eq!(sampler.absorb(&totals(&[vec![0; 2], vec![0; 2]]).unwrap()), Err(SamplerError::NoRound));
    assert_eq!(asked(sampler.as_mut()).as_ref(), Some(&round));
    assert!(matches!(sampler.absorb(&totals(&[vec![0; 2]]).unwrap()), Err(SamplerError::Shape(_))));
    assert!(matches!(totals(&[vec![0; 2], vec![0]]), Err(SamplerError::Shape(_))));
    let shorter = Round { queries: round.queries[..1].to_vec(), ..round.clone() };
    let of_another = Totals::of(&shorter, &[vec![0], vec![0]]).unwrap();
    assert!(matches!(sampler.absorb(&of_another), Err(SamplerError::Shape(_))));
    assert_eq!(asked(sampler.as_mut()), Some(round));
    assert!(matches!(build(&spec, &PartyMetadata::of_rows(&[5])), Err(SamplerError::Records { .. })));
}

/// Components are in the order of the queries, and are summed over the parties without wrapping.
#[test]
fn totals_are_sums_over_parties() {
    let round = asked(sampler_of(&spec(""), &[5, 5]).as_mut()).unwrap();
    let totals = Totals::of(&round, &[vec![i64::MAX, 3], vec![i64::MAX, -5]]).unwrap();
    assert_eq!(totals.components(), [2 * i128::from(i64::MAX), -2]);
    assert!(totals.by_query().eq([&[2 * i128::from(i64::MAX)][..], &[-2][..]]));
}

#[test]
fn locate_asks_in_pairs_and_keeps_to_its_share() {
    let spec = spec("locate_share = 0.3");
    let model = spec.build_model();
    let (rounds, _) = run_to_end(&spec);
    let mut spent = 0.0;
    for q in rounds.iter().filter(|r| r.phase == Phase::Locate).flat_map(|r| &r.queries) {
        // The charged sensitivity: the half range around the centre, if rows are protected against replacement.
        let k_t = conclave_privacy::mechanism::sensitivity(model.half_range(&q.from, &q.to), None).unwrap();
        spent += (2.0 * k_t.units() as f64 / q.noise.units() as f64).powi(2);
        assert!(q.noise >= spec.privacy.noise, "never quieter than the job's own noise");
    }
    let budget = conclave_privacy::accounting::mu_squared(PrivacyFilter::new(&spec.privacy.budget).unwrap().limit_units());
    assert!(spent > 0.0 && spent <= 0.3 * budget, "{spent} of {budget}");
    assert!(rounds.iter().filter(|r| r.phase == Phase::Locate).all(|r| r.queries.len() == 2));
}

#[test]
fn a_search_is_priced_for_what_the_parties_protect() {
    use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
    let spec = spec("locate_share = 0.3");
    let model = spec.build_model();
    let person = PrivacyUnit::person(Adjacency::Replace, 5).unwrap();
    let parties = [PartyMetadata::rows(100), PartyMetadata::new(person, 20)];
    let mut sampler = build(&spec, &parties).unwrap();
    let mut spent = 0.0;
    while let Some(round) = asked(sampler.as_mut()).filter(|round| round.phase == Phase::Locate) {
        for q in &round.queries {
            let per_record = conclave_privacy::mechanism::sensitivity(model.bound(&q.from, &q.to), None).unwrap();
            spent += conclave_privacy::accounting::mu_squared(
                person.charge_units(person.sensitivity(per_record).unwrap(), q.noise).unwrap(),
            );
        }
        give(sampler.as_mut(), &round, &[vec![0; round.queries.len()], vec![0; round.queries.len()]]);
    }
    let budget = conclave_privacy::accounting::mu_squared(PrivacyFilter::new(&spec.privacy.budget).unwrap().limit_units());
    assert!(spent > 0.2 * budget && spent <= 0.3 * budget, "{spent} of {budget}");
}

#[test]
fn an_unpublished_count_is_guessed_or_named() {
    use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
    let hidden = PartyMetadata::new(PrivacyUnit::row(Adjacency::AddRemove), 77);
    assert_eq!((hidden.records(), hidden.most_records()), (None, None));
    let Err(error) = build(&spec(""), &[PartyMetadata::rows(5), hidden]) else { panic!("it must be refused") };
    assert_eq!(error, SamplerError::UnknownCount { party: "b".into() });
    assert!(error.to_string().contains("b does not publish") && error.to_string().contains("records_guess"), "{error}");
    assert!(build(&spec("records_guess = 80"), &[PartyMetadata::rows(5), hidden]).is_ok());
    // Without a search the count is not needed.
    let given = spec("start = { intercept = 0, x = 0 }\nproposal = { kind = \"guided\", radius = 0.5 }");
    assert!(build(&given, &[hidden, hidden]).is_ok());
    // Each person counts for at most the limit of records.
    let persons = PartyMetadata::new(PrivacyUnit::person(Adjacency::Replace, 5).unwrap(), 20);
    assert_eq!((persons.records(), persons.persons(), persons.most_records()), (None, Some(20), Some(100)));
}

#[test]
fn a_guided_walk_turns_only_the_refused_coordinate() {
    let mut rng = rand_chacha::ChaCha20Rng::seed_from_u64(3);
    let mut walk = Proposal::new(conclave_common::job::ProposalKind::Guided, 0.1, 3, &mut rng);
    let direction =
        |walk: &Proposal, rng: &mut _, j: usize| walk.propose(&[0.0; 3], &ProposalScale::axes(vec![1.0; 3]), rng)[j].signum();
    let first: Vec<f64> = (0..3)
        .map(|j| {
            let sign = direction(&walk, &mut rng, j);
            walk.decided(j != 1);
            sign
        })
        .collect();
    for (j, sign) in first.iter().enumerate() {
        assert_eq!(direction(&walk, &mut rng, j), if j == 1 { -sign } else { *sign });
        walk.decided(true);
    }
}

/// Radii measured at the job's start are measured again in the warm-up, around the chains, and never while sampling.
#[test]
fn radii_at_a_given_start_are_measured_anew() {
    let spec = spec("warmup = 40\nstart = { intercept = 0.1, x = 0.2 }");
    let (rounds, draws) = run_to_end(&spec);
    let paired = |r: &&Round| r.queries.len() == 2 && r.queries[0].from == r.queries[1].from;
    let searches = |phase| rounds.iter().filter(|r| r.phase == phase).filter(paired).count();
    // Three sweeps over two coordinates each: at the start, at a quarter and at half of the warm-up.
    assert_eq!((searches(Phase::Locate), searches(Phase::Warmup), searches(Phase::Sampling)), (6, 12, 0));
    assert_eq!(draws.iter().filter(|d| d.warmup).count(), 3 * 80);
}

/// Runs a job whose parties hold no records: the releases are only noise, of the real scale. Returns one summary per parameter.
fn without_data(spec: &JobSpec) -> Vec<diagnostics::Summary> {
    let mut sampler = sampler_of(spec, &[0, 0]);
    let mut draws = vec![vec![Vec::new(); 3]; spec.model.parameter_names().len()];
    let gaussian = conclave_privacy::mechanism::DiscreteGaussian::new(spec.privacy.noise);
    let mut rng = rand_chacha::ChaCha20Rng::seed_from_u64(17);
    let mut release = |queries: usize| (0..queries).map(|_| gaussian.sample(&mut rng)).collect::<Vec<i64>>();
    while let Some(round) = asked(sampler.as_mut()) {
        let releases = [release(round.queries.len()), release(round.queries.len())];
        give(sampler.as_mut(), &round, &releases);
        for d in sampler.take_draws().iter().filter(|d| !d.warmup) {
            draws.iter_mut().zip(&d.theta).for_each(|(x, theta)| x[d.chain as usize].push(*theta));
        }
    }
    let summary = |x: &Vec<Vec<f64>>| diagnostics::summarise(&x.iter().map(Vec::as_slice).collect::<Vec<_>>());
    draws.iter().map(summary).collect()
}

/// Without data, the chains must sample the prior truncated to the box, a normal(0, 2.5) on [−1, 1.5], whose mean and sd are
/// computed by Simpson's rule. Steps reach both edges frequently.
///
/// A correct chain misses 5 MCSE, or 3% of the sd at these lengths, with probability below 1e-5. Without jitter a one-coordinate
/// walk of one length stays on a lattice and misses both.
#[test]
fn without_data_the_prior_is_sampled() {
    for kind in ["guided", "componentwise", "random_walk", "truncated_walk"] {
        let radius = format!("proposal = {{ kind = \"{kind}\", radius = 1.1 }}");
        let spec = spec(&format!("warmup = 100\n{radius}\nstart = {{ intercept = 0, x = 0 }}"));
        let spec = JobSpec { sampler: conclave_common::job::SamplerSpec { draws: 30_000, ..spec.sampler }, ..spec };
        let s = without_data(&spec)[1];
        let simpson = |k: i32| -> f64 {
            let weight = |i: i32| if i == 0 || i == 2000 { 1.0 } else { f64::from(2 + 2 * (i % 2)) };
            let at = |i: i32| -1.0 + 2.5 * f64::from(i) / 2000.0;
            (0..=2000).map(|i| weight(i) * at(i).powi(k) * (-0.5 * (at(i) / 2.5).powi(2)).exp()).sum()
        };
        let mean = simpson(1) / simpson(0);
        let sd = (simpson(2) / simpson(0) - mean * mean).sqrt();
        assert!((s.mean - mean).abs() < 5.0 * s.mcse_mean, "{kind}: {} against {mean}, mcse {}", s.mean, s.mcse_mean);
        assert!((s.sd / sd - 1.0).abs() < 0.03, "{kind}: {} against {sd}, ESS {}", s.sd, s.ess_bulk);
    }
}

proptest! {
    #[test]
    fn any_releases_keep_the_chain_inside_its_box(values in prop::collection::vec(any::<i64>(), 200), seed in any::<u32>()) {
        let base = spec("warmup = 5");
        let spec = JobSpec { sampler: conclave_common::job::SamplerSpec { seed: u64::from(seed), ..base.sampler }, ..base };
        let mut sampler = sampler_of(&spec, &[10, 10]);
        let mut values = values.into_iter().cycle();
        while let Some(round) = asked(sampler.as_mut()) {
            for q in &round.queries {
                prop_assert!(spec.in_support(&q.from) && spec.in_support(&q.to));
            }
            let releases: Vec<Vec<i64>> = (0..2).map(|_| (0..round.queries.len()).map(|_| values.next().unwrap()).collect()).collect();
            give(sampler.as_mut(), &round, &releases);
            prop_assert!(sampler.take_draws().iter().all(|d| spec.in_support(&d.theta)));
        }
    }
}

/// Each chain uses its own starting values exactly, even if they would change through the logarithm and back, and its first query
/// starts there. A run's last states continue it in this way.
#[test]
fn chains_start_where_they_are_told() {
    let job = |sampler: &str| {
        JobSpec::parse(&format!(
            r#"
            name = "t"
            parties = ["a", "b"]
            [model]
            kind = "student_t"
            outcome = "y"
            predictors = ["x"]
            df = 5
            [columns]
            y = {{ min = -1, max = 1 }}
            x = {{ min = 0, max = 2 }}
            [sampler]
            chains = 3
            draws = 25
            {sampler}
            [privacy]
            epsilon = 30.0
            delta = 1e-6
            "#
        ))
        .unwrap()
    };
    let starts = [[0.1 + 0.2, -1.0 / 3.0, 0.7], [1.5, 0.25, 1.0 / 3.0], [-2.0, 1e-17, 0.1]];
    let lost = |x: f64| libm::exp(libm::log(x)).to_bits() != x.to_bits();
    assert!(starts.iter().any(|start| lost(start[2])), "a start that changes through the logarithm and back");
    let table = |s: &[f64; 3]| format!("{{ intercept = {:?}, x = {:?}, sigma = {:?} }}", s[0], s[1], s[2]);
    let tables: Vec<String> = starts.iter().map(table).collect();
    let spec = job(&format!("warmup = 0\nproposal = {{ radius = 0.1 }}\nstarts = [{}]", tables.join(", ")));
    let (rounds, draws) = run_to_end(&spec);
    let bits = |values: &[f64]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert!(rounds.iter().all(|round| round.phase == Phase::Sampling), "neither search nor warm-up");
    assert_eq!(rounds[0].queries.len(), 3);
    for (query, start) in rounds[0].queries.iter().zip(&starts) {
        assert_eq!(bits(&query.from), bits(start));
    }
    for (draw, start) in draws.iter().take(3).zip(&starts) {
        assert_eq!(bits(&draw.theta[1..]), bits(&start[1..]), "the first move is along the first coordinate");
        assert_eq!(draw.theta[0].to_bits() == start[0].to_bits(), !draw.accepted);
    }
    assert_eq!(draws.len(), 75);
}

/// The reported radii of a sampler define a job with the same radii, for any scale of the parameter.
#[test]
fn radii_are_given_back_by_parameter() {
    let fixed = spec("proposal = { radius = { intercept = 0.25, x = 0.5 } }\nstart = { intercept = 0, x = 1 }");
    assert_eq!(sampler_of(&fixed, &[5, 5]).report().radii, Some(vec![0.25, 0.5]));
    let mut searching = sampler_of(&spec(""), &[5, 5]);
    assert_eq!(searching.report().radii, None);
    let mut steps = vec![Vec::new(); 2];
    while let Some(round) = asked(searching.as_mut()) {
        if let Some(radii) = searching.report().radii {
            for query in &round.queries {
                let moved = query.from.iter().zip(&query.to).map(|(from, to)| (to - from).abs()).zip(&radii);
                moved.zip(&mut steps).filter(|((moved, _), _)| *moved > 0.0).for_each(|((m, r), steps)| steps.push(m / r));
            }
        }
        give(searching.as_mut(), &round, &vec![vec![0; round.queries.len()]; 2]);
    }
    // Every move of a parameter is as long as its radius, up to the jitter.
    assert!(steps.iter().all(|of_one| of_one.len() > 30), "{steps:?}");
    assert!(steps.iter().flatten().all(|share| (0.899..1.101).contains(share)), "{steps:?}");
}
