//! The files that an import reads, their order, and its reports about files that it cannot read.

use crate::book::{Book, INTO, card, options, path, stream};
use larder_sync::Error;

/// Imports the folder `files`, and returns the names of the cards, in order.
fn names(book: &mut Book) -> Vec<String> {
    book.import(vec![path(book.path(""))], &options());
    let text = String::from_utf8(book.export(INTO)).unwrap();
    text.lines().filter_map(|line| line.strip_prefix("FN:")).map(str::to_owned).collect()
}

#[test]
fn folders_are_read_in_the_order_of_names() {
    let mut book = Book::new();
    for (file, name) in [
        ("b.vcf", "two"),
        ("a/deep/down/x.VCF", "one"),
        ("c.vcard", "three"),
        ("notes.txt", "no address book"),
        ("z.vcf.bak", "no address book"),
        ("vcf", "no address book"),
        (".hidden.vcf", "hidden"),
        (".git/x.vcf", "hidden"),
        ("d.vcf/inner.vcf", "four"),
    ] {
        book.file(file, card(file, name));
    }
    assert_eq!(names(&mut book), ["one", "two", "three", "four"]);
}

#[cfg(unix)]
#[test]
fn circular_links_are_not_followed() {
    use std::os::unix::fs::symlink;
    let mut book = Book::new();
    book.file("a/one.vcf", card("1", "one"));
    symlink(book.path(""), book.path("a/back")).unwrap();
    symlink(book.path("loop"), book.path("loop")).unwrap();
    book.file("elsewhere.txt", card("2", "two"));
    symlink(book.path("elsewhere.txt"), book.path("two.vcf")).unwrap();
    assert_eq!(names(&mut book), ["one", "two"]);
}

/// A link in the folder may lead to all files of the machine; a link within it does no harm, and a
/// folder that is named is read even if the name is a link.
#[cfg(unix)]
#[test]
fn links_to_folders_elsewhere_are_named_and_not_followed() {
    use std::os::unix::fs::symlink;
    let mut book = Book::new();
    book.file("folder/a/one.vcf", card("1", "one"));
    book.file("elsewhere/two.vcf", card("2", "two"));
    symlink(book.path("elsewhere"), book.path("folder/out")).unwrap();
    symlink(book.path("folder/a"), book.path("folder/within")).unwrap();
    let outcome = book.import(vec![path(book.path("folder"))], &options());
    assert_eq!(outcome.summary.added, 1);
    assert_eq!(
        outcome.warnings,
        [
            "folder/out: this link to a folder elsewhere was not followed; import that folder by its own name"
        ]
    );
    let outcome = book.import(vec![path(book.path("folder/out"))], &options());
    assert_eq!((outcome.summary.added, outcome.warnings), (1, Vec::new()));
}

#[test]
fn a_file_given_by_path_may_have_any_extension() {
    let mut book = Book::new();
    let file = book.file(".contacts.txt", card("1", "one"));
    let outcome = book.import(vec![path(file)], &options());
    assert_eq!((outcome.summary.added, outcome.summary.files), (1, 1));
}

#[test]
fn a_missing_file_does_not_stop_the_others() {
    let mut book = Book::new();
    let (one, two) = (book.file("1.vcf", card("1", "one")), book.file("2.vcf", card("2", "two")));
    let outcome = book.import(vec![path(one), path(book.path("gone.vcf")), path(two)], &options());
    assert_eq!((outcome.summary.added, outcome.summary.files), (2, 2));
    assert_eq!(outcome.unreadable, ["gone.vcf: no such file"]);
}

#[test]
fn empty_folders_and_files_are_reported() {
    let mut book = Book::new();
    book.file("empty.vcf", "\n");
    book.file("folder/letter.txt", "");
    let outcome =
        book.import(vec![path(book.path("folder")), path(book.path("empty.vcf"))], &options());
    assert_eq!(
        outcome.warnings,
        ["folder: no .vcf, .vcard or .ics file in this folder", "empty.vcf: the file is empty"]
    );
    assert_eq!(outcome.summary.item_count(), 0);
    assert!(book.collection(INTO).is_none());
}

#[test]
fn the_log_names_the_inputs_briefly() {
    let mut book = Book::new();
    let mut inputs = vec![stream(card("0", "zero"))];
    for number in 1..6 {
        let file = format!("folder/{number}.vcf");
        inputs.push(path(book.file(&file, card(&file, "name"))));
    }
    book.import(inputs, &options());
    let log = book.store.open_reader().unwrap().changes().list_operations(None, 1).unwrap();
    assert_eq!(log[0].detail, "standard input, 1.vcf, 2.vcf, and 3 more");
}

#[test]
fn the_file_for_rejects_cannot_be_an_input() {
    let mut book = Book::new();
    let file = book.file("folder/1.vcf", card("1", "one"));
    let same = book.path("folder/../folder/1.vcf");
    for input in [book.path("folder"), file.clone()] {
        let options = larder_sync::ImportOptions { rejects: Some((&same).into()), ..options() };
        let error = book.try_import(vec![path(input)], &options).unwrap_err();
        assert!(matches!(error, Error::RejectsFileIsInput { .. }), "{error}");
    }
    assert_eq!(std::fs::read_to_string(file).unwrap(), card("1", "one"));
}
