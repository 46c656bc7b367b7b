//! State that belongs to one process: the runtime of clients, and the threads of rehearsals. A fork's child has no threads of its parent,
//! so it makes its own.

use std::sync::{Arc, Mutex, TryLockError};
use std::time::{Duration, Instant};

use conclave::api::Fault;
use rayon::{ThreadPool, ThreadPoolBuilder};
use tokio::runtime::{Builder, Runtime};

use crate::errors::{input, internal};

/// Time after which a lock counts as one that a fork has left behind.
const PATIENCE: Duration = Duration::from_millis(500);

/// A value that is made once in each process.
struct PerProcess<T>(Mutex<Option<(u32, Arc<T>)>>);

impl<T> PerProcess<T> {
    fn get(&self, make: impl FnOnce() -> std::io::Result<T>) -> Result<Arc<T>, Fault> {
        let began = Instant::now();
        let mut held = loop {
            match self.0.try_lock() {
                Ok(held) => break held,
                Err(TryLockError::Poisoned(poisoned)) => break poisoned.into_inner(),
                Err(TryLockError::WouldBlock) if began.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(5)),
                Err(TryLockError::WouldBlock) => {
                    return Err(input("this process was forked while its parent was at work: start it by \"spawn\""));
                }
            }
        };
        let process = std::process::id();
        if let Some((of, value)) = held.as_ref()
            && *of == process
        {
            return Ok(Arc::clone(value));
        }
        let value = Arc::new(make().map_err(|e| internal(format!("no threads can be started: {e}")))?);
        // The parent's threads are not in this process: nothing may wait for them.
        if let Some(of_parent) = held.replace((process, Arc::clone(&value))) {
            std::mem::forget(of_parent);
        }
        Ok(value)
    }
}

static RUNTIME: PerProcess<Runtime> = PerProcess(Mutex::new(None));
static THREADS: PerProcess<ThreadPool> = PerProcess(Mutex::new(None));

/// Returns the runtime of this process's clients.
pub(crate) fn runtime() -> Result<Arc<Runtime>, Fault> {
    RUNTIME.get(|| Builder::new_multi_thread().worker_threads(2).thread_name("conclave").enable_all().build())
}

/// Returns the threads that read tables and rehearse in this process.
pub(crate) fn threads() -> Result<Arc<ThreadPool>, Fault> {
    THREADS.get(|| ThreadPoolBuilder::new().build().map_err(std::io::Error::other))
}
