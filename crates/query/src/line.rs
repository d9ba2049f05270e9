//! The search line: what people type.
//!
//! ```text
//! line   = terms that all have to match; "or" between terms needs one side only
//! term   = [ "-" | "not" ] ( "(" line ")" | field ":" value | "has:" field | word )
//! value  = text        the field contains it        "=" text   it is the whole value
//!          text "*"    the value begins with it     "*" text   the value ends with it
//! word   = a word, or a phrase in double quotes; \" and \\ stand for themselves inside
//! ```
//!
//! An empty line matches everything.

use crate::error::SyntaxError;
use crate::query::{Op, Query, Subject, Test};
use larder_format::field::{field, nearest};

/// How deep parentheses may nest.
const DEPTH: usize = 100;

/// A piece of the line.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Open,
    Close,
    /// A leading minus.
    Minus,
    /// A word as typed. `field`: what stood before its first colon.
    Word {
        field: Option<String>,
        op: Op,
        text: String,
        quoted: bool,
    },
}

impl Query {
    /// Reads a search line.
    ///
    /// # Errors
    /// Names what is wrong, where, and what to do: an unclosed quote, an unknown field, a parenthesis too
    /// few or too many.
    pub fn parse(line: &str) -> Result<Query, SyntaxError> {
        let tokens = tokens(line)?;
        let mut parser = Parser { line, tokens: &tokens, next: 0, depth: 0 };
        let query = parser.alternatives()?;
        match parser.peek() {
            None => Ok(query),
            Some((at, _)) => Err(SyntaxError::new(line, *at, "a \")\" that closes nothing")
                .hint("remove it, or quote the word that contains it")),
        }
    }
}

struct Parser<'a> {
    line: &'a str,
    tokens: &'a [(usize, Token)],
    next: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a (usize, Token)> {
        self.tokens.get(self.next)
    }

    /// Is the next token this bare word, in any case?
    fn keyword(&self, word: &str) -> bool {
        matches!(self.peek(), Some((_, Token::Word { field: None, op: Op::Contains, text, quoted: false }))
            if text.eq_ignore_ascii_case(word))
    }

    fn alternatives(&mut self) -> Result<Query, SyntaxError> {
        let mut any = vec![self.terms()?];
        while self.keyword("or") {
            let at = self.peek().map_or(0, |(at, _)| *at);
            self.next += 1;
            let side = self.terms()?;
            if side == Query::All || any.contains(&Query::All) {
                return Err(SyntaxError::new(self.line, at, "\"or\" needs a term on both sides")
                    .hint("to look for the word itself, quote it: \"or\""));
            }
            any.push(side);
        }
        Ok(if any.len() == 1 { any.swap_remove(0) } else { Query::Or(any) })
    }

    fn terms(&mut self) -> Result<Query, SyntaxError> {
        let mut all = Vec::new();
        while let Some((_, token)) = self.peek() {
            if *token == Token::Close || self.keyword("or") {
                break;
            }
            if self.keyword("and") {
                self.next += 1;
                continue;
            }
            all.push(self.term()?);
        }
        Ok(match all.len() {
            0 => Query::All,
            1 => all.swap_remove(0),
            _ => Query::And(all),
        })
    }

    fn term(&mut self) -> Result<Query, SyntaxError> {
        let negated = self.keyword("not") || matches!(self.peek(), Some((_, Token::Minus)));
        let Some((at, token)) = self.peek() else {
            return Err(SyntaxError::new(self.line, self.line.len(), "a term is missing"));
        };
        self.next += 1;
        if negated {
            if self.peek().is_none_or(|(_, token)| *token == Token::Close) {
                return Err(SyntaxError::new(self.line, *at, "nothing follows the negation")
                    .hint("put a term behind it, as in -anna or not anna"));
            }
            self.deeper(*at)?;
            let query = Query::Not(Box::new(self.term()?));
            self.depth -= 1;
            return Ok(query);
        }
        match token {
            Token::Open => {
                self.deeper(*at)?;
                let inner = self.alternatives()?;
                self.depth -= 1;
                match self.peek() {
                    Some((_, Token::Close)) => self.next += 1,
                    _ => {
                        return Err(SyntaxError::new(self.line, *at, "a \"(\" that is not closed")
                            .hint("add a \")\", or quote the word that contains it"));
                    }
                }
                Ok(inner)
            }
            Token::Word { field: None, text, .. } => Ok(Query::Word(text.clone())),
            Token::Word { field: Some(name), op, text, .. } => self.test(*at, name, *op, text),
            Token::Minus | Token::Close => {
                Err(SyntaxError::new(self.line, *at, "a \")\" that closes nothing"))
            }
        }
    }

    fn deeper(&mut self, at: usize) -> Result<(), SyntaxError> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(SyntaxError::new(self.line, at, "nested too deeply"));
        }
        Ok(())
    }

    fn test(&self, at: usize, name: &str, op: Op, text: &str) -> Result<Query, SyntaxError> {
        let (name, op, text) = match name.eq_ignore_ascii_case("has") {
            true => (text, Op::Exists, ""),
            false => (name, op, text),
        };
        let subject = if name.eq_ignore_ascii_case("any") {
            Subject::Any
        } else {
            Subject::Field(field(name).ok_or_else(|| self.unknown(at, name))?)
        };
        Ok(Query::Test(Test { subject, op, text: text.to_string() }))
    }

    fn unknown(&self, at: usize, name: &str) -> SyntaxError {
        let hint = match nearest(name) {
            Some(near) => format!("did you mean {near}:? \"larder fields\" lists them all"),
            None => "\"larder fields\" lists them all; quote a word that contains a colon".into(),
        };
        SyntaxError::new(self.line, at, format!("there is no field {name:?}")).hint(hint)
    }
}

