#![allow(clippy::unwrap_used)]
use super::*;
use crate::job::JobSpec;
use crate::model::{Summand, sums};
use crate::query::{QueryError, QueryTerms};
use conclave_privacy::accounting::PrivacyUnit;
use conclave_privacy::mechanism::QueryKind;
use conclave_privacy::pass::ModelData;

const CELLS: usize = 65;

fn job(release: &str) -> JobSpec {
    JobSpec::parse(&format!(
        "name = \"t\"\nalgorithm = \"auto\"\nparties = [\"a\"]\n[model]\nkind = \"weibull\"\noutcome = \"y\"\nevent = \"d\"\n[columns]\n\
         y = {{ min = 0.01, max = 100 }}\nd = {{ binary = true }}\n[privacy]\nepsilon = 1.0\ndelta = 1e-6\n{release}"
    ))
    .unwrap()
}

/// Returns the cell of one record, as a shard holds its time.
fn cell(x: f64, event: f64) -> usize {
    let model = job("[release]\ntable = true\n").build_model();
    let data = ModelData { outcome: vec![x], auxiliary: vec![vec![event]], ..ModelData::default() };
    let table = Summand::Table { tables: 1, cells: CELLS };
    let counts = sums(model.as_ref(), &data, &[table]).remove(0).open_components_for_test();
    assert_eq!((counts.len(), counts.iter().sum::<i64>()), (CELLS, QueryKind::COUNT_UNIT as i64));
    counts.iter().position(|count| *count != 0).unwrap()
}

/// Every record is in one cell: by event and log time, or in the last one.
#[test]
fn a_record_is_counted_once_by_event_and_time() {
    let scaled = |t: f64| (t - 50.005) / 49.995;
    // Four decades in 32 ranges: eight a decade.
    for (t, range) in [(0.01, 0), (0.0102, 0), (0.0999, 7), (0.101, 8), (1.01, 16), (10.2, 24), (99.0, 31), (100.0, 31)] {
        assert_eq!((cell(scaled(t), 0.0), cell(scaled(t), 1.0)), (range, TimesTable::RANGES + range), "{t}");
    }
    for (x, event) in [(f64::NAN, 1.0), (0.1, f64::NAN), (0.1, 2.0), (0.1, 0.5), (f64::NAN, f64::NAN), (0.1, f64::INFINITY)] {
        assert_eq!(cell(x, event), CELLS - 1, "{x} {event}");
    }
}

/// The histogram is beside the scores of a job that names it, and of no other.
#[test]
fn only_a_job_that_names_it_asks_the_histogram() {
    let kind = QueryKind::Table { cells: CELLS as u32 };
    let ask = |spec: &JobSpec, kind| {
        QueryTerms::new(spec.build_model().as_ref(), spec, PrivacyUnit::default(), kind, (&[], &[]))
            .map(|t| t.sensitivity().units())
    };
    let (named, other) = (job("[release]\ntable = true\n"), job(""));
    assert_eq!((named.releases(), other.releases()), (vec!["table", "score"], vec!["score"]));
    assert_eq!(named.most_rounds(), other.most_rounds().map(|rounds| rounds + 1));
    assert_eq!((ask(&named, kind), ask(&other, kind)), (Ok(1_482_911), Err(QueryError::Kind(kind))));
    let wrong = QueryKind::Table { cells: 64 };
    assert_eq!(ask(&named, wrong), Err(QueryError::Vector(wrong)));
    let points = (&[1.0, 0.5][..], &[0.1, 0.0, 0.0, 0.1, 0.0, 0.0][..]);
    let gradient = QueryKind::Gradient { parameters: 2 };
    let scored = QueryTerms::new(named.build_model().as_ref(), &named, PrivacyUnit::default(), gradient, points);
    assert!(!matches!(scored, Err(QueryError::Kind(_))), "{scored:?}");
}
