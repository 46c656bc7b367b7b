//! Unknown keys in configuration files. They are detected before any value is read, and reported with the nearest known key.

use crate::spelling::nearest;

/// The keys that a table may hold.
#[derive(Debug, Clone, Copy)]
pub enum Keys {
    /// A table with exactly these keys.
    Table(&'static [(&'static str, Keys)]),
    /// A table whose keys are the user's own names, each a table of this kind.
    Named(&'static Keys),
    /// Anything: a value, or a table with the user's own names.
    Any,
}

impl Keys {
    /// Returns the dotted path of every key that a file may hold, without the enclosing tables. `NAME` stands for the user's own
    /// names.
    #[must_use]
    pub fn paths(&self) -> Vec<String> {
        match self {
            Keys::Any => Vec::new(),
            Keys::Named(inner) => inner.paths().into_iter().map(|path| format!("NAME.{path}")).collect(),
            Keys::Table(known) => known
                .iter()
                .flat_map(|(name, below)| match below {
                    Keys::Any => vec![(*name).to_owned()],
                    below => below.paths().into_iter().map(|path| format!("{name}.{path}")).collect(),
                })
                .collect(),
        }
    }
}

/// An unknown key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown key `{path}`{}; known here: {}", hint(.nearest), .known.join(", "))]
pub struct UnknownKey {
    /// Dotted path of the key.
    pub path: String,
    /// The nearest known key, if one is similar.
    pub nearest: Option<String>,
    /// All keys known in that table.
    pub known: Vec<String>,
}

fn hint(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|n| format!(" (did you mean `{n}`?)")).unwrap_or_default()
}

/// Checks every key of `table` against `keys`.
///
/// # Errors
/// The first unknown key, with its path.
pub fn check(table: &toml::Table, keys: &Keys) -> Result<(), UnknownKey> {
    walk("", table, keys)
}

fn walk(prefix: &str, table: &toml::Table, keys: &Keys) -> Result<(), UnknownKey> {
    for (name, value) in table {
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        let below = match keys {
            Keys::Any => return Ok(()),
            Keys::Named(inner) => inner,
            Keys::Table(known) => match known.iter().find(|(k, _)| k == name) {
                Some((_, below)) => below,
                None => {
                    return Err(UnknownKey {
                        path,
                        nearest: nearest(name, known.iter().map(|k| k.0)).map(str::to_owned),
                        known: known.iter().map(|k| k.0.to_owned()).collect(),
                    });
                }
            },
        };
        if let toml::Value::Table(inner) = value {
            walk(&path, inner, below)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const KEYS: Keys = Keys::Table(&[
        ("name", Keys::Any),
        ("sampler", Keys::Table(&[("chains", Keys::Any), ("draws", Keys::Any)])),
        ("columns", Keys::Named(&Keys::Table(&[("min", Keys::Any), ("max", Keys::Any)]))),
        ("prior", Keys::Any),
    ]);

    #[test]
    fn names_path_and_nearest() {
        let e = check(&"[sampler]\nchanis = 3".parse().unwrap(), &KEYS).unwrap_err();
        assert_eq!((e.path.as_str(), e.nearest.as_deref()), ("sampler.chanis", Some("chains")));
        assert!(e.to_string().contains("did you mean `chains`"));
        let e = check(&"[columns.age]\nmni = 3".parse().unwrap(), &KEYS).unwrap_err();
        assert_eq!(e.path, "columns.age.mni");
        let e = check(&"zzzzzzzzzz = 3".parse().unwrap(), &KEYS).unwrap_err();
        assert_eq!(e.nearest, None);
    }

    #[test]
    fn free_tables_take_any_name() {
        check(&"[prior]\nwhatever = 'x'\n[columns.x]\nmin=0\nmax=1".parse().unwrap(), &KEYS).unwrap();
    }
}
