//! Screens single columns: constant values, codes for "unknown" among the numbers, times stored as numbers.

use super::concern::Concern;
use super::records::Records;
use conclave_vault::data::{DataError, Kind};

/// Share of rows from which a usual code for "unknown" gives a warning.
const CODES: f64 = 0.001;
/// Share of rows from which any other number gives a warning.
const OTHERS: f64 = 0.01;

pub(super) fn concerns(shard: &dyn Records, name: &str) -> Result<Vec<Concern>, DataError> {
    const SAME: &str = "check whether it was imported incorrectly: it carries no information";
    let same = || Concern::new(format!("{name} is the same in every row"), SAME);
    let Some(Kind::Numbers) = shard.kind(name) else {
        let words = matches!(shard.kind(name), Some(Kind::Texts([_])));
        return Ok(if words && shard.records() > 1 { vec![same()] } else { Vec::new() });
    };
    let ends = Ends::of(shard, name)?;
    let mut found = Vec::new();
    if ends.low.value < ends.high.value {
        found.extend(ends.spikes(name));
    } else if ends.count > 1 {
        found.push(same());
    }
    found.extend(times(shard, name, &ends)?);
    Ok(found)
}

/// One end of a column: the extreme value, the number of its rows, and the next value.
#[derive(Debug, Clone, Copy)]
pub(super) struct End {
    pub(super) value: f64,
    count: u64,
    next: f64,
}

impl End {
    fn new(infinite: f64) -> Self {
        Self { value: infinite, count: 0, next: infinite }
    }

    /// Adds a value; `beyond` returns true if the first of two values lies further out.
    fn take(&mut self, value: f64, beyond: impl Fn(f64, f64) -> bool) {
        if value == self.value {
            self.count += 1;
        } else if beyond(value, self.value) {
            *self = Self { value, count: 1, next: self.value };
        } else if value != self.value && beyond(value, self.next) {
            self.next = value;
        }
    }
}

/// Both ends of a column of numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends {
    pub(super) low: End,
    pub(super) high: End,
    /// Number of rows that are not inert.
    count: u64,
}

impl Ends {
    pub(super) fn of(shard: &dyn Records, name: &str) -> Result<Self, DataError> {
        let mut ends = Self { low: End::new(f64::INFINITY), high: End::new(f64::NEG_INFINITY), count: 0 };
        shard.look(name, &mut |values| {
            for value in values.iter().copied().filter(|value| !value.is_nan()) {
                ends.count += 1;
                ends.low.take(value, |a, b| a < b);
                ends.high.take(value, |a, b| a > b);
            }
        })?;
        Ok(ends)
    }

    /// Finds values at an end that are far from all others and occur in many rows.
    fn spikes(&self, name: &str) -> Vec<Concern> {
        const LOOK: &str = "if it stands for \"unknown\", write it under `missing` in [data]";
        let rest = if is_code(self.low.value) { self.low.next } else { self.low.value };
        let rest = rest..if is_code(self.high.value) { self.high.next } else { self.high.value };
        let spike = |end: &End, others: f64, side: &str| {
            // The range of the column without the value, whatever is at the other end.
            let gap = (end.value - end.next).abs();
            let share = end.count as f64 / self.count.max(1) as f64;
            let spans = gap / others.max(f64::MIN_POSITIVE);
            let (frequent, apart) = match end.value {
                // A number that is an ordinary value in many columns is suspicious only if the others span some range.
                0.0 => (OTHERS, if others >= 10.0 { 0.2 } else { f64::INFINITY }),
                9.0 => (CODES, if others >= 3.0 { 0.5 } else { f64::INFINITY }),
                value if is_code(value) && value > -10.0 && value < 0.0 => {
                    (CODES, if others >= 10.0 { 0.1 } else { f64::INFINITY })
                }
                value if is_code(value) => (CODES, 0.1),
                _ => (OTHERS, if others > 0.0 { 20.0 } else { f64::INFINITY }),
            };
            let odd = share >= frequent && spans >= apart;
            // The value is shown only if it is a code, which reveals no person's value.
            let value = if is_code(end.value) || end.value == 0.0 { end.value.to_string() } else { "one value".into() };
            (odd && end.count > 1)
                .then(|| Concern::new(format!("{:.1}% of {name} are {value}, far {side} all others", 100.0 * share), LOOK))
        };
        let below = spike(&self.low, rest.end - self.low.next, "below");
        let above = spike(&self.high, self.high.next - rest.start, "above");
        below.into_iter().chain(above).collect()
    }
}

/// Returns true for numbers that surveys and registries use for "unknown", "refused" and similar: 9, 99, 999 etc., -1, and
/// repeated 7s and 8s.
fn is_code(value: f64) -> bool {
    if value == -1.0 || value.abs() == 9.0 {
        return true;
    }
    if value.fract() != 0.0 || !(10.0..1e10).contains(&value.abs()) {
        return false;
    }
    let digits = format!("{:.0}", value.abs());
    ["7", "8", "9"].iter().any(|digit| digits.replace(digit, "").is_empty())
}

