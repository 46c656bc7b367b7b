//! The kernels of bounded influence of a regression: score, information, and tables of residuals and lengths; see [`super::Influence`].

use super::influence::Influence;
use super::leverage::SquaredLengths;
use super::linear_predictor::LinearPredictor;
use super::slope_table::HeldTable;
use super::slopes::{Slopes, Standardised};
use super::table::NOWHERE;
use super::weighted::WeightedSum;
use crate::elementary::exp;
use conclave_privacy::pass::BlockPass;
use conclave_privacy::pass::hold::{Cells, Columns, Place, Sloped};
use conclave_privacy::pass::small_tile::{SMALL_TILE, TileLane};
use conclave_privacy::pass::tile::Tile;
use pulp::{Arch, Simd, WithSimd};

/// The kernels of bounded influence of a regression at a public point.
pub(super) struct Bounded<L: Slopes> {
    eta: WeightedSum,
    at: L::At,
    /// The components of a record's image.
    lengths: SquaredLengths,
    clip: f64,
    /// The largest magnitude of a residual.
    limit: f64,
    trace: f64,
    parameters: usize,
    /// The expectations of a count.
    table: Option<HeldTable>,
    /// True if the slope in the family's own parameter is asked.
    of_own: bool,
    /// The linear predictor at which an information is taken, if that is not `eta`.
    half_way: Option<WeightedSum>,
}

impl<L: Slopes> Bounded<L> {
    pub(super) fn new(
        (likelihood, predictor): (&L, &LinearPredictor),
        (coefficients, own): (&[f64], Option<f64>),
        influence: &Influence<'_>,
    ) -> Self {
        let frame = influence.frame();
        let rows = (0..coefficients.len()).map(|k| &frame.row(k)[..coefficients.len()]);
        Self {
            eta: predictor.weighted(coefficients),
            at: likelihood.slopes_at(own),
            lengths: SquaredLengths::new(predictor, rows),
            clip: influence.clip,
            limit: influence.limit(),
            table: influence.table.map(|table| table.held()),
            of_own: own.is_some() && influence.is_of_own(),
            trace: influence.trace,
            parameters: frame.parameters(),
            half_way: influence.half_way.map(|point| predictor.weighted(&point[..coefficients.len()])),
        }
    }

    /// The same without a frame, for the table of residuals.
    pub(super) fn without_frame(
        (likelihood, predictor): (&L, &LinearPredictor),
        (coefficients, own): (&[f64], Option<f64>),
    ) -> Self {
        let (eta, at) = (predictor.weighted(coefficients), likelihood.slopes_at(own));
        let (clip, limit) = (Influence::MOST_CLIP, Influence::MOST_CLIP);
        let (table, lengths) = (None, SquaredLengths { images: Vec::new() });
        Self { eta, at, lengths, clip, limit, trace: 1.0, parameters: 0, table, of_own: false, half_way: None }
    }

    /// Returns a record's residual and slope: of a count, centred and by the table.
    #[inline(always)]
    fn standardised(&self, y: f64, eta: f64, clip: f64) -> Standardised {
        // A public condition.
        let Some(table) = &self.table else { return L::standardised(&self.at, y, eta, clip) };
        let eta = table.within(eta);
        let ([centre, slope], of) = (table.at(eta), L::standardised(&self.at, y, eta, clip));
        Standardised { residual: of.residual - centre, slope, ..of }
    }

    /// Returns a record's slope half way to an answer.
    #[inline(always)]
    fn slope_half_way(&self, of: Standardised, [eta, half_way]: [f64; 2]) -> f64 {
        let Some(table) = &self.table else { return L::slope_half_way(of, half_way) };
        of.slope * exp(table.within(half_way) - table.within(eta))
    }

    /// Returns a record's slope in the logarithm of the family's own parameter, clipped and centred, over its limit; and its kappa.
    #[inline(always)]
    fn own_slope(&self, y: f64, eta: f64) -> [f64; 2] {
        let Some(table) = &self.table else { return [f64::NAN; 2] };
        let eta = table.within(eta);
        let ([centre, kappa], [_, slope]) = (table.at(eta), L::slopes(&self.at, y, eta));
        let slope = (slope.clamp(-self.clip, self.clip) - centre) / self.limit;
        [slope, kappa + 0.0 * slope]
    }

