//! The laws on normal posteriors, whose stationary variances are known.

use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use crate::sampler::hmc::normals;
use crate::sampler::matrix::Matrix;
use crate::sampler::stochastic_gradients::added_noise::TopUp;
use crate::sampler::stochastic_gradients::law::{Law, Pace, State};
use crate::sampler::stochastic_gradients::laws::{law, usual_step, widened};
use conclave_common::job::Algorithm;

fn of(algorithm: Algorithm, step: f64) -> Box<dyn Law> {
    law(algorithm, Pace { step, friction: 1.0 }).unwrap()
}

/// Returns the stationary variances of places at the ends of steps and of draws, for a posterior of this precision and a
/// gradient's noise of this variance. The law's step must be linear.
fn at_rest(law: &dyn Law, precision: f64, variance: f64) -> (f64, f64) {
    let state = |u: f64, p: f64| State { u: vec![u], momentum: vec![p], thermostat: 1.0 };
    let step = |u: f64, p: f64, noise: f64| law.step(&state(u, p), &[noise - precision * u], &[variance]);
    let both = |to: &State| [to.u[0], to.momentum[0]];
    let (of_u, of_p, of_noise) = (both(&step(1.0, 0.0, 0.0)), both(&step(0.0, 1.0, 0.0)), both(&step(0.0, 0.0, 1.0)));
    // The covariance of (u, p), step after step.
    let mut at = [[1.0, 0.0], [0.0, 1.0]];
    for _ in 0..100_000 {
        let column = |j: usize| [of_u[j], of_p[j]];
        let moved = |i: usize, j: usize| {
            let (a, b) = (column(i), column(j));
            let carried: f64 = (0..2).flat_map(|k| (0..2).map(move |l| (k, l))).map(|(k, l)| a[k] * at[k][l] * b[l]).sum();
            carried + variance * of_noise[i] * of_noise[j]
        };
        at = [[moved(0, 0), moved(0, 1)], [moved(1, 0), moved(1, 1)]];
    }
    let drawn = |u: f64, p: f64, noise: f64| law.draw(&state(u, p), &step(u, p, noise))[0];
    let (u, p, noise) = (drawn(1.0, 0.0, 0.0), drawn(0.0, 1.0, 0.0), drawn(0.0, 0.0, 1.0));
    (at[0][0], u * u * at[0][0] + 2.0 * u * p * at[0][1] + p * p * at[1][1] + noise * noise * variance)
}

/// Returns the noise that the law needs.
fn wanted(law: &dyn Law) -> f64 {
    law.variance(&[6.0], &Matrix::zeros(1))[0]
}

/// Compares with the variance that one step leaves invariant.
#[test]
fn sgld_widens_as_it_says() {
    for (step, precision, expected) in [(0.1, 1.0, 1.0 / 0.975), (0.3, 1.0, 1.0 / 0.925), (0.1, 4.0, 0.25 / 0.9)] {
        let law = of(Algorithm::Sgld, step);
        let (_, draws) = at_rest(law.as_ref(), precision, wanted(law.as_ref()));
        assert!((draws - expected).abs() < 1e-9, "{step} {precision}: {draws}");
        assert!((widened(step, precision) / precision - expected).abs() < 1e-12);
    }
    assert!((of(Algorithm::Sgld, 0.1).draws_spread() - 1.0256).abs() < 1e-4);
}

/// A law whose momenta move places before they add the gradient.
struct OldMomentum(Box<dyn Law>, f64);

impl Law for OldMomentum {
    fn variance(&self, known: &[f64], samples: &Matrix) -> Vec<f64> {
        self.0.variance(known, samples)
    }
    fn step(&self, from: &State, gradient: &[f64], variance: &[f64]) -> State {
        let u = from.u.iter().zip(&from.momentum).map(|(u, p)| u + self.1 * p).collect();
        State { u, ..self.0.step(from, gradient, variance) }
    }
    fn warmup(&self) -> f64 {
        self.0.warmup()
    }
}

