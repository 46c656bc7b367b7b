//! The sentence of the methods paragraph on a job's algorithm.

use conclave_common::job::{Algorithm, HmcTest, JobSpec};
use conclave_pages::text::{plain, thousands};
use serde_json::Value;

/// Describes how the draws were made, and what they are draws of.
pub(super) fn sentence(spec: &JobSpec, result: &Value) -> String {
    let chosen =
        spec.chosen.map(|reason| format!(" The algorithm was chosen by `auto`: {}.", plain(reason, 300).trim_end_matches('.')));
    let weighted = result["weighted"].is_object().then_some(
        " Records far out in their predictors or residuals counted less (a weighted fit): the result names the estimand of each coefficient.",
    );
    let raised = if spec.power_prior { "likelihood and the prior were" } else { "likelihood was" };
    let power = (spec.power != 1.0).then(|| format!(" The {raised} raised to the power {}.", spec.power));
    let of_search = result["conditional_on"] == "noisy_release" && spec.algorithm != Algorithm::NoisyStatistics;
    let made = if of_search { OF_SEARCH.to_owned() } else { of_algorithm(spec) };
    made + chosen.as_deref().unwrap_or_default() + weighted.unwrap_or_default() + power.as_deref().unwrap_or_default()
}

/// Draws of a run that ended with its search, made from the search's releases.
const OF_SEARCH: &str = "The run ended with the search for the mode, in which every owner released gradients with Gaussian noise. The draws follow the posterior \
    of the parameters given these releases, so the intervals include the uncertainty that is due to the noise.";

fn of_algorithm(spec: &JobSpec) -> String {
    let words = match spec.algorithm {
        Algorithm::Penalty => {
            "Draws were made by the penalty algorithm: at each step every owner released a log-likelihood ratio with Gaussian noise, and the acceptance \
             step of the Markov chain corrected for the noise (Ceperley & Dewing, 1999; Yıldırım), so that the draws follow the posterior of the pooled \
             records."
        }
        Algorithm::PenaltyExpFamily => {
            "Draws were made by the penalty algorithm on sufficient statistics: at each step every owner released its statistic with Gaussian noise, and \
             the acceptance step of the Markov chain corrected for the noise (Ceperley & Dewing, 1999; Yıldırım), so that the draws follow the posterior \
             of the pooled records."
        }
        Algorithm::NoisyStatistics => {
            "Every owner released a few vectors with Gaussian noise, in a few stages, and the draws needed no further query. The draws follow the posterior of the parameters \
             given these releases, so the intervals include the uncertainty that is due to the noise."
        }
        Algorithm::Augmentation => {
            "Every owner released a statistic of its records with noise once. The draws follow the posterior of the parameters given these releases, by \
             data augmentation (Ju, Awan, Gong & Rao, 2022), so the intervals include the uncertainty that is due to the noise."
        }
        Algorithm::Hmc => of_hmc(spec.sampler.hmc.test),
        Algorithm::Barker => {
            "Draws were made by a Markov chain with Barker’s test: at each step every owner released a log-likelihood ratio with Gaussian noise, which the \
             test uses as a part of its own randomness (Heikkilä, Jälkö, Dikmen & Honkela, 2019). The draws follow the posterior of the pooled records \
             closely, not exactly."
        }
        Algorithm::Sgld | Algorithm::Sghmc | Algorithm::Sgnht | Algorithm::Sgfs => return of_gradients(spec),
        Algorithm::Ops => {
            "Each draw was chosen by the owner among public candidates in proportion to their posterior weight, by the exponential mechanism (one \
             posterior sample; Wang, Fienberg & Smola, 2015), without further noise. The draws follow the posterior of the records up to the error of a \
             finite set of candidates."
        }
    };
    words.to_owned()
}

fn of_hmc(test: HmcTest) -> &'static str {
    match test {
        HmcTest::Remainder => {
            "Draws were made by Hamiltonian Monte Carlo with friction: at each step every owner released a gradient with Gaussian noise, which the friction \
             dissipates, and a noised remainder of the log ratio, for whose noise the acceptance step corrected (the penalty method; Ceperley & Dewing, \
             1999), so that the draws follow the posterior of the pooled records."
        }
        HmcTest::Ratio { .. } => {
            "Draws were made by Hamiltonian Monte Carlo on gradients with Gaussian noise, with a test of each trajectory that corrected for the noise (Räisä, \
             Koskela & Honkela, 2021), so that the draws follow the posterior of the pooled records."
        }
        HmcTest::None => {
            "Draws were made by Hamiltonian Monte Carlo with friction on gradients with Gaussian noise, without an acceptance test: the draws follow the \
             posterior of the pooled records approximately."
        }
    }
}

/// Describes stochastic gradients, and the sweeps that a job may end with.
fn of_gradients(spec: &JobSpec) -> String {
    let name = match spec.algorithm {
        Algorithm::Sghmc => "stochastic gradient Hamiltonian Monte Carlo",
        Algorithm::Sgnht => "the stochastic gradient Nosé–Hoover thermostat",
        Algorithm::Sgfs => "stochastic gradient Fisher scoring",
        _ => "stochastic gradient Langevin dynamics",
    };
    let end = match spec.is_polished() {
        true => format!(
            "Steps had no acceptance test. The draws are those of {} final sweeps of the penalty algorithm, whose acceptance step corrected for the noise \
             of released log-likelihood ratios (Ceperley & Dewing, 1999; Yıldırım): they follow the posterior of the pooled records once the sweeps have mixed.",
            thousands(spec.sampler.stochastic.polish)
        ),
        false => "Steps had no acceptance test: the draws follow the posterior of the pooled records approximately.".to_owned(),
    };
    let start = match spec.start_share() {
        Some(_) => {
            " All chains started at one posterior sample, which the owner drew among public candidates by the exponential mechanism (Algorithm 3 there)."
        }
        None => "",
    };
    format!(
        "Chains followed {name} on gradients that every owner released with Gaussian noise (Wang, Fienberg & Smola, 2015).{start} {end}"
    )
}
