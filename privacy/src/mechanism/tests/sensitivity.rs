//! The sensitivity of a step.

use super::*;

#[test]
fn sensitivity_is_the_smaller_of_bound_and_clip() {
    let units = |bound, clip| sensitivity(bound, clip).map(Sensitivity::units);
    assert_eq!(units(1.0, None), Ok(1 << 32));
    assert_eq!(units(1.0 + STEP / 4.0, None), Ok((1 << 32) + 1));
    assert_eq!(units(0.0, None), Ok(1));
    assert_eq!(units(1.0, Some(0.5)), Ok(1 << 31));
    assert_eq!(units(1.0, Some(0.5 + STEP * 0.75)), Ok(1 << 31));
    assert_eq!(units(f64::INFINITY, Some(2.0)), Ok(1 << 33));
    assert_eq!(units(1e300, Some(2.0)), Ok(1 << 33));
    assert_eq!(units(262_144.0, None), Ok(1 << 50));
    assert!(matches!(units(262_144.1, None), Err(MechanismError::TooWide(_))));
    assert!(matches!(units(f64::INFINITY, None), Err(MechanismError::Unbounded(_))));
    assert!(matches!(units(f64::NAN, Some(1.0)), Err(MechanismError::Unbounded(_))));
    assert!(matches!(units(-1.0, None), Err(MechanismError::Unbounded(_))));
    for clip in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-12, 1e9] {
        assert!(matches!(units(1.0, Some(clip)), Err(MechanismError::Clip(_))), "{clip}");
    }
    assert!(Sensitivity::from_units(0).is_err() && Sensitivity::from_units((1 << 50) + 1).is_err());
}

#[test]
fn a_sum_that_might_overflow_does_not_fit() {
    let k_t = Sensitivity::from_units(1 << 40).unwrap();
    assert!(sum_fits((1 << 22) - 1, k_t) && !sum_fits(1 << 22, k_t) && !sum_fits(u64::MAX, k_t));
}
