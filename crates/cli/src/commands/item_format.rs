//! How an item is printed: a line of a list, a page of its own, a JSON object, its bytes.

use crate::failure::CommandFailure;
use crate::output::{FAINT_STYLE, OutputStream, STRONG_STYLE, sanitize_line};
use larder_format::contact::Contact;
use larder_format::field::{
    CALENDAR_FIELDS, CONTACT_FIELDS, Field, FieldType, find_calendar_field, find_contact_field,
};
use larder_present::local_time;
use larder_query::local_time::{LocalTimeSpan, read_schedule, zone_name};
use larder_query::{AgendaEntry, ItemSummary, ProjectedItem, UserLocale};
use larder_store::{CollectionType, ItemMeta, Kind as ItemKind, Reader, Schedule};
use larder_time::zone::Zone;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// Fields that other fields already show, left out unless they are asked for.
const REDUNDANT_FIELDS: &[&str] = &[
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
fn is_shown_by_default(field: &Field) -> bool {
    let numbered = field.name.ends_with(|c: char| c.is_ascii_digit());
    let typed_phone = field.field_type == FieldType::Phone && field.name != "phone";
    field.field_type != FieldType::Binary
        && !numbered
        && !typed_phone
        && !REDUNDANT_FIELDS.contains(&field.name)
}

/// A column that is printed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OutputColumn {
    /// A field: of contacts, of what is in calendars, or of both.
    Field { contact: Option<&'static Field>, calendar: Option<&'static Field> },
    /// Which occurrence a changed one stands for.
    Recurrence,
    /// Which occurrence it is.
    Occurrence,
}

impl OutputColumn {
    /// The fields of this name.
    pub(crate) fn from_name(name: &str) -> Option<OutputColumn> {
        match name.to_ascii_lowercase().as_str() {
            "recurrence" => return Some(OutputColumn::Recurrence),
            "occurrence" => return Some(OutputColumn::Occurrence),
            _ => {}
        }
        let (contact, calendar) = (find_contact_field(name), find_calendar_field(name));
        (contact.is_some() || calendar.is_some())
            .then_some(OutputColumn::Field { contact, calendar })
    }

    /// The field of items of this kind.
    fn field_for_kind(&self, kind: ItemKind) -> Option<&'static Field> {
        match self {
            OutputColumn::Field { calendar, .. }
                if kind.collection_type() == CollectionType::Calendar =>
            {
                *calendar
            }
            OutputColumn::Field { contact, .. } => *contact,
            OutputColumn::Recurrence | OutputColumn::Occurrence => None,
        }
    }

    /// All fields that these are.
    pub(crate) fn fields_of_columns(columns: &[OutputColumn]) -> Vec<&'static Field> {
        let of = |column: &OutputColumn| match column {
            OutputColumn::Field { contact, calendar } => [*contact, *calendar],
            OutputColumn::Recurrence | OutputColumn::Occurrence => [None, None],
        };
        columns.iter().flat_map(of).flatten().collect()
    }

    /// What an item says in each of these columns, as it is written.
    pub(crate) fn item_values(
        columns: &[OutputColumn],
        head: &ItemMeta,
        of: &ProjectedItem<'_>,
    ) -> Vec<Vec<String>> {
        let values = |field| of.values(field).into_iter().map(Cow::into_owned).collect();
        columns
            .iter()
            .map(|column| column.field_for_kind(head.kind).map_or_else(Vec::new, values))
            .collect()
    }

    /// What an occurrence has in this column, of whose item this is written there.
    fn occurrence_values(&self, entry: &AgendaEntry, written: Vec<String>) -> Vec<String> {
        let text = match self {
            OutputColumn::Recurrence => entry.item.head.recurrence_id.clone(),
            OutputColumn::Occurrence => entry.recurrence_id(),
            OutputColumn::Field { .. } => {
                let field = self.field_for_kind(entry.item.head.kind);
                return field.map_or_else(Vec::new, |of| {
                    localize_values(of, written, Some(&entry.local_time))
                });
            }
        };
        if text.is_empty() { Vec::new() } else { vec![text] }
    }
}

/// The fields that say when something is: given by the clock of who asks, not as they are written.
fn is_time_field(field: &Field) -> bool {
    find_calendar_field(field.name).is_some_and(|known| known.id == field.id)
        && matches!(field.name, "start" | "end" | "due")
}

