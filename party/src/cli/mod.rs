//! `conclave-party`: the owner's commands.

mod answer;
mod audit;
mod backup;
mod budget;
mod check;
mod command;
mod common;
mod decide;
mod doctor;
mod dossier;
mod init;
mod jobs;
mod ledger;
mod member_list;
mod pin;
mod renew;
mod run;
mod statement;
mod status;
mod verify;

pub use command::cli_main;
