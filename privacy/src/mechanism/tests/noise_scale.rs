//! The grid of noise scales.

use super::*;

#[test]
fn noise_scales_are_rounded_up_to_the_grid() {
    let units = |sd| NoiseScale::from_sd(sd).map(NoiseScale::units);
    assert_eq!(units(1.0), Ok(1 << 32));
    assert_eq!(units(1.0 + 1e-9), Ok((1 << 32) + (1 << 16)));
    assert_eq!(units(1.0 / 4096.0), Ok(1 << 20));
    assert_eq!(units(262_144.0), Ok(1 << 50));
    for sd in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-5, 262_145.0] {
        assert!(matches!(units(sd), Err(MechanismError::NoiseSd(_))), "{sd}");
    }
    for units in [0, 1 << 16, (1 << 20) + 1, (1 << 50) + (1 << 16), u64::MAX] {
        assert!(NoiseScale::from_units(units).is_err(), "{units}");
    }
}

proptest! {
    #[test]
    fn every_noise_scale_keeps_the_lattice_identity(sd in 0.001..1000.0f64) {
        let s = NoiseScale::from_sd(sd).unwrap();
        prop_assert!(s.sd() >= sd && s.sd() < sd + 1.0 / 65_536.0);
        prop_assert_eq!(NoiseScale::from_units(s.units()), Ok(s));
        // sigma^2 / STEP = s^2 2^-32 is an integer.
        prop_assert_eq!((u128::from(s.units()) * u128::from(s.units())) % (1 << 32), 0);
        prop_assert_eq!(s.variance(), s.sd() * s.sd());
    }
}
