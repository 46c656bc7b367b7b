//! Declared settings of configuration files.
//!
//! [`settings!`](crate::settings!) declares a table once: its keys with their types, defaults and admissible values. The declaration
//! yields the reader, errors that name the key, and the list of keys that the documents are compared with.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound::{Excluded, Included};
use std::ops::RangeBounds;
use std::path::PathBuf;

use toml::de::{DeTable, DeValue};
pub use toml::{Table, Value};

use crate::spelling::nearest;
use crate::text::figure;

/// A setting that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Dotted path of the key; empty for the file as a whole.
    pub key: String,
    /// The fault, as a predicate of the key, and its remedy.
    pub message: String,
    /// True if the value has another type.
    mistyped: bool,
}

impl Fault {
    /// Returns a fault of the value that is being read.
    pub fn of(message: impl Into<String>) -> Self {
        Self { key: String::new(), message: message.into(), mistyped: false }
    }

    fn type_of(value: &Value, expected: &str) -> Self {
        Self { mistyped: true, ..Self::of(format!("must be {expected}, but is of type {}", value.type_str())) }
    }

    fn under(mut self, key: &str) -> Self {
        let joint = if self.key.is_empty() || self.key.starts_with('[') { "" } else { "." };
        self.key = format!("{key}{joint}{}", self.key);
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.key.is_empty() { f.write_str(&self.message) } else { write!(f, "`{}` {}", self.key, self.message) }
    }
}

/// The keys that a table may hold.
#[derive(Debug, Clone, Copy)]
pub enum Keys {
    /// A table with exactly these keys.
    Table(&'static [(&'static str, Keys)]),
    /// A table whose keys are the user's own names, each a value of this kind.
    Named(&'static Keys),
    /// A value.
    Any,
}

impl Keys {
    /// Returns the dotted path of every key that a file may hold, without the enclosing tables. `NAME` stands for the user's own
    /// names of tables.
    #[must_use]
    pub fn paths(&self) -> Vec<String> {
        let below = |name: &str, keys: &Keys| {
            let paths = keys.paths().into_iter().map(|path| format!("{name}.{path}")).collect::<Vec<_>>();
            if paths.is_empty() { vec![name.to_owned()] } else { paths }
        };
        match self {
            Keys::Any | Keys::Named(Keys::Any) => Vec::new(),
            Keys::Named(inner) => below("NAME", inner),
            Keys::Table(known) => known.iter().flat_map(|(name, keys)| below(name, keys)).collect(),
        }
    }
}

/// A type that a value of a file is read as.
pub trait Setting: Sized {
    /// The keys of a table; [`Keys::Any`] for any other value.
    const KEYS: Keys = Keys::Any;

    /// Reads a value.
    ///
    /// # Errors
    /// The first fault, with its key relative to the value.
    fn read(value: &Value) -> Result<Self, Fault>;

    /// Returns the value of a key that the file leaves out; `None` if the key is required.
    fn absent() -> Option<Self> {
        None
    }
}

/// Reads a file, also as a table.
///
/// # Errors
/// Text that is not TOML; the first fault of a setting.
pub fn read<T: Setting>(text: &str) -> Result<(T, Table), Fault> {
    let table: Table = text.parse().map_err(|e: toml::de::Error| Fault::of(e.to_string().trim_end()))?;
    let value = Value::Table(table);
    let read = T::read(&value).map_err(|mut fault| {
        if let Some(line) = line(text, &fault.key).filter(|_| fault.mistyped) {
            fault.message += &format!(" (line {line})");
        }
        fault
    })?;
    let Value::Table(table) = value else { unreachable!("it was made of a table") };
    Ok((read, table))
}

/// Returns the line of the value under a dotted key, or of the list or table that holds it.
fn line(text: &str, key: &str) -> Option<usize> {
    let file = DeValue::Table(DeTable::parse(text).ok()?.into_inner());
    let (mut value, mut start) = (&file, None);
    for part in key.split('.') {
        let Some(inner) = value.get(part.split('[').next().unwrap_or(part)) else { break };
        start = Some(inner.span().start);
        value = inner.get_ref();
    }
    Some(text.get(..start?)?.matches('\n').count() + 1)
}

/// Returns the table of a value, if it has no key besides these.
#[doc(hidden)]
pub fn table<'a>(value: &'a Value, keys: &Keys) -> Result<&'a Table, Fault> {
    let table = value.as_table().ok_or_else(|| Fault::type_of(value, "a table"))?;
    let Keys::Table(known) = keys else { return Ok(table) };
    let Some(other) = table.keys().find(|name| known.iter().all(|(key, _)| key != name)) else { return Ok(table) };
    let known: Vec<&str> = known.iter().map(|(key, _)| *key).collect();
    let hint = nearest(other, known.iter().copied()).map(|key| format!(" (did you mean `{key}`?)")).unwrap_or_default();
    Err(Fault::of(format!("is not a known key{hint}; known here: {}", known.join(", "))).under(other))
}

