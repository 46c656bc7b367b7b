//! Fixed jobs on fixed records, with noise from a fixed seed, reproduce the queries, releases and draws of previous builds bit
//! for bit.
//!
//! A digest covers every query, release and draw of a run, and its cost: kernels, clamp, lattice, noise, price, proposals, mode
//! search and decisions.
//!
//! **A changed digest means that a run with the same seed gives other draws, that a logged run does not resume as it began, and
//! that a replay of released values differs.** A commit may cause that only on purpose, and its message states which jobs change
//! and why.
//!
//! Kernels, noise and sampler do not use the system's mathematical library, so the digests hold on every machine.

use std::fmt::Write;

use conclave_common::job::{JobSpec, LongestMessage};
use conclave_common::model::assemble;
use conclave_common::query::{Draw, Phase, Round};
use conclave_common::schema::ColumnSpec;
use conclave_inference::rehearsal::{Answer, Rehearsal};
use conclave_inference::sampler;
use conclave_inference::sampler::{Next, Totals};
use conclave_privacy::accounting::{Adjacency, PrivacyUnit};
use conclave_privacy::pass::{ModelData, Persons};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use sha2::{Digest, Sha256};

/// Largest number of rounds of a run.
const ROUNDS: u64 = 400;
/// Records of a party: more than a kernel's block, and not a multiple of it.
const RECORDS: usize = 700;

/// A job and the privacy unit of its records.
#[derive(Default)]
struct Case {
    name: &'static str,
    /// First characters of the digest in hexadecimal, then the rounds of search, warm-up and sampling.
    expected: &'static str,
    algorithm: &'static str,
    /// Lines of `[model]`.
    model: &'static str,
    /// Lines of `[columns]`.
    columns: &'static str,
    /// Further lines of `[sampler]`.
    sampler: &'static str,
    /// Further lines of `[privacy]`.
    privacy: &'static str,
    /// Privacy unit of the parties.
    unit: PrivacyUnit,
}

impl Case {
    fn job(&self) -> JobSpec {
        let algorithm = if self.algorithm.is_empty() { "penalty" } else { self.algorithm };
        let warmup = if self.sampler.contains("warmup") { "" } else { "warmup = 10" };
        let Self { model, columns, sampler, privacy, .. } = self;
        let text = format!(
            "name = \"same\"\nalgorithm = \"{algorithm}\"\nparties = [\"a\", \"b\"]\n[model]\n{model}\n[columns]\n{columns}\n\
             [sampler]\nchains = 2\ndraws = 100\n{warmup}\n{sampler}\n[privacy]\nepsilon = 900\ndelta = 1e-6\n{privacy}\n"
        );
        JobSpec::parse(&text).unwrap_or_else(|e| panic!("{}: {e}", self.name))
    }

    /// Records of a party on the model's scale, and its privacy unit.
    fn shard(&self, spec: &JobSpec, party: u64) -> (ModelData, PrivacyUnit) {
        let mut rng = ChaCha20Rng::seed_from_u64(party);
        let of_a_few = |most| Persons::new(ends(most as usize), most).expect("persons of a few records each");
        let persons = self.unit.records_per_person().map(of_a_few);
        let data = assemble(&spec.model, &spec.columns, persons, |_, column| {
            Some((0..RECORDS).map(|_| value(column, &mut rng)).collect())
        });
        (data.expect("the job's columns"), self.unit)
    }

    /// Digest of the run with its rounds of each phase, in the format of [`Case::expected`].
    fn digest(&self) -> String {
        let spec = self.job();
        let shards = (0..2).map(|party| self.shard(&spec, party)).collect();
        let mut parties = Rehearsal::new(&spec, shards, ChaCha20Rng::seed_from_u64(77)).expect("parties");
        let mut sampler = sampler::build(&spec, &parties.metadata()).expect("a sampler");
        let longest = spec.longest_message();
        let (mut seen, mut rounds) = (Seen::default(), [0_u64; 3]);
        // An active clip ends a run early.
        while let Ok(Next::Ask(round)) = sampler.next_round() {
            if round.iteration >= ROUNDS {
                break;
            }
            rounds[match round.phase {
                Phase::Locate => 0,
                Phase::Warmup => 1,
                Phase::Sampling => 2,
            }] += 1;
            seen.round(&round);
            // The longest message of a job is computed before it runs.
            let bytes = LongestMessage::bytes_of(round.queries.iter().map(|query| query.from.len() + query.to.len()));
            assert!(round.queries.len() <= longest.queries && bytes <= longest.bytes, "{}: {bytes} of {longest:?}", self.name);
            match parties.answer(&round).expect("a round that fits") {
                Answer::Released(releases) => {
                    releases.iter().flatten().for_each(|release| seen.number(*release as u64));
                    sampler.absorb(&Totals::of(&round, &releases).expect("releases that fit")).expect("totals that fit");
                }
                Answer::Refused { party, .. } => {
                    seen.number(party as u64);
                    break;
                }
            }
            sampler.take_draws().iter().for_each(|draw| seen.draw(draw));
        }
        sampler.take_draws().iter().for_each(|draw| seen.draw(draw));
        seen.number(sampler.acceptance_rate().unwrap_or(0.0).to_bits());
        for (queries, units) in parties.spent() {
            seen.number(queries);
            seen.number(units);
        }
        let [locate, warmup, sampling] = rounds;
        format!("{} {locate} {warmup} {sampling}", &seen.hex()[..24])
    }
}

