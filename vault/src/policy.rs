//! Applies the owner's limits to a job before anything is entered for it.
//!
//! Each refusal names the limit and the value that exceeds it. None depends on a record.

use conclave_common::job::{JobSpec, Weights};
use conclave_common::spelling::nearest;
use conclave_privacy::accounting::{Budget, Honest, PrivacyUnit, gaussian_dp};
use conclave_proto::error::{ErrorCode, Fault};

use crate::config::{Policy, SiteParameters};
use crate::data::{Memory, Shard};
use crate::secure::{Peers, SecureSettings};

/// A job that is to be opened.
pub(crate) struct Applicant<'a> {
    pub(crate) analyst: &'a str,
    pub(crate) spec: &'a JobSpec,
    /// Number of parties whose noise protects the job's answers, as the owner sees it.
    pub(crate) trusted: Honest,
}

/// Facts about a shard that do not depend on any record's values. Only `units` counts records, and under add-remove adjacency no refusal
/// uses it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ShardFacts<'a> {
    /// Columns of the file.
    pub(crate) header: &'a [String],
    /// Columns that are read.
    pub(crate) names: &'a [String],
    pub(crate) person_column: Option<&'a str>,
    /// Rows that cannot be used count and contribute zero.
    pub(crate) may_be_inert: bool,
    pub(crate) memory: Memory,
    pub(crate) unit: PrivacyUnit,
    /// Number of units of privacy.
    pub(crate) units: u64,
}

impl<'a> From<&'a Shard> for ShardFacts<'a> {
    fn from(shard: &'a Shard) -> Self {
        Self {
            header: shard.header(),
            names: shard.names(),
            person_column: shard.person_column(),
            may_be_inert: shard.may_be_inert(),
            memory: shard.memory(),
            unit: shard.metadata().unit(),
            units: shard.units(),
        }
    }
}

/// Admits a job, or names the limit that it exceeds.
///
/// # Errors
/// [`ErrorCode::Policy`] for a limit of the owner's, such as a column outside `policy.columns`; [`ErrorCode::InvalidInput`] for a column
/// that the data do not have, where the owner lists none.
pub(crate) fn admit(policy: &Policy, budget: &Budget, shard: &ShardFacts<'_>, applicant: &Applicant<'_>) -> Result<(), Fault> {
    let Applicant { analyst, spec, trusted } = *applicant;
    if let Some(analysts) = &policy.analysts
        && !analysts.iter().any(|a| a == analyst)
    {
        return refuse(format!("analyst {analyst:?} is not among those whom the owner's policy admits"));
    }
    let model = spec.model.kind();
    if let Some(models) = &policy.models
        && !models.iter().any(|m| m == model)
    {
        return refuse(format!("the owner's policy admits the models {}, not {model}", models.join(", ")));
    }
    admit_columns(policy, shard, spec)?;
    if let Some(limit) = policy.max_epsilon_per_job {
        admit_cap(limit, budget, &spec.privacy.budget)?;
    }
    if let Some(limit) = policy.max_iterations_per_job
        && spec.algorithm.proposes()
        && (!spec.algorithm.follows_gradients() || spec.is_polished())
        && spec.draws_asked() > limit
    {
        return refuse(format!(
            "the job asks for {} draws of a chain, and every one takes a round: above the owner's limit of {limit} (max_iterations_per_job)",
            spec.draws_asked()
        ));
    }
    for release in spec.releases() {
        if policy.releases.as_ref().is_some_and(|admitted| !admitted.iter().any(|a| a == release)) {
            let instead = if spec.locates_by_gradients() && release == "score" {
                "write locate = \"ratios\" under [sampler]"
            } else if spec.weights != Weights::Never && release == "table" {
                "write weights = \"never\" under [model]"
            } else {
                "use algorithm = \"penalty\""
            };
            return refuse(format!(
                "algorithm = \"{}\" asks for a release of kind {release:?}, which the owner's policy.releases does not admit: ask the owner to \
                 name it there, or {instead}",
                spec.algorithm.as_str()
            ));
        }
    }
    if spec.sites.is_some() && policy.site_parameters == SiteParameters::Never {
        return refuse(
            "the job estimates how this party differs from others, which the owner's policy.site_parameters refuses".into(),
        );
    }
    admit_noise(policy, spec, trusted)
}

