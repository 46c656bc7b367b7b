//! One job as its driver knows it.

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

/// What a driver needs to know of its job.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    /// In the form of a UUID; it follows from what the analyst signed.
    pub id: Arc<str>,
    /// Who submitted it.
    pub analyst: String,
    /// The job, parsed.
    pub spec: JobSpec,
    /// The job file, byte for byte.
    pub spec_toml: String,
    /// Its analyst's signature.
    pub submission: v1::Submission,
    /// Unix time in milliseconds.
    pub submitted_ms: i64,
    /// Where its Zarr store is while its chains run.
    pub draws: PathBuf,
    /// What is shown of its chains, where somebody may watch.
    pub live: Option<Arc<Live>>,
}

impl Job {
    /// The folder of a job's draws below the folder of all draws, while its chains run.
    pub(crate) fn draws_folder(all: &Path, id: &str) -> PathBuf {
        all.join(format!("{id}.zarr"))
    }

    /// The one file of an ended job's draws.
    pub(crate) fn draws_file(all: &Path, id: &str) -> PathBuf {
        all.join(format!("{id}.zarr.zip"))
    }

    /// Where a job's draws are now: a job that an earlier version ended has them in its folder.
    pub(crate) fn draws_now(all: &Path, id: &str) -> PathBuf {
        let file = Self::draws_file(all, id);
        if file.is_file() { file } else { Self::draws_folder(all, id) }
    }

    /// The job with the number of its chains, which is public once every party has opened it.
    pub(super) fn settled(&self, parties: &[PartyMetadata]) -> Self {
        let spec = sampler::settled(&self.spec, parties).into_owned();
        if let Some(live) = &self.live {
            live.runs(spec.sampler.chains as usize);
        }
        Self { spec, ..self.clone() }
    }

    /// Where this job's draws go when it ends.
    pub(super) fn packed(&self) -> PathBuf {
        Self::draws_file(self.draws.parent().unwrap_or(Path::new("")), &self.id)
    }

    pub(super) fn draws_fault(&self, error: &std::io::Error) -> Fault {
        Fault::new(ErrorCode::Internal, format!("the draws in {} can't be written: {error}", self.draws.display()))
    }

    /// How its answers come to be masked, where the job says so.
    pub(super) fn masking(&self) -> Option<Masking> {
        let secure = self.spec.aggregation.secure()?;
        let digest = Sha256::digest(self.spec_toml.as_bytes()).into();
        Some(Masking::new(Arc::clone(&self.id), digest, &self.spec.parties, secure.colluders))
    }

    /// The frame that opens the job at a party.
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
