//! The crate calcard parses the same values: names, e-mail addresses and phone numbers of the cards
//! of the corpora.

use crate::corpora::vcards;
use crate::split::split;
use calcard::vcard::{VCardProperty, VCardValue};
use calcard::{Entry, Parser};
use larder_format::contact::Contact;

/// Cards for which the two parsers differ: the end of the path, and the reason.
const EXCEPTIONS: &[(&str, &str)] = &[(
    "libebook/vcard/5.vcf",
    "it writes QUOTED-PRINTABLE without ENCODING=, which calcard does not know",
)];

/// Returns the values of a property as calcard parses them: its parts joined by the separator that
/// it removed.
fn calcard_values(card: &calcard::vcard::VCard, name: &VCardProperty) -> Vec<String> {
    let text = |value: &VCardValue| match value {
        VCardValue::Component(parts) => parts.join(","),
        value => value.as_text().unwrap_or_default().to_string(),
    };
    card.entries
        .iter()
        .filter(|entry| entry.name == *name)
        .map(|entry| entry.values.iter().map(text).collect::<Vec<_>>().join(";").trim().to_string())
        .filter(|value| !value.is_empty())
        .collect()
}

fn larder_values(card: &Contact<'_>, name: &str) -> Vec<String> {
    card.properties()
        .iter()
        .filter(|property| property.has_name(name))
        .map(|property| larder_format::decoding::unescape_text(property.text().trim()).into_owned())
        .filter(|value| !value.is_empty())
        .collect()
}

#[test]
fn calcard_reads_the_same_values() {
    let (mut same, mut differences) = (0, Vec::new());
    for (path, bytes) in vcards("calcard_reads_the_same_values") {
        if EXCEPTIONS.iter().any(|(end, _)| path.ends_with(end)) {
            continue;
        }
        for piece in split([&bytes[..]], 32 << 20).iter().filter(|piece| piece.name == "VCARD") {
            let Ok(text) = std::str::from_utf8(&piece.bytes) else {
                continue;
            };
            let Entry::VCard(other) = Parser::new(text).entry() else {
                continue;
            };
            let card = Contact::parse(&piece.bytes);
            for (name, property) in [
                ("FN", VCardProperty::Fn),
                ("EMAIL", VCardProperty::Email),
                ("TEL", VCardProperty::Tel),
            ] {
                let (ours, theirs) =
                    (larder_values(&card, name), calcard_values(&other, &property));
                if ours == theirs {
                    same += ours.len();
                } else {
                    differences
                        .push(format!("{} {name}: {ours:?}, calcard {theirs:?}", path.display()));
                }
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert!(same == 0 || same > 700, "only {same} values compared");
}
