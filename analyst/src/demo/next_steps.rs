//! Output of the demo: its result with the true values, and suggested next commands.

use std::path::{Path, PathBuf};

use conclave_proto::error::{ErrorCode, Fault};
use conclave_proto::v1::JobStatus;

use super::folder::DemoFolder;
use super::program::{quoted, text};

/// Adds the true coefficients to the result's object; every number keeps its original text.
pub(super) fn with_truth(result_json: &str, truth: &[(&str, f64)]) -> Result<String, Fault> {
    let truth: serde_json::Map<String, serde_json::Value> =
        truth.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect();
    result_json
        .trim()
        .strip_suffix('}')
        .map(|body| format!("{body},\"true\":{}}}", serde_json::Value::Object(truth)))
        .ok_or_else(|| Fault::new(ErrorCode::Internal, "the coordinator sent no result"))
}

/// Returns suggested commands that can be run unchanged.
pub(super) fn next_steps(folder: &DemoFolder, status: &JobStatus, url: &str) -> String {
    let program = std::env::args_os().next().unwrap_or_else(|| "conclave".into());
    let program = text().unwrap_or_else(|| quoted(Path::new(&program)));
    let (root, job) = (&folder.root, &status.job);
    let run = |daemon: &str, config: PathBuf| format!("  {} run --config {}\n", command_of(daemon), quoted(&config));
    let mut text = format!(
        "Everything is in {}: configurations, ledgers, draws, logs.\n\nTo start it again by hand, run each in its own \
         terminal:\n",
        root.display()
    );
    text += &run("coordinator", folder.coordinator().join("coordinator.toml"));
    for party in &folder.parties {
        text += &run("party", folder.party(party).join("party.toml"));
    }
    text += &format!(
        "\nThen, as the analyst:\n  export CONCLAVE_COORDINATOR={url} CONCLAVE_IDENTITY={}\n  {program} jobs\n  \
         {program} summary {job}\n  {program} report {job} -o report.html\n  {program} draws {job} --format zarr --out draws\n  \
         {program} submit {} --wait\n",
        quoted(&folder.analyst()),
        quoted(&folder.job()),
    );
    if let Some(party) = folder.parties.first() {
        text += &format!(
            "\nAs a data owner:\n  {} budget --config {}\n",
            command_of("party"),
            quoted(&folder.party(party).join("party.toml"))
        );
    }
    text
}

/// Returns the command of a daemon: its own program if built beside this one, else this program's hidden subcommand.
fn command_of(daemon: &str) -> String {
    if let Some(program) = super::program::text() {
        return format!("{program} __{daemon}");
    }
    let beside = std::env::current_exe()
        .ok()
        .map(|exe| exe.with_file_name(format!("conclave-{daemon}{}", std::env::consts::EXE_SUFFIX)))
        .filter(|path| path.exists());
    let program = std::env::args_os().next().map(PathBuf::from);
    match (beside, program) {
        (Some(beside), Some(program)) => {
            // Written as this program was on the command line, to keep the command short.
            let name = beside.file_name().map(PathBuf::from).unwrap_or_default();
            quoted(&program.with_file_name(name))
        }
        (_, program) => {
            format!("{} __{daemon}", quoted(&program.unwrap_or_else(|| "conclave".into())))
        }
    }
}
