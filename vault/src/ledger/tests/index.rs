//! The index over charged queries, which keeps few of them in memory, answers like one that keeps them all.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use rusqlite::Connection;

use crate::ledger::ids::{Fences, Id, Ids, Inserted};
use crate::ledger::index::Index;

/// Creates a ledger's table of charges, as far as an index reads it.
fn charges() -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    let table = "CREATE TABLE charges (seq INTEGER PRIMARY KEY, job INTEGER, iteration INTEGER, chain INTEGER) STRICT";
    connection.execute_batch(table).unwrap();
    connection
}

/// One history of charges of two jobs, in both kinds of index.
struct Both {
    connection: Connection,
    index: Index,
    fenced: [Ids; 2],
    whole: [Ids; 2],
    seq: u64,
}

impl Both {
    fn new(folder: &std::path::Path, (every, most, in_memory): (u32, usize, usize)) -> Self {
        let fenced = || Ids::Fenced(Fences::new(every, most));
        let index = Index::keeping(&folder.join("ledger.sqlite"), in_memory);
        Self { connection: charges(), index, fenced: [fenced(), fenced()], whole: Default::default(), seq: 1 }
    }

    fn find(&self, job: usize, key: (u64, u32)) -> [Option<u64>; 2] {
        let find = |ids| self.index.find(&self.connection, job as u64, ids, key).unwrap();
        [find(&self.fenced[job]), find(&self.whole[job])]
    }

    /// Looks the id up in both, and charges it if it was not charged, as a ledger does.
    fn ask(&mut self, job: usize, (iteration, chain): (u64, u32)) {
        let [fenced, whole] = self.find(job, (iteration, chain));
        assert_eq!(fenced, whole, "job {job}, round {iteration}, chain {chain}");
        // Answers and other jobs' entries lie in between, sometimes many.
        self.seq += if iteration % 11 == 7 { 1000 } else { 1 + iteration % 3 };
        let id = Id { iteration, chain, charge: self.seq };
        let inserted = self.whole[job].insert(id);
        assert_eq!(inserted == Inserted::Twice, whole.is_some());
        if inserted == Inserted::New {
            if self.fenced[job].insert(id) == Inserted::Late {
                self.index.insert((job as u64, iteration, chain), self.seq).unwrap();
            }
            self.connection.execute("INSERT INTO charges VALUES (?1, ?2, ?3, ?4)", (self.seq, job, iteration, chain)).unwrap();
        }
    }
}

/// Returns ids of two jobs: mostly ascending, in messages of some chains, sometimes going back, and sometimes in random order.
fn history() -> impl Strategy<Value = Vec<(usize, u64, u32)>> {
    let message = (
        0..2_usize,
        prop_oneof![12 => 1..3_i64, 2 => Just(0_i64), 2 => -20..0_i64, 1 => -2000..2000_i64],
        prop::bits::u8::masked(15),
        any::<bool>(),
    );
    prop::collection::vec(message, 1..120).prop_map(|messages| {
        let (mut at, mut asked) = ([0_i64; 2], Vec::new());
        for (job, step, chains, backwards) in messages {
            let iteration = (at[job] + step).clamp(0, 4000);
            // One that goes back looks back, and continues from where it was.
            if step >= 0 {
                at[job] = iteration;
            }
            let mut chains: Vec<u32> = (0..4).filter(|chain| chains >> chain & 1 == 1).collect();
            if backwards && step < 0 {
                chains.reverse();
            }
            asked.extend(chains.into_iter().map(|chain| (job, iteration as u64, chain)));
        }
        asked
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    #[test]
    fn a_bounded_index_answers_as_one_that_keeps_all(history in history(), every in 1..6_u32, most in 1..9_usize, in_memory in 0..12_usize) {
        let folder = tempfile::tempdir().unwrap();
        let mut both = Both::new(folder.path(), (every, most, in_memory));
        history.iter().for_each(|(job, iteration, chain)| both.ask(*job, (*iteration, *chain)));
        // Every charged id, and its neighbours, which were not charged.
        for (job, iteration, chain) in &history {
            for key in [(*iteration, *chain), (*iteration + 1, *chain), (iteration.saturating_sub(1), *chain), (*iteration, *chain + 1)] {
                let [fenced, whole] = both.find(*job, key);
                prop_assert_eq!(fenced, whole, "job {}, {:?}", job, key);
            }
        }
        for ids in &both.fenced {
            let Ids::Fenced(fences) = ids else { panic!("fences") };
            prop_assert!(fences.count() <= most);
        }
        // Spilled data have no name in the folder.
        prop_assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

/// A realistic maximum of releases, in order: a few thousand fences, and every release between two of them is found.
#[test]
fn two_million_releases_take_the_memory_of_some_thousand() {
    let folder = tempfile::tempdir().unwrap();
    let mut both = Both::new(folder.path(), (256, 4096, 1 << 16));
    let mut ids = Ids::Fenced(Fences::default());
    for charge in 0..2_000_000_u64 {
        assert_eq!(ids.insert(Id { iteration: charge / 4, chain: (charge % 4) as u32, charge: 2 * charge }), Inserted::New);
    }
    let Ids::Fenced(fences) = &ids else { panic!("fences") };
    assert!((2000..=4096).contains(&fences.count()), "{}", fences.count());
    both.fenced[0] = ids;
    let insert = "WITH RECURSIVE n(i) AS (SELECT 1000000 UNION ALL SELECT i + 1 FROM n WHERE i < 1004000)
                  INSERT INTO charges SELECT 2 * i, 0, i / 4, i % 4 FROM n";
    both.connection.execute(insert, []).unwrap();
    let find = |charge: u64| both.index.find(&both.connection, 0, &both.fenced[0], (charge / 4, (charge % 4) as u32)).unwrap();
    for charge in (1_000_000..1_004_000).step_by(37) {
        assert_eq!(find(charge), Some(2 * charge));
    }
    assert_eq!(find(2_000_000), None);
}
