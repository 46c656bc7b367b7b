//! A job's log is fetched from the coordinator.

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

/// Longest message taken. Rounds and draws come in small ones; a header holds the result, below 2 KiB for each parameter of up to 4096.
const MOST_BYTES: usize = 16 << 20;
/// A coordinator that sends nothing for so long is given up.
const PATIENCE: Duration = Duration::from_secs(60);

/// Hands over a job's log piece by piece, its end excepted.
///
/// # Errors
/// A coordinator that can't be reached, or that sends something else; what `each` returns.
pub(super) async fn fetch(
    config: &PartyConfig,
    job: &str,
    mut each: impl FnMut(JobLog) -> Result<(), StartError>,
) -> Result<LogEnd, StartError> {
    let identity = load_identity(&config.identity, &config.key, &config.name)?;
    let revoked = config.revoked.as_deref().map(|path| RevokedFile::at(path).read()).transpose()?;
    let channel = tls::connect_through(&config.coordinator, &identity, &config.proxy, revoked).await.map_err(away)?;
    let mut client = LinkClient::new(channel).max_decoding_message_size(MOST_BYTES);
    let request = client.log(JobRequest { job: job.to_owned() });
    let mut pieces = within(request).await?.into_inner();
    loop {
        match within(pieces.message()).await? {
            Some(JobLog { body: Some(Body::End(end)) }) => return Ok(end),
            Some(piece) => each(piece)?,
            None => return Err(away(Fault::new(ErrorCode::Unreachable, "the coordinator broke the log off: try again"))),
        }
    }
}

async fn within<T>(call: impl Future<Output = Result<T, Status>>) -> Result<T, StartError> {
    match timeout(PATIENCE, call).await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(status)) if status.code() == Code::Unimplemented => {
            let message = "the coordinator is of a version that shows no log: its operator has to upgrade it";
            Err(away(Fault::new(ErrorCode::Unreachable, message)))
        }
        Ok(Err(status)) => Err(away(from_status(&status))),
        Err(_) => {
            let message = format!("the coordinator has sent nothing for {} s", PATIENCE.as_secs());
            Err(away(Fault::new(ErrorCode::Unreachable, message)))
        }
    }
}

/// Whatever keeps a log from being read is no word on what it says: only input errors keep their code.
fn away(fault: Fault) -> StartError {
    let kept = matches!(fault.code, ErrorCode::InvalidInput | ErrorCode::NotFound);
    let code = if kept { fault.code } else { ErrorCode::Unreachable };
    Fault { code, message: conclave_vault::text::clip(&fault.message, 600), ..fault }.into()
}

/// A log that is not of this protocol's form.
pub(super) fn strange() -> StartError {
    away(Fault::new(ErrorCode::Unreachable, "the coordinator sent what is no log of this version: bring both to one version"))
}
