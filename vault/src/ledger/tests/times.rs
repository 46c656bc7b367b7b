//! The times of charges.
#![allow(clippy::unwrap_used)]
use std::cell::Cell;

use super::open_job::{charged, opened};
use crate::ledger::release::release;
use crate::ledger::*;
use crate::noise::Noise;
use crate::testing::no_sum;

thread_local! {
    static NOW: Cell<i64> = const { Cell::new(0) };
}

/// In either mode a charge has the time at which it was charged, since it is hashed and the hash is sent with replies.
#[test]
fn a_charge_holds_no_time_after_it_was_charged() {
    for durability in [Durability::Strict, Durability::Reserve { block: 8 }] {
        let (_folder, mut ledger) = opened(durability);
        let mut noise = Noise::from_os().unwrap();
        ledger.clock = || NOW.get();
        for round in 0..3 {
            NOW.set(1_000 + round);
            let receipt = charged(&mut ledger, round.cast_unsigned());
            NOW.set(77_777 + round);
            ledger.record(vec![release(receipt, no_sum(), &mut noise)]).unwrap();
        }
        let mut select = ledger.connection.prepare("SELECT time_ms FROM charges ORDER BY seq").unwrap();
        let times: Vec<i64> = select.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
        assert_eq!(times, [1_000, 1_001, 1_002], "{durability:?}");
    }
}
