//! Draws the noise of releases ahead of the request, from a cryptographic generator that the operating system seeds; and the hidden samples
//! of units, from another.
//!
//! No seed can be set: anyone who knew it could subtract the noise. The time to draw a sample depends on its value, so a separate thread
//! keeps a bounded stock for each noise scale of an open job, and the answering thread only takes from it. A scale without a stock (the
//! search for the mode has one per query) is sampled on demand. Either way a sample is drawn before the records are read, is used once, and
//! its memory is overwritten. Samples are kept in memory only: a restarted party draws new ones. The units of a subsampled release are
//! drawn on demand, for one release and once its charge is on disk, and never published: no log, ledger or reply has them.
//!
//! A virtual machine that is copied or set back while it runs has its generators copied too. Two copies would give the same noise to
//! different queries, whose difference is free of noise. So each generator is keyed again, from its old state and 256 fresh bits of the
//! operating system, before and after every batch for a stock and every sample on demand. After it, the state in memory reveals no draw
//! that was made, and no key outlives its generator. The stock is discarded whenever a job is opened
//! ([`Noise::renew`]), which every coordinator requests after every break of the connection, and no copy of a machine outlives its
//! connection. A copy that answers nevertheless meets the ledger: its head is older.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use conclave_privacy::mechanism::{NoiseSample, NoiseScale, NoiseStock};
use conclave_privacy::pass::{HiddenSample, PoissonSampling};
use rand::rngs::{SysError, SysRng};
use rand::{Rng, SeedableRng, TryRng};
use rand_chacha::ChaCha20Rng;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// Samples kept per scale: two messages of the largest size, and not a millisecond of work.
const STOCK: usize = 512;
/// Scales that are kept in stock; further jobs are sampled for on demand.
const SCALES: usize = 16;
/// Samples drawn between two looks at the wanted scales.
const BATCH: usize = 32;

/// A source of discrete Gaussian noise.
pub struct Noise {
    /// For scales that have no stock, or an empty one.
    generator: KeyedGenerator,
    /// For samples of units.
    units_generator: KeyedGenerator,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// A generator that is keyed again before and after each use, and whose key is overwritten at its end.
pub(crate) struct KeyedGenerator {
    rng: ChaCha20Rng,
    keying: fn(&mut ChaCha20Rng),
}

impl KeyedGenerator {
    fn from_os() -> Result<Self, SysError> {
        Ok(Self { rng: ChaCha20Rng::try_from_rng(&mut SysRng)?, keying: rekey })
    }

    #[cfg(any(test, feature = "test-util"))]
    fn seeded(seed: u64) -> Self {
        Self { rng: ChaCha20Rng::seed_from_u64(seed), keying: |_| {} }
    }

    /// Draws under a key of its own.
    pub(crate) fn draw<T>(&mut self, draw: impl FnOnce(&mut ChaCha20Rng) -> T) -> T {
        (self.keying)(&mut self.rng);
        let drawn = draw(&mut self.rng);
        (self.keying)(&mut self.rng);
        drawn
    }
}

impl Drop for KeyedGenerator {
    fn drop(&mut self) {
        overwrite(&mut self.rng);
    }
}

/// Overwrites a generator's key and the numbers that it holds ready.
fn overwrite(generator: &mut ChaCha20Rng) {
    *generator = ChaCha20Rng::from_seed([0; 32]);
    // The compiler may not take the last write for a useless one.
    std::hint::black_box(generator);
}

struct Shared {
    stocks: Mutex<Stocks>,
    wanted: Condvar,
}

#[derive(Default)]
struct Stocks {
    by_scale: HashMap<NoiseScale, NoiseStock>,
    /// Grows with every renewal: samples of an earlier epoch are put into no stock.
    epoch: u64,
    stop: bool,
}

impl Noise {
    /// Seeds three generators with 256 bits each from the operating system, one for the thread that samples ahead.
    ///
    /// # Errors
    /// The operating system gives no entropy; a party does not start then.
    pub fn from_os() -> Result<Self, SysError> {
        let (generator, units_generator) = (KeyedGenerator::from_os()?, KeyedGenerator::from_os()?);
        let mut ahead = ChaCha20Rng::try_from_rng(&mut SysRng)?;
        let shared = Arc::new(Shared { stocks: Mutex::default(), wanted: Condvar::new() });
        let thread = {
            let shared = Arc::clone(&shared);
            // Without the thread everything is sampled on demand.
            std::thread::Builder::new().name("noise".into()).spawn(move || shared.keep_filled(&mut ahead)).ok()
        };
        Ok(Self { generator, units_generator, shared, thread })
    }

