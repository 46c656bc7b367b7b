#![allow(clippy::unwrap_used)]
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use crate::sampler::{Next, Sampler, SamplerError, Totals, build};
use conclave_common::job::JobSpec;
use conclave_common::model::{Summand, sums};
use conclave_common::query::{Candidates, QueryTerms};
use conclave_common::query::{Draw, PartyMetadata, Phase, Round};
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
use conclave_privacy::mechanism::{NoiseScale, QueryKind};
use conclave_privacy::pass::ModelData;
use conclave_privacy::pass::log_weights;

/// Returns a Bernoulli job at one owner; its model's log ratios are exact.
fn job(more: &str) -> JobSpec {
    JobSpec::parse(&format!(
        "name = \"o\"\nalgorithm = \"ops\"\nparties = [\"a\"]\n[model]\nkind = \"bernoulli\"\noutcome = \"y\"\n[columns]\n\
         y = {{ binary = true }}\n[prior]\np = \"beta(2, 2)\"\n{more}"
    ))
    .unwrap()
}

/// An owner's records, with answers like a party's.
struct Owner {
    data: ModelData,
    unit: PrivacyUnit,
    rng: ChaCha20Rng,
}

impl Owner {
    fn new(ones: usize, records: usize, unit: PrivacyUnit) -> Self {
        let outcome = (0..records).map(|i| f64::from(u8::from(i < ones))).collect();
        Self { data: ModelData { outcome, ..ModelData::default() }, unit, rng: ChaCha20Rng::seed_from_u64(11) }
    }

    fn answer(&mut self, spec: &JobSpec, round: &Round) -> Totals {
        let model = spec.build_model();
        let mut released = Vec::new();
        for query in &round.queries {
            let points = (query.from.as_slice(), query.to.as_slice());
            let terms = QueryTerms::new(model.as_ref(), spec, self.unit, query.kind, points).unwrap();
            let charged = terms.sensitivity();
            if let QueryKind::Choice { candidates } = query.kind {
                assert_eq!(query.noise, NoiseScale::OF_A_CHOICE);
                let candidates = Candidates::new(candidates, &query.from, &query.to).unwrap();
                let steps = candidates.steps(model.as_ref(), spec, self.unit, charged).unwrap();
                let steps: Vec<Summand<'_>> = steps.into_iter().map(Summand::Step).collect();
                let weights = log_weights(sums(model.as_ref(), &self.data, &steps), candidates.public()).unwrap();
                released.push(i64::from(weights.choose(&mut self.rng)));
            } else {
                let summand = terms.summand(&query.from, &query.to, charged).unwrap();
                // Practically without noise.
                let sum = sums(model.as_ref(), &self.data, &[summand]).remove(0);
                released.extend(sum.open_components_for_test());
            }
        }
        Totals::of(round, &[released]).unwrap()
    }

    fn run(&mut self, spec: &JobSpec) -> (Vec<Draw>, Box<dyn Sampler>, u64) {
        let count = self.data.outcome.len() as u64;
        let mut sampler = build(spec, &[PartyMetadata::new(self.unit, count)]).unwrap();
        let (mut draws, mut searched) = (Vec::new(), 0);
        while let Next::Ask(round) = sampler.next_round().unwrap() {
            searched += u64::from(round.phase == Phase::Locate);
            let totals = self.answer(spec, &round);
            sampler.absorb(&totals).unwrap();
            draws.extend(sampler.take_draws());
        }
        (draws, sampler, searched)
    }
}

const PRIVACY: &str = "[privacy]\nepsilon = 800.0\ndelta = 1e-3\n";

/// 40 choices after a search, and among candidates as wide as the prior: the mean and sd of Beta(32, 22), each within 5 standard
/// errors.
#[test]
fn choices_are_draws_of_the_posterior() {
    let (a, b) = (32.0, 22.0);
    let (mean, sd) = (a / (a + b), (a * b / ((a + b) * (a + b) * (a + b + 1.0_f64))).sqrt());
    for sampler in ["draws = 40\ncandidates = 1024\n", "draws = 40\ncandidates = 1024\nlocate_share = 0.0\n"] {
        let spec = job(&format!("{PRIVACY}[sampler]\n{sampler}"));
        let (draws, run, searched) = Owner::new(30, 50, PrivacyUnit::default()).run(&spec);
        assert_eq!(searched > 0, !sampler.contains("locate_share"));
        let report = run.report().ops.unwrap();
        assert_eq!((report.draws, report.candidates), (draws.len() as u64, 1024));
        assert!(draws.len() == 40 && !run.ended_by_budget(), "{} {report:?}", draws.len());
        let p: Vec<f64> = draws.iter().map(|draw| draw.theta[0]).collect();
        let m = p.iter().sum::<f64>() / p.len() as f64;
        let v = p.iter().map(|p| (p - m).powi(2)).sum::<f64>() / p.len() as f64;
        let n = p.len() as f64;
        assert!((m - mean).abs() < 5.0 * sd / n.sqrt(), "{m} {mean} {sd}");
        assert!((v.sqrt() / sd - 1.0).abs() < 5.0 / (2.0 * n).sqrt(), "{} {sd}", v.sqrt());
    }
}

