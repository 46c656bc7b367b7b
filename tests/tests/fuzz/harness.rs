//! Mutation of stored inputs with proptest, for a duration set in the environment.
//!
//! An input is one of a target's seeds or of the files in `corpus/TARGET/`, changed by a few random edits. With
//! `CONCLAVE_FUZZ_SECONDS`, each target runs that long from a random seed; without it, a short time from a fixed seed. A failing
//! input is shrunk and stored in the corpus, with which every later run begins.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use sha2::{Digest, Sha256};

/// Cases between two checks of the clock.
const BATCH: u32 = 64;
/// Cases of an untimed run.
const QUICK: u32 = 256;
/// Time after which a decoder counts as hung on one input.
const HANGS: Duration = Duration::from_secs(20);
/// Maximal length of an input, in bytes.
const LONGEST: usize = 1 << 17;

/// Function that tries one input.
pub(crate) type Run = dyn Fn(&[u8]) -> bool;

/// A decoder or reader under test.
pub(crate) struct Target {
    /// Name of its folder in the corpus.
    pub(crate) name: &'static str,
    /// Initial inputs, mostly valid ones.
    pub(crate) seeds: Vec<Vec<u8>>,
    /// Keywords of the format.
    pub(crate) words: Vec<Vec<u8>>,
    /// Function that panics on a fault, and returns true where the input was accepted.
    pub(crate) run: Box<Run>,
}

/// One change to an input.
#[derive(Debug, Clone)]
enum Edit {
    Flip(Index, u8),
    Put(Index, u8),
    Insert(Index, Vec<u8>),
    Word(Index, Index),
    Delete(Index, u16),
    Repeat(Index, u16),
    Splice(Index, Index, Index),
    Integer(Index, i64),
}

fn edit() -> impl Strategy<Value = Edit> {
    let odd = prop_oneof![
        Just(0),
        Just(-1),
        Just(i64::MAX),
        Just(i64::MIN),
        Just(f64::NAN.to_bits() as i64),
        Just(f64::INFINITY.to_bits() as i64),
        Just(f64::MIN_POSITIVE.to_bits() as i64 - 1),
        Just(f64::MAX.to_bits() as i64),
        any::<i64>(),
    ];
    prop_oneof![
        1 => (any::<Index>(), 0..8u8).prop_map(|(at, bit)| Edit::Flip(at, bit)),
        1 => (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Edit::Put(at, byte)),
        1 => (any::<Index>(), vec(any::<u8>(), 1..8)).prop_map(|(at, bytes)| Edit::Insert(at, bytes)),
        4 => (any::<Index>(), any::<Index>()).prop_map(|(at, word)| Edit::Word(at, word)),
        1 => (any::<Index>(), 1..64u16).prop_map(|(at, n)| Edit::Delete(at, n)),
        1 => (any::<Index>(), 1..256u16).prop_map(|(at, n)| Edit::Repeat(at, n)),
        1 => (any::<Index>(), any::<Index>(), any::<Index>()).prop_map(|(at, of, from)| Edit::Splice(at, of, from)),
        1 => (any::<Index>(), odd).prop_map(|(at, value)| Edit::Integer(at, value)),
    ]
}

impl Edit {
    fn apply(&self, input: &mut Vec<u8>, corpus: &[Vec<u8>], words: &[Vec<u8>]) {
        let place = |at: &Index, input: &[u8]| at.index(input.len() + 1);
        match self {
            Self::Flip(at, bit) if !input.is_empty() => {
                let at = at.index(input.len());
                input[at] ^= 1 << bit;
            }
            Self::Put(at, byte) if !input.is_empty() => {
                let at = at.index(input.len());
                input[at] = *byte;
            }
            Self::Insert(at, bytes) => drop(input.splice(place(at, input)..place(at, input), bytes.iter().copied())),
            Self::Word(at, word) if !words.is_empty() => {
                let (at, word) = (place(at, input), &words[word.index(words.len())]);
                input.splice(at..at, word.iter().copied());
            }
            Self::Delete(at, n) => {
                let at = place(at, input);
                let end = (at + usize::from(*n)).min(input.len());
                input.drain(at..end);
            }
            Self::Repeat(at, n) => {
                let at = place(at, input);
                let end = (at + usize::from(*n)).min(input.len());
                let piece = input[at..end].to_vec();
                input.splice(at..at, piece);
            }
            Self::Splice(at, of, from) => {
                let other = &corpus[of.index(corpus.len())];
                input.truncate(place(at, input));
                input.extend_from_slice(&other[from.index(other.len() + 1)..]);
            }
            Self::Integer(at, value) => {
                let at = place(at, input);
                let end = (at + 8).min(input.len());
                input.splice(at..end, value.to_le_bytes());
            }
            Self::Flip(..) | Self::Put(..) | Self::Word(..) => {}
        }
        input.truncate(LONGEST);
    }
}