    /// Makes a source without thread and stock, predictable to anyone who knows the seed: for tests on made-up records only.
    #[cfg(any(test, feature = "test-util"))]
    pub fn seeded(seed: u64) -> Self {
        let shared = Arc::new(Shared { stocks: Mutex::default(), wanted: Condvar::new() });
        Self { generator: KeyedGenerator::seeded(seed), units_generator: KeyedGenerator::seeded(!seed), shared, thread: None }
    }

    /// Continues from another seed.
    #[cfg(feature = "test-util")]
    pub fn reseed(&mut self, seed: u64) {
        (self.generator, self.units_generator) = (KeyedGenerator::seeded(seed), KeyedGenerator::seeded(!seed));
    }

    /// Keeps exactly these scales in stock; samples of any other are overwritten.
    pub fn keep(&mut self, scales: impl IntoIterator<Item = NoiseScale>) {
        let scales: Vec<NoiseScale> = scales.into_iter().take(SCALES).collect();
        let mut stocks = self.shared.lock();
        stocks.by_scale.retain(|scale, _| scales.contains(scale));
        for scale in scales {
            stocks.by_scale.entry(scale).or_insert_with(|| NoiseStock::new(STOCK));
        }
        drop(stocks);
        self.shared.wanted.notify_one();
    }

    /// Draws a sample of scale `s`, one integer per component, which is given out once. To be called before the records are read.
    ///
    /// Theorem, noise law: each integer has exactly the discrete Gaussian distribution of scale `s`. Proof: docs/explanation/proofs.md,
    /// section 2.
    pub fn sample(&mut self, s: NoiseScale, components: usize) -> NoiseSample {
        NoiseSample::gathered(components, || self.one(s))
    }

    /// Draws the units of one subsampled release, for it alone. To be called when its charge is on disk, and before the records are read.
    pub fn sample_of_units(&mut self, sampling: &PoissonSampling) -> HiddenSample {
        self.units_generator.draw(|generator| sampling.sample(generator))
    }

    /// Returns a separate generator for one draw that is not a sum's noise, keyed from this one's state and the operating system. To be
    /// called before the records are read.
    pub(crate) fn generator(&mut self) -> KeyedGenerator {
        let mut seed = Zeroizing::new([0; 32]);
        self.generator.draw(|generator| generator.fill_bytes(seed.as_mut_slice()));
        KeyedGenerator { rng: ChaCha20Rng::from_seed(*seed), keying: |_| {} }
    }

    fn one(&mut self, s: NoiseScale) -> NoiseSample {
        let mut stocks = self.shared.lock();
        let sample = stocks.by_scale.get_mut(&s).and_then(|stock| {
            let sample = stock.take();
            if stock.room() >= STOCK / 2 {
                self.shared.wanted.notify_one();
            }
            sample
        });
        drop(stocks);
        sample.unwrap_or_else(|| self.sample_on_demand(s))
    }

    /// Discards the stock and keys the generators again: no sample drawn before is given out after.
    pub fn renew(&mut self) {
        self.generator.draw(|_| ());
        self.units_generator.draw(|_| ());
        let mut stocks = self.shared.lock();
        stocks.epoch += 1;
        for stock in stocks.by_scale.values_mut() {
            *stock = NoiseStock::new(STOCK);
        }
        drop(stocks);
        self.shared.wanted.notify_one();
    }

    fn sample_on_demand(&mut self, s: NoiseScale) -> NoiseSample {
        self.generator.draw(|generator| NoiseSample::of_scale(s, generator))
    }

    /// Keys the generator of samples in another way, for tests that plant a fault.
    #[cfg(any(test, feature = "test-util"))]
    pub(crate) fn key_samples_by(&mut self, keying: fn(&mut ChaCha20Rng)) {
        self.units_generator.keying = keying;
    }

