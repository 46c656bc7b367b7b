//! The clip watch judges totals, asks on time and stays within its share.

#![allow(clippy::unwrap_used)]

use super::*;
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};

fn spec(extra: &str) -> JobSpec {
    JobSpec::parse(&format!(
        "name = \"t\"\nparties = [\"a\", \"b\"]\n[model]\nkind = \"gaussian_mean\"\noutcome = \"y\"\nsd = 1.0\n[columns]\n\
         y = {{ min = -10, max = 10 }}\n[sampler]\ndraws = 1000\nwarmup = 60\n[privacy]\nepsilon = 3.0\ndelta = 1e-6\n{extra}"
    ))
    .unwrap()
}

fn watch(extra: &str, records: [u64; 2]) -> ClipWatch {
    ClipWatch::new(&spec(extra), &PartyMetadata::of_rows(&records), 1, 0.43).unwrap().unwrap()
}

#[test]
fn looks_are_those_that_are_due() {
    for sweeps in [0, 1, 24, 25, 26, 60, 100, 101, 5000] {
        for sparse in [false, true] {
            let due = (0..sweeps).filter(|sweep| due(*sweep, sparse)).count() as u64;
            assert_eq!(looks(sweeps, sparse), due, "{sweeps}");
        }
    }
}

/// Returns a total of the parties' counts that shows this share of `records` beyond three standard errors.
fn total(watch: &ClipWatch, share: f64, records: f64) -> i128 {
    let counted = share * records + 3.0 * watch.plan.unwrap().error * watch.parties.sqrt();
    (counted * QueryKind::COUNT_UNIT as f64) as i128
}

#[test]
fn shares_are_judged_less_their_error() {
    let mut w = watch("clip = 0.5", [50_000, 50_000]);
    w.absorb(total(&w, 0.019, 100_000.0));
    assert_eq!((w.warning(), w.stop()), (None, None));
    assert!((0.018..=0.019).contains(&w.worst), "{}", w.worst);
    w.absorb(total(&w, 0.03, 100_000.0));
    assert!(w.warning().unwrap().contains("3.0%") && w.stop().is_none());
    w.absorb(total(&w, 0.11, 100_000.0));
    let stop = w.stop().unwrap();
    assert!(stop.contains("privacy.clip") && stop.contains("raise the clip"), "{stop}");
    // Both parties together exceed the limit, although each alone would not.
    let mut w = watch("clip = 0.5", [3000, 3000]);
    let each = (0.021 * 3000.0 + 3.0 * w.plan.unwrap().error / 2_f64.sqrt()) * QueryKind::COUNT_UNIT as f64;
    w.absorb(2 * each as i128);
    assert!(w.warning().is_some());
}

/// A party without a public count is assumed to have the average size; its noise counts in any case.
#[test]
fn a_party_without_a_count_is_taken_for_an_average_one() {
    let hidden = PartyMetadata::new(PrivacyUnit::row(Adjacency::AddRemove), 1);
    let of = |parties: &[PartyMetadata]| ClipWatch::new(&spec("clip = 0.5"), parties, 1, 0.43).unwrap().unwrap();
    let mut w = of(&[PartyMetadata::rows(50_000), hidden]);
    assert_eq!((w.units, w.parties), (100_000.0, 2.0));
    assert_eq!(w.uncounted, ["b"]);
    // Noise alone, at three standard errors of the total, is a share of zero.
    w.absorb(total(&w, 0.0, 1.0));
    assert!(w.worst < 1e-9 && w.warning().is_none());
    w.absorb(total(&w, 0.021, 100_000.0));
    let warning = w.warning().unwrap();
    assert!(
        warning.contains("2.1%") && warning.contains("if b, which publishes no count, holds the average number"),
        "{warning}"
    );
    assert!(of(&[hidden, hidden]).warning().unwrap().contains("records_guess"));
}