    /// Gives the kernel of information to a pass.
    pub(super) fn give_information(&self, pass: BlockPass<'_>) {
        let places: Vec<Place> = (0..self.lengths.images.len()).map(|component| Place { vector: 0, component }).collect();
        pass.trace(self, self.parameters, &places);
    }

    /// Gives the kernel of the score's variance to a pass.
    pub(super) fn give_variance(self, pass: BlockPass<'_>) {
        pass.trace(&Variance(self), 1, &[Place { vector: 0, component: 0 }]);
    }

    /// Replaces `eta` by the factors of the images of unscaled predictors, of these squared lengths: in the information, or in the
    /// score's variance.
    #[inline(always)]
    fn factors(&self, rows: &Tile<'_>, [eta, half_way]: [&mut [f64]; 2], squares: &[f64], of_variance: bool) {
        let outcome = &rows.outcome()[..eta.len()];
        self.eta.fill(rows, eta);
        if let Some(sum) = &self.half_way {
            sum.fill(rows, half_way);
        }
        let most = if self.half_way.is_some() { Influence::MOST_HALF_WAY } else { 1.0 };
        let shortened = Influence::shortened(self.parameters);
        for i in 0..eta.len() {
            let of = self.standardised(outcome[i], eta[i], self.clip);
            // Public conditions.
            let slope = if self.half_way.is_some() { self.slope_half_way(of, [eta[i], half_way[i]]).min(most) } else { of.slope };
            let slope = if of_variance { slope * of.slope } else { slope };
            let weight = Influence::weight(self.trace, of.root * of.root * squares[i]);
            // A record without a residual is inert.
            eta[i] = (weight * slope / (most * self.trace)).sqrt() * of.root * shortened + 0.0 * of.residual;
        }
    }
}

impl<L: Slopes> Sloped for Bounded<L> {
    #[inline(always)]
    fn slopes(&self, rows: &Tile<'_>, [eta, own]: &mut [TileLane<f64>; 2]) {
        let mut image = [0.0; SMALL_TILE];
        let records = rows.len();
        let (eta, own, outcome) = (&mut eta.0[..records], &mut own.0[..records], &rows.outcome()[..records]);
        self.lengths.fill(rows, &mut image[..records], own);
        self.eta.fill(rows, eta);
        // A public condition.
        if self.of_own {
            for i in 0..records {
                [own[i], _] = self.own_slope(outcome[i], eta[i]);
                eta[i] = 0.0 * own[i];
            }
            return;
        }
        for i in 0..records {
            let Standardised { root, residual, .. } = self.standardised(outcome[i], eta[i], self.clip);
            let weight = Influence::weight(self.trace, root * root * own[i]);
            eta[i] = residual / self.limit * weight * root;
            // Not-a-number for an inert record.
            own[i] = 0.0 * eta[i];
        }
    }
}

impl<L: Slopes> Columns for Bounded<L> {
    type Room = [TileLane<f64>; 3];

    fn room(&self) -> Self::Room {
        std::array::from_fn(|_| TileLane([0.0; SMALL_TILE]))
    }

    #[inline(always)]
    fn fill<const N: usize>(&self, rows: &Tile<'_>, [eta, half_way, squares]: &mut Self::Room, columns: &mut [[f64; N]]) {
        let records = rows.len();
        let squares = &mut squares.0[..records];
        squares.fill(0.0);
        for (column, image) in columns.iter_mut().zip(&self.lengths.images) {
            image.fill(rows, &mut column[..records]);
            squares.iter_mut().zip(&*column).for_each(|(square, part)| *square += part * part);
        }
        self.factors(rows, [&mut eta.0[..records], &mut half_way.0[..records]], squares, false);
        for column in columns.iter_mut() {
            column[..records].iter_mut().zip(&eta.0).for_each(|(value, factor)| *value *= factor);
        }
    }
}

