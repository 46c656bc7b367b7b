//! Components of the time of an answer. They may depend on records, and are therefore shown to the owner here and nowhere else.

use conclave_ops::in_ms;
use conclave_pages::plot::{Bar, Part as Piece, Stack, format_millis, stack};
use conclave_pages::table::{Cell, Table};
use conclave_pages::text::thousands;
use maud::{Markup, html};

use conclave_ops::answer_times::Part;
use conclave_vault::answer::ReplyCounts;
use conclave_vault::answer::answer_timing::OwnTimes;
use conclave_vault::ledger::Durability;

/// Describes a component of an answer's time.
fn words(part: Part, durability: Durability) -> &'static str {
    match (part, durability) {
        (Part::Computing, _) => "computing",
        (Part::Noise, _) => "noise",
        (Part::Ledger, Durability::Strict) => "ledger, with its syncs",
        (Part::Ledger, Durability::Reserve { .. }) => "ledger, its syncs off the path",
        (Part::Held, _) => "held until the reply delay",
    }
}

/// Renders the latest answers of a party with this ledger mode.
pub(super) fn part(durability: Durability, times: &OwnTimes) -> Markup {
    html! {
        h2 { "Answer times" }
        @match times.summary() {
            None => p { "No number has been released since the party was started." },
            Some(summary) => {
                @let rows = Part::ALL.map(|part| (words(part, durability), summary.parts[part as usize]));
                (drawn(&rows))
                (listed(&rows, summary.whole))
            }
        }
        (late(times.counts()))
        p.note {
            @match durability {
                Durability::Strict => "The ledger is synced twice per answer: its charge before anything is computed, its \
                     numbers before they are sent. ",
                Durability::Reserve { .. } => "In reserve mode an answer's own syncs take 0 ms: a block of charges is synced \
                     ahead, mostly after a reply was sent, and answers with the next block. ",
            }
            "The time of a computation may depend on your records. These times are kept in the memory of this process and shown \
             on this page; they are in no metric, log or file, and are never sent. The coordinator sees that every answer took \
             the reply delay, which it knows."
        }
    }
}

fn drawn(rows: &[(&str, (f64, f64))]) -> Markup {
    let kinds: Vec<&str> = rows.iter().map(|(words, _)| *words).collect();
    let piece = |(kind, (_, seconds)): (usize, &(&str, (f64, f64)))| Piece { kind, quantiles: in_ms(*seconds) };
    let bar = Bar { name: "an answer".to_owned(), parts: rows.iter().enumerate().map(piece).collect() };
    stack(&Stack {
        id: "answer-times",
        title: "Components of an answer's time",
        events: "the latest answers, of all jobs",
        kinds: &kinds,
        bars: &[bar],
    })
}

fn listed(rows: &[(&str, (f64, f64))], whole: (f64, f64)) -> Markup {
    let all = [rows, &[("an answer, from the start of its service", whole)]].concat();
    let table = Table::new(
        "The latest answers, at most 128",
        &all,
        &[
            ("part", &|(words, _)| Cell::text(words)),
            ("median ms", &|(_, seconds)| Cell::number(format_millis(in_ms(*seconds).0))),
            ("95% within ms", &|(_, seconds)| Cell::number(format_millis(in_ms(*seconds).1))),
        ],
    );
    table.html()
}

fn late(counts: ReplyCounts) -> Markup {
    html! {
        @if counts.held > 0 {
            p { (thousands(counts.overruns)) " of " (thousands(counts.held)) " replies took longer than the reply delay since the party was started, and were sent at a later multiple of it." }
        } @else {
            p { "No reply was delayed since the party was started." }
        }
    }
}
