//! Proposals of each kind, along coordinates and turned directions.

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::*;

/// Assumption A3: no coordinate of a truncated walk ever moves two radii. Without truncation, one move in 22 is longer.
#[test]
fn a_truncated_walk_keeps_within_two_radii() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let scale = ProposalScale::axes(vec![0.5, 2.0]);
    for (kind, beyond) in [(ProposalKind::TruncatedWalk, false), (ProposalKind::RandomWalk, true)] {
        let walk = Proposal::new(kind, 0.1, 2, &mut rng);
        let moves: Vec<Vec<f64>> = (0..10_000).map(|_| walk.propose(&[0.0, 0.0], &scale, &mut rng)).collect();
        assert_eq!(moves.iter().any(|m| m[0].abs() >= 1.0 || m[1].abs() >= 4.0), beyond);
        // Both directions are equally frequent: 10,000 signs differ by less than 5 sd of a fair coin's.
        let up = moves.iter().filter(|m| m[1] > 0.0).count() as f64;
        assert!((up - 5000.0).abs() < 250.0, "{up}");
    }
}

#[test]
fn a_turned_scale_moves_along_its_directions() {
    let mut rng = ChaCha20Rng::seed_from_u64(1);
    let scale = ProposalScale::along(ProposalKind::Guided, vec![vec![3.0, 4.0], vec![-4.0, 3.0]]);
    assert!(scale.radii.iter().all(|r| (r - 5.0 * ProposalKind::ONE_COORDINATE).abs() < 1e-12));
    let mut walk = Proposal::new(ProposalKind::Guided, 0.1, 2, &mut rng);
    let first = walk.propose(&[0.0, 0.0], &scale, &mut rng);
    assert!((first[0] * 4.0 - first[1] * 3.0).abs() < 1e-12 && libm::hypot(first[0], first[1]) > 0.9 * scale.radii[0]);
    walk.decided(true);
    let second = walk.propose(&[0.0, 0.0], &scale, &mut rng);
    assert!((second[0] * 3.0 + second[1] * 4.0).abs() < 1e-12);
}
