//! A party's answer path alone, over pipes: a process that takes milliseconds to start and to kill.
//!
//! `conclave-answerer FOLDER strict|BLOCK [unlock|reserve]` unlocks the ledger, or adds to its reserve, as its owner would.
//! Without a third argument it reads frames from standard input and writes replies to standard output, each preceded by its
//! length in 32 bits, little endian. Data, ledger, noise and answers are the daemon's own; the daemon's link and consent are left
//! out. A missing ledger is created.
#![forbid(unsafe_code)]

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;

use conclave_proto::v1::{self, coordinator_frame, party_frame::Body};
use conclave_tests::crash::Mode;
use conclave_vault::answer::simulated::enter_roster;
use conclave_vault::answer::{Answerer, Opening};
use prost::Message;

/// An action on a party's folder.
type Act = fn(Mode, &Path) -> Result<(), String>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (folder, mode, act): (_, _, Act) = match args.as_slice() {
        [folder, mode] => (folder, mode, |mode, folder| serve(folder, mode)),
        [folder, mode, act] if act == "unlock" => (folder, mode, Mode::unlock),
        [folder, mode, act] if act == "reserve" => (folder, mode, Mode::add_reserve),
        _ => {
            eprintln!("conclave-answerer FOLDER strict|BLOCK [unlock|reserve]");
            return ExitCode::from(2);
        }
    };
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).init();
    let (folder, mode) = (Path::new(folder), Mode::parse(mode));
    match act(mode, folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("conclave-answerer: {why}");
            ExitCode::FAILURE
        }
    }
}

fn serve(folder: &Path, mode: Mode) -> Result<(), String> {
    let text = |e: &dyn std::fmt::Display| e.to_string();
    let mut answerer = mode.answerer(folder)?;
    let stdin = &mut std::io::stdin().lock();
    // One write per frame: a frame is sent whole or not at all.
    let stdout = &mut File::from(std::io::stdout().as_fd().try_clone_to_owned().map_err(|e| text(&e))?);
    send(stdout, Body::Hello(v1::Hello { protocol: 1, ..v1::Hello::default() })).map_err(|e| text(&e))?;
    while let Some(frame) = receive(stdin) {
        match frame.body {
            Some(coordinator_frame::Body::OpenJob(open)) => send(stdout, opened(&mut answerer, &open)).map_err(|e| text(&e))?,
            Some(coordinator_frame::Body::Query(query)) => {
                send(stdout, Body::Answer(answerer.answer(query))).map_err(|e| text(&e))?;
                answerer.catch_up();
            }
            Some(coordinator_frame::Body::Roster(piece)) => {
                if let Some(said) = enter_roster(&mut answerer, piece) {
                    send(stdout, said).map_err(|e| text(&e))?;
                }
            }
            // The failure has already been logged.
            Some(coordinator_frame::Body::CloseJob(close)) => drop(answerer.close(&close.job, &close.reason)),
            _ => {}
        }
    }
    answerer.end();
    Ok(())
}

fn opened(answerer: &mut Answerer, open: &v1::OpenJob) -> Body {
    let job = open.job.clone();
    match answerer.open(open) {
        Ok(Opening::Opened(holding, key)) => {
            let opened = conclave_proto::convert::opened_to_wire(&job, &holding);
            Body::JobOpened(v1::JobOpened { mask_key: key.map(|key| *key), ..opened })
        }
        Ok(Opening::Pending) => Body::JobPending(v1::JobPending { job, ..v1::JobPending::default() }),
        Ok(Opening::Full(reason)) => Body::JobPending(v1::JobPending { job, reason, full: true }),
        Err(fault) => Body::JobPending(v1::JobPending { job, reason: fault.to_string(), full: false }),
    }
}

fn send(to: &mut File, body: Body) -> std::io::Result<()> {
    let frame = v1::PartyFrame { body: Some(body) }.encode_to_vec();
    let length = u32::try_from(frame.len()).map_err(std::io::Error::other)?;
    to.write_all(&[&length.to_le_bytes(), frame.as_slice()].concat())
}

/// Returns the next frame; `None` at the end of the input.
fn receive(from: &mut impl Read) -> Option<v1::CoordinatorFrame> {
    let mut length = [0; 4];
    from.read_exact(&mut length).ok()?;
    let mut frame = vec![0; u32::from_le_bytes(length) as usize];
    from.read_exact(&mut frame).ok()?;
    v1::CoordinatorFrame::decode(frame.as_slice()).ok()
}
