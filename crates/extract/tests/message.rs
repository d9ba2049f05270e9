//! What is extracted from messages.

use larder_extract::message_flags::MessageFlag;
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

/// As mu and notmuch have it, measured with both: they take a message in a transfer encoding for a
/// file.
#[test]
fn an_attached_message_in_base64_is_an_attachment() {
    let declared = "Content-Disposition: attachment; filename=f.eml\n";
    let base64 = "Content-Transfer-Encoding: base64\n";
    let quoted = "Content-Transfer-Encoding: quoted-printable\n";
    for (fields, content, is_attachment) in [
        (format!("{declared}{base64}"), "U3ViamVjdDogeAoKdGV4dAo=", true),
        (format!("{declared}{quoted}"), "Subject: x\n\ntext", true),
        (declared.to_string(), "Subject: x\n\ntext", false),
        (base64.to_string(), "U3ViamVjdDogeAoKdGV4dAo=", false),
    ] {
        let source = format!(
            "Content-Type: multipart/mixed; boundary=b\n\n--b\n\nbody\n\
             --b\nContent-Type: message/rfc822\n{fields}\n{content}\n--b--\n"
        );
        let document = MessageExtractor::new(&[]).extract(source.as_bytes(), 0);
        assert_eq!(document.flags.contains(MessageFlag::Attachment), is_attachment, "{source}");
    }
}
