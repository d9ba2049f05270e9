//! What is extracted from messages.

use larder_extract::{MessageExtractor, MessageTermField};

/// Returns the words of all text of a message, in the order of their visits.
fn text_words(bytes: &str) -> Vec<String> {
    let mut extractor = MessageExtractor::new(&[]);
    let document = extractor.extract(bytes.as_bytes(), 0);
    let mut words = Vec::new();
    extractor.for_each_term(&document, |field, word, _| {
        if field == MessageTermField::Text as u8 {
            words.push(String::from_utf8(word.to_vec()).unwrap());
        }
    });
    words
}

/// Each text is looked up among those of the body.
#[test]
fn messages_of_very_many_parts_take_linear_time() {
    let (body, attached) = ("--b\n\na\n".repeat(200_000), "--b\nContent-Type: text/csv\n\nb\n");
    let head = "Content-Type: multipart/mixed; boundary=b\n\n";
    let words = text_words(&format!("{head}{body}{attached}--b--\n"));
    // Texts are far away from each other, and a message has a limited number of positions.
    assert!(words.len() > 1000, "{}", words.len());
    assert_eq!(words.last().map(String::as_str), Some("b"));
}
