//! Which protocol two ends speak with each other.
//!
//! Each end speaks a range of protocols. A party says its range in its hello, and the coordinator chooses the newest protocol that
//! both speak, so that either of them may be upgraded first.

use std::fmt;

use conclave_common::job::JobSpec;
use conclave_common::text;

use crate::error::{ErrorCode, Fault};
use crate::{OLDEST_PROTOCOL, PROTOCOL, v1};

/// The protocols that one end speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spoken {
    oldest: u32,
    newest: u32,
}

/// One end of a link.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    /// What it calls itself, with its version.
    pub software: &'a str,
    /// What it speaks.
    pub speaks: Spoken,
}

impl Spoken {
    /// What this software speaks.
    pub const HERE: Self = Self { oldest: OLDEST_PROTOCOL, newest: PROTOCOL };

    /// The protocols from `oldest` to `newest`; `None` where there is none.
    #[must_use]
    pub fn new(oldest: u32, newest: u32) -> Option<Self> {
        (oldest <= newest).then_some(Self { oldest, newest })
    }

    /// One protocol and no other.
    #[must_use]
    pub fn only(protocol: u32) -> Self {
        Self { oldest: protocol, newest: protocol }
    }

    /// What a party says that it speaks. One from before ranges were said speaks its one protocol.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidInput`] for a range that ends before it begins.
    pub fn of_hello(hello: &v1::Hello) -> Result<Self, Fault> {
        let oldest = if hello.oldest == 0 { hello.protocol } else { hello.oldest };
        Self::new(oldest, hello.protocol).ok_or_else(|| {
            let message =
                format!("a hello of protocols {oldest} to {}, which is no range: mend the party's software", hello.protocol);
            Fault::new(ErrorCode::InvalidInput, message)
        })
    }

    /// A party's hello with this range.
    #[must_use]
    pub fn hello(self, software: &str) -> v1::Hello {
        v1::Hello { protocol: self.newest, software: software.to_owned(), oldest: self.oldest }
    }

    /// The newest protocol that both speak.
    #[must_use]
    pub fn common(self, other: Self) -> Option<u32> {
        let newest = self.newest.min(other.newest);
        (newest >= self.oldest.max(other.oldest)).then_some(newest)
    }
}

impl fmt::Display for Spoken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self { oldest, newest } if oldest == newest => write!(f, "protocol {newest}"),
            Self { oldest, newest } => write!(f, "protocols {oldest} to {newest}"),
        }
    }
}

/// The protocol that a coordinator and a party speak with each other.
///
/// # Errors
/// [`ErrorCode::InvalidInput`], which a party does not soon try again, with a sentence that says which of the two to upgrade, and to
/// what.
pub fn agree(coordinator: End<'_>, party: End<'_>) -> Result<u32, Fault> {
    coordinator.speaks.common(party.speaks).ok_or_else(|| {
        let party_is_older = party.speaks.newest < coordinator.speaks.oldest;
        let ((older, upgrade), (newer, other)) = if party_is_older {
            ((party, "party"), (coordinator, "coordinator"))
        } else {
            ((coordinator, "coordinator"), (party, "party"))
        };
        let message = format!(
            "the coordinator ({}) speaks {} and the party ({}) speaks {}: upgrade the {upgrade}'s {} to a version that speaks \
             protocol {}, such as the {other}'s own",
            shown(coordinator.software),
            coordinator.speaks,
            shown(party.software),
            party.speaks,
            name(older.software),
            newer.speaks.oldest,
        );
        Fault::new(ErrorCode::InvalidInput, message)
    })
}

/// The oldest protocol at which both ends of a link reckon a job's public constants alike.
///
/// From protocol 5 on there are the other samplers of the papers, releases over hidden samples, and choices. From protocol 4 on answers may
/// leave masked, and the vectors of a gradient that a remainder stands beside are weights of rounded predictors. From protocol 3 on there are
/// vectors: gradients, curvatures, moments. From protocol 2 on, logistic, Poisson and negative binomial regressions have a public centre at parties that protect rows
/// against replacement, and a clip that bites takes the centre off no model. An end of protocol 1 does otherwise, and would take
/// a centred sum for the whole or the other way round.
#[must_use]
pub fn least_protocol(spec: &JobSpec) -> u32 {
    let of_opening = if spec.aggregation.is_secure() { 4 } else { OLDEST_PROTOCOL };
    let of_model = match spec.model.kind() {
        "logistic" | "poisson" | "negative_binomial" => 2,
        _ if spec.privacy.clip.is_some() => 2,
        _ => OLDEST_PROTOCOL,
    };
    spec.algorithm_protocol().max(of_opening).max(of_model)
}

/// Checks that a coordinator and a party that speak `spoken` with each other reckon this job alike.
///
/// # Errors
/// [`ErrorCode::InvalidInput`] at the party, with the remedy.
pub fn suits(spec: &JobSpec, spoken: u32, party: &str) -> Result<(), Fault> {
    let least = least_protocol(spec);
    if spoken >= least {
        return Ok(());
    }
    if spec.aggregation.is_secure() {
        let message = format!(
            "the coordinator and {party} speak protocol {spoken} with each other, and a job whose answers leave masked needs protocol {least}: \
             upgrade both"
        );
        return Err(Fault::new(ErrorCode::InvalidInput, message).at_party(party));
    }
    let message = format!(
        "the coordinator and {party} speak protocol {spoken} with each other, and a {} model under algorithm = \"{}\", or its clip, needs \
         protocol {least}, from which on both reckon its public constants alike: upgrade both",
        spec.model.kind(),
        spec.algorithm.as_str()
    );
    Err(Fault::new(ErrorCode::InvalidInput, message).at_party(party))
}

