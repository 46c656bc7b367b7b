//! The kept draws in the data's own units, in addition to those on the scale of the priors.

use std::path::{Path, PathBuf};

use conclave_common::job::JobSpec;
use conclave_common::schema::ColumnSpec;
use conclave_proto::array_name::encode;
use serde_json::{Map, Value, json};

use super::array::{AnyArray, Array};
use super::layout::maker_attributes;
use super::section::CHAIN_DRAW;

pub(crate) const GROUP: &str = "posterior_original";

/// The group `posterior_original`: the kept draws in the data's own units, and the public bounds that define the mapping.
#[derive(Debug)]
pub(super) struct Original {
    pub(super) folder: PathBuf,
    pub(super) attributes: Map<String, Value>,
    theta: Vec<Array<f64>>,
    chain: Array<i64>,
    draw: Array<i64>,
}

impl Original {
    /// Builds the group from the kept draws `samples`, `[parameter][chain]`, with chains of equal length.
    pub(super) fn new(spec: &JobSpec, samples: &[Vec<&[f64]>], root: &Path) -> Self {
        let names = spec.draw_names();
        let kept = samples.first().and_then(|chains| chains.first()).map_or(0, |chain| chain.len());
        let folder = root.join(GROUP);
        let theta = names.iter().zip(spec.in_original_units(samples)).enumerate().map(|(i, (name, rows))| {
            Array::from_rows(folder.join(encode(name, i)), CHAIN_DRAW, rows).with_attribute("parameter", name.as_str())
        });
        let count = |length: usize| vec![(0..length as i64).collect::<Vec<_>>()];
        let mut attributes = maker_attributes();
        attributes.insert("scale".to_owned(), json!("the data's own units"));
        attributes.insert("columns".to_owned(), columns(spec));
        Self {
            theta: theta.collect(),
            chain: Array::from_rows(folder.join("chain"), &["chain"], count(samples.first().map_or(0, Vec::len))),
            draw: Array::from_rows(folder.join("draw"), &["draw"], count(kept)),
            attributes,
            folder,
        }
    }

    pub(super) fn arrays(&self) -> Vec<(&dyn AnyArray, usize)> {
        let length = self.draw.len();
        let theta = self.theta.iter().map(|array| (array as &dyn AnyArray, length));
        theta.chain([(&self.chain as &dyn AnyArray, self.chain.len()), (&self.draw, length)]).collect()
    }

    /// Writes its chunks, then its metadata.
    pub(super) fn write(&mut self) -> std::io::Result<()> {
        super::layout::write_group(&self.folder, &self.attributes)?;
        let length = self.draw.len();
        for array in &mut self.theta {
            array.flush_chunks()?;
            array.write_metadata(length)?;
        }
        for array in [&mut self.chain, &mut self.draw] {
            array.flush_chunks()?;
            array.write_metadata(array.len())?;
        }
        Ok(())
    }
}

/// Returns the columns as declared in the job file: bounds, `binary`, or levels with the reference first. Derived columns of a formula
/// follow with the bounds that result from those of their columns.
pub(crate) fn columns(spec: &JobSpec) -> Value {
    let declared = |column: &ColumnSpec| match column {
        ColumnSpec::Numeric { min, max } => json!({"min": min, "max": max}),
        ColumnSpec::Binary => json!({"binary": true}),
        ColumnSpec::Levels(levels) => json!({"levels": levels.to_vec()}),
    };
    let derived = spec.model.design().into_iter().flat_map(|design| &design.derived).map(|derived| derived.name.as_str());
    let used = spec.model.columns().into_iter().chain(derived);
    let columns = used.filter_map(|name| Some((name.to_owned(), declared(spec.columns.get(name)?))));
    Value::Object(columns.collect())
}
