//! The page of an event, a task or a memo in `larder show`.

use super::{PageRow, add_values};
use crate::failure::CommandFailure;
use crate::output::sanitize_line;
use crate::time_display;
use larder_edit::event::{ItemTimes, read_item_times};
use larder_format::component::{Component, TimeProperty};
use larder_format::field::{CALENDAR_FIELDS, Field, FieldType};
use larder_format::property::Property;
use larder_present::{description, local_time};
use larder_query::UserLocale;
use larder_query::local_time::{LocalTimeSpan, read_schedule};
use larder_store::{CalendarContext, ItemMeta, Kind as ItemKind, Reader, ZoneUse};
use larder_time::series::{CalendarDateTime, ZoneReference};
use larder_time::zone::ZoneMatch;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Arc;

/// Fields that have rows of their own, or that only programs need.
const SEPARATELY_SHOWN_FIELDS: &[&str] = &[
    "uid",
    "summary",
    "start",
    "end",
    "due",
    "rule",
    "alarm",
    "recurring",
    "all_day",
    "organizer",
    "attendee",
    "sequence",
    "stamp",
    "color",
];

/// Fields whose value is an instant in UTC.
const UTC_TIME_FIELDS: &[&str] = &["created", "modified"];
/// The maximum number of exceptions to show.
const MAX_LISTED_EXCEPTIONS: usize = 10;

/// Returns the rows of an event, a task or a memo.
pub(super) fn page_rows(
    reader: &Reader,
    user_locale: &UserLocale,
    meta: &ItemMeta,
    bytes: &[u8],
) -> Result<Vec<PageRow>, CommandFailure> {
    let component = reader.items().parse_component(meta, bytes);
    let times = read_schedule(reader, meta.row)?;
    let mut rows = Vec::new();
    if let Some(when) = times
        .as_ref()
        .and_then(|times| LocalTimeSpan::from_first_occurrence(times, &user_locale.zone))
    {
        let due = meta.kind == ItemKind::Task && component.properties_named("DUE").next().is_some();
        if !due || component.properties_named("DTSTART").next().is_some() {
            rows.push(("when", local_time::describe_span(&when, &user_locale.language)));
        }
        if due {
            rows.push(("due", local_time::describe_due(&when, &user_locale.language)));
        }
    }
    let ItemTimes { start, end } = read_item_times(reader, meta)?;
    let own_time = start.as_ref().or(end.as_ref());
    let rule = |rule: &str| {
        sanitize_line(&time_display::format_rule_with_zone(rule, own_time, user_locale))
    };
    add_values(
        &mut rows,
        "recurrence",
        component.time_properties("RRULE").map(|timed| rule(&timed.text)).collect(),
    );
    if !meta.recurrence_id.is_empty() {
        let replaced = recurrence_id_text(reader, user_locale, meta, &component)?;
        rows.push(("replaces", sanitize_line(&replaced)));
    }
    let calendar_context = read_calendar_context(reader, meta)?;
    let exceptions = component.time_properties("EXDATE").flat_map(|mut timed| {
        // Taken out, as each time gets a copy of the property.
        let texts = std::mem::take(&mut timed.text);
        let one = |text: &str| {
            let one = TimeProperty { text: Cow::Borrowed(text.trim()), ..timed.clone() };
            sanitize_line(&exception_text(reader, user_locale, &calendar_context, &one))
        };
        texts.split(',').map(one).collect::<Vec<_>>()
    });
    let mut exceptions: Vec<String> = exceptions.collect();
    let more = exceptions.len().saturating_sub(MAX_LISTED_EXCEPTIONS);
    exceptions.truncate(MAX_LISTED_EXCEPTIONS);
    if more > 0 {
        exceptions.push(format!("... and {more} more"));
    }
    add_values(&mut rows, "exceptions", exceptions);
    let zones = zone_uses(reader, meta, &component)?;
    add_values(&mut rows, "time zone", zones.iter().map(description::describe_zone).collect());
    let shown = |field: &&Field| {
        field.field_type != FieldType::Binary && !SEPARATELY_SHOWN_FIELDS.contains(&field.name)
    };
    for field in CALENDAR_FIELDS.iter().filter(shown) {
        match field.field_type {
            FieldType::Flag if component.first_value(field).is_some() => {
                rows.push((field.name, "yes".into()));
            }
            FieldType::Flag => {}
            _ if UTC_TIME_FIELDS.contains(&field.name) => {
                let shown = |text: &String| {
                    description::describe_stamp(text, &user_locale.zone, &user_locale.language)
                };
                add_values(
                    &mut rows,
                    field.name,
                    component.values(field).iter().map(shown).collect(),
                );
            }
            _ => add_values(&mut rows, field.name, component.values(field)),
        }
    }
    for (label, name) in [("organizer", "ORGANIZER"), ("attendees", "ATTENDEE")] {
        add_values(
            &mut rows,
            label,
            component.properties_named(name).map(participant_text).collect(),
        );
    }
    let alarms = times.iter().flat_map(|times| times.alarms());
    let alarms = alarms.map(|alarm| {
        description::describe_alarm(alarm, meta.kind, &user_locale.zone, &user_locale.language)
    });
    add_values(&mut rows, "alarms", alarms.collect());
    Ok(rows)
}

