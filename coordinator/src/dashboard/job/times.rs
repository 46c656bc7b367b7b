//! Where the time of a round goes: each party's part as it is seen from here, and the coordinator's own.

use conclave_ops::{Summary, in_ms};
use conclave_pages::plot::{Bar, Part, Stack, format_millis, stack};
use conclave_pages::table::{Cell, table};
use conclave_pages::text::thousands;
use maud::{Markup, html};

use crate::live::Live;
use crate::status::PartyStatus;

/// What bars are made up of: the first three of parties, the others of the coordinator.
const KINDS: [&str; 6] = [
    "held by the party's reply delay",
    "wire, queues, late replies",
    "party and wire, not told apart",
    "deciding and proposing",
    "books, while the parties work",
    "waiting for the slowest party",
];

/// The parties, and how the latest rounds' time is made up.
pub(super) fn parties(
    parties: &[PartyStatus],
    live: Option<&Live>,
    commits: Option<Summary<1>>,
    attached: impl Fn(&str) -> bool,
) -> Markup {
    let replies: Vec<Option<Summary<3>>> =
        (0..parties.len()).map(|party| live.and_then(|live| live.reply_times(party))).collect();
    let rounds = live.and_then(Live::round_times);
    let bars = bars(parties, &replies, rounds);
    html! {
        h2 { "Parties and the time of a round" }
        (listed(parties, &replies, attached))
        @if let Some(rounds) = rounds {
            @let (median, high) = in_ms(rounds.whole);
            p { "A round takes " (format_millis(median)) " ms (median of the latest), 95% of them at most " (format_millis(high)) " ms. It is over when the slowest party has answered." }
        }
        @if !bars.is_empty() {
            (stack(&Stack { id: "times", title: "Where the time of a round goes", events: "the latest rounds", kinds: &KINDS, bars: &bars }))
        }
        @if let Some((median, high)) = commits.map(|commits| in_ms(commits.whole)) {
            p { "No round waits for the coordinator's store: it commits beside them, in " (format_millis(median)) " ms (median of the latest, all jobs; 95% within " (format_millis(high)) " ms)." }
        }
        p.note {
            "An answer's time is what this coordinator sees, from asking to hearing. A party's computing, its noise and its ledger's sync lie within the delay \
             to which it holds its replies, which it has told; how much of it each took is not told, and can't be asked for, since how long a computation takes may depend on \
             records. What is beyond the delay is the wire, queues at either end, and replies that left at a later multiple of it. Of a party without a delay, or of an older \
             version, there is one part only. An owner sees the party's own split at the party's page, and late replies in " code { "conclave-party status" } "."
        }
    }
}

fn listed(parties: &[PartyStatus], replies: &[Option<Summary<3>>], attached: impl Fn(&str) -> bool) -> Markup {
    let dash = || Cell::Number("-".to_owned());
    let times = |summary: &Option<Summary<3>>| match summary {
        Some(Summary { whole, parts: [held, rest, untold] }) => {
            let told = untold.1 == 0.0;
            let part = |of: &(f64, f64)| if told { Cell::Number(format_millis(1e3 * of.0)) } else { dash() };
            [Cell::Number(format_millis(1e3 * whole.0)), Cell::Number(format_millis(1e3 * whole.1)), part(held), part(rest)]
        }
        None => [dash(), dash(), dash(), dash()],
    };
    let row = |(party, summary): (&PartyStatus, &Option<Summary<3>>)| {
        let here = if attached(&party.name) { "yes" } else { "no" };
        let records = party.metadata.and_then(|metadata| metadata.records()).map_or_else(dash, |n| Cell::Number(thousands(n)));
        let first =
            [Cell::Name(party.name.clone()), Cell::Text(here.to_owned()), Cell::Number(thousands(party.spent.queries)), records];
        first.into_iter().chain(times(summary)).collect::<Vec<_>>()
    };
    let rows: Vec<Vec<Cell>> = parties.iter().zip(replies).map(row).collect();
    let header = ["party", "attached", "numbers", "records", "answer, median ms", "95%, ms", "its delay, ms", "beyond it, ms"];
    table("Parties of this job", &header, &rows)
}

/// One bar for each party that has answered, and one for the coordinator.
fn bars(parties: &[PartyStatus], replies: &[Option<Summary<3>>], rounds: Option<Summary<3>>) -> Vec<Bar> {
    let parts = |summary: &Summary<3>, first: usize| -> Vec<Part> {
        let numbered = summary.parts.iter().enumerate().filter(|(_, part)| part.1 > 0.0);
        numbered.map(|(index, part)| Part { kind: first + index, quantiles: in_ms(*part) }).collect()
    };
    let of_party = |(party, summary): (&PartyStatus, &Option<Summary<3>>)| {
        Some(Bar { name: party.name.clone(), parts: parts(summary.as_ref()?, 0) })
    };
    let of_coordinator = rounds.map(|rounds| Bar { name: "the coordinator".to_owned(), parts: parts(&rounds, 3) });
    of_coordinator.into_iter().chain(parties.iter().zip(replies).filter_map(of_party)).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::time::Duration;

    use super::*;
    use crate::live::RoundTime;
    use conclave_draws::spent::Spent;

    const HOSTILE: &str = "<script>alert(1)</script>";

    fn shown(live: &Live, names: &[&str]) -> String {
        let party = |name: &&str| PartyStatus {
            name: (*name).to_owned(),
            metadata: None,
            spent: Spent::default(),
            epsilon_spent: 0.0,
            epsilon_budget: 1.0,
        };
        let commits = Some(Summary { whole: (0.002, 0.004), parts: [(0.002, 0.004)] });
        let of: Vec<PartyStatus> = names.iter().map(party).collect();
        parties(&of, Some(live), commits, |_| true).into_string()
    }

    #[test]
    fn each_party_and_the_coordinator_have_their_bars() {
        let (live, us) = (Live::new(1, 3), Duration::from_micros);
        let none = shown(&live, &["a", "b", "c"]);
        assert!(!none.contains("<svg") && none.contains("commits beside them, in 2.000 ms"), "{none}");
        live.replied(0, us(3500), Some(us(2000)));
        live.replied(1, us(1200), None);
        live.round(RoundTime { proposing: us(40), booking: us(60), waiting: us(3440) });
        let page = shown(&live, &[HOSTILE, "b", "c"]);
        assert!(!page.contains(HOSTILE) && page.contains("&lt;script&gt;"), "{page}");
        for there in [
            "A round takes 3.540 ms",
            "<td class=\"n\">3.500</td><td class=\"n\">3.500</td><td class=\"n\">2.000</td><td class=\"n\">1.500</td>",
            "<td class=\"n\">1.200</td><td class=\"n\">1.200</td><td class=\"n\">-</td><td class=\"n\">-</td>",
            "party and wire, not told apart",
            "deciding and proposing, median ms",
            "<td class=\"n\">0.040</td>",
        ] {
            assert!(page.contains(there), "{there} in {page}");
        }
        // Of a party that has not answered there is a row and no bar.
        assert_eq!(page.matches("class=\"tick\" x=\"110\"").count(), 3);
        assert!(page.contains("part p0") && page.contains("part p2") && page.contains("part p5"), "{page}");
    }
}