/// When an item is, where a field that says so is asked for.
fn item_times(
    reader: &Reader,
    head: &ItemMeta,
    local: &Zone,
    fields: &[&'static Field],
) -> Result<Option<(Schedule, LocalTimeSpan)>, CommandFailure> {
    if !fields.iter().any(|field| is_time_field(field)) {
        return Ok(None);
    }
    let times = read_schedule(reader, head.row)?;
    Ok(times.and_then(|times| {
        LocalTimeSpan::from_first_occurrence(&times, local).map(|when| (times, when))
    }))
}

/// The values of a field, of which these are those that are written.
fn localize_values(
    field: &Field,
    written: Vec<String>,
    when: Option<&LocalTimeSpan>,
) -> Vec<String> {
    match (field.name, when) {
        _ if !is_time_field(field) => written,
        ("start", Some(when)) => vec![local_time::format_start(when)],
        ("end", Some(when)) => vec![local_time::format_end(when)],
        ("due", Some(when)) if !written.is_empty() => vec![local_time::format_due(when)],
        _ => written,
    }
}

/// A card as a JSON object, with all its fields; docs/output.md documents it.
pub(crate) fn contact_json(head: &ItemMeta, bytes: &[u8]) -> Value {
    let card = Contact::parse(bytes);
    let mut object = item_json_head(head);
    let fields = CONTACT_FIELDS.iter().filter(|field| {
        field.field_type != FieldType::Binary && field.name != "uid" && is_in_json_by_default(field)
    });
    for field in fields {
        insert_field(&mut object, head.kind, field, card.values(field));
    }
    Value::Object(object)
}

/// An item of any kind as a JSON object, with all its fields.
pub(crate) fn item_json(
    reader: &Reader,
    local: &Zone,
    head: &ItemMeta,
    bytes: &[u8],
) -> Result<Value, CommandFailure> {
    if head.kind.collection_type() != CollectionType::Calendar {
        return Ok(contact_json(head, bytes));
    }
    let component = reader.parse_component(head, bytes);
    let fields = CALENDAR_FIELDS.iter();
    let fields: Vec<&Field> = fields
        .filter(|field| field.field_type != FieldType::Binary && field.name != "uid")
        .collect();
    let when = item_times(reader, head, local, &fields)?;
    let mut object = item_json_head(head);
    for field in fields {
        let values =
            localize_values(field, component.values(field), when.as_ref().map(|(_, of)| of));
        insert_field(&mut object, head.kind, field, values);
    }
    if let Some(zone) = when.and_then(|(times, _)| zone_name(&times)) {
        object.insert("zone".into(), json!(zone));
    }
    Ok(Value::Object(object))
}

/// An item as a JSON object, with these fields.
pub(crate) fn item_columns_json(
    reader: &Reader,
    local: &Zone,
    head: &ItemMeta,
    of: &ProjectedItem<'_>,
    columns: &[OutputColumn],
) -> Result<Value, CommandFailure> {
    let fields = columns.iter().filter_map(|column| column.field_for_kind(head.kind));
    let fields: Vec<&Field> = fields.filter(|field| field.name != "uid").collect();
    let when = item_times(reader, head, local, &fields)?;
    let mut object = item_json_head(head);
    for field in fields {
        let written = of.values(field).into_iter().map(Cow::into_owned).collect();
        let values = localize_values(field, written, when.as_ref().map(|(_, of)| of));
        insert_field(&mut object, head.kind, field, values);
    }
    Ok(Value::Object(object))
}

/// Puts the values of a field into an object. What is in calendars has flags that are true or
/// false.
fn insert_field(
    object: &mut Map<String, Value>,
    of: ItemKind,
    field: &Field,
    mut values: Vec<String>,
) {
    let name = field.name.to_string();
    match (field.is_multi_valued, values.is_empty()) {
        _ if field.field_type == FieldType::Flag
            && of.collection_type() == CollectionType::Calendar =>
        {
            object.insert(name, json!(!values.is_empty()));
        }
        (_, true) => {}
        (true, _) => drop(object.insert(name, json!(values))),
        (false, _) => drop(object.insert(name, json!(values.swap_remove(0)))),
    }
}

/// What every object of an item begins with.
fn item_json_head(head: &ItemMeta) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("id".into(), json!(head.handle.to_string()));
    object.insert("kind".into(), json!(head.kind.name()));
    object.insert("collection".into(), json!(*head.collection));
    object.insert("uid".into(), json!(head.uid));
    if !head.recurrence_id.is_empty() {
        object.insert("recurrence".into(), json!(head.recurrence_id));
    }
    object.insert("seq".into(), json!(head.seq));
    object
}