/// Digest of the observed run.
#[derive(Default)]
struct Seen(Sha256);

impl Seen {
    fn number(&mut self, number: u64) {
        self.0.update(number.to_le_bytes());
    }

    fn point(&mut self, point: &[f64]) {
        self.number(point.len() as u64);
        point.iter().for_each(|x| self.number(x.to_bits()));
    }

    fn round(&mut self, round: &Round) {
        self.number(round.iteration);
        self.0.update(round.phase.as_str());
        for query in &round.queries {
            self.number(u64::from(query.chain));
            self.number(u64::from(query.kind.code()));
            self.number(query.noise.units());
            self.point(&query.from);
            self.point(&query.to);
        }
    }

    fn draw(&mut self, draw: &Draw) {
        self.number(u64::from(draw.chain));
        self.number(u64::from(draw.warmup) + 2 * u64::from(draw.accepted));
        self.point(&draw.theta);
        self.number(draw.log_alpha.to_bits());
        self.number(draw.iteration);
    }

    fn hex(self) -> String {
        self.0.finalize().iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    }
}

/// A value on the model's scale, skewed towards the lower bound; occasionally a text that is not a level.
fn value(column: &ColumnSpec, rng: &mut ChaCha20Rng) -> f64 {
    let share = f64::from(rng.random_range(0..=32_u32) * rng.random_range(0..=32_u32)) / 1024.0;
    match column {
        // Whole numbers, because counts are numeric columns too.
        ColumnSpec::Numeric { min, max } if max - min > 5.0 => column.scale((min + (max - min) * share).floor()),
        ColumnSpec::Numeric { min, max } => column.scale(min + (max - min) * share),
        ColumnSpec::Binary => f64::from(u8::from(share > 0.2)),
        ColumnSpec::Levels(levels) if share < 0.6 => (share / 0.6 * levels.len() as f64).floor(),
        ColumnSpec::Levels(_) => f64::NAN,
    }
}

/// End index of each person's records: persons have 1 to `most` records in turn.
fn ends(most: usize) -> Vec<usize> {
    let ends = (0..).scan(0, |end, person| {
        *end += person % most + 1;
        Some(*end)
    });
    ends.take_while(|end| *end < RECORDS).chain([RECORDS]).collect()
}

const AGE: &str = "y = { min = 20, max = 80 }";
const MEAN: &str = "kind = \"gaussian_mean\"\noutcome = \"y\"\nsd = 9.0";
const LINE: &str = "y = { min = 0, max = 10 }\na = { min = 20, max = 80 }\nb = { min = 0, max = 1 }\nc = { binary = true }\n\
                    w = { levels = [\"p\", \"q\", \"r\"] }\no = { min = -2, max = 4 }";
const COUNTS: &str = "count = { min = 0, max = 40 }\na = { min = 20, max = 80 }\nc = { binary = true }\n\
                      w = { levels = [\"p\", \"q\", \"r\"] }\ndays = { min = 0.5, max = 3 }";
const ODDS: &str = "y = { binary = true }\na = { min = 20, max = 80 }\nw = { levels = [\"p\", \"q\", \"r\"] }\n\
                    o = { min = -1, max = 0.5 }";
const LOGISTIC: &str = "kind = \"logistic\"\noutcome = \"y\"\npredictors = [\"a\", \"w\"]\noffset = \"o\"";
const POISSON: &str = "kind = \"poisson\"\noutcome = \"count\"\npredictors = [\"a\", \"w\", \"c\"]\nexposure = \"days\"";
const NEGATIVE: &str = "kind = \"negative_binomial\"\noutcome = \"count\"\npredictors = [\"a\", \"c\"]\nexposure = \"days\"";
const FAMILY: &str = "penalty-exp-family";

fn persons(adjacency: Adjacency) -> PrivacyUnit {
    PrivacyUnit::person(adjacency, 3).expect("a unit")
}

