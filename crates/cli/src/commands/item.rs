//! How an item is printed: a line of a list, a page of its own, a JSON object, its bytes.

use crate::failure::Failure;
use crate::output::{FAINT, Out, STRONG, plain};
use larder_format::contact::Contact;
use larder_format::field::{FIELDS, Field, Kind};
use larder_store::{ItemHead, Reader};
use serde_json::{Map, Value, json};

/// Fields that other fields already show, left out unless they are asked for.
const REPEATED: &[&str] = &[
    "name",
    "given_name",
    "family_name",
    "name_or_org",
    "address_home",
    "address_work",
    "address_other",
    "im",
    "uid",
    "version",
];

/// Is this field left out of what is shown by default?
fn by_default(field: &Field) -> bool {
    let numbered = field.name.ends_with(|c: char| c.is_ascii_digit());
    let typed_phone = field.kind == Kind::Phone && field.name != "phone";
    field.kind != Kind::Binary && !numbered && !typed_phone && !REPEATED.contains(&field.name)
}

/// An item as a JSON object; docs/output.md documents it.
pub(crate) fn json(head: &ItemHead, bytes: &[u8], fields: Option<&[&'static Field]>) -> Value {
    let card = Contact::parse(bytes);
    let mut object = Map::new();
    object.insert("id".into(), json!(head.handle.to_string()));
    object.insert("kind".into(), json!(head.kind.name()));
    object.insert("collection".into(), json!(head.collection));
    object.insert("uid".into(), json!(head.uid));
    object.insert("seq".into(), json!(head.seq));
    let mut insert = |field: &Field| {
        let mut values = card.values(field);
        match (field.multi, values.is_empty()) {
            (_, true) => {}
            (true, _) => drop(object.insert(field.name.into(), json!(values))),
            (false, _) => drop(object.insert(field.name.into(), json!(values.swap_remove(0)))),
        }
    };
    match fields {
        Some(fields) => {
            fields.iter().copied().filter(|field| field.name != "uid").for_each(&mut insert);
        }
        None => FIELDS
            .iter()
            .filter(|field| {
                field.kind != Kind::Binary && field.name != "uid" && by_default_json(field)
            })
            .for_each(&mut insert),
    }
    Value::Object(object)
}

/// JSON repeats parts of the name and typed values, which programs want apart; only numbered e-mail
/// addresses are left out.
fn by_default_json(field: &Field) -> bool {
    !field.name.ends_with(|c: char| c.is_ascii_digit())
}

/// An item on a page of its own: each field with its values.
pub(crate) fn page(
    out: &mut Out,
    reader: &Reader,
    head: &ItemHead,
    bytes: &[u8],
) -> Result<(), Failure> {
    let card = Contact::parse(bytes);
    let name = crate::ids::name_in(bytes);
    let letters = reader.letters(head.handle)?;
    out.line(format!("{STRONG}{name}{STRONG:#}"))?;
    let faint = |label: &str, value: &str| format!("{FAINT}{label:<14}  {value}{FAINT:#}");
    out.line(faint("id", &format!("{:.letters$}", head.handle)))?;
    out.line(faint("collection", &plain(&head.collection)))?;
    let derived =
        if head.derived_uid { "  (made by larder: the card names none of its own)" } else { "" };
    out.line(faint("uid", &format!("{}{derived}", plain(&head.uid))))?;
    for field in FIELDS.iter().filter(|field| by_default(field)) {
        let mut label = field.name;
        for value in card.values(field) {
            let mut lines = value.lines().map(plain);
            out.line(format!("{label:<14}  {}", lines.next().unwrap_or_default()))?;
            for line in lines {
                out.line(format!("{:<14}  {line}", ""))?;
            }
            label = "";
        }
    }
    for field in FIELDS.iter().filter(|field| field.kind == Kind::Binary) {
        if card.first(field).is_some() {
            out.line(faint(field.name, "(larder show --format raw prints it)"))?;
        }
    }
    Ok(())
}

/// The cells of a list's line, after the handle.
pub(crate) fn cells(bytes: &[u8], fields: &[&'static Field]) -> Vec<String> {
    let card = Contact::parse(bytes);
    fields.iter().map(|field| plain(&card.values(field).join(", "))).collect()
}

/// Bytes for standard output, with a line end where they have none, so that two cards never share a line.
pub(crate) fn raw(out: &mut Out, bytes: &[u8], last: bool) -> Result<(), Failure> {
    out.bytes(bytes)?;
    if !last && !bytes.ends_with(b"\n") {
        out.bytes(b"\n")?;
    }
    Ok(())
}
