//! A gradient whose length is limited in floating point only.

use conclave_common::model::{Model, RatioRange, Remainder, ScoreModel};
use conclave_privacy::mechanism::{Components, GRADIENT_UNITS};
use conclave_privacy::pass::LatticeSum;
use conclave_privacy::pass::{Block, BlockPass, Frame, ModelData};

/// A model that shortens each unit's vector to `K` as a float and rounds its components to the nearest integers without checking
/// the result: half of all shortened vectors are then longer than `K`, by a lattice unit or less.
pub struct FloatClipped(pub Box<dyn Model>);

struct Scores<'a>(Box<dyn ScoreModel + 'a>);

impl Model for FloatClipped {
    as_inner!();
    fn scores(&self) -> Option<Box<dyn ScoreModel + '_>> {
        self.0.scores().map(|scores| Box::new(Scores(scores)) as Box<dyn ScoreModel>)
    }
    fn ratio_kernel(&self, pass: BlockPass<'_>) {
        self.0.ratio_kernel(pass);
    }
}

/// Factor by which a vector is made smaller, so that the model's own kernel does not shorten it.
const SMALLER: f64 = 64.0;

impl Scores<'_> {
    fn vector(&self, unit: &Block<'_>, at: &[f64], frame: Frame<'_>) -> Vec<i64> {
        let whole = self.0.gradient_sum(unit, at, frame).open_components_for_test();
        let vector: Vec<f64> = whole.into_iter().map(|x| x as f64 * SMALLER).collect();
        let length = vector.iter().map(|x| x * x).sum::<f64>().sqrt();
        let factor = (GRADIENT_UNITS as f64 / length).min(1.0);
        vector.into_iter().map(|x| (x * factor).round() as i64).collect()
    }
}

macro_rules! forward {
    ($(fn $name:ident($($arg:ident: $type:ty),*) -> $ret:ty;)*) => {
        $(fn $name(&self, $($arg: $type),*) -> $ret { self.0.$name($($arg),*) })*
    };
}

impl ScoreModel for Scores<'_> {
    fn gradient_kernel(&self, at: &[f64], frame: Frame<'_>, pass: BlockPass<'_>) {
        let block = pass.block_for_test();
        let d = frame.parameters();
        let rows = (0..d).flat_map(|k| frame.row(k)).chain(frame.shift());
        let numbers: Vec<f64> = rows.map(|x| x / SMALLER).collect();
        let small = Frame::new(&numbers, d).expect("as many numbers");
        let units = (0..block.units() as usize).map(|unit| self.vector(&block.part(unit..unit + 1), at, small));
        let add = |sum: Vec<i64>, unit: Vec<i64>| sum.iter().zip(unit).map(|(a, b)| a + b).collect();
        let sum = Components::new(&units.fold(vec![0; d], add)).expect("components");
        pass.plant_for_test(vec![LatticeSum::of_components_for_test(sum)]);
    }

    forward! {
        fn coefficients() -> usize;
        fn parameters() -> usize;
        fn most_squares() -> u64;
        fn remainder_kernel(step: &Remainder<'_>, pass: BlockPass<'_>) -> ();
        fn curvature_kernel(at: &[f64], scales: [f64; 2], pass: BlockPass<'_>) -> ();
        fn moments_kernel(pass: BlockPass<'_>) -> ();
        fn moments_outcome() -> Option<(f64, f64)>;
        fn coding() -> Vec<bool>;
        fn range(at: &[f64], direction: &[f64]) -> (f64, f64);
        fn offset_range() -> (f64, f64);
        fn extreme_gradients(at: &[f64]) -> Option<Vec<Vec<f64>>>;
        fn gradient_bound(at: &[f64]) -> [f64; 2];
        fn most_information(at: &[f64]) -> [f64; 2];
        fn even_information(at: &[f64]) -> Vec<f64>;
        fn has_intercept() -> bool;
        fn is_indicator(j: usize) -> bool;
        fn leaves_out() -> bool;
        fn groups() -> Vec<Vec<usize>>;
        fn never_together(j: usize, k: usize) -> bool;
    }
}
