//! Settings of a job file that are overridden on the command line.

use conclave_proto::error::Fault;
use toml_edit::{DocumentMut, Item, value};

use crate::faults::input;

/// Settings that replace those of a job file before it is signed.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct Overrides {
    /// Name of the job, in place of the file's
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Budget at each party, in place of the file's `privacy.epsilon`
    #[arg(long, value_name = "E")]
    pub(crate) epsilon: Option<f64>,
}

impl Overrides {
    /// Returns the file's text with these settings; comments and layout stay.
    ///
    /// # Errors
    /// A text that is not TOML, or whose `privacy` is no table. A value out of range is left to the check of the job.
    pub(crate) fn apply(&self, text: String) -> Result<String, Fault> {
        if self.name.is_none() && self.epsilon.is_none() {
            return Ok(text);
        }
        let mut file: DocumentMut = text.parse().map_err(|e: toml_edit::TomlError| input(e.to_string()))?;
        if let Some(name) = &self.name {
            set(&mut file["name"], value(name));
        }
        if let Some(epsilon) = self.epsilon {
            let privacy = file.get_mut("privacy").and_then(Item::as_table_like_mut);
            let privacy = privacy.ok_or_else(|| input("--epsilon: the job file has no [privacy] table".to_owned()))?;
            set(privacy.entry("epsilon").or_insert(Item::None), value(epsilon));
        }
        Ok(file.to_string())
    }
}

/// Sets a value and keeps the comment after the one that it replaces.
fn set(place: &mut Item, mut new: Item) {
    let decor = place.as_value().map(|old| old.decor().clone());
    if let (Some(decor), Some(new)) = (decor, new.as_value_mut()) {
        *new.decor_mut() = decor;
    }
    *place = new;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn settings_are_replaced_and_comments_stay() {
        let text = "# mine\nname = \"a\" # first\n[privacy] # all\nepsilon = 1.0 # small\ndelta = 1e-6\n".to_owned();
        let overrides = Overrides { name: Some("b".to_owned()), epsilon: Some(2.5) };
        assert_eq!(
            overrides.apply(text.clone()).unwrap(),
            "# mine\nname = \"b\" # first\n[privacy] # all\nepsilon = 2.5 # small\ndelta = 1e-6\n"
        );
        assert_eq!(Overrides::default().apply(text).unwrap().lines().count(), 5);
        assert!(overrides.apply("name = \"a\"\n".to_owned()).unwrap_err().message.contains("[privacy]"));
        assert_eq!(
            overrides.apply("privacy = { epsilon = 1 }\n".to_owned()).unwrap(),
            "privacy = { epsilon = 2.5 }\nname = \"b\"\n"
        );
    }
}
