#![allow(clippy::unwrap_used)]
use super::rows::shown;
use super::*;

fn estimate(label: &str, figures: [f64; 3]) -> Estimate {
    let [low, median, high] = figures;
    Estimate {
        label: label.to_owned(),
        indented: false,
        median,
        ends: [low, high],
        half: None,
        above: Some(0.29),
        effective: 400.0,
        noise: None,
    }
}

fn ratios(rows: Vec<ForestRow>) -> Forest<'static> {
    Forest {
        id: "forest",
        quantity: Quantity {
            name: "Odds ratio".to_owned(),
            short: "OR".to_owned(),
            neutral: Some(1.0),
            sides: ["lower odds".to_owned(), "higher odds".to_owned()],
        },
        level: 0.9,
        rows,
        subject: "Odds ratios of readmitted.".to_owned(),
    }
}

fn ward() -> Vec<ForestRow> {
    let level =
        |label, figures| ForestRow::Estimate(Estimate { indented: true, half: Some([0.9, 1.0]), ..estimate(label, figures) });
    vec![
        ForestRow::Heading("ward".to_owned()),
        ForestRow::Reference("internal medicine".to_owned()),
        level("cardiology", [0.86, 0.96, 1.08]),
        ForestRow::Estimate(estimate("age, per 10 years", [0.5, 1.0, 2.0])),
    ]
}

/// Returns the number in an attribute after a part of a text.
fn number_after(text: &str, part: &str) -> f64 {
    text.split(part).nth(1).unwrap().split(['"', ' ', 'H', 'V']).next().unwrap().parse().unwrap()
}

#[test]
fn ratios_stand_on_a_logarithmic_axis_with_a_line_at_1() {
    let page = forest(&ratios(ward())).into_string();
    let wide = page.split("</svg>").next().unwrap();
    // 0.5 and 2 lie at the same distance from 1.
    let line = number_after(wide, "path class=\"zero\" d=\"M");
    let whiskers: Vec<(f64, f64)> = wide
        .split("path class=\"whisker\" d=\"M")
        .skip(1)
        .map(|rest| (number_after(&format!("|{rest}"), "|"), number_after(rest, "H")))
        .collect();
    let (low, high) = whiskers[1];
    assert!(low < line && ((line - low) - (high - line)).abs() < 0.3, "{low} {line} {high}");
    for part in [
        "OR [5%, 95%]",
        "Pr(OR &gt; 1)",
        "0.96 [0.86, 1.08]",
        ">0.29<",
        "1 (reference)",
        "age, per 10 years",
        "lower odds",
        "log scale",
    ] {
        assert!(wide.contains(part), "{part} in {wide}");
    }
    // The reference level is a square at 1, and the half interval a bar.
    assert!((number_after(wide, "rect class=\"mean\" x=\"") + 4.0 - line).abs() < 0.2, "{wide}");
    assert_eq!((wide.matches("class=\"half\"").count(), wide.matches("class=\"median\"").count()), (1, 2));
    assert_eq!(page.matches("role=\"img\"").count(), page.matches("<desc id=").count());
}

#[test]
fn the_figures_are_copied_in_three_formats() {
    let of = ratios(ward());
    let table = ForestTable(&of);
    let csv = table.csv();
    assert!(csv.starts_with("group,predictor,Odds ratio,5%,95%,25%,75%,Pr(OR > 1)\n"), "{csv}");
    assert!(
        csv.contains("\nward,internal medicine,1,,,,,\n") && csv.contains("\nward,cardiology,0.96,0.86,1.08,0.9,1,0.29\n"),
        "{csv}"
    );
    assert!(csv.contains("\n,\"age, per 10 years\",1,0.5,2,,,0.29\n"), "{csv}");
    let markdown = table.markdown();
    assert!(markdown.starts_with("| predictor | OR [5%, 95%] | Pr(OR > 1) |\n|---|--:|--:|\n"), "{markdown}");
    assert!(markdown.contains("| ward: cardiology | 0.96 [0.86, 1.08] | 0.29 |\n"), "{markdown}");
    let latex = table.latex();
    assert!(
        latex.contains("predictor & OR [5\\%, 95\\%] & Pr(OR $>$ 1) \\\\\n") && latex.ends_with("\\end{tabular}\n"),
        "{latex}"
    );
}

#[test]
fn a_tall_plot_is_divided_and_every_label_keeps_its_full_name() {
    let name = "a_name_of_sixty_characters_as_registries_of_hospitals_have_it";
    let rows = vec![ForestRow::Estimate(estimate(name, [0.5, 1.0, 2.0])); 120];
    let page = forest(&ratios(rows)).into_string();
    let tallest = page.split("viewBox=\"0 0 ").skip(1).filter(|rest| rest.starts_with("860 "));
    let heights: Vec<f64> = tallest.map(|rest| rest[4..].split('"').next().unwrap().parse().unwrap()).collect();
    assert!(heights.len() > 2 && heights.iter().all(|height| *height <= TALLEST), "{heights:?}");
    assert_eq!(page.matches(&format!("<title>{name}</title>")).count(), 240);
}

#[test]
fn any_figures_make_a_plot() {
    let odd = [f64::NAN, f64::INFINITY, f64::MAX];
    for rows in [
        vec![],
        vec![ForestRow::Heading("<i>".to_owned())],
        vec![ForestRow::Estimate(estimate("<i>", odd))],
        vec![ForestRow::Estimate(estimate("a", [-1.0, 0.0, 2.0])), ForestRow::Estimate(estimate("b", [0.0, 1e-300, 1e300]))],
    ] {
        let of = ratios(rows);
        let page = forest(&of).into_string() + &forest_file(&of);
        assert!(!ForestTable(&of).csv().contains("NaN"));
        assert!(!page.contains("NaN") && !page.contains("<i>") && !page.contains("inf"), "{page}");
    }
}

#[test]
fn figures_have_a_minus_sign_and_probabilities_the_digits_of_their_draws() {
    assert_eq!([shown(-0.001, 0.3), shown(-0.25, 0.3), shown(f64::NAN, 1.0)], ["0.00", "−0.25", "-"]);
    let few = Estimate { effective: 30.0, ..estimate("a", [0.5, 0.9, 2.0]) };
    let of = ratios(vec![ForestRow::Estimate(few)]);
    assert!(ForestTable(&of).markdown().contains("| 0.90 [0.50, 2.00] | 0.3 |"), "{}", ForestTable(&of).markdown());
    assert!(forest(&of).into_string().contains(">0.3</text>"));
    // Programs find every digit.
    assert!(ForestTable(&of).csv().contains(",0.29\n"));
}