fn times(shard: &dyn Records, name: &str, ends: &Ends) -> Result<Option<Concern>, DataError> {
    const DECLARE: &str = "declare it and its unit under `dates` in [data], and inform the analyst of the unit";
    if shard.undeclared_dates().iter().any(|dates| dates == name) {
        let found = format!("{name} contains dates, read as the whole numbers in which the file stores them");
        return Ok(Some(Concern::new(found, DECLARE)));
    }
    // From 1980 to 2100, in seconds since 1970.
    let (from, to) = (315_532_800.0, 4_102_444_800.0);
    let within = |unit: f64| ends.low.value >= from * unit && ends.high.value <= to * unit;
    let units = [(1.0, "seconds"), (1e3, "milliseconds"), (1e6, "microseconds"), (1e9, "nanoseconds")];
    if let Some((_, unit)) = units.iter().find(|(unit, _)| within(*unit)) {
        let remedy = "if it is one, store a date in the file and declare it under `dates` in [data]; such a large number has no \
                      suitable public bounds";
        return Ok(Some(Concern::new(format!("{name} looks like a time in {unit} since 1970"), remedy)));
    }
    if ends.low.value < 19_000_101.0 || ends.high.value > 21_001_231.0 {
        return Ok(None);
    }
    let mut others = 0;
    shard.look(name, &mut |values| others += values.iter().filter(|value| !value.is_nan() && !is_date(**value)).count())?;
    let remedy = "write it as 2026-03-01 and declare it under `dates` in [data]: such numbers have gaps between them";
    Ok((others == 0).then(|| Concern::new(format!("{name} looks like a date written as one number, as 20260301"), remedy)))
}

/// Returns true if a number is a day as `YYYYMMDD`.
fn is_date(value: f64) -> bool {
    let (month, day) = ((value / 100.0).floor() % 100.0, value % 100.0);
    value.fract() == 0.0 && (1.0..=12.0).contains(&month) && (1.0..=31.0).contains(&day)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use conclave_vault::data::{BadRows, Shard};
    use conclave_vault::testing::{data, write};

    fn found(values: &[f64]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let text: String = values.iter().map(|value| format!("{value}\n")).collect();
        let shard = Shard::load(&data(write(folder.path(), "a.csv", &format!("x\n{text}")), BadRows::Stop), None).unwrap();
        concerns(&shard, "x").unwrap().into_iter().map(|concern| concern.found).collect()
    }

    #[test]
    fn codes_are_distinguished_from_values() {
        let ages: Vec<f64> = (0..1000).map(|at| 18.0 + f64::from(at % 73)).collect();
        let with = |code: f64, times: usize| found(&[&ages[..], &vec![code; times]].concat());
        for code in [-99.0, -9.0, -1.0, 999.0, 9999.0, 888.0, -777.0, 99.0] {
            assert_eq!(
                with(code, 20),
                [format!("2.0% of x are {code}, far {} all others", if code < 0.0 { "below" } else { "above" })],
                "{code}"
            );
        }
        assert_eq!(with(-99.0, 1), Vec::<String>::new(), "one row");
        assert_eq!(with(4711.0, 20), ["2.0% of x are one value, far above all others"], "a person's value is not shown");
        assert_eq!(with(91.0, 20), Vec::<String>::new());
        let both = [&ages[..], &[-99.0; 20], &[9999.0; 20]].concat();
        assert_eq!(found(&both).len(), 2);
        for plain in [
            &[0.0, 1.0][..],
            &[-1.0, 1.0],
            &[-1.0, 0.0, 1.0],
            &[0.0, 1.0, 2.0],
            &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
            &[0.0, 1.0, 5.0],
        ] {
            assert_eq!(found(&plain.repeat(50)), Vec::<String>::new(), "{plain:?}");
        }
        assert_eq!(found(&[1.0, 2.0, 3.0, 4.0, 9.0].repeat(50)).len(), 1, "a scale of four, and 9 for no answer");
        assert_eq!(found(&[0.0, 1.0, -99.0].repeat(50)).len(), 1);
        assert_eq!(found(&[5.0, 5.0]), ["x is the same in every row"]);
    }

    #[test]
    fn times_are_distinguished_from_other_large_numbers() {
        let of = |least: f64, step: f64| found(&(0..100).map(|at| least + step * f64::from(at)).collect::<Vec<_>>());
        assert_eq!(of(1.7e9, 86_400.0), ["x looks like a time in seconds since 1970"]);
        assert_eq!(of(1.7e12, 1e6), ["x looks like a time in milliseconds since 1970"]);
        assert_eq!(
            of(20_240_101.0, 0.0),
            ["x is the same in every row", "x looks like a date written as one number, as 20260301"]
        );
        assert_eq!([of(20_240_101.0, 1.0), of(1e6, 1e4), of(1e9, 1e8)], [const { Vec::<String>::new() }; 3]);
    }
}
