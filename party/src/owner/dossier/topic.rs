//! A topic of the dossier.

use conclave_pages::document::{Block, Fact};

/// A topic: its heading, what holds here, and the commands that check it again.
pub(super) struct Topic {
    pub(super) heading: &'static str,
    pub(super) facts: Vec<Fact>,
    pub(super) checks: &'static [&'static str],
}

impl Topic {
    /// Returns the topic's section.
    pub(super) fn blocks(self) -> Vec<Block> {
        let mut blocks = vec![Block::Section(self.heading.to_owned()), Block::Facts(self.facts)];
        if !self.checks.is_empty() {
            blocks.push(Block::Text(format!("Check again: {}.", self.checks.join("; "))));
        }
        blocks
    }
}
