//! A coordinator that sends different queries to different parties, sends a query twice, or sends it too early.

use conclave_common::query::message_digest;
use conclave_privacy::secagg::opened;
use conclave_proto::convert::AnswerStatus;
use conclave_proto::v1;
use conclave_vault::ledger::Durability;

use super::lab::{LANES, Lab, released};

/// Rounds of each lie, and thus values per party.
const ROUNDS: u64 = 30;
/// Pearson's statistic of the top four bits has 15 degrees of freedom: uniform values exceed this limit with a probability below
/// 10^-8. If all values agree in these bits, the statistic is 15 times their number.
const UNIFORM: f64 = 70.0;

/// Returns true if values look uniform over the whole ring.
pub(super) fn look_uniform(values: &[i64]) -> bool {
    assert!(values.len() >= 320, "20 for each of 16 bins, or the statistic has another law");
    let mut counts = [0_u64; 16];
    values.iter().for_each(|value| counts[(value.cast_unsigned() >> 60) as usize] += 1);
    let expected = values.len() as f64 / 16.0;
    counts.iter().map(|count| (*count as f64 - expected).powi(2) / expected).sum::<f64>() < UNIFORM
}

/// Returns the sums over parties of the integers in all answers.
fn sums<'a>(answers: impl Iterator<Item = &'a v1::Answer> + Clone) -> Vec<i64> {
    let lanes = answers.clone().map(|answer| answer.releases.len()).min().expect("an answer");
    (0..lanes).map(|lane| opened(answers.clone().map(|answer| answer.releases[lane]))).collect()
}

/// Far above any sum of four parties' clamped records and noise, and far below the size of the ring: 2^-20 of it.
const LARGEST: u64 = 1 << 44;

#[test]
fn parties_with_different_queries_open_nothing() {
    let mut lab = Lab::masked(4, 1);
    lab.colluders = 0;
    lab.seats[0].start();
    let entries = lab.begin();
    let roster = lab.roster(&entries).digest();
    type Lie = fn(&mut v1::Query);
    let lies: [(&str, Lie); 5] = [
        ("an ulp away", |query| query.proposals[7].to[0] = f64::from_bits(query.proposals[7].to[0].to_bits() + 1)),
        ("another round", |query| query.iteration += 1_000_000),
        ("a subset of the chains", |query| query.proposals.truncate(20)),
        ("other noise in one chain", |query| query.proposals[3].noise_scale += 1 << 16),
        ("two chains in another order", |query| query.proposals.swap(0, 1)),
    ];
    // A truthful round opens, so that only the lies prevent the opening.
    for iteration in 0..3 {
        let query = lab.query(iteration);
        let answers: Vec<v1::Answer> = lab.honest().map(|place| lab.ask(place, &query)).collect();
        assert!(sums(answers.iter()).iter().all(|sum| sum.unsigned_abs() < LARGEST));
        assert_eq!(opened(answers.iter().map(|answer| answer.check().cast_signed())), 0, "the check lanes cancel");
        let digest = message_digest(&roster, iteration, &lab.queries());
        assert!(answers.iter().all(|answer| answer.digest == digest), "every answer names its message");
    }
    for (at, (what, lie)) in lies.into_iter().enumerate() {
        let mut rounds = Vec::new();
        for round in 0..ROUNDS {
            let query = lab.query(1000 * (at as u64 + 1) + round);
            let mut other = query.clone();
            lie(&mut other);
            let answers: Vec<v1::Answer> =
                lab.honest().map(|place| lab.ask(place, if place == 2 { &other } else { &query })).collect();
            assert!(answers.iter().all(|answer| released(answer).is_ok()), "{what}");
            assert_ne!(
                opened(answers.iter().map(|answer| answer.check().cast_signed())),
                0,
                "{what}: the check lanes do not cancel"
            );
            let odd: Vec<bool> = answers.iter().map(|answer| answer.digest != answers[0].digest).collect();
            assert_eq!(odd, [false, false, true, false], "{what}: the echo identifies the party with another query");
            rounds.push(answers);
        }
        for place in 0..4 {
            let own: Vec<i64> = rounds.iter().flat_map(|answers| answers[place].releases.clone()).collect();
            assert!(look_uniform(&own), "{what}: what party {place} sends is not uniform");
        }
        // No partial sum opens either.
        for left_out in [None, Some(0), Some(1), Some(2), Some(3)] {
            let in_it = |place: &usize| Some(*place) != left_out;
            let of = |answers: &Vec<v1::Answer>| {
                sums((0..4).filter(in_it).map(|place| &answers[place]).collect::<Vec<_>>().into_iter())
            };
            let sums: Vec<i64> = rounds.iter().flat_map(of).collect();
            assert!(look_uniform(&sums), "{what}: the sum without {left_out:?} is not uniform");
        }
    }
}

