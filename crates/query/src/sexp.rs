//! The S-expressions of evolution-data-server, as its clients send them.
//!
//! Names are case-sensitive, strings have C-like escapes, and text after the first expression is ignored.
//! Unknown functions are errors; unknown field names match nothing.

use crate::error::SyntaxError;
use crate::query::{Op, Query, Subject, Test};
use larder_format::field::FIELDS;

/// How deep lists may nest: whatever a search line can nest, and each parenthesis of one may be two lists.
const DEPTH: usize = 256;
/// The functions of this module, for messages.
const KNOWN: &str = "and, or, not, contains, is, beginswith, endswith, exists, word";

impl Query {
    /// Reads an S-expression. The empty text matches everything, and so does `#t`.
    ///
    /// # Errors
    /// Names what is wrong, and where.
    pub fn parse_sexp(text: &str) -> Result<Query, SyntaxError> {
        let mut reader = Reader { text, at: 0 };
        reader.blanks();
        if reader.at == text.len() {
            return Ok(Query::All);
        }
        reader.query(0)
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
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
            return Err(self.error(start, "a \"(\" is missing"));
        }
        self.at += 1;
        self.blanks();
        let name_at = self.at;
        let name = self.symbol();
        let query = match name {
            "and" => Query::And(self.list(depth)?),
            "or" => Query::Or(self.list(depth)?),
            "not" => Query::Not(Box::new(self.query(depth + 1)?)),
            "contains" => self.test(Op::Contains)?,
            "is" => self.test(Op::Is)?,
            "beginswith" => self.test(Op::BeginsWith)?,
            "endswith" => self.test(Op::EndsWith)?,
            "exists" => self.test(Op::Exists)?,
            "word" => Query::Word(self.string()?),
            _ => {
                let what = format!("there is no function {name:?}");
                return Err(self.error(name_at, what).hint(format!("known here: {KNOWN}")));
            }
        };
        self.blanks();
        if !self.rest().starts_with(')') {
            return Err(self.error(start, "a \"(\" that is not closed"));
        }
        self.at += 1;
        Ok(query)
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
        let text = if op == Op::Exists { String::new() } else { self.string()? };
        let subject = match name.as_str() {
            "x-evolution-any-field" => Subject::Any,
            name => FIELDS
                .iter()
                .find(|field| field.name == name || field.aliases.contains(&name))
                .map_or(Subject::Nothing, Subject::Field),
        };
        Ok(Query::Test(Test { subject, op, text }))
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
                    Some((_, c)) => string.push(c),
                    None => break,
                },
                c => string.push(c),
            }
        }
        Err(self.error(start, "a string that is not closed"))
    }
}
