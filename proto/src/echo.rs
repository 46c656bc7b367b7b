//! What an answer of a secure job holds besides its masked values: which message it answers, and a mask that shows whether masks cancel.

use crate::convert::AnswerStatus;
use crate::error::{ErrorCode, Fault};
use crate::v1;

/// The digest of the message as a party was asked it, and the mask of the lane after its last integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echo {
    /// [`conclave_privacy::secagg::round_digest`] of the message. Parties with different ones were asked different things.
    pub digest: [u8; 32],
    /// Nothing is under this mask: those of all parties sum to zero modulo 2^64 where their masks cancel.
    pub check: u64,
}

impl Echo {
    /// Tells it with an answer of a secure job. A refusal tells zeros and is as long, whatever it is given.
    #[must_use]
    pub fn told(echo: Option<Self>, answer: v1::Answer) -> v1::Answer {
        let released = answer.status == Some(AnswerStatus::Released.to_wire());
        let Self { digest, check } = echo.filter(|_| released).unwrap_or(Self { digest: [0; 32], check: 0 });
        v1::Answer { digest: digest.to_vec(), check: Some(check), ..answer }
    }

    /// What an answer tells; `None` of a job that is not secure.
    ///
    /// # Errors
    /// [`ErrorCode::Internal`] for half of it, or a digest that is none.
    pub fn heard(answer: &v1::Answer) -> Result<Option<Self>, Fault> {
        if answer.digest.is_empty() && answer.check.is_none() {
            return Ok(None);
        }
        let digest: Option<[u8; 32]> = answer.digest.as_slice().try_into().ok();
        let echo = digest.zip(answer.check).map(|(digest, check)| Self { digest, check });
        echo.map(Some).ok_or_else(|| Fault::new(ErrorCode::Internal, "an answer whose echo of the message is none"))
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

    /// The length tells that the job is secure, which its analyst wrote, and nothing else.
    #[test]
    fn answers_and_refusals_of_a_secure_job_have_one_length() {
        let mut lengths = Vec::new();
        let echoes = [0, 1, u64::MAX].map(|check| Some(Echo { digest: [check as u8; 32], check }));
        for status in AnswerStatus::ALL {
            for echo in echoes.into_iter().chain([None]) {
                let released = status == AnswerStatus::Released;
                let told = Echo::told(echo, answer(if released { Ok(vec![i64::MIN, 0, 1]) } else { Err(status) }));
                let bytes = told.encode_to_vec();
                lengths.push(bytes.len());
                let wire = v1::Answer::decode(bytes.as_slice()).unwrap();
                let expected = echo.filter(|_| released).unwrap_or(Echo { digest: [0; 32], check: 0 });
                assert_eq!(Echo::heard(&wire).unwrap(), Some(expected));
                assert_eq!(answer_from_wire(wire).unwrap().outcome.is_ok(), released);
            }
        }
        assert!(lengths.windows(2).all(|pair| pair[0] == pair[1]), "{lengths:?}");
    }

    #[test]
    fn local_jobs_have_none_and_half_of_one_is_a_fault() {
        let local = answer(Ok(vec![1, 2, 3]));
        assert_eq!(Echo::heard(&local).unwrap(), None);
        let whole = Echo::told(Some(Echo { digest: [9; 32], check: 0 }), local);
        for half in [
            v1::Answer { check: None, ..whole.clone() },
            v1::Answer { digest: Vec::new(), ..whole.clone() },
            v1::Answer { digest: vec![9; 31], ..whole.clone() },
            v1::Answer { digest: vec![9; 33], ..whole },
        ] {
            assert_eq!(Echo::heard(&half).unwrap_err().code, ErrorCode::Internal);
        }
    }
}
