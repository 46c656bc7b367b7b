//! The integers of one answer.

use serde::{Deserialize, Serialize};
use zeroize::Zeroize;

/// An integer vector with at least one component.
///
/// A single integer, the answer to most kinds of query, needs no allocation and is serialised as a plain number. Several are
/// serialised as a list.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Components {
    /// One component.
    One(i64),
    /// Several components, in order.
    Several(Box<[i64]>),
}

impl Components {
    /// Creates a vector of these integers, in order; `None` if there are none.
    #[must_use]
    pub fn new(integers: &[i64]) -> Option<Self> {
        match integers {
            [] => None,
            [one] => Some(Self::One(*one)),
            several => Some(Self::Several(several.into())),
        }
    }

    /// Returns the integers, in order.
    #[must_use]
    pub fn as_slice(&self) -> &[i64] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Several(several) => several,
        }
    }

    fn as_mut_slice(&mut self) -> &mut [i64] {
        match self {
            Self::One(one) => std::slice::from_mut(one),
            Self::Several(several) => several,
        }
    }

    /// Returns the sum with another vector, component by component, saturating at the ends of `i64`.
    ///
    /// # Panics
    /// When the lengths differ. Both follow from the kind of query, which is public.
    #[must_use]
    pub fn saturating_add(mut self, other: &[i64]) -> Self {
        assert_eq!(self.as_slice().len(), other.len(), "a sum of vectors of different lengths");
        for (integer, more) in self.as_mut_slice().iter_mut().zip(other) {
            *integer = integer.saturating_add(*more);
        }
        self
    }
}

impl From<i64> for Components {
    fn from(one: i64) -> Self {
        Self::One(one)
    }
}

/// Overwrites every integer.
impl Zeroize for Components {
    fn zeroize(&mut self) {
        self.as_mut_slice().zeroize();
    }
}

/// Writes the integers, separated by commas.
impl std::fmt::Display for Components {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, integer) in self.as_slice().iter().enumerate() {
            write!(f, "{}{integer}", if at > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn one_integer_reads_and_writes_as_a_number() {
        assert_eq!(Components::new(&[]), None);
        for (integers, json, text) in [(&[-7][..], "-7", "-7"), (&[1, -2, i64::MAX], "[1,-2,9223372036854775807]", "")] {
            let vector = Components::new(integers).unwrap();
            assert_eq!((vector.as_slice(), serde_json::to_string(&vector).unwrap().as_str()), (integers, json));
            assert_eq!(serde_json::from_str::<Components>(json).unwrap(), vector);
            assert!(text.is_empty() || vector.to_string() == text);
        }
        assert_eq!(Components::new(&[1, -2]).unwrap().to_string(), "1, -2");
    }

    #[test]
    fn vectors_add_component_by_component_and_saturate() {
        let sum = Components::new(&[1, i64::MAX, i64::MIN]).unwrap().saturating_add(&[2, 1, -1]);
        assert_eq!(sum.as_slice(), [3, i64::MAX, i64::MIN]);
        assert_eq!(Components::from(4).saturating_add(&[-6]), Components::from(-2));
    }

    #[test]
    #[should_panic(expected = "different lengths")]
    fn vectors_of_different_lengths_have_no_sum() {
        let _ = Components::from(4).saturating_add(&[1, 2]);
    }

    #[test]
    fn an_overwritten_vector_holds_nothing() {
        let mut vector = Components::new(&[1, 2, 3]).unwrap();
        vector.zeroize();
        assert_eq!(vector.as_slice(), [0, 0, 0]);
    }
}
