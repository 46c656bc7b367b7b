//! The connection to a coordinator: each call is a task of the process's runtime, waited for or reported to a callback.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};

use conclave::api::{self, Fault, Refit};
use pyo3::prelude::*;
use serde_json::{Value, json};
use tokio::task::{AbortHandle, JoinHandle};

use crate::errors::{exception, input, internal, raised};
use crate::process::runtime;
use crate::runs::Run;
use crate::waiting::{Ended, Event, attend};

/// The answer to a call.
enum Reply {
    Object(Value),
    Run(Box<api::Run>),
}

impl Reply {
    fn into_py(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self {
            Self::Object(value) => Ok(value.to_string().into_pyobject(py)?.into_any().unbind()),
            Self::Run(run) => Ok(Py::new(py, Run::new(*run))?.into_any()),
        }
    }
}

/// A call that runs by itself.
#[pyclass(frozen, module = "conclave._conclave")]
pub(crate) struct Task(AbortHandle);

#[pymethods]
impl Task {
    /// Ends the call; its callback is not called any more, unless it has ended.
    fn abort(&self) {
        self.0.abort();
    }
}

/// A connection to a coordinator.
#[pyclass(frozen, module = "conclave._conclave")]
pub(crate) struct Client {
    client: Mutex<api::Client>,
    process: u32,
}

#[pymethods]
impl Client {
    /// Connects as the analyst of an identity folder.
    #[new]
    fn new(py: Python<'_>, coordinator: String, identity: PathBuf) -> PyResult<Self> {
        let (send, events) = channel();
        let connecting = async move { api::Client::connect(&coordinator, identity).await };
        let task = raised(py, spawn(connecting, send))?;
        let Ended { result, .. } = attend(py, events, None, &|| task.abort(), false);
        Ok(Self { client: Mutex::new(result?), process: std::process::id() })
    }

    /// The warning of a certificate that expires soon.
    #[getter]
    fn warning(&self, py: Python<'_>) -> PyResult<Option<String>> {
        Ok(raised(py, self.client())?.warning().map(str::to_owned))
    }

    /// Calls an operation with a JSON object of arguments and waits for it; `observe` is given each state of `watch`.
    #[pyo3(signature = (operation, arguments, observe=None))]
    fn call(
        &self,
        py: Python<'_>,
        operation: String,
        arguments: &str,
        observe: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let (client, arguments) = (raised(py, self.client())?, raised(py, parsed(arguments))?);
        let (send, events) = channel();
        let states = send.clone();
        let work = async move {
            let observe = move |state: &Value| drop(states.send(Event::State(state.to_string())));
            perform(&client, &operation, arguments, observe).await
        };
        let task = raised(py, spawn(work, send))?;
        let Ended { result, .. } = attend(py, events, observe, &|| task.abort(), false);
        result?.into_py(py)
    }

    /// Starts an operation; `done` is called from another thread with the answer and None, or None and the exception, and
    /// `observe` with each state.
    #[pyo3(signature = (operation, arguments, done, observe=None))]
    fn start(
        &self,
        py: Python<'_>,
        operation: String,
        arguments: &str,
        done: Py<PyAny>,
        observe: Option<Py<PyAny>>,
    ) -> PyResult<Task> {
        let (client, arguments) = (raised(py, self.client())?, raised(py, parsed(arguments))?);
        let runtime = raised(py, runtime())?;
        let work = async move {
            let observe = move |state: &Value| {
                let Some(call) = &observe else { return };
                let text = state.to_string();
                Python::attach(|py| call.call1(py, (text,)).map_or_else(|error| error.write_unraisable(py, None), drop));
            };
            let ended = perform(&client, &operation, arguments, observe).await;
            Python::attach(|py| {
                let ended = ended.map_err(|fault| exception(py, &fault)).and_then(|reply| reply.into_py(py));
                let called = match ended {
                    Ok(answer) => done.call1(py, (answer, py.None())),
                    Err(error) => done.call1(py, (py.None(), error.into_value(py))),
                };
                called.map_or_else(|error| error.write_unraisable(py, None), drop);
            });
        };
        Ok(Task(runtime.spawn(work).abort_handle()))
    }
}

impl Client {
    /// Returns the connection.
    ///
    /// # Errors
    /// A process other than the one that made it: its threads are not here.
    fn client(&self) -> Result<api::Client, Fault> {
        if self.process != std::process::id() {
            let message = format!("this Client belongs to process {}, which this one was forked from", self.process);
            return Err(input(message).with_remedy("make a Client in this process"));
        }
        Ok(self.client.lock().map_err(|_| internal("a call has failed before"))?.clone())
    }
}

fn parsed(arguments: &str) -> Result<Value, Fault> {
    serde_json::from_str(arguments).map_err(|e| input(e.to_string()))
}

/// Runs work on the runtime, and sends its end.
fn spawn<T: Send + 'static>(
    work: impl Future<Output = Result<T, Fault>> + Send + 'static,
    send: Sender<Event<T>>,
) -> Result<JoinHandle<()>, Fault> {
    // The waiting thread may have been interrupted.
    Ok(runtime()?.spawn(async move { drop(send.send(Event::Done(work.await))) }))
}

/// Performs an operation by its name.
async fn perform(
    client: &api::Client,
    operation: &str,
    arguments: Value,
    observe: impl FnMut(&Value) + Send,
) -> Result<Reply, Fault> {
    let text = |key: &str| arguments[key].as_str().unwrap_or_default().to_owned();
    let texts = |key: &str| -> Vec<String> {
        arguments[key].as_array().into_iter().flatten().filter_map(|value| value.as_str().map(str::to_owned)).collect()
    };
    let id = text("id");
    Ok(Reply::Object(match operation {
        "submit" => client.submit(&text("job"), arguments["anyway"] == true).await?,
        "jobs" => client.jobs().await?,
        "budget" => client.budget(texts("parties")).await?,
        "whole_id" => json!(client.whole_id(&id).await?),
        "status" => client.status(&id).await?,
        "watch" => client.watch(&id, observe).await?,
        "cancel" => client.cancel(&id).await?,
        "job" => json!(client.job(&id).await?),
        "report" => json!(client.report(&id, &texts("per")).await?),
        "extend" => client.extend(&id, arguments["draws"].as_u64(), arguments["epsilon"].as_f64()).await?,
        "result" => return Ok(Reply::Run(Box::new(client.result(&id).await?))),
        "refit" => {
            let changes: Refit = serde_json::from_value(arguments["changes"].clone()).map_err(|e| input(e.to_string()))?;
            return Ok(Reply::Run(Box::new(client.refit(&id, changes).await?)));
        }
        other => return Err(internal(format!("there is no operation {other:?}"))),
    }))
}