/// The variance of a record's score under the model, of a binary outcome: `w kappa² |v|²`, about that of `w psi v`, which has the
/// squared weight. Half way, one kappa is the one there.
struct Variance<L: Slopes>(Bounded<L>);

impl<L: Slopes> Columns for Variance<L> {
    type Room = [TileLane<f64>; 2];

    fn room(&self) -> Self::Room {
        std::array::from_fn(|_| TileLane([0.0; SMALL_TILE]))
    }

    #[inline(always)]
    fn fill<const N: usize>(&self, rows: &Tile<'_>, [eta, other]: &mut Self::Room, columns: &mut [[f64; N]]) {
        let records = rows.len();
        let [column] = columns else { return };
        let (eta, other, column) = (&mut eta.0[..records], &mut other.0[..records], &mut column[..records]);
        if self.0.of_own {
            let (outcome, shortened) = (&rows.outcome()[..records], Influence::shortened(1));
            self.0.eta.fill(rows, eta);
            for i in 0..records {
                let [_, kappa] = self.0.own_slope(outcome[i], eta[i]);
                column[i] = (kappa / self.0.trace).sqrt() * shortened;
            }
            return;
        }
        self.0.lengths.fill(rows, other, column);
        self.0.factors(rows, [eta, other], column, true);
        column.iter_mut().zip(eta).for_each(|(square, factor)| *square = square.sqrt() * *factor);
    }
}

/// The cells of a record's standardised residual, or of the squared length of its image, between public edges.
pub(super) struct BetweenEdges<'a, L: Slopes> {
    arch: Arch,
    bounded: Bounded<L>,
    edges: &'a [f64],
    of_lengths: bool,
}

impl<'a, L: Slopes> BetweenEdges<'a, L> {
    /// The edges ascend. The first cell is below the first edge, the last one at the last edge and beyond.
    pub(super) fn new(arch: Arch, bounded: Bounded<L>, edges: &'a [f64], of_lengths: bool) -> Self {
        Self { arch, bounded, edges, of_lengths }
    }

    /// Gives itself to a pass.
    pub(super) fn give(&self, pass: BlockPass<'_>) {
        pass.one_hot(self, &[self.edges.len() + 1]);
    }

    #[inline(always)]
    fn fill_codes(&self, rows: &Tile<'_>, codes: &mut [f64], [image, eta]: [&mut [f64]; 2]) {
        let outcome = &rows.outcome()[..codes.len()];
        self.bounded.lengths.fill(rows, image, codes);
        self.bounded.eta.fill(rows, eta);
        for i in 0..codes.len() {
            let Standardised { root, residual, .. } = self.bounded.standardised(outcome[i], eta[i], f64::INFINITY);
            let value = if self.of_lengths { root * root * codes[i] + 0.0 * residual } else { residual };
            let cell: f64 = self.edges.iter().map(|edge| f64::from(u8::from(value >= *edge))).sum();
            codes[i] = if value.is_nan() { NOWHERE } else { cell };
        }
    }
}

/// A dispatch that fills the cells of a tile: without it, a fused multiply-add is a call of the system's library.
struct Fill<'k, 'r, L: Slopes> {
    kernel: &'k BetweenEdges<'k, L>,
    rows: &'k Tile<'r>,
    codes: &'k mut [f64],
    room: [&'k mut [f64]; 2],
}

impl<L: Slopes> WithSimd for Fill<'_, '_, L> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        self.kernel.fill_codes(self.rows, self.codes, self.room);
    }
}

impl<L: Slopes> Cells for BetweenEdges<'_, L> {
    fn fill<const N: usize>(&self, rows: &Tile<'_>, codes: &mut [[f64; N]]) {
        let [codes] = codes else { return };
        let (records, mut image, mut eta) = (rows.len(), [0.0; N], [0.0; N]);
        let room = [&mut image[..records], &mut eta[..records]];
        self.arch.dispatch(Fill { kernel: self, rows, codes: &mut codes[..records], room });
    }
}
