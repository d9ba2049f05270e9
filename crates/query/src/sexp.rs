//! The parser of the S-expressions that clients of evolution-data-server send.
//!
//! Names are case-sensitive, strings have C-like escapes, and text after the first expression is
//! ignored. Unknown functions are errors; a name that is not the name of a field is taken as the
//! name of a vCard property, which is not case-sensitive. Extensions are `word` (a bare word),
//! `uids` (a set of UIDs), and the name of another type of collection before the name of a field,
//! as in `calendar:summary`: contacts may have a field or property of the same name. Separate from
//! `search_line`, which parses the syntax of people.

mod calendar;

use crate::error::{SyntaxError, check_length};
use crate::pattern::{MAX_PATTERNS, RegexPattern};
use crate::query::{FieldSelector, FieldTest, MatchOp, Query, QueryContext};
use larder_format::collection_type::CollectionType;
use larder_format::field::find_eds_field;
use larder_format::phone::is_region;

/// The deepest nesting of lists: enough for any search line, where a parenthesis may become two
/// lists.
const MAX_SEXP_DEPTH: usize = 256;
/// The most function calls of an expression. Each may run for every contact.
const MAX_CALLS: usize = 65_536;
/// The most UIDs of an expression, which are looked up together.
const MAX_UIDS: usize = 1 << 18;
/// The functions of this module, for messages.
const KNOWN_FUNCTIONS: &str = "and, or, not, contains, is, beginswith, endswith, exists, exists_vcard, eqphone, \
    eqphone_national, eqphone_short, regex_normal, regex_raw, includes, word, uids";

impl Query {
    /// Parses an S-expression. The empty text and `#t` match every item.
    ///
    /// # Errors
    /// A text that is too long, an unknown function, a pattern that cannot be compiled, or an
    /// expression with too many calls or levels; with its position.
    pub fn parse_sexp(text: &str) -> Result<Query, SyntaxError> {
        Query::parse_sexp_with(text, &QueryContext::default())
    }

    /// Parses an S-expression in a context.
    ///
    /// # Errors
    /// As [`Query::parse_sexp`].
    pub fn parse_sexp_with(text: &str, context: &QueryContext) -> Result<Query, SyntaxError> {
        check_length(text)?;
        let mut reader = SexpParser { text, context, at: 0, calls: 0, uids: 0, patterns: 0 };
        reader.skip_whitespace();
        if reader.at == text.len() {
            return Ok(Query::All);
        }
        reader.parse_query(0).map(calendar::fill_occurrence_counts)
    }
}

struct SexpParser<'a> {
    text: &'a str,
    context: &'a QueryContext,
    at: usize,
    calls: usize,
    uids: usize,
    patterns: usize,
}