/// Returns the calendar context of an item.
fn read_calendar_context(
    reader: &Reader,
    meta: &ItemMeta,
) -> Result<Arc<CalendarContext>, CommandFailure> {
    let context = meta.calendar_context.map(|row| reader.items().calendar_context(row));
    Ok(context.transpose()?.flatten().unwrap_or_default())
}

/// Returns the time of one exception, in the user's zone.
fn exception_text(
    reader: &Reader,
    user_locale: &UserLocale,
    calendar_context: &CalendarContext,
    exception: &TimeProperty<'_>,
) -> String {
    let time = reader.extractor().resolve_date_time(exception, calendar_context);
    let stamp = match time.filter(|time| !time.is_date) {
        Some(CalendarDateTime { civil, zone_reference: ZoneReference::Zone(zone), .. }) => {
            format!("{}Z", zone.to_instant(civil).to_civil(0))
        }
        _ => exception.text.to_string(),
    };
    description::describe_stamp(&stamp, &user_locale.zone, &user_locale.language)
}

/// Returns the occurrence that an override replaces, in the user's zone.
fn recurrence_id_text(
    reader: &Reader,
    user_locale: &UserLocale,
    meta: &ItemMeta,
    component: &Component<'_>,
) -> Result<String, CommandFailure> {
    let calendar_context = read_calendar_context(reader, meta)?;
    let moment = reader.extractor().resolve_instant(
        component,
        &calendar_context,
        "RECURRENCE-ID",
        &user_locale.zone,
    );
    let stamp = match moment.filter(|_| meta.recurrence_id.contains('T')) {
        Some(moment) => format!("{}Z", moment.to_civil(0)),
        None => meta.recurrence_id.clone(),
    };
    Ok(description::describe_stamp(&stamp, &user_locale.zone, &user_locale.language))
}

/// Returns the time zones that the item uses, and how each was resolved.
fn zone_uses(
    reader: &Reader,
    meta: &ItemMeta,
    component: &Component<'_>,
) -> Result<Vec<ZoneUse>, CommandFailure> {
    let calendar_context = read_calendar_context(reader, meta)?;
    Ok(reader.extractor().zone_uses(component, &calendar_context))
}

/// Returns the zones as JSON: the name in the file, the system's zone that is used, and whether the
/// file's definition differs.
pub(super) fn zone_uses_json(
    reader: &Reader,
    meta: &ItemMeta,
    bytes: &[u8],
) -> Result<Vec<Value>, CommandFailure> {
    let zones = zone_uses(reader, meta, &reader.items().parse_component(meta, bytes))?;
    let object = |zone: &ZoneUse| {
        let used = if zone.zone_match == ZoneMatch::Floating {
            "none"
        } else if zone.system_zone.is_some() {
            "system"
        } else {
            "file"
        };
        json!({ "tzid": zone.tzid, "used": used, "system": zone.system_zone, "differs": zone.definition_differs })
    };
    Ok(zones.iter().map(object).collect())
}

/// Formats an attendee: `Anna Berg <anna@example.org>, accepted`.
fn participant_text(property: &Property<'_>) -> String {
    let text = property.text();
    let address = text.trim();
    let address = match address.split_at_checked(7) {
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("mailto:") => rest,
        _ => address,
    };
    let param = |name: &str| property.param(name).map(|value| value.trim().to_string());
    let mut person = match param("CN").filter(|name| !name.is_empty() && name != address) {
        Some(name) => format!("{name} <{address}>"),
        None => address.to_string(),
    };
    let status = param("PARTSTAT").filter(|status| !status.eq_ignore_ascii_case("NEEDS-ACTION"));
    let role = param("ROLE").and_then(|role| match role.to_ascii_uppercase().as_str() {
        "CHAIR" => Some("chair"),
        "OPT-PARTICIPANT" => Some("optional"),
        "NON-PARTICIPANT" => Some("for information"),
        _ => None,
    });
    for word in status.map(|status| status.to_lowercase()).into_iter().chain(role.map(String::from))
    {
        person.push_str(&format!(", {word}"));
    }
    person
}