fn folder(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/corpus")).join(name)
}

fn stored(name: &str) -> Vec<Vec<u8>> {
    let Ok(entries) = std::fs::read_dir(folder(name)) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry of the corpus").path()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).expect("a file of the corpus")).collect()
}

/// Writes a failing input into the corpus, named by its hash.
fn keep(name: &str, input: &[u8]) -> PathBuf {
    let hash: String = Sha256::digest(input).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let file = folder(name).join(format!("failed-{hash}"));
    std::fs::create_dir_all(folder(name)).expect("the corpus");
    std::fs::write(&file, input).expect("a file of the corpus");
    file
}

/// Runs one input; returns true where it was accepted.
fn one(target: &Target, input: &[u8]) -> Result<bool, String> {
    let began = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
    match outcome {
        Err(panic) => {
            let why = panic.downcast_ref::<String>().cloned().or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
            Err(why.unwrap_or_else(|| "it panicked".into()))
        }
        Ok(_) if began.elapsed() > HANGS => Err(format!("it took {:?}", began.elapsed())),
        Ok(accepted) => Ok(accepted),
    }
}

/// Tries a target until the time is over.
///
/// # Panics Panics where an input fails, naming the file that stores it, and where no seed is accepted.
pub(crate) fn fuzz(target: &Target) {
    let corpus: Vec<Vec<u8>> = target.seeds.iter().cloned().chain(stored(target.name)).collect();
    let mut accepted = 0_u64;
    for input in &corpus {
        let outcome = one(target, input).unwrap_or_else(|why| panic!("{}: an input of the corpus fails: {why}", target.name));
        accepted += u64::from(outcome);
    }
    assert!(accepted > 0, "{}: no seed is accepted, so only refusals would be tried", target.name);
    let seconds: Option<f64> = std::env::var("CONCLAVE_FUZZ_SECONDS").ok().map(|s| s.parse().expect("CONCLAVE_FUZZ_SECONDS"));
    let config = Config {
        cases: if seconds.is_some() { BATCH } else { QUICK },
        failure_persistence: None,
        max_shrink_iters: 20_000,
        ..Config::default()
    };
    // A runner never resets its count of successes, so every batch takes a new one.
    let runner = || match seconds {
        Some(_) => TestRunner::new(config.clone()),
        None => TestRunner::new_with_rng(config.clone(), TestRng::deterministic_rng(RngAlgorithm::ChaCha)),
    };
    let inputs = (any::<Index>(), vec(edit(), 1..5)).prop_map(|(of, edits)| {
        let mut input = corpus[of.index(corpus.len())].clone();
        edits.iter().for_each(|edit| edit.apply(&mut input, &corpus, &target.words));
        input
    });
    let (began, mut cases) = (Instant::now(), 0_u64);
    let counted = std::cell::Cell::new(0_u64);
    loop {
        let outcome = runner().run(&inputs, |input| match one(target, &input) {
            Ok(yes) => {
                counted.set(counted.get() + u64::from(yes));
                Ok(())
            }
            Err(why) => Err(TestCaseError::fail(why)),
        });
        match outcome {
            Ok(()) => cases += u64::from(config.cases),
            Err(TestError::Fail(why, input)) => {
                panic!("{}: {why}; the input is stored as {}", target.name, keep(target.name, &input).display())
            }
            Err(TestError::Abort(why)) => panic!("{}: {why}", target.name),
        }
        if seconds.is_none_or(|seconds| began.elapsed().as_secs_f64() >= seconds) {
            break;
        }
    }
    println!("{}: {cases} inputs in {:.0} s, {} accepted", target.name, began.elapsed().as_secs_f64(), counted.get());
}
