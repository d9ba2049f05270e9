//! The example does what it says.

use crate::book::small;

#[path = "../examples/who.rs"]
#[allow(dead_code, unreachable_pub, reason = "a program, of which a function is called")]
mod example;

#[test]
fn the_example_prints_names() {
    let book = small();
    let check = |question: &str, expect: &[&str]| {
        let mut names = Vec::new();
        example::who(&book.dir(), question, &mut |name| names.push(name.to_string())).unwrap();
        assert_eq!(names, expect, "{question}");
    };
    check("example", &["Anna Bergström", "Bob O'Brien", "Chess Club"]);
    check("full_name:x*", &[]);
    assert!(example::who(&book.dir(), "(", &mut |_| {}).is_err());
}
