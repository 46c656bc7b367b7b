//! The forms of every kind of release, in the order in which they are checked, each with a job that asks for it.

use conclave_privacy::mechanism::QueryKind;

/// Parameters of the regressions.
pub(super) const PARAMETERS: u32 = 3;
/// Edges of a table of residuals or of squared lengths.
pub(super) const EDGES: [f64; 4] = [-0.5, 0.0, 0.5, 1.0];

/// A form of a kind of query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) kind: QueryKind,
    pub(super) influence: OfInfluence,
}

/// The influence of a record in a form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OfInfluence {
    /// The columns' bounds limit it.
    Whole,
    /// Bounded, of a numeric outcome.
    Bounded,
    /// Bounded, of a binary outcome, half way to an answer.
    HalfWay,
    /// Bounded, of a count, by a table of expectations; information is that half way to an answer.
    Count,
    /// Bounded, of a count's dispersion.
    Dispersion,
    /// Limited by leverage weights, in a chain.
    Leverage,
    /// A record's follow-up ends where its cumulative hazard reaches the cap.
    FollowUp,
}

impl OfInfluence {
    /// Returns the words of a finding.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Whole => "",
            Self::Bounded => " of bounded influence",
            Self::HalfWay => " of bounded influence half way to an answer",
            Self::Count => " of bounded influence of a count",
            Self::Dispersion => " of bounded influence of a dispersion",
            Self::Leverage => " of leverage weights",
            Self::FollowUp => " of capped follow-up",
        }
    }

    /// Returns whether the last parameter is positive.
    pub(super) fn has_own_parameter(self) -> bool {
        matches!(self, Self::Bounded | Self::Count | Self::Dispersion)
    }
}

/// Returns the form that is checked after `form`: first each kind's own, then those of bounded influence and of leverage weights.
pub(super) fn after(form: Option<Form>) -> Option<Form> {
    let parameters = PARAMETERS;
    let of = |influence| move |kind| Some(Form { kind, influence });
    let (bounded, half_way, leverage) = (of(OfInfluence::Bounded), of(OfInfluence::HalfWay), of(OfInfluence::Leverage));
    match form.map(|Form { kind, influence }| (influence, kind)) {
        Some((OfInfluence::Bounded, QueryKind::Gradient { .. })) => bounded(QueryKind::Curvature { parameters }),
        Some((OfInfluence::Bounded, QueryKind::Curvature { .. })) => bounded(QueryKind::Table { cells: EDGES.len() as u32 + 2 }),
        Some((OfInfluence::Bounded, _)) => half_way(QueryKind::Curvature { parameters }),
        Some((OfInfluence::HalfWay, kind)) if kind == (QueryKind::Curvature { parameters }) => {
            half_way(QueryKind::Curvature { parameters: 1 })
        }
        Some((OfInfluence::HalfWay, _)) => of(OfInfluence::Count)(QueryKind::Gradient { parameters }),
        Some((OfInfluence::Count, QueryKind::Gradient { .. })) => of(OfInfluence::Count)(QueryKind::Curvature { parameters }),
        Some((OfInfluence::Count, _)) => of(OfInfluence::Dispersion)(QueryKind::Gradient { parameters }),
        Some((OfInfluence::Dispersion, QueryKind::Gradient { .. })) => {
            of(OfInfluence::Dispersion)(QueryKind::Curvature { parameters: 1 })
        }
        Some((OfInfluence::Dispersion, _)) => leverage(QueryKind::Gradient { parameters }),
        Some((OfInfluence::Leverage, QueryKind::Gradient { .. })) => leverage(QueryKind::Remainder { parameters }),
        Some((OfInfluence::Leverage, QueryKind::Remainder { .. })) => leverage(QueryKind::Ratio),
        Some((OfInfluence::Leverage, _)) => of(OfInfluence::FollowUp)(QueryKind::Gradient { parameters }),
        Some((OfInfluence::FollowUp, QueryKind::Gradient { .. })) => {
            of(OfInfluence::FollowUp)(QueryKind::Curvature { parameters })
        }
        Some((OfInfluence::FollowUp, _)) => None,
        other => match after_kind(other.map(|(_, kind)| kind)) {
            Some(kind) => Some(Form { kind, influence: OfInfluence::Whole }),
            None => bounded(QueryKind::Gradient { parameters }),
        },
    }
}

