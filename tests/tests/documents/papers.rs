//! The gallery's table of the papers' items: all of them are there, an item that is built is where the table says, and an omission
//! has a reason.

use std::fs;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
const PAGE: &str = "docs/explanation/gallery/coverage.md";

/// Items that a reader of each paper looks for; a table's first cell begins with one.
const ITEMS: [(&str, &[&str]); 5] = [
    (
        "Yıldırım",
        &[
            "Algorithm 1",
            "Algorithm 2",
            "Algorithm 3",
            "Proposition 1",
            "Proposition 2",
            "Proposition 3",
            "Lemma 1",
            "Theorem 1",
            "Theorem 2",
            "Theorem 3",
            "Corollary 1",
            "Assumption A1",
            "Assumption A2",
            "Assumption A3",
            "Assumption A4",
            "Data-dependent proposals",
            "Subsampled penalty",
        ],
    ),
    (
        "Heikkilä",
        &[
            "Full-data test",
            "Subsampled test",
            "Tempering",
            "Lemma 1",
            "Lemma 2",
            "Theorem 1 and Corollary 1",
            "Theorem 2 and Corollary 2",
            "Figure 1a",
            "Figure 1b",
            "Figure 1c",
            "Figure 2",
            "Figure 3",
            "Figures 4 to 6",
            "Start by private variational inference",
            "Supplement A",
            "Supplement D",
            "Supplement E",
        ],
    ),
    (
        "Ju",
        &[
            "Algorithm 1",
            "Algorithm 2",
            "Proposition 3.1",
            "Proposition 3.2",
            "Theorem 3.3",
            "Theorem 3.4",
            "Theorem S-3.1",
            "Table 1",
            "Table 1 of the supplement",
            "Figure 1a",
            "Figure 1b",
            "Figure 2",
            "Figure S1",
            "Unknown sigma",
            "Laplace mechanism",
        ],
    ),
    (
        "Wang",
        &[
            "Algorithm 1",
            "Algorithm 2",
            "Algorithm 3",
            "Theorem 1",
            "Theorem 2",
            "Theorem 3",
            "Theorem 4",
            "Lemma 3",
            "Lemma 4",
            "Proposition 1",
            "Proposition 2",
            "Proposition 3",
            "Figure 1a",
            "Figure 1b",
            "Figure 1c",
            "Hamiltonian dynamics",
            "Thermostat",
            "Fisher scoring",
            "Objective perturbation",
            "Output perturbation",
        ],
    ),
    ("Räisä", &["DP-HMC", "Experiment on a Gaussian", "Experiment on a banana", "Maximum mean discrepancy"]),
];

/// A row of the table: the item, `built` or `left out`, and the place or the reason.
struct Row {
    item: String,
    here: String,
    place: String,
}

impl Row {
    fn read(line: &str) -> Option<Self> {
        let cells: Vec<&str> = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").collect();
        let [item, here, place] = cells[..] else { panic!("not three cells: {line}") };
        (item != "item").then(|| Self { item: item.to_owned(), here: here.to_owned(), place: place.to_owned() })
    }

    /// Returns the files that the row names, from the repository's root: code spans with a folder and an ending, and links.
    fn files(&self) -> Vec<String> {
        let spans = self.spans().filter(|span| is_file(span)).map(str::to_owned);
        let links = self.place.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next());
        spans.chain(links.map(|page| format!("docs/explanation/gallery/{page}"))).collect()
    }

    fn spans(&self) -> impl Iterator<Item = &str> {
        self.place.split('`').skip(1).step_by(2)
    }
}

fn is_file(span: &str) -> bool {
    !span.contains(' ') && span.contains('/') && span.rsplit('.').next().is_some_and(|end| ["rs", "py", "md"].contains(&end))
}

/// Returns the page's sections: a title and its rows.
fn sections() -> Vec<(String, Vec<Row>)> {
    let page = fs::read_to_string(format!("{ROOT}/{PAGE}")).expect(PAGE);
    let section = |text: &str| {
        let title = text.lines().next().unwrap_or_default().to_owned();
        (title, text.lines().filter(|line| !line.starts_with("|---")).filter_map(Row::read).collect())
    };
    page.split("\n## ").skip(1).map(section).collect()
}

#[test]
fn each_item_of_the_papers_has_a_row() {
    let sections = sections();
    assert_eq!(sections.len(), ITEMS.len());
    for ((title, rows), (author, items)) in sections.iter().zip(ITEMS) {
        assert!(title.starts_with(author), "{title}");
        for item in items {
            assert!(rows.iter().any(|row| row.item.starts_with(item)), "{author}: {item} has no row");
        }
    }
}

#[test]
fn each_row_is_built_where_it_says_or_has_a_reason() {
    for row in sections().iter().flat_map(|(_, rows)| rows) {
        let files = row.files();
        let read = |file: &String| fs::read_to_string(format!("{ROOT}/{file}")).unwrap_or_else(|e| panic!("{file}: {e}"));
        let texts: Vec<String> = files.iter().map(read).collect();
        match row.here.as_str() {
            "built" => assert!(!files.is_empty(), "{} names no file", row.item),
            "left out" => assert!(row.place.split(' ').count() >= 8, "{} has no reason", row.item),
            other => panic!("{} is {other:?}", row.item),
        }
        if row.here == "built" {
            // Commands are of the program; every other name stands in a file of the row.
            for name in row.spans().filter(|span| !is_file(span) && !span.starts_with("conclave ")) {
                assert!(texts.iter().any(|text| text.contains(name)), "{}: {name} is in none of {files:?}", row.item);
            }
        }
    }
}