/// Cuts the line into tokens, each with the byte it begins at.
fn tokens(line: &str) -> Result<Vec<(usize, Token)>, SyntaxError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = line[at..].chars().next() {
        match c {
            c if c.is_whitespace() => at += c.len_utf8(),
            '(' => {
                tokens.push((at, Token::Open));
                at += 1;
            }
            ')' => {
                tokens.push((at, Token::Close));
                at += 1;
            }
            '-' if line[at + 1..].chars().next().is_some_and(|c| !c.is_whitespace()) => {
                tokens.push((at, Token::Minus));
                at += 1;
            }
            _ => {
                let (token, end) = word(line, at)?;
                tokens.push((at, token));
                at = end;
            }
        }
    }
    Ok(tokens)
}

/// Reads `word`, `"phrase"`, `field:value` or `field:"phrase"` from byte `start` on.
fn word(line: &str, start: usize) -> Result<(Token, usize), SyntaxError> {
    let (name, mut at) = match field_name(&line[start..]) {
        Some(name) => (Some(name.to_string()), start + name.len() + 1),
        None => (None, start),
    };
    let mut op = Op::Contains;
    if name.is_some() {
        if line[at..].starts_with('=') {
            (op, at) = (Op::Is, at + 1);
        } else if line[at..].starts_with('*') {
            (op, at) = (Op::EndsWith, at + 1);
        }
    }
    let (mut text, quoted, mut end) = text(line, at)?;
    if name.is_some() && op == Op::Contains {
        if quoted && line[end..].starts_with('*') {
            (op, end) = (Op::BeginsWith, end + 1);
        } else if !quoted && text.len() > 1 && text.ends_with('*') {
            text.pop();
            op = Op::BeginsWith;
        }
    }
    Ok((Token::Word { field: name, op, text, quoted }, end))
}

/// A quoted phrase, or all up to white space or a parenthesis; where it ends.
fn text(line: &str, start: usize) -> Result<(String, bool, usize), SyntaxError> {
    let Some(inside) = line[start..].strip_prefix('"') else {
        let length = line[start..]
            .find(|c: char| c.is_whitespace() || c == '(' || c == ')')
            .unwrap_or(line.len() - start);
        return Ok((line[start..start + length].to_string(), false, start + length));
    };
    let mut text = String::new();
    let mut chars = inside.char_indices();
    while let Some((offset, c)) = chars.next() {
        match c {
            '"' => return Ok((text, true, start + 1 + offset + 1)),
            '\\' => match chars.next() {
                Some((_, c @ ('"' | '\\'))) => text.push(c),
                Some((_, c)) => text.extend(['\\', c]),
                None => break,
            },
            c => text.push(c),
        }
    }
    Err(SyntaxError::new(line, start, "a quote that is not closed")
        .hint("add a \" at the end of the phrase"))
}

/// The field's name, if the text begins with one and a colon. A URL is a word, not a field, and so is a
/// time of day.
fn field_name(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'))?;
    let (name, rest) = text.split_at(end);
    let is_field = rest.starts_with(':')
        && !rest.starts_with("://")
        && name.starts_with(|c: char| c.is_ascii_alphabetic());
    is_field.then_some(name)
}
