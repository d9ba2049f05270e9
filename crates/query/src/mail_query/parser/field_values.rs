//! The values of the fields that have a set of their own: hashes, dates, sizes, flags, priorities.
//!
//! Separate from the rest of the parser, which knows the structure of a line: here a value is read
//! or refused, and the error says which values there are.

use super::MailQueryParser;
use crate::error::SyntaxError;
use crate::mail_query::MailFlag;
use crate::mail_query::commit::parse_hash_start;
use crate::mail_query::ranges::{parse_size_range, parse_time_range};
use crate::mail_query::tokens::field_names;
use crate::misspelling::{nearest_flag, nearest_name};
use larder_format::collection_type::find_any_field;
use larder_format::message::MessagePriority;
use std::ops::RangeInclusive;

/// Names of fields in other programs, and how Larder has them.
const OTHER_NAMES: &[(&[&str], &str)] = &[
    (&["after", "since", "newer", "newer_than"], "dates are date:2026-03-01.. or date:2w.."),
    (&["before", "until", "older", "older_than"], "dates are date:..2026-03-01 or date:..2w"),
    (&["larger", "smaller", "bigger"], "sizes are size:1M.. or size:..10k"),
    (&["has", "filename"], "attachments are flag:attach or file:report.pdf"),
    (&["source", "collection", "account"], "the mail of one source is in:NAME"),
    (&["kind"], "for one kind of item: --kind NAME"),
];

impl MailQueryParser<'_> {
    pub(super) fn parse_hash(&self, at: usize, value: &str) -> Result<String, SyntaxError> {
        parse_hash_start(value).ok_or_else(|| {
            SyntaxError::new(self.line, at, format!("{value:?} is not the beginning of a hash"))
                .with_hint("a hash has the digits 0 to 9 and the letters a to f")
        })
    }

    pub(super) fn parse_times(
        &self,
        at: usize,
        value: &str,
    ) -> Result<RangeInclusive<i64>, SyntaxError> {
        parse_time_range(value, self.context).ok_or_else(|| {
            SyntaxError::new(self.line, at, format!("unknown date {value:?}")).with_hint(
                "dates are 2016, 2016-03-01, today, 2w or @1456790400; ranges 2015..2016",
            )
        })
    }

    pub(super) fn parse_sizes(
        &self,
        at: usize,
        value: &str,
    ) -> Result<RangeInclusive<u64>, SyntaxError> {
        parse_size_range(value).ok_or_else(|| {
            SyntaxError::new(self.line, at, format!("unknown size {value:?}"))
                .with_hint("sizes are size:10k..2m, size:1m.. or size:500")
        })
    }

    pub(super) fn parse_flag(&self, at: usize, value: &str) -> Result<MailFlag, SyntaxError> {
        let letter =
            |known: char| value.len() == 1 && value.eq_ignore_ascii_case(&known.to_string());
        let by_letter = MailFlag::ALL.iter().find(|(_, _, known)| letter(*known));
        by_letter.map(|(flag, ..)| *flag).or_else(|| MailFlag::from_name(value)).ok_or_else(|| {
            let names: Vec<&str> = MailFlag::ALL.iter().map(|(_, name, _)| *name).collect();
            self.unknown_name(at, "flag", value, nearest_flag(value, &names), &names)
        })
    }

    pub(super) fn parse_priority(
        &self,
        at: usize,
        value: &str,
    ) -> Result<MessagePriority, SyntaxError> {
        let is_named = |name: &str| {
            let first = name.get(..1).unwrap_or_default();
            value.eq_ignore_ascii_case(name) || value.eq_ignore_ascii_case(first)
        };
        let known = MessagePriority::ALL.iter().find(|(_, name)| is_named(name));
        known.map(|(priority, _)| *priority).ok_or_else(|| {
            let names: Vec<&str> = MessagePriority::ALL.iter().map(|(_, name)| *name).collect();
            self.unknown_name(at, "priority", value, nearest_name(value, &names), &names)
        })
    }

    pub(super) fn unknown_field(&self, at: usize, name: &str) -> SyntaxError {
        let quote = "to look for the text itself, quote it with its colon";
        let name_lower = name.to_ascii_lowercase();
        let is_other = |names: &&(&[&str], &str)| names.0.contains(&name_lower.as_str());
        let hint = if let Some((_, hint)) = OTHER_NAMES.iter().find(is_other) {
            format!("{hint}; {quote}")
        } else if let Some(field) = find_any_field(name) {
            format!(
                "{} is a field of other kinds, which {}s do not have; {quote}",
                field.name,
                self.context.kind.name()
            )
        } else if name_lower.starts_with("x-") {
            format!("headers are searched as header:{name_lower}:TEXT; {quote}")
        } else {
            let names: Vec<&str> =
                field_names(self.fields()).filter(|known| known.len() > 1).collect();
            match nearest_name(name, &names) {
                Some(near) => format!("did you mean {near}:? {quote}"),
                None => format!("`larder fields` lists the fields; {quote}"),
            }
        };
        SyntaxError::new(self.line, at, format!("unknown field {name:?}")).with_hint(hint)
    }

    pub(super) fn unknown_name(
        &self,
        at: usize,
        kind: &str,
        value: &str,
        near: Option<&str>,
        names: &[&str],
    ) -> SyntaxError {
        let hint = match near {
            Some(name) => format!("did you mean {name}?"),
            None => format!("one of {}", names.join(", ")),
        };
        SyntaxError::new(self.line, at, format!("unknown {kind} {value:?}")).with_hint(hint)
    }
}
