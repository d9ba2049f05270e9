//! Formats of items: cells of a list, JSON objects, source bytes.

use crate::failure::CommandFailure;
use crate::output::sanitize_line;
use larder_format::collection_type::COLLECTION_TYPES;
use larder_format::field::{Field, FieldType};
use larder_present::local_time;
use larder_query::local_time::{LocalItemTimes, read_item_times};
use larder_query::{AgendaEntry, ItemSummary, ProjectedItem};
use larder_store::{CollectionType, ItemMeta, Kind as ItemKind, Reader};
use larder_time::zone::Zone;
use serde_json::{Map, Value, json};
use std::borrow::Cow;

/// A column of `--fields`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OutputColumn {
    /// The field of this name, by type of collection.
    Field([Option<&'static Field>; COLLECTION_TYPES.len()]),
    /// The RECURRENCE-ID of an override.
    RecurrenceId,
    /// The RECURRENCE-ID of an occurrence.
    Occurrence,
}

impl OutputColumn {
    /// Returns the column with this name.
    pub(crate) fn from_name(name: &str) -> Option<OutputColumn> {
        match name.to_ascii_lowercase().as_str() {
            "recurrence_id" => return Some(OutputColumn::RecurrenceId),
            "occurrence" => return Some(OutputColumn::Occurrence),
            _ => {}
        }
        let fields = std::array::from_fn(|index| {
            let collection_type = COLLECTION_TYPES[index].collection_type;
            collection_type.find_field(name).filter(|_| collection_type.is_listed())
        });
        fields.iter().any(Option::is_some).then_some(OutputColumn::Field(fields))
    }

    /// Returns the field for items of this kind.
    fn field_for_kind(&self, kind: ItemKind) -> Option<&'static Field> {
        match self {
            OutputColumn::Field(fields) => fields[kind.collection_type().index()],
            OutputColumn::RecurrenceId | OutputColumn::Occurrence => None,
        }
    }

    /// Returns the fields of these columns.
    pub(crate) fn fields_of_columns(columns: &[OutputColumn]) -> Vec<&'static Field> {
        let column_fields = |column: &OutputColumn| match column {
            OutputColumn::Field(fields) => *fields,
            OutputColumn::RecurrenceId | OutputColumn::Occurrence => Default::default(),
        };
        columns.iter().flat_map(column_fields).flatten().collect()
    }

    /// Returns the values of an item in each column, as its source has them.
    pub(crate) fn item_values(
        columns: &[OutputColumn],
        meta: &ItemMeta,
        item: &ProjectedItem<'_>,
    ) -> Vec<Vec<String>> {
        let values = |field| item.values(field).into_iter().map(Cow::into_owned).collect();
        columns
            .iter()
            .map(|column| column.field_for_kind(meta.kind).map_or_else(Vec::new, values))
            .collect()
    }

    /// Returns the values of an occurrence; `written` are those of its item.
    fn occurrence_values(&self, entry: &AgendaEntry, written: Vec<String>) -> Vec<String> {
        let text = match self {
            OutputColumn::RecurrenceId => entry.item.meta.recurrence_id.clone(),
            OutputColumn::Occurrence => entry.recurrence_id(),
            OutputColumn::Field(_) => {
                let field = self.field_for_kind(entry.item.meta.kind);
                return field.map_or_else(Vec::new, |field| {
                    localize_occurrence_values(field, written, entry)
                });
            }
        };
        if text.is_empty() { Vec::new() } else { vec![text] }
    }
}

/// Returns whether a field is a time, which is printed in the user's zone and not as written.
fn is_time_field(field: &Field) -> bool {
    matches!(field.name, "start" | "end" | "due")
        && CollectionType::from_field(field).has_schedules()
}

