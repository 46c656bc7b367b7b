//! The public delay of a party's answers. The party states it when the job opens, so that both ends use the same delay.

use std::time::Duration;

use crate::v1;

/// The delay between the start of service of a query and its answer. It is public: it depends on the owner's policy, the job
/// and the public metadata of the party's data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnswerDelay {
    /// Delay of an answer of at most `proposals` integers. A longer answer takes this delay once per started block of
    /// `proposals`.
    pub least: Duration,
    /// Number of integers covered by one `least`; 0 counts as 1.
    pub proposals: u32,
}

impl AnswerDelay {
    /// Returns the delay of an answer of `length` integers: a proposal counts once per component of its answer.
    #[must_use]
    pub fn for_length(&self, length: usize) -> Duration {
        let proposals = usize::try_from(self.proposals).unwrap_or(usize::MAX).max(1);
        self.least.saturating_mul(u32::try_from(length.div_ceil(proposals).max(1)).unwrap_or(u32::MAX))
    }

    /// Adds the delay to an opening. Its fields have a fixed width, so the opening's length shows only that there is a delay.
    #[must_use]
    pub fn attach(delay: Option<Self>, opened: v1::JobOpened) -> v1::JobOpened {
        let Some(Self { least, proposals }) = delay.filter(|delay| !delay.least.is_zero()) else { return opened };
        // A party's delay is always shorter than an hour.
        let reply_delay_us = u32::try_from(least.as_micros()).unwrap_or(u32::MAX).max(1);
        v1::JobOpened { reply_delay_us, reply_delay_proposals: proposals.max(1), ..opened }
    }

    /// Reads the delay in an opening; `None` if the party does not delay answers, or does not state a delay.
    #[must_use]
    pub fn read(opened: &v1::JobOpened) -> Option<Self> {
        let least = Duration::from_micros(opened.reply_delay_us.into());
        (!least.is_zero()).then_some(Self { least, proposals: opened.reply_delay_proposals })
    }
}

#[cfg(test)]
mod tests {
    use prost::Message;

    use super::*;

    fn opened(delay: Option<AnswerDelay>) -> v1::JobOpened {
        AnswerDelay::attach(delay, v1::JobOpened { job: "j".to_owned(), records: 7, ..v1::JobOpened::default() })
    }

    #[test]
    fn a_longer_message_waits_longer() {
        let delay = AnswerDelay { least: Duration::from_millis(2), proposals: 4 };
        assert_eq!([0, 1, 4, 5, 8, 9].map(|length| delay.for_length(length).as_millis()), [2, 2, 2, 4, 4, 6]);
        assert_eq!(AnswerDelay { proposals: 0, ..delay }.for_length(3).as_millis(), 6);
        assert!(AnswerDelay { least: Duration::MAX, ..delay }.for_length(usize::MAX) == Duration::MAX);
    }

    /// The length shows that there is a delay, which is policy, but not how long it is.
    #[test]
    fn every_delay_has_the_same_encoded_length() {
        let delay = |micros: u64, proposals| Some(AnswerDelay { least: Duration::from_micros(micros), proposals });
        let length = opened(delay(1, 1)).encoded_len();
        for stated in [delay(250, 4), delay(60_000_000, u32::MAX), delay(u64::MAX, 1)] {
            let opened = opened(stated);
            assert_eq!(opened.encoded_len(), length, "{stated:?}");
            assert_eq!(AnswerDelay::read(&opened).map(|d| d.proposals), stated.map(|d| d.proposals));
        }
        assert_eq!(AnswerDelay::read(&opened(delay(2250, 4))), delay(2250, 4));
        // An older party states no delay, like one whose owner has disabled it.
        for none in [opened(None), opened(delay(0, 4)), v1::JobOpened::default()] {
            assert_eq!(AnswerDelay::read(&none), None);
        }
        assert_eq!(opened(None).encoded_len() + 10, length);
    }
}
