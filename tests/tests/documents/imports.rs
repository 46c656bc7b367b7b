//! Checks the import order of this repository; planted trees show that each kind of violation is found, and nothing else.

use std::fs;
use std::path::Path;

use conclave_tests::imports::{Folders, Layers, WORKSPACE, check};

#[test]
fn imports_point_one_way_and_production_code_holds_no_test_code() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let found = check(root, &WORKSPACE).expect("sources that can be read");
    assert!(found.is_empty(), "{} findings\n\n{}", found.len(), found.join("\n\n"));
}

/// The layers of planted trees.
const ORDER: Layers<'static> = Layers {
    left_out: &["trials"],
    crates: &[("core", &[]), ("shell", &["core"])],
    folders: &[Folders { package: "core", floors: &[&["roof"], &["left", "right"], &["ground"]] }],
};

/// Returns the findings about a workspace of these files, in which the crate `core` is empty by default.
fn findings(files: &[(&str, &str)]) -> Vec<String> {
    let tree = tempfile::tempdir().expect("a folder");
    let write = |path: &str, text: &str| {
        let path = tree.path().join(path);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).expect("a folder");
        fs::write(path, text).expect("a file");
    };
    let members = ["core", "shell", "trials", "attic"].map(|name| (name, format!("{name}/Cargo.toml")));
    let given = |path: &str| files.iter().any(|(p, _)| *p == path);
    let members = members.iter().filter(|(name, path)| *name == "core" || given(path)).map(|(name, _)| format!("\"{name}\""));
    write("Cargo.toml", &format!("[workspace]\nmembers = [{}]\n", members.collect::<Vec<_>>().join(", ")));
    write("core/Cargo.toml", "[package]\nname = \"core\"\n");
    files.iter().for_each(|(path, text)| write(path, text));
    check(tree.path(), &ORDER).expect("a tree that can be read")
}

/// Checks that there is exactly one finding, which contains every one of `words`.
fn one(files: &[(&str, &str)], words: &[&str]) {
    let found = findings(files);
    assert_eq!(found.len(), 1, "{found:#?}");
    for word in words {
        assert!(found[0].contains(word), "no {word} in {}", found[0]);
    }
}

/// Checks that nothing is found.
fn none(files: &[(&str, &str)]) {
    let found = findings(files);
    assert!(found.is_empty(), "{found:#?}");
}

/// Builds a library whose `ground` has the text `more` and two modules of these texts.
fn ground<'a>(more: &'a str, a: &'a str, b: &'a str) -> [(&'a str, &'a str); 4] {
    [
        ("core/src/lib.rs", "pub mod ground;"),
        ("core/src/ground/mod.rs", more),
        ("core/src/ground/a.rs", a),
        ("core/src/ground/b.rs", b),
    ]
}

const DECLARED: &str = "mod a; mod b; pub use a::A; pub use b::B;";

#[test]
fn an_ordered_tree_has_no_finding() {
    none(&[
        ("core/src/lib.rs", "pub mod ground; pub mod roof; #[cfg(feature = \"test-util\")] pub use ground::simulated;"),
        (
            "core/src/ground/mod.rs",
            "mod a; mod b; #[cfg(feature = \"test-util\")] pub mod simulated; #[cfg(test)] mod tests;\n\
             pub use a::A; pub use b::{B as Second, b};",
        ),
        // Siblings imported through the parent's re-exports; std and unknown crates; a type's own functions.
        (
            "core/src/ground/a.rs",
            "use std::fmt; use super::{Second, b}; use serde::Serialize; pub struct A(Second); fn f() { b() }",
        ),
        (
            "core/src/ground/b.rs",
            "pub struct B; pub fn b() {} impl B { #[cfg(any(test, feature = \"test-util\"))] pub fn planted() -> Self { B } }\n\
             #[cfg(unix)] fn unix() { #[cfg(windows)] let x = 1; } #[cfg(test)] mod tests { use super::super::A; }\n\
             #[cfg_attr(test, allow(dead_code))] struct C;",
        ),
        ("core/src/ground/simulated.rs", "use crate::ground::A; use crate::roof::top;"),
        ("core/src/ground/tests.rs", "use super::A; use crate::roof::top; #[cfg(test)] fn f() { let _ = cfg!(test); }"),
        ("core/src/roof.rs", "use crate::ground::{self, A}; pub fn top() -> A { ground::A }"),
        ("core/tests/whole.rs", "use core::roof::top;"),
        ("shell/Cargo.toml", "[package]\nname = \"shell\"\n[dependencies]\ncore = {}\nserde = \"1\"\n"),
        ("shell/src/main.rs", "use core::ground::A; fn main() { core::roof::top(); }"),
        ("trials/Cargo.toml", "[package]\nname = \"trials\"\n[dependencies]\nshell = {}\n"),
    ]);
}

