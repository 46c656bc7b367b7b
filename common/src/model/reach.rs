//! An upper bound on the length of the images of single records' gradients, over all records that the declared columns allow.
//!
//! A record with predictors `x` has the gradient `(w x, o)`, where `w` and `o` are its slopes in the linear predictor and in the
//! family's own parameter. Its image under an affine map is `w g(x) + o h + b`. The slopes of all records with one linear
//! predictor `eta` lie in a convex set, and the length of an image is convex in `x` and in the slopes. So it is greatest where
//! the plane `x . beta + offset = eta` meets an edge of the declared set. On a segment of an edge the length is at most the
//! largest at the segment's two ends, with the slopes of every `eta` between them. Segments whose bound is well above an attained
//! length are halved.

/// The ratio of the bound to an attained length at which halving stops. The bound may exceed it where the set of slopes is wider
/// than the slopes themselves.
const CLOSE: f64 = 1.005;
/// The maximum number of halvings of a segment, and of segments in total. After that the current bound of a segment is used.
const HALVINGS: u32 = 24;
const MOST_PIECES: usize = 200_000;

/// Pairs of slopes in the linear predictor and in the own parameter. Their convex hull contains the slopes of every declared
/// outcome and every linear predictor from the first argument to the second.
pub(super) type Hull<'a> = dyn Fn(f64, f64) -> Vec<[f64; 2]> + 'a;

/// The set that the declared columns allow: its corners, and the pairs of corners that an edge joins.
pub(super) struct Edges {
    pub(super) corners: Vec<Vec<f64>>,
    pub(super) joined: Vec<[usize; 2]>,
}

/// An affine map of gradients. The first entries of a gradient are those of the coefficients, the last is that of the own
/// parameter, if there is one.
pub(super) struct Images {
    /// The images of a slope of 1 at each unit predictor.
    columns: Vec<Vec<f64>>,
    /// `h`; zeros for a family without an own parameter.
    own: Vec<f64>,
    /// `b`
    shift: Vec<f64>,
}

/// A point of the predictors' space, with its image and its linear predictor.
#[derive(Clone)]
struct Place {
    /// `g(x)`
    image: Vec<f64>,
    eta: f64,
}

impl Place {
    fn between(&self, other: &Self) -> Self {
        let image = self.image.iter().zip(&other.image).map(|(a, b)| 0.5 * a + 0.5 * b).collect();
        Self { image, eta: 0.5 * self.eta + 0.5 * other.eta }
    }

    /// Returns the place with an offset added.
    fn moved(&self, by: f64) -> Self {
        Self { image: self.image.clone(), eta: self.eta + by }
    }
}

impl Images {
    /// Creates the map from gradients with `coefficients` coefficients.
    pub(super) fn new(image: &dyn Fn(&[f64]) -> Vec<f64>, coefficients: usize, own: bool) -> Self {
        let mut unit = vec![0.0; coefficients + usize::from(own)];
        let shift = image(&unit);
        let mut column = |j: usize| -> Vec<f64> {
            unit[j] = 1.0;
            let column = image(&unit).iter().zip(&shift).map(|(image, shift)| image - shift).collect();
            unit[j] = 0.0;
            column
        };
        let columns = (0..coefficients).map(&mut column).collect();
        let own = if own { column(coefficients) } else { vec![0.0; shift.len()] };
        Self { columns, own, shift }
    }

    /// Returns an upper bound on the length of an image, infinite if it is not a number. The linear predictors have these
    /// coefficients and an offset from `low` to `high`.
    pub(super) fn reach(&self, edges: &Edges, coefficients: &[f64], (low, high): (f64, f64), hull: &Hull<'_>) -> f64 {
        let places: Vec<Place> = edges.corners.iter().map(|x| self.place(x, coefficients)).collect();
        let offsets = if low == high { vec![low] } else { vec![low, high] };
        let mut reached = 0.0;
        let mut pieces: Vec<[Place; 2]> = Vec::new();
        for by in offsets {
            let moved: Vec<Place> = places.iter().map(|place| place.moved(by)).collect();
            reached = moved.iter().map(|place| self.at(place, hull)).fold(reached, greater);
            pieces.extend(edges.joined.iter().map(|ends| ends.map(|end| moved[end].clone())));
        }
        // An offset adds one more dimension to the declared set, and does not change the image.
        pieces.extend(places.iter().filter(|_| low != high).map(|place| [place.moved(low), place.moved(high)]));
        self.halved(pieces, reached, hull)
    }

    /// Returns the bound over all these segments, given the greatest length attained at their ends.
    fn halved(&self, pieces: Vec<[Place; 2]>, mut reached: f64, hull: &Hull<'_>) -> f64 {
        let mut left = MOST_PIECES;
        let mut bound = reached;
        let mut open: Vec<([Place; 2], u32)> = pieces.into_iter().map(|piece| (piece, HALVINGS)).collect();
        while let Some((piece, halvings)) = open.pop() {
            let here = self.bound(&piece, hull);
            if here == f64::INFINITY || bound == f64::INFINITY {
                return f64::INFINITY;
            }
            if here <= CLOSE * reached || halvings == 0 || left == 0 {
                bound = bound.max(here);
                continue;
            }
            let middle = piece[0].between(&piece[1]);
            reached = greater(reached, self.at(&middle, hull));
            bound = greater(bound, reached);
            let [first, last] = piece;
            open.push(([first, middle.clone()], halvings - 1));
            open.push(([middle, last], halvings - 1));
            left -= 1;
        }
        bound
    }

    fn place(&self, x: &[f64], coefficients: &[f64]) -> Place {
        let mut image = vec![0.0; self.shift.len()];
        for (x, column) in x.iter().zip(&self.columns).filter(|(x, _)| **x != 0.0) {
            image.iter_mut().zip(column).for_each(|(image, entry)| *image += x * entry);
        }
        Place { image, eta: x.iter().zip(coefficients).map(|(x, b)| x * b).sum() }
    }

    fn at(&self, place: &Place, hull: &Hull<'_>) -> f64 {
        self.longest(&hull(place.eta, place.eta), place)
    }

    /// Returns the greatest length of an image on this segment; infinite if a slope is not a number.
    fn bound(&self, ends: &[Place; 2], hull: &Hull<'_>) -> f64 {
        let (low, high) = (ends[0].eta.min(ends[1].eta), ends[0].eta.max(ends[1].eta));
        let slopes = hull(low, high);
        ends.iter().map(|end| self.longest(&slopes, end)).fold(0.0, greater)
    }

    /// Returns the greatest length of an image at a place with any of these slopes; not-a-number if a slope is.
    fn longest(&self, slopes: &[[f64; 2]], place: &Place) -> f64 {
        let mut most = 0.0;
        for [slope, of_own] in slopes {
            let parts = place.image.iter().zip(&self.own).zip(&self.shift);
            let square: f64 = parts.map(|((g, h), b)| slope * g + of_own * h + b).map(|x| x * x).sum();
            if square.is_nan() {
                return f64::NAN;
            }
            most = square.max(most);
        }
        most.sqrt()
    }
}

/// Returns the greater of two numbers; infinite if the second is not a number.
fn greater(a: f64, b: f64) -> f64 {
    if b.is_nan() { f64::INFINITY } else { a.max(b) }
}
