//! The S-expressions of evolution-data-server, as its clients send them.
//!
//! Names are case-sensitive, strings have C-like escapes, and text after the first expression is ignored.
//! Unknown functions are errors; a name that no field has is that of a property of the vCard, in any case.
//! `word` and `uids` are ours: a free word, and a set of UIDs. So is `calendar:` before the name of a field of events, tasks
//! and memos.

mod calendar;

use crate::compare::pattern;
use crate::error::SyntaxError;
use crate::query::{OF_CALENDAR, Op, Query, Settings, Subject, Test};
use larder_format::field::{calendar_field, eds_field};
use larder_format::phone::is_region;

/// How deep lists may nest: whatever a search line can nest, and each parenthesis of one may be two lists.
const DEPTH: usize = 256;
/// How many functions an expression may call, and how many UIDs it may name. Each call may be made for every
/// contact; UIDs are looked up all at once.
const CALLS: usize = 65_536;
const UIDS: usize = 1 << 18;
/// The functions of this module, for messages.
const KNOWN: &str = "and, or, not, contains, is, beginswith, endswith, exists, exists_vcard, eqphone, \
    eqphone_national, eqphone_short, regex_normal, regex_raw, includes, word, uids";

impl Query {
    /// Reads an S-expression. The empty text matches everything, and so does `#t`.
    ///
    /// # Errors
    /// Names what is wrong, and where: a function that does not exist, a pattern that cannot be compiled, an
    /// expression that nests too deeply or calls too much.
    pub fn parse_sexp(text: &str) -> Result<Query, SyntaxError> {
        Query::parse_sexp_with(text, &Settings::default())
    }

    /// Reads an S-expression, with settings.
    ///
    /// # Errors
    /// As [`Query::parse_sexp`].
    pub fn parse_sexp_with(text: &str, settings: &Settings) -> Result<Query, SyntaxError> {
        let mut reader = Reader { text, settings, at: 0, calls: 0, uids: 0 };
        reader.blanks();
        if reader.at == text.len() {
            return Ok(Query::All);
        }
        reader.query(0).map(calendar::with_window)
    }
}

