//! Texts that explain masked answers to the owner of the data, used wherever they appear.

use conclave_common::epsilon;
use conclave_common::job::JobSpec;
use conclave_pages::document::{Fact, fact};
use conclave_privacy::accounting::gaussian_dp;

use super::figure::figure;
use super::worst_case::AllCollude;
use crate::ledger_views::{IfAllCollude, MaskedJob, MaskedMember};
use conclave_vault::secure::{Peers, SecureSettings};

/// Reason why a secure job can't continue once it is closed, rejected or revoked.
pub(crate) const NEVER_REOPENED: &str =
    "its answers are masked, and its mask key is deleted: it can never be reopened, and its analyst must submit it again";

/// States the protection of a masked job; `None` for other jobs.
pub(crate) fn promise(spec: &JobSpec) -> Option<String> {
    let secure = spec.aggregation.secure()?;
    let parties = spec.parties.len();
    let (honest, others) = (spec.aggregation.honest(parties).get(), parties.saturating_sub(1));
    Some(format!(
        "your numbers are masked, and only the sum over these {parties} parties is opened. You are charged as if {honest} \
         parties' noise protects you, which holds while at most {} of the other {others} seats collude with the coordinator \
         (seats, not people: a group with three seats counts as three)",
        secure.colluders
    ))
}

/// Lists the other members of a secure job before its roster exists: each name, and the key that will be accepted for it.
pub(crate) fn members(spec: &JobSpec, party: &str, settings: &SecureSettings) -> Vec<Fact> {
    let Some(secure) = spec.aggregation.secure() else { return Vec::new() };
    let known = |name: &String| {
        let by_the_job = secure.members.get(name).map(|fingerprint| format!("; the job names {fingerprint}"));
        let words = match (settings.pins.of(name), settings.peers) {
            (Some(pins), _) => {
                format!("pinned {}", pins.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or "))
            }
            (None, Peers::Ca) => format!("any key that the CA certifies as {name}"),
            (None, Peers::Pinned) => "not pinned: this job can't open here".to_owned(),
        };
        fact(name, words + &by_the_job.unwrap_or_default())
    };
    spec.parties.iter().filter(|name| *name != party).map(known).collect()
}

/// States the loss if the job's assumption about the others fails.
pub(crate) fn if_all_collude(worst: &AllCollude, instead_of: f64, delta: f64) -> String {
    let others = worst.parties.saturating_sub(1);
    let limit = match worst.limit {
        Some(limit) if worst.ended_early => {
            format!("; without your limit of {}, which ends the job first, it would be higher", figure(limit))
        }
        Some(limit) => format!("; your limit is {}", figure(limit)),
        None => "; you have set no limit on it (secure.max_epsilon_if_all_collude)".to_owned(),
    };
    format!(
        "if all {others} others collude with the coordinator, your data's epsilon would be {} instead of {} at delta {}{limit}",
        epsilon::spent(worst.data_epsilon),
        epsilon::spent(instead_of),
        figure(delta)
    )
}

/// States a ledger's total under full collusion in one line.
pub(crate) fn total_if_all_collude(collude: &IfAllCollude) -> String {
    let limit =
        collude.epsilon_limit.map_or_else(|| "no limit is set".to_owned(), |limit| format!("the limit is {}", figure(limit)));
    format!("if all other parties of masked jobs collude, epsilon {} is spent; {limit}", epsilon::spent(collude.epsilon_spent))
}

/// Describes an open masked job: its key, and the members of its roster with their fingerprints.
pub(crate) fn status(job: &MaskedJob) -> Vec<Fact> {
    let age = match job.key_age_days {
        Some(0) => ", created today".to_owned(),
        Some(days) => format!(", {days} days old"),
        None => ", deleted".to_owned(),
    };
    let noise = match job.honest.zip(job.colluders) {
        Some((honest, colluders)) => format!("the noise of {honest} of {} parties, {colluders} colluding", job.members.len()),
        None => "no roster yet".to_owned(),
    };
    let member = |m: &MaskedMember| {
        fact(&m.name, format!("{} {}", m.fingerprint, if m.pinned { "pinned" } else { "certified by the CA only" }))
    };
    let head = fact("masked", format!("{}: {noise}; key of {}{age}", job.job, job.key_made));
    std::iter::once(head).chain(job.members.iter().map(member)).collect()
}

/// States the loss of a person with records at all owners of a secure job. That person's contributions add within the one opened
/// sum, so mu itself, not its square, grows with the number of owners.
pub(super) fn at_several_owners(spec: &JobSpec) -> Option<String> {
    spec.aggregation.secure()?;
    let (owners, budget) = (spec.parties.len(), spec.privacy.budget);
    let mu = gaussian_dp::mu(budget.epsilon, budget.delta) * owners as f64;
    Some(format!(
        "each owner's guarantee covers its own records; a person with records at m of the {owners} owners affects the one opened \
         sum through all m, and mu grows by m: for a person at all of them, up to epsilon {} at delta {}",
        epsilon::spent(gaussian_dp::epsilon(mu, budget.delta)),
        figure(budget.delta)
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use conclave_vault::secure::{Fingerprint, Pins};
    use conclave_vault::testing::masked_toml;

    fn spec(parties: usize, colluders: u32, more: &str) -> JobSpec {
        JobSpec::parse(&(masked_toml(parties, colluders) + more)).unwrap()
    }

    #[test]
    fn the_promise_is_said_with_its_numbers_and_in_seats() {
        let words = promise(&spec(5, 2, "")).unwrap();
        for part in [
            "the sum over these 5 parties",
            "as if 3 parties' noise",
            "at most 2 of the other 4 seats",
            "with three seats counts as three",
        ] {
            assert!(words.contains(part), "{part}: {words}");
        }
    }

    /// For a person with records at m owners mu grows by m: by five here, not by the root of five.
    #[test]
    fn a_person_at_all_owners_counts_at_each_of_them_in_one_sum() {
        let spec = spec(5, 2, "");
        let words = at_several_owners(&spec).unwrap();
        let mu = gaussian_dp::mu(spec.privacy.budget.epsilon, 1e-6);
        assert!(words.contains(&format!("up to epsilon {} at", epsilon::spent(gaussian_dp::epsilon(5.0 * mu, 1e-6)))), "{words}");
        assert!(!words.contains(&epsilon::spent(gaussian_dp::epsilon(5.0_f64.sqrt() * mu, 1e-6))), "{words}");
    }

    #[test]
    fn every_other_member_is_named_with_whose_word_is_taken_for_it() {
        let pin = Fingerprint([7; 32]);
        let mut pins = Pins::default();
        pins.add("h-1", pin).unwrap();
        let settings = |peers| SecureSettings { peers, pins: pins.clone(), ..SecureSettings::default() };
        let named = format!("members = {{ h-2 = \"{}\" }}\n", Fingerprint([9; 32]));
        let spec = spec(3, 1, &named);
        let of = |peers| {
            members(&spec, "h-0", &settings(peers))
                .into_iter()
                .map(|(name, words)| format!("{name}: {words}"))
                .collect::<Vec<_>>()
        };
        let by_the_job = format!("; the job names {}", Fingerprint([9; 32]));
        assert_eq!(
            of(Peers::Ca),
            [format!("h-1: pinned {pin}"), format!("h-2: any key that the CA certifies as h-2{by_the_job}")]
        );
        assert!(of(Peers::Pinned)[1].starts_with("h-2: not pinned: this job can't open here"));
    }
}