/// Every kind of model, proposal, warm-up and unit of privacy, and both algorithms.
fn cases() -> Vec<Case> {
    vec![
        Case {
            name: "a mean, guided",
            expected: "8becde08e4c10ff2768530ab 10 10 100",
            model: MEAN,
            columns: AGE,
            ..Case::default()
        },
        Case {
            name: "a mean, random walk from a given start",
            expected: "af22088098db30b58160e229 0 10 100",
            model: MEAN,
            columns: AGE,
            sampler: "warmup = 10\nproposal = { kind = \"random_walk\", radius = 0.02, jitter = 0.3 }\nstart = { mean = -0.2 }",
            ..Case::default()
        },
        Case {
            name: "a mean, truncated walk",
            expected: "d93bd164c301b4a6daaa0579 10 10 100",
            model: MEAN,
            columns: AGE,
            sampler: "seed = 9\nproposal = { kind = \"truncated_walk\" }",
            ..Case::default()
        },
        Case {
            name: "a mean, tempered",
            expected: "c593e9d75d69e7416de10e10 10 10 100",
            model: "kind = \"gaussian_mean\"\noutcome = \"y\"\nsd = 9.0\npower = 0.3",
            columns: AGE,
            ..Case::default()
        },
        Case {
            name: "a mean, rows added or removed",
            expected: "c29ad7af2fc58e1ac0cb5ba6 10 10 100",
            model: MEAN,
            columns: AGE,
            sampler: "records_guess = 650",
            unit: PrivacyUnit::row(Adjacency::AddRemove),
            ..Case::default()
        },
        Case {
            name: "a mean, persons",
            expected: "8542ff02a6f1fb0ca6cea9e0 10 10 100",
            model: MEAN,
            columns: AGE,
            unit: persons(Adjacency::Replace),
            ..Case::default()
        },
        Case {
            name: "a mean, clipped and watched",
            // Digest since the build in which an active clip subtracts no centre.
            expected: "780b030274b2626838e07364 10 10 100",
            model: MEAN,
            columns: AGE,
            privacy: "clip = 0.2\nclip_watch_share = 0.1",
            ..Case::default()
        },
        Case {
            name: "a mean, each chain from its own start",
            expected: "5ff149dfc9a94b30e99849ba 0 60 100",
            model: MEAN,
            columns: AGE,
            sampler: "proposal = { kind = \"guided\", radius = 0.02 }\nwarmup = { until_rhat = 1.05, max = 60 }\n\
                      starts = [{ mean = -0.6 }, { mean = 0.1 }]",
            ..Case::default()
        },
        Case {
            name: "a mean by its statistics",
            expected: "4b30967b9bd73c6fe998509e 1 10 100",
            algorithm: FAMILY,
            model: MEAN,
            columns: AGE,
            ..Case::default()
        },
        Case {
            name: "a mean by its statistics from a given start",
            expected: "15dd53237cf073ffa3213e0a 1 10 100",
            algorithm: FAMILY,
            model: MEAN,
            columns: AGE,
            sampler: "start = { mean = -0.4 }",
            ..Case::default()
        },
        Case {
            name: "a share, componentwise",
            expected: "bfbabefaac3a604cab33b09b 10 10 100",
            model: "kind = \"bernoulli\"\noutcome = \"y\"",
            columns: "y = { binary = true }",
            sampler: "proposal = { kind = \"componentwise\" }",
            ..Case::default()
        },
        Case {
            name: "a share by its statistics",
            expected: "d9c739c28e3b741b287a7e13 1 10 100",
            algorithm: FAMILY,
            model: "kind = \"bernoulli\"\noutcome = \"y\"",
            columns: "y = { binary = true }",
            ..Case::default()
        },
        Case {
            name: "a rate",
            expected: "b4740fa415d815f25afd0b8b 10 10 100",
            model: "kind = \"poisson_mean\"\noutcome = \"count\"",
            columns: "count = { min = 0, max = 12 }",
            ..Case::default()
        },
        Case {
            name: "a rate by its statistics",
            expected: "70e3b2eddb7fe010d7890ab5 1 10 100",
            algorithm: FAMILY,
            model: "kind = \"poisson_mean\"\noutcome = \"count\"",
            columns: "count = { min = 0, max = 12 }",
            ..Case::default()
        },
        Case {
            name: "shares of levels",
            expected: "b2555691fd807f7a5d8724ee 20 20 100",
            model: "kind = \"multinomial\"\noutcome = \"w\"",
            columns: "w = { levels = [\"p\", \"q\", \"r\"] }",
            ..Case::default()
        },
        Case {
            name: "a line",
            expected: "e8e14c3362f5be3b6c325aa9 43 40 100",
            model: "kind = \"linear\"\noutcome = \"y\"\npredictors = [\"a\", \"b\", \"c\"]\nsd = 2.0",
            columns: LINE,
            sampler: "proposal = { kind = \"componentwise\" }",
            ..Case::default()
        },
        Case {
            name: "a line with levels and an offset, turned",
            expected: "ced8ae189f20929fbe54a42f 60 60 100",
            model: "kind = \"linear\"\noutcome = \"y\"\npredictors = [\"a\", \"w\", \"a:c\"]\noffset = \"o\"",
            columns: LINE,
            sampler: "proposal = { kind = \"guided\", rotate = true }",
            ..Case::default()
        },
        Case {
            name: "a line with heavy tails",
            expected: "c11585bfd2ead4c1d751273a 41 40 100",
            model: "kind = \"student_t\"\ndf = 4\noutcome = \"y\"\npredictors = [\"a\", \"c\"]\noffset = \"o\"",
            columns: LINE,
            ..Case::default()
        },
        Case {
            name: "survival",
            expected: "51043cf41ce28ed007300174 27 20 100",
            model: "kind = \"weibull\"\noutcome = \"days\"\nevent = \"died\"",
            columns: "days = { min = 0.5, max = 2000 }\ndied = { binary = true }",
            ..Case::default()
        },
        Case {
            name: "a mixture",
            expected: "26fa7d539340a48e3ea843a5 20 20 100",
            model: "kind = \"gaussian_mixture\"\noutcome = \"x\"\nsd = 1.5\nweight = 0.4",
            columns: "x = { min = -10, max = 10 }",
            ..Case::default()
        },
        Case {
            name: "a banana, clipped by its slope",
            expected: "a6661a15fbf2bad2070d60b5 21 20 28",
            model: "kind = \"banana\"\noutcome = \"y1\"\nsecond_outcome = \"y2\"\na = 20.0\ntau1 = 0.0005\ntau2 = 0.0004",
            columns: "y1 = { min = -300, max = 300 }\ny2 = { min = -400, max = 400 }",
            privacy: "clip = { slope = 5.0 }",
            ..Case::default()
        },
        Case {
            name: "odds, rows added or removed",
            expected: "fdd540bdd178152255a5100d 41 40 100",
            model: LOGISTIC,
            columns: ODDS,
            sampler: "records_guess = 650",
            unit: PrivacyUnit::row(Adjacency::AddRemove),
            ..Case::default()
        },
        Case {
            name: "counts, rows added or removed",
            expected: "2f42d99728b3f13d730e5c9b 52 50 40",
            model: POISSON,
            columns: COUNTS,
            sampler: "records_guess = 650",
            unit: PrivacyUnit::row(Adjacency::AddRemove),
            ..Case::default()
        },
    ]
}

