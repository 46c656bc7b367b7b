//! Export in CmdStan's format: one CSV file per chain, warm-up first, with the `#` lines that cmdstanpy and ArviZ read.
//!
//! Columns that a penalty chain lacks have neutral values: `lp__` and `energy__` are NaN (the log density is unknown), a step is
//! one leapfrog, and no draw is divergent. `accept_stat__` is `min(1, exp(log alpha))`, followed by the noisy `log_alpha__` and
//! the decision `accepted__`. The parameters on the scale of their priors are followed by those in the data's own units
//! (`age_original`), like CmdStan's generated quantities; the latter are NaN in the warm-up.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use conclave_proto::error::Fault;

use crate::{Draws, PhaseDraws};

/// The names of the two dimensions of draws, which ArviZ and cmdstanpy give to coordinates.
const DIMENSIONS: [&str; 2] = ["chain", "draw"];

const STATISTICS: &str = "lp__,accept_stat__,stepsize__,treedepth__,n_leapfrog__,divergent__,energy__,log_alpha__,accepted__";

/// Writes `chain-1.csv` and so on into a folder; returns their number and total size in bytes.
pub fn write(draws: &Draws, folder: &Path) -> Result<(u64, u64), Fault> {
    std::fs::create_dir_all(folder).map_err(|e| Fault::of_file(folder, "be created", &e))?;
    let columns = columns(&names(draws));
    let mut bytes = 0;
    for chain in 0..draws.chains() {
        let path = folder.join(format!("chain-{}.csv", chain + 1));
        let written = File::create_new(&path).and_then(|file| {
            let mut file = BufWriter::new(file);
            let text = head(draws, &columns, chain) + &rows(&draws.warmup, original_columns(draws, None), chain);
            file.write_all(text.as_bytes())?;
            file.write_all(adaptation(draws.parameters.len()).as_bytes())?;
            file.write_all(rows(&draws.sampling, original_columns(draws, draws.original.as_deref()), chain).as_bytes())?;
            file.write_all(TIMES.as_bytes())?;
            file.flush()?;
            file.get_ref().metadata()
        });
        bytes += written.map_err(|e| Fault::of_file(&path, "be written", &e))?.len();
    }
    Ok((draws.chains() as u64, bytes))
}

/// Returns the contents of the columns after the statistics: the parameters, then those in the data's own units if available.
fn names(draws: &Draws) -> Vec<String> {
    let original = draws.parameters.iter().filter(|_| draws.original.is_some()).map(|name| match name.split_once('[') {
        Some((base, index)) => format!("{base}_original[{index}"),
        None => format!("{name}_original"),
    });
    draws.parameters.iter().cloned().chain(original).collect()
}

/// Returns the number of columns in the data's own units, with the given values.
fn original_columns<'a>(draws: &Draws, values: Option<&'a [Vec<Vec<f64>>]>) -> (usize, Option<&'a [Vec<Vec<f64>>]>) {
    (draws.original.as_ref().map_or(0, Vec::len), values)
}

/// Builds the header that the programs read: method, counts, thinning, metric, seed.
fn head(draws: &Draws, columns: &[String], chain: usize) -> String {
    // cmdstanpy takes adaptation for engaged and refuses it without a warm-up: such a file is that of a warm-up which was not saved.
    let [warmup, saved] = match draws.warmup.draws() {
        0 => ["1000 (Default)".to_owned(), "0 (Default)".to_owned()],
        draws => [draws.to_string(), "1".to_owned()],
    };
    let model: String = draws.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    let mut text = format!(
        "# stan_version_major = 2\n# stan_version_minor = 36\n# stan_version_patch = 0\n# model = {model}_model\n\
         # method = sample (Default)\n#   sample\n#     num_samples = {}\n#     num_warmup = {warmup}\n#     save_warmup = {saved}\n\
         #     thin = 1 (Default)\n#     adapt\n#       engaged = 1 (Default)\n#     algorithm = hmc (Default)\n#       hmc\n\
         #         engine = nuts (Default)\n#           nuts\n#             max_depth = 10 (Default)\n\
         #         metric = diag_e (Default)\n#         stepsize = 1 (Default)\n# id = {}\n# random\n#   seed = {}\n",
        draws.sampling.draws(),
        chain + 1,
        draws.seed
    );
    text += "# Drawn by Conclave, by a penalty chain instead of hmc. Parameters are on the scale of their priors; columns named original are in \
             the data's own units.\n";
    if let Some(verdict) = draws.unusable {
        let _ = writeln!(text, "# VERDICT: {verdict}. No figure of these draws can be reported.");
    }
    for (column, name) in columns.iter().zip(&names(draws)).filter(|(column, name)| column != name) {
        // Quoted, since a name may contain any character, including a line break.
        let _ = writeln!(text, "# column {column} holds {name:?}");
    }
    text + STATISTICS + "," + &columns.join(",") + "\n"
}

/// Builds the lines after the warm-up, which cmdstanpy uses to separate it from the draws.
fn adaptation(dimension: usize) -> String {
    let ones = vec!["1"; dimension].join(", ");
    format!("# Adaptation terminated\n# Step size = 1\n# Diagonal elements of inverse mass matrix:\n# {ones}\n")
}

const TIMES: &str =
    "# \n#  Elapsed Time: 0 seconds (Warm-up)\n#                0 seconds (Sampling)\n#                0 seconds (Total)\n# \n";