/// Reads the value under a key, if the table has the key.
#[doc(hidden)]
pub fn optional<T>(table: &Table, key: &str, read: impl Fn(&Value) -> Result<T, Fault>) -> Result<Option<T>, Fault> {
    table.get(key).map(read).transpose().map_err(|fault| fault.under(key))
}

/// Reads the value under a key, which is required unless a `T` may be absent.
#[doc(hidden)]
pub fn or_absent<T: Setting>(table: &Table, key: &str) -> Result<T, Fault> {
    required(table, key, T::read).or_else(|fault| T::absent().filter(|_| !table.contains_key(key)).ok_or(fault))
}

/// Reads the value under a key, which is required unless `F` is optional.
#[doc(hidden)]
pub fn required<F: FromOptional<T>, T>(table: &Table, key: &str, read: impl Fn(&Value) -> Result<T, Fault>) -> Result<F, Fault> {
    F::from_optional(optional(table, key, read)?).ok_or_else(|| Fault::of("is missing").under(key))
}

/// A field's type: that of its value, or an option of it.
#[doc(hidden)]
pub trait FromOptional<T>: Sized {
    fn from_optional(value: Option<T>) -> Option<Self>;
}

impl<T> FromOptional<T> for T {
    fn from_optional(value: Option<T>) -> Option<T> {
        value
    }
}

impl<T> FromOptional<T> for Option<T> {
    fn from_optional(value: Option<T>) -> Option<Option<T>> {
        Some(value)
    }
}

/// Returns whether a file has a value under a dotted key.
#[must_use]
pub fn is_written(file: &Table, key: &str) -> bool {
    let mut parts = key.split('.');
    let first = parts.next().and_then(|part| file.get(part));
    parts.try_fold(first, |value, part| Some(value?.get(part))).flatten().is_some()
}

