#![allow(clippy::unwrap_used)]
use conclave_common::job::JobSpec;
use conclave_proto::error::ErrorCode;
use conclave_proto::v1;
use conclave_vault::answer::{Answerer, Opening};
use conclave_vault::data::{BadRows, Shard};
use conclave_vault::ledger::{Ledger, LedgerSettings};
use conclave_vault::members::Members;
use conclave_vault::noise::Noise;
use conclave_vault::testing::{MEAN_TOML, budget, data, entry, key, open_policy, open_request, write};

use super::*;
use crate::ledger_views::report_kept;
use crate::owner::worst_case::worst_case;

/// A sequence of numbers, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

fn parts(scale: &Scale) -> u64 {
    scale.shares("b").parts.iter().map(|part| part.units).sum()
}

#[test]
fn the_parts_sum_to_the_whole_in_any_state() {
    let mut numbers = Numbers(3);
    let policy = Policy::default();
    for _ in 0..2000 {
        let whole = 1 + numbers.next(1 << 30) * (1 + numbers.next(1 << 20));
        let remaining = numbers.next(1 << 31) * numbers.next(1 << 20) % (whole + whole / 8 + 1);
        let promised = numbers.next(1 << 31) * numbers.next(1 << 20) % (whole + 1);
        let scale = Scale::of_units(Units { whole, remaining, promised }, 2, &budget(), &policy);
        assert_eq!(parts(&scale), whole, "{scale:?}");
        for is_open in [false, true] {
            let job = scale.with_job(mu_squared(numbers.next(1 << 31) * numbers.next(1 << 20)), is_open, &policy);
            assert_eq!(parts(&job), whole, "{job:?}");
            assert_eq!(job.spent, scale.spent);
            assert!(job.room() <= scale.room() || is_open, "{job:?} after {scale:?}");
            let shares = job.value();
            let sum: f64 =
                ["spent", "held_by_open_jobs", "this_job", "left"].map(|part| shares[part].as_f64().unwrap()).iter().sum();
            assert!((sum - 1.0).abs() < 1e-12, "{shares}");
        }
    }
}

/// A party with a random past: some jobs have spent, and some of them are open.
struct Party {
    _folder: tempfile::TempDir,
    settings: LedgerSettings,
    answerer: Answerer,
}

impl Party {
    fn with_past(numbers: &mut Numbers) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = write(folder.path(), "a.csv", "height\n150\n160\n");
        let settings = LedgerSettings::beside(&folder.path().join("ledger.sqlite"), "hospital-a", &budget());
        settings.init().unwrap();
        let mut ledger = Ledger::open_kept(&settings).unwrap();
        for past in 0..numbers.next(3) {
            let job = format!("past-{past}");
            let cap = Budget::new(0.5 + numbers.next(1500) as f64 / 1e3, 1e-6).unwrap();
            ledger.open_job(&entry(&job, cap)).unwrap();
            for round in 0..numbers.next(4) {
                ledger.charge(&job, round, &[key(0, 1, (1 << 18) + numbers.next(1 << 22))]).unwrap();
            }
            ledger.close_job(&job, "done").unwrap();
        }
        ledger.close().unwrap();
        let shard = Shard::load(&data(path, BadRows::Stop), None).unwrap();
        let ledger = Ledger::open_kept(&settings).unwrap();
        let answerer = Answerer::new("hospital-a".into(), open_policy(), budget(), shard, ledger, Noise::from_os().unwrap())
            .with_members(Members::anyone());
        let mut party = Self { _folder: folder, settings, answerer };
        for open in 0..numbers.next(3) {
            let _ = party.open(&format!("open-{open}"), 0.5 + numbers.next(2500) as f64 / 1e3);
        }
        party
    }

    fn open(&mut self, job: &str, epsilon: f64) -> Result<Opening, ErrorCode> {
        let toml = toml(epsilon);
        self.answerer.open(&v1::OpenJob { job: job.to_owned(), ..open_request(&toml) }).map_err(|fault| fault.code)
    }

    fn scale(&self) -> Scale {
        let report = report_kept(&self.settings).unwrap();
        Scale::of_units(report.units, report.open_jobs.len(), &budget(), &open_policy())
    }
}

fn toml(epsilon: f64) -> String {
    MEAN_TOML.replace("epsilon = 3.0", &format!("epsilon = {epsilon:.3}"))
}

/// The stated room opens a real job, and a thousandth more is refused or has to wait.
#[test]
fn the_stated_room_opens_a_job_and_no_more() {
    let mut numbers = Numbers(11);
    let mut held = 0;
    for _ in 0..60 {
        let mut party = Party::with_past(&mut numbers);
        let scale = party.scale();
        held += usize::from(scale.held > 0);
        assert_eq!(parts(&scale), scale.whole);
        let more = party.open("more", scale.room() + 0.001);
        assert!(matches!(more, Ok(Opening::Full(_)) | Err(ErrorCode::Budget)), "{more:?} at {scale:?}");
        // The job's own part of the bar, before and after it opens.
        let spec = JobSpec::parse(&toml(scale.room())).unwrap();
        let worst = worst_case(&spec, 0, &report_kept(&party.settings).unwrap(), None).unwrap();
        let before = scale.with_job(worst.more_mu_squared, false, &open_policy());
        let opened = party.open("fits", scale.room());
        assert!(matches!(opened, Ok(Opening::Opened(..))), "{opened:?} at {scale:?}");
        let after = party.scale().with_job(worst.more_mu_squared, true, &open_policy());
        assert_eq!((before.job, before.held, before.left), (after.job, after.held, after.left), "{before:?}, {after:?}");
        // Room is stated in thousandths of epsilon: a remainder below one is small in mu squared.
        assert!(before.room() < 0.1, "{before:?}");
    }
    assert!(held > 20, "{held} of the states have open jobs");
}

#[test]
fn the_room_is_within_the_owners_limit_for_one_job() {
    let units = Units { whole: 1 << 50, remaining: 1 << 50, promised: 1 << 49 };
    let scale = |policy: &Policy| Scale::of_units(units, 1, &budget(), policy);
    let free = scale(&Policy::default());
    assert!(free.room() > 3.0 && free.caption().starts_with("Room for one more job of ε "), "{}", free.caption());
    let limited = scale(&Policy { max_epsilon_per_job: Some(2.0), ..Policy::default() });
    assert_eq!((limited.room(), limited.caption().as_str()), (2.0, "Room for one more job of ε 2.00, your limit for one job."));
    let over = scale(&Policy { over_commit: true, ..Policy::default() });
    assert!(over.room() > free.room(), "{over:?}");
    assert!(free.in_epsilon().contains("0 spent, of 8, at delta 1e-6"), "{}", free.in_epsilon());
    let none = free.with_job(f64::MAX, false, &Policy::default());
    assert_eq!(none.caption(), "No room for one more job beside this one.");
}