/// Returns the times of an item if one of these fields needs them.
fn item_times(
    reader: &Reader,
    meta: &ItemMeta,
    local: &Zone,
    fields: &[&'static Field],
) -> Result<Option<LocalItemTimes>, CommandFailure> {
    if !meta.kind.has_schedule() || !fields.iter().any(|field| is_time_field(field)) {
        return Ok(None);
    }
    Ok(read_item_times(reader, meta, local)?)
}

/// Replaces the written values of a time field by the local time.
fn localize_values(
    field: &Field,
    written: Vec<String>,
    times: Option<&LocalItemTimes>,
) -> Vec<String> {
    let Some(times) = times.filter(|_| is_time_field(field)) else { return written };
    let local = match field.name {
        "start" => times.start.as_ref().map(local_time::format_start),
        "end" => Some(local_time::format_end(&times.first)),
        _ => times.due.as_ref().map(local_time::format_due),
    };
    local.map_or(written, |local| vec![local])
}

/// Replaces the written values of a time field by the local time of an occurrence.
fn localize_occurrence_values(
    field: &Field,
    written: Vec<String>,
    entry: &AgendaEntry,
) -> Vec<String> {
    let when = &entry.local_time;
    match field.name {
        _ if !is_time_field(field) => written,
        "start" => vec![local_time::format_start(when)],
        "end" => vec![local_time::format_end(when)],
        _ if entry.item.has_due => vec![local_time::format_due(when)],
        _ => written,
    }
}

/// Returns an item of any kind as a JSON object with all its fields; docs/output.md documents it.
pub(crate) fn item_json(
    reader: &Reader,
    local: &Zone,
    meta: &ItemMeta,
    bytes: &[u8],
) -> Result<Value, CommandFailure> {
    let source = reader.items().parse_source(meta, bytes);
    let fields = meta.kind.fields().iter().filter(|field| {
        field.field_type != FieldType::Binary && field.name != "uid" && is_in_json_by_default(field)
    });
    let fields: Vec<&Field> = fields.collect();
    let when = item_times(reader, meta, local, &fields)?;
    let mut object = item_json_head(meta);
    for field in fields {
        let values = localize_values(field, source.values(field), when.as_ref());
        insert_field(&mut object, field, values);
    }
    if let Some(zone) = when.and_then(|times| times.zone) {
        object.insert("zone".into(), json!(zone));
    }
    Ok(Value::Object(object))
}

/// Returns an item as a JSON object with these fields.
pub(crate) fn item_columns_json(
    reader: &Reader,
    local: &Zone,
    meta: &ItemMeta,
    item: &ProjectedItem<'_>,
    columns: &[OutputColumn],
) -> Result<Value, CommandFailure> {
    let fields = columns.iter().filter_map(|column| column.field_for_kind(meta.kind));
    let fields: Vec<&Field> = fields.filter(|field| field.name != "uid").collect();
    let when = item_times(reader, meta, local, &fields)?;
    let mut object = item_json_head(meta);
    for field in fields {
        let written = item.values(field).into_iter().map(Cow::into_owned).collect();
        let values = localize_values(field, written, when.as_ref());
        insert_field(&mut object, field, values);
    }
    Ok(Value::Object(object))
}

/// Inserts the values of a field into an object. A state is always true or false.
fn insert_field(object: &mut Map<String, Value>, field: &Field, mut values: Vec<String>) {
    let name = field.name.to_string();
    match (field.is_multi_valued, values.is_empty()) {
        _ if field.is_state() => {
            object.insert(name, json!(!values.is_empty()));
        }
        (_, true) => {}
        (true, _) => drop(object.insert(name, json!(values))),
        (false, _) => drop(object.insert(name, json!(values.swap_remove(0)))),
    }
}

/// Returns the first keys of every item's object.
fn item_json_head(meta: &ItemMeta) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert("id".into(), json!(meta.handle.to_string()));
    object.insert("kind".into(), json!(meta.kind.name()));
    object.insert("collection".into(), json!(*meta.collection));
    object.insert("uid".into(), json!(meta.uid));
    if !meta.recurrence_id.is_empty() {
        object.insert("recurrence_id".into(), json!(meta.recurrence_id));
    }
    object.insert("seq".into(), json!(meta.seq));
    object
}

/// Returns whether JSON has the field by default. Programs want parts of names and typed values
/// separately, so only numbered e-mail addresses are left out.
fn is_in_json_by_default(field: &Field) -> bool {
    !field.name.ends_with(|c: char| c.is_ascii_digit())
}

/// Returns an occurrence, or an alarm of one, as a JSON object; docs/output.md documents it.
pub(crate) fn occurrence_json(entry: &AgendaEntry, local: &Zone) -> Value {
    let (item, when) = (&entry.item, &entry.local_time);
    let mut object = item_json_head(&item.meta);
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
    if item.meta.kind.has_due_time() {
        set("done", json!(item.is_done));
    }
    if let Some((at, _)) = entry.occurrence.alarm {
        set("alarm", json!(local_time::format_instant(at, local)));
    }
    Value::Object(object)
}

