//! A ledger of a million releases, for figures on its size and speed.
#![allow(clippy::unwrap_used)]

use crate::ledger::Ledger;
use crate::ledger::entry::{AnswerEntry, ChargeEntry, Entry};
use crate::testing::{JOB, budget, key};

/// Writes a million charged and answered queries of the open job [`JOB`].
///
/// # Panics
/// When the job is not open, or the ledger can't be written.
pub fn write_a_million_releases(ledger: &mut Ledger) {
    let job = ledger.state().job(JOB).unwrap().seq;
    let k = key(0, 1, 1);
    let charge = budget().unit.charge_units(k.priced.sensitivity(), k.priced.noise()).unwrap();
    let slack = {
        let mut f = ledger.meter.clone();
        f.try_charge(&[(k.priced.sensitivity(), k.priced.noise())]).unwrap();
        f.spent().slack_units
    };
    for batch in 0..1000u64 {
        ledger
            .write(false, |writer| {
                for message in 0..250 {
                    let first = writer.next();
                    for chain in 0..4 {
                        let running_total = writer.state().spent().units + charge;
                        let (seq, time_ms, iteration) = (writer.next(), writer.time_ms(), batch * 250 + message);
                        let (k_t, s) = (k.priced.sensitivity().units(), k.priced.noise().units());
                        writer.write(&Entry::Charge(ChargeEntry {
                            seq,
                            time_ms,
                            job,
                            iteration,
                            chain,
                            attempt: 0,
                            block: 0,
                            digest: [seq as u8; 32],
                            theta: [1; 16],
                            theta_next: [2; 16],
                            kind: 0,
                            k_t,
                            s,
                            charge,
                            running_total,
                            slack,
                            components: 1,
                            honest: 1,
                            alone: charge,
                        }))?;
                    }
                    for charge in first..first + 4 {
                        writer.write(&Entry::Answer(AnswerEntry {
                            seq: writer.next(),
                            charge,
                            released: &[-(charge as i64) << 20],
                        }))?;
                    }
                }
                Ok(())
            })
            .unwrap();
    }
}
