//! The opening of the parties' answers: each by itself, or only their sum.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use conclave_privacy::accounting::Honest;

/// `[aggregation]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Aggregation {
    /// Every party's answer is opened; its own noise protects it.
    #[default]
    Local,
    /// Answers are masked and only their sum is opened. The noise of all parties that do not collude protects each of them.
    Secure(Secure),
}

/// The settings of a job with masked answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secure {
    /// `t`, the number of other parties that may collude with the coordinator, from 1 to the number of parties less 2.
    pub colluders: u32,
    /// Fingerprints of the parties' identity keys, if the analyst states them. They must match the keys that the parties present.
    pub members: BTreeMap<String, KeyFingerprint>,
}

impl Secure {
    /// The minimum number of parties. With fewer, a colluding party knows all noise but one party's own.
    pub const FEWEST: usize = 3;
    /// The maximum number of parties.
    pub const MOST: usize = 1 << 10;

    /// Returns the default number of colluders among `parties` parties: half of the others, rounded up.
    #[must_use]
    pub fn usual_colluders(parties: usize) -> u32 {
        u32::try_from(parties.saturating_sub(1).div_ceil(2)).unwrap_or(u32::MAX)
    }
}

impl Aggregation {
    /// Returns whether only sums are opened.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        matches!(self, Self::Secure(_))
    }

    /// Returns the settings of `[aggregation]`, if it differs from the default.
    #[must_use]
    pub fn secure(&self) -> Option<&Secure> {
        match self {
            Self::Local => None,
            Self::Secure(secure) => Some(secure),
        }
    }

    /// Returns the number of parties whose noise protects each of `parties` parties.
    #[must_use]
    pub fn honest(&self, parties: usize) -> Honest {
        let others = |secure: &Secure| u32::try_from(parties).unwrap_or(u32::MAX).saturating_sub(secure.colluders);
        self.secure().and_then(|secure| Honest::new(others(secure))).unwrap_or_default()
    }

    /// Returns the number of opened values per query with `parties` parties.
    #[must_use]
    pub fn opened(&self, parties: usize) -> usize {
        if self.is_secure() { parties.min(1) } else { parties }
    }
}

/// SHA-256 of a public key as in an X.509 certificate (DER `SubjectPublicKeyInfo`). It is written as `sha256:` and 64 hexadecimal
/// digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyFingerprint(pub [u8; 32]);

/// The error for a text that is not a fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be `sha256:` and 64 hexadecimal digits, as `conclave-party fingerprint` prints them")]
pub struct NoFingerprint;

impl FromStr for KeyFingerprint {
    type Err = NoFingerprint;

    fn from_str(text: &str) -> Result<Self, NoFingerprint> {
        let digits = text.strip_prefix("sha256:").ok_or(NoFingerprint)?.as_bytes();
        let (pairs, rest) = digits.as_chunks::<2>();
        let mut bytes = [0; 32];
        if pairs.len() != bytes.len() || !rest.is_empty() {
            return Err(NoFingerprint);
        }
        let digit = |b: u8| (b as char).to_digit(16).and_then(|d| u8::try_from(d).ok()).ok_or(NoFingerprint);
        for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for KeyFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
