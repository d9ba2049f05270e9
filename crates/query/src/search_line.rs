//! The parser of search lines, the query syntax that people type.
//!
//! Separate from `sexp`, which parses the syntax of programs into the same query.
//!
//! ```text
//! line  = terms that must all match; with "or" between terms, one side must match
//! term  = [ "-" | "not" ] ( "(" line ")" | field ":" value | "uid:" uid "," uid ...
//!         | "has:" field | "@" saved search | word )
//! value = text      the field contains it        "=" text   it is the whole value
//!         text "*"  the value begins with it     "*" text   the value ends with it
//!         nothing   the field is present         "~" text   the folded value matches
//! field = a row of the table, or a vCard property that begins with "X-"
//! word  = a word, or a phrase in double quotes; \" and \\ escape a quote and a backslash
//! ```
//!
//! Terms about time, such as `when:today..+7d`, are in `calendar`. An empty line matches every
//! item. A word, or a text for a phone field, that may be a whole phone number is also compared as
//! one, as `eqphone_national` does.

mod calendar;
mod negation;

use self::negation::ParsedTerm;
use crate::error::{MAX_LINE_DEPTH, MAX_LINE_TOKENS, SyntaxError, check_length};
use crate::mail_query::is_mail_or_commit_field;
use crate::pattern::{MAX_PATTERNS, RegexPattern};
use crate::query::{FieldSelector, FieldTest, MatchOp, Query, QueryContext};
use crate::saved_searches::{error_in_search, parse_search_reference};
use crate::value_matcher::parse_phone_digits;
use larder_format::collection_type::{find_any_field, suggest_any_field};
use larder_format::field::{Field, FieldType, find_contact_field};
use larder_format::phone::is_number_like;
use larder_store::Kind;

/// The minimum number of digits of a whole phone number.
const MIN_WHOLE_NUMBER_DIGITS: usize = 7;

/// A token of the line.
#[derive(Debug, Clone, PartialEq, Eq)]
enum SearchLineToken {
    Open,
    Close,
    /// A leading minus.
    Minus,
    /// A word as typed. `field` is the text before its first colon.
    Word {
        field: Option<String>,
        op: MatchOp,
        text: String,
        quoted: bool,
    },
}

impl Query {
    /// Parses a search line.
    ///
    /// # Errors
    /// An unclosed quote or parenthesis, an unmatched parenthesis, an unknown field, or a pattern
    /// that cannot be compiled; with its position, and how to correct it.
    pub fn parse(line: &str) -> Result<Query, SyntaxError> {
        Query::parse_with(line, &QueryContext::default())
    }

    /// Parses a search line in a context.
    ///
    /// # Errors
    /// As [`Query::parse`].
    pub fn parse_with(line: &str, context: &QueryContext) -> Result<Query, SyntaxError> {
        parse_line(line, context, &mut LineBudget::default(), &[]).map(ParsedTerm::into_query)
    }
}

/// Parses a line. `expanded` are the names of the saved searches that it is part of.
fn parse_line(
    line: &str,
    context: &QueryContext,
    budget: &mut LineBudget,
    expanded: &[String],
) -> Result<ParsedTerm, SyntaxError> {
    check_length(line)?;
    let tokens = tokenize(line)?;
    let token_count = budget.tokens + tokens.len();
    if token_count > MAX_LINE_TOKENS {
        let at = tokens.get(MAX_LINE_TOKENS - budget.tokens).map_or(0, |(at, _)| *at);
        return Err(SyntaxError::new(
            line,
            at,
            format!("the query has more than {MAX_LINE_TOKENS} words"),
        ));
    }
    budget.tokens = token_count;
    let mut parser = SearchLineParser { line, context, tokens: &tokens, next: 0, budget, expanded };
    if let Some(number) = parser.parse_number_with_parentheses() {
        return Ok(number.into());
    }
    let term = parser.parse_alternatives()?;
    match parser.peek() {
        None => Ok(term),
        Some((at, _)) => Err(SyntaxError::new(line, *at, "unmatched \")\"")
            .with_hint("remove it, or quote the word that contains it")),
    }
}