/// JSON repeats parts of the name and typed values, which programs want apart; only numbered e-mail
/// addresses are left out.
fn is_in_json_by_default(field: &Field) -> bool {
    !field.name.ends_with(|c: char| c.is_ascii_digit())
}

/// An occurrence, or an alarm of one, as a JSON object; docs/output.md documents it.
pub(crate) fn occurrence_json(entry: &AgendaEntry, local: &Zone) -> Value {
    let (item, when) = (&entry.item, &entry.local_time);
    let mut object = item_json_head(&item.head);
    let mut set = |name: &str, value: Value| drop(object.insert(name.into(), value));
    set("occurrence", json!(entry.recurrence_id()));
    for (name, text) in
        [("summary", &item.summary), ("location", &item.location), ("status", &item.status)]
    {
        if !text.is_empty() {
            set(name, json!(text));
        }
    }
    set("start", json!(local_time::format_start(when)));
    set("end", json!(local_time::format_end(when)));
    if item.has_due {
        set("due", json!(local_time::format_due(when)));
    }
    if let Some(zone) = &item.zone {
        set("zone", json!(zone));
    }
    set("all_day", json!(when.all_day));
    set("recurring", json!(item.is_recurring));
    set("transparent", json!(item.transparent));
    if item.head.kind == ItemKind::Task {
        set("done", json!(item.is_done));
    }
    if let Some((at, _)) = entry.occurrence.alarm {
        set("alarm", json!(local_time::format_instant(at, local)));
    }
    Value::Object(object)
}

/// The cells of these columns of an occurrence, of whose item this is written there.
pub(crate) fn occurrence_cells(
    entry: &AgendaEntry,
    columns: &[OutputColumn],
    written: Vec<Vec<String>>,
) -> Vec<String> {
    let cells = columns.iter().zip(written);
    cells
        .map(|(column, of)| sanitize_line(&column.occurrence_values(entry, of).join(", ")))
        .collect()
}

/// An occurrence as a JSON object, with these columns.
pub(crate) fn occurrence_columns_json(
    entry: &AgendaEntry,
    columns: &[OutputColumn],
    written: Vec<Vec<String>>,
) -> Value {
    let mut object = item_json_head(&entry.item.head);
    object.insert("occurrence".into(), json!(entry.recurrence_id()));
    for (column, written) in columns.iter().zip(written) {
        let field = column.field_for_kind(entry.item.head.kind).filter(|field| field.name != "uid");
        if let Some(field) = field {
            insert_field(
                &mut object,
                entry.item.head.kind,
                field,
                column.occurrence_values(entry, written),
            );
        }
    }
    Value::Object(object)
}

/// Where it is, as a list shows it: addresses have more lines than one.
pub(crate) fn first_location_line(location: &str) -> String {
    location.lines().next().map(sanitize_line).unwrap_or_default()
}

/// What there is to say of an item beside its title.
pub(crate) fn status_marks(item: &ItemSummary) -> Vec<&'static str> {
    let marks = [
        (item.is_cancelled(), "cancelled"),
        (item.status == "TENTATIVE", "tentative"),
        (item.is_done, "done"),
    ];
    marks.into_iter().filter(|(so, _)| *so).map(|(_, mark)| mark).collect()
}

/// An item on a page of its own: each field with its values.
pub(crate) fn print_item_page(
    out: &mut OutputStream,
    reader: &Reader,
    asker: &UserLocale,
    head: &ItemMeta,
    bytes: &[u8],
) -> Result<(), CommandFailure> {
    let letters = reader.unique_prefix_len(head.handle)?;
    out.print_line(format!(
        "{STRONG_STYLE}{}{STRONG_STYLE:#}",
        crate::item_ids::name_from_bytes(bytes)
    ))?;
    let derived = if head.derived_uid {
        "  (made by larder: the card names none, or one that another item has)"
    } else {
        ""
    };
    let about = [
        ("id", format!("{:.letters$}", head.handle)),
        ("collection", sanitize_line(&head.collection)),
        ("uid", format!("{}{derived}", sanitize_line(&head.uid))),
    ];
    let (values, pictures) = match head.kind.collection_type() {
        CollectionType::Calendar => {
            (super::calendar_item::page_rows(reader, asker, head, bytes)?, Vec::new())
        }
        _ => contact_page_rows(bytes),
    };
    let labels = about.iter().chain(&values).chain(&pictures).map(|(label, _)| label.len());
    let width = labels.max().unwrap_or_default();
    let faint = |(label, value): &(&str, String)| {
        format!("{FAINT_STYLE}{label:<width$}  {value}{FAINT_STYLE:#}")
    };
    for row in &about {
        out.print_line(faint(row))?;
    }
    for (label, value) in &values {
        out.print_line(format!("{label:<width$}  {value}").trim_end())?;
    }
    for row in &pictures {
        out.print_line(faint(row))?;
    }
    Ok(())
}

