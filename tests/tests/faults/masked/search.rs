//! Searches a disk, a log or a page for numbers in every form in which they could occur; and a log that keeps everything.

use std::collections::{BTreeSet, HashMap};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};

use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::util::SubscriberInitExt;

/// Length of the shortest form.
const SHORTEST: usize = 6;

/// Smaller numbers occur by chance in many places.
const LEAST: u64 = 1 << 31;

/// Returns the numbers that are large enough to search for.
pub(super) fn large(numbers: impl IntoIterator<Item = i64>) -> Vec<i64> {
    numbers.into_iter().filter(|number| number.unsigned_abs() > LEAST).collect()
}

/// Returns the forms in which a number could occur: eight bytes, six bytes as in SQLite, and its digits.
fn forms(number: i64) -> Vec<Vec<u8>> {
    let big = number.to_be_bytes();
    let fits_six = (number << 16) >> 16 == number;
    let mut forms = vec![
        number.to_le_bytes().to_vec(),
        big.to_vec(),
        number.to_string().into_bytes(),
        format!("{number:016x}").into_bytes(),
        format!("{number:016X}").into_bytes(),
        (number as f64).to_le_bytes().to_vec(),
        (number as f64).to_be_bytes().to_vec(),
    ];
    if fits_six {
        forms.push(big[2..].to_vec());
    }
    forms
}

/// Returns the numbers that occur in any form.
pub(super) fn found_in(numbers: &[i64], haystack: &[u8]) -> BTreeSet<i64> {
    let mut starts = vec![false; 1 << 16];
    let mut by_start: HashMap<[u8; SHORTEST], Vec<(Vec<u8>, i64)>> = HashMap::new();
    for number in numbers {
        for form in forms(*number) {
            starts[usize::from(u16::from_be_bytes([form[0], form[1]]))] = true;
            let start = form[..SHORTEST].try_into().expect("a form that is no shorter");
            by_start.entry(start).or_default().push((form, *number));
        }
    }
    let mut found = BTreeSet::new();
    for (at, window) in haystack.windows(SHORTEST).enumerate() {
        if starts[usize::from(u16::from_be_bytes([window[0], window[1]]))] {
            let here = by_start.get(window).into_iter().flatten();
            found.extend(here.filter(|(form, _)| haystack[at..].starts_with(form)).map(|(_, number)| *number));
        }
    }
    found
}

/// Returns the contents of all files of a folder, concatenated.
pub(super) fn files(folder: &Path) -> Vec<u8> {
    fn read(folder: &Path, into: &mut Vec<u8>) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("a file").path();
            if path.is_dir() {
                read(&path, into);
            } else {
                // A file deleted meanwhile, such as a key's draft, has no contents.
                into.extend(std::fs::read(&path).unwrap_or_default());
            }
        }
    }
    let mut all = Vec::new();
    read(folder, &mut all);
    all
}

/// A log that keeps everything.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Runs a function; returns its result and this thread's log meanwhile, at every level and without times.
pub(super) fn with_captured_log<T>(run: impl FnOnce() -> T) -> (T, Vec<u8>) {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = || tracing_subscriber::fmt().with_max_level(LevelFilter::TRACE).without_time().with_ansi(false);
    // With a single subscriber, another thread's first use of a log line would disable it for all threads.
    let _beside = subscriber().with_writer(std::io::sink).finish().set_default();
    let _listening = subscriber().with_writer(move || writer.clone()).finish().set_default();
    let out = run();
    let bytes = log.0.lock().expect("no panic").clone();
    (out, bytes)
}