/// The size of a query so far, with the saved searches in it.
#[derive(Debug, Default)]
struct LineBudget {
    /// The number of words, parentheses and operators.
    tokens: usize,
    /// The number of regular expressions.
    patterns: usize,
    /// The nesting at the current term.
    depth: usize,
}

struct SearchLineParser<'a> {
    line: &'a str,
    context: &'a QueryContext,
    tokens: &'a [(usize, SearchLineToken)],
    next: usize,
    budget: &'a mut LineBudget,
    /// The names of the saved searches that the line is part of.
    expanded: &'a [String],
}

impl<'a> SearchLineParser<'a> {
    fn peek(&self) -> Option<&'a (usize, SearchLineToken)> {
        self.tokens.get(self.next)
    }

    /// Returns whether the next token is this word, unquoted and in any case.
    fn is_keyword(&self, word: &str) -> bool {
        matches!(self.peek(), Some((_, SearchLineToken::Word { field: None, op: MatchOp::ContainsWords, text, quoted: false }))
            if text.eq_ignore_ascii_case(word))
    }

    fn parse_alternatives(&mut self) -> Result<ParsedTerm, SyntaxError> {
        let mut any = vec![self.parse_terms()?];
        while self.is_keyword("or") {
            let at = self.peek().map_or(0, |(at, _)| *at);
            self.next += 1;
            let side = self.parse_terms()?;
            if side.is_empty() || any.iter().any(ParsedTerm::is_empty) {
                return Err(SyntaxError::new(self.line, at, "\"or\" needs a term on both sides")
                    .with_hint("to look for the word itself, quote it: \"or\""));
            }
            any.push(side);
        }
        Ok(ParsedTerm::join_any(any))
    }

    fn parse_terms(&mut self) -> Result<ParsedTerm, SyntaxError> {
        let mut all = Vec::new();
        while let Some((at, token)) = self.peek() {
            if *token == SearchLineToken::Close || self.is_keyword("or") {
                break;
            }
            if self.is_keyword("and") {
                self.skip_and(*at, !all.is_empty())?;
                continue;
            }
            match self.parse_number_in_words() {
                Some((number, words)) => {
                    self.next += words;
                    all.push(number.into());
                }
                None => all.push(self.parse_term()?),
            }
        }
        Ok(if all.is_empty() { Query::All.into() } else { ParsedTerm::join_all(all) })
    }

    /// Skips an `and`, which needs a term on both sides.
    fn skip_and(&mut self, at: usize, has_left: bool) -> Result<(), SyntaxError> {
        self.next += 1;
        let is_end = matches!(self.peek(), None | Some((_, SearchLineToken::Close)));
        if has_left && !is_end && !self.is_keyword("and") && !self.is_keyword("or") {
            return Ok(());
        }
        Err(SyntaxError::new(self.line, at, "\"and\" needs a term on both sides")
            .with_hint("to look for the word itself, quote it: \"and\""))
    }

    /// Parses adjacent words that make up a phone number, `0664 123 45 67` or `0664 / 1234567`,
    /// into all the words or that number. Returns the number of words, too.
    fn parse_number_in_words(&self) -> Option<(Query, usize)> {
        let number_part = |(_, token): &'a (usize, SearchLineToken)| match token {
            SearchLineToken::Word {
                field: None,
                op: MatchOp::ContainsWords,
                text,
                quoted: false,
            } if is_number_like(text) => Some(text.as_str()),
            _ => None,
        };
        let has_digit = |word: &str| word.contains(char::is_numeric);
        let mut words: Vec<&str> = self.tokens[self.next..].iter().map_while(number_part).collect();
        // Punctuation separates digits; around them it is a word of its own.
        words.truncate(words.iter().rposition(|word| has_digit(word))? + 1);
        if words.len() < 2 || !words.first().is_some_and(|word| has_digit(word)) {
            return None;
        }
        let digits = words.iter().filter(|word| has_digit(word));
        let all = digits.map(|word| Query::Word((*word).to_string())).collect();
        let query = self.add_phone_alternative(
            Query::And(all),
            find_contact_field("phone"),
            &words.join(" "),
        );
        matches!(query, Query::Or(_)).then_some((query, words.len()))
    }

    /// Parses a line that is one phone number with parentheses: `+43 (0)664 123 45 67`.
    fn parse_number_with_parentheses(&self) -> Option<Query> {
        let line = self.line.trim();
        // Parentheses of a number enclose digits only; (a b) groups two words.
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
        Some(self.add_phone_alternative(all, find_contact_field("phone"), line))
    }

    fn parse_term(&mut self) -> Result<ParsedTerm, SyntaxError> {
        let negated =
            self.is_keyword("not") || matches!(self.peek(), Some((_, SearchLineToken::Minus)));
        let Some((at, token)) = self.peek() else {
            return Err(SyntaxError::new(
                self.line,
                self.line.len(),
                "the query ends where a term is expected",
            ));
        };
        self.next += 1;
        if negated {
            self.check_negated_term(*at)?;
            self.enter_group(*at)?;
            let term = self.parse_term()?;
            self.budget.depth -= 1;
            return Ok(term.negate());
        }
        match token {
            SearchLineToken::Open => {
                self.enter_group(*at)?;
                let inner = self.parse_alternatives()?;
                self.budget.depth -= 1;
                match self.peek() {
                    Some((_, SearchLineToken::Close)) => self.next += 1,
                    _ => {
                        return Err(SyntaxError::new(self.line, *at, "unclosed \"(\"")
                            .with_hint("add a \")\", or quote the word that contains it"));
                    }
                }
                Ok(inner)
            }
            SearchLineToken::Word { field: None, text, quoted, .. } => {
                if let Some(name) = parse_search_reference(text).filter(|_| !quoted) {
                    return self.expand_search(*at, name);
                }
                // A final star has no effect: a word matches any part of a value.
                let bare = text.trim_end_matches('*');
                let text = if *quoted || bare.is_empty() { text } else { bare };
                let word = Query::Word(text.to_string());
                Ok(self.add_phone_alternative(word, find_contact_field("phone"), text).into())
            }
            SearchLineToken::Word { field: Some(name), op, text, quoted } => {
                let uids =
                    find_any_field(name).is_some_and(|field| field.field_type == FieldType::Uid);
                if uids && *op == MatchOp::ContainsWords && !quoted && text.contains(',') {
                    let some = text.split(',').filter(|uid| !uid.is_empty());
                    return Ok(Query::from_uids(some.map(str::to_string).collect()).into());
                }
                self.parse_test(*at, name, *op, text)
            }
            SearchLineToken::Minus | SearchLineToken::Close => {
                Err(SyntaxError::new(self.line, *at, "unmatched \")\""))
            }
        }
    }

    /// Refuses a negation with the end of a group or an operator behind it.
    fn check_negated_term(&self, at: usize) -> Result<(), SyntaxError> {
        let operator = ["and", "or"].into_iter().find(|word| self.is_keyword(word));
        let hint = match (operator, self.peek()) {
            (Some(word), _) => format!("to look for the word itself, quote it: -\"{word}\""),
            (None, None | Some((_, SearchLineToken::Close))) => {
                "add a term, as in -anna or not anna".to_string()
            }
            (None, Some(_)) => return Ok(()),
        };
        Err(SyntaxError::new(self.line, at, "a term is missing after the negation").with_hint(hint))
    }

    /// Parses the line of the saved search with this name. It stands for items of its kind.
    fn expand_search(&mut self, at: usize, name: &str) -> Result<ParsedTerm, SyntaxError> {
        let context = self.context;
        let search = context.saved_searches.resolve(self.line, at, name, self.expanded)?;
        let Some(kind) = Kind::from_saved_search(search).filter(|kind| !kind.has_locator()) else {
            return Ok(ParsedTerm::of_other_kind());
        };
        self.enter_group(at)?;
        let expanded = [self.expanded, &[name.to_string()]].concat();
        let term = parse_line(&search.query, context, self.budget, &expanded)
            .map_err(|error| error_in_search(self.line, at, name, error))?;
        self.budget.depth -= 1;
        Ok(term.of_kind(kind))
    }

    fn enter_group(&mut self, at: usize) -> Result<(), SyntaxError> {
        self.budget.depth += 1;
        if self.budget.depth > MAX_LINE_DEPTH {
            return Err(SyntaxError::new(self.line, at, "the parentheses are nested too deeply"));
        }
        Ok(())
    }

    fn parse_test(
        &mut self,
        at: usize,
        name: &str,
        op: MatchOp,
        text: &str,
    ) -> Result<ParsedTerm, SyntaxError> {
        if let Some(term) = self.parse_calendar_term(at, name, op, text)? {
            return Ok(term);
        }
        let (name, op, text) = match name.eq_ignore_ascii_case("has") {
            true => (text, MatchOp::Exists, ""),
            false => (name, op, text),
        };
        let subject = match find_any_field(name) {
            _ if name.eq_ignore_ascii_case("any") => FieldSelector::Any,
            Some(field) => FieldSelector::Field(field),
            None if is_extension(name) => FieldSelector::from_property_name(name),
            None if self.context.is_among_kinds && is_mail_or_commit_field(name) => {
                return Ok(ParsedTerm::of_other_kind());
            }
            None => return Err(self.unknown_field(at, name)),
        };
        if op == MatchOp::RegexNormal {
            self.check_pattern(at, text)?;
        }
        let op = match op {
            MatchOp::ContainsWords | MatchOp::BeginsWith | MatchOp::EndsWith if text.is_empty() => {
                MatchOp::Exists
            }
            op => op,
        };
        let text = match subject {
            FieldSelector::Field(field) if op == MatchOp::ContainsWords => {
                self.month_of_date(field, text).unwrap_or_else(|| text.to_string())
            }
            _ => text.to_string(),
        };
        let text = text.as_str();
        let field = match subject {
            FieldSelector::Field(field) => Some(field),
            _ => None,
        };
        let query = Query::from_test(FieldTest::new(subject, op, text));
        let number = field.filter(|_| matches!(op, MatchOp::ContainsWords | MatchOp::Is));
        let query = self.add_phone_alternative(query, number, text);
        Ok(match field {
            Some(field) => ParsedTerm::of_field(query, field),
            None => query.into(),
        })
    }

    /// Returns the part of a date that names this month: `-11-` for `november`, `nov` or `11`.
    fn month_of_date(&self, field: &Field, text: &str) -> Option<String> {
        if field.field_type != FieldType::Date {
            return None;
        }
        let is_number = text.len() <= 2 && text.bytes().all(|byte| byte.is_ascii_digit());
        let month = match is_number {
            true => text.parse().ok().filter(|month| (1..=12).contains(month))?,
            false => self.context.user_locale.language.month_number(text)?,
        };
        Some(format!("-{month:02}-"))
    }

    /// Refuses a regular expression that cannot be used.
    fn check_pattern(&mut self, at: usize, text: &str) -> Result<(), SyntaxError> {
        self.budget.patterns += 1;
        if self.budget.patterns > MAX_PATTERNS {
            let message = format!("more than {MAX_PATTERNS} regular expressions in one query");
            return Err(SyntaxError::new(self.line, at, message));
        }
        RegexPattern::compile(text).map(drop).map_err(|reason| {
            let message = format!("the regular expression {text:?} cannot be used: {reason}");
            SyntaxError::new(self.line, at, message)
                .with_hint("to look for the text itself, quote it")
        })
    }

    /// Returns the query, with the test of a phone number as an alternative if the text may be one.
    fn add_phone_alternative(
        &self,
        query: Query,
        field: Option<&'static Field>,
        text: &str,
    ) -> Query {
        let region = self.context.region.clone();
        let Some(field) = field.filter(|field| field.field_type == FieldType::Phone) else {
            return query;
        };
        if !is_whole_number(text) || is_date(text) {
            return query;
        }
        let (subject, text) = (FieldSelector::Field(field), text.to_string());
        let number = FieldTest { subject, op: MatchOp::EqPhoneNational, text, region };
        Query::Or(vec![query, Query::Test(number)])
    }

    fn unknown_field(&self, at: usize, name: &str) -> SyntaxError {
        let hint = match suggest_any_field(name) {
            _ if name == "in" => "to search one collection: --in NAME".into(),
            _ if name == "kind" => "for one kind of item: is:event, or --kind event".into(),
            Some(near) => format!(
                "did you mean {near}:? `larder fields` lists all fields; to search for a word with a \
                 colon, quote it"
            ),
            None => "`larder fields` lists all fields; to search for a word with a colon, quote it"
                .into(),
        };
        SyntaxError::new(self.line, at, format!("unknown field {name:?}")).with_hint(hint)
    }
}

