//! When a party's answers leave: a public delay, told as the job opens, so that both ends reckon with one.

use std::time::Duration;

use crate::v1;

/// How long after its service began an answer leaves. Public: it depends on the owner's policy, on the job and on what the party publishes
/// of its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerDelay {
    /// Of an answer to at most `proposals` proposals of one integer each; a longer one waits for as many times more.
    pub least: Duration,
    /// Proposals that one `least` is for; 0 counts as 1.
    pub proposals: u32,
}

impl AnswerDelay {
    /// The delay of an answer of `length` integers: a proposal counts as often as its answer has components.
    #[must_use]
    pub fn of(&self, length: usize) -> Duration {
        let proposals = usize::try_from(self.proposals).unwrap_or(usize::MAX).max(1);
        self.least.saturating_mul(u32::try_from(length.div_ceil(proposals).max(1)).unwrap_or(u32::MAX))
    }

    /// Tells it with an opening. Fields of a fixed width: an opening's length depends on whether there is a delay, and not on which.
    #[must_use]
    pub fn told(delay: Option<Self>, opened: v1::JobOpened) -> v1::JobOpened {
        let Some(Self { least, proposals }) = delay.filter(|delay| !delay.least.is_zero()) else { return opened };
        // An hour and more is no delay that a party may have.
        let reply_delay_us = u32::try_from(least.as_micros()).unwrap_or(u32::MAX).max(1);
        v1::JobOpened { reply_delay_us, reply_delay_proposals: proposals.max(1), ..opened }
    }

    /// What an opening tells; `None` where the party holds no answer back, or does not say so.
    #[must_use]
    pub fn heard(opened: &v1::JobOpened) -> Option<Self> {
        let least = Duration::from_micros(opened.reply_delay_us.into());
        (!least.is_zero()).then_some(Self { least, proposals: opened.reply_delay_proposals })
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;

    fn opened(delay: Option<AnswerDelay>) -> v1::JobOpened {
        AnswerDelay::told(delay, v1::JobOpened { job: "j".to_owned(), records: 7, ..v1::JobOpened::default() })
    }

    #[test]
    fn a_longer_message_waits_longer() {
        let delay = AnswerDelay { least: Duration::from_millis(2), proposals: 4 };
        assert_eq!([0, 1, 4, 5, 8, 9].map(|asked| delay.of(asked).as_millis()), [2, 2, 2, 4, 4, 6]);
        assert_eq!(AnswerDelay { proposals: 0, ..delay }.of(3).as_millis(), 6);
        assert!(AnswerDelay { least: Duration::MAX, ..delay }.of(usize::MAX) == Duration::MAX);
    }

    /// The length tells whether there is a delay, which is policy, and nothing of how long it is.
    #[test]
    fn a_delay_is_told_in_one_length() {
        let delay = |micros: u64, proposals| Some(AnswerDelay { least: Duration::from_micros(micros), proposals });
        let length = opened(delay(1, 1)).encoded_len();
        for told in [delay(250, 4), delay(60_000_000, u32::MAX), delay(u64::MAX, 1)] {
            let opened = opened(told);
            assert_eq!(opened.encoded_len(), length, "{told:?}");
            assert_eq!(AnswerDelay::heard(&opened).map(|d| d.proposals), told.map(|d| d.proposals));
        }
        assert_eq!(AnswerDelay::heard(&opened(delay(2250, 4))), delay(2250, 4));
        // A party before this one says nothing, as one whose owner has the delay off.
        for nothing in [opened(None), opened(delay(0, 4)), v1::JobOpened::default()] {
            assert_eq!(AnswerDelay::heard(&nothing), None);
        }
        assert_eq!(opened(None).encoded_len() + 10, length);
    }
}
