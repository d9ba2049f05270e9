use super::item::{Row, add};
use crate::failure::Failure;
use crate::output::plain;
use larder_format::component::Component;
use larder_format::field::{CALENDAR_FIELDS, Field, Kind};
use larder_format::property::Property;
use larder_query::when::{self, When};
use larder_query::{Asker, describe};
use larder_store::{ItemHead, Kind as ItemKind, Reader, ZoneUse};
use larder_time::zone::How;
use serde_json::{Value, json};

/// Fields that are told in other words, or that only programs need.
const TOLD: &[&str] = &[
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

/// Fields that name a moment of UTC.
const MOMENTS: &[&str] = &["created", "modified"];
/// Of a longer list of exceptions so many are shown.
const LISTED: usize = 10;

/// What there is to print of an event, a task or a memo.
pub(super) fn rows(
    reader: &Reader,
    asker: &Asker,
    head: &ItemHead,
    bytes: &[u8],
) -> Result<Vec<Row>, Failure> {
    let component = reader.component(head, bytes);
    let times = when::times_of(reader, head.row)?;
    let mut rows = Vec::new();
    if let Some(when) = times.as_ref().and_then(|times| When::first(times, &asker.local)) {
        let due = head.kind == ItemKind::Task && component.named("DUE").next().is_some();
        if !due || component.named("DTSTART").next().is_some() {
            rows.push(("when", when.words(&asker.language)));
        }
        if due {
            rows.push(("due", when.due_words(&asker.language)));
        }
    }
    let rule = |rule: &str| plain(&describe::rule(rule, &asker.local, &asker.language));
    add(&mut rows, "repeats", component.timed("RRULE").map(|timed| rule(&timed.text)).collect());
    if !head.recurrence.is_empty() {
        let instead = instead_of(reader, asker, head, &component)?;
        rows.push(("instead of", plain(&instead)));
    }
    let except = component.timed("EXDATE").flat_map(|timed| {
        let one = |text: &str| plain(&describe::stamp(text, &asker.local, &asker.language));
        timed.text.split(',').map(one).collect::<Vec<_>>()
    });
    let mut except: Vec<String> = except.collect();
    let left = except.len().saturating_sub(LISTED);
    except.truncate(LISTED);
    if left > 0 {
        except.push(format!("... and {left} more"));
    }
    add(&mut rows, "except", except);
    let zones = zones(reader, head, &component)?;
    add(&mut rows, "time zone", zones.iter().map(describe::zone).collect());
    let shown = |field: &&Field| field.kind != Kind::Binary && !TOLD.contains(&field.name);
    for field in CALENDAR_FIELDS.iter().filter(shown) {
        match field.kind {
            Kind::Flag if component.first(field).is_some() => rows.push((field.name, "yes".into())),
            Kind::Flag => {}
            _ if MOMENTS.contains(&field.name) => {
                let shown = |text: &String| describe::stamp(text, &asker.local, &asker.language);
                add(&mut rows, field.name, component.values(field).iter().map(shown).collect());
            }
            _ => add(&mut rows, field.name, component.values(field)),
        }
    }
    for (label, name) in [("organizer", "ORGANIZER"), ("attendees", "ATTENDEE")] {
        add(&mut rows, label, component.named(name).map(person).collect());
    }
    let alarms = times.iter().flat_map(|times| times.alarms());
    let alarms =
        alarms.map(|alarm| describe::alarm(alarm, head.kind, &asker.local, &asker.language));
    add(&mut rows, "alarms", alarms.collect());
    Ok(rows)
}

/// Which occurrence it stands for, by the clock of who asks.
fn instead_of(
    reader: &Reader,
    asker: &Asker,
    head: &ItemHead,
    component: &Component<'_>,
) -> Result<String, Failure> {
    let frame = head.frame.map(|row| reader.frame(row)).transpose()?.flatten().unwrap_or_default();
    let moment = reader.deriver().moment(component, &frame, "RECURRENCE-ID", &asker.local);
    let stamp = match moment.filter(|_| head.recurrence.contains('T')) {
        Some(moment) => format!("{}Z", moment.civil(0)),
        None => head.recurrence.clone(),
    };
    Ok(describe::stamp(&stamp, &asker.local, &asker.language))
}

/// Which zones its names of zones mean.
fn zones(
    reader: &Reader,
    head: &ItemHead,
    component: &Component<'_>,
) -> Result<Vec<ZoneUse>, Failure> {
    let frame = head.frame.map(|row| reader.frame(row)).transpose()?.flatten().unwrap_or_default();
    Ok(reader.deriver().zone_uses(component, &frame))
}

/// The same as JSON: the name, the zone of the system that is used, if one is, and whether the file says something else.
pub(super) fn zones_json(
    reader: &Reader,
    head: &ItemHead,
    bytes: &[u8],
) -> Result<Vec<Value>, Failure> {
    let zones = zones(reader, head, &reader.component(head, bytes))?;
    let object = |of: &ZoneUse| {
        let used = if of.how == How::Floating {
            "none"
        } else if of.system.is_some() {
            "system"
        } else {
            "file"
        };
        json!({ "tzid": of.tzid, "used": used, "system": of.system, "differs": of.differs })
    };
    Ok(zones.iter().map(object).collect())
}

/// Somebody who takes part: `Anna Berg <anna@example.org>, accepted`.
fn person(property: &Property<'_>) -> String {
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
    let said = param("PARTSTAT").filter(|said| !said.eq_ignore_ascii_case("NEEDS-ACTION"));
    let role = param("ROLE").and_then(|role| match role.to_ascii_uppercase().as_str() {
        "CHAIR" => Some("chair"),
        "OPT-PARTICIPANT" => Some("optional"),
        "NON-PARTICIPANT" => Some("for information"),
        _ => None,
    });
    for word in said.map(|said| said.to_lowercase()).into_iter().chain(role.map(String::from)) {
        person.push_str(&format!(", {word}"));
    }
    person
}
