//! A store of draws read back whole, as [`conclave_coordinator::zarr`] lays it out.

use std::path::Path;

use conclave_coordinator::zarr::encode;
use conclave_proto::error::{ErrorCode, Fault};
use serde_json::Value;

use crate::files;

/// One stretch of a run, each `[chain][draw]`.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Stretch {
    /// `[parameter][chain][draw]`, on the scale that priors are declared on.
    pub(crate) theta: Vec<Vec<Vec<f64>>>,
    pub(crate) accepted: Vec<Vec<bool>>,
    /// Noisy log acceptance ratio; minus infinity outside the parameter box.
    pub(crate) log_alpha: Vec<Vec<f64>>,
    pub(crate) iteration: Vec<Vec<i64>>,
}

impl Stretch {
    /// Draws per chain.
    pub(crate) fn draws(&self) -> usize {
        self.accepted.first().map_or(0, Vec::len)
    }
}

/// A run's draws.
#[derive(Debug, PartialEq)]
pub(crate) struct Draws {
    /// The analyst's name for the job.
    pub(crate) name: String,
    pub(crate) seed: u64,
    /// The software that made them, as it names itself.
    pub(crate) created_by: String,
    pub(crate) parameters: Vec<String>,
    pub(crate) warmup: Stretch,
    pub(crate) sampling: Stretch,
}

impl Draws {
    /// Reads a store from its folder.
    ///
    /// # Errors
    /// A file that is missing or is not what it should be, by its path.
    pub(crate) fn read(root: &Path) -> Result<Self, Fault> {
        let attributes = metadata(root)?["attributes"].clone();
        let names = attributes["parameters"].as_array().ok_or_else(|| broken(root, "it does not list its parameters"))?;
        let parameters: Vec<String> = names.iter().filter_map(|n| n.as_str().map(str::to_owned)).collect();
        Ok(Self {
            name: attributes["name"].as_str().unwrap_or("job").to_owned(),
            seed: attributes["seed"].as_u64().unwrap_or(0),
            created_by: attributes["created_by"].as_str().unwrap_or_default().to_owned(),
            warmup: stretch(root, "warmup_", &parameters)?,
            sampling: stretch(root, "", &parameters)?,
            parameters,
        })
    }

    /// Number of chains.
    pub(crate) fn chains(&self) -> usize {
        self.sampling.accepted.len()
    }
}

fn stretch(root: &Path, prefix: &str, parameters: &[String]) -> Result<Stretch, Fault> {
    let posterior = root.join(format!("{prefix}posterior"));
    let stats = root.join(format!("{prefix}sample_stats"));
    let float = |path: &Path| array(path, "float64", 8, |b| f64::from_le_bytes(eight(b)));
    let theta = parameters.iter().enumerate().map(|(i, name)| float(&posterior.join(encode(name, i))));
    let read = Stretch {
        theta: theta.collect::<Result<_, _>>()?,
        accepted: array(&stats.join("accepted"), "bool", 1, |b| b.first().is_some_and(|b| *b != 0))?,
        log_alpha: float(&stats.join("log_alpha"))?,
        iteration: array(&stats.join("iteration"), "int64", 8, |b| i64::from_le_bytes(eight(b)))?,
    };
    let shape = |chains: usize, draws: usize| move |(c, d): (usize, usize)| (c, d) == (chains, draws);
    let same = shape(read.accepted.len(), read.draws());
    let of = |rows: usize, row: Option<usize>| (rows, row.unwrap_or(0));
    let all = read.theta.iter().chain([&read.log_alpha]).map(|a| of(a.len(), a.first().map(Vec::len)));
    let all = all.chain([of(read.iteration.len(), read.iteration.first().map(Vec::len))]);
    if all.into_iter().all(same) { Ok(read) } else { Err(broken(root, "its arrays differ in shape")) }
}

/// An array of shape (chain, draw).
fn array<T>(folder: &Path, data_type: &str, size: usize, read: impl Fn(&[u8]) -> T) -> Result<Vec<Vec<T>>, Fault> {
    let metadata = metadata(folder)?;
    let pair = |value: &Value| -> Option<[usize; 2]> {
        let numbers = value.as_array()?.iter().map(|v| usize::try_from(v.as_u64()?).ok()).collect::<Option<Vec<_>>>()?;
        numbers.try_into().ok()
    };
    let shape = pair(&metadata["shape"]);
    let chunk = pair(&metadata["chunk_grid"]["configuration"]["chunk_shape"]);
    let (Some([chains, draws]), Some([1, columns])) = (shape, chunk.filter(|c| c[1] > 0)) else {
        return Err(broken(folder, "it is not an array by chain and draw"));
    };
    if metadata["data_type"] != data_type {
        return Err(broken(folder, &format!("its elements are not {data_type}")));
    }
    let one = |chain: usize| {
        let mut row = Vec::new();
        for part in 0..draws.div_ceil(columns) {
            let path = folder.join("c").join(chain.to_string()).join(part.to_string());
            let bytes = std::fs::read(&path).map_err(|e| files::fault(&path, "be read", &e))?;
            if bytes.len() != columns.saturating_mul(size) {
                return Err(broken(&path, "it has another length than its metadata say"));
            }
            row.extend(bytes.chunks(size).take(draws - part * columns).map(&read));
        }
        Ok(row)
    };
    (0..chains).map(one).collect()
}

fn metadata(node: &Path) -> Result<Value, Fault> {
    let path = node.join("zarr.json");
    serde_json::from_str(&files::read(&path)?).map_err(|e| broken(&path, &e.to_string()))
}

fn eight(bytes: &[u8]) -> [u8; 8] {
    bytes.try_into().unwrap_or_default()
}

fn broken(path: &Path, what: &str) -> Fault {
    Fault::new(ErrorCode::Internal, format!("the draws in {} cannot be used: {what}", path.display()))
}
