//! The parser that builds a component from its content lines.
//!
//! A subcomponent is closed by its END or by the END of a component around it. Separate from the
//! types of a component, so that these can be read without the parser.

use super::{
    CalendarVersion, Component, ComponentKind, MAX_PROPERTIES_PER_ITEM, Problem, ProblemKind,
    Subcomponent,
};
use crate::content_line::{ContentLine, content_lines};
use crate::properties::{ProblemCollector, PropertyList};
use crate::property::Property;

/// A component nested deeper than this is refused.
const MAX_NESTING_DEPTH: usize = 32;
/// Only the first one counts; a second one is a problem.
const START_PROPERTY: &str = "DTSTART";
/// Properties whose value is a DATE or a DATE-TIME.
const TIME_PROPERTIES: &[&str] =
    &[START_PROPERTY, "DTEND", "DUE", "RECURRENCE-ID", "EXDATE", "RDATE"];
/// A component without END is an item if it has one of these.
const IDENTIFYING_PROPERTIES: &[&str] = &["UID", START_PROPERTY, "DUE", "TZID"];

pub(super) fn parse(bytes: &[u8], version: CalendarVersion) -> Component<'_> {
    let component = Component {
        kind: ComponentKind::Other(String::new()),
        version,
        properties: PropertyList::with_capacity_for(bytes),
        subcomponents: Vec::new(),
        problems: Vec::new(),
        fatal_problem: None,
    };
    let mut reader = ComponentReader {
        component,
        has_begun: false,
        has_ended: false,
        open: Vec::new(),
        property_count: 0,
        problem_collector: ProblemCollector::new(bytes),
    };
    let mut lines = content_lines(bytes);
    for line in lines.by_ref() {
        if !reader.read_line(line) {
            break;
        }
    }
    reader.finish(lines.line_number().max(1))
}

struct ComponentReader<'a> {
    component: Component<'a>,
    has_begun: bool,
    has_ended: bool,
    /// Positions of the open subcomponents, the innermost last.
    open: Vec<usize>,
    /// The number of properties and subcomponents read.
    property_count: usize,
    problem_collector: ProblemCollector,
}

impl<'a> ComponentReader<'a> {
    /// Reads a line. Returns false when no further line is wanted.
    fn read_line(&mut self, line: ContentLine<'a>) -> bool {
        let property = Property::parse(line);
        if !self.has_begun {
            return self.read_first_line(&property);
        }
        if property.has_name("END") {
            return self.end_component(&property);
        }
        if !self.problem_collector.check_property(&property) {
            return true;
        }
        self.property_count += 1;
        if self.property_count > MAX_PROPERTIES_PER_ITEM {
            return self.set_fatal_problem(
                property.line_number(),
                ProblemKind::TooManyComponentProperties,
            );
        }
        if property.has_name("BEGIN") {
            return self.begin_subcomponent(&property);
        }
        let innermost = self.open.last().and_then(|at| self.component.subcomponents.get_mut(*at));
        match innermost {
            Some(part) => part.properties.push(property),
            None => self.component.properties.push(property),
        }
        true
    }

    fn read_first_line(&mut self, property: &Property<'a>) -> bool {
        let name = self.read_name(property);
        if !property.has_name("BEGIN") || name.is_empty() {
            return self.set_fatal_problem(property.line_number(), ProblemKind::NotAComponent);
        }
        self.component.kind = ComponentKind::from_name(&name);
        self.has_begun = true;
        true
    }

    /// Returns the component name in the first physical line of a BEGIN or END, or an empty text. A
    /// fold after it belongs to a line that was lost.
    fn read_name(&mut self, property: &Property<'a>) -> String {
        let line = property.raw().split(|byte| *byte == b'\n').next().unwrap_or_default();
        if line.len() + 1 < property.raw().len() {
            self.problem_collector
                .add_problem(property.line_number() + 1, ProblemKind::MissingColon);
        }
        let name = line.splitn(2, |byte| *byte == b':').nth(1).unwrap_or_default().trim_ascii();
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
        let name = if name.iter().all(is_name) { name } else { b"" };
        String::from_utf8_lossy(name).to_ascii_uppercase()
    }