/// Checks the least noise, of ratios and of vectors.
fn admit_noise(policy: &Policy, spec: &JobSpec, trusted: Honest) -> Result<(), Fault> {
    // In a release that is opened only as a sum, the noise of all parties that do not collude protects.
    let sd = spec.privacy.noise.sd() * f64::from(trusted.get()).sqrt();
    // Gradients have a separate noise scale, which the budget sets.
    let ratios = spec.algorithm.proposes() && !spec.algorithm.follows_gradients() || spec.runs_dp_hmc() || spec.is_polished();
    if sd < policy.min_noise_sd && ratios {
        return refuse(format!("privacy.noise_sd is {sd}, below the owner's limit of {} (min_noise_sd)", policy.min_noise_sd));
    }
    // The job counts on the number of honest parties in its file.
    let fewer = (f64::from(trusted.get()) / f64::from(spec.honest().get())).sqrt();
    let asked = spec.privacy.noise_multiplier * fewer;
    let vectors = spec.releases().iter().any(|release| !Policy::RELEASES_OF_OLD.contains(release));
    if vectors && asked < policy.min_noise_multiplier {
        let least = policy.min_noise_multiplier / fewer;
        return refuse(format!(
            "privacy.noise_multiplier gives {asked}, below the owner's limit of {} (min_noise_multiplier): write noise_multiplier = {least} under \
             [privacy]",
            policy.min_noise_multiplier
        ));
    }
    Ok(())
}

/// Admits a masked job by the owner's `[secure]` settings, and returns true where every other member's identity key is pinned. A job whose
/// releases are opened one by one passes.
///
/// # Errors
/// [`ErrorCode::Policy`]. None repeats a pin.
pub(crate) fn admit_masked(settings: &SecureSettings, own: &str, spec: &JobSpec) -> Result<bool, Fault> {
    let Some(secure) = spec.aggregation.secure() else { return Ok(true) };
    let members = spec.parties.len();
    let least = settings.least_colluders(members);
    if secure.colluders < least {
        return refuse(format!(
            "aggregation.colluders is {}, and the owner admits no fewer than {least} of {members} parties (secure.colluders_at_least)",
            secure.colluders
        ))
        .map(|()| true);
    }
    let others = || spec.parties.iter().filter(|name| *name != own);
    let pinned = others().all(|name| settings.pins.of(name).is_some());
    if !pinned && settings.peers == Peers::Pinned {
        return refuse("the owner has not pinned the identity keys of all of the job's parties (secure.pinned)".to_owned())
            .map(|()| true);
    }
    let named = |name: &&String| secure.members.get(*name).zip(settings.pins.of(name));
    if others().any(|name| named(&name).is_some_and(|(fingerprint, pins)| !pins.contains(fingerprint))) {
        return refuse("aggregation.members names another identity key than the owner has pinned".to_owned()).map(|()| true);
    }
    Ok(pinned)
}

/// Admits a job at a party whose rows may be inert if such a row contributes exactly zero under it. Whether any row is inert has no
/// influence.
///
/// # Errors
/// [`ErrorCode::InvalidInput`], with the remedy.
pub(crate) fn admit_inert(shard: &ShardFacts<'_>, spec: &JobSpec) -> Result<(), Fault> {
    if !shard.may_be_inert || spec.spares_inert_rows() {
        return Ok(());
    }
    let kind = spec.model.kind();
    let message = format!(
        "rows that can't be used count at this party and add nothing (its bad_rows is \"drop\"), which a {kind} model under algorithm = \
         \"{}\" leaves no room for: write incomplete_rows = true under [model]",
        spec.algorithm.as_str()
    );
    Err(Fault::new(ErrorCode::InvalidInput, message))
}

