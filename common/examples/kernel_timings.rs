//! Times kernels on made-up shards: for every line on standard input one round of passes, and its times in nanoseconds per record as a line
//! of JSON. `bench/kernel.py` asks it in turn with what it is compared to.

#[path = "../benches/shards/mod.rs"]
mod shards;

use std::io::BufRead;
use std::num::NonZeroUsize;
use std::time::Instant;

use conclave_privacy::pass::Threads;
use shards::{Case, WIDTH, read};

/// A guided step of a chain at a million records: 0.44 of some 0.0035.
const GUIDED: f64 = 0.0015;
/// Too long for the short way.
const LONG: f64 = 0.3;

fn main() {
    let records: usize = std::env::args().nth(1).map_or(1_000_000, |n| n.parse().expect("a number of records"));
    let threads = [1, 2].map(|n| Threads::new(NonZeroUsize::new(n).expect("not 0")).expect("threads"));
    let cases = [Case::logistic(WIDTH, records), Case::linear(records), Case::gaussian_mean(records)];
    for _ in std::io::stdin().lock().lines() {
        let mut times: Vec<(String, f64)> = Vec::new();
        let mut time = |name: String, pass: &mut dyn FnMut()| {
            // Once before: what is timed finds memory as the pass before it left it, all alike.
            pass();
            let began = Instant::now();
            pass();
            times.push((name, began.elapsed().as_secs_f64() * 1e9 / records as f64));
        };
        for case in &cases {
            let columns = case.columns();
            for (order, at_a_time) in [("by column", records), ("by tile", 512)] {
                time(format!("{}: read {order}", case.name), &mut || {
                    std::hint::black_box(read(&columns, at_a_time));
                });
            }
            for (kind, chains, on, length, all) in [
                ("1 chain", 1, 0, GUIDED, false),
                ("1 chain, 2 threads", 1, 1, GUIDED, false),
                ("16 chains", 16, 0, GUIDED, false),
                ("16 chains, 2 threads", 16, 1, GUIDED, false),
                ("1 chain, all coordinates", 1, 0, GUIDED, true),
                ("1 chain, long step", 1, 0, LONG, false),
            ] {
                let ends = case.ends(chains, length, all);
                time(format!("{}: {kind}", case.name), &mut || case.pass(&case.data, &threads[on], &ends));
            }
        }
        let fields: Vec<String> = times.iter().map(|(name, ns)| format!("{name:?}: {ns:.4}")).collect();
        println!("{{{}}}", fields.join(", "));
    }
}