/// Returns the kind after `kind`, first of all a ratio: every kind has its place.
fn after_kind(kind: Option<QueryKind>) -> Option<QueryKind> {
    let parameters = PARAMETERS;
    let Some(kind) = kind else { return Some(QueryKind::Ratio) };
    match kind {
        QueryKind::Ratio => Some(QueryKind::ClipCount),
        QueryKind::ClipCount => Some(QueryKind::Statistic { component: 0 }),
        QueryKind::Statistic { .. } => Some(QueryKind::Moments { order: parameters + 1 }),
        QueryKind::Moments { .. } => Some(QueryKind::Gradient { parameters }),
        QueryKind::Gradient { .. } => Some(QueryKind::Curvature { parameters }),
        QueryKind::Curvature { .. } => Some(QueryKind::Remainder { parameters }),
        QueryKind::Remainder { .. } => Some(QueryKind::SampledRatio),
        QueryKind::SampledRatio => Some(QueryKind::SampledGradient { parameters }),
        QueryKind::SampledGradient { .. } => Some(QueryKind::SecondMoment),
        QueryKind::SecondMoment => Some(QueryKind::Choice { candidates: 4 }),
        // Two outcomes of two predictors, and the cell of inert records.
        QueryKind::Choice { .. } => Some(QueryKind::Table { cells: 5 }),
        QueryKind::Table { .. } => None,
    }
}

/// Returns the algorithm, the lines of `[model]` and those that follow `[privacy]`'s own of a job that asks this form.
pub(super) fn job_of(Form { kind, influence }: Form) -> (&'static str, &'static str, &'static str) {
    const LOGISTIC: &str = "kind = \"logistic\"\noutcome = \"y\"\npredictors = [\"a\", \"b\"]";
    const LINEAR: &str = "kind = \"linear\"\noutcome = \"x\"\npredictors = [\"a\", \"b\"]\nsd = 1.0";
    const WEIGHTED: &str = "kind = \"linear\"\noutcome = \"x\"\npredictors = [\"a\"]\nweights = \"always\"";
    const BINARY: &str = "kind = \"logistic\"\noutcome = \"y\"\npredictors = [\"a\", \"b\"]\nweights = \"always\"";
    const COUNTS: &str = "kind = \"negative_binomial\"\noutcome = \"k\"\npredictors = [\"a\"]\nweights = \"always\"";
    const MEAN: &str = "kind = \"gaussian_mean\"\noutcome = \"x\"\nsd = 1.0";
    const TIMES: &str = "kind = \"piecewise_exponential\"\noutcome = \"k\"\nevent = \"y\"\ncuts = [4]\npredictors = [\"a\"]";
    const CATEGORIES: &str = "kind = \"logistic\"\noutcome = \"y\"\npredictors = [\"c\"]";
    match kind {
        _ if influence == OfInfluence::Bounded => ("noisy-statistics", WEIGHTED, ""),
        _ if matches!(influence, OfInfluence::Count | OfInfluence::Dispersion) => ("noisy-statistics", COUNTS, ""),
        _ if influence == OfInfluence::HalfWay => ("noisy-statistics", BINARY, ""),
        QueryKind::Ratio if influence == OfInfluence::Leverage => ("penalty", BINARY, "[sampler]\nlocate = \"gradients\""),
        _ if influence == OfInfluence::Leverage => ("hmc", BINARY, ""),
        _ if influence == OfInfluence::FollowUp => ("noisy-statistics", TIMES, ""),
        QueryKind::Ratio => ("penalty", LOGISTIC, ""),
        QueryKind::ClipCount => ("penalty", LOGISTIC, "clip = 0.5"),
        QueryKind::SampledRatio | QueryKind::SecondMoment => ("barker", LOGISTIC, "clip = 0.5"),
        QueryKind::Statistic { .. } => ("penalty-exp-family", MEAN, ""),
        QueryKind::Moments { .. } => ("noisy-statistics", LINEAR, ""),
        QueryKind::Gradient { .. } | QueryKind::Curvature { .. } => ("noisy-statistics", LOGISTIC, ""),
        QueryKind::Remainder { .. } => ("hmc", LOGISTIC, ""),
        QueryKind::SampledGradient { .. } => ("sgld", LOGISTIC, ""),
        QueryKind::Choice { .. } => ("ops", LOGISTIC, ""),
        QueryKind::Table { .. } => ("noisy-statistics", CATEGORIES, ""),
    }
}