fn admit_columns(policy: &Policy, shard: &ShardFacts<'_>, spec: &JobSpec) -> Result<(), Fault> {
    for column in spec.model.columns() {
        // First, and in the same words whether or not the data have it: a column outside the owner's list is never confirmed.
        if let Some(columns) = &policy.columns
            && !columns.iter().any(|c| c == column)
        {
            let near = nearest(column, columns.iter().map(String::as_str));
            let hint = near.map(|n| format!(" (did you mean {n:?}?)")).unwrap_or_default();
            return refuse(format!("the owner's policy does not admit column {column:?}{hint}"));
        }
        if shard.person_column == Some(column) {
            return refuse(format!("column {column:?} names persons at this party and is never a column of a model"));
        }
        if !shard.header.iter().any(|h| h == column) {
            // Only names that the policy shows anyway are suggested.
            let near = nearest(column, shard.names.iter().map(String::as_str));
            let hint = near.map(|n| format!(" (did you mean {n:?}?)")).unwrap_or_default();
            return Err(Fault::new(ErrorCode::InvalidInput, format!("the data have no column {column:?}{hint}")));
        }
    }
    Ok(())
}

/// Checks a job's cap as a cap on mu²: a smaller epsilon at a larger delta may be more. So the limit, which the owner sets at the data's
/// delta, is compared as mu too.
fn admit_cap(limit: f64, budget: &Budget, cap: &Budget) -> Result<(), Fault> {
    if cap.epsilon > limit {
        return refuse(format!("privacy.epsilon is {}, above the owner's limit of {limit} (max_epsilon_per_job)", cap.epsilon));
    }
    if gaussian_dp::mu(cap.epsilon, cap.delta) > gaussian_dp::mu(limit, budget.delta) {
        return refuse(format!(
            "privacy.epsilon of {} at delta {} amounts to epsilon {:.3} at the owner's delta of {}, above the owner's \
             limit of {limit} (max_epsilon_per_job); lower privacy.delta to {} or privacy.epsilon",
            cap.epsilon,
            cap.delta,
            gaussian_dp::epsilon(gaussian_dp::mu(cap.epsilon, cap.delta), budget.delta),
            budget.delta,
            budget.delta,
        ));
    }
    Ok(())
}

