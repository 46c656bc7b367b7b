//! Natural cubic splines with public knots.

/// A cardinal function of the natural cubic splines on some knots: 1 at one knot and 0 at every other one, linear beyond them.
///
/// Between two knots it is a cubic in `t`, from 0 at the first to 1 at the second.
#[derive(Debug, Clone, PartialEq)]
pub struct NaturalSpline {
    start: f64,
    pieces: Vec<Piece>,
}

/// A cubic `c1 t + c2 t² + c3 t³`, the change of a spline since the piece's first knot.
#[derive(Debug, Clone, PartialEq)]
struct Piece {
    from: f64,
    width: f64,
    coefficients: [f64; 3],
}

impl NaturalSpline {
    /// Returns the cardinal function of the knot of this number. `knots` increase; the first and the last are the boundary.
    #[must_use]
    pub fn cardinal(knots: &[f64], at: usize) -> Self {
        let heights: Vec<f64> = (0..knots.len()).map(|knot| f64::from(u8::from(knot == at))).collect();
        let curvatures = second_derivatives(knots, &heights);
        let piece = |(knot, ends): (usize, &[f64])| {
            let width = ends[1] - ends[0];
            let (left, right) = (width * width / 6.0 * curvatures[knot], width * width / 6.0 * curvatures[knot + 1]);
            let rise = heights[knot + 1] - heights[knot];
            Piece { from: ends[0], width, coefficients: [rise - right - 2.0 * left, 3.0 * left, right - left] }
        };
        Self { start: heights.first().copied().unwrap_or(0.0), pieces: knots.windows(2).enumerate().map(piece).collect() }
    }

    /// Returns the value at a number between the boundary knots. The steps are the same for every number.
    #[must_use]
    pub fn value(&self, x: f64) -> f64 {
        self.pieces.iter().fold(self.start, |value, piece| value + piece.rise(((x - piece.from) / piece.width).clamp(0.0, 1.0)))
    }

    /// Returns the least and the greatest value between the boundary knots.
    #[must_use]
    pub fn range(&self) -> (f64, f64) {
        let (mut least, mut greatest, mut height) = (self.start, self.start, self.start);
        for piece in &self.pieces {
            for value in piece.turns().chain([1.0]).map(|t| height + piece.rise(t)) {
                (least, greatest) = (least.min(value), greatest.max(value));
            }
            height += piece.rise(1.0);
        }
        (least, greatest)
    }
}

impl Piece {
    fn rise(&self, t: f64) -> f64 {
        let [first, second, third] = self.coefficients;
        t * (first + t * (second + t * third))
    }

    /// Yields the places strictly inside the piece where the slope is 0.
    fn turns(&self) -> impl Iterator<Item = f64> + use<> {
        let [first, second, third] = self.coefficients;
        let discriminant = second * second - 3.0 * third * first;
        // The two roots of a quadratic, each without cancellation.
        let sum = -(second + discriminant.max(0.0).sqrt() * if second < 0.0 { -1.0 } else { 1.0 });
        let roots = [sum / (3.0 * third), first / sum];
        roots.into_iter().filter(move |t| discriminant >= 0.0 && *t > 0.0 && *t < 1.0)
    }
}

/// Returns the second derivatives, at the knots, of the natural spline through these heights: 0 at both ends, and continuous slopes
/// at the others (a tridiagonal system, by elimination).
fn second_derivatives(knots: &[f64], heights: &[f64]) -> Vec<f64> {
    let count = knots.len();
    let mut curvatures = vec![0.0; count];
    let width = |knot: usize| knots[knot + 1] - knots[knot];
    let slope = |knot: usize| (heights[knot + 1] - heights[knot]) / width(knot);
    let (mut diagonal, mut right) = (vec![1.0; count], vec![0.0; count]);
    for knot in 1..count.saturating_sub(1) {
        let factor = if knot > 1 { width(knot - 1) / diagonal[knot - 1] } else { 0.0 };
        diagonal[knot] = 2.0 * (width(knot - 1) + width(knot)) - factor * width(knot - 1);
        right[knot] = 6.0 * (slope(knot) - slope(knot - 1)) - factor * right[knot - 1];
    }
    for knot in (1..count.saturating_sub(1)).rev() {
        let next = if knot + 2 < count { width(knot) * curvatures[knot + 1] } else { 0.0 };
        curvatures[knot] = (right[knot] - next) / diagonal[knot];
    }
    curvatures
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOTS: [f64; 5] = [20.0, 40.0, 45.0, 60.0, 90.0];

    #[test]
    fn a_cardinal_function_is_one_at_its_knot_and_smooth() {
        for at in 0..KNOTS.len() {
            let spline = NaturalSpline::cardinal(&KNOTS, at);
            for (knot, x) in KNOTS.iter().enumerate() {
                assert!((spline.value(*x) - f64::from(u8::from(knot == at))).abs() < 1e-14, "{at} {knot}");
            }
            // Slopes and second derivatives by differences, from either side of an inner knot; the latter are 0 at the boundary.
            let h = 1e-3;
            let slope = |x: f64| (spline.value(x + h) - spline.value(x - h)) / (2.0 * h);
            let bend = |x: f64| (spline.value(x + h) - 2.0 * spline.value(x) + spline.value(x - h)) / (h * h);
            for x in &KNOTS[1..4] {
                assert!((slope(x - 2.0 * h) - slope(x + 2.0 * h)).abs() < 1e-3, "{at} {x}");
                assert!((bend(x - 2.0 * h) - bend(x + 2.0 * h)).abs() < 1e-3, "{at} {x}");
            }
            assert!(bend(20.0 + 2.0 * h).abs() < 1e-3 && bend(90.0 - 2.0 * h).abs() < 1e-3, "{at}");
        }
    }

    #[test]
    fn the_range_is_attained_and_never_left() {
        for at in 0..KNOTS.len() {
            let spline = NaturalSpline::cardinal(&KNOTS, at);
            let (least, greatest) = spline.range();
            let values: Vec<f64> = (0..=70_000).map(|i| spline.value(20.0 + 1e-3 * f64::from(i))).collect();
            let (low, high) = values.iter().fold((1.0_f64, 0.0_f64), |(low, high), v| (low.min(*v), high.max(*v)));
            assert!(low >= least - 1e-12 && high <= greatest + 1e-12, "{at}: {low} {high} in {least} {greatest}");
            assert!(low - least < 1e-6 && greatest - high < 1e-6, "{at}: {low} {high} in {least} {greatest}");
        }
    }

    #[test]
    fn cardinal_functions_sum_to_one_and_reproduce_a_line() {
        let basis: Vec<NaturalSpline> = (0..KNOTS.len()).map(|at| NaturalSpline::cardinal(&KNOTS, at)).collect();
        for i in 0..=70 {
            let x = 20.0 + f64::from(i);
            let sum: f64 = basis.iter().map(|spline| spline.value(x)).sum();
            let line: f64 = basis.iter().zip(KNOTS).map(|(spline, knot)| knot * spline.value(x)).sum();
            assert!((sum - 1.0).abs() < 1e-13 && (line - x).abs() < 1e-11, "{x}: {sum} {line}");
        }
    }
}
