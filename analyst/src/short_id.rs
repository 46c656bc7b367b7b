//! Ids of jobs by their first characters.

use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::v1::ListRequest;

use crate::client::Connection;
use crate::faults::{input, refused};

/// Length of a whole id.
const WHOLE: usize = 36;
/// Length of an id in a list.
const SHORT: usize = 8;

/// Returns the whole id of the analyst's job that begins with `job`. A whole id is returned unchanged, without a query.
///
/// # Errors
/// Those of the coordinator; no job, or several, with these first characters.
pub(crate) async fn whole_id(connection: &Connection, job: &str) -> Result<String, Fault> {
    if job.len() >= WHOLE {
        return Ok(job.to_owned());
    }
    let mut client = connection.open().await?;
    let jobs = client.list(ListRequest {}).await.map_err(refused)?.into_inner().jobs;
    choose(job, jobs.into_iter().map(|job| job.job).collect())
}

fn choose(start: &str, mut jobs: Vec<String>) -> Result<String, Fault> {
    jobs.retain(|id| !start.is_empty() && id.starts_with(start));
    match jobs.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(Fault::new(
            ErrorCode::NotFound,
            format!("you have no job whose id begins with {start:?}: `conclave jobs` lists them"),
        )),
        several => Err(input(format!(
            "the ids of {} jobs begin with {start:?}: give more characters of one of {}",
            several.len(),
            several.iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", ")
        ))),
    }
}

/// Returns the number of first characters that distinguish the ids, at least 8.
pub(crate) fn shortest(ids: &[&str]) -> usize {
    let unique = |length: usize| {
        let starts: std::collections::BTreeSet<&str> = ids.iter().map(|id| id.get(..length).unwrap_or(id)).collect();
        starts.len() == ids.len()
    };
    (SHORT..WHOLE).find(|length| unique(*length)).unwrap_or(WHOLE)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_first_characters_name_one_job() {
        let ids = || ["4f01aaaa-1", "4f02aaaa-2", "90aaaaaa-3"].map(str::to_owned).to_vec();
        assert_eq!(choose("4f02", ids()).unwrap(), "4f02aaaa-2");
        let fault = choose("4f", ids()).unwrap_err();
        assert!(fault.code == ErrorCode::InvalidInput && fault.message.contains("4f01aaaa-1, 4f02aaaa-2"), "{fault}");
        for none in ["5", ""] {
            assert_eq!(choose(none, ids()).unwrap_err().code, ErrorCode::NotFound);
        }
        assert_eq!(shortest(&["4f01aaaa-1", "4f02aaaa-2"]), 8);
        assert_eq!(shortest(&["4f01aaaa-1", "4f01aaaa-2"]), 10);
        assert_eq!(shortest(&[]), 8);
    }
}
