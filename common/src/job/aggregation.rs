//! How the parties' answers are opened: each by itself, or their sum alone.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use conclave_privacy::accounting::Honest;

/// `[aggregation]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Aggregation {
    /// Every party's answer is opened, and its own noise protects it.
    #[default]
    Local,
    /// Answers leave masked and only their sum is opened: the noise of all parties that do not work together protects each of them.
    Secure(Secure),
}

/// What a job with masked answers says of its parties.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secure {
    /// How many of the other parties may work with the coordinator: `t`, from 1 to two less than there are parties.
    pub colluders: u32,
    /// Fingerprints of parties' identity keys, where the analyst gives them: they must agree with what parties show.
    pub members: BTreeMap<String, KeyFingerprint>,
}

impl Secure {
    /// The fewest parties of such a job: with fewer there is nobody whose noise could be added to a party's own and is not known.
    pub const FEWEST: usize = 3;
    /// The most.
    pub const MOST: usize = 1 << 10;

    /// How many of `parties` parties' others are taken to work together where nothing is said: the greater half of them.
    #[must_use]
    pub fn usual_colluders(parties: usize) -> u32 {
        u32::try_from(parties.saturating_sub(1).div_ceil(2)).unwrap_or(u32::MAX)
    }
}

impl Aggregation {
    /// Whether sums alone are opened.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        matches!(self, Self::Secure(_))
    }

    /// `[aggregation]`, where it says anything else than what is usual.
    #[must_use]
    pub fn secure(&self) -> Option<&Secure> {
        match self {
            Self::Local => None,
            Self::Secure(secure) => Some(secure),
        }
    }

    /// How many parties' noise protects each of `parties` parties.
    #[must_use]
    pub fn honest(&self, parties: usize) -> Honest {
        let others = |secure: &Secure| u32::try_from(parties).unwrap_or(u32::MAX).saturating_sub(secure.colluders);
        self.secure().and_then(|secure| Honest::new(others(secure))).unwrap_or_default()
    }

    /// How many answers of `parties` parties are opened, each by itself.
    #[must_use]
    pub fn opened(&self, parties: usize) -> usize {
        if self.is_secure() { parties.min(1) } else { parties }
    }
}

/// SHA-256 of a public key, as an X.509 certificate holds it (DER `SubjectPublicKeyInfo`); written `sha256:` and 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyFingerprint(pub [u8; 32]);

/// A text that is no fingerprint.
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