    /// Returns the number of samples ready at scale `s`.
    #[cfg(test)]
    pub(crate) fn ready(&self, s: NoiseScale) -> usize {
        self.shared.lock().by_scale.get(&s).map_or(0, |stock| STOCK - stock.room())
    }
}

/// Keys a generator again: SHA-256 over 256 bits of its own and 256 of the operating system's. Either alone is enough against an adversary
/// who knows the other.
fn rekey(generator: &mut ChaCha20Rng) {
    let (mut own, mut fresh) = (Zeroizing::new([0; 32]), Zeroizing::new([0; 32]));
    generator.fill_bytes(own.as_mut_slice());
    if let Err(e) = SysRng.try_fill_bytes(fresh.as_mut_slice()) {
        // It gave entropy at the start; the generator is as good as ever, except on a copied machine.
        tracing::error!("the operating system gives no random numbers: {e}");
    }
    let hash = Sha256::new().chain_update(b"conclave noise 1").chain_update(own.as_slice()).chain_update(fresh.as_slice());
    let seed: Zeroizing<[u8; 32]> = Zeroizing::new(hash.finalize().into());
    *generator = ChaCha20Rng::from_seed(*seed);
}

impl Shared {
    /// A thread that panicked while it held the lock left the stocks consistent: they change by one sample at a time.
    fn lock(&self) -> MutexGuard<'_, Stocks> {
        self.stocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep_filled(&self, generator: &mut ChaCha20Rng) {
        let mut stocks = self.lock();
        while !stocks.stop {
            let short = stocks.by_scale.iter().find(|(_, stock)| stock.room() > 0).map(|(scale, _)| *scale);
            let Some(scale) = short else {
                stocks = self.wanted.wait(stocks).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let epoch = stocks.epoch;
            drop(stocks);
            rekey(generator);
            // Sampled outside the lock, so that the answering thread never waits for a draw.
            let mut batch = NoiseStock::new(BATCH);
            while batch.room() > 0 {
                batch.put(NoiseSample::of_scale(scale, generator));
            }
            rekey(generator);
            stocks = self.lock();
            if stocks.epoch == epoch
                && let Some(stock) = stocks.by_scale.get_mut(&scale)
            {
                while stock.room() > 0
                    && let Some(sample) = batch.take()
                {
                    stock.put(sample);
                }
            }
        }
        drop(stocks);
        overwrite(generator);
    }
}

impl Drop for Noise {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.wanted.notify_one();
        if let Some(thread) = self.thread.take() {
            // It ends after the current batch.
            let _ = thread.join();
        }
    }
}

/// Hides the generator's state.
impl std::fmt::Debug for Noise {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Noise")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::HashSet;
    use std::time::{Duration, Instant};

    use conclave_privacy::pass::LatticeSum;

    use super::*;

    fn open(sample: NoiseSample) -> i64 {
        LatticeSum::from_units_for_test(0).add_noise(sample).as_slice()[0]
    }

    fn filled(noise: &Noise, s: NoiseScale) -> bool {
        holds(noise, s, STOCK)
    }