/// A line of an item's page: a label, which is empty where the line belongs to the one above, and a
/// text.
pub(super) type PageRow = (&'static str, String);

/// How properties begin that a merge kept of other cards.
const LARDER_PROPERTY_PREFIX: &str = "X-LARDER-";

/// Adds the values of a field, of which each may have several lines.
pub(super) fn add_values(rows: &mut Vec<PageRow>, mut label: &'static str, values: Vec<String>) {
    for value in values {
        let mut lines = value.lines().map(sanitize_line);
        rows.push((std::mem::take(&mut label), lines.next().unwrap_or_default()));
        rows.extend(lines.map(|line| ("", line)));
    }
}

/// What there is to print of a card, and what only can be named.
fn contact_page_rows(bytes: &[u8]) -> (Vec<PageRow>, Vec<PageRow>) {
    let card = Contact::parse(bytes);
    let mut rows = Vec::new();
    for field in CONTACT_FIELDS.iter().filter(|field| is_shown_by_default(field)) {
        add_values(&mut rows, field.name, card.values(field));
    }
    let kept = card.properties().iter().filter_map(|property| {
        let name = property.name().get(..LARDER_PROPERTY_PREFIX.len())?;
        let of = property.name().get(LARDER_PROPERTY_PREFIX.len()..)?;
        let shown = ["FN", "BDAY"].iter().any(|shown| of.eq_ignore_ascii_case(shown));
        (name.eq_ignore_ascii_case(LARDER_PROPERTY_PREFIX) && !shown)
            .then(|| ("of_others", format!("{of} {}", sanitize_line(&property.text()))))
    });
    rows.extend(kept);
    let pictures = CONTACT_FIELDS
        .iter()
        .filter(|field| field.field_type == FieldType::Binary && card.first_value(field).is_some())
        .map(|field| (field.name, "(larder show --format raw prints it)".to_string()));
    (rows, pictures.collect())
}

/// The cells of a list's line, after the handle.
pub(crate) fn field_cells(of: &ProjectedItem<'_>, fields: &[&'static Field]) -> Vec<String> {
    fields.iter().map(|field| sanitize_line(&of.values(field).join(", "))).collect()
}

/// The cells of these columns.
pub(crate) fn column_cells(
    reader: &Reader,
    local: &Zone,
    head: &ItemMeta,
    of: &ProjectedItem<'_>,
    columns: &[OutputColumn],
) -> Result<Vec<String>, CommandFailure> {
    let fields: Vec<&Field> =
        columns.iter().filter_map(|column| column.field_for_kind(head.kind)).collect();
    let when = item_times(reader, head, local, &fields)?;
    let when = when.as_ref().map(|(_, of)| of);
    let cell = |column: &OutputColumn| {
        let Some(field) = column.field_for_kind(head.kind) else {
            let is_field = matches!(column, OutputColumn::Field { .. });
            return if is_field { String::new() } else { head.recurrence_id.clone() };
        };
        let written = of.values(field).into_iter().map(Cow::into_owned).collect();
        sanitize_line(&localize_values(field, written, when).join(", "))
    };
    Ok(columns.iter().map(cell).collect())
}

/// Bytes for standard output, with a line end where they have none, so that two cards never share a
/// line.
pub(crate) fn print_raw(
    out: &mut OutputStream,
    bytes: &[u8],
    last: bool,
) -> Result<(), CommandFailure> {
    out.print_bytes(bytes)?;
    if !last && !bytes.ends_with(b"\n") {
        out.print_bytes(b"\n")?;
    }
    Ok(())
}