/// Half way between the ends of a step `sghmc` has the posterior's variance, for any precision; at the ends it is 1.0272 times,
/// and with the old momentum 1.465 times the variance.
#[test]
fn sghmc_is_right_half_way_and_nowhere_else() {
    for step in [0.1, 0.3, 0.5] {
        let law = of(Algorithm::Sghmc, step);
        for precision in [0.25, 1.0, 4.0] {
            let (_, draws) = at_rest(law.as_ref(), precision, wanted(law.as_ref()));
            assert!((draws * precision - 1.0).abs() < 1e-9, "{step} {precision}: {draws}");
        }
        let (ends, _) = at_rest(law.as_ref(), 1.0, wanted(law.as_ref()));
        assert!((ends - law.spread()).abs() < 1e-9, "{ends}");
    }
    let law = of(Algorithm::Sghmc, 0.3);
    let (ends, _) = at_rest(law.as_ref(), 1.0, wanted(law.as_ref()));
    assert!((ends - 1.0272).abs() < 1e-4 && (law.momentum_variance().unwrap() - 1.208).abs() < 1e-3, "{ends}");
    let (old, _) = at_rest(&OldMomentum(of(Algorithm::Sghmc, 0.3), 0.3), 1.0, wanted(law.as_ref()));
    assert!((old - 1.465).abs() < 1e-2, "{old}");
}

/// A step with the papers' prefactor.
struct Prefactor(Box<dyn Law>, f64);

impl Law for Prefactor {
    fn variance(&self, known: &[f64], samples: &Matrix) -> Vec<f64> {
        self.0.variance(known, samples)
    }
    fn step(&self, from: &State, gradient: &[f64], variance: &[f64]) -> State {
        let to = self.0.step(from, gradient, variance);
        let u = from.u.iter().zip(&to.u).map(|(from, to)| from + 0.5 * self.1 * (to - from)).collect();
        State { u, ..to }
    }
    fn warmup(&self) -> f64 {
        self.0.warmup()
    }
}

/// On a correlated normal posterior in two dimensions, in the coordinates in which it is standard, the draws have the posterior's
/// covariance for any noise, also an unequal one. With a prefactor it is far smaller.
#[test]
fn sgfs_has_the_posteriors_covariance() {
    for known in [vec![2.0, 7.0], vec![40.0, 0.3]] {
        let law = of(Algorithm::Sgfs, 0.3);
        let variance = law.variance(&known, &Matrix::zeros(2));
        // The components are independent: each has its own stationary variance.
        let one = |law: &dyn Law, variance: f64| at_rest(law, 1.0, variance).1;
        let of_u = Matrix::diagonal(&variance.iter().map(|v| one(law.as_ref(), *v)).collect::<Vec<_>>());
        let root = Matrix::from_fn(2, |i, j| [[1.5, 0.0], [-2.0, 0.7]][i][j]);
        let (got, posterior) = (root.times(&of_u).times(&root.transposed()), root.times(&root.transposed()));
        for (got, posterior) in got.entries().iter().zip(posterior.entries()) {
            assert!((got - posterior).abs() < 1e-9, "{got} for {posterior}");
        }
        assert!(one(&Prefactor(of(Algorithm::Sgfs, 0.3), 0.3), variance[0]) < 0.2);
    }
}

/// `sgfs` with the sampling noise's mean variance in place of its largest eigenvalue.
struct MeanOfSamples(Box<dyn Law>);

impl Law for MeanOfSamples {
    fn variance(&self, known: &[f64], samples: &Matrix) -> Vec<f64> {
        let mean = samples.diagonal_entries().iter().sum::<f64>() / known.len() as f64;
        known.iter().map(|known| known + mean).collect()
    }
    fn step(&self, from: &State, gradient: &[f64], variance: &[f64]) -> State {
        self.0.step(from, gradient, variance)
    }
    fn warmup(&self) -> f64 {
        self.0.warmup()
    }
}

