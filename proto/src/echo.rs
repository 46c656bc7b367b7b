//! The parts of a secure job's answer beside its masked values: the digest of the answered message, and a mask that shows
//! whether masks cancel.

use crate::convert::AnswerStatus;
use crate::error::{ErrorCode, Fault};
use crate::v1;

/// The digest of the message as the party received it, and the mask of the lane after its last integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echo {
    /// [`conclave_privacy::secagg::round_digest`] of the message. Different digests mean that parties received different
    /// messages.
    pub digest: [u8; 32],
    /// A mask that covers no value: if masks cancel, the masks of all parties sum to zero modulo 2^64.
    pub check: u64,
}

impl Echo {
    /// Adds the echo to an answer of a secure job. A refusal always carries zeros and has the same length.
    #[must_use]
    pub fn attach(echo: Option<Self>, answer: v1::Answer) -> v1::Answer {
        let released = answer.status == Some(AnswerStatus::Released.to_wire());
        let Self { digest, check } = echo.filter(|_| released).unwrap_or(Self { digest: [0; 32], check: 0 });
        v1::Answer { digest: digest.to_vec(), check: Some(check), ..answer }
    }

    /// Reads the echo of an answer; `None` for a job that is not secure.
    ///
    /// # Errors
    /// [`ErrorCode::Internal`] for an incomplete echo or a digest of another length.
    pub fn read(answer: &v1::Answer) -> Result<Option<Self>, Fault> {
        if answer.digest.is_empty() && answer.check.is_none() {
            return Ok(None);
        }
        let digest: Option<[u8; 32]> = answer.digest.as_slice().try_into().ok();
        let echo = digest.zip(answer.check).map(|(digest, check)| Self { digest, check });
        echo.map(Some)
            .ok_or_else(|| Fault::new(ErrorCode::Internal, "the answer has an incomplete or malformed echo of the message"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use prost::Message;

    use super::*;
    use crate::convert::{Answer, answer_from_wire, answer_to_wire};

    fn answer(outcome: Result<Vec<i64>, AnswerStatus>) -> v1::Answer {
        answer_to_wire(&Answer { job: "job".to_owned(), iteration: 7, outcome }, 3)
    }

    /// The length shows only that the job is secure, which the job file states.
    #[test]
    fn answers_and_refusals_of_a_secure_job_have_one_length() {
        let mut lengths = Vec::new();
        let echoes = [0, 1, u64::MAX].map(|check| Some(Echo { digest: [check as u8; 32], check }));
        for status in AnswerStatus::ALL {
            for echo in echoes.into_iter().chain([None]) {
                let released = status == AnswerStatus::Released;
                let answer = Echo::attach(echo, answer(if released { Ok(vec![i64::MIN, 0, 1]) } else { Err(status) }));
                let bytes = answer.encode_to_vec();
                lengths.push(bytes.len());
                let wire = v1::Answer::decode(bytes.as_slice()).unwrap();
                let expected = echo.filter(|_| released).unwrap_or(Echo { digest: [0; 32], check: 0 });
                assert_eq!(Echo::read(&wire).unwrap(), Some(expected));
                assert_eq!(answer_from_wire(wire).unwrap().outcome.is_ok(), released);
            }
        }
        assert!(lengths.windows(2).all(|pair| pair[0] == pair[1]), "{lengths:?}");
    }

    #[test]
    fn local_jobs_have_none_and_half_of_one_is_a_fault() {
        let local = answer(Ok(vec![1, 2, 3]));
        assert_eq!(Echo::read(&local).unwrap(), None);
        let whole = Echo::attach(Some(Echo { digest: [9; 32], check: 0 }), local);
        for half in [
            v1::Answer { check: None, ..whole.clone() },
            v1::Answer { digest: Vec::new(), ..whole.clone() },
            v1::Answer { digest: vec![9; 31], ..whole.clone() },
            v1::Answer { digest: vec![9; 33], ..whole },
        ] {
            assert_eq!(Echo::read(&half).unwrap_err().code, ErrorCode::Internal);
        }
    }
}
