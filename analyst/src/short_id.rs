//! Ids of jobs by their first characters.

use conclave_pages::short_id::{self, NoMatch, WHOLE};
use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::v1::ListRequest;
use conclave_proto::v1::jobs_client::JobsClient;
use tonic::transport::Channel;

use crate::client::Connection;
use crate::faults::{input, refused};

/// Returns the whole id of the analyst's job that begins with `job`. A whole id is returned unchanged, without a query.
///
/// # Errors
/// Those of the coordinator; no job, or several, with these first characters.
pub(crate) async fn whole_id(connection: &Connection, job: &str) -> Result<String, Fault> {
    if job.len() >= WHOLE {
        return Ok(job.to_owned());
    }
    whole_id_at(&mut connection.open().await?, job).await
}

/// Returns the whole id, as [`whole_id`], on an open connection.
///
/// # Errors
/// Those of [`whole_id`].
pub(crate) async fn whole_id_at(client: &mut JobsClient<Channel>, job: &str) -> Result<String, Fault> {
    if job.len() >= WHOLE {
        return Ok(job.to_owned());
    }
    let jobs = client.list(ListRequest {}).await.map_err(refused)?.into_inner().jobs;
    choose(job, &jobs.into_iter().map(|job| job.job).collect::<Vec<_>>())
}

fn choose(start: &str, jobs: &[String]) -> Result<String, Fault> {
    match short_id::choose(start, jobs.iter().map(String::as_str)) {
        Ok(one) => Ok(one.to_owned()),
        Err(NoMatch::Unknown) => {
            let message = format!("you have no job whose id begins with {start:?}");
            Err(Fault::new(ErrorCode::NotFound, message).with_remedy("`conclave jobs` lists them"))
        }
        Err(NoMatch::Several(which)) => Err(input(which)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_first_characters_name_one_job() {
        let ids = ["4f01aaaa-1", "4f02aaaa-2", "90aaaaaa-3"].map(str::to_owned);
        assert_eq!(choose("4f02", &ids).unwrap(), "4f02aaaa-2");
        let fault = choose("4f", &ids).unwrap_err();
        assert!(fault.code == ErrorCode::InvalidInput && fault.message.contains("4f01aaaa-1, 4f02aaaa-2"), "{fault}");
        for none in ["5", ""] {
            assert_eq!(choose(none, &ids).unwrap_err().code, ErrorCode::NotFound);
        }
    }
}
