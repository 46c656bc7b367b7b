//! Parameters that each party has of its own, with the hierarchy over them.
//!
//! A coefficient that varies by party is `alpha_i ~ N(mean, sd²)` at party i. The job's `[prior]` and `[parameters]` entries under the
//! coefficient's name are those of the mean and the box; the entry under `NAME.sd` is the prior of the sd.

use crate::parameter::Prior;

/// The parameters that vary by party, at least one.
#[derive(Debug, Clone, PartialEq)]
pub struct Sites {
    /// The parameters, in the model's order.
    pub varying: Vec<SiteParameter>,
}

/// A parameter that varies by party.
#[derive(Debug, Clone, PartialEq)]
pub struct SiteParameter {
    /// Its index in the model's order.
    pub index: usize,
    /// Prior of its sd over the parties.
    pub sd: Prior,
}

impl Sites {
    /// The ending of the name of a parameter's sd over the parties.
    pub const SD: &'static str = ".sd";
    /// The default prior of an sd over the parties.
    pub const DEFAULT_SD: Prior = Prior::HalfNormal { sd: 1.0 };

    /// Returns the name of a parameter's sd over the parties.
    #[must_use]
    pub fn sd_name(parameter: &str) -> String {
        format!("{parameter}{}", Self::SD)
    }

    /// Returns the name of a parameter at one party.
    #[must_use]
    pub fn name_at(parameter: &str, party: &str) -> String {
        format!("{parameter}[{party}]")
    }
}