    fn begin_subcomponent(&mut self, property: &Property<'a>) -> bool {
        if self.open.len() == MAX_NESTING_DEPTH {
            return self.set_fatal_problem(property.line_number(), ProblemKind::NestedTooDeep);
        }
        let part = Subcomponent {
            name: self.read_name(property),
            first_line: property.line_number(),
            last_line: u32::MAX,
            depth: self.open.len() + 1,
            properties: PropertyList::default(),
        };
        self.open.push(self.component.subcomponents.len());
        self.component.subcomponents.push(part);
        true
    }

    /// Closes the innermost component of this name and everything inside it.
    fn end_component(&mut self, property: &Property<'a>) -> bool {
        let (name, parts) = (self.read_name(property), &self.component.subcomponents);
        let same = |known: &str| name == known;
        let is_ended = |at: &usize| parts.get(*at).is_some_and(|part| same(&part.name));
        let inside = self.open.iter().rposition(is_ended);
        let whole = inside.is_none() && same(self.component.kind.name());
        let left = match inside {
            Some(at) => at,
            None if whole => 0,
            None => {
                self.problem_collector
                    .add_problem(property.line_number(), ProblemKind::EndWithoutBegin);
                return true;
            }
        };
        if self.open.len() > left + usize::from(!whole) {
            self.problem_collector
                .add_problem(property.line_number(), ProblemKind::UnclosedSubcomponent);
        }
        for (inner, at) in self.open.drain(left..).enumerate() {
            if let Some(part) = self.component.subcomponents.get_mut(at) {
                part.last_line = property.line_number() - u32::from(whole || inner > 0);
            }
        }
        self.has_ended = whole;
        !whole
    }

    /// Returns false, because no further line is wanted.
    fn set_fatal_problem(&mut self, line: u32, what: ProblemKind) -> bool {
        self.component.fatal_problem.get_or_insert(Problem { line, kind: what });
        false
    }

    fn finish(mut self, last: u32) -> Component<'a> {
        if !self.has_begun {
            self.set_fatal_problem(1, ProblemKind::NotAComponent);
        }
        if self.component.fatal_problem.is_none() {
            self.validate(last);
        }
        self.component.problems = self.problem_collector.problems;
        self.component
    }

    fn validate(&mut self, last: u32) {
        let properties = &self.component.properties;
        let empty = |property: &Property<'_>| property.value().trim_ascii().is_empty();
        if self.component.subcomponents.is_empty() && properties.as_slice().iter().all(empty) {
            self.set_fatal_problem(1, ProblemKind::EmptyComponent);
            return;
        }
        if !self.has_ended {
            match properties.has_value(IDENTIFYING_PROPERTIES) {
                true => self.problem_collector.add_problem(last, ProblemKind::MissingComponentEnd),
                false => {
                    self.set_fatal_problem(last, ProblemKind::MissingComponentEnd);
                    return;
                }
            }
        }
        if let Some(line) = properties.second_uid_line() {
            self.problem_collector.add_problem(line, ProblemKind::SecondUid);
        }
        if let Some(second) = properties.iter_named(START_PROPERTY).nth(1) {
            self.problem_collector.add_problem(second.line_number(), ProblemKind::SecondDtstart);
        }
        let typed = properties.as_slice().iter().filter(|property| property.has_params());
        for property in
            typed.filter(|property| TIME_PROPERTIES.iter().any(|name| property.has_name(name)))
        {
            let is_date = property.single_param("VALUE");
            if is_date.is_some_and(|value| value.eq_ignore_ascii_case("DATE"))
                && property.value().iter().any(|byte| matches!(byte, b'T' | b't'))
            {
                self.problem_collector.add_problem(property.line_number(), ProblemKind::TimeInDate);
            }
        }
    }
}
