//! The daemons' pages, as their people open them.

use std::fs;

use super::Cluster;
use crate::visit::Visit;

/// Line of a party's configuration that has it serve its page.
pub const PAGE: &str = "page = \"127.0.0.1:0\"";

impl Cluster {
    /// Creates certificates and starts a coordinator with a dashboard.
    pub fn with_dashboard(exe: &str) -> Self {
        let mut cluster = Self::new(exe);
        cluster.coordinator_extra = "dashboard = \"127.0.0.1:0\"\n";
        cluster.kill_coordinator();
        cluster.start_coordinator();
        cluster
    }

    /// Has a party serve its page, and its owner decide by hand. To be called before the party is started.
    pub fn decide_by_hand(&self, party: usize) {
        self.configure_party(party, PAGE);
        let path = self.path(self.names()[party]).join("party.toml");
        let text = fs::read_to_string(&path).expect("a configuration").replace("\"automatic\"", "\"manual\"");
        fs::write(path, text).expect("a configuration");
    }

    /// Returns the address after the last occurrence of these words in a daemon's log.
    ///
    /// # Panics Panics where the log has none.
    pub fn logged_address(&self, daemon: &str, words: &str) -> String {
        let log = self.log(daemon);
        let (_, rest) = log.rsplit_once(words).unwrap_or_else(|| panic!("no {words:?} in the log of {daemon}"));
        rest.split('/').next().unwrap_or_default().to_owned()
    }

    /// Logs in to the coordinator's dashboard as its operator.
    pub fn visit_dashboard(&self) -> Visit {
        Visit::login(&self.logged_address("coordinator", "dashboard at http://"), &self.token("coordinator/dashboard-token"))
    }

    /// Logs in to the page of a party as its owner.
    pub fn visit_owner(&self, party: &str) -> Visit {
        let token = self.token(&format!("{party}/identity/page-token"));
        Visit::login(&self.logged_address(party, "page at http://"), &token)
    }

    fn token(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).expect("a token")
    }
}
