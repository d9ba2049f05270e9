//! The example program of the crate's documentation.

use crate::book::small;

#[path = "../examples/contact_names.rs"]
#[allow(dead_code, unreachable_pub, reason = "a program, of which a function is called")]
mod contact_names;

#[test]
fn the_example_prints_names() {
    let book = small();
    let check = |search_line: &str, expect: &[&str]| {
        let mut names = Vec::new();
        let mut push = |name: &str| names.push(name.to_string());
        contact_names::for_each_name(&book.dir(), search_line, &mut push).unwrap();
        assert_eq!(names, expect, "{search_line}");
    };
    check("email:example", &["Anna Bergström", "Bob O'Brien", "Chess Club"]);
    check("full_name:x*", &[]);
    assert!(contact_names::for_each_name(&book.dir(), "(", &mut |_| {}).is_err());
}
