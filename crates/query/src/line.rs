//! The search line: what people type.
//!
//! ```text
//! line   = terms that all have to match; "or" between terms needs one side only
//! term   = [ "-" | "not" ] ( "(" line ")" | field ":" value | "uid:" uid "," uid ... | "has:" field | word )
//! value  = text        the field contains it        "=" text   it is the whole value
//!          text "*"    the value begins with it     "*" text   the value ends with it
//!          nothing     the field is there           "~" text   the folded value matches the pattern
//! field  = a row of the table, or a property of the vCard that begins with "X-"
//! word   = a word, or a phrase in double quotes; \" and \\ stand for themselves inside
//! ```
//!
//! Terms about time, `when:today..+7d` and its like, are in `calendar`. An empty line matches everything. What can be a whole phone number, as a word or as (part of) the value of a
//! phone field, is also compared as one, as `eqphone_national` does.

mod calendar;

use crate::compare::{pattern, phone_digits};
use crate::error::SyntaxError;
use crate::query::{Op, Query, Settings, Subject, Test};
use larder_format::field::{Field, Kind, calendar_field, field, nearest};
use larder_format::phone::looks_like_number;

/// How deep parentheses may nest.
const DEPTH: usize = 100;
/// How many words, parentheses and signs a line may have.
const TERMS: usize = 16_384;
/// Fewer digits than this are no whole phone number.
const WHOLE_NUMBER: usize = 7;

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
    /// few or too many, a pattern that cannot be compiled.
    pub fn parse(line: &str) -> Result<Query, SyntaxError> {
        Query::parse_with(line, &Settings::default())
    }

    /// Reads a search line, with settings.
    ///
    /// # Errors
    /// As [`Query::parse`].
    pub fn parse_with(line: &str, settings: &Settings) -> Result<Query, SyntaxError> {
        let tokens = tokens(line)?;
        if let Some((at, _)) = tokens.get(TERMS) {
            return Err(SyntaxError::new(line, *at, format!("more than {TERMS} words")));
        }
        let mut parser = Parser { line, settings, tokens: &tokens, next: 0, depth: 0 };
        if let Some(number) = parser.number_with_parentheses() {
            return Ok(number);
        }
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
    settings: &'a Settings,
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
        Ok(if any.len() == 1 { any.swap_remove(0) } else { Query::any(any) })
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
            match self.number_in_words() {
                Some((number, words)) => {
                    self.next += words;
                    all.push(number);
                }
                None => all.push(self.term()?),
            }
        }
        Ok(match all.len() {
            0 => Query::All,
            1 => all.swap_remove(0),
            _ => Query::And(all),
        })
    }

    /// Bare words that follow one another and are a whole phone number together, `0664 123 45 67`: each of
    /// them, or that number. And how many words they are.
    fn number_in_words(&self) -> Option<(Query, usize)> {
        let digits = |(_, token): &'a (usize, Token)| match token {
            Token::Word { field: None, op: Op::Contains, text, quoted: false }
                if text.contains(char::is_numeric) && looks_like_number(text) =>
            {
                Some(text.as_str())
            }
            _ => None,
        };
        let words: Vec<&str> = self.tokens[self.next..].iter().map_while(digits).collect();
        if words.len() < 2 {
            return None;
        }
        let all = words.iter().map(|word| Query::Word((*word).to_string())).collect();
        let query = self.or_number(Query::And(all), field("phone"), &words.join(" "));
        matches!(query, Query::Or(_)).then_some((query, words.len()))
    }

    /// A line that is one phone number, with parentheses as people write them: `+43 (0)664 123 45 67`.
    fn number_with_parentheses(&self) -> Option<Query> {
        let line = self.line.trim();
        // What is in them is one run of digits: a word, as (a b) is two.
        let mut groups =
            line.split('(').skip(1).map(|rest| rest.split(')').next().unwrap_or_default());
        let digits = |group: &str| group.chars().all(|c| c.is_numeric() || c == '+');
        if !line.contains('(')
            || line.starts_with('-')
            || !groups.all(digits)
            || !is_whole_number(line)
        {
            return None;
        }
        let words = line.split(|c: char| c.is_whitespace() || c == '(' || c == ')');
        let words = words.filter(|word| word.contains(char::is_numeric));
        let all = Query::And(words.map(|word| Query::Word(word.to_string())).collect());
        Some(self.or_number(all, field("phone"), line))
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
            Token::Word { field: None, text, quoted, .. } => {
                // Many write a star behind the beginning of a word; a word is found by any part.
                let bare = text.trim_end_matches('*');
                let text = if *quoted || bare.is_empty() { text } else { bare };
                Ok(self.or_number(Query::Word(text.to_string()), field("phone"), text))
            }
            Token::Word { field: Some(name), op, text, quoted } => {
                let uids = field(name).is_some_and(|field| field.kind == Kind::Uid);
                if uids && *op == Op::Contains && !quoted && text.contains(',') {
                    let some = text.split(',').filter(|uid| !uid.is_empty());
                    return Ok(Query::uids(some.map(str::to_string).collect()));
                }
                self.test(*at, name, *op, text)
            }
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
        if let Some(query) = self.calendar(at, name, op, text)? {
            return Ok(query);
        }
        let (name, op, text) = match name.eq_ignore_ascii_case("has") {
            true => (text, Op::Exists, ""),
            false => (name, op, text),
        };
        let subject = match field(name).or_else(|| calendar_field(name)) {
            _ if name.eq_ignore_ascii_case("any") => Subject::Any,
            Some(field) => Subject::Field(field),
            None if is_extension(name) => Subject::property(name),
            None => return Err(self.unknown(at, name)),
        };
        if op == Op::RegexNormal
            && let Err(why) = pattern(text)
        {
            let what = format!("the pattern {text:?} cannot be used: {why}");
            return Err(
                SyntaxError::new(self.line, at, what).hint("to look for the text itself, quote it")
            );
        }
        let op = match op {
            Op::Contains | Op::BeginsWith | Op::EndsWith if text.is_empty() => Op::Exists,
            op => op,
        };
        let number = match subject {
            Subject::Field(field) if matches!(op, Op::Contains | Op::Is) => Some(field),
            _ => None,
        };
        let query = Query::Test(Test::new(subject, op, text));
        Ok(self.or_number(query, number, text))
    }

    /// The question, or, if the text can be a whole phone number, that number in a phone field.
    fn or_number(&self, query: Query, field: Option<&'static Field>, text: &str) -> Query {
        let region = self.settings.region.clone();
        let Some(field) = field.filter(|field| field.kind == Kind::Phone) else { return query };
        if !is_whole_number(text) || is_date(text) {
            return query;
        }
        let (subject, text) = (Subject::Field(field), text.to_string());
        let number = Test { subject, op: Op::EqPhoneNational, text, region };
        Query::Or(vec![query, Query::Test(number)])
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
        } else if line[at..].starts_with('~') {
            (op, at) = (Op::RegexNormal, at + 1);
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

/// A property that no standard has a field for.
fn is_extension(name: &str) -> bool {
    name.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("x-"))
        && name.len() > 2
        && matches!(Subject::property(name), Subject::Property(_))
}

/// Has it as many digits as a number that can be called?
fn is_whole_number(text: &str) -> bool {
    phone_digits(text).is_some_and(|digits| digits.len() >= WHOLE_NUMBER)
}

/// `1970-02-28` is a day before it is a number.
fn is_date(text: &str) -> bool {
    let parts: Vec<usize> = text
        .split('-')
        .map(|part| if part.bytes().all(|byte| byte.is_ascii_digit()) { part.len() } else { 0 })
        .collect();
    parts == [4, 2, 2]
}
