//! Reading of a whole store of draws, in the layout of [`crate::zarr`].

use std::path::Path;

use conclave_proto::error::{ErrorCode, Fault};
use serde_json::Value;

use crate::zarr::{Element, ORIGINAL, ReadError, StoreFiles, StoredArray, encode, metadata, open};

/// The draws of one phase of a run, warm-up or sampling, each `[chain][draw]`.
#[derive(Debug, Default, PartialEq)]
pub struct PhaseDraws {
    /// `[parameter][chain][draw]`, on the scale that priors are declared on.
    pub theta: Vec<Vec<Vec<f64>>>,
    /// True for draws whose proposal was accepted.
    pub accepted: Vec<Vec<bool>>,
    /// Noisy log acceptance ratio; minus infinity for proposals outside the parameter box.
    pub log_alpha: Vec<Vec<f64>>,
    /// The round of each decision.
    pub iteration: Vec<Vec<i64>>,
}

impl PhaseDraws {
    /// Returns the number of draws per chain.
    pub fn draws(&self) -> usize {
        self.accepted.first().map_or(0, Vec::len)
    }
}

/// A run's draws.
#[derive(Debug, PartialEq)]
pub struct Draws {
    /// The analyst's name for the job.
    pub name: String,
    /// The chains' seed.
    pub seed: u64,
    /// The name of the software that made the draws.
    pub created_by: String,
    /// The parameters' names.
    pub parameters: Vec<String>,
    /// The verdict in words, where the draws are no answer or cannot be relied on.
    pub unusable: Option<&'static str>,
    /// The warm-up.
    pub warmup: PhaseDraws,
    /// The kept draws.
    pub sampling: PhaseDraws,
    /// The kept draws in the data's own units, `[parameter][chain][draw]`; `None` for an unfinished run or one of an earlier
    /// version.
    pub original: Option<Vec<Vec<Vec<f64>>>>,
}

impl Draws {
    /// Reads a store from its folder or its file.
    ///
    /// # Errors
    /// A fault that names a missing or invalid file.
    pub fn read(root: &Path) -> Result<Self, Fault> {
        let files = open(root).map_err(fault)?;
        let attributes = metadata(&files, "").map_err(fault)?["attributes"].clone();
        let names = attributes["parameters"].as_array().ok_or_else(|| broken(root, "they do not list their parameters"))?;
        let parameters: Vec<String> = names.iter().filter_map(|n| n.as_str().map(str::to_owned)).collect();
        Ok(Self {
            name: attributes["name"].as_str().unwrap_or("job").to_owned(),
            seed: attributes["seed"].as_u64().unwrap_or(0),
            created_by: attributes["created_by"].as_str().unwrap_or_default().to_owned(),
            unusable: unusable(&attributes),
            warmup: phase(&files, "warmup_", &parameters)?,
            sampling: phase(&files, "", &parameters)?,
            original: original(&files, &parameters)?,
            parameters,
        })
    }

    /// Returns the number of chains.
    pub fn chains(&self) -> usize {
        self.sampling.accepted.len()
    }
}

/// Returns the verdict in a store's attributes, where the draws cannot be relied on.
fn unusable(attributes: &Value) -> Option<&'static str> {
    match (attributes["adequate"].as_bool(), attributes["verdict"]["grade"].as_str()) {
        (Some(false), _) => Some("no adequate answer"),
        (_, Some("not_usable")) => Some("not usable"),
        _ => None,
    }
}

/// Reads the group of draws in the data's own units, if the store has it.
fn original(files: &StoreFiles, parameters: &[String]) -> Result<Option<Vec<Vec<Vec<f64>>>>, Fault> {
    match metadata(files, ORIGINAL) {
        Err(ReadError::File { error, .. }) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        found => drop(found.map_err(fault)?),
    }
    let theta = parameters.iter().enumerate().map(|(i, name)| array(files, &format!("{ORIGINAL}/{}", encode(name, i))));
    theta.collect::<Result<_, _>>().map(Some)
}

fn phase(files: &StoreFiles, prefix: &str, parameters: &[String]) -> Result<PhaseDraws, Fault> {
    let theta = parameters.iter().enumerate().map(|(i, name)| array(files, &format!("{prefix}posterior/{}", encode(name, i))));
    let stats = |name: &str| format!("{prefix}sample_stats/{name}");
    let read = PhaseDraws {
        theta: theta.collect::<Result<_, _>>()?,
        accepted: array(files, &stats("accepted"))?,
        log_alpha: array(files, &stats("log_alpha"))?,
        iteration: array(files, &stats("iteration"))?,
    };
    let shape = |chains: usize, draws: usize| move |(c, d): (usize, usize)| (c, d) == (chains, draws);
    let same = shape(read.accepted.len(), read.draws());
    let of = |rows: usize, row: Option<usize>| (rows, row.unwrap_or(0));
    let all = read.theta.iter().chain([&read.log_alpha]).map(|a| of(a.len(), a.first().map(Vec::len)));
    let all = all.chain([of(read.iteration.len(), read.iteration.first().map(Vec::len))]);
    if all.into_iter().all(same) { Ok(read) } else { Err(broken(files.root(), "the arrays differ in shape")) }
}

/// Reads an array of shape (chain, draw).
fn array<T: Element>(files: &StoreFiles, name: &str) -> Result<Vec<Vec<T>>, Fault> {
    let stored = StoredArray::open(files, name).map_err(fault)?;
    let one = |chain| {
        let chunks = (0..stored.chunks()).map(|chunk| stored.read_chunk(chain, chunk).map_err(fault));
        Ok(chunks.collect::<Result<Vec<_>, _>>()?.concat())
    };
    (0..stored.shape().0).map(one).collect()
}

fn fault(error: ReadError) -> Fault {
    match error {
        ReadError::File { path, error } => Fault::of_file(&path, "be read", &error),
        ReadError::Layout { path, what } => broken(&path, &what),
    }
}

fn broken(path: &Path, what: &str) -> Fault {
    Fault::new(ErrorCode::Internal, format!("the draws in {} are unusable: {what}", path.display()))
}