/// An adversary with all answers except one learns nothing, neither from single values nor from any partial sum.
#[test]
fn all_answers_except_one_reveal_nothing() {
    let mut lab = Lab::masked(4, 1);
    lab.colluders = 0;
    lab.seats[0].start();
    lab.begin();
    let rounds: Vec<Vec<v1::Answer>> = (0..ROUNDS)
        .map(|iteration| {
            let query = lab.query(iteration);
            (0..4).map(|place| lab.ask(place, &query)).collect()
        })
        .collect();
    for part in 1_u32..16 {
        let of = |answers: &Vec<v1::Answer>| {
            let some: Vec<&v1::Answer> = (0..4).filter(|place| part >> place & 1 == 1).map(|place| &answers[place]).collect();
            sums(some.into_iter())
        };
        let values: Vec<i64> = rounds.iter().flat_map(of).collect();
        assert_eq!(look_uniform(&values), part != 15, "the sum over {part:04b}");
    }
}

/// A round has one attempt, and nothing is answered before the roster. Neither refusal is charged, and later queries are
/// answered.
#[test]
fn another_attempt_and_a_query_before_the_roster_are_refused_and_cost_nothing() {
    for durability in [Durability::Strict, Durability::Reserve { block: 8 }] {
        let mut lab = Lab::masked(3, 1);
        for place in lab.honest() {
            lab.seats[place].durability = durability;
            lab.seats[place].restart();
        }
        let entries = lab.open_all();
        let early = lab.ask(1, &lab.query(0));
        assert_eq!(released(&early), Err(AnswerStatus::Policy.to_wire()));
        assert_eq!(lab.seats[1].charges(), 0);
        for place in lab.honest() {
            lab.show(place, &entries).expect("a roster");
        }
        let refused = |lab: &mut Lab, attempt| {
            let before = lab.seats[1].charges();
            let query = v1::Query { attempt, ..lab.query(4) };
            let answer = lab.ask(1, &query);
            assert_eq!(released(&answer), Err(AnswerStatus::Invalid.to_wire()), "attempt {attempt}");
            assert!(answer.releases.iter().all(|number| *number == 0) && answer.digest == [0; 32] && answer.check() == 0);
            assert_eq!(lab.seats[1].charges(), before, "attempt {attempt} is not charged");
        };
        [1, 2, u32::MAX].into_iter().for_each(|attempt| refused(&mut lab, attempt));
        let query = lab.query(4);
        let first = lab.ask(1, &query);
        let answered = released(&first).expect("an answer").to_vec();
        assert_eq!(lab.seats[1].charges(), u64::from(LANES));
        // Another attempt is also refused after the answer and after a crash, in either durability mode.
        refused(&mut lab, 1);
        lab.seats[1].restart();
        lab.open(1).expect("a job that opens again");
        refused(&mut lab, 1);
        assert_eq!(released(&lab.ask(1, &query)), Ok(answered.as_slice()), "{durability:?}: the same answer is sent again");
        assert_eq!(lab.seats[1].charges(), u64::from(LANES));
        assert_eq!(lab.seats[1].events("reserve"), 0, "masked releases use no reserved block");
        lab.seats[1].verify();
    }
}