fn rows(phase: &PhaseDraws, (count, original): (usize, Option<&[Vec<Vec<f64>>]>), chain: usize) -> String {
    let mut text = String::new();
    for draw in 0..phase.draws() {
        let log_alpha = phase.log_alpha[chain][draw];
        let accepted = u8::from(phase.accepted[chain][draw]);
        let number = |x: f64| if x.is_finite() { format!("{x:?}") } else { format!("{x}").to_lowercase() };
        let _ = write!(text, "nan,{},1,0,1,0,nan,{},{accepted}", number(libm::exp(log_alpha.min(0.0))), number(log_alpha));
        for parameter in &phase.theta {
            let _ = write!(text, ",{}", number(parameter[chain][draw]));
        }
        for at in 0..count {
            let _ = write!(text, ",{}", number(original.map_or(f64::NAN, |values| values[at][chain][draw])));
        }
        text.push('\n');
    }
    text
}

/// Builds unique column names that every reader of CmdStan's files accepts, one per parameter.
///
/// `p[1]`, `p[2]` … become `p.1`, `p.2` …, which readers combine into an array, if the indices are integers without gaps. Any
/// other character outside letters, digits and `_` becomes `_`. No column has the name of a dimension: `chain` becomes `chain_2`.
fn columns(names: &[String]) -> Vec<String> {
    let mut taken: BTreeSet<String> = DIMENSIONS.map(str::to_owned).into();
    let mut out = Vec::new();
    for name in names {
        let plain = array_element(name, names).unwrap_or_else(|| identifier(name));
        let mut column = plain.clone();
        let mut again = 2;
        while !taken.insert(column.clone()) {
            column = format!("{plain}_{again}");
            again += 1;
        }
        out.push(column);
    }
    out
}

/// Returns `p.3` for `p[3]` if all elements from `p[1]` to the last exist in order.
fn array_element(name: &str, names: &[String]) -> Option<String> {
    let index = |name: &str| -> Option<(String, usize)> {
        let (base, rest) = name.strip_suffix(']')?.split_once('[')?;
        let number = rest.parse().ok().filter(|n: &usize| n.to_string() == rest)?;
        Some((base.to_owned(), number))
    };
    let (base, number) = index(name)?;
    let elements = names.iter().filter_map(|n| index(n)).filter(|(b, _)| *b == base).map(|(_, n)| n);
    let single = names.contains(&base) || DIMENSIONS.contains(&base.as_str());
    let whole = elements.zip(1..).all(|(n, expected)| n == expected) && !single;
    whole.then(|| format!("{}.{number}", identifier(&base)))
}

fn identifier(name: &str) -> String {
    let mut text: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    // A trailing underscore pair marks a statistic of the sampler.
    text.truncate(text.trim_end_matches('_').len().max(1));
    if text.starts_with(|c: char| c.is_ascii_alphabetic()) { text } else { format!("v{text}") }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn names_are_safe_and_distinct() {
        let names = |list: &[&str]| columns(&list.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>());
        assert_eq!(names(&["age", "ward[b]", "ward[c]"]), ["age", "ward_b", "ward_c"]);
        assert_eq!(names(&["p[1]", "p[2]", "q[2]", "r[1]", "r"]), ["p.1", "p.2", "q_2", "r_1", "r"]);
        assert_eq!(names(&["a b", "a_b", "a,b", "1st", "x__", "\n"]), ["a_b", "a_b_2", "a_b_3", "v1st", "x", "v_"]);
        assert_eq!(names(&["p[1]", "p[01]"]), ["p.1", "p_01"]);
        assert_eq!(names(&["chain", "draw", "chain_2", "draw[1]"]), ["chain_2", "draw_2", "chain_2_2", "draw_1"]);
    }

    /// The head is one that cmdstanpy 1.3.2 accepts.
    #[test]
    fn a_run_without_warm_up_says_that_none_was_saved() {
        let phase = |draws: usize| PhaseDraws {
            theta: vec![vec![vec![0.5; draws]]],
            accepted: vec![vec![true; draws]],
            log_alpha: vec![vec![0.0; draws]],
            iteration: vec![(0..draws as i64).collect()],
        };
        let text = |warmup: usize| {
            let (name, created_by, parameters) = ("j".to_owned(), String::new(), vec!["chain".to_owned()]);
            let unusable = (warmup > 0).then_some("not usable");
            let draws = Draws {
                name,
                seed: 1,
                created_by,
                parameters,
                unusable,
                warmup: phase(warmup),
                sampling: phase(3),
                original: None,
            };
            let folder = tempfile::tempdir().unwrap();
            let out = folder.path().join("csv");
            assert_eq!(write(&draws, &out).unwrap().0, 1);
            std::fs::read_to_string(out.join("chain-1.csv")).unwrap()
        };
        let without = text(0);
        assert!(without.contains("#     num_warmup = 1000 (Default)\n#     save_warmup = 0 (Default)\n"), "{without}");
        assert!(without.contains("accepted__,chain_2\n") && without.contains("# column chain_2 holds \"chain\"\n"), "{without}");
        assert!(!without.contains("VERDICT"), "{without}");
        let text = text(2);
        assert!(text.contains("#     num_warmup = 2\n#     save_warmup = 1\n"));
        assert!(text.contains("\n# VERDICT: not usable. No figure of these draws can be reported.\n"), "{text}");
    }
}
