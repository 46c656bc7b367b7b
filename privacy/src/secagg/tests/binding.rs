//! Every bit to which masks are bound changes all of them.

use super::*;

/// The inputs of a round of three members.
#[derive(Clone)]
struct Case {
    job: String,
    spec_digest: [u8; 32],
    colluders: u32,
    members: Vec<(String, [u8; 32], [u8; 32])>,
    iteration: u64,
    attempt: u32,
    queries: Vec<Asked>,
}

/// A [`SharedQuery`] with its numbers by their bits.
#[derive(Clone)]
struct Asked {
    chain: u32,
    from: Vec<u64>,
    to: Vec<u64>,
    kind: u32,
    noise: u64,
}

impl Asked {
    fn digest(&self) -> [u8; 32] {
        let floats = |bits: &[u64]| bits.iter().map(|b| f64::from_bits(*b)).collect::<Vec<_>>();
        let (from, to) = (floats(&self.from), floats(&self.to));
        SharedQuery { chain: self.chain, from: &from, to: &to, kind: self.kind, noise: self.noise }.digest()
    }
}

impl Case {
    fn new() -> Self {
        let member = |number| (format!("party-{number}"), bytes("identity", number), bytes("secret", number));
        let zero = 0_f64.to_bits();
        Self {
            job: "job-1".to_owned(),
            spec_digest: bytes("spec", 0),
            colluders: 1,
            members: (0..3).map(member).collect(),
            iteration: 7,
            attempt: 0,
            queries: vec![
                Asked { chain: 0, from: vec![zero], to: vec![1_f64.to_bits()], kind: 0, noise: 1 << 20 },
                Asked { chain: 1, from: vec![], to: vec![zero], kind: 3, noise: 5 << 16 },
            ],
        }
    }

    /// Returns the five masks of each member.
    fn masks(&self) -> Vec<Vec<u64>> {
        let secret = |bytes: &[u8; 32]| MaskSecret::from_bytes(Zeroizing::new(*bytes));
        let member = |(name, identity, own): &(String, [u8; 32], [u8; 32])| Member {
            name: name.clone(),
            identity: *identity,
            public: secret(own).public(),
        };
        // Unchecked, so that bits whose change a roster would refuse are tested, too.
        let roster = Roster::unchecked(&self.job, self.spec_digest, self.colluders, self.members.iter().map(member).collect());
        let queries: Vec<_> = self.queries.iter().map(Asked::digest).collect();
        let digest = round_digest(&roster.digest(), self.iteration, self.attempt, &queries);
        let keys = self.members.iter().enumerate().map(|(at, (.., own))| PairKeys::agree(&roster, at, &secret(own)).unwrap());
        keys.map(|keys| keys.masks(&digest, 5)).collect()
    }

    fn with(&self, change: impl FnOnce(&mut Self)) -> Self {
        let mut case = self.clone();
        change(&mut case);
        case
    }

    /// Returns every case that differs from this one in one bit.
    fn one_bit_away(&self) -> Vec<(String, Self)> {
        let mut cases = Vec::new();
        let mut add =
            |what: &str, bit: usize, change: &dyn Fn(&mut Self)| cases.push((format!("{what}, bit {bit}"), self.with(change)));
        // Names are ASCII, so the highest bit of a character is always 0.
        for bit in (0..8 * self.job.len()).filter(|bit| bit % 8 != 7) {
            add("job", bit, &|case| case.job = flipped(&case.job, bit));
        }
        for bit in 0..256 {
            add("spec", bit, &|case| flip(&mut case.spec_digest, bit));
        }
        for member in 0..3 {
            for bit in (0..8 * self.members[member].0.len()).filter(|bit| bit % 8 != 7) {
                add("name", bit, &|case| case.members[member].0 = flipped(&case.members[member].0, bit));
            }
            for bit in 0..256 {
                add("identity", bit, &|case| flip(&mut case.members[member].1, bit));
            }
            // X25519 itself sets the three lowest bits and the two highest.
            for bit in 3..254 {
                add("key", bit, &|case| flip(&mut case.members[member].2, bit));
            }
        }
        for bit in 0..64 {
            add("iteration", bit, &|case| case.iteration ^= 1 << bit);
            add("from", bit, &|case| case.queries[0].from[0] ^= 1 << bit);
            add("to", bit, &|case| case.queries[1].to[0] ^= 1 << bit);
            add("noise", bit, &|case| case.queries[0].noise ^= 1 << bit);
        }
        for bit in 0..32 {
            add("colluders", bit, &|case| case.colluders ^= 1 << bit);
            add("attempt", bit, &|case| case.attempt ^= 1 << bit);
            add("chain", bit, &|case| case.queries[1].chain ^= 1 << bit);
            add("kind", bit, &|case| case.queries[1].kind ^= 1 << bit);
        }
        cases
    }
}

fn flip(bytes: &mut [u8], bit: usize) {
    bytes[bit / 8] ^= 1 << (bit % 8);
}

fn flipped(name: &str, bit: usize) -> String {
    let mut bytes = name.as_bytes().to_vec();
    flip(&mut bytes, bit);
    String::from_utf8(bytes).unwrap()
}

#[test]
fn one_bit_changes_every_mask() {
    let base = Case::new();
    let masks = base.masks();
    assert_eq!(base.clone().masks(), masks);
    let reordered = [
        ("a query less", base.with(|case| drop(case.queries.pop()))),
        ("a query twice", base.with(|case| case.queries.push(case.queries[1].clone()))),
        ("queries in another order", base.with(|case| case.queries.swap(0, 1))),
        (
            "a number moved over",
            base.with(|case| {
                let moved = case.queries[0].from.remove(0);
                case.queries[0].to.insert(0, moved);
            }),
        ),
    ];
    let named = reordered.into_iter().map(|(what, case)| (what.to_owned(), case));
    let cases: Vec<_> = base.one_bit_away().into_iter().chain(named).collect();
    assert!(cases.len() > 2000, "{}", cases.len());
    for (what, case) in cases {
        for (place, (before, after)) in masks.iter().zip(&case.masks()).enumerate() {
            assert!(before.iter().zip(after).all(|(a, b)| a != b), "{what}: a mask of member {place} is as before");
        }
    }
}

/// A query has no field with a party's sensitivity: otherwise parties that protect different units could not open a sum.
#[test]
fn a_query_has_no_party_in_it() {
    let SharedQuery { chain: _, from: _, to: _, kind: _, noise: _ } =
        SharedQuery { chain: 0, from: &[], to: &[], kind: 0, noise: 0 };
}