#[test]
fn a_loop_of_two_files_is_named_with_its_arrows() {
    let words = [
        "import loop in core: 2 files",
        "core/src/ground/a.rs -> core/src/ground/b.rs: B (line 1)",
        "core/src/ground/b.rs -> core/src/ground/a.rs: A (line 2)",
    ];
    one(&ground(DECLARED, "use super::b::B; pub struct A(B);", "\nuse super::a::A; pub struct B(A);"), &words);
}

#[test]
fn a_loop_of_three_files_is_one_finding() {
    let mut files = ground(DECLARED, "use super::B; pub struct A(B);", "use super::c::C; pub struct B(C);").to_vec();
    files[1].1 = "mod a; mod b; mod c; pub use b::B;";
    files.push(("core/src/ground/c.rs", "use super::a::A; pub struct C(A);"));
    one(&files, &["3 files", "ground/a.rs", "ground/b.rs", "ground/c.rs"]);
}

#[test]
fn a_loop_through_re_exports_is_found_where_the_items_are_defined() {
    one(
        &ground(DECLARED, "use super::B; pub struct A(B);", "use crate::ground::A; pub struct B(A);"),
        &["2 files", "a.rs", "b.rs"],
    );
}

#[test]
fn a_loop_through_a_parent_that_defines_an_item_of_its_child_is_found() {
    let parent = "mod a; mod b; pub use a::A; pub const LEAST: u8 = 0;";
    one(&ground(parent, "use super::LEAST; pub struct A;", ""), &["2 files", "ground/mod.rs", "ground/a.rs", "LEAST"]);
    none(&ground("mod a; mod b; pub const LEAST: u8 = 0;", "use super::LEAST; pub struct A;", ""));
}

#[test]
fn a_loop_is_found_however_the_path_is_written() {
    let back = "use super::a::A; pub struct B(A); pub fn b() {} macro_rules! m { () => {} } pub(crate) use m;";
    for a in [
        "pub struct A(super::b::B);",
        "pub struct A(crate::ground::B);",
        "use super::*; pub struct A(B);",
        "use super::b; pub struct A(b::B);",
        "use super::B as C; pub struct A(C);",
        "pub struct A; fn f() { super::b::b() }",
        "pub struct A; fn f() { use super::b::*; b() }",
        "pub struct A; fn f() { { use super::b as c; c::b() } }",
        "pub struct A; fn f() { println!(\"{:?}\", super::b::b()) }",
        "pub struct A; fn f() { vec![1, { x.y(super::b::b()) }] }",
        "pub struct A; fn f() { super::b::m!() }",
        "pub struct A; impl From<u8> for A { fn from(_: u8) -> A { super::b::b() } }",
        "pub struct A; impl super::b::B { }",
        "#[derive(Deserialize)] pub struct A { #[serde(default = \"super::b::b\")] x: u8 }",
        "#[derive(Args)] pub struct A { #[arg(value_parser = super::b::b)] x: u8 }",
        "pub struct A; mod within { fn f() { super::super::b::b() } }",
        "pub struct A; type C = <super::b::B as Iterator>::Item;",
        "pub struct A; fn f() -> impl Fn(super::b::B) { }",
    ] {
        one(&ground("mod a; mod b; pub use b::B;", a, back), &["2 files", "ground/a.rs", "ground/b.rs"]);
    }
}

