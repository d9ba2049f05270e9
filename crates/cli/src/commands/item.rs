//! How an item is printed: a line of a list, a page of its own, a JSON object, its bytes.

use crate::failure::Failure;
use crate::output::{FAINT, Out, STRONG, plain};
use larder_format::contact::Contact;
use larder_format::field::{CALENDAR_FIELDS, FIELDS, Field, Kind, calendar_field, field};
use larder_query::when::{self, When};
use larder_query::{Asker, Brief, Entry, Partial};
use larder_store::{Family, ItemHead, Kind as ItemKind, Reader, Times};
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

/// A column that is printed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Column {
    /// A field: of contacts, of what is in calendars, or of both.
    Field { contact: Option<&'static Field>, calendar: Option<&'static Field> },
    /// Which occurrence a changed one stands for.
    Recurrence,
    /// Which occurrence it is.
    Occurrence,
}

impl Column {
    /// The fields of this name.
    pub(crate) fn named(name: &str) -> Option<Column> {
        match name.to_ascii_lowercase().as_str() {
            "recurrence" => return Some(Column::Recurrence),
            "occurrence" => return Some(Column::Occurrence),
            _ => {}
        }
        let (contact, calendar) = (field(name), calendar_field(name));
        (contact.is_some() || calendar.is_some()).then_some(Column::Field { contact, calendar })
    }

    /// The field of items of this kind.
    fn of(&self, kind: ItemKind) -> Option<&'static Field> {
        match self {
            Column::Field { calendar, .. } if kind.family() == Family::Calendar => *calendar,
            Column::Field { contact, .. } => *contact,
            Column::Recurrence | Column::Occurrence => None,
        }
    }

    /// All fields that these are.
    pub(crate) fn fields(columns: &[Column]) -> Vec<&'static Field> {
        let of = |column: &Column| match column {
            Column::Field { contact, calendar } => [*contact, *calendar],
            Column::Recurrence | Column::Occurrence => [None, None],
        };
        columns.iter().flat_map(of).flatten().collect()
    }

    /// What an item says in each of these columns, as it is written.
    pub(crate) fn written(
        columns: &[Column],
        head: &ItemHead,
        of: &Partial<'_>,
    ) -> Vec<Vec<String>> {
        let values = |field| of.values(field).into_iter().map(Cow::into_owned).collect();
        columns.iter().map(|column| column.of(head.kind).map_or_else(Vec::new, values)).collect()
    }

    /// What an occurrence has in this column, of whose item this is written there.
    fn of_occurrence(&self, entry: &Entry, written: Vec<String>) -> Vec<String> {
        let text = match self {
            Column::Recurrence => entry.item.head.recurrence.clone(),
            Column::Occurrence => entry.occurrence(),
            Column::Field { .. } => {
                let field = self.of(entry.item.head.kind);
                return field.map_or_else(Vec::new, |of| values_of(of, written, Some(&entry.when)));
            }
        };
        if text.is_empty() { Vec::new() } else { vec![text] }
    }
}

/// The fields that say when something is: given by the clock of who asks, not as they are written.
fn is_timed(field: &Field) -> bool {
    calendar_field(field.name).is_some_and(|known| known.id == field.id)
        && matches!(field.name, "start" | "end" | "due")
}

