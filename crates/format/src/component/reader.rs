//! Takes the lines of a component and makes it of them.
//!
//! Components inside are closed by their END, or by that of one around them. It is apart so that what a component
//! is can be read without how it is found out.

use super::{Component, Defect, Kind, MAX_PROPERTIES, Part, Problem, Version};
use crate::line::{Line, lines};
use crate::properties::{Notes, Properties};
use crate::property::Property;

/// A component with more than these inside each other is refused.
const MAX_DEPTH: usize = 32;
/// Of these only the first counts, and the second is told.
const START: &str = "DTSTART";
/// Properties that hold times of either type.
const TIMES: &[&str] = &[START, "DTEND", "DUE", "RECURRENCE-ID", "EXDATE", "RDATE"];
/// A component that is cut off is an item if it has one of these.
const NEEDED: &[&str] = &["UID", START, "DUE", "TZID"];

pub(super) fn read(bytes: &[u8], version: Version) -> Component<'_> {
    let component = Component {
        kind: Kind::Other(String::new()),
        version,
        properties: Properties::with_room_for(bytes),
        parts: Vec::new(),
        problems: Vec::new(),
        refusal: None,
    };
    let mut reader = Reader {
        component,
        begun: false,
        ended: false,
        open: Vec::new(),
        count: 0,
        notes: Notes::new(bytes),
    };
    let mut lines = lines(bytes);
    for line in lines.by_ref() {
        if !reader.take(line) {
            break;
        }
    }
    reader.finish(lines.number().max(1))
}

struct Reader<'a> {
    component: Component<'a>,
    begun: bool,
    ended: bool,
    /// The parts that are open, the innermost last, by their places.
    open: Vec<usize>,
    /// Properties and parts so far.
    count: usize,
    notes: Notes,
}

impl<'a> Reader<'a> {
    /// Takes a line; false where no other is wanted.
    fn take(&mut self, line: Line<'a>) -> bool {
        let property = Property::parse(line);
        if !self.begun {
            return self.begin(&property);
        }
        if property.is("END") {
            return self.end(&property);
        }
        if !self.notes.look_at(&property) {
            return true;
        }
        self.count += 1;
        if self.count > MAX_PROPERTIES {
            return self.refuse(property.number(), Defect::TooLarge);
        }
        if property.is("BEGIN") {
            return self.begin_part(&property);
        }
        let innermost = self.open.last().and_then(|at| self.component.parts.get_mut(*at));
        match innermost {
            Some(part) => part.properties.push(property),
            None => self.component.properties.push(property),
        }
        true
    }

    fn begin(&mut self, property: &Property<'a>) -> bool {
        let name = self.name_in(property);
        if !property.is("BEGIN") || name.is_empty() {
            return self.refuse(property.number(), Defect::NotAComponent);
        }
        self.component.kind = Kind::of(&name);
        self.begun = true;
        true
    }

    /// The name that a BEGIN or an END has in its first line; empty where it has none. A fold behind it belongs to
    /// a line that was lost.
    fn name_in(&mut self, property: &Property<'a>) -> String {
        let line = property.raw().split(|byte| *byte == b'\n').next().unwrap_or_default();
        if line.len() + 1 < property.raw().len() {
            self.notes.note(property.number() + 1, Defect::NoColon);
        }
        let name = line.splitn(2, |byte| *byte == b':').nth(1).unwrap_or_default().trim_ascii();
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
        let name = if name.iter().all(is_name) { name } else { b"" };
        String::from_utf8_lossy(name).to_ascii_uppercase()
    }

    fn begin_part(&mut self, property: &Property<'a>) -> bool {
        if self.open.len() == MAX_DEPTH {
            return self.refuse(property.number(), Defect::TooDeep);
        }
        let part = Part {
            name: self.name_in(property),
            number: property.number(),
            last: u32::MAX,
            depth: self.open.len() + 1,
            properties: Properties::default(),
        };
        self.open.push(self.component.parts.len());
        self.component.parts.push(part);
        true
    }

    /// Ends the innermost component of this name, with what is inside it.
    fn end(&mut self, property: &Property<'a>) -> bool {
        let (name, parts) = (self.name_in(property), &self.component.parts);
        let same = |known: &str| name == known;
        let is_ended = |at: &usize| parts.get(*at).is_some_and(|part| same(&part.name));
        let inside = self.open.iter().rposition(is_ended);
        let whole = inside.is_none() && same(self.component.kind.name());
        let left = match inside {
            Some(at) => at,
            None if whole => 0,
            None => {
                self.notes.note(property.number(), Defect::EndOfNothing);
                return true;
            }
        };
        if self.open.len() > left + usize::from(!whole) {
            self.notes.note(property.number(), Defect::NoEndInside);
        }
        for (inner, at) in self.open.drain(left..).enumerate() {
            if let Some(part) = self.component.parts.get_mut(at) {
                part.last = property.number() - u32::from(whole || inner > 0);
            }
        }
        self.ended = whole;
        !whole
    }

    /// False, as no other line is wanted then.
    fn refuse(&mut self, line: u32, what: Defect) -> bool {
        self.component.refusal.get_or_insert(Problem { line, what });
        false
    }

    fn finish(mut self, last: u32) -> Component<'a> {
        if !self.begun {
            self.refuse(1, Defect::NotAComponent);
        }
        if self.component.refusal.is_none() {
            self.judge(last);
        }
        self.component.problems = self.notes.problems;
        self.component
    }

    fn judge(&mut self, last: u32) {
        let properties = &self.component.properties;
        let empty = |property: &Property<'_>| property.value().trim_ascii().is_empty();
        if self.component.parts.is_empty() && properties.all().iter().all(empty) {
            self.refuse(1, Defect::EmptyComponent);
            return;
        }
        if !self.ended {
            match properties.has(NEEDED) {
                true => self.notes.note(last, Defect::NoComponentEnd),
                false => {
                    self.refuse(last, Defect::NoComponentEnd);
                    return;
                }
            }
        }
        if let Some(line) = properties.second_uid() {
            self.notes.note(line, Defect::SecondUid);
        }
        if let Some(second) = properties.of_name(START).nth(1) {
            self.notes.note(second.number(), Defect::SecondStart);
        }
        let typed = properties.all().iter().filter(|property| property.has_params());
        for property in typed.filter(|property| TIMES.iter().any(|name| property.is(name))) {
            let is_date = property.single_param("VALUE");
            if is_date.is_some_and(|value| value.eq_ignore_ascii_case("DATE"))
                && property.value().iter().any(|byte| matches!(byte, b'T' | b't'))
            {
                self.notes.note(property.number(), Defect::TimeInDate);
            }
        }
    }
}
