//! The masks of all parties of a job in one process, under keys derived from a seed.

use conclave_common::job::JobSpec;
use conclave_common::query::Round;
use conclave_privacy::secagg::{MaskSecret, Member, PairKeys, Roster, cover};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use zeroize::Zeroizing;

/// A roster and every member's pair keys.
pub struct Masks {
    roster: Roster,
    keys: Vec<PairKeys>,
}

impl Masks {
    /// Creates the masks of a secure job; `None` for any other job.
    pub fn of(spec: &JobSpec, seed: u64) -> Option<Self> {
        let colluders = spec.aggregation.secure()?.colluders;
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        let secrets: Vec<MaskSecret> =
            spec.parties.iter().map(|_| MaskSecret::from_bytes(Zeroizing::new(rng.random()))).collect();
        let member = |(name, secret): (&String, &MaskSecret)| Member {
            name: name.clone(),
            identity: rng.random(),
            public: secret.public(),
        };
        let members = spec.parties.iter().zip(&secrets).map(member).collect();
        let roster = Roster::new("33333333-3333-4333-8333-333333333333", [7; 32], colluders, members).expect("a roster");
        let keys = secrets.iter().enumerate().map(|(place, secret)| PairKeys::agree(&roster, place, secret).expect("keys"));
        Some(Self { keys: keys.collect(), roster })
    }

    /// Masks the parties' releases to a round, and appends to each the mask of a zero.
    pub fn cover(&self, round: &Round, releases: &[Vec<i64>]) -> Vec<Vec<i64>> {
        let digest = round.digest_under(&self.roster.digest());
        let masked = |(keys, released): (&PairKeys, &Vec<i64>)| {
            let masks = keys.masks(&digest, released.len() + 1);
            masks.into_iter().zip(released.iter().chain([&0])).map(|(mask, released)| cover(*released, mask)).collect()
        };
        self.keys.iter().zip(releases).map(masked).collect()
    }
}
