//! A job as its driver sees it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use conclave_common::job::JobSpec;
use conclave_common::query::PartyMetadata;
use conclave_inference::sampler;
use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::v1;
use conclave_proto::v1::coordinator_frame::Body;
use sha2::{Digest, Sha256};

use super::masking::Masking;
use crate::live::Live;

/// A job's definition and the location of its draws.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    /// Id in the form of a UUID, derived from what the analyst signed.
    pub id: Arc<str>,
    /// The submitting analyst.
    pub analyst: String,
    /// The job, parsed.
    pub spec: JobSpec,
    /// The job file, byte for byte.
    pub spec_toml: String,
    /// The analyst's signature.
    pub submission: v1::Submission,
    /// Time of submission, Unix time in milliseconds.
    pub submitted_ms: i64,
    /// Folder of its Zarr store while its chains run.
    pub draws: PathBuf,
    /// Live view of its chains, if they can be watched.
    pub live: Option<Arc<Live>>,
}

impl Job {
    /// Returns the folder of a job's draws while its chains run, below the folder `all`.
    pub(crate) fn draws_folder(all: &Path, id: &str) -> PathBuf {
        all.join(format!("{id}.zarr"))
    }

    /// Returns the file of an ended job's draws.
    pub(crate) fn draws_file(all: &Path, id: &str) -> PathBuf {
        all.join(format!("{id}.zarr.zip"))
    }

    /// Returns the current location of a job's draws: the file, or else the folder, where earlier versions left them.
    pub(crate) fn current_draws(all: &Path, id: &str) -> PathBuf {
        let file = Self::draws_file(all, id);
        if file.is_file() { file } else { Self::draws_folder(all, id) }
    }

    /// Returns the job with its number of chains fixed, which is public once every party has opened it.
    pub(super) fn settled(&self, parties: &[PartyMetadata]) -> Self {
        let spec = sampler::settled(&self.spec, parties).into_owned();
        if let Some(live) = &self.live {
            live.set_chains(spec.sampler.chains as usize);
        }
        Self { spec, ..self.clone() }
    }

    /// File of this job's draws once it has ended.
    pub(super) fn packed_path(&self) -> PathBuf {
        Self::draws_file(self.draws.parent().unwrap_or(Path::new("")), &self.id)
    }

    pub(super) fn draws_fault(&self, error: &std::io::Error) -> Fault {
        Fault::new(ErrorCode::Internal, format!("the draws in {} can't be written: {error}", self.draws.display()))
    }

    /// Initial masking state, if the job's answers are masked.
    pub(super) fn masking(&self) -> Option<Masking> {
        let secure = self.spec.aggregation.secure()?;
        let digest = Sha256::digest(self.spec_toml.as_bytes()).into();
        Some(Masking::new(Arc::clone(&self.id), digest, &self.spec.parties, secure.colluders))
    }

    /// Frame that opens the job at a party.
    pub(super) fn opening(&self) -> Body {
        Body::OpenJob(v1::OpenJob {
            job: self.id.to_string(),
            analyst: self.analyst.clone(),
            spec_toml: self.spec_toml.clone(),
            spec_digest: Sha256::digest(self.spec_toml.as_bytes()).to_vec(),
            submission: Some(self.submission.clone()),
        })
    }
}
