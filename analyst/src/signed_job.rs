//! The file of a job as its analyst signed it.

use conclave_common::job::JobSpec;
use conclave_proto::error::{ErrorCode, Fault, from_status};
use conclave_proto::log_digest::LogDigest;
use conclave_proto::v1::job_log::Body;
use conclave_proto::v1::jobs_client::JobsClient;
use conclave_proto::v1::{JobLog, JobRequest, LogHeader, Roster};
use conclave_proto::{roster, submission};
use prost::Message;
use sha2::{Digest, Sha256};
use tonic::transport::Channel;
use tonic::{Code, Status, Streaming};

/// Maximum message size. Rounds come in small messages; a header holds the result, below 2 KiB for each of up to 4096 parameters.
const MAX_BYTES: usize = 16 << 20;

/// Opens a job's log.
///
/// # Errors
/// Those of the coordinator.
pub(crate) async fn open_log(client: JobsClient<Channel>, job: &str) -> Result<Streaming<JobLog>, Fault> {
    let mut client = client.max_decoding_message_size(MAX_BYTES);
    Ok(client.log(JobRequest { job: job.to_owned() }).await.map_err(|status| fault(&status))?.into_inner())
}

/// Returns the next message of a job's log.
///
/// # Errors
/// The coordinator's; a log that ends early or has an unknown message.
pub(crate) async fn next(pieces: &mut Streaming<JobLog>) -> Result<Body, Fault> {
    match pieces.message().await.map_err(|status| fault(&status))? {
        Some(JobLog { body: Some(body) }) => Ok(body),
        Some(_) => Err(unexpected_message()),
        None => Err(Fault::new(ErrorCode::Unreachable, "the coordinator ended the log early: try again")),
    }
}

/// Fetches a job's file, byte for byte as signed.
///
/// # Errors
/// Those of [`open_log`] and [`check`].
pub(crate) async fn text(client: &JobsClient<Channel>, job: &str) -> Result<String, Fault> {
    match next(&mut open_log(client.clone(), job).await?).await? {
        Body::Header(header) => check(&header, job).map(|()| header.spec_toml),
        _ => Err(unexpected_message()),
    }
}

/// Returns the digest of a job's log, which `conclave-party verify` prints at every owner.
///
/// # Errors
/// Those of [`open_log`] and [`check`]; a log with an unreadable roster, or one that the coordinator can't send whole.
pub(crate) async fn log_digest(client: &JobsClient<Channel>, spec: &JobSpec, job: &str) -> Result<String, Fault> {
    let mut pieces = open_log(client.clone(), job).await?;
    let Body::Header(header) = next(&mut pieces).await? else { return Err(unexpected_message()) };
    check(&header, job)?;
    let text: [u8; 32] = Sha256::digest(header.spec_toml.as_bytes()).into();
    let roster = roster_digest(&header, spec, &text)?;
    let mut digest = LogDigest::new(job, &text, roster.as_ref());
    loop {
        match next(&mut pieces).await? {
            Body::Rounds(piece) => piece.rounds.iter().for_each(|round| digest.take(round)),
            Body::End(end) if end.damage.is_empty() => return Ok(digest.finish()),
            Body::End(end) => return Err(Fault::new(ErrorCode::Internal, end.damage)),
            _ => return Err(unexpected_message()),
        }
    }
}

/// Returns the digest of the log's roster; `None` for a job whose answers are not masked, and before there is a roster.
fn roster_digest(header: &LogHeader, spec: &JobSpec, text: &[u8; 32]) -> Result<Option<[u8; 32]>, Fault> {
    let Some(secure) = spec.aggregation.secure().filter(|_| !header.roster.is_empty()) else { return Ok(None) };
    let whole = Roster::decode(header.roster.as_slice()).map_err(|_| unexpected_message())?;
    Ok(Some(roster::read(&whole.entries, &header.job, text, secure.colluders)?.digest()))
}

/// Checks that a header holds the file of this job.
///
/// # Errors
/// [`ErrorCode::Internal`] for another file: the id is derived from the file, so no other text has it.
pub(crate) fn check(header: &LogHeader, job: &str) -> Result<(), Fault> {
    let signed = submission::check(header.submission.as_ref(), &header.analyst, &header.spec_toml);
    match signed.is_ok_and(|id| id == job) {
        true => Ok(()),
        false => Err(Fault::new(ErrorCode::Internal, format!("the job file sent by the coordinator is not that of job {job}"))),
    }
}

/// Returns a fault for a message that this protocol does not allow.
pub(crate) fn unexpected_message() -> Fault {
    let message = "the coordinator sent a log of another protocol version: use the same version on both sides";
    Fault::new(ErrorCode::Internal, message)
}

fn fault(status: &Status) -> Fault {
    if status.code() == Code::Unimplemented {
        let message = "the coordinator's version shows no log to analysts: its operator must upgrade it";
        return Fault::new(ErrorCode::Unreachable, message);
    }
    from_status(status)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::SystemTime;

    use conclave_proto::ca::{self, Validity};
    use conclave_proto::identity::{PeerIdentity, Role};
    use conclave_proto::tls::IdentityDir;

    use super::*;

    #[test]
    fn another_file_is_not_the_job() {
        let validity = Validity { now: SystemTime::now(), days: 2 };
        let ca = ca::create_ca("town", validity).unwrap();
        let issued = ca::issue(&ca, &PeerIdentity::new(Role::Analyst, "alice").unwrap(), &[], validity).unwrap();
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("certificate.pem", &issued.pem), ("key.pem", &issued.key_pem), ("ca.pem", &ca.pem)] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        #[cfg(unix)]
        std::fs::set_permissions(folder.path().join("key.pem"), std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        let identity = IdentityDir::load(folder.path()).unwrap();
        let signed = submission::sign(&identity, "epsilon = 1").unwrap();
        let id = submission::check(Some(&signed), "alice", "epsilon = 1").unwrap();
        let header = LogHeader {
            analyst: "alice".into(),
            spec_toml: "epsilon = 1".into(),
            submission: Some(signed),
            ..LogHeader::default()
        };
        check(&header, &id).unwrap();
        for other in [
            LogHeader { spec_toml: "epsilon = 9".into(), ..header.clone() },
            LogHeader { analyst: "bob".into(), ..header.clone() },
            LogHeader { submission: None, ..header.clone() },
        ] {
            assert!(check(&other, &id).unwrap_err().message.contains("is not that of job"));
        }
        assert!(check(&header, "6f1c1a52-6d0e-4b1e-9d55-0d8f0f2b7a01").is_err());
    }
}