/// The other end's word for itself: one line, and short.
fn shown(software: &str) -> String {
    software.chars().filter(|c| text::shown(*c) == *c).take(60).collect()
}

/// A software's name without its version.
fn name(software: &str) -> String {
    let name = shown(software.split(' ').next().unwrap_or_default());
    if name.is_empty() { "software".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn spoken((oldest, newest): (u32, u32)) -> Spoken {
        Spoken::new(oldest, newest).unwrap()
    }

    #[test]
    fn the_newest_that_both_speak() {
        for (one, other, chosen) in [
            ((1, 1), (1, 1), Some(1)),
            ((1, 3), (1, 3), Some(3)),
            // One ends earlier, begins later, both, or lies within the other.
            ((1, 2), (1, 3), Some(2)),
            ((2, 3), (1, 3), Some(3)),
            ((1, 3), (2, 4), Some(3)),
            ((1, 4), (2, 3), Some(3)),
            // They touch in one.
            ((1, 2), (2, 3), Some(2)),
            ((2, 2), (1, 2), Some(2)),
            // They are next to each other, or far apart.
            ((1, 1), (2, 2), None),
            ((1, 2), (3, 5), None),
            ((1, 2), (7, 9), None),
            ((0, 0), (1, u32::MAX), None),
            ((0, u32::MAX), (u32::MAX, u32::MAX), Some(u32::MAX)),
        ] {
            assert_eq!(spoken(one).common(spoken(other)), chosen, "{one:?} {other:?}");
            assert_eq!(spoken(other).common(spoken(one)), chosen, "{other:?} {one:?}");
        }
    }

    #[test]
    fn a_hello_without_a_range_speaks_its_one_protocol() {
        let hello = |oldest, protocol| v1::Hello { protocol, software: "x 1".into(), oldest };
        assert_eq!(Spoken::of_hello(&hello(0, 1)).unwrap(), Spoken::only(1));
        assert_eq!(Spoken::of_hello(&hello(2, 4)).unwrap(), spoken((2, 4)));
        assert_eq!(Spoken::of_hello(&v1::Hello::default()).unwrap(), Spoken::only(0));
        let fault = Spoken::of_hello(&hello(3, 2)).unwrap_err();
        assert!(fault.message.contains("3 to 2"), "{fault}");
        assert_eq!(Spoken::of_hello(&spoken((2, 4)).hello("x 1")).unwrap(), spoken((2, 4)));
    }

    /// The version before this one speaks protocol 1 alone.
    #[test]
    fn the_previous_version_is_still_spoken() {
        assert_eq!(Spoken::HERE.common(Spoken::only(1)), Some(1));
        let hello = Spoken::HERE.hello("x 1");
        assert_eq!((hello.oldest, hello.protocol), (1, 5));
    }

    /// Models whose public constants the version before reckons otherwise are refused to it, and no others.
    #[test]
    fn a_job_is_for_ends_that_reckon_it_alike() {
        let job = |model: &str, outcome: &str| {
            JobSpec::parse(&format!(
                "name = \"t\"\nparties = [\"a\"]\n[model]\noutcome = \"y\"\n{model}\n[columns]\ny = {{ {outcome} }}\n\
                 x = {{ min = 0, max = 1 }}\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
            ))
            .unwrap()
        };
        let regression = |kind: &str| format!("kind = \"{kind}\"\npredictors = [\"x\"]");
        let (counts, real) = ("min = 0, max = 9", "min = -4, max = 4");
        for (model, outcome, least) in [
            (regression("logistic"), "binary = true", 2),
            (regression("poisson"), counts, 2),
            (regression("negative_binomial"), counts, 2),
            (regression("linear"), real, 1),
            (regression("student_t") + "\ndf = 4.0", real, 1),
            ("kind = \"gaussian_mean\"\nsd = 1.0".to_owned(), real, 1),
            ("kind = \"bernoulli\"".to_owned(), "binary = true", 1),
            ("kind = \"poisson_mean\"".to_owned(), counts, 1),
        ] {
            let spec = job(&model, outcome);
            assert_eq!(least_protocol(&spec), least, "{model}");
            assert_eq!(suits(&spec, least, "a"), Ok(()), "{model}");
            let Err(fault) = suits(&spec, least - 1, "a") else { panic!("{model}") };
            assert_eq!((fault.code, fault.party.as_deref()), (ErrorCode::InvalidInput, Some("a")));
            assert!(fault.message.contains("a speak protocol") && fault.message.ends_with("upgrade both"), "{fault}");
        }
    }

    #[test]
    fn who_is_too_old_is_told_what_to_upgrade_to() {
        let end = |software, range| End { software, speaks: spoken(range) };
        let agree =
            |coordinator, party| agree(end("conclave-coordinator 2.0.0", coordinator), end("conclave-party 1.1.0", party));
        assert_eq!(agree((2, 3), (1, 2)).unwrap(), 2);
        let old = agree((2, 3), (1, 1)).unwrap_err();
        assert_eq!(old.code, ErrorCode::InvalidInput);
        assert_eq!(
            old.message,
            "the coordinator (conclave-coordinator 2.0.0) speaks protocols 2 to 3 and the party (conclave-party 1.1.0) speaks \
             protocol 1: upgrade the party's conclave-party to a version that speaks protocol 2, such as the coordinator's own"
        );
        let new = agree((1, 1), (3, 4)).unwrap_err();
        assert!(
            new.message.ends_with(
                "upgrade the coordinator's conclave-coordinator to a version that speaks protocol 3, such as \
             the party's own"
            ),
            "{new}"
        );
        let nameless = super::agree(end("c 1", (2, 2)), end("", (1, 1))).unwrap_err();
        assert!(nameless.message.contains("upgrade the party's software to"), "{nameless}");
    }
}
