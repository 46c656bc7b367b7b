//! The filter of log lines in `RUST_LOG` and `log_level`.

use tracing_subscriber::filter::{LevelFilter, Targets};

/// Level in the absence of a valid filter.
const DEFAULT_LEVEL: LevelFilter = LevelFilter::INFO;

/// Returns true if a text is a valid filter. A single word must be a level, since no log lines have it as their target.
pub(crate) fn is_filter(text: &str) -> bool {
    let known = |part: &str| part.contains('=') || part.trim().parse::<LevelFilter>().is_ok();
    !text.trim().is_empty() && text.split(',').all(known) && text.parse::<Targets>().is_ok()
}

/// The daemon of a party, and the library whose log lines a filter of the daemon's means too.
const DAEMON: &str = "conclave_party";
const LIBRARY: &str = "conclave_vault";

/// Parses the filter of log lines: comma-separated levels by target, such as `info` or `warn,conclave_party=debug`. The daemon's
/// target includes its library, unless a directive of the library's own says otherwise.
pub(crate) fn filter(text: Option<&str>) -> Targets {
    let directives = |text: &str| {
        let own: Vec<_> = text.split(',').filter(|part| !part.is_empty()).collect();
        let of_library = own.iter().filter(|part| part.starts_with(DAEMON)).map(|part| part.replacen(DAEMON, LIBRARY, 1));
        // The last directive of a target is the one that counts.
        of_library.chain(own.iter().map(ToString::to_string)).collect::<Vec<_>>().join(",")
    };
    let read = text.and_then(|text| directives(text).parse().ok());
    read.unwrap_or_else(|| Targets::new().with_default(DEFAULT_LEVEL))
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn a_filter_sets_levels_by_target() {
        let of = |text| filter(Some(text));
        assert_eq!(filter(None), Targets::new().with_default(LevelFilter::INFO));
        assert_eq!([of("no=such=filter"), of("party=loud"), of("info,")], [filter(None), filter(None), filter(None)]);
        assert_eq!(of(""), Targets::new().with_default(LevelFilter::ERROR));
        let by_target = of("info,conclave_party=debug,h2=off");
        assert!(by_target.would_enable("conclave_party::link", &Level::DEBUG));
        assert!(!by_target.would_enable("conclave_coordinator", &Level::DEBUG));
        assert!(by_target.would_enable("conclave_coordinator", &Level::INFO));
        assert!(!by_target.would_enable("h2::proto", &Level::ERROR));
        assert!(by_target.would_enable("conclave_vault::ledger", &Level::DEBUG));
        assert!(!of("info,conclave_party=debug,conclave_vault=warn").would_enable("conclave_vault::ledger", &Level::INFO));
        assert!(of("info,conclave_party::answer=debug").would_enable("conclave_vault::answer::open", &Level::DEBUG));
    }
}
