//! The filter of log lines, as `RUST_LOG` and `log_level` write it.

use tracing_subscriber::filter::{LevelFilter, Targets};

/// Written where `RUST_LOG` says nothing, or nothing that is a filter.
const DEFAULT_LEVEL: LevelFilter = LevelFilter::INFO;

/// Whether a text says which lines to write. A word alone is a level: as a target it would be one that nothing writes under.
pub(crate) fn is_filter(text: &str) -> bool {
    let known = |part: &str| part.contains('=') || part.trim().parse::<LevelFilter>().is_ok();
    !text.trim().is_empty() && text.split(',').all(known) && text.parse::<Targets>().is_ok()
}

/// The filter of log lines: levels by target, such as `info` or `warn,conclave_party=debug`, separated by commas.
pub(crate) fn filter(written: Option<&str>) -> Targets {
    let directives = |text: &str| text.split(',').filter(|part| !part.is_empty()).collect::<Vec<_>>().join(",");
    let read = written.and_then(|text| directives(text).parse().ok());
    read.unwrap_or_else(|| Targets::new().with_default(DEFAULT_LEVEL))
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn a_filter_sets_levels_by_target() {
        let of = |written| filter(Some(written));
        assert_eq!(filter(None), Targets::new().with_default(LevelFilter::INFO));
        assert_eq!([of("no=such=filter"), of("party=loud"), of("info,")], [filter(None), filter(None), filter(None)]);
        assert_eq!(of(""), Targets::new().with_default(LevelFilter::ERROR));
        let by_target = of("info,conclave_party=debug,h2=off");
        assert!(by_target.would_enable("conclave_party::link", &Level::DEBUG));
        assert!(!by_target.would_enable("conclave_coordinator", &Level::DEBUG));
        assert!(by_target.would_enable("conclave_coordinator", &Level::INFO));
        assert!(!by_target.would_enable("h2::proto", &Level::ERROR));
    }
}