/// A share that depends on an unknown count causes a warning at most, however large, and is printed as a share.
#[test]
fn an_unknown_count_never_stops() {
    let hidden = PartyMetadata::new(PrivacyUnit::row(Adjacency::AddRemove), 1);
    let mut w = ClipWatch::new(&spec("clip = 0.5"), &[PartyMetadata::rows(50_000), hidden], 1, 0.43).unwrap().unwrap();
    w.absorb(total(&w, 0.9, 100_000.0));
    assert_eq!((w.stop(), w.word()), (None, w.warning()));
    assert!(w.word().unwrap().contains("at least 90.0%"));
    // More than the assumed number of units.
    w.absorb(total(&w, 7.0, 100_000.0));
    let warning = w.warning().unwrap();
    assert!(w.stop().is_none() && warning.contains("at least 100.0%") && warning.contains("may be displaced"), "{warning}");
    // The job's guess is a known count.
    let guessed = spec("clip = 0.5");
    let guessed =
        JobSpec { sampler: conclave_common::job::SamplerSpec { records_guess: Some(50_000), ..guessed.sampler }, ..guessed };
    let mut w = ClipWatch::new(&guessed, &[PartyMetadata::rows(50_000), hidden], 1, 0.43).unwrap().unwrap();
    w.absorb(total(&w, 0.9, 100_000.0));
    assert!(w.stop().is_some() && w.word() == w.stop());
}

/// The noise of a party without a count is in the total, but its records are not known.
#[test]
fn blindness_is_judged_by_all_noise_and_known_records() {
    let hidden = PartyMetadata::new(PrivacyUnit::row(Adjacency::AddRemove), 1);
    let of = |parties: &[PartyMetadata]| ClipWatch::new(&spec("clip = 0.5"), parties, 1, 0.43).unwrap().unwrap();
    let alone = (1..).map(|k| 100 * k).find(|n| of(&[PartyMetadata::rows(*n)]).plan.is_some()).unwrap();
    assert!(of(&[PartyMetadata::rows(alone), hidden]).plan.is_none(), "{alone}");
    assert!(of(&[PartyMetadata::rows(alone * 3 / 2), hidden]).plan.is_some(), "{alone}");
}

/// The blind spot: parties are judged together, so that a single one is detected only at N times the share of its rows, and for a
/// large N not at all.
#[test]
fn one_party_among_many_may_be_cut_unseen() {
    let job = |parties: usize| {
        let names: Vec<String> = (0..parties).map(|party| format!("p{party}")).collect();
        JobSpec { parties: names, ..spec("clip = 0.5") }
    };
    let of = |parties: usize| {
        ClipWatch::new(&job(parties), &PartyMetadata::of_rows(&vec![10_000; parties]), 1, 0.43).unwrap().unwrap()
    };
    // All rows of one party in sixty are a share of 1.7%, which causes no warning.
    let mut many = of(60);
    many.absorb(total(&many, 1.0 / 60.0, 600_000.0));
    assert_eq!(many.word(), None);
    // One party in four is detected above four times the share at which a single party is.
    let mut four = of(4);
    four.absorb(total(&four, 0.079 / 4.0, 40_000.0));
    assert_eq!(four.word(), None);
    four.absorb(total(&four, 0.081 / 4.0, 40_000.0));
    assert!(four.word().is_some());
    let mut single = of(1);
    single.absorb(total(&single, 0.021, 10_000.0));
    assert!(single.word().is_some());
}

#[test]
fn too_few_records_are_said_to_be_too_few() {
    let blind = watch("clip = 0.5", [40, 40]);
    assert!(blind.plan.is_none() && blind.stop().is_none());
    assert!(blind.warning().unwrap().contains("of 80 records"), "{:?}", blind.warning());
    assert!(watch("clip = 0.5\nclip_watch_share = 0.5", [400, 400]).plan.is_some());
    assert!(ClipWatch::new(&spec(""), &PartyMetadata::of_rows(&[5, 5]), 1, 0.43).unwrap().is_none());
}
