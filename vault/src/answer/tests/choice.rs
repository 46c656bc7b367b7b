#![allow(clippy::unwrap_used)]
use conclave_common::query::{Candidates, QueryTerms};
use conclave_privacy::accounting::{Honest, Priced};
use conclave_privacy::mechanism::{NoiseScale, QueryKind};
use conclave_proto::convert::AnswerStatus;
use conclave_proto::v1;

use super::answers::{House, status};
use super::*;
use crate::answer::testing::TooWide;
use crate::testing::{JOB, MEAN_TOML, budget, open_policy, open_request};

fn toml() -> String {
    MEAN_TOML.replace("\"penalty\"", "\"ops\"").replace("chains = 2", "candidates = 300")
}

fn choice(iteration: u64, to: Vec<f64>, candidates: u32, noise: u64) -> v1::Query {
    let kind = QueryKind::Choice { candidates }.code();
    let proposal = v1::Proposal { chain: 0, from: vec![0.0], to, noise_scale: noise, kind };
    v1::Query { job: JOB.into(), iteration, proposals: vec![proposal], attempt: 0 }
}

/// Returns the numbers of a choice whose steps are so small that it costs next to nothing; by its public part, one candidate is
/// far ahead of all others.
fn numbers(ahead: usize) -> Vec<f64> {
    let places: Vec<Vec<f64>> = (0..300).map(|m| vec![1e-6 * f64::from(m)]).collect();
    let public: Vec<f64> = (0..300).map(|m| if m == ahead { 2f64.powi(45) } else { 0.0 }).collect();
    Candidates::numbers(&places, &public)
}

/// The answer is one integer, the number of a candidate. It is charged once, at the price of its range, and repeated for a
/// repeated query.
#[test]
fn a_choice_is_charged_once_and_answered_by_a_number() {
    let house = House::new(open_policy());
    let mut answerer = house.start();
    answerer.open(&open_request(&toml())).unwrap();
    for (iteration, ahead) in [(0, 17), (1, 299)] {
        let before = answerer.ledger().state().spent().units;
        let asked = choice(iteration, numbers(ahead), 300, NoiseScale::OF_A_CHOICE.units());
        let answer = answerer.answer(asked.clone());
        assert_eq!((status(&answer), answer.releases.as_slice()), (AnswerStatus::Released, &[ahead as i64][..]));
        let job = &answerer.jobs[JOB];
        let kind = QueryKind::Choice { candidates: 300 };
        let points = (&[0.0][..], &asked.proposals[0].to[..]);
        let terms = QueryTerms::new(job.model.as_ref(), &job.spec, answerer.budget.unit, kind, points).unwrap();
        let priced = Priced::new(kind, terms.sensitivity(), NoiseScale::OF_A_CHOICE, Honest::ALONE);
        let cost = priced.cost(budget().unit).unwrap().units;
        assert_eq!(answerer.ledger().state().spent().units - before, cost);
        assert_eq!(answerer.answer(asked).releases, answer.releases);
        assert_eq!(answerer.ledger().state().spent().units - before, cost, "asked again it costs nothing");
        // Under the same id another query is refused.
        let other = choice(iteration, numbers(3), 300, NoiseScale::OF_A_CHOICE.units());
        assert_eq!(status(&answerer.answer(other)), AnswerStatus::Conflict);
    }
    assert_eq!(house.queries(), 2);
}

/// Nothing is released, and the charge stays, where a kernel holds contributions to more than was charged.
#[test]
fn what_its_charge_does_not_cover_is_not_released() {
    let of_ratio = |spec: &str| (spec.to_owned(), vec![0.1], QueryKind::Ratio.code(), NoiseScale::from_units(1 << 40).unwrap());
    let of_choice = (toml(), numbers(17), QueryKind::Choice { candidates: 300 }.code(), NoiseScale::OF_A_CHOICE);
    for (spec, to, kind, noise) in [of_ratio(MEAN_TOML), of_choice] {
        for faulty in [false, true] {
            let house = House::new(open_policy());
            let mut answerer = house.start();
            answerer.open(&open_request(&spec)).unwrap();
            if faulty {
                answerer.plant_model(JOB, |inner, _| Box::new(TooWide(inner)));
            }
            let proposal = v1::Proposal { chain: 0, from: vec![0.0], to: to.clone(), noise_scale: noise.units(), kind };
            let asked = v1::Query { job: JOB.into(), iteration: 0, proposals: vec![proposal], attempt: 0 };
            let answer = answerer.answer(asked);
            let expected = if faulty { AnswerStatus::Halted } else { AnswerStatus::Released };
            assert_eq!(status(&answer), expected, "{kind}");
            assert_eq!((faulty && answer.releases != [0], house.queries()), (false, 1), "{kind}");
        }
    }
}

/// A malformed choice, or one together with another query, is refused before anything is charged.
#[test]
fn an_invalid_choice_is_refused_without_a_charge() {
    let house = House::new(open_policy());
    let mut answerer = house.start();
    answerer.open(&open_request(&toml())).unwrap();
    let canonical = NoiseScale::OF_A_CHOICE.units();
    let (short, mut broken, mut outside) = (numbers(0)[1..].to_vec(), numbers(0), numbers(0));
    broken[450] = 0.5;
    outside[7] = 1e9;
    let mut beside = choice(0, numbers(0), 300, canonical);
    beside.proposals.push(v1::Proposal { chain: 1, ..beside.proposals[0].clone() });
    for asked in [
        choice(0, numbers(0), 300, 1 << 40),
        choice(0, numbers(0), 299, canonical),
        choice(0, short, 300, canonical),
        choice(0, broken, 300, canonical),
        choice(0, outside, 300, canonical),
        beside,
    ] {
        assert_eq!(status(&answerer.answer(asked)), AnswerStatus::Invalid);
    }
    // A penalty job queries no choice.
    let mut other = house_of_penalty();
    assert_eq!(status(&other.1.answer(choice(0, numbers(0), 300, canonical))), AnswerStatus::Invalid);
    assert_eq!(answerer.ledger().state().spent().units, 0);
}

fn house_of_penalty() -> (House, Answerer) {
    let house = House::new(open_policy());
    let mut answerer = house.start();
    answerer.open(&open_request(MEAN_TOML)).unwrap();
    (house, answerer)
}

/// A choice more expensive than the owner's least noise multiplier admits is refused, and so is one where the owner has not named the word.
#[test]
fn the_owners_limits_apply_to_choices() {
    let wide: Vec<Vec<f64>> = (0..300).map(|m| vec![1e-3 * f64::from(m)]).collect();
    let asked = choice(0, Candidates::numbers(&wide, &[0.0; 300]), 300, NoiseScale::OF_A_CHOICE.units());
    let house = House::new(open_policy());
    let mut answerer = house.start();
    answerer.open(&open_request(&toml())).unwrap();
    answerer.policy.min_noise_multiplier = 100.0;
    assert_eq!(status(&answerer.answer(asked.clone())), AnswerStatus::Policy);
    answerer.policy.min_noise_multiplier = 0.0;
    answerer.policy.releases = Some(vec!["ratio".into()]);
    assert_eq!(status(&answerer.answer(asked)), AnswerStatus::Policy);
    assert_eq!(answerer.ledger().state().spent().units, 0);
    let refused = answerer.open(&v1::OpenJob { job: "another".into(), ..open_request(&toml()) }).unwrap_err();
    assert!(refused.to_string().contains("\"choice\""), "{refused}");
}
