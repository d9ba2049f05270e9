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
    field_row(200, "uid", Uid, Properties(&["UID"]), "the component's identifier").with_aliases(&["id"]),
    field_row(201, "summary", Text, Properties(&["SUMMARY"]), "what it is about, in a line").with_aliases(&["title", "subject"]).searched_by_default(),
    field_row(202, "description", Text, Properties(&["DESCRIPTION"]), "what it is about, at length").with_aliases(&["desc", "note", "notes"]).multi_valued().searched_by_default(),
    field_row(203, "location", Text, Properties(&["LOCATION"]), "where it is").with_aliases(&["place"]).searched_by_default(),
    field_row(204, "comment", Text, Properties(&["COMMENT"]), "comments").multi_valued().searched_by_default(),
    field_row(205, "category", Text, ListProperties(&["CATEGORIES"]), "categories").with_aliases(&["categories", "category_list", "tag"]).multi_valued().searched_by_default(),
    field_row(206, "organizer", Text, Person(&["ORGANIZER"]), "who invites: address and name").with_aliases(&["organiser"]).multi_valued().searched_by_default(),
    field_row(207, "attendee", Text, Person(&["ATTENDEE"]), "who takes part: addresses and names").with_aliases(&["attendees"]).multi_valued().searched_by_default(),
    field_row(208, "status", Text, Properties(&["STATUS"]), "TENTATIVE, CONFIRMED, NEEDS-ACTION, COMPLETED, CANCELLED and others"),
    field_row(209, "class", Text, Properties(&["CLASS"]), "PUBLIC, PRIVATE or CONFIDENTIAL").with_aliases(&["classification"]),
    field_row(210, "priority", Text, Properties(&["PRIORITY"]), "1, the highest, to 9; 0: none"),
    field_row(211, "url", Uri, Properties(&["URL"]), "a web page about it").with_aliases(&["web"]),
    field_row(212, "contact", Text, Properties(&["CONTACT"]), "whom to ask").with_aliases(&["contacts"]).multi_valued(),
    field_row(213, "resources", Text, ListProperties(&["RESOURCES"]), "what is needed for it").with_aliases(&["resource"]).multi_valued(),
    field_row(214, "transp", Text, Properties(&["TRANSP"]), "OPAQUE: the time is busy; TRANSPARENT: it is free").with_aliases(&["transparency"]).without_index(),
    field_row(215, "percent", Text, Properties(&["PERCENT-COMPLETE"]), "how much of a task is done, of 100").with_aliases(&["percent_complete"]),
    field_row(216, "related", Text, Properties(&["RELATED-TO"]), "identifiers of related components").with_aliases(&["related_to"]).multi_valued(),
    field_row(217, "conference", Uri, Properties(&["CONFERENCE", "X-GOOGLE-CONFERENCE"]), "where to talk by telephone or video").multi_valued(),
    field_row(218, "color", Text, Properties(&["COLOR"]), "the colour that it is shown in").with_aliases(&["colour"]),
    field_row(219, "attach", Binary, Properties(&["ATTACH"]), "attachments, or where they are").with_aliases(&["attachment", "attachments"]).multi_valued().without_index(),
    field_row(220, "sequence", Text, Properties(&["SEQUENCE"]), "how often it was rescheduled").without_index(),
    field_row(221, "created", Text, Properties(&["CREATED", "DCREATED"]), "when it was made, as it says").without_index(),
    field_row(222, "modified", Text, Properties(&["LAST-MODIFIED"]), "when it was last changed, as it says").with_aliases(&["last_modified"]).without_index(),
    field_row(223, "geo", Text, Position, "where on earth: latitude,longitude"),
    field_row(224, "stamp", Text, Properties(&["DTSTAMP"]), "when it was sent, as it says").with_aliases(&["dtstamp"]).without_index(),
    field_row(225, "image", Binary, Properties(&["IMAGE"]), "pictures, or where they are").multi_valued().without_index(),

    field_row(226, "start", Text, Properties(&["DTSTART"]), "when it begins, as it says").with_aliases(&["dtstart"]).without_index(),
    field_row(227, "end", Text, Properties(&["DTEND"]), "when it ends, as it says").with_aliases(&["dtend"]).without_index(),
    field_row(228, "due", Text, Properties(&["DUE"]), "until when it is to be done, as it says").without_index(),
    field_row(229, "rule", Text, Properties(&["RRULE"]), "how it recurs, as it says").with_aliases(&["rrule"]).multi_valued().without_index(),
    field_row(230, "alarm", Flag, HasAlarm, "1: it has an alarm").with_aliases(&["alarms"]),
    field_row(231, "recurring", Flag, Recurs, "1: it recurs, or stands for an occurrence of what does").with_aliases(&["recurrences"]),
    field_row(232, "done", Flag, IsDone, "1: it has been completed").with_aliases(&["is_completed"]),
    field_row(233, "all_day", Flag, IsAllDay, "1: it is of whole days"),
];

/// Returns the calendar field with this name or alias, in any case, with `-` for `_`.
#[must_use]
pub fn find_calendar_field(name: &str) -> Option<&'static Field> {
    find_field(CALENDAR_FIELDS, name)
}
