//! The fields of events, tasks and memos.
//!
//! Separate from the fields of contacts because some names mean something else here (`comment`,
//! `contact`). The numbers of both tables form one series. Times are given as written, because
//! their meaning depends on more than their text.

use super::FieldSource::{
    HasAlarm, IsAllDay, IsDone, ListProperties, Person, Position, Properties, Recurs,
};
use super::FieldType::{Binary, Flag, Text, Uid, Uri};
use super::{Field, field_row, find_field};

/// All fields of calendar components.
#[rustfmt::skip] // A table is read by its columns.
pub const CALENDAR_FIELDS: &[Field] = &[
    field_row(200, "uid", Uid, Properties(&["UID"]), "the identifier of the component").with_aliases(&["id"]),
    field_row(201, "summary", Text, Properties(&["SUMMARY"]), "the summary, in one line").with_aliases(&["title", "subject"]).searched_by_default(),
    field_row(202, "description", Text, Properties(&["DESCRIPTION"]), "the description").with_aliases(&["desc", "note", "notes"]).multi_valued().searched_by_default(),
    field_row(203, "location", Text, Properties(&["LOCATION"]), "the location").with_aliases(&["place"]).searched_by_default(),
    field_row(204, "comment", Text, Properties(&["COMMENT"]), "comments").multi_valued().searched_by_default(),
    field_row(205, "category", Text, ListProperties(&["CATEGORIES"]), "categories").with_aliases(&["categories", "category_list", "tag"]).multi_valued().searched_by_default(),
    field_row(206, "organizer", Text, Person(&["ORGANIZER"]), "the organizer: address and name").with_aliases(&["organiser"]).multi_valued().searched_by_default(),
    field_row(207, "attendee", Text, Person(&["ATTENDEE"]), "the attendees: addresses and names").with_aliases(&["attendees"]).multi_valued().searched_by_default(),
    field_row(208, "status", Text, Properties(&["STATUS"]), "TENTATIVE, CONFIRMED, NEEDS-ACTION, COMPLETED, CANCELLED and others"),
    field_row(209, "class", Text, Properties(&["CLASS"]), "PUBLIC, PRIVATE or CONFIDENTIAL").with_aliases(&["classification"]),
    field_row(210, "priority", Text, Properties(&["PRIORITY"]), "1, the highest, to 9; 0: none"),
    field_row(211, "url", Uri, Properties(&["URL"]), "a web page about the item").with_aliases(&["web"]),
    field_row(212, "contact", Text, Properties(&["CONTACT"]), "a person to contact about the event").with_aliases(&["contacts"]).multi_valued(),
    field_row(213, "resources", Text, ListProperties(&["RESOURCES"]), "the equipment or rooms needed").with_aliases(&["resource"]).multi_valued(),
    field_row(214, "transp", Text, Properties(&["TRANSP"]), "OPAQUE: the time is busy; TRANSPARENT: it is free").with_aliases(&["transparency"]).without_index(),
    field_row(215, "percent", Text, Properties(&["PERCENT-COMPLETE"]), "the progress of a task, in percent").with_aliases(&["percent_complete"]),
    field_row(216, "related", Text, Properties(&["RELATED-TO"]), "identifiers of related components").with_aliases(&["related_to"]).multi_valued(),
    field_row(217, "conference", Uri, Properties(&["CONFERENCE", "X-GOOGLE-CONFERENCE"]), "the address of a telephone or video conference").multi_valued(),
    field_row(218, "color", Text, Properties(&["COLOR"]), "the colour of the item").with_aliases(&["colour"]),
    field_row(219, "attach", Binary, Properties(&["ATTACH"]), "attachments or their URLs").with_aliases(&["attachment", "attachments"]).multi_valued().without_index(),
    field_row(220, "sequence", Text, Properties(&["SEQUENCE"]), "the revision number (SEQUENCE)").without_index(),
    field_row(221, "created", Text, Properties(&["CREATED", "DCREATED"]), "the time of creation, as written (CREATED)").without_index(),
    field_row(222, "modified", Text, Properties(&["LAST-MODIFIED"]), "the time of the last change, as written (LAST-MODIFIED)").with_aliases(&["last_modified"]).without_index(),
    field_row(223, "geo", Text, Position, "the geographic position: latitude,longitude"),
    field_row(224, "stamp", Text, Properties(&["DTSTAMP"]), "the time stamp of the revision, as written (DTSTAMP)").with_aliases(&["dtstamp"]).without_index(),
    field_row(225, "image", Binary, Properties(&["IMAGE"]), "pictures or their URLs").multi_valued().without_index(),

    field_row(226, "start", Text, Properties(&["DTSTART"]), "the start, as written (DTSTART)").with_aliases(&["dtstart"]).without_index(),
    field_row(227, "end", Text, Properties(&["DTEND"]), "the end, as written (DTEND)").with_aliases(&["dtend"]).without_index(),
    field_row(228, "due", Text, Properties(&["DUE"]), "the due time, as written (DUE)").without_index(),
    field_row(229, "rule", Text, Properties(&["RRULE"]), "the recurrence rule, as written (RRULE)").with_aliases(&["rrule"]).multi_valued().without_index(),
    field_row(230, "alarm", Flag, HasAlarm, "1: the item has an alarm").with_aliases(&["alarms"]),
    field_row(231, "recurring", Flag, Recurs, "1: the item recurs or is a changed occurrence").with_aliases(&["recurrences"]),
    field_row(232, "done", Flag, IsDone, "1: the task is completed").with_aliases(&["is_completed"]),
    field_row(233, "all_day", Flag, IsAllDay, "1: an all-day item"),
];

/// Returns the calendar field with this name or alias, in any case, with `-` for `_`.
#[must_use]
pub fn find_calendar_field(name: &str) -> Option<&'static Field> {
    find_field(CALENDAR_FIELDS, name)
}
