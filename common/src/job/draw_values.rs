//! The values of a draw, of a job whose parameters may vary by party.

use super::sites::{SiteParameter, Sites};
use super::spec::JobSpec;

impl JobSpec {
    /// Returns the names of a draw's values. They are the model's parameters, of which one that varies by party stands for its mean over
    /// the parties; then, per varying parameter, its value at each party and its sd over them.
    #[must_use]
    pub fn draw_names(&self) -> Vec<String> {
        let mut names = self.model.parameter_names();
        let varying: Vec<String> = self.varying().iter().map(|site| names[site.index].clone()).collect();
        for name in varying {
            names.extend(self.parties.iter().map(|party| Sites::name_at(&name, party)));
            names.push(Sites::sd_name(&name));
        }
        names
    }

    /// Returns the parameters that vary by party; none without such parameters.
    #[must_use]
    pub fn varying(&self) -> &[SiteParameter] {
        self.sites.as_ref().map_or(&[], |sites| &sites.varying)
    }

    /// Returns the job as one party answers it: the model at that party alone, without a hierarchy.
    #[must_use]
    pub fn at_party(&self, party: usize) -> Self {
        let parties = self.parties.get(party).cloned().into_iter().collect();
        Self { parties, sites: None, plan: None, ..self.clone() }
    }
}
