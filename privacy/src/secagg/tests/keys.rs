//! Validity of keys and rosters.

use super::*;

/// Returns 2^255 - 19 plus `more`, little endian.
fn prime_and(more: u8) -> [u8; 32] {
    let mut bytes = [0xff; 32];
    bytes[0] = 0xed + more;
    bytes[31] = 0x7f;
    bytes
}

#[test]
fn a_public_key_has_one_form() {
    for more in 0..19 {
        assert_eq!(MaskPublic::parse(&prime_and(more)), Err(NotCanonical), "p + {more}");
        let mut small = [0; 32];
        small[0] = more;
        assert!(MaskPublic::parse(&small).is_ok());
    }
    let mut last = prime_and(0);
    last[0] -= 1;
    assert_eq!(MaskPublic::parse(&last).unwrap().bytes(), &last);
    // Just below the prime in another byte than the lowest.
    let mut below = prime_and(5);
    below[17] = 0xfe;
    assert!(MaskPublic::parse(&below).is_ok());
    for own in (0..50).map(|number| secret(number).public()) {
        assert_eq!(MaskPublic::parse(own.bytes()), Ok(own));
        let mut twin = *own.bytes();
        twin[31] |= 0x80;
        assert_eq!(MaskPublic::parse(&twin), Err(NotCanonical));
        for cut in [&own.bytes()[..31], &[own.bytes().as_slice(), &[0]].concat(), &[]] {
            assert_eq!(MaskPublic::parse(cut), Err(NotCanonical));
        }
    }
}

#[test]
fn a_secret_is_never_printed() {
    let own = secret(3);
    let text = format!("{own:?} {:?}", PairKeys::agree(&roster(4, 1), 3, &own).unwrap());
    assert_eq!(text, "MaskSecret PairKeys with 3");
    assert_eq!(own.bytes(), &bytes("secret", 3));
}

/// The states of pair keys' hashes and all that keys are made of are overwritten on drop. Only the crates' features `zeroize` have
/// these implementations: without one this test does not compile. A destructor alone, which each type has anyway, shows nothing.
#[test]
fn keys_are_overwritten_on_drop() {
    fn overwritten<T: zeroize::ZeroizeOnDrop>() {}
    overwritten::<sha2::block_api::Sha256VarCore>();
    overwritten::<x25519_dalek::StaticSecret>();
    overwritten::<x25519_dalek::SharedSecret>();
    overwritten::<Zeroizing<[u8; 32]>>();
}

/// The keys' memory is allocated once: reallocation would leave copies that nothing overwrites.
#[test]
fn pair_keys_are_never_moved_to_a_larger_place() {
    for members in [3, 6, 10, 100] {
        let keys = PairKeys::agree(&roster(members, 1), 1, &secret(1)).unwrap();
        assert_eq!(keys.room(), [members - 1; 2]);
    }
}

#[test]
fn rosters_leave_two_honest_members_at_least() {
    let of = |count: usize, colluders| Roster::new("job", [0; 32], colluders, members(count));
    for count in [0, 1, 2, 1025] {
        assert_eq!(of(count, 1).unwrap_err(), RosterError::Members { members: count });
    }
    for (count, colluders) in [(3, 0), (3, 2), (3, 3), (10, 9), (10, u32::MAX), (1024, 1023)] {
        assert_eq!(of(count, colluders).unwrap_err(), RosterError::Colluders { colluders, members: count });
    }
    for (count, colluders, honest) in [(3, 1, 2), (10, 8, 2), (10, 1, 9), (1024, 1022, 2)] {
        assert_eq!(of(count, colluders).unwrap().honest(), honest);
    }
    assert!(of(2, 1).unwrap_err().to_string().contains("3 to 1024"));
    let refused = of(9, 8).unwrap_err().to_string();
    assert!(refused.contains("colluders = 8") && refused.contains("allows 1 to 7"), "{refused}");
}

#[test]
fn no_two_members_share_a_name_or_key() {
    type Share = fn(&mut Member, &Member);
    let shares: [(Share, &str); 3] = [
        (|member, other| member.name.clone_from(&other.name), "name"),
        (|member, other| member.identity = other.identity, "identity key"),
        (|member, other| member.public = other.public, "mask key"),
    ];
    for (share, what) in shares {
        let mut members = members(5);
        let other = members[4].clone();
        share(&mut members[1], &other);
        assert_eq!(Roster::new("job", [0; 32], 1, members).unwrap_err(), RosterError::Twice { what });
    }
}

#[test]
fn keys_are_agreed_on_at_ones_own_place() {
    let roster = roster(4, 1);
    assert!(PairKeys::agree(&roster, 2, &secret(2)).is_ok());
    for (place, own) in [(1, 2), (4, 2), (usize::MAX, 2), (2, 9)] {
        assert_eq!(PairKeys::agree(&roster, place, &secret(own)).unwrap_err(), AgreementError::NotOwn);
    }
}
