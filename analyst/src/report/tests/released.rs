//! Reports of runs that infer from releases made once.

use serde_json::json;

use super::{Run, is_self_contained};

/// Makes a run by `noisy-statistics`: noise is 36% of each parameter's variance, unknown for the last one.
fn run(adequate: bool) -> Run {
    let mut run = Run::new(2, 4, 200, "<u>");
    let parameters = run.draws.parameters.len();
    for (index, row) in run.result["posterior"].as_array_mut().unwrap().iter_mut().enumerate() {
        let sd = row["sd"].as_f64().unwrap();
        let known = index + 1 < parameters;
        row["noise_share"] = if known { json!(0.36) } else { json!(null) };
        row["sd_data"] = if known { json!(0.8 * sd) } else { json!(null) };
        // Draws without a fault.
        (row["ess_bulk"], row["ess_tail"], row["rhat"], row["mcse_mean"]) =
            (json!(500), json!(500), json!(1.0), json!(0.04 * sd));
    }
    let stage = |share: f64, sd: f64, last: bool| json!({"theta": vec![0.0; parameters], "share": share, "mean": vec![0.3; parameters], "sd": vec![sd; parameters], "last": last});
    run.result["releases"] = json!([stage(0.1, 0.6, false), stage(0.9, 0.06, true)]);
    run.result["conditional_on"] = json!("noisy_release");
    if !adequate {
        run.result["verdict"] = json!({"grade": "not_usable", "reasons": ["the information is <b>noise"]});
    }
    run.result["adequacy"] =
        json!({"adequate": adequate, "rho_h": {"value": 1.7, "limit": 1.0}, "reasons": ["the information is <b>noise"]});
    run.result["surrogate"] = json!(null);
    run
}

#[test]
fn intervals_stand_beside_what_they_would_be_without_noise() {
    let run = run(true);
    let page = run.page();
    let figure = page.split("id=\"noise\"").nth(1).unwrap().split("</figure>").next().unwrap();
    let picture = figure.split("</svg>").next().unwrap();
    let drawn = |class: &str| picture.matches(&format!("path class=\"{class}\"")).count();
    assert_eq!((drawn("with-noise"), drawn("without-noise")), (3, 2), "{picture}");
    assert!(picture.contains("noise 36%") && picture.contains("unknown") && figure.contains("without noise</li>"), "{figure}");
    // The table of the posterior has both columns, with every digit for programs.
    let header = "sd without noise</th><th scope=\"col\" role=\"columnheader\" class=\"n\">noise share</th>";
    assert_eq!(page.matches(header).count(), 1, "on the scale of the shares");
    let exact = run.result["posterior"][0]["sd_data"].to_string();
    assert!(page.contains(&format!("<data value=\"{exact}\">")) && page.contains("<data value=\"0.36\">36%</data>"));
    for part in ["Estimates after each stage", "10%, 90%", "0.300 ± 0.060", "Share of the budget by stage"] {
        assert!(page.contains(part), "{part}");
    }
    assert!(is_self_contained(&page) && !page.contains("<u>"));
    assert_eq!(page.matches("role=\"img\"").count(), page.matches("<desc id=").count());
    for reference in ["href=\"#", "aria-labelledby=\"", "aria-describedby=\""] {
        for id in page.split(reference).skip(1).map(|rest| rest.split('"').next().unwrap()) {
            assert_eq!(page.matches(&format!("id=\"{id}\"")).count(), 1, "{id}");
        }
    }
}

#[test]
fn what_is_no_adequate_answer_is_not_shown_as_one() {
    let page = run(false).page();
    let posterior = page.split("<h2 id=\"estimates\">").nth(1).unwrap().split("</section>").next().unwrap();
    for part in ["No interval is shown", "noise of the released information", "1.7", "failed"] {
        assert!(posterior.contains(part), "{part} in {posterior}");
    }
    for part in ["No adequate answer", "The information is &lt;b&gt;noise"] {
        assert!(page.contains(part), "{part} in {page}");
    }
    assert!(!posterior.contains("<svg") && !posterior.contains("95%"), "{posterior}");
    assert!(page.contains("These draws are not a usable posterior"));
    // Draws of a wrong posterior may mix well, which is no praise for the answer.
    assert!(!page.contains("✓ good") && !page.contains("No problems were found"), "{page}");
    assert!(run(true).page().contains("✓ good"));
}

/// Figures of an answer that is not usable are folded, each fold with a warning, so a print has none of them.
#[test]
fn an_answer_that_is_not_usable_is_folded() {
    let mut run = run(true);
    run.result["verdict"] = json!({"grade": "not_usable", "reasons": ["R-hat of x1 is 1.200, above 1.01"]});
    let page = run.page();
    // The first section has no nested fold before its end.
    let result = page.split("<h2 id=\"estimates\">").nth(1).unwrap().split("</section>").next().unwrap();
    let (open, folded) = result.split_once("<summary>Look anyway</summary>").unwrap();
    assert!(!open.contains("<svg") && folded.contains("class=\"whisker\""), "{result}");
    assert!(folded.starts_with("<div class=\"notice beware\">") && !result.contains("Copy as"), "{folded}");
    for (anchor, words) in [("posterior", "Look anyway"), ("diagnostics", "Look at the draws anyway")] {
        let section = page.split(&format!("<h2 id=\"{anchor}\">")).nth(1).unwrap().split("</section>").next().unwrap();
        assert!(section.contains(&format!("<summary>{words}</summary>")), "{anchor}: {section}");
    }
    // A print has no heading of draws that it leaves out.
    assert!(!page.contains("<h3>The draws</h3>"));
    assert!(page.contains("Next: request a larger epsilon"), "{}", &page[..page.len().min(9000)]);
    run.result["verdict"] = json!({"grade": "preliminary", "reasons": ["R-hat of x1 is 1.020, above 1.01"]});
    let page = run.page();
    assert!(!page.contains("anyway</summary>") && page.contains("<h3>The draws</h3>"));
}

#[test]
fn the_surrogate_of_a_chain_is_drawn_with_and_without_its_noise() {
    let run = Run::new(2, 4, 200, "");
    let page = run.page();
    let figure = page.split("id=\"fitted-noise\"").nth(1).unwrap().split("</figure>").next().unwrap();
    // noise_sd² over sd².
    assert_eq!(figure.matches("noise 17%").count(), 3, "{figure}");
    assert!(!page.contains("id=\"noise\"") && !page.contains("Estimates after each stage"));
}

/// A release has no warm-up, and its draws no acceptance.
#[test]
fn a_release_is_not_described_as_a_chain_of_proposals() {
    let (mut release, chain) = (run(true), Run::new(2, 4, 200, ""));
    for (page, shown) in [(chain.page(), true), (release.page(), false)] {
        for part in ["of the proposals of the kept draws", "<dt>accepted</dt>", "<dt>warm-up</dt>", "priors, after the warm-up"] {
            assert_eq!(page.contains(part), shown, "{part} in {page}");
        }
    }
    // A search that ends a run of chains makes a release of it.
    release.result["stopped_by"] = json!("futility");
    assert!(!release.page().contains("<dt>warm-up</dt>"));
}