struct Reader<'a> {
    text: &'a str,
    settings: &'a Settings,
    at: usize,
    calls: usize,
    uids: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    fn error(&self, at: usize, what: impl Into<String>) -> SyntaxError {
        SyntaxError::new(self.text, at, what)
    }

    fn query(&mut self, depth: usize) -> Result<Query, SyntaxError> {
        self.blanks();
        let start = self.at;
        if depth > DEPTH {
            return Err(self.error(start, "nested too deeply"));
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
            // The outermost call may stand without its parentheses: some of evolution-data-server's own do.
            let name = self.symbol();
            let mut known = KNOWN.split(", ").chain(calendar::KNOWN.split(", "));
            if depth > 0 || !known.any(|known| known == name) {
                return Err(self.error(start, "a \"(\" is missing"));
            }
            return self.call(name, start, depth);
        }
        self.at += 1;
        self.blanks();
        let name_at = self.at;
        let name = self.symbol();
        let query = self.call(name, name_at, depth)?;
        self.blanks();
        if !self.rest().starts_with(')') {
            return Err(self.error(start, "a \"(\" that is not closed"));
        }
        self.at += 1;
        Ok(query)
    }

    fn call(&mut self, name: &str, at: usize, depth: usize) -> Result<Query, SyntaxError> {
        self.calls += 1;
        if self.calls > CALLS {
            return Err(self.error(at, format!("more than {CALLS} functions in one query")));
        }
        // What nests is kept apart, so that little of the stack is needed for each level.
        match name {
            "and" => self.list(depth).map(Query::And),
            "or" => self.list(depth).map(Query::any),
            "not" => self.query(depth + 1).map(|query| Query::Not(Box::new(query))),
            _ => self.leaf(name, at),
        }
    }

    /// A call of a function that takes no others.
    fn leaf(&mut self, name: &str, at: usize) -> Result<Query, SyntaxError> {
        if let Some(query) = self.calendar(name, at)? {
            return Ok(query);
        }
        Ok(match name {
            "contains" => self.test(Op::Contains)?,
            "is" => self.test(Op::Is)?,
            "beginswith" => self.test(Op::BeginsWith)?,
            "endswith" => self.test(Op::EndsWith)?,
            "includes" => self.test(Op::Includes)?,
            "exists" => self.test(Op::Exists)?,
            "exists_vcard" => self.test(Op::ExistsVcard)?,
            "eqphone" => self.test(Op::EqPhone)?,
            "eqphone_national" => self.test(Op::EqPhoneNational)?,
            "eqphone_short" => self.test(Op::EqPhoneShort)?,
            "regex_normal" => self.test(Op::RegexNormal)?,
            "regex_raw" => self.test(Op::RegexRaw)?,
            "uids" => Query::uids(self.strings()?),
            "word" => Query::Word(self.string()?),
            _ => {
                let what = format!("there is no function {name:?}");
                return Err(self
                    .error(at, what)
                    .hint(format!("known here: {KNOWN}, {}", calendar::KNOWN)));
            }
        })
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Query>, SyntaxError> {
        let mut list = Vec::new();
        loop {
            self.blanks();
            if self.rest().is_empty() || self.rest().starts_with(')') {
                return Ok(list);
            }
            list.push(self.query(depth + 1)?);
        }
    }

    fn symbol(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || "_+-<=>?".contains(c)))
            .unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn test(&mut self, op: Op) -> Result<Query, SyntaxError> {
        let name = self.string()?;
        self.blanks();
        let at = self.at;
        let text = if op.is_presence() { String::new() } else { self.string()? };
        if op.is_pattern()
            && let Err(why) = pattern(&text)
        {
            return Err(self.error(at, format!("the pattern {text:?} cannot be used: {why}")));
        }
        self.blanks();
        // Only phone numbers have a use for it, but evolution-data-server takes it everywhere.
        let mut region = None;
        if !op.is_presence() && self.rest().starts_with('"') {
            region = Some(self.string()?).filter(|region| is_region(region));
        }
        let region =
            if op.is_phone() { region.or_else(|| self.settings.region.clone()) } else { None };
        let subject = match (name.as_str(), op) {
            (name, Op::ExistsVcard) => Subject::property(name),
            ("x-evolution-any-field", _) => Subject::Any,
            ("x-larder-no-field", _) => Subject::Nothing,
            ("book_uid", _) => Subject::property("X-EVOLUTION-BOOK-UID"),
            (name, _) => match name.strip_prefix(OF_CALENDAR) {
                Some(name) => calendar_field(name).map_or(Subject::Nothing, Subject::Field),
                None => eds_field(name).map_or_else(|| Subject::property(name), Subject::Field),
            },
        };
        if matches!((&subject, op), (Subject::Field(field), Op::Is) if field.name == "uid") {
            self.calls -= 1;
            self.count_uid(at)?;
        }
        Ok(Query::Test(Test { subject, op, text, region }))
    }

    fn count_uid(&mut self, at: usize) -> Result<(), SyntaxError> {
        self.uids += 1;
        if self.uids > UIDS {
            return Err(self.error(at, format!("more than {UIDS} UIDs in one query")));
        }
        Ok(())
    }

    fn strings(&mut self) -> Result<Vec<String>, SyntaxError> {
        let mut strings = Vec::new();
        loop {
            self.blanks();
            if !self.rest().starts_with('"') {
                return Ok(strings);
            }
            self.count_uid(self.at)?;
            strings.push(self.string()?);
        }
    }

    fn string(&mut self) -> Result<String, SyntaxError> {
        self.blanks();
        let start = self.at;
        let Some(inside) = self.rest().strip_prefix('"') else {
            return Err(self.error(start, "a string in double quotes is missing"));
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
        Err(self.error(start, "a string that is not closed"))
    }
}