/// Splits the line into tokens, each with its byte position.
fn tokenize(line: &str) -> Result<Vec<(usize, SearchLineToken)>, SyntaxError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = line[at..].chars().next() {
        match c {
            c if c.is_whitespace() => at += c.len_utf8(),
            '(' => {
                tokens.push((at, SearchLineToken::Open));
                at += 1;
            }
            ')' => {
                tokens.push((at, SearchLineToken::Close));
                at += 1;
            }
            '-' if line[at + 1..].chars().next().is_some_and(|c| !c.is_whitespace()) => {
                tokens.push((at, SearchLineToken::Minus));
                at += 1;
            }
            _ => {
                let (token, end) = read_word(line, at)?;
                tokens.push((at, token));
                at = end;
            }
        }
    }
    Ok(tokens)
}

/// Parses `word`, `"phrase"`, `field:value` or `field:"phrase"` from byte `start` on.
fn read_word(line: &str, start: usize) -> Result<(SearchLineToken, usize), SyntaxError> {
    let (name, mut at) = match parse_field_name(&line[start..]) {
        Some(name) => (Some(name.to_string()), start + name.len() + 1),
        None => (None, start),
    };
    let mut op = MatchOp::ContainsWords;
    if name.is_some() {
        if line[at..].starts_with('=') {
            (op, at) = (MatchOp::Is, at + 1);
        } else if line[at..].starts_with('*') {
            (op, at) = (MatchOp::EndsWith, at + 1);
        } else if line[at..].starts_with('~') {
            (op, at) = (MatchOp::RegexNormal, at + 1);
        }
    }
    let (mut text, quoted, mut end) = read_text(line, at)?;
    if name.is_some() && op == MatchOp::ContainsWords {
        if quoted && line[end..].starts_with('*') {
            (op, end) = (MatchOp::BeginsWith, end + 1);
        } else if !quoted && text.len() > 1 && text.ends_with('*') {
            text.pop();
            op = MatchOp::BeginsWith;
        }
    }
    Ok((SearchLineToken::Word { field: name, op, text, quoted }, end))
}