/// Returns the cells of an occurrence; `written` are the values of its item.
pub(crate) fn occurrence_cells(
    entry: &AgendaEntry,
    columns: &[OutputColumn],
    written: Vec<Vec<String>>,
) -> Vec<String> {
    let cells = columns.iter().zip(written);
    cells
        .map(|(column, written)| {
            sanitize_line(&column.occurrence_values(entry, written).join(", "))
        })
        .collect()
}

/// Returns an occurrence as a JSON object with these columns.
pub(crate) fn occurrence_columns_json(
    entry: &AgendaEntry,
    columns: &[OutputColumn],
    written: Vec<Vec<String>>,
) -> Value {
    let mut object = item_json_head(&entry.item.meta);
    object.insert("occurrence".into(), json!(entry.recurrence_id()));
    for (column, written) in columns.iter().zip(written) {
        let field = column.field_for_kind(entry.item.meta.kind).filter(|field| field.name != "uid");
        if let Some(field) = field {
            insert_field(&mut object, field, column.occurrence_values(entry, written));
        }
    }
    Value::Object(object)
}

/// Returns the first line of a location: addresses have several lines.
pub(crate) fn first_location_line(location: &str) -> String {
    location.lines().next().map(sanitize_line).unwrap_or_default()
}

/// Returns the marks after a title: cancelled, tentative, done.
pub(crate) fn status_marks(item: &ItemSummary) -> Vec<&'static str> {
    let marks = [
        (item.is_cancelled(), "cancelled"),
        (item.status == "TENTATIVE", "tentative"),
        (item.is_done, "done"),
    ];
    marks.into_iter().filter(|(so, _)| *so).map(|(_, mark)| mark).collect()
}

/// Returns the cells of a line, after the ID.
pub(crate) fn field_cells(item: &ProjectedItem<'_>, fields: &[&'static Field]) -> Vec<String> {
    fields.iter().map(|field| sanitize_line(&labelled_values(item, field).join(", "))).collect()
}

/// Returns the values of a field with their labels. A number always has its label, other values
/// only where labels tell several of them apart.
fn labelled_values(item: &ProjectedItem<'_>, field: &'static Field) -> Vec<String> {
    let values = item.values(field);
    let labels = match label_field(field) {
        Some(labels) if field.field_type == FieldType::Phone || values.len() > 1 => {
            item.values(labels)
        }
        _ => Vec::new(),
    };
    let labels = if labels.len() == values.len() { labels } else { Vec::new() };
    let label = |place: usize| labels.get(place).filter(|label| *label != "-");
    let labelled = values.iter().enumerate().map(|(place, value)| match label(place) {
        Some(label) => with_label(value, label),
        None => value.to_string(),
    });
    labelled.collect()
}

/// Returns the field with the labels of the values of a field.
pub(crate) fn label_field(field: &Field) -> Option<&'static Field> {
    CollectionType::from_field(field).find_field(field.label_field?)
}

/// Formats a value with its label: `+43 664 1234567 (mobile)`.
pub(crate) fn with_label(value: &str, label: &str) -> String {
    format!("{value} ({label})")
}

/// Returns the cells of these columns.
pub(crate) fn column_cells(
    reader: &Reader,
    local: &Zone,
    meta: &ItemMeta,
    item: &ProjectedItem<'_>,
    columns: &[OutputColumn],
) -> Result<Vec<String>, CommandFailure> {
    let fields: Vec<&Field> =
        columns.iter().filter_map(|column| column.field_for_kind(meta.kind)).collect();
    let when = item_times(reader, meta, local, &fields)?;
    let when = when.as_ref();
    let cell = |column: &OutputColumn| {
        let Some(field) = column.field_for_kind(meta.kind) else {
            let is_field = matches!(column, OutputColumn::Field(_));
            return if is_field { String::new() } else { meta.recurrence_id.clone() };
        };
        let written = item.values(field).into_iter().map(Cow::into_owned).collect();
        sanitize_line(&localize_values(field, written, when).join(", "))
    };
    Ok(columns.iter().map(cell).collect())
}
