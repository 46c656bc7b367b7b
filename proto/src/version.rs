//! Negotiation of the protocol version between two ends.
//!
//! Each end speaks a range of protocols. A party states its range in its hello, and the coordinator chooses the newest common
//! protocol. Either of them may therefore be upgraded first.

use std::fmt;

use conclave_common::job::{Algorithm, JobSpec, Weights};
use conclave_common::text;
use conclave_privacy::mechanism::QueryKind;

use crate::error::{ErrorCode, Fault};
use crate::{OLDEST_PROTOCOL, PROTOCOL, v1};

/// The range of protocols that one end speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtocolRange {
    oldest: u32,
    newest: u32,
}

/// One end of a link.
#[derive(Clone, Copy, Debug)]
pub struct End<'a> {
    /// The software's name and version.
    pub software: &'a str,
    /// The protocols that it speaks.
    pub protocols: ProtocolRange,
}

impl ProtocolRange {
    /// The protocols that this software speaks.
    pub const SUPPORTED: Self = Self { oldest: OLDEST_PROTOCOL, newest: PROTOCOL };

    /// Returns the range from `oldest` to `newest`; `None` if it is empty.
    #[must_use]
    pub fn new(oldest: u32, newest: u32) -> Option<Self> {
        (oldest <= newest).then_some(Self { oldest, newest })
    }

    /// Returns the range of a single protocol.
    #[must_use]
    pub fn only(protocol: u32) -> Self {
        Self { oldest: protocol, newest: protocol }
    }

    /// Reads the range in a party's hello. A hello without a range, from an older party, states a single protocol.
    ///
    /// # Errors
    /// [`ErrorCode::InvalidInput`] for a range that ends before it begins.
    pub fn from_hello(hello: &v1::Hello) -> Result<Self, Fault> {
        let oldest = if hello.oldest == 0 { hello.protocol } else { hello.oldest };
        Self::new(oldest, hello.protocol).ok_or_else(|| {
            let message =
                format!("the hello states the empty protocol range {oldest} to {}: fix the party's software", hello.protocol);
            Fault::new(ErrorCode::InvalidInput, message)
        })
    }

    /// Builds a party's hello with this range.
    #[must_use]
    pub fn hello(self, software: &str) -> v1::Hello {
        v1::Hello { protocol: self.newest, software: software.to_owned(), oldest: self.oldest }
    }

    /// Returns the newest protocol in both ranges.
    #[must_use]
    pub fn common(self, other: Self) -> Option<u32> {
        let newest = self.newest.min(other.newest);
        (newest >= self.oldest.max(other.oldest)).then_some(newest)
    }
}

impl fmt::Display for ProtocolRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self { oldest, newest } if oldest == newest => write!(f, "protocol {newest}"),
            Self { oldest, newest } => write!(f, "protocols {oldest} to {newest}"),
        }
    }
}

/// Negotiates the protocol between a coordinator and a party.
///
/// # Errors
/// [`ErrorCode::InvalidInput`], after which a party does not retry soon, with a message on which end to upgrade and to which
/// version.
pub fn agree(coordinator: End<'_>, party: End<'_>) -> Result<u32, Fault> {
    coordinator.protocols.common(party.protocols).ok_or_else(|| {
        let party_is_older = party.protocols.newest < coordinator.protocols.oldest;
        let ((older, upgrade), (newer, other)) = if party_is_older {
            ((party, "party"), (coordinator, "coordinator"))
        } else {
            ((coordinator, "coordinator"), (party, "party"))
        };
        let message = format!(
            "the coordinator ({}) speaks {} and the party ({}) speaks {}: upgrade the {upgrade}'s {} to a version that speaks \
             protocol {}, such as the {other}'s own",
            printable(coordinator.software),
            coordinator.protocols,
            printable(party.software),
            party.protocols,
            name(older.software),
            newer.protocols.oldest,
        );
        Fault::new(ErrorCode::InvalidInput, message)
    })
}