#[test]
fn a_cycle_of_re_exports_ends() {
    none(&ground("mod a; mod b; pub use a::*; pub use b::*;", "pub use super::b::*;", "pub use super::a::*; struct B(Lost);"));
}

#[test]
fn tests_make_no_loop() {
    let back = "pub struct B; #[cfg(test)] mod tests { use super::super::A; } #[cfg(test)] mod more;";
    let mut files = ground(DECLARED, "use super::B; pub struct A(B);", back).to_vec();
    files.push(("core/src/ground/b/more.rs", "use crate::ground::A;"));
    none(&files);
    let gated = "pub struct B; #[cfg(any(test, feature = \"test-util\"))] pub fn made() -> super::A { super::A }";
    none(&ground(DECLARED, "use super::B; pub struct A(B);", gated));
}

#[test]
fn an_import_from_a_higher_floor_is_found() {
    let library = ("core/src/lib.rs", "mod roof; mod left; mod right; mod ground;");
    let tree = |roof, left, right, ground| {
        [
            library,
            ("core/src/roof/mod.rs", roof),
            ("core/src/left.rs", left),
            ("core/src/right.rs", right),
            ("core/src/ground.rs", ground),
        ]
    };
    none(&tree("use crate::{left::l, ground::g};", "use crate::right::r; pub fn l() {}", "pub fn r() {}", "pub fn g() {}"));
    let words = ["core/src/ground.rs must not import core/src/roof/mod.rs", "top (line 1)"];
    one(&tree("pub fn top() {}", "", "", "use crate::roof::top;"), &words);
}

#[test]
fn folders_of_one_floor_may_not_import_one_another_in_a_loop() {
    let files = [
        ("core/src/lib.rs", "mod left; mod right;"),
        ("core/src/left/mod.rs", "mod a; mod b;"),
        ("core/src/left/a.rs", "use crate::right::a::f;"),
        ("core/src/left/b.rs", "pub fn g() {}"),
        ("core/src/right/mod.rs", "pub mod a; pub mod b;"),
        ("core/src/right/a.rs", "pub fn f() {}"),
        ("core/src/right/b.rs", "use crate::left::b::g;"),
    ];
    one(&files, &["the folders left, right of core import one another"]);
}

#[test]
fn a_folder_and_a_crate_must_have_their_place() {
    one(&[("core/src/lib.rs", "mod cellar;"), ("core/src/cellar.rs", "")], &["core/src/cellar has no floor"]);
    let attic = [("core/src/lib.rs", ""), ("attic/Cargo.toml", "[package]\nname = \"attic\"\n"), ("attic/src/lib.rs", "")];
    one(&attic, &["the crate attic (attic) has no place"]);
}

#[test]
fn a_crate_may_not_depend_on_one_above_it() {
    let shell = [("shell/Cargo.toml", "[package]\nname = \"shell\"\n"), ("shell/src/lib.rs", "pub fn run() {}")];
    let manifest = ("core/Cargo.toml", "[package]\nname = \"core\"\n[dependencies]\nshell = {}\n");
    one(&[shell[0], shell[1], manifest, ("core/src/lib.rs", "")], &["core/Cargo.toml depends on shell"]);
    let words = ["core/src/lib.rs must not import shell/src/lib.rs", "run"];
    one(&[shell[0], shell[1], ("core/src/lib.rs", "fn f() { shell::run() }")], &words);
}

/// Checks that a module with `text`, the only one of its crate, has one fault with `words`.
fn fault(text: &str, words: &[&str]) {
    let files = [
        ("core/src/lib.rs", "mod ground;"),
        ("core/src/ground/mod.rs", text),
        ("core/src/ground/simulated.rs", "pub fn skew() -> u8 { 0 }"),
        ("core/src/ground/held.rs", "pub struct Held;"),
    ];
    let found = findings(&files);
    assert_eq!(found.len(), 1, "{text}: {found:#?}");
    for word in ["test code in production code: core/src/ground/mod.rs:1: "].iter().chain(words) {
        assert!(found[0].contains(word), "no {word} in {}", found[0]);
    }
}