/// Declares a table of a configuration file as a struct that implements [`Setting`](crate::settings::Setting).
///
/// A field is a key. `key: T` is required unless `T` may be absent: an `Option`, a list, a table without required keys. `key: T =
/// default` has a default. With `=> reader` a function such as [`within`](crate::settings::within) reads the value.
#[macro_export]
macro_rules! settings {
    ($(#[$about:meta])* $vis:vis struct $name:ident {
        $($(#[$help:meta])* $key:ident: $type:ty $(= $default:expr)? $(=> $reader:expr)?),* $(,)?
    }) => {
        $(#[$about])*
        $vis struct $name { $($(#[$help])* $vis $key: $type),* }

        impl $crate::settings::Setting for $name {
            const KEYS: $crate::settings::Keys =
                $crate::settings::Keys::Table(&[$((stringify!($key), $crate::settings!(@keys $type $(=> $reader)?))),*]);

            fn read(value: &$crate::settings::Value) -> Result<Self, $crate::settings::Fault> {
                let table = $crate::settings::table(value, &Self::KEYS)?;
                Ok(Self { $($key: $crate::settings!(@read table $key $(= $default)? $(=> $reader)?)),* })
            }

            fn absent() -> Option<Self> {
                Self::read(&$crate::settings::Value::Table($crate::settings::Table::new())).ok()
            }
        }
    };
    (@keys $type:ty) => { <$type as $crate::settings::Setting>::KEYS };
    (@keys $type:ty => $reader:expr) => { $crate::settings::Keys::Any };
    (@read $table:ident $key:ident) => { $crate::settings::or_absent($table, stringify!($key))? };
    (@read $table:ident $key:ident = $default:expr) => {
        $crate::settings!(@read $table $key = $default => $crate::settings::Setting::read)
    };
    (@read $table:ident $key:ident => $reader:expr) => {
        $crate::settings::required($table, stringify!($key), $reader)?
    };
    (@read $table:ident $key:ident = $default:expr => $reader:expr) => {
        $crate::settings::optional($table, stringify!($key), $reader)?.unwrap_or_else(|| $default)
    };
}

impl Setting for bool {
    fn read(value: &Value) -> Result<Self, Fault> {
        value.as_bool().ok_or_else(|| Fault::type_of(value, "true or false"))
    }
}

impl Setting for String {
    fn read(value: &Value) -> Result<Self, Fault> {
        value.as_str().map(str::to_owned).ok_or_else(|| Fault::type_of(value, "a text"))
    }
}

impl Setting for PathBuf {
    fn read(value: &Value) -> Result<Self, Fault> {
        String::read(value).map(Self::from)
    }
}

impl<T: Setting> Setting for Option<T> {
    const KEYS: Keys = T::KEYS;

    fn read(value: &Value) -> Result<Self, Fault> {
        T::read(value).map(Some)
    }

    fn absent() -> Option<Self> {
        Some(None)
    }
}

impl<T: Setting> Setting for Vec<T> {
    fn read(value: &Value) -> Result<Self, Fault> {
        each(T::read)(value)
    }

    fn absent() -> Option<Self> {
        Some(Self::new())
    }
}

impl<T: Setting> Setting for BTreeMap<String, T> {
    const KEYS: Keys = Keys::Named(&T::KEYS);

    fn read(value: &Value) -> Result<Self, Fault> {
        each_named(T::read)(value)
    }

    fn absent() -> Option<Self> {
        Some(Self::new())
    }
}

/// A number with a range.
pub trait Number: Setting + PartialOrd + Copy {
    /// Returns the number as errors state it.
    fn shown(self) -> String;
}

impl Setting for f64 {
    fn read(value: &Value) -> Result<Self, Fault> {
        let whole = || value.as_integer().map(|whole| whole as f64);
        value.as_float().or_else(whole).ok_or_else(|| Fault::type_of(value, "a number"))
    }
}

impl Number for f64 {
    fn shown(self) -> String {
        figure(self)
    }
}

macro_rules! whole_numbers {
    ($($type:ty)*) => {$(
        impl Setting for $type {
            fn read(value: &Value) -> Result<Self, Fault> {
                let whole = value.as_integer().ok_or_else(|| Fault::type_of(value, "a whole number"))?;
                whole.try_into().map_err(|_| Fault::of(format!("must be between {} and {}, not {whole}", Self::MIN, Self::MAX)))
            }
        }

        impl Number for $type {
            fn shown(self) -> String {
                self.to_string()
            }
        }
    )*};
}
whole_numbers!(i64 u32 u64 usize);

/// Reads a number within a range.
pub fn within<T: Number>(range: impl RangeBounds<T>) -> impl Fn(&Value) -> Result<T, Fault> {
    move |value| match T::read(value) {
        Ok(number) if range.contains(&number) => Ok(number),
        Err(fault) if fault.mistyped => Err(fault),
        _ => {
            let range = match (range.start_bound(), range.end_bound()) {
                (Included(least), Included(most)) => format!("be between {} and {}", least.shown(), most.shown()),
                (Included(least), Excluded(limit)) => format!("be at least {} and below {}", least.shown(), limit.shown()),
                (Excluded(limit), Included(most)) => format!("be above {} and at most {}", limit.shown(), most.shown()),
                (Excluded(low), Excluded(high)) => format!("lie strictly between {} and {}", low.shown(), high.shown()),
                (Included(least), _) => format!("be at least {}", least.shown()),
                _ => "be a number".to_owned(),
            };
            Err(Fault::of(format!("must {range}, not {value}")))
        }
    }
}

/// Reads a finite number above 0.
///
/// # Errors
/// Any other value.
pub fn positive(value: &Value) -> Result<f64, Fault> {
    above(0.0)(value).map_err(|fault| Fault { message: fault.message.replace("above 0", "positive"), ..fault })
}

/// Reads a finite number above a limit.
pub fn above(limit: f64) -> impl Fn(&Value) -> Result<f64, Fault> {
    move |value| match f64::read(value)? {
        number if number.is_finite() && number > limit => Ok(number),
        number => Err(Fault::of(format!("must be above {limit}, not {number}"))),
    }
}

/// Reads the word `auto` as none, and any other value by a reader, which `expected` describes.
pub fn auto_or<T>(expected: &str, read: impl Fn(&Value) -> Result<T, Fault>) -> impl Fn(&Value) -> Result<Option<T>, Fault> {
    move |value| match value.as_str() {
        Some("auto") => Ok(None),
        Some(word) => Err(Fault::of(format!("must be \"auto\" or {expected}, not {word:?}"))),
        None => read(value).map(Some),
    }
}

/// Reads a word that stands for a value.
pub fn one_of<T: Copy>(known: &[(&'static str, T)]) -> impl Fn(&Value) -> Result<T, Fault> {
    move |value| {
        let word = value.as_str().ok_or_else(|| Fault::type_of(value, "a text"))?;
        known.iter().find(|(name, _)| *name == word).map(|(_, meaning)| *meaning).ok_or_else(|| {
            let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            let hint = nearest(word, names.iter().copied()).map(|name| format!(" (did you mean {name:?}?)")).unwrap_or_default();
            Fault::of(format!("is {word:?}{hint}; known: {}", names.join(", ")))
        })
    }
}

/// Reads a list of values.
pub fn each<T>(read: impl Fn(&Value) -> Result<T, Fault>) -> impl Fn(&Value) -> Result<Vec<T>, Fault> {
    move |value| {
        let list = value.as_array().ok_or_else(|| Fault::type_of(value, "a list"))?;
        list.iter().enumerate().map(|(at, value)| read(value).map_err(|fault| fault.under(&format!("[{at}]")))).collect()
    }
}

/// Reads a table of values under the user's own names.
pub fn each_named<T>(read: impl Fn(&Value) -> Result<T, Fault>) -> impl Fn(&Value) -> Result<BTreeMap<String, T>, Fault> {
    move |value| {
        let one = |(name, value): (&String, &Value)| Ok((name.clone(), read(value).map_err(|fault| fault.under(name))?));
        table(value, &Keys::Any)?.iter().map(one).collect()
    }
}

/// Adds a remedy to the errors of a reader.
pub fn or<T>(remedy: &str, read: impl Fn(&Value) -> Result<T, Fault>) -> impl Fn(&Value) -> Result<T, Fault> {
    move |value| read(value).map_err(|fault| Fault { message: format!("{}; {remedy}", fault.message), ..fault })
}

#[cfg(test)]
mod tests;
