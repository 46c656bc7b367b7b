//! The ends of the intervals that a result shows: the 5% and 95% quantiles, or those of the level that the analyst asked for.

use serde_json::Value;

/// The ends of a table's intervals. A row has `q5` and `q95`, and `interval` with `level`, `low` and `high` if another level was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Ends {
    /// The level of the intervals.
    pub level: f64,
    /// The headings of both ends: `5%` and `95%`.
    pub headings: [String; 2],
    keys: Option<[&'static str; 2]>,
}

impl Ends {
    /// The level of every result.
    pub const LEVEL: f64 = 0.9;

    /// Returns the ends that rows of a result have.
    #[must_use]
    pub fn of(rows: &[Value]) -> Self {
        let level = rows.first().and_then(|row| row["interval"]["level"].as_f64());
        let keys = level.map(|_| ["low", "high"]);
        let level = level.unwrap_or(Self::LEVEL);
        Self { level, headings: headings(level), keys }
    }

    /// Returns the lower end of a row.
    #[must_use]
    pub fn low<'a>(&self, row: &'a Value) -> &'a Value {
        self.keys.map_or_else(|| &row["q5"], |[low, _]| &row["interval"][low])
    }

    /// Returns both ends of a row; `NaN` for one that is not known.
    #[must_use]
    pub fn ends(&self, row: &Value) -> [f64; 2] {
        [self.low(row), self.high(row)].map(|end| end.as_f64().unwrap_or(f64::NAN))
    }

    /// Returns the upper end of a row.
    #[must_use]
    pub fn high<'a>(&self, row: &'a Value) -> &'a Value {
        self.keys.map_or_else(|| &row["q95"], |[_, high]| &row["interval"][high])
    }
}

/// Returns the probabilities below both ends of a central interval as headings: `2.5%` and `97.5%` at 0.95.
#[must_use]
pub fn headings(level: f64) -> [String; 2] {
    let below = 50.0 * (1.0 - level);
    [below, 100.0 - below].map(|percentage| format!("{}%", shortened(percentage)))
}

/// Returns a level as a percentage: `95%`.
#[must_use]
pub fn percentage(level: f64) -> String {
    format!("{}%", shortened(100.0 * level))
}

/// Rounds to six decimals and leaves out zeros at the end.
fn shortened(percentage: f64) -> String {
    let text = format!("{percentage:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn headings_follow_the_level() {
        assert_eq!(headings(0.9), ["5%", "95%"]);
        assert_eq!(headings(0.95), ["2.5%", "97.5%"]);
        assert_eq!(headings(0.999), ["0.05%", "99.95%"]);
        assert_eq!([0.5, 0.95, 0.999].map(percentage), ["50%", "95%", "99.9%"]);
    }

    #[test]
    fn a_row_without_a_level_has_the_ends_of_90_percent() {
        let plain = json!({"q5": 1.0, "q95": 2.0});
        let ends = Ends::of(std::slice::from_ref(&plain));
        assert_eq!((ends.low(&plain), ends.high(&plain), ends.level), (&json!(1.0), &json!(2.0), 0.9));
        let asked = json!({"q5": 1.0, "q95": 2.0, "interval": {"level": 0.5, "low": 1.2, "high": 1.7}});
        let ends = Ends::of(std::slice::from_ref(&asked));
        assert_eq!((ends.low(&asked), ends.high(&asked), ends.level), (&json!(1.2), &json!(1.7), 0.5));
        assert_eq!(ends.headings, ["25%", "75%"]);
        assert_eq!(Ends::of(&[]).headings, ["5%", "95%"]);
    }
}