fn refuse(message: String) -> Result<(), Fault> {
    Err(Fault::new(ErrorCode::Policy, message))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::data::{BadRows, DataConfig};
    use crate::testing::{budget, data, open_policy, write};

    fn asked(policy: &Policy, shard: &Shard, spec: &JobSpec, trusted: u32) -> Result<(), Fault> {
        let applicant = Applicant { analyst: "alice", spec, trusted: Honest::new(trusted).unwrap() };
        admit(policy, &budget(), &shard.into(), &applicant)
    }

    #[test]
    fn an_interactions_and_an_offsets_own_columns_must_be_admitted() {
        let folder = tempfile::tempdir().unwrap();
        let path = write(folder.path(), "a.csv", "y,age,ward,days\n1,30,a,2\n0,40,b,3\n");
        let texts = |path| DataConfig { text: vec!["ward".into()], ..data(path, BadRows::Stop) };
        let shard = Shard::load(&texts(path), None).unwrap();
        let spec = JobSpec::parse(
            "name = \"i\"\nparties = [\"hospital-a\"]\n[model]\nkind = \"poisson\"\noutcome = \"y\"\n\
             predictors = [\"age:ward\"]\nexposure = \"days\"\n[columns]\ny = { min = 0, max = 9 }\nage = { min = 20, max = 80 }\n\
             ward = { levels = [\"a\", \"b\"] }\ndays = { min = 1, max = 9 }\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n",
        )
        .unwrap();
        let all = ["y", "age", "ward", "days"].map(str::to_owned).to_vec();
        let admit_with = |columns: Vec<String>| {
            let policy = Policy { columns: Some(columns), ..open_policy() };
            asked(&policy, &shard, &spec, 1)
        };
        admit_with(all.clone()).unwrap();
        for missing in &all {
            let fault = admit_with(all.iter().filter(|c| *c != missing).cloned().collect()).unwrap_err();
            assert!(fault.to_string().contains(&format!("does not admit column {missing:?}")), "{fault}");
        }
        let without = Shard::load(&texts(write(folder.path(), "b.csv", "y,age,ward\n1,30,a\n")), None).unwrap();
        let fault = asked(&open_policy(), &without, &spec, 1).unwrap_err();
        assert!(fault.to_string().contains("no column \"days\""), "{fault}");
    }

    #[test]
    fn releases_that_no_owner_has_named_are_refused_with_the_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let shard = Shard::load(&data(write(folder.path(), "a.csv", "y,age\n1,30\n0,40\n"), BadRows::Stop), None).unwrap();
        let spec = |model: &str, outcome: &str| {
            JobSpec::parse(&format!(
                "name = \"i\"\nparties = [\"hospital-a\"]\nalgorithm = \"noisy-statistics\"\n[model]\nkind = \"{model}\"\noutcome = \"y\"\n\
                 predictors = [\"age\"]\n[columns]\ny = {{ {outcome} }}\nage = {{ min = 20, max = 80 }}\n[privacy]\nepsilon = 1.0\n\
                 delta = 1e-6\n"
            ))
            .unwrap()
        };
        let searching = JobSpec::parse(
            "name = \"i\"\nparties = [\"hospital-a\"]\nalgorithm = \"penalty\"\n[model]\nkind = \"logistic\"\noutcome = \"y\"\n\
             predictors = [\"age\"]\n[columns]\ny = { binary = true }\nage = { min = 20, max = 80 }\n[sampler]\nlocate = \"gradients\"\n\
             [privacy]\nepsilon = 1.0\ndelta = 1e-6\n",
        )
        .unwrap();
        let (logistic, linear) = (spec("logistic", "binary = true"), spec("linear", "min = 0, max = 9"));
        let admit_with = |releases: Option<&[&str]>, spec: &JobSpec| {
            let releases = releases.map(|named| named.iter().map(|name| (*name).to_owned()).collect());
            // Neither limit applies to vectors: a job that releases once makes a few rounds, whatever it draws, and its budget sets its
            // noise.
            let policy = Policy { releases, max_iterations_per_job: Some(1), min_noise_sd: 1e6, ..open_policy() };
            asked(&policy, &shard, spec, 1).map_err(|fault| fault.to_string())
        };
        // The default of an automatic policy.
        let of_old: &[&str] = &["ratio", "statistic"];
        for (spec, first) in [(&logistic, "\"score\""), (&linear, "\"moments\"")] {
            let refused = admit_with(Some(of_old), spec).unwrap_err();
            for there in ["\"noisy-statistics\"", first, "policy.releases", "ask the owner to name it", "\"penalty\""] {
                assert!(refused.contains(there), "{there} in {refused}");
            }
            admit_with(None, spec).unwrap();
            admit_with(Some(&["moments", "score"]), spec).unwrap();
        }
        admit_with(Some(&["score"]), &logistic).unwrap();
        // Chains that end in penalty sweeps ask for ratios, a round each and under separate noise: refused before any charge.
        let polished = JobSpec::parse(
            "name = \"i\"\nparties = [\"hospital-a\"]\nalgorithm = \"sgld\"\n[model]\nkind = \"logistic\"\noutcome = \"y\"\n\
             predictors = [\"age\"]\n[columns]\ny = { binary = true }\nage = { min = 20, max = 80 }\n[sampler]\npolish = 30\n\
             [privacy]\nepsilon = 1.0\ndelta = 1e-6\n",
        )
        .unwrap();
        let limited = |policy: Policy| asked(&policy, &shard, &polished, 1).map_err(|fault| fault.to_string());
        limited(open_policy()).unwrap();
        assert!(limited(Policy { min_noise_sd: 2.0, ..open_policy() }).unwrap_err().contains("min_noise_sd"));
        let refused = limited(Policy { max_iterations_per_job: Some(59), ..open_policy() }).unwrap_err();
        assert!(refused.contains("60 draws of a chain") && refused.contains("limit of 59 (max_iterations_per_job)"), "{refused}");
        let releases = Some(vec!["score".to_owned()]);
        assert!(limited(Policy { releases, ..open_policy() }).unwrap_err().contains("\"ratio\""));
        // A chain of ratios that starts with gradients asks for both.
        let any_length = |releases: &[&str]| {
            let releases = Some(releases.iter().map(|name| (*name).to_owned()).collect());
            asked(&Policy { releases, ..open_policy() }, &shard, &searching, 1).map_err(|fault| fault.to_string())
        };
        let refused = any_length(of_old).unwrap_err();
        assert!(refused.contains("\"score\"") && refused.contains("locate = \"ratios\""), "{refused}");
        assert!(any_length(&["score"]).unwrap_err().contains("\"ratio\""));
        any_length(&["score", "ratio"]).unwrap();
        assert!(admit_with(Some(&["moments"]), &linear).unwrap_err().contains("\"score\""));
        // A regression that may weight records asks for tables too.
        let weighted = JobSpec { weights: Weights::Auto, ..linear.clone() };
        let refused = admit_with(Some(&["moments", "score"]), &weighted).unwrap_err();
        assert!(refused.contains("\"table\"") && refused.contains("weights = \"never\""), "{refused}");
        admit_with(Some(&["moments", "score", "table"]), &weighted).unwrap();
    }

    /// A job asks for the least noise of vectors itself: without that it is refused with the remedy, and one whose parties the owner does
    /// not know counts fewer honest parties.
    #[test]
    fn vectors_with_too_little_noise_are_refused_with_the_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let shard = Shard::load(&data(write(folder.path(), "a.csv", "y,age\n1,30\n0,40\n"), BadRows::Stop), None).unwrap();
        let spec = |algorithm: &str, more: &str| {
            JobSpec::parse(&format!(
                "name = \"i\"\nparties = [\"hospital-a\", \"b\", \"c\", \"d\", \"e\"]\nalgorithm = \"{algorithm}\"\n[model]\nkind = \"logistic\"\n\
                 outcome = \"y\"\npredictors = [\"age\"]\n[columns]\ny = {{ binary = true }}\nage = {{ min = 20, max = 80 }}\n[privacy]\n\
                 epsilon = 1.0\ndelta = 1e-6\n{more}"
            ))
            .unwrap()
        };
        let policy = Policy { min_noise_multiplier: 4.0, ..open_policy() };
        let admitted = |spec: &JobSpec, trusted: u32| asked(&policy, &shard, spec, trusted).map_err(|fault| fault.to_string());
        let masked = "[aggregation]\nmode = \"secure\"\ncolluders = 1\n";
        for algorithm in ["hmc", "sghmc", "noisy-statistics"] {
            let refused = admitted(&spec(algorithm, ""), 1).unwrap_err();
            assert!(
                refused.contains("limit of 4 (min_noise_multiplier)") && refused.contains("write noise_multiplier = 4 under"),
                "{refused}"
            );
            admitted(&spec(algorithm, "noise_multiplier = 4.0\n"), 1).unwrap();
            assert!(admitted(&spec(algorithm, "noise_multiplier = 3.9\n"), 1).is_err());
            // Four honest parties of five; were only one of them known, its noise alone counts: half as much.
            let secure = spec(algorithm, &format!("noise_multiplier = 4.0\n{masked}"));
            admitted(&secure, 4).unwrap();
            let refused = admitted(&secure, 1).unwrap_err();
            assert!(refused.contains("gives 2") && refused.contains("noise_multiplier = 8 under"), "{refused}");
        }
        // Ratios have a separate least noise, by the same count.
        admitted(&spec("penalty", ""), 1).unwrap();
        let policy = Policy { min_noise_sd: 1.0, ..open_policy() };
        let ratios = spec("penalty", &format!("noise_sd = 0.6\n{masked}"));
        let admitted = |trusted| asked(&policy, &shard, &ratios, trusted);
        admitted(4).unwrap();
        assert!(admitted(1).unwrap_err().to_string().contains("limit of 1 (min_noise_sd)"));
    }
}