/// Returns the oldest protocol at which both ends of a link compute a job's public constants identically.
///
/// - Protocol 11 adds parameters by party, formulas and the model `piecewise_exponential`, whose keys a party of protocol 10 would refuse,
///   and the models that `augmentation` imputes from sums that are no sufficient statistic.
/// - Protocol 10 adds the key `model.exposure_fixed`, which a party of protocol 9 would refuse.
/// - Protocol 9 adds gradients, remainders and ratios of records with leverage weights, and scores and information of counts with a table of
///   expectations. A party of protocol 8 would refuse the key `model.weights` of such jobs.
/// - Protocol 8 adds scores and information of bounded influence, and tables at a point. A party of protocol 7 would refuse the key
///   `model.weights`.
/// - Protocol 7 asks up to four rounds of a linear regression that releases once, or its table. A party of protocol 6 would refuse
///   the third round, or the table.
/// - Protocol 6 releases the observed information of negative binomial, Student t and Weibull models, where an earlier one
///   released another form. An end of protocol 5 would take one for the other.
/// - Protocol 5 adds the other samplers of the papers, subsampled releases and choice queries.
/// - Protocol 4 adds masked answers. A gradient that accompanies a remainder query uses weights of rounded predictors.
/// - Protocol 3 adds vector queries: gradients, curvatures, moments.
/// - Protocol 2 adds a public centre to logistic, Poisson and negative binomial regressions at parties that protect rows
///   against replacement, and an active clip no longer removes the centre of any model. An end of protocol 1 would take a
///   centred sum for an uncentred one, or the reverse.
#[must_use]
pub fn least_protocol(spec: &JobSpec) -> u32 {
    let of_opening = if spec.aggregation.is_secure() { 4 } else { OLDEST_PROTOCOL };
    let asks_information = spec.asks(QueryKind::Curvature { parameters: 2 });
    let of_model = match spec.model.kind() {
        "piecewise_exponential" => 11,
        _ if spec.sites.is_some() || spec.model.formula().is_some() => 11,
        _ if spec.exposure_fixed => 10,
        _ if spec.weighs_chains() => 9,
        "poisson" | "negative_binomial" if spec.weights != Weights::Never => 9,
        _ if spec.weights != Weights::Never => 8,
        "linear" if spec.algorithm == Algorithm::NoisyStatistics => 7,
        "negative_binomial" | "student_t" | "weibull" if asks_information => 6,
        "logistic" | "poisson" | "negative_binomial" => 2,
        _ if spec.privacy.clip.is_some() => 2,
        _ => OLDEST_PROTOCOL,
    };
    spec.algorithm_protocol().max(of_opening).max(of_model)
}

/// Checks that a coordinator and a party that use `protocol` compute this job's public constants identically.
///
/// # Errors
/// [`ErrorCode::InvalidInput`] at the party, with the remedy.
pub fn check_protocol(spec: &JobSpec, protocol: u32, party: &str) -> Result<(), Fault> {
    let least = least_protocol(spec);
    if protocol >= least {
        return Ok(());
    }
    if spec.aggregation.is_secure() {
        let message = format!(
            "the coordinator and {party} speak protocol {protocol}, and a job with masked answers needs protocol {least}: upgrade both"
        );
        return Err(Fault::new(ErrorCode::InvalidInput, message).at_party(party));
    }
    let message = format!(
        "the coordinator and {party} speak protocol {protocol}, and a {} model with algorithm = \"{}\", or its clip, needs at least \
         protocol {least}, so that both compute the same public constants: upgrade both",
        spec.model.kind(),
        spec.algorithm.as_str()
    );
    Err(Fault::new(ErrorCode::InvalidInput, message).at_party(party))
}

/// Returns the other end's software name in printable form: one line of at most 60 characters.
fn printable(software: &str) -> String {
    software.chars().filter(|c| text::shown(*c) == *c).take(60).collect()
}