/// When an item is, where a field that says so is asked for.
fn when_of(
    reader: &Reader,
    head: &ItemHead,
    local: &Zone,
    fields: &[&'static Field],
) -> Result<Option<(Times, When)>, Failure> {
    if !fields.iter().any(|field| is_timed(field)) {
        return Ok(None);
    }
    let times = when::times_of(reader, head.row)?;
    Ok(times.and_then(|times| When::first(&times, local).map(|when| (times, when))))
}

/// The values of a field, of which these are those that are written.
fn values_of(field: &Field, written: Vec<String>, when: Option<&When>) -> Vec<String> {
    match (field.name, when) {
        _ if !is_timed(field) => written,
        ("start", Some(when)) => vec![when.start()],
        ("end", Some(when)) => vec![when.end()],
        ("due", Some(when)) if !written.is_empty() => vec![when.due()],
        _ => written,
    }
}

/// A card as a JSON object, with all its fields; docs/output.md documents it.
pub(crate) fn json(head: &ItemHead, bytes: &[u8]) -> Value {
    let card = Contact::parse(bytes);
    let mut object = about(head);
    let fields = FIELDS.iter().filter(|field| {
        field.kind != Kind::Binary && field.name != "uid" && by_default_json(field)
    });
    for field in fields {
        set(&mut object, head.kind, field, card.values(field));
    }
    Value::Object(object)
}

/// An item of any kind as a JSON object, with all its fields.
pub(crate) fn whole(
    reader: &Reader,
    local: &Zone,
    head: &ItemHead,
    bytes: &[u8],
) -> Result<Value, Failure> {
    if head.kind.family() != Family::Calendar {
        return Ok(json(head, bytes));
    }
    let component = reader.component(head, bytes);
    let fields = CALENDAR_FIELDS.iter();
    let fields: Vec<&Field> =
        fields.filter(|field| field.kind != Kind::Binary && field.name != "uid").collect();
    let when = when_of(reader, head, local, &fields)?;
    let mut object = about(head);
    for field in fields {
        let values = values_of(field, component.values(field), when.as_ref().map(|(_, of)| of));
        set(&mut object, head.kind, field, values);
    }
    if let Some(zone) = when.and_then(|(times, _)| when::zone_name(&times)) {
        object.insert("zone".into(), json!(zone));
    }
    Ok(Value::Object(object))
}

/// An item as a JSON object, with these fields.
pub(crate) fn partial_json(
    reader: &Reader,
    local: &Zone,
    head: &ItemHead,
    of: &Partial<'_>,
    columns: &[Column],
) -> Result<Value, Failure> {
    let fields = columns.iter().filter_map(|column| column.of(head.kind));
    let fields: Vec<&Field> = fields.filter(|field| field.name != "uid").collect();
    let when = when_of(reader, head, local, &fields)?;
    let mut object = about(head);
    for field in fields {
        let written = of.values(field).into_iter().map(Cow::into_owned).collect();
        let values = values_of(field, written, when.as_ref().map(|(_, of)| of));
        set(&mut object, head.kind, field, values);
    }
    Ok(Value::Object(object))
}

/// Puts the values of a field into an object. What is in calendars has flags that are true or false.
fn set(object: &mut Map<String, Value>, of: ItemKind, field: &Field, mut values: Vec<String>) {
    let name = field.name.to_string();
    match (field.multi, values.is_empty()) {
        _ if field.kind == Kind::Flag && of.family() == Family::Calendar => {
            object.insert(name, json!(!values.is_empty()));
        }
        (_, true) => {}
        (true, _) => drop(object.insert(name, json!(values))),
        (false, _) => drop(object.insert(name, json!(values.swap_remove(0)))),
    }
}

/// What every object of an item begins with.
fn about(head: &ItemHead) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("id".into(), json!(head.handle.to_string()));
    object.insert("kind".into(), json!(head.kind.name()));
    object.insert("collection".into(), json!(*head.collection));
    object.insert("uid".into(), json!(head.uid));
    if !head.recurrence.is_empty() {
        object.insert("recurrence".into(), json!(head.recurrence));
    }
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

/// The cells of these columns of an occurrence, of whose item this is written there.
pub(crate) fn occurrence_cells(
    entry: &Entry,
    columns: &[Column],
    written: Vec<Vec<String>>,
) -> Vec<String> {
    let cells = columns.iter().zip(written);
    cells.map(|(column, of)| plain(&column.of_occurrence(entry, of).join(", "))).collect()
}

/// An occurrence as a JSON object, with these columns.
pub(crate) fn occurrence_partial_json(
    entry: &Entry,
    columns: &[Column],
    written: Vec<Vec<String>>,
) -> Value {
    let mut object = about(&entry.item.head);
    object.insert("occurrence".into(), json!(entry.occurrence()));
    for (column, written) in columns.iter().zip(written) {
        let field = column.of(entry.item.head.kind).filter(|field| field.name != "uid");
        if let Some(field) = field {
            set(&mut object, entry.item.head.kind, field, column.of_occurrence(entry, written));
        }
    }
    Value::Object(object)
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
    asker: &Asker,
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
    let (values, pictures) = match head.kind.family() {
        Family::Calendar => (super::component::rows(reader, asker, head, bytes)?, Vec::new()),
        _ => values(bytes),
    };
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
pub(super) type Row = (&'static str, String);

/// How properties begin that a merge kept of other cards.
const LARDER: &str = "X-LARDER-";

/// Adds the values of a field, of which each may have several lines.
pub(super) fn add(rows: &mut Vec<Row>, mut label: &'static str, values: Vec<String>) {
    for value in values {
        let mut lines = value.lines().map(plain);
        rows.push((std::mem::take(&mut label), lines.next().unwrap_or_default()));
        rows.extend(lines.map(|line| ("", line)));
    }
}

/// What there is to print of a card, and what only can be named.
fn values(bytes: &[u8]) -> (Vec<Row>, Vec<Row>) {
    let card = Contact::parse(bytes);
    let mut rows = Vec::new();
    for field in FIELDS.iter().filter(|field| by_default(field)) {
        add(&mut rows, field.name, card.values(field));
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

/// The cells of these columns.
pub(crate) fn column_cells(
    reader: &Reader,
    local: &Zone,
    head: &ItemHead,
    of: &Partial<'_>,
    columns: &[Column],
) -> Result<Vec<String>, Failure> {
    let fields: Vec<&Field> = columns.iter().filter_map(|column| column.of(head.kind)).collect();
    let when = when_of(reader, head, local, &fields)?;
    let when = when.as_ref().map(|(_, of)| of);
    let cell = |column: &Column| {
        let Some(field) = column.of(head.kind) else {
            let is_field = matches!(column, Column::Field { .. });
            return if is_field { String::new() } else { head.recurrence.clone() };
        };
        let written = of.values(field).into_iter().map(Cow::into_owned).collect();
        plain(&values_of(field, written, when).join(", "))
    };
    Ok(columns.iter().map(cell).collect())
}

/// Bytes for standard output, with a line end where they have none, so that two cards never share a line.
pub(crate) fn raw(out: &mut Out, bytes: &[u8], last: bool) -> Result<(), Failure> {
    out.bytes(bytes)?;
    if !last && !bytes.ends_with(b"\n") {
        out.bytes(b"\n")?;
    }
    Ok(())
}