#[test]
fn a_part_of_an_item_may_not_be_for_tests() {
    for text in [
        "fn f() { #[cfg(test)] let x = 1; }",
        "fn f() { #[cfg(not(test))] g(); }",
        "fn f() { #[cfg(any(test, feature = \"test-util\"))] { g() } }",
        "fn f() { #[cfg(feature = \"test-util\")] use std::fmt; }",
        "fn f() { #[cfg(test)] fn g() {} }",
        "fn f() { match x { #[cfg(test)] 1 => 2, _ => 3 } }",
        "fn f() { S { #[cfg(test)] x: 1 } }",
        "fn f(#[cfg(test)] x: u8) {}",
        "struct S { #[cfg(test)] x: u8 }",
        "enum E { #[cfg(feature = \"test-util\")] Planted, Real }",
        "trait T { #[cfg(test)] fn planted(&self); }",
        "impl S { fn f(&self) { #[cfg(test)] self.g(); } }",
        "struct S { #[cfg_attr(test, serde(skip))] x: u8 }",
    ] {
        fault(text, &["only whole items may be for tests"]);
    }
    fault("fn f() { if cfg!(test) { g() } }", &["another branch"]);
    fault("fn f() -> bool { cfg!(any(test, feature = \"test-util\")) }", &["another branch"]);
}

#[test]
fn tests_may_not_compile_another_item_in_place_of_one() {
    for text in [
        "#[cfg(test)] fn f() -> u8 { 0 } #[cfg(not(test))] fn f() -> u8 { 1 }",
        "#[cfg(all(unix, not(test)))] const LIMIT: u8 = 1;",
        "#[cfg(not(feature = \"test-util\"))] use std::fmt;",
        "impl S { #[cfg(not(test))] fn f(&self) {} }",
        "#[cfg(any(test, unix))] fn f() {}",
        "#[cfg(not(test))] mod real { fn f() {} }",
    ] {
        fault(text, &["in place of this item"]);
    }
}

#[test]
fn a_simulator_or_fault_hook_may_not_be_imported() {
    let declared = "#[cfg(feature = \"test-util\")] mod simulated;";
    for text in [
        "#[cfg(feature = \"test-util\")] use simulated::skew;",
        "#[cfg(feature = \"test-util\")] fn f() { simulated::skew() }",
        "#[cfg(feature = \"test-util\")] impl S { fn f() { println!(\"{}\", self::simulated::skew()) } }",
        "use simulated as clock;",
    ] {
        fault(&format!("{declared} {text}"), &["imports the test hook", "simulated"]);
    }
    // Recognised by its name, although a production build compiles it too.
    fault("mod held; use held::Held;", &["imports the test hook held::Held"]);
    fault("#[cfg(test)] mod planted { pub fn f() {} } #[cfg(test)] fn g() { planted::f() }", &["planted::f"]);
    // A hook of another crate.
    let files = [
        ("core/src/lib.rs", "pub mod ground;"),
        ("core/src/ground/mod.rs", "#[cfg(feature = \"test-util\")] pub mod simulated;"),
        ("core/src/ground/simulated.rs", "pub fn skew() {}"),
        ("shell/Cargo.toml", "[package]\nname = \"shell\"\n[dependencies]\ncore = {}\n"),
        ("shell/src/lib.rs", "fn f() { core::ground::simulated::skew() }"),
    ];
    one(&files, &["shell/src/lib.rs:1: imports the test hook core::ground::simulated::skew"]);
}

#[test]
fn a_missing_or_broken_file_is_named() {
    let tree = tempfile::tempdir().expect("a folder");
    fs::create_dir_all(tree.path().join("core/src")).expect("a folder");
    fs::write(tree.path().join("Cargo.toml"), "[workspace]\nmembers = [\"core\"]\n").expect("a file");
    fs::write(tree.path().join("core/Cargo.toml"), "[package]\nname = \"core\"\n").expect("a file");
    for (text, words) in [("mod gone;", "core/src/gone.rs is missing"), ("\nfn f( {", "core/src/lib.rs:2: ")] {
        fs::write(tree.path().join("core/src/lib.rs"), text).expect("a file");
        let fault = check(tree.path(), &ORDER).expect_err("a fault");
        assert!(fault.contains(words), "{fault}");
    }
}
