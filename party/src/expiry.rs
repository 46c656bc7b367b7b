//! Warns the owner, at start and daily, from 30 days before the party's certificate or its consortium's CA expires.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use conclave_proto::tls::{Expiry, IdentityDir, days_until, is_expiring};
use time::OffsetDateTime;
use tokio::time::{Instant, MissedTickBehavior, interval_at};

const DAILY: Duration = Duration::from_secs(86_400);

/// Checks the identity folder once a day, indefinitely.
pub(crate) async fn watch(identity: PathBuf, key: PathBuf) {
    let mut tick = interval_at(Instant::now() + DAILY, DAILY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tick.tick().await;
        // An identity that can't be loaded is reported by the link.
        if let Ok(identity) = IdentityDir::load_with_key(&identity, &key) {
            warn(&identity);
        }
    }
}

/// Logs certificates that expire soon or have expired.
pub(crate) fn warn(identity: &IdentityDir) {
    match identity.expiry() {
        Ok(expires) => warnings(&expires, SystemTime::now()).iter().for_each(|line| tracing::warn!("{line}")),
        Err(fault) => tracing::warn!("{fault}"),
    }
}

fn warnings(expires: &Expiry, now: SystemTime) -> Vec<String> {
    let renew = "renew it with `conclave-party renew`";
    let next = "ask its keeper for the next CA's certificate, and put both into ca.pem";
    [("this party's certificate", expires.certificate, renew), ("the consortium's CA", expires.ca, next)]
        .into_iter()
        .filter(|(_, end, _)| is_expiring(*end, now))
        .map(|(what, end, remedy)| {
            let day = OffsetDateTime::from(end).date();
            match days_until(end, now) {
                ..0 => format!("{what} expired on {day}: {remedy}"),
                0 => format!("{what} expires within a day, on {day}: {remedy}"),
                days => format!("{what} expires in {days} days, on {day}: {remedy}"),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: SystemTime = SystemTime::UNIX_EPOCH;

    fn warnings_at(certificate: u32, ca: u32) -> Vec<String> {
        let now = NOW + 100 * DAILY;
        warnings(&Expiry { certificate: NOW + certificate * DAILY, ca: NOW + ca * DAILY }, now)
    }

    #[test]
    fn warnings_begin_thirty_days_before_and_name_day_and_remedy() {
        assert_eq!(warnings_at(131, 131), [""; 0]);
        let [line] = &warnings_at(130, 1000)[..] else { panic!("one warning") };
        assert_eq!(line, "this party's certificate expires in 30 days, on 1970-05-11: renew it with `conclave-party renew`");
        let [gone, last] = &warnings_at(99, 100)[..] else { panic!("two warnings") };
        assert!(gone.starts_with("this party's certificate expired on 1970-04-10: renew"), "{gone}");
        assert!(last.starts_with("the consortium's CA expires within a day, on 1970-04-11: ask"), "{last}");
    }
}
