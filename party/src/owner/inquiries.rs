//! Findings about the records under a job, merged into inquiries for its analyst.

/// Findings that share a remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Inquiry {
    /// The findings, as clauses.
    pub(crate) found: Vec<String>,
    /// The remedy, as a clause; empty where there is none.
    pub(crate) remedy: String,
}

impl Inquiry {
    /// Formats the inquiry as one sentence per finding.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = String> + '_ {
        self.found.iter().map(|found| match self.remedy.as_str() {
            "" => found.clone(),
            remedy => format!("{found}: {remedy}"),
        })
    }
}

/// Merges findings of one remedy, in the order of their first appearance.
pub(crate) fn merged(findings: impl IntoIterator<Item = (String, String)>) -> Vec<Inquiry> {
    let mut inquiries: Vec<Inquiry> = Vec::new();
    for (found, remedy) in findings {
        match inquiries.iter_mut().find(|inquiry| inquiry.remedy == remedy && !remedy.is_empty()) {
            Some(inquiry) => inquiry.found.push(found),
            None => inquiries.push(Inquiry { found: vec![found], remedy }),
        }
    }
    inquiries
}

/// Joins clauses that differ in one word, such as a column's name, to one clause that lists these words.
pub(crate) fn joined(found: &[String]) -> Vec<String> {
    let mut out: Vec<(Vec<String>, Option<usize>)> = Vec::new();
    for clause in found {
        let words: Vec<String> = clause.split(' ').map(str::to_owned).collect();
        let fits = |(known, place): &&mut (Vec<String>, Option<usize>)| differs_in(known, &words, *place).is_some();
        match out.iter_mut().find(fits) {
            Some(entry) => {
                if let Some(at) = differs_in(&entry.0, &words, entry.1) {
                    let word = format!("{}, {}", entry.0[at], words[at]);
                    entry.0[at] = word;
                    entry.1 = Some(at);
                }
            }
            None => out.push((words, None)),
        }
    }
    out.into_iter().map(|(words, _)| words.join(" ")).collect()
}

/// Returns the only place in which two clauses differ; `place` is the one of an earlier join.
fn differs_in(known: &[String], words: &[String], place: Option<usize>) -> Option<usize> {
    if known.len() != words.len() {
        return None;
    }
    let mut places = (0..words.len()).filter(|i| known[*i] != words[*i]);
    match (places.next(), places.next()) {
        (Some(at), None) if place.is_none_or(|place| place == at) => Some(at),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_of_one_kind_are_one_inquiry() {
        let bounds = |name: &str| (format!("the bounds of {name} are those of your data"), "ask for their origin".to_owned());
        let other = ("age is the same in every row".to_owned(), "check the file".to_owned());
        let inquiries = merged([bounds("dose"), other.clone(), bounds("age"), bounds("bmi"), ("weak".to_owned(), String::new())]);
        assert_eq!(inquiries.len(), 3);
        assert_eq!(joined(&inquiries[0].found), ["the bounds of dose, age, bmi are those of your data"]);
        assert_eq!(inquiries[0].warnings().count(), 3);
        assert_eq!(inquiries[1].warnings().collect::<Vec<_>>(), ["age is the same in every row: check the file"]);
        assert_eq!(inquiries[2].warnings().collect::<Vec<_>>(), ["weak"]);
        let apart = ["3% of a lie outside 1 to 2".to_owned(), "4% of b lie outside 1 to 2".to_owned()];
        assert_eq!(joined(&apart), apart);
    }
}
