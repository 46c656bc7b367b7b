//! The parties' record counts.

use conclave_common::job::JobSpec;
use conclave_common::query::{PartyMetadata, is_centred};

use super::SamplerError;

/// Returns upper bounds, or the analyst's guess, of every party's number of records.
pub(super) fn record_bounds(spec: &JobSpec, parties: &[PartyMetadata]) -> Result<Vec<u64>, SamplerError> {
    let bound = |(party, metadata): (&String, &PartyMetadata)| {
        let known = metadata.most_records().or(spec.sampler.records_guess);
        known.ok_or_else(|| SamplerError::UnknownCount { party: party.clone() })
    };
    spec.parties.iter().zip(parties).map(bound).collect()
}

/// Returns the number of records whose log ratios the parties centre. The counts come from other parties: their sum must not panic.
pub(super) fn centred_records(parties: &[PartyMetadata]) -> u64 {
    let centred = parties.iter().filter(|party| is_centred(party.unit()));
    centred.filter_map(PartyMetadata::records).fold(0, u64::saturating_add)
}
