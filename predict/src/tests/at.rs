use crate::parse_at;

#[test]
fn a_row_is_names_with_values() {
    for (text, expected) in [
        ("age=60, treated=1", &[("age", "60"), ("treated", "1")][..]),
        ("  age = 60 ,treated= -1.5e3 ", &[("age", "60"), ("treated", "-1.5e3")]),
        ("ward=\"surgery, acute\", age=1", &[("ward", "surgery, acute"), ("age", "1")]),
        ("\"a=b\"=\" x \"", &[("a=b", " x ")]),
        ("ward=\"a \"\"b\"\"\"", &[("ward", "a \"b\"")]),
        ("taille é=Größe", &[("taille é", "Größe")]),
    ] {
        let table = parse_at(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        let values = &table.rows[0].texts;
        let pairs: Vec<(&str, &str)> =
            table.names.iter().zip(values).map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!((pairs.as_slice(), table.only_columns), (expected, true), "{text}");
    }
}

#[test]
fn another_form_is_an_error_that_shows_the_right_one() {
    for (text, part) in [
        ("", "it is empty"),
        ("age", "`age` has no value"),
        ("age=", "is empty"),
        ("=60", "is empty"),
        ("age=60,", "nothing follows the last comma"),
        ("age=60 treated=1", "not a name with one value"),
        ("age=60,,treated=1", "`,treated` is not a name with one value"),
        ("age 60, treated=1", "not a name with one value"),
        ("ward=\"a", "a quote is not closed"),
        ("ward=\"a\"b", "text follows the quoted"),
    ] {
        let message = parse_at(text).map(|table| format!("{table:?}")).unwrap_err().to_string();
        assert!(message.contains(part) && message.contains("age=60, treated=1"), "{text:?}: {message}");
    }
}
