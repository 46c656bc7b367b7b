//! Formats of log lines.

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    /// Text for people.
    #[default]
    Plain,
    /// One JSON object per line, with an event's fields beside its message.
    Json,
}

impl LogFormat {
    /// The names in a configuration.
    pub const NAMES: [&str; 2] = ["plain", "json"];

    /// Returns the format with this name.
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "plain" => Some(Self::Plain),
            "json" => Some(Self::Json),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_format() {
        assert!(LogFormat::NAMES.iter().all(|name| LogFormat::parse(name).is_some()));
        assert_eq!((LogFormat::parse("json"), LogFormat::parse("JSON")), (Some(LogFormat::Json), None));
    }
}