/// If the sampling noise is correlated between two directions, the public noise compensates for that: the total noise has the
/// law's variances and no correlation, and so each component of the draws has its own stationary variance, the posterior's. With
/// the mean in place of the largest eigenvalue there is no such noise.
#[test]
fn sgfs_has_it_where_samples_go_together() {
    for (known, samples) in [([2.0, 7.0], [[3.0, 1.4], [1.4, 0.8]]), ([0.5, 40.0], [[9.0, -8.0], [-8.0, 10.0]])] {
        let law = of(Algorithm::Sgfs, 0.3);
        let samples = Matrix::from_fn(2, |i, j| samples[i][j]);
        let variance = law.variance(&known, &samples);
        let public = TopUp::new(law.as_ref(), &variance, &known, Some(&samples));
        assert!(!public.exceeded);
        let columns = [public.noise(&[1.0, 0.0]), public.noise(&[0.0, 1.0])];
        let all = Matrix::from_fn(2, |i, j| {
            let public: f64 = columns.iter().map(|column| column[i] * column[j]).sum();
            public + samples.entries()[2 * i + j] + if i == j { known[i] } else { 0.0 }
        });
        for (k, entry) in all.entries().iter().enumerate() {
            let wanted = if k == 0 || k == 3 { variance[k / 3] } else { 0.0 };
            assert!((entry - wanted).abs() < 1e-9 * variance[1], "{all:?} for {variance:?}");
        }
        for variance in &variance {
            assert!((at_rest(law.as_ref(), 1.0, *variance).1 - 1.0).abs() < 1e-9);
        }
        let wrong = MeanOfSamples(of(Algorithm::Sgfs, 0.3));
        assert!(TopUp::new(&wrong, &wrong.variance(&known, &samples), &known, Some(&samples)).exceeded);
    }
}

/// A chain on a standard normal posterior with independent components. A gradient has known noise from the parties, and sampling
/// noise.
struct Chain<'a> {
    law: &'a dyn Law,
    known: f64,
    samples: f64,
    /// Set if the parties' noise is subtracted from the public noise.
    counts_known: bool,
}

impl Chain<'_> {
    /// Returns the mean square of draws.
    fn variance(&self, d: usize, steps: usize, seed: u64) -> f64 {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let mut state = State { u: normals(&mut rng, d), momentum: normals(&mut rng, d), thermostat: 1.0 };
        let (known, samples) = (vec![self.known; d], Matrix::identity(d).scaled(self.samples));
        let variance = self.law.variance(&known, &samples);
        let counted = if self.counts_known { known } else { vec![0.0; d] };
        let public = TopUp::new(self.law, &variance, &counted, (self.samples > 0.0).then_some(&samples));
        let sd = (self.known + self.samples).sqrt();
        let warmup = 20 * self.law.warmup() as usize;
        let mut squares = 0.0;
        for step in 0..warmup + steps {
            let (hidden, open) = (normals(&mut rng, d), public.noise(&normals(&mut rng, d)));
            let gradient: Vec<f64> = state.u.iter().zip(&hidden).zip(&open).map(|((u, e), t)| sd * e + t - u).collect();
            let to = self.law.step(&state, &gradient, &variance);
            if step >= warmup {
                squares += self.law.draw(&state, &to).iter().map(|x| x * x).sum::<f64>() / d as f64;
            }
            state = to;
        }
        squares / steps as f64
    }
}

/// A law has one variance, however its noise is divided into the parties', public noise, and assumed sampling noise. 10
/// components with 100 to 400 effective squares each: standard errors of at most 1%, bounds of five. If the parties' part is not
/// subtracted from the public noise, draws are wider by at least a third.
#[test]
fn noise_is_counted_once() {
    for (algorithm, steps) in [(Algorithm::Sgld, 60_000), (Algorithm::Sghmc, 30_000), (Algorithm::Sgfs, 40_000)] {
        let law = of(algorithm, usual_step(algorithm));
        for (known, samples) in [(1.0_f64, 0.0), (3.0, 0.0), (2.5, 2.0)] {
            let chain = Chain { law: law.as_ref(), known, samples, counts_known: true };
            let got = chain.variance(10, steps, 3) / law.draws_spread();
            assert!((got - 1.0).abs() < 0.05, "{algorithm:?} {known} {samples}: {got}");
        }
        if algorithm != Algorithm::Sgfs {
            let half = 0.5 * wanted(law.as_ref());
            let twice = Chain { law: law.as_ref(), known: half, samples: 0.0, counts_known: false }.variance(10, steps, 3);
            assert!(twice > 1.3, "{algorithm:?}: {twice}");
        }
    }
}

/// The thermostat's possible mistakes: momenta at the ends of steps in place of the midpoints, and the number of records in place
/// of the dimension.
struct Faulty {
    step: f64,
    by: f64,
    middle: bool,
}