/// Models that are concave in their linear predictor. If units are replaced, their ratios have a public centre, and the bound of
/// a step in the mean and the dispersion uses both signs. The digests are from the build that first kept a step's sign.
fn concave() -> Vec<Case> {
    vec![
        Case { name: "odds", expected: "ec8239056e897ff506078d9f 40 40 100", model: LOGISTIC, columns: ODDS, ..Case::default() },
        Case {
            name: "odds, persons",
            expected: "57b58b1e6028c3749ab51f94 40 40 100",
            model: LOGISTIC,
            columns: ODDS,
            unit: persons(Adjacency::Replace),
            ..Case::default()
        },
        Case {
            name: "odds, tempered and clipped",
            // Digest since the build in which an active clip subtracts no centre.
            expected: "274c94fc8f5505cb697ed762 47 40 100",
            model: "kind = \"logistic\"\noutcome = \"y\"\npredictors = [\"a\", \"a:w\"]\npower = 0.5",
            columns: ODDS,
            privacy: "clip = 0.5",
            ..Case::default()
        },
        Case {
            name: "counts",
            expected: "8345c9c09d827f3ddae07784 51 50 100",
            model: POISSON,
            columns: COUNTS,
            ..Case::default()
        },
        Case {
            name: "dispersed counts",
            expected: "079de68d77ec551a366ea006 44 40 100",
            model: NEGATIVE,
            columns: COUNTS,
            ..Case::default()
        },
        Case {
            name: "dispersed counts, persons added or removed",
            expected: "b7fe88108da6d6ab5412a4d1 41 40 100",
            model: NEGATIVE,
            columns: COUNTS,
            sampler: "records_guess = 650",
            unit: persons(Adjacency::AddRemove),
            ..Case::default()
        },
    ]
}

/// Runs the cases and reports all differences together.
fn check(cases: &[Case]) {
    let mut changed = String::new();
    for case in cases {
        let found = case.digest();
        if found != case.expected {
            let _ = write!(changed, "\n{}: {found}, not {}", case.name, case.expected);
        }
    }
    assert!(changed.is_empty(), "{changed}");
}

#[test]
fn runs_with_fixed_seeds_stay_as_they_were() {
    check(&cases());
}

#[test]
fn runs_of_concave_models_with_fixed_seeds_stay_as_they_were() {
    check(&concave());
}
