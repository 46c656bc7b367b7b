//! Parties: their configuration, enrolment and pins.

use std::fs;
use std::path::Path;

use super::Cluster;
use crate::study;

/// The set-up of one party.
pub struct PartySetup<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its data file.
    pub data: &'a Path,
    /// The column names that its policy admits.
    pub columns: &'a [&'a str],
    /// Its data set's epsilon, at delta = 1e-6.
    pub epsilon: f64,
    /// Lines added to `[data]`.
    pub data_extra: &'a str,
    /// Lines added to `[budget]`.
    pub budget_extra: &'a str,
    /// Lines added to `[policy]`.
    pub policy_extra: &'a str,
}

impl Cluster {
    /// Writes a party's configuration and enrols the party without starting it; returns its index.
    pub fn enrol(&mut self, setup: &PartySetup<'_>) -> usize {
        let name = setup.name;
        let columns: Vec<String> = setup.columns.iter().map(|c| format!("\"{c}\"")).collect();
        let text = format!(
            "name = \"{name}\"\ncoordinator = \"{}\"\nidentity = \"identity/\"\nledger = \"ledger.sqlite\"\n\
             [data]\npath = {:?}\n{}\n[budget]\nepsilon = {:?}\ndelta = 1e-6\n{}[policy]\napprove = \"automatic\"\ncolumns = [{}]\n{}\n",
            self.url,
            setup.data,
            setup.data_extra,
            setup.epsilon,
            setup.budget_extra,
            columns.join(", "),
            setup.policy_extra,
        );
        fs::create_dir_all(self.path(name)).expect("a party's folder");
        fs::write(self.path(name).join("party.toml"), text).expect("a party's configuration");
        let config = format!("{name}/party.toml");
        let init = |more: &[&str]| {
            let args = [&["__party", "init", "--config", &config], more].concat();
            self.command_of(self.build_of(name), &args).output().expect("the binary starts")
        };
        let mut made = init(&["--yes"]);
        // An older build may not know the option, and asks nothing.
        if String::from_utf8_lossy(&made.stderr).contains("unexpected argument '--yes'") {
            made = init(&[]);
        }
        let init = made;
        assert!(init.status.success(), "{}", String::from_utf8_lossy(&init.stderr));
        self.must(&["ca", "sign", &format!("{name}/identity/request.pem"), "--ca", "ca"]);
        self.parties.push((name.to_owned(), None));
        self.parties.len() - 1
    }

    /// Enrols a party with these records of the small study and no reply delay, without starting it; returns its index.
    pub fn enrol_study(&mut self, name: &str, records: &[study::Record], epsilon: f64) -> usize {
        let data = study::write(&self.path(&format!("{name}.csv")), &study::csv(records));
        let (columns, policy_extra) = (&study::COLUMNS, "reply_delay_ms = 0");
        self.enrol(&PartySetup { name, data: &data, columns, epsilon, data_extra: "", budget_extra: "", policy_extra })
    }

    /// Makes every enrolled party admit jobs with masked answers and pin all other parties by the fingerprints that they print.
    /// To be called before the parties are started.
    pub fn pin_all(&self) {
        let names = self.names();
        let line = |name: &&str| {
            let printed = self.must(&["__party", "fingerprint", "--config", &format!("{name}/party.toml")]);
            printed.trim().replacen(' ', " = \"", 1) + "\"\n"
        };
        let lines: Vec<String> = names.iter().map(line).collect();
        for (party, name) in names.iter().enumerate() {
            let others = lines.iter().enumerate().filter(|(other, _)| *other != party);
            let pins: String = others.map(|(_, line)| line.as_str()).collect();
            let path = self.path(name).join("party.toml");
            let text = fs::read_to_string(&path).expect("a configuration");
            fs::write(path, format!("{text}\n[secure]\nallow = true\n[secure.pinned]\n{pins}")).expect("a configuration");
        }
    }

    /// Adds lines before the tables of a party's configuration.
    pub fn configure_party(&self, party: usize, lines: &str) {
        let path = self.path(&self.parties[party].0).join("party.toml");
        let text = fs::read_to_string(&path).expect("a configuration");
        fs::write(path, format!("{lines}\n{text}")).expect("a configuration");
    }
}