impl<'a> SexpParser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip_whitespace(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn error(&self, at: usize, message: impl Into<String>) -> SyntaxError {
        SyntaxError::new(self.text, at, message)
    }

    fn parse_query(&mut self, depth: usize) -> Result<Query, SyntaxError> {
        self.skip_whitespace();
        let start = self.at;
        if depth > MAX_SEXP_DEPTH {
            return Err(self.error(start, "the parentheses are nested too deeply"));
        }
        if self.rest().starts_with("#t") {
            self.at += 2;
            return Ok(Query::All);
        }
        if self.rest().starts_with("#f") {
            self.at += 2;
            return Ok(Query::Or(Vec::new()));
        }
        if !self.rest().starts_with('(') {
            // The parentheses of the outermost call are optional: some queries of
            // evolution-data-server lack them.
            let name = self.parse_symbol();
            let mut known =
                KNOWN_FUNCTIONS.split(", ").chain(calendar::KNOWN_FUNCTIONS.split(", "));
            if depth > 0 || !known.any(|known| known == name) {
                return Err(self.error(start, "a \"(\" is missing"));
            }
            return self.parse_call(name, start, depth);
        }
        self.at += 1;
        self.skip_whitespace();
        let name_at = self.at;
        let name = self.parse_symbol();
        let query = self.parse_call(name, name_at, depth)?;
        self.skip_whitespace();
        if !self.rest().starts_with(')') {
            return Err(self.error(start, "unclosed \"(\""));
        }
        self.at += 1;
        Ok(query)
    }

    fn parse_call(&mut self, name: &str, at: usize, depth: usize) -> Result<Query, SyntaxError> {
        self.calls += 1;
        if self.calls > MAX_CALLS {
            return Err(self.error(at, format!("more than {MAX_CALLS} functions in one query")));
        }
        // Nested calls are parsed in a function of their own, to use little stack per level.
        match name {
            "and" => self.parse_list(depth).map(Query::And),
            "or" => self.parse_list(depth).map(Query::from_alternatives),
            "not" => self.parse_query(depth + 1).map(|query| Query::Not(Box::new(query))),
            _ => self.parse_leaf_call(name, at),
        }
    }

    /// Parses a call of a function that takes no queries.
    fn parse_leaf_call(&mut self, name: &str, at: usize) -> Result<Query, SyntaxError> {
        if let Some(query) = self.parse_calendar_call(name, at)? {
            return Ok(query);
        }
        Ok(match name {
            "contains" => self.parse_test(MatchOp::ContainsWords)?,
            "is" => self.parse_test(MatchOp::Is)?,
            "beginswith" => self.parse_test(MatchOp::BeginsWith)?,
            "endswith" => self.parse_test(MatchOp::EndsWith)?,
            "includes" => self.parse_test(MatchOp::Substring)?,
            "exists" => self.parse_test(MatchOp::Exists)?,
            "exists_vcard" => self.parse_test(MatchOp::ExistsVcard)?,
            "eqphone" => self.parse_test(MatchOp::EqPhone)?,
            "eqphone_national" => self.parse_test(MatchOp::EqPhoneNational)?,
            "eqphone_short" => self.parse_test(MatchOp::EqPhoneShort)?,
            "regex_normal" => self.parse_test(MatchOp::RegexNormal)?,
            "regex_raw" => self.parse_test(MatchOp::RegexRaw)?,
            "uids" => Query::from_uids(self.parse_strings()?),
            "word" => Query::Word(self.parse_string()?),
            _ => {
                let message = format!("unknown function {name:?}");
                return Err(self.error(at, message).with_hint(format!(
                    "the functions are {KNOWN_FUNCTIONS}, {}",
                    calendar::KNOWN_FUNCTIONS
                )));
            }
        })
    }

    fn parse_list(&mut self, depth: usize) -> Result<Vec<Query>, SyntaxError> {
        let mut list = Vec::new();
        loop {
            self.skip_whitespace();
            if self.rest().is_empty() || self.rest().starts_with(')') {
                return Ok(list);
            }
            list.push(self.parse_query(depth + 1)?);
        }
    }

    fn parse_symbol(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || "_+-<=>?".contains(c)))
            .unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn parse_test(&mut self, op: MatchOp) -> Result<Query, SyntaxError> {
        let name = self.parse_string()?;
        self.skip_whitespace();
        let at = self.at;
        let text = if op.is_presence() { String::new() } else { self.parse_string()? };
        if op.is_pattern() {
            self.check_pattern(at, &text)?;
        }
        self.skip_whitespace();
        // Only phone numbers use a region, but evolution-data-server accepts it everywhere.
        let mut region = None;
        if !op.is_presence() && self.rest().starts_with('"') {
            region = Some(self.parse_string()?).filter(|region| is_region(region));
        }
        let region =
            if op.is_phone() { region.or_else(|| self.context.region.clone()) } else { None };
        let subject = match (name.as_str(), op) {
            (name, MatchOp::ExistsVcard) => FieldSelector::from_property_name(name),
            ("x-evolution-any-field", _) => FieldSelector::Any,
            ("x-larder-no-field", _) => FieldSelector::Nothing,
            ("book_uid", _) => FieldSelector::from_property_name("X-EVOLUTION-BOOK-UID"),
            (name, _) => match parse_type_prefix(name) {
                Some((collection_type, name)) => collection_type
                    .find_field(name)
                    .map_or(FieldSelector::Nothing, FieldSelector::Field),
                None => find_eds_field(name)
                    .map_or_else(|| FieldSelector::from_property_name(name), FieldSelector::Field),
            },
        };
        if matches!((&subject, op), (FieldSelector::Field(field), MatchOp::Is) if field.name == "uid")
        {
            self.calls -= 1;
            self.count_uid(at)?;
        }
        Ok(Query::from_test(FieldTest { subject, op, text, region }))
    }

    /// Refuses a regular expression that cannot be used.
    fn check_pattern(&mut self, at: usize, text: &str) -> Result<(), SyntaxError> {
        self.patterns += 1;
        if self.patterns > MAX_PATTERNS {
            let message = format!("more than {MAX_PATTERNS} regular expressions in one query");
            return Err(self.error(at, message));
        }
        RegexPattern::compile(text).map(drop).map_err(|reason| {
            self.error(at, format!("the regular expression {text:?} cannot be used: {reason}"))
        })
    }

    fn count_uid(&mut self, at: usize) -> Result<(), SyntaxError> {
        self.uids += 1;
        if self.uids > MAX_UIDS {
            return Err(self.error(at, format!("more than {MAX_UIDS} UIDs in one query")));
        }
        Ok(())
    }

    fn parse_strings(&mut self) -> Result<Vec<String>, SyntaxError> {
        let mut strings = Vec::new();
        loop {
            self.skip_whitespace();
            if !self.rest().starts_with('"') {
                return Ok(strings);
            }
            self.count_uid(self.at)?;
            strings.push(self.parse_string()?);
        }
    }

    fn parse_string(&mut self) -> Result<String, SyntaxError> {
        self.skip_whitespace();
        let start = self.at;
        let Some(inside) = self.rest().strip_prefix('"') else {
            return Err(self.error(start, "expected a string in double quotes"));
        };
        let mut string = String::new();
        let mut chars = inside.char_indices();
        while let Some((offset, c)) = chars.next() {
            match c {
                '"' => {
                    self.at = start + 1 + offset + 1;
                    return Ok(string);
                }
                '\\' => match chars.next() {
                    Some((_, 'n')) => string.push('\n'),
                    Some((_, 'r')) => string.push('\r'),
                    Some((_, 't')) => string.push('\t'),
                    Some((_, 'b')) => string.push('\u{8}'),
                    Some((_, 'f')) => string.push('\u{c}'),
                    Some((_, c)) => string.push(c),
                    None => break,
                },
                c => string.push(c),
            }
        }
        Err(self.error(start, "unclosed string"))
    }
}

/// Splits the name of a field with the name of another type of collection before it.
fn parse_type_prefix(name: &str) -> Option<(CollectionType, &str)> {
    let (prefix, name) = name.split_once(':')?;
    let collection_type = CollectionType::from_name(prefix)?;
    (collection_type != CollectionType::default()).then_some((collection_type, name))
}