impl Law for Faulty {
    fn variance(&self, known: &[f64], _samples: &Matrix) -> Vec<f64> {
        vec![2.0 / self.step; known.len()]
    }
    fn counts_samples(&self) -> bool {
        false
    }
    fn step(&self, from: &State, gradient: &[f64], _variance: &[f64]) -> State {
        let kept = 1.0 - self.step * from.thermostat;
        let momentum: Vec<f64> = from.momentum.iter().zip(gradient).map(|(p, g)| kept * p + self.step * g).collect();
        let u = from.u.iter().zip(&momentum).map(|(u, p)| u + self.step * p).collect();
        let q = |(p, to): (&f64, &f64)| if self.middle { 0.5 * (p + to) } else { *to };
        let heat: f64 = from.momentum.iter().zip(&momentum).map(q).map(|q| q * q).sum();
        let thermostat = from.thermostat + self.step * (heat / self.by - 1.0);
        State { u, momentum, thermostat }
    }
    fn warmup(&self) -> f64 {
        10.0 / self.step
    }
}

/// Samples of a twentieth of the records add a variance of 19, which the thermostat does not know. About 60 steps are one
/// effective draw and 30 one of a square: standard errors are 0.7% in ten dimensions and 1% in one; the bound is 3%. Without the
/// midpoints draws are narrower by about 5%, and with 1/n in place of 1/d they are far off.
#[test]
fn sgnht_finds_the_noise_of_samples() {
    let law = of(Algorithm::Sgnht, 0.05);
    for (d, steps) in [(10, 120_000), (1, 1_200_000)] {
        let chain = Chain { law: law.as_ref(), known: 30.0, samples: 19.0, counts_known: true };
        let got = chain.variance(d, steps, 5);
        assert!((got - 1.0).abs() < 0.03, "{d}: {got}");
    }
    let faulty = |by: f64, middle: bool| {
        let law = Faulty { step: 0.05, by, middle };
        Chain { law: &law, known: 30.0, samples: 19.0, counts_known: true }.variance(10, 120_000, 5)
    };
    let (ends, by_records) = (faulty(10.0, false), faulty(50.0, true));
    assert!(ends < 0.97, "{ends}");
    assert!(by_records.is_nan() || by_records > 2.0, "{by_records}");
}

proptest! {
    /// Public noise is the remainder: the covariances sum to the law's wherever it has room.
    #[test]
    fn public_noise_is_what_is_left(known in proptest::collection::vec(0.0..20.0, 3), samples in 0.0..9.0, lean in -0.5..0.5) {
        let law = of(Algorithm::Sgld, 0.1);
        let of_samples = Matrix::from_fn(3, |i, j| if i == j { samples } else { lean * samples });
        let wanted = law.variance(&known, &of_samples);
        let public = TopUp::new(law.as_ref(), &wanted, &known, Some(&of_samples));
        prop_assert!(!public.exceeded);
        let column = |j: usize| public.noise(&(0..3).map(|i| f64::from(u8::from(i == j))).collect::<Vec<_>>());
        let root: Vec<Vec<f64>> = (0..3).map(column).collect();
        for i in 0..3 {
            for j in 0..3 {
                let made: f64 = root.iter().map(|column| column[i] * column[j]).sum();
                let known = if i == j { known[i] } else { 0.0 };
                let all = made + known + of_samples[(i, j)];
                let wanted = if i == j { 40.0 } else { 0.0 };
                prop_assert!((all - wanted).abs() < 1e-9, "{} for {}", all, wanted);
            }
        }
    }
}

/// If there is more noise than the law needs, nothing is added, and the excess is reported.
#[test]
fn too_much_noise_is_told() {
    let law = of(Algorithm::Sgld, 0.1);
    let public = TopUp::new(law.as_ref(), &[40.0; 2], &[41.0, 10.0], None);
    assert!(public.exceeded && public.noise(&[1.0, 1.0]) == [0.0, 30.0_f64.sqrt()]);
    let samples = Matrix::identity(2).scaled(35.0);
    let public = TopUp::new(law.as_ref(), &[40.0; 2], &[10.0, 1.0], Some(&samples));
    let noise = public.noise(&[1.0, 1.0]);
    assert!(public.exceeded && noise[0].abs() < 1e-9 && (noise[1] - 2.0).abs() < 1e-9, "{noise:?}");
}