/// Parses a quoted phrase, or text up to white space or a parenthesis. Also returns the end of the
/// text.
fn read_text(line: &str, start: usize) -> Result<(String, bool, usize), SyntaxError> {
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
    Err(SyntaxError::new(line, start, "unclosed quote")
        .with_hint("add a \" at the end of the phrase"))
}

/// Returns the name of the field if the text begins with a name and a colon. A URL and a time of
/// day are words.
fn parse_field_name(text: &str) -> Option<&str> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-'))?;
    let (name, rest) = text.split_at(end);
    let is_field = rest.starts_with(':')
        && !rest.starts_with("://")
        && name.starts_with(|c: char| c.is_ascii_alphabetic());
    is_field.then_some(name)
}

/// Returns whether this is the name of a non-standard property.
fn is_extension(name: &str) -> bool {
    name.get(..2).is_some_and(|start| start.eq_ignore_ascii_case("x-"))
        && name.len() > 2
        && matches!(FieldSelector::from_property_name(name), FieldSelector::Property(_))
}

/// Returns whether a text may be a whole phone number.
fn is_whole_number(text: &str) -> bool {
    parse_phone_digits(text).is_some_and(|digits| digits.len() >= MIN_WHOLE_NUMBER_DIGITS)
}

/// Returns whether a text is a date, `1970-02-28`, and so not a phone number.
fn is_date(text: &str) -> bool {
    let parts: Vec<usize> = text
        .split('-')
        .map(|part| if part.bytes().all(|byte| byte.is_ascii_digit()) { part.len() } else { 0 })
        .collect();
    parts == [4, 2, 2]
}
