//! The fields of events, tasks and memos: the table for components of calendars.
//!
//! It is apart from that of contacts, since a name may mean something else here (`comment`, `contact`). The
//! numbers of both are of one series. Times are given as they are written: what they mean takes more than their text.

use super::Kind::{Binary, Flag, Text, Uid, Uri};
use super::Source::{HasAlarm, IsAllDay, IsDone, ListOf, Of, Person, Position, Recurs};
use super::{Field, in_table, row};

/// All fields of components of calendars.
#[rustfmt::skip] // A table is read by its columns.
pub const CALENDAR_FIELDS: &[Field] = &[
    row(200, "uid", Uid, Of(&["UID"]), "the component's identifier").alias(&["id"]),
    row(201, "summary", Text, Of(&["SUMMARY"]), "what it is about, in a line").alias(&["title", "subject"]).words(),
    row(202, "description", Text, Of(&["DESCRIPTION"]), "what it is about, at length").alias(&["desc", "note", "notes"]).multi().words(),
    row(203, "location", Text, Of(&["LOCATION"]), "where it is").alias(&["place"]).words(),
    row(204, "comment", Text, Of(&["COMMENT"]), "comments").multi().words(),
    row(205, "category", Text, ListOf(&["CATEGORIES"]), "categories").alias(&["categories", "category_list", "tag"]).multi().words(),
    row(206, "organizer", Text, Person(&["ORGANIZER"]), "who invites: address and name").alias(&["organiser"]).multi().words(),
    row(207, "attendee", Text, Person(&["ATTENDEE"]), "who takes part: addresses and names").alias(&["attendees"]).multi().words(),
    row(208, "status", Text, Of(&["STATUS"]), "TENTATIVE, CONFIRMED, NEEDS-ACTION, COMPLETED, CANCELLED and others"),
    row(209, "class", Text, Of(&["CLASS"]), "PUBLIC, PRIVATE or CONFIDENTIAL").alias(&["classification"]),
    row(210, "priority", Text, Of(&["PRIORITY"]), "1, the highest, to 9; 0: none"),
    row(211, "url", Uri, Of(&["URL"]), "a web page about it").alias(&["web"]),
    row(212, "contact", Text, Of(&["CONTACT"]), "whom to ask").alias(&["contacts"]).multi(),
    row(213, "resources", Text, ListOf(&["RESOURCES"]), "what is needed for it").alias(&["resource"]).multi(),
    row(214, "transp", Text, Of(&["TRANSP"]), "OPAQUE: the time is busy; TRANSPARENT: it is free").alias(&["transparency"]).unindexed(),
    row(215, "percent", Text, Of(&["PERCENT-COMPLETE"]), "how much of a task is done, of 100").alias(&["percent_complete"]),
    row(216, "related", Text, Of(&["RELATED-TO"]), "identifiers of related components").alias(&["related_to"]).multi(),
    row(217, "conference", Uri, Of(&["CONFERENCE", "X-GOOGLE-CONFERENCE"]), "where to talk by telephone or video").multi(),
    row(218, "color", Text, Of(&["COLOR"]), "the colour that it is shown in").alias(&["colour"]),
    row(219, "attach", Binary, Of(&["ATTACH"]), "attachments, or where they are").alias(&["attachment", "attachments"]).multi().unindexed(),
    row(220, "sequence", Text, Of(&["SEQUENCE"]), "how often it was rescheduled").unindexed(),
    row(221, "created", Text, Of(&["CREATED", "DCREATED"]), "when it was made, as it says").unindexed(),
    row(222, "modified", Text, Of(&["LAST-MODIFIED"]), "when it was last changed, as it says").alias(&["last_modified"]).unindexed(),
    row(223, "geo", Text, Position, "where on earth: latitude,longitude"),
    row(224, "stamp", Text, Of(&["DTSTAMP"]), "when it was sent, as it says").alias(&["dtstamp"]).unindexed(),
    row(225, "image", Binary, Of(&["IMAGE"]), "pictures, or where they are").multi().unindexed(),

    row(226, "start", Text, Of(&["DTSTART"]), "when it begins, as it says").alias(&["dtstart"]).unindexed(),
    row(227, "end", Text, Of(&["DTEND"]), "when it ends, as it says").alias(&["dtend"]).unindexed(),
    row(228, "due", Text, Of(&["DUE"]), "until when it is to be done, as it says").unindexed(),
    row(229, "rule", Text, Of(&["RRULE"]), "how it recurs, as it says").alias(&["rrule"]).multi().unindexed(),
    row(230, "alarm", Flag, HasAlarm, "1: it has an alarm").alias(&["alarms"]),
    row(231, "recurring", Flag, Recurs, "1: it recurs, or stands for an occurrence of what does").alias(&["recurrences"]),
    row(232, "done", Flag, IsDone, "1: it has been completed").alias(&["is_completed"]),
    row(233, "all_day", Flag, IsAllDay, "1: it is of whole days"),
];

/// The field of components that has this name, or this other name: in any case, and with `-` for `_`.
#[must_use]
pub fn calendar_field(name: &str) -> Option<&'static Field> {
    in_table(CALENDAR_FIELDS, name)
}