    /// Returns true where the stock soon has at least `least` samples.
    fn holds(noise: &Noise, s: NoiseScale, least: usize) -> bool {
        let start = Instant::now();
        while noise.ready(s) < least && start.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(1));
        }
        (least..=STOCK).contains(&noise.ready(s))
    }

    #[test]
    fn two_generators_differ_and_the_scale_is_kept() {
        let s = NoiseScale::from_units(1 << 32).unwrap();
        let wide = NoiseScale::from_units(1 << 40).unwrap();
        let (mut a, mut b) = (Noise::from_os().unwrap(), Noise::from_os().unwrap());
        a.keep([s]);
        assert_ne!((open(a.sample(s, 1)), open(a.sample(s, 1))), (open(b.sample(s, 1)), open(b.sample(s, 1))));
        let spread = |noise: &mut Noise, s: NoiseScale| {
            let sum: f64 = (0..4000).map(|_| (open(noise.sample(s, 1)) as f64 / s.units() as f64).powi(2)).sum();
            sum / 4000.0
        };
        // Alternating scales, with and without a stock: 4000 squares have a standard error of 2.2%.
        for scale in [s, wide, s] {
            assert!((spread(&mut a, scale) - 1.0).abs() < 0.15);
        }
    }

    #[test]
    fn a_stock_fills_is_bounded_and_gives_each_draw_once() {
        // Wide enough that two equal draws among a few thousand are all but impossible.
        let s = NoiseScale::from_units(1 << 50).unwrap();
        let mut noise = Noise::from_os().unwrap();
        noise.keep([s]);
        assert!(filled(&noise, s));
        // However fast the thread is, the rest is drawn on demand.
        let draws: HashSet<i64> = (0..3 * STOCK).map(|_| open(noise.sample(s, 1))).collect();
        assert_eq!(draws.len(), 3 * STOCK);
        // It is filled again once half of it is gone.
        assert!(holds(&noise, s, STOCK / 2 + 1));
    }

    /// The state that stays behind a draw is another than the one that made it, and so is the key of a generator that has ended.
    #[test]
    fn a_state_that_stays_behind_gives_no_draw_again() {
        let s = NoiseScale::from_units(1 << 50).unwrap();
        let again = |rng: &ChaCha20Rng| open(NoiseSample::of_scale(s, &mut rng.clone()));
        thread_local!(static KEYED: std::cell::RefCell<Vec<ChaCha20Rng>> = const { std::cell::RefCell::new(Vec::new()) });
        // Notes the state before each keying, and leaves the first one as it is: the draw's own.
        let keying: fn(&mut ChaCha20Rng) = |rng| {
            KEYED.with_borrow_mut(|states| {
                states.push(rng.clone());
                if states.len() > 1 {
                    rekey(rng);
                }
            });
        };
        let mut generator = KeyedGenerator { rng: ChaCha20Rng::from_seed([7; 32]), keying };
        let drawn = open(generator.draw(|rng| NoiseSample::of_scale(s, rng)));
        let (before, after) = KEYED.with_borrow(|states| (states[0].clone(), states[1].clone()));
        assert_eq!(again(&before), drawn);
        assert_ne!(generator.rng, after, "keyed again");
        assert_ne!(again(&generator.rng), drawn);
        let mut ended = ChaCha20Rng::from_seed([7; 32]);
        overwrite(&mut ended);
        assert_eq!(ended, ChaCha20Rng::from_seed([0; 32]));
    }

    /// A machine that is copied: two generators in one state, as after a fork, and a stock that both would hold.
    #[test]
    fn a_copied_state_does_not_repeat_itself() {
        let s = NoiseScale::from_units(1 << 50).unwrap();
        let mut one = ChaCha20Rng::from_seed([7; 32]);
        let mut two = one.clone();
        rekey(&mut one);
        rekey(&mut two);
        assert_ne!(open(NoiseSample::of_scale(s, &mut one)), open(NoiseSample::of_scale(s, &mut two)));

        let mut noise = Noise::from_os().unwrap();
        noise.generator.rng = ChaCha20Rng::from_seed([7; 32]);
        let first = open(noise.sample(s, 1));
        noise.generator.rng = ChaCha20Rng::from_seed([7; 32]);
        assert_ne!(open(noise.sample(s, 1)), first, "a draw on demand");
        let generators = [(); 2].map(|()| {
            noise.generator.rng = ChaCha20Rng::from_seed([7; 32]);
            noise.generator().draw(Rng::next_u64)
        });
        assert_ne!(generators[0], generators[1], "a generator for a choice");
        noise.keep([s]);
        assert!(filled(&noise, s));
        noise.renew();
        assert_eq!(noise.shared.lock().epoch, 1);
        assert!(filled(&noise, s));
    }

    #[test]
    fn a_stock_that_is_not_wanted_any_more_is_gone() {
        let (a, b) = (NoiseScale::from_units(1 << 32).unwrap(), NoiseScale::from_units(1 << 33).unwrap());
        let mut noise = Noise::from_os().unwrap();
        noise.keep([a]);
        assert!(filled(&noise, a));
        noise.keep([b]);
        assert_eq!(noise.ready(a), 0);
        assert!(filled(&noise, b));
        assert_eq!(noise.ready(a), 0);
    }
}
