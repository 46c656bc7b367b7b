//! Breakdown of a round's time: each party's share as seen from here, and the coordinator's own.

use conclave_ops::{Summary, in_ms};
use conclave_pages::plot::{Bar, Part, Stack, format_millis, stack};
use conclave_pages::table::{Cell, Column, Table};
use conclave_pages::text::thousands;
use maud::{Markup, html};

use crate::live::Live;
use crate::status::PartyStatus;

/// Segments of the bars: the first three belong to parties, the others to the coordinator.
const KINDS: [&str; 6] = [
    "held by the party's reply delay",
    "wire, queues, late replies",
    "party and wire, not separated",
    "deciding and proposing",
    "bookkeeping, while the parties work",
    "waiting for the slowest party",
];

/// The parties, and the breakdown of the latest rounds' time.
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
        h2 { "Parties" }
        (listed(parties, attached).html())
        // Details for the operator of a slow run.
        details.fold { summary { "Where the time of a round goes" }
            (timed(parties, &replies).html())
            @if let Some(rounds) = rounds {
                @let (median, high) = in_ms(rounds.whole);
                p { "A round takes " (format_millis(median)) " ms (median of the latest), 95% of them at most " (format_millis(high)) " ms. It ends when the slowest party has answered." }
            }
            @if !bars.is_empty() {
                (stack(&Stack { id: "times", title: "Where the time of a round goes", events: "the latest rounds", kinds: &KINDS, bars: &bars }))
            }
            @if let Some((median, high)) = commits.map(|commits| in_ms(commits.whole)) {
                p { "No round waits for the coordinator's store: it commits in parallel, in " (format_millis(median)) " ms (median of the latest, all jobs; 95% within " (format_millis(high)) " ms)." }
            }
            p.note {
                "The time of an answer is measured here, from the query to the reply. A party's computation, noise and ledger sync fall within the delay \
                 to which it holds its replies, and which it reports. The party does not report their separate times, and they can't be requested: computing time may depend \
                 on records. Time beyond the delay is spent on the wire, in queues at either end, or waiting for a later multiple of the delay. A party without a delay, or of an \
                 older version, has one segment only. The owner sees the party's own breakdown on the party's page, and late replies in " code { "conclave-party status" } "."
            }
        }
    }
}

fn listed(parties: &[PartyStatus], attached: impl Fn(&str) -> bool) -> Table {
    let records = |party: &PartyStatus| party.metadata.and_then(|metadata| metadata.records());
    let columns: [Column<'_, PartyStatus>; 4] = [
        ("party", &|party| Cell::name(&party.name)),
        ("attached", &|party| Cell::text(if attached(&party.name) { "yes" } else { "no" })),
        ("releases", &|party| Cell::number(thousands(party.spent.queries))),
        ("records", &|party| Cell::number(records(party).map_or_else(|| "-".to_owned(), thousands))),
    ];
    Table::new("Parties of this job", parties, &columns)
}

fn timed(parties: &[PartyStatus], replies: &[Option<Summary<3>>]) -> Table {
    type Row<'a> = (&'a PartyStatus, &'a Option<Summary<3>>);
    let rows: Vec<Row<'_>> = parties.iter().zip(replies).collect();
    let millis =
        |seconds: Option<f64>| Cell::number(seconds.map_or_else(|| "-".to_owned(), |seconds| format_millis(1e3 * seconds)));
    // Without a reply delay the parts are not separated.
    let part = |summary: &Option<Summary<3>>, at: usize| summary.filter(|of| of.parts[2].1 == 0.0).map(|of| of.parts[at].0);
    let columns: [Column<'_, Row<'_>>; 5] = [
        ("party", &|(party, _)| Cell::name(&party.name)),
        ("answer, median ms", &|(_, summary)| millis(summary.map(|of| of.whole.0))),
        ("95%, ms", &|(_, summary)| millis(summary.map(|of| of.whole.1))),
        ("reply delay, ms", &|(_, summary)| millis(part(summary, 0))),
        ("beyond the delay, ms", &|(_, summary)| millis(part(summary, 1))),
    ];
    Table::new("Times of the parties’ answers", &rows, &columns)
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
            spent: Spent::default(),
            epsilon_budget: 1.0,
            ..PartyStatus::default()
        };
        let commits = Some(Summary { whole: (0.002, 0.004), parts: [(0.002, 0.004)] });
        let of: Vec<PartyStatus> = names.iter().map(party).collect();
        parties(&of, Some(live), commits, |_| true).into_string()
    }

    #[test]
    fn each_party_and_the_coordinator_have_their_bars() {
        let (live, us) = (Live::new(1, 3), Duration::from_micros);
        let none = shown(&live, &["a", "b", "c"]);
        assert!(!none.contains("<svg") && none.contains("commits in parallel, in 2.000 ms"), "{none}");
        live.record_reply(0, us(3500), Some(us(2000)));
        live.record_reply(1, us(1200), None);
        live.record_round(RoundTime { proposing: us(40), bookkeeping: us(60), waiting: us(3440) });
        let page = shown(&live, &[HOSTILE, "b", "c"]);
        assert!(!page.contains(HOSTILE) && page.contains("&lt;script&gt;"), "{page}");
        for there in [
            "A round takes 3.540 ms",
            "median ms\" class=\"n\">3.500</td>",
            "reply delay, ms\" class=\"n\">2.000</td>",
            "beyond the delay, ms\" class=\"n\">1.500</td>",
            "95%, ms\" class=\"n\">1.200</td>",
            "beyond the delay, ms\" class=\"n\">-</td>",
            "party and wire, not separated",
            "deciding and proposing, median ms",
            "class=\"n\">0.040</td>",
        ] {
            assert!(page.contains(there), "{there} in {page}");
        }
        // A party that has not answered has a row but no bar.
        assert_eq!(page.matches("<title>").count(), 3, "the labels");
        assert!(page.contains("part p0") && page.contains("part p2") && page.contains("part p5"), "{page}");
    }
}