/// Returns a software's name without its version.
fn name(software: &str) -> String {
    let name = printable(software.split(' ').next().unwrap_or_default());
    if name.is_empty() { "software".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn range((oldest, newest): (u32, u32)) -> ProtocolRange {
        ProtocolRange::new(oldest, newest).unwrap()
    }

    #[test]
    fn the_newest_that_both_speak() {
        for (one, other, chosen) in [
            ((1, 1), (1, 1), Some(1)),
            ((1, 3), (1, 3), Some(3)),
            // One ends earlier, starts later, both, or lies within the other.
            ((1, 2), (1, 3), Some(2)),
            ((2, 3), (1, 3), Some(3)),
            ((1, 3), (2, 4), Some(3)),
            ((1, 4), (2, 3), Some(3)),
            // They share one protocol.
            ((1, 2), (2, 3), Some(2)),
            ((2, 2), (1, 2), Some(2)),
            // They are adjacent or far apart.
            ((1, 1), (2, 2), None),
            ((1, 2), (3, 5), None),
            ((1, 2), (7, 9), None),
            ((0, 0), (1, u32::MAX), None),
            ((0, u32::MAX), (u32::MAX, u32::MAX), Some(u32::MAX)),
        ] {
            assert_eq!(range(one).common(range(other)), chosen, "{one:?} {other:?}");
            assert_eq!(range(other).common(range(one)), chosen, "{other:?} {one:?}");
        }
    }

    #[test]
    fn a_hello_without_a_range_speaks_its_one_protocol() {
        let hello = |oldest, protocol| v1::Hello { protocol, software: "x 1".into(), oldest };
        assert_eq!(ProtocolRange::from_hello(&hello(0, 1)).unwrap(), ProtocolRange::only(1));
        assert_eq!(ProtocolRange::from_hello(&hello(2, 4)).unwrap(), range((2, 4)));
        assert_eq!(ProtocolRange::from_hello(&v1::Hello::default()).unwrap(), ProtocolRange::only(0));
        let fault = ProtocolRange::from_hello(&hello(3, 2)).unwrap_err();
        assert!(fault.message.contains("3 to 2"), "{fault}");
        assert_eq!(ProtocolRange::from_hello(&range((2, 4)).hello("x 1")).unwrap(), range((2, 4)));
    }

    /// The previous version speaks only protocol 1.
    #[test]
    fn the_previous_version_is_still_spoken() {
        assert_eq!(ProtocolRange::SUPPORTED.common(ProtocolRange::only(1)), Some(1));
        let hello = ProtocolRange::SUPPORTED.hello("x 1");
        assert_eq!((hello.oldest, hello.protocol), (1, 11));
    }

    #[test]
    fn a_survival_regression_needs_ends_that_know_it() {
        let spec = JobSpec::parse(
            "name = \"t\"\nparties = [\"a\"]\nalgorithm = \"auto\"\n[model]\nkind = \"piecewise_exponential\"\noutcome = \"y\"\nevent = \"d\"\n\
             [columns]\ny = { min = 0, max = 9 }\nd = { binary = true }\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n",
        );
        assert_eq!(least_protocol(&spec.unwrap()), 11);
    }

    /// Only models whose public constants differ in the previous version are refused to it.
    #[test]
    fn a_job_needs_ends_that_compute_it_identically() {
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
            assert_eq!(check_protocol(&spec, least, "a"), Ok(()), "{model}");
            let Err(fault) = check_protocol(&spec, least - 1, "a") else { panic!("{model}") };
            assert_eq!((fault.code, fault.party.as_deref()), (ErrorCode::InvalidInput, Some("a")));
            assert!(fault.message.contains("a speak protocol") && fault.message.ends_with("upgrade both"), "{fault}");
        }
    }

    /// A party of protocol 7 knows no scores of bounded influence.
    #[test]
    fn a_weighted_regression_is_refused_to_an_earlier_version() {
        let job = |weights: &str| {
            JobSpec::parse(&format!(
                "name = \"t\"\nparties = [\"a\"]\nalgorithm = \"noisy-statistics\"\n[model]\nkind = \"linear\"\noutcome = \"y\"\n\
                 predictors = [\"x\"]\nweights = \"{weights}\"\n[columns]\ny = {{ min = -4, max = 4 }}\nx = {{ min = 0, max = 1 }}\n\
                 [privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
            ))
            .unwrap()
        };
        assert_eq!(["never", "auto", "always"].map(|weights| least_protocol(&job(weights))), [7, 8, 8]);
        let chain = |weights: &str| {
            JobSpec::parse(&format!(
                "name = \"t\"\nparties = [\"a\"]\nalgorithm = \"hmc\"\n[model]\nkind = \"logistic\"\noutcome = \"y\"\n\
                 predictors = [\"x\"]\nweights = \"{weights}\"\n[columns]\ny = {{ binary = true }}\nx = {{ min = 0, max = 1 }}\n\
                 [privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
            ))
            .unwrap()
        };
        assert_eq!(["never", "auto", "always"].map(|weights| least_protocol(&chain(weights))), [4, 9, 9]);
        let counts = |weights: &str| {
            JobSpec::parse(&format!(
                "name = \"t\"\nparties = [\"a\"]\nalgorithm = \"noisy-statistics\"\n[model]\nkind = \"poisson\"\noutcome = \"y\"\n\
                 predictors = [\"x\"]\nweights = \"{weights}\"\n[columns]\ny = {{ min = 0, max = 4 }}\nx = {{ min = 0, max = 1 }}\n\
                 [privacy]\nepsilon = 1.0\ndelta = 1e-6\n"
            ))
            .unwrap()
        };
        assert_eq!(["never", "auto", "always"].map(|weights| least_protocol(&counts(weights))), [3, 9, 9]);
        let fixed = |weights: &str| JobSpec { exposure_fixed: true, ..counts(weights) };
        assert_eq!(["never", "auto"].map(|weights| least_protocol(&fixed(weights))), [10, 10]);
        let formula = JobSpec::parse(
            "name = \"t\"\nparties = [\"a\"]\n[model]\nformula = \"y ~ x\"\nfamily = \"logistic\"\n[columns]\ny = { binary = true }\n\
             x = { min = 0, max = 1 }\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n",
        );
        assert_eq!(least_protocol(&formula.unwrap()), 11);
    }

    /// An end of protocol 5 would take the observed information for another form.
    #[test]
    fn jobs_that_ask_for_another_form_of_information_are_refused_to_an_earlier_version() {
        let job = |kind: &str, outcome: &str, algorithm: &str| {
            JobSpec::parse(&format!(
                "name = \"t\"\nparties = [\"a\"]\nalgorithm = \"{algorithm}\"\n[model]\nkind = {kind}\noutcome = \"y\"\n\
                 predictors = [\"x\"]\n[columns]\ny = {{ {outcome} }}\nx = {{ min = 0, max = 1 }}\n[privacy]\nepsilon = 1.0\n\
                 delta = 1e-6\n"
            ))
            .unwrap()
        };
        let (counts, real) = ("min = 0, max = 9", "min = -4, max = 4");
        for (kind, outcome, algorithm, least) in [
            ("\"negative_binomial\"", counts, "noisy-statistics", 6),
            ("\"negative_binomial\"", counts, "penalty", 2),
            ("\"student_t\"\ndf = 4.0", real, "noisy-statistics", 6),
            ("\"student_t\"\ndf = 4.0", real, "hmc", 6),
            ("\"student_t\"\ndf = 4.0", real, "penalty", 1),
            ("\"poisson\"", counts, "noisy-statistics", 3),
            ("\"linear\"", real, "noisy-statistics", 7),
            ("\"linear\"\nsd = 1.0", real, "hmc", 4),
        ] {
            assert_eq!(least_protocol(&job(kind, outcome, algorithm)), least, "{kind} {algorithm}");
        }
    }

    #[test]
    fn the_error_names_the_end_to_upgrade() {
        let end = |software, protocols| End { software, protocols: range(protocols) };
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