/// One value per mask, for ever: a part of a message, an extension of it, and its chains in another order are different messages.
#[test]
fn a_message_is_answered_whole_and_as_it_was_asked() {
    let mut lab = Lab::masked(3, 1);
    lab.begin();
    let query = lab.query(5);
    let answered = lab.ask(1, &query);
    let charges = lab.seats[1].charges();
    type Change = fn(&mut v1::Query);
    let others: [(&str, Change); 5] = [
        ("part of it", |query| query.proposals.truncate(1)),
        ("its chains in another order", |query| query.proposals.reverse()),
        ("with one chain more", |query| {
            let more = v1::Proposal { chain: 900, ..query.proposals[0].clone() };
            query.proposals.push(more);
        }),
        ("a chain of the message, and another one", |query| {
            query.proposals.truncate(2);
            query.proposals[1].chain = 901;
        }),
        ("an ulp away", |query| query.proposals[0].to[0] = f64::from_bits(query.proposals[0].to[0].to_bits() + 1)),
    ];
    for (what, change) in others {
        let mut other = query.clone();
        change(&mut other);
        assert_eq!(released(&lab.ask(1, &other)), Err(AnswerStatus::Conflict.to_wire()), "{what}");
    }
    assert_eq!(lab.seats[1].charges(), charges);
    assert_eq!(lab.ask(1, &query).releases, answered.releases);
}

/// One owner withdraws after answering: that round's sum still opens, its charge stands, and it answers nothing more. Another
/// withdraws before: the others repeat the same answers, are charged once, and nothing opens.
#[test]
fn a_party_that_leaves_after_answering_is_in_the_sum_and_one_that_leaves_before_prevents_the_opening() {
    let mut lab = Lab::masked(4, 1);
    let entries = lab.begin();
    let roster = lab.roster(&entries);
    let colluder = lab.keys_of(0, &roster);
    let of_colluder = |lab: &Lab, iteration: u64| -> Vec<i64> {
        let digest = message_digest(&roster.digest(), iteration, &lab.queries());
        colluder.masks(&digest, LANES as usize).into_iter().map(u64::cast_signed).collect()
    };
    let opens = |lab: &Lab, iteration: u64, answers: &[v1::Answer]| {
        let own = of_colluder(lab, iteration);
        (0..LANES as usize)
            .all(|lane| opened(answers.iter().map(|a| a.releases[lane]).chain([own[lane]])).unsigned_abs() < LARGEST)
    };
    let withdraw = |lab: &mut Lab, place: usize| {
        super::keys::decide(&lab.seats[place], &lab.job.job, "revoked");
        lab.seats[place].process.as_mut().expect("a party that runs").consent_changed();
    };
    let query = lab.query(0);
    let first = lab.ask(1, &query);
    let charged = lab.seats[1].charges();
    withdraw(&mut lab, 1);
    let answers = [first, lab.ask(2, &query), lab.ask(3, &query)];
    assert!(opens(&lab, 0, &answers));
    assert_eq!(lab.seats[1].charges(), charged);
    let next = lab.query(1);
    assert!(released(&lab.ask(1, &next)).is_err() && released(&lab.ask(1, &query)).is_err());
    // The others receive the next round's query twice: no new answer, charge or opening.
    let answers = [2, 3].map(|place| lab.ask(place, &next));
    let charges = [2, 3].map(|place: usize| lab.seats[place].charges());
    assert_eq!([2, 3].map(|place| lab.ask(place, &next).releases), answers.clone().map(|answer| answer.releases));
    assert_eq!([2, 3].map(|place: usize| lab.seats[place].charges()), charges);
    assert!(!opens(&lab, 1, &answers));
    assert_eq!(lab.seats[1].charges(), charged);
    (1..4).for_each(|place| lab.seats[place].verify());
}
