//! Fetches a job's log from the coordinator.

use std::time::Duration;

use conclave_proto::error::{ErrorCode, Fault, from_status};
use conclave_proto::revoked::RevokedFile;
use conclave_proto::tls;
use conclave_proto::v1::job_log::Body;
use conclave_proto::v1::link_client::LinkClient;
use conclave_proto::v1::{JobLog, JobRequest, LogEnd};
use tokio::time::timeout;
use tonic::{Code, Status};

use crate::config::PartyConfig;
use crate::error::StartError;
use crate::link::load_identity;

/// Maximum message size. Rounds and draws come in small messages; a header holds the result, below 2 KiB for each of up to 4096
/// parameters.
const MAX_BYTES: usize = 16 << 20;
/// Time without data after which the coordinator is given up.
const PATIENCE: Duration = Duration::from_secs(60);

/// Passes a job's log to `each` piece by piece, and returns its end.
///
/// # Errors
/// Fails if the coordinator can't be reached or sends something else; returns the errors of `each`.
pub(super) async fn fetch(
    config: &PartyConfig,
    job: &str,
    mut each: impl FnMut(JobLog) -> Result<(), StartError>,
) -> Result<LogEnd, StartError> {
    let identity = load_identity(&config.identity, &config.key, &config.name)?;
    let revoked = config.revoked.as_deref().map(|path| RevokedFile::at(path).read()).transpose()?;
    let channel = tls::connect_through(&config.coordinator, &identity, &config.proxy, revoked).await.map_err(fetch_error)?;
    let mut client = LinkClient::new(channel).max_decoding_message_size(MAX_BYTES);
    let request = client.log(JobRequest { job: job.to_owned() });
    let mut pieces = within(request).await?.into_inner();
    loop {
        match within(pieces.message()).await? {
            Some(JobLog { body: Some(Body::End(end)) }) => return Ok(end),
            Some(piece) => each(piece)?,
            None => {
                return Err(fetch_error(Fault::new(ErrorCode::Unreachable, "the coordinator ended the log early: try again")));
            }
        }
    }
}

async fn within<T>(call: impl Future<Output = Result<T, Status>>) -> Result<T, StartError> {
    match timeout(PATIENCE, call).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(status)) if status.code() == Code::Unimplemented => {
            let message = "the coordinator's version shows no log: its operator must upgrade it";
            Err(fetch_error(Fault::new(ErrorCode::Unreachable, message)))
        }
        Ok(Err(status)) => Err(fetch_error(from_status(&status))),
        Err(_) => {
            let message = format!("the coordinator has sent nothing for {} s", PATIENCE.as_secs());
            Err(fetch_error(Fault::new(ErrorCode::Unreachable, message)))
        }
    }
}

/// Converts a fault that prevents reading the log; it is no evidence about the log's content, so only input errors keep their
/// code.
fn fetch_error(fault: Fault) -> StartError {
    let keeps_code = matches!(fault.code, ErrorCode::InvalidInput | ErrorCode::NotFound);
    let code = if keeps_code { fault.code } else { ErrorCode::Unreachable };
    Fault { code, message: conclave_vault::text::clip(&fault.message, 600), ..fault }.into()
}

/// Returns the error for a message that this protocol does not allow.
pub(super) fn unexpected_message() -> StartError {
    fetch_error(Fault::new(
        ErrorCode::Unreachable,
        "the coordinator sent a log of another protocol version: use the same version on both sides",
    ))
}
