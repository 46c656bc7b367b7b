//! Compact SVG path data: tenths of a unit, relative to the previous point.

use std::fmt::Write as _;

/// A path under construction.
#[derive(Debug, Default)]
pub(super) struct Path {
    text: String,
    /// The last point, in tenths.
    at: Option<(i64, i64)>,
}

impl Path {
    /// Lifts the pen: the next point starts a new line.
    pub(super) fn lift(&mut self) {
        self.at = None;
    }

    /// Draws a line to a point, or starts there. Coordinates are finite and within a picture.
    pub(super) fn to(&mut self, x: f64, y: f64) {
        self.go('l', x, y);
    }

    /// Draws a dot: a line of zero length, visible by its round cap.
    pub(super) fn dot(&mut self, x: f64, y: f64) {
        self.go('m', x, y);
        self.text.push_str("h0");
    }

    /// Moves to a point with this relative command, or starts there.
    fn go(&mut self, command: char, x: f64, y: f64) {
        let point = (tenths(x), tenths(y));
        match self.at {
            None => {
                self.text.push('M');
                self.pair(point);
            }
            Some((x, y)) => {
                self.text.push(command);
                self.pair((point.0 - x, point.1 - y));
            }
        }
        self.at = Some(point);
    }

    /// Closes the line to its start, and lifts the pen.
    pub(super) fn close(&mut self) {
        if self.at.is_some() {
            self.text.push('Z');
        }
        self.at = None;
    }

    /// Returns the path data.
    pub(super) fn finish(self) -> String {
        self.text
    }

    fn pair(&mut self, (x, y): (i64, i64)) {
        self.coordinate(x, false);
        self.coordinate(y, true);
    }

    fn coordinate(&mut self, tenths: i64, second: bool) {
        if tenths < 0 {
            self.text.push('-');
        } else if second {
            self.text.push(' ');
        }
        let (whole, rest) = (tenths.abs() / 10, tenths.abs() % 10);
        // Writing to a string can't fail.
        if whole > 0 || rest == 0 {
            let _ = write!(self.text, "{whole}");
        }
        if rest > 0 {
            let _ = write!(self.text, ".{rest}");
        }
    }
}

fn tenths(x: f64) -> i64 {
    (10.0 * x.clamp(-1e5, 1e5)).round() as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_short() {
        let mut path = Path::default();
        path.to(1.0, 2.04);
        path.to(1.5, 1.5);
        path.to(0.5, 11.5);
        path.close();
        path.dot(3.0, 4.0);
        path.dot(3.0, 4.5);
        path.to(f64::NAN, 1e300);
        assert_eq!(path.finish(), "M1 2l.5-.5l-1 10ZM3 4h0m0 .5h0l-3 99995.5");
    }
}
