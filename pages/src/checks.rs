//! The names of the checks of an answer, in words.

/// Returns what a check of the result object measures; the key itself for a check of a later version.
#[must_use]
pub fn in_words(key: &str) -> &str {
    match key {
        "mcse_to_sd" => "Monte Carlo error of a mean, in posterior sds",
        "planned_error" => "Monte Carlo error that the run was planned for, in posterior sds",
        "clamped_shift" => "effect of the assumed law of predictors beyond their bounds, in posterior sds",
        "cubic" => "distance between the last query and the answer: the remainder of the quadratic",
        "rho_h" => "noise of the released information, relative to the information",
        "prior_share" => "variance of the posterior, relative to that of the prior",
        "own_information" => "noise of the information on the family’s own parameter, relative to that information",
        "own_sd" => "sd of the logarithm of the family’s own parameter",
        "leverage" => "share of the information that single records at the bounds could have",
        "dispersion_step" => "last step of the logarithm of the dispersion",
        "clip_bias" => "effect of the limit on a count’s residuals, in posterior sds",
        "wider" => "width of the widest interval, relative to that without noise",
        "spread" => "width of the widest interval, relative to that of the Gaussian fit",
        "moments_noise" => "noise of the released statistics, relative to the largest that determines the posterior’s shape",
        "clipped_share" => "share of the residuals that lie far outside a normal law",
        other => other,
    }
}
