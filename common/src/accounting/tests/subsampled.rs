use super::*;
use crate::accounting::dominating_pair::{DominatingPair, Order};

const RESERVE: f64 = (1_u64 << RESERVE_LOG2) as f64;

fn release(probability: f64, k: f64, adjacency: Adjacency) -> SubsampledRelease {
    let noise = NoiseScale::from_units(1 << 49).unwrap();
    SubsampledRelease {
        probability: SamplingProbability::at_least(probability).unwrap(),
        sensitivity: Sensitivity::from_units((k * noise.units() as f64) as u64).unwrap(),
        noise,
        honest: Honest::ALONE,
        components: 1,
        adjacency,
    }
}

#[test]
fn dump() {
    for (q, k, t, d) in [
        (0.01, 0.5, 500, 1e-9),
        (0.01, 0.5, 10_000, 1e-7),
        (0.001, 0.1, 5000, 1e-7),
        (0.1, 0.5, 1000, 1e-7),
        (0.01, 1.0, 10_000, 1e-7),
        (0.001, 1.43, 10_000, 1e-7),
        (1e-6, 1.5, 10_000, 1e-7),
        (0.001, 0.0316227766, 5000, 1e-7),
    ] {
        for a in [Adjacency::Replace, Adjacency::AddRemove] {
            let r = release(q, k, a);
            let at = std::time::Instant::now();
            let l = r.losses(t, 1e-6).unwrap();
            let t1 = at.elapsed();
            let c = r.block_charge(t, (d * RESERVE) as u64).unwrap();
            println!(
                "{q} {k} {t} {a:?}: mu {} eps {:?} gdp eps {} | {:?} {:?} bins {:?} step {:?} whole {}",
                c.mu(),
                l.epsilon(1e-6),
                gaussian_dp::epsilon(c.mu(), 1e-6 - d),
                t1,
                at.elapsed(),
                l.grids().iter().map(|g| g.len()).collect::<Vec<_>>(),
                l.grids()[0].step(),
                a.factor() as f64 * k * (t as f64).sqrt()
            );
        }
    }
    let p = DominatingPair::new(Order::Replacement, 0.01, 0.5);
    println!("{:e} {:e} {:e}", p.delta(0.0), p.delta(0.01), p.delta(0.1));
    let p = DominatingPair::new(Order::Replacement, 0.001, 0.1);
    println!("{:e} {:e}", p.delta(0.0), p.delta(0.001));
    let p = DominatingPair::new(Order::Removal, 0.01, 1.0);
    println!("{:e} {:e}", p.delta(0.0), p.delta(0.1));
}
