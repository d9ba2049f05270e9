//! How an item is printed: a line of a list, a page of its own, a JSON object, its bytes.

use crate::failure::Failure;
use crate::output::{FAINT, Out, STRONG, plain};
use larder_format::contact::Contact;
use larder_format::field::{FIELDS, Field, Kind};
use larder_query::{Brief, Entry, Partial, when};
use larder_store::{ItemHead, Kind as ItemKind, Reader};
use larder_time::zone::Zone;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

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

/// An item as a JSON object, with all its fields; docs/output.md documents it.
pub(crate) fn json(head: &ItemHead, bytes: &[u8]) -> Value {
    let card = Contact::parse(bytes);
    let fields = FIELDS.iter().filter(|field| {
        field.kind != Kind::Binary && field.name != "uid" && by_default_json(field)
    });
    object(head, fields, |field| card.values(field))
}

/// An item as a JSON object, with these fields.
pub(crate) fn partial_json(head: &ItemHead, of: &Partial<'_>, fields: &[&'static Field]) -> Value {
    let fields = fields.iter().copied().filter(|field| field.name != "uid");
    object(head, fields, |field| of.values(field).into_iter().map(Cow::into_owned).collect())
}

fn object(
    head: &ItemHead,
    fields: impl Iterator<Item = &'static Field>,
    values: impl Fn(&Field) -> Vec<String>,
) -> Value {
    let mut object = about(head);
    for field in fields {
        let mut values = values(field);
        match (field.multi, values.is_empty()) {
            (_, true) => {}
            (true, _) => drop(object.insert(field.name.into(), json!(values))),
            (false, _) => drop(object.insert(field.name.into(), json!(values.swap_remove(0)))),
        }
    }
    Value::Object(object)
}

/// What every object of an item begins with.
fn about(head: &ItemHead) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("id".into(), json!(head.handle.to_string()));
    object.insert("kind".into(), json!(head.kind.name()));
    object.insert("collection".into(), json!(*head.collection));
    object.insert("uid".into(), json!(head.uid));
    object.insert("seq".into(), json!(head.seq));
    object
}

/// JSON repeats parts of the name and typed values, which programs want apart; only numbered e-mail
/// addresses are left out.
fn by_default_json(field: &Field) -> bool {
    !field.name.ends_with(|c: char| c.is_ascii_digit())
}

/// An occurrence, or an alarm of one, as a JSON object; docs/output.md documents it.
pub(crate) fn occurrence_json(entry: &Entry, local: &Zone) -> Value {
    let (item, when) = (&entry.item, &entry.when);
    let mut object = about(&item.head);
    let mut set = |name: &str, value: Value| drop(object.insert(name.into(), value));
    set("occurrence", json!(entry.occurrence()));
    for (name, text) in
        [("summary", &item.summary), ("location", &item.location), ("status", &item.status)]
    {
        if !text.is_empty() {
            set(name, json!(text));
        }
    }
    set("start", json!(when.start()));
    set("end", json!(when.end()));
    if item.due {
        set("due", json!(when.due()));
    }
    if let Some(zone) = &item.zone {
        set("zone", json!(zone));
    }
    set("all_day", json!(when.all_day));
    set("recurring", json!(item.recurs));
    set("transparent", json!(item.transparent));
    if item.head.kind == ItemKind::Task {
        set("done", json!(item.done));
    }
    if let Some((at, _)) = entry.occurring.alarm {
        set("alarm", json!(when::moment(at, local)));
    }
    Value::Object(object)
}

/// What it is about, as a list shows it.
pub(crate) fn title(summary: &str) -> String {
    if summary.trim().is_empty() { "(no title)".into() } else { plain(summary) }
}

/// Where it is, as a list shows it: addresses have more lines than one.
pub(crate) fn place(location: &str) -> String {
    location.lines().next().map(plain).unwrap_or_default()
}

/// What there is to say of an item beside its title.
pub(crate) fn marks(item: &Brief) -> Vec<&'static str> {
    let marks = [
        (item.is_cancelled(), "cancelled"),
        (item.status == "TENTATIVE", "tentative"),
        (item.done, "done"),
    ];
    marks.into_iter().filter(|(so, _)| *so).map(|(_, mark)| mark).collect()
}

/// An item on a page of its own: each field with its values.
pub(crate) fn page(
    out: &mut Out,
    reader: &Reader,
    head: &ItemHead,
    bytes: &[u8],
) -> Result<(), Failure> {
    let letters = reader.letters(head.handle)?;
    out.line(format!("{STRONG}{}{STRONG:#}", crate::ids::name_in(bytes)))?;
    let derived = if head.derived_uid {
        "  (made by larder: the card names none, or one that another item has)"
    } else {
        ""
    };
    let about = [
        ("id", format!("{:.letters$}", head.handle)),
        ("collection", plain(&head.collection)),
        ("uid", format!("{}{derived}", plain(&head.uid))),
    ];
    let (values, pictures) = values(bytes);
    let labels = about.iter().chain(&values).chain(&pictures).map(|(label, _)| label.len());
    let width = labels.max().unwrap_or_default();
    let faint =
        |(label, value): &(&str, String)| format!("{FAINT}{label:<width$}  {value}{FAINT:#}");
    for row in &about {
        out.line(faint(row))?;
    }
    for (label, value) in &values {
        out.line(format!("{label:<width$}  {value}").trim_end())?;
    }
    for row in &pictures {
        out.line(faint(row))?;
    }
    Ok(())
}

/// A line of an item's page: a label, which is empty where the line belongs to the one above, and a text.
type Row = (&'static str, String);

/// How properties begin that a merge kept of other cards.
const LARDER: &str = "X-LARDER-";

/// What there is to print of a card, and what only can be named.
fn values(bytes: &[u8]) -> (Vec<Row>, Vec<Row>) {
    let card = Contact::parse(bytes);
    let mut rows = Vec::new();
    for field in FIELDS.iter().filter(|field| by_default(field)) {
        let mut label = field.name;
        for value in card.values(field) {
            let mut lines = value.lines().map(plain);
            rows.push((std::mem::take(&mut label), lines.next().unwrap_or_default()));
            rows.extend(lines.map(|line| ("", line)));
        }
    }
    let kept = card.properties().iter().filter_map(|property| {
        let name = property.name().get(..LARDER.len())?;
        let of = property.name().get(LARDER.len()..)?;
        let shown = ["FN", "BDAY"].iter().any(|shown| of.eq_ignore_ascii_case(shown));
        (name.eq_ignore_ascii_case(LARDER) && !shown)
            .then(|| ("of_others", format!("{of} {}", plain(&property.text()))))
    });
    rows.extend(kept);
    let pictures = FIELDS
        .iter()
        .filter(|field| field.kind == Kind::Binary && card.first(field).is_some())
        .map(|field| (field.name, "(larder show --format raw prints it)".to_string()));
    (rows, pictures.collect())
}

/// The cells of a list's line, after the handle.
pub(crate) fn cells(of: &Partial<'_>, fields: &[&'static Field]) -> Vec<String> {
    fields.iter().map(|field| plain(&of.values(field).join(", "))).collect()
}

/// Bytes for standard output, with a line end where they have none, so that two cards never share a line.
pub(crate) fn raw(out: &mut Out, bytes: &[u8], last: bool) -> Result<(), Failure> {
    out.bytes(bytes)?;
    if !last && !bytes.ends_with(b"\n") {
        out.bytes(b"\n")?;
    }
    Ok(())
}