/// With likelihood and prior to the power 0.5 (Algorithm 1): beta(2, 30) becomes beta(1.5, 15.5), and of 30 ones and 20 zeros half count.
/// The mean and sd of Beta(16.5, 25.5), each within 5 standard errors of 160 draws. With the prior as it is the mean would be 0.298 in
/// place of 0.393, 16 standard errors off.
#[test]
fn a_scaled_sample_has_the_prior_to_the_same_power() {
    let (a, b) = (16.5, 25.5);
    let (mean, sd) = (a / (a + b), (a * b / ((a + b) * (a + b) * (a + b + 1.0_f64))).sqrt());
    for sampler in ["draws = 160\ncandidates = 1024\n", "draws = 160\ncandidates = 1024\nlocate_share = 0.0\n"] {
        let text = format!(
            "name = \"o\"\nalgorithm = \"ops\"\nparties = [\"a\"]\n[model]\nkind = \"bernoulli\"\noutcome = \"y\"\npower = 0.5\n\
             power_prior = true\n[columns]\ny = {{ binary = true }}\n[prior]\np = \"beta(2, 30)\"\n{PRIVACY}[sampler]\n{sampler}"
        );
        let spec = JobSpec::parse(&text).unwrap();
        let (draws, run, _) = Owner::new(30, 50, PrivacyUnit::default()).run(&spec);
        assert!(draws.len() == 160 && !run.ended_by_budget(), "{}", draws.len());
        let p: Vec<f64> = draws.iter().map(|draw| draw.theta[0]).collect();
        let n = p.len() as f64;
        let m = p.iter().sum::<f64>() / n;
        let v = p.iter().map(|p| (p - m).powi(2)).sum::<f64>() / n;
        println!("mean {m:.4} of {mean:.4}, sd {:.4} of {sd:.4}", v.sqrt());
        assert!((m - mean).abs() < 5.0 * sd / n.sqrt(), "{m} {mean} {sd}");
        assert!((v.sqrt() / sd - 1.0).abs() < 5.0 / (2.0 * n).sqrt(), "{} {sd}", v.sqrt());
    }
}

/// A budget that holds some choices ends the run after them; one that holds none is refused before the first query, with
/// remedies.
#[test]
fn a_budget_ends_the_draws() {
    let few = job("[privacy]\nepsilon = 3.0\ndelta = 1e-3\n[sampler]\ndraws = 1000\ncandidates = 64\n");
    let (draws, run, _) = Owner::new(3000, 5000, PrivacyUnit::default()).run(&few);
    assert!((1..1000).contains(&draws.len()) && run.ended_by_budget(), "{}", draws.len());
    let none = job("[privacy]\nepsilon = 0.1\ndelta = 1e-6\n[sampler]\nlocate_share = 0.0\n");
    let refused = build(&none, &PartyMetadata::of_rows(&[50])).err().unwrap();
    let SamplerError::ChoiceTooExpensive { range, mu, left } = refused.clone() else { panic!("{refused}") };
    assert!(mu > left && range > 1.0);
    let words = refused.to_string();
    for there in ["epsilon", "power", "fewer candidates", "hmc"] {
        assert!(words.contains(there), "{words}");
    }
    // Few records: the price follows from their information.
    let searching = job("[privacy]\nepsilon = 0.1\ndelta = 1e-6\n");
    assert!(matches!(build(&searching, &PartyMetadata::of_rows(&[50])).err(), Some(SamplerError::ChoiceTooExpensive { .. })));
    build(&searching, &PartyMetadata::of_rows(&[1_000_000])).unwrap();
    // A choice costs no more than the job's multiplier allows.
    let limited = job("[privacy]\nepsilon = 1.0\ndelta = 1e-6\nnoise_multiplier = 1000.0\n");
    assert!(matches!(build(&limited, &PartyMetadata::of_rows(&[10_000])).err(), Some(SamplerError::ChoiceTooExpensive { .. })));
}

/// A row under add-or-remove adjacency costs half as much, and its number cannot be subtracted because it is not public.
#[test]
fn candidates_follow_from_the_job_and_what_is_public() {
    let spec = job(&format!("{PRIVACY}[sampler]\nlocate_share = 0.0\ncandidates = 16\n"));
    let round = |party: PartyMetadata| build(&spec, &[party]).unwrap().next_round().unwrap().round().unwrap();
    let (replaced, removed) = (PrivacyUnit::default(), PrivacyUnit::row(Adjacency::AddRemove));
    let of = |unit| round(PartyMetadata::new(unit, 50)).queries.remove(0);
    assert_eq!(of(replaced), of(replaced));
    assert_eq!((of(replaced).from, of(replaced).kind), (of(removed).from, QueryKind::Choice { candidates: 16 }));
    assert_eq!(of(removed), round(PartyMetadata::new(removed, 51)).queries[0]);
    // The weights of a model with a centre include the value subtracted from each record, if the count is public.
    assert_eq!(of(replaced).to.len(), 32);
    assert_eq!(of(replaced).to[..16], of(removed).to[..16]);
}

/// An answer that is not a candidate's number is an error.
#[test]
fn an_answer_is_a_candidates_number() {
    let spec = job(&format!("{PRIVACY}[sampler]\nlocate_share = 0.0\ncandidates = 16\n"));
    for (answer, taken) in [(0, true), (15, true), (16, false), (-1, false), (i64::MIN, false)] {
        let mut sampler = build(&spec, &PartyMetadata::of_rows(&[50])).unwrap();
        let round = sampler.next_round().unwrap().round().unwrap();
        let absorbed = sampler.absorb(&Totals::of(&round, &[vec![answer]]).unwrap());
        assert_eq!(absorbed.is_ok(), taken, "{answer}");
        assert_eq!(sampler.take_draws().len(), usize::from(taken));
    }
}
