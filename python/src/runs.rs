//! A run that has ended, as Python sees it: texts, and draws as bytes.

use conclave::api::{self, Draws};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// A run that has ended: the job as it ran, its object, and its draws as bytes in the machine's order.
#[pyclass(frozen, module = "conclave._conclave")]
pub(crate) struct Run {
    run: api::Run,
}

impl Run {
    pub(crate) fn new(run: api::Run) -> Self {
        Self { run }
    }

    fn draws(&self) -> &Draws {
        &self.run.draws
    }
}

#[pymethods]
impl Run {
    /// The text of the job as it ran.
    #[getter]
    fn job(&self) -> &str {
        &self.run.job
    }

    /// The run's object, a JSON text.
    #[getter]
    fn json(&self) -> &str {
        &self.run.json
    }

    /// The names of the parameters.
    #[getter]
    fn parameters(&self) -> Vec<String> {
        self.draws().parameters.clone()
    }

    /// The number of chains.
    #[getter]
    fn chains(&self) -> usize {
        self.draws().chains()
    }

    /// The name of the software that made the draws.
    #[getter]
    fn created_by(&self) -> &str {
        &self.draws().created_by
    }

    /// The kept draws as doubles, parameter by parameter, chain by chain.
    fn posterior<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        doubles(py, &self.draws().sampling.theta)
    }

    /// The kept draws in the data's own units; None if the run has none.
    fn original<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        self.draws().original.as_ref().map(|draws| doubles(py, draws)).transpose()
    }

    /// The warm-up's draws, like those of posterior.
    fn warmup<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        doubles(py, &self.draws().warmup.theta)
    }

    /// The statistics of the kept draws, or of the warm-up's: accepted as bytes, log_alpha as doubles, iteration as 64-bit integers.
    fn statistics<'py>(&self, py: Python<'py>, warmup: bool) -> PyResult<[Bound<'py, PyBytes>; 3]> {
        let phase = if warmup { &self.draws().warmup } else { &self.draws().sampling };
        let accepted: Vec<u8> = phase.accepted.iter().flatten().map(|accepted| u8::from(*accepted)).collect();
        let iteration: Vec<u8> = phase.iteration.iter().flatten().flat_map(|round| round.to_ne_bytes()).collect();
        let log_alpha = doubles(py, std::slice::from_ref(&phase.log_alpha))?;
        Ok([PyBytes::new(py, &accepted), log_alpha, PyBytes::new(py, &iteration)])
    }
}

/// Returns values as bytes, without a second copy.
fn doubles<'py>(py: Python<'py>, values: &[Vec<Vec<f64>>]) -> PyResult<Bound<'py, PyBytes>> {
    let values = || values.iter().flatten().flatten();
    PyBytes::new_with(py, 8 * values().count(), |bytes| {
        for (to, value) in bytes.chunks_exact_mut(8).zip(values()) {
            to.copy_from_slice(&value.to_ne_bytes());
        }
        Ok(())
    })
}
