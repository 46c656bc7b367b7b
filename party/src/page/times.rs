//! What the time of an answer is made up of. It may depend on records, and so is shown to the owner here and told nowhere else.

use conclave_ops::in_ms;
use conclave_pages::plot::{Bar, Part as Piece, Stack, format_millis, stack};
use conclave_pages::table::{Cell, table};
use conclave_pages::text::thousands;
use maud::{Markup, html};

use conclave_vault::answer::ReplyCounts;
use conclave_vault::answer::answer_timing::{OwnTimes, Part};
use conclave_vault::ledger::Durability;

/// A part of an answer's time, in words.
fn words(part: Part, durability: Durability) -> &'static str {
    match (part, durability) {
        (Part::Computing, _) => "computing",
        (Part::Noise, _) => "noise",
        (Part::Ledger, Durability::Strict) => "ledger, with its syncs",
        (Part::Ledger, Durability::Reserve { .. }) => "ledger, its syncs off the path",
        (Part::Held, _) => "held back until the reply delay",
    }
}

/// The latest answers of a party that writes its ledger so.
pub(super) fn part(durability: Durability, times: &OwnTimes) -> Markup {
    html! {
        h2 { "How long answers take" }
        @match times.summary() {
            None => p { "No number has left since the party was started." },
            Some(summary) => {
                @let rows = Part::ALL.map(|part| (words(part, durability), summary.parts[part as usize]));
                (drawn(&rows))
                (listed(&rows, summary.whole))
            }
        }
        (late(times.counts()))
        p.note {
            @match durability {
                Durability::Strict => "The ledger is synced twice for an answer: its charge before anything is computed, its numbers before they leave. ",
                Durability::Reserve { .. } => "In reserve mode an answer's own syncs take 0 ms: a block of charge is synced ahead, mostly after a reply has left, and answers with the next block. ",
            }
            "How long a computation takes may depend on your records. These times are kept in the memory of this process and shown on this page; they are in no metric, log or file, \
             and nothing of them is sent. The coordinator sees that every answer took the reply delay, which it is told."
        }
    }
}

fn drawn(rows: &[(&str, (f64, f64))]) -> Markup {
    let kinds: Vec<&str> = rows.iter().map(|(words, _)| *words).collect();
    let piece = |(kind, (_, seconds)): (usize, &(&str, (f64, f64)))| Piece { kind, quantiles: in_ms(*seconds) };
    let bar = Bar { name: "an answer".to_owned(), parts: rows.iter().enumerate().map(piece).collect() };
    stack(&Stack {
        id: "answer-times",
        title: "Where an answer's time goes",
        events: "the latest answers, of all jobs",
        kinds: &kinds,
        bars: &[bar],
    })
}

fn listed(rows: &[(&str, (f64, f64))], whole: (f64, f64)) -> Markup {
    let all = rows.iter().copied().chain([("an answer, from the beginning of its service", whole)]);
    let cells = all.map(|(words, seconds)| {
        let (median, high) = in_ms(seconds);
        vec![Cell::Text(words.to_owned()), Cell::Number(format_millis(median)), Cell::Number(format_millis(high))]
    });
    table("The latest answers, at most 128", &["part", "median ms", "95% within ms"], &cells.collect::<Vec<_>>())
}

fn late(counts: ReplyCounts) -> Markup {
    html! {
        @if counts.held > 0 {
            p { (thousands(counts.overruns)) " of " (thousands(counts.held)) " replies took longer than the reply delay since the party was started, and left at a later multiple of it." }
        } @else {
            p { "No reply was held back since the party was started." }
        }
    }
}
