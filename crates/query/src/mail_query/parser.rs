//! The parser of mail queries, from tokens to the query.
//!
//! Separate from the query itself: other parts of the program match queries, and none of them needs
//! the syntax. The depth of a query is bounded, so that the functions that visit it may recurse.

mod field_tests;
mod field_values;

use super::commit::{COMMIT_SEARCH_FIELDS, parse_path_test};
use super::tokens::{
    MAIL_SEARCH_FIELDS, MailField, MailToken, MailWord, SearchFields, pattern_text, tokenize,
};
use super::{
    FolderTest, MailQuery, MailQueryContext, MailTextFields, TextMatch, TextTest,
    is_mail_or_commit_field,
};
use crate::error::{MAX_LINE_DEPTH, SyntaxError, check_length};
use crate::item_terms::is_item_field;
use crate::saved_searches::{error_in_search, parse_search_reference};
use larder_format::message::trim_message_id;
use larder_format::saved_search::is_search_name;
use larder_store::Kind;

/// Parses a line.
pub(super) fn parse_line(line: &str, context: &MailQueryContext) -> Result<MailQuery, SyntaxError> {
    check_length(line)?;
    let mut query = MailQueryParser::new(line, context).parse()?;
    drop_double_negations(&mut query);
    Ok(query)
}

/// Returns the fields of a kind.
pub(super) fn search_fields(kind: Kind) -> SearchFields {
    match kind {
        Kind::Commit => COMMIT_SEARCH_FIELDS,
        _ => MAIL_SEARCH_FIELDS,
    }
}

struct MailQueryParser<'a> {
    line: &'a str,
    context: &'a MailQueryContext,
    tokens: Vec<(usize, MailToken)>,
    next: usize,
    /// The number of tokens of the whole query so far.
    token_count: usize,
    /// The number of regular expressions so far.
    pattern_count: usize,
    depth: usize,
    /// How often terms became the left side of another operator, which is never forgotten: the tree
    /// stays as deep after a group is closed.
    alternations: usize,
    /// The texts that a word without a field is searched in.
    free_fields: MailTextFields,
    /// The names of the saved searches that the line is part of.
    expanded: Vec<String>,
}

/// An operator between two terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BinaryOperator {
    Or,
    Xor,
}

impl<'a> MailQueryParser<'a> {
    fn new(line: &'a str, context: &'a MailQueryContext) -> MailQueryParser<'a> {
        MailQueryParser {
            line,
            context,
            tokens: Vec::new(),
            next: 0,
            token_count: 0,
            pattern_count: 0,
            depth: 0,
            alternations: 0,
            free_fields: MailTextFields::FREE,
            expanded: Vec::new(),
        }
    }

    /// Parses the whole line.
    fn parse(&mut self) -> Result<MailQuery, SyntaxError> {
        self.tokens = tokenize(self.line, self.fields(), &mut self.token_count)?;
        if self.tokens.is_empty() {
            return Ok(MailQuery::All);
        }
        let query = self.parse_alternatives()?;
        match self.peek() {
            None => Ok(query),
            Some(_) => Err(self
                .error_here("unmatched \")\"")
                .with_hint("remove it, or quote the word that contains it")),
        }
    }

    /// Returns the fields of the kind.
    fn fields(&self) -> SearchFields {
        search_fields(self.context.kind)
    }

    fn peek(&self) -> Option<&MailToken> {
        self.tokens.get(self.next).map(|(_, token)| token)
    }

    /// Returns the position of the next token, or of the end of the line.
    fn position(&self) -> usize {
        self.tokens.get(self.next).map_or(self.line.len(), |(at, _)| *at)
    }

    fn error_here(&self, message: &str) -> SyntaxError {
        SyntaxError::new(self.line, self.position(), message)
    }

    fn enter(&mut self, at: usize) -> Result<(), SyntaxError> {
        self.depth += 1;
        self.check_depth(at)
    }

    fn check_depth(&self, at: usize) -> Result<(), SyntaxError> {
        if self.depth + self.alternations > MAX_LINE_DEPTH {
            return Err(SyntaxError::new(self.line, at, "the query is nested too deeply"));
        }
        Ok(())
    }

    /// Parses terms with `or` and `xor` between them, from left to right.
    fn parse_alternatives(&mut self) -> Result<MailQuery, SyntaxError> {
        let mut sides = vec![self.parse_terms()?];
        let mut last_operator = None;
        loop {
            let operator = match self.peek() {
                Some(MailToken::Or) => BinaryOperator::Or,
                Some(MailToken::Xor) => BinaryOperator::Xor,
                _ => break,
            };
            if last_operator.is_some_and(|last| last != operator) {
                // The terms so far become the left side of another operator.
                self.alternations += 1;
                self.check_depth(self.position())?;
                sides = vec![join_sides(sides, last_operator)];
            }
            last_operator = Some(operator);
            self.next += 1;
            sides.push(self.parse_terms()?);
        }
        Ok(join_sides(sides, last_operator))
    }

    fn parse_terms(&mut self) -> Result<MailQuery, SyntaxError> {
        let (mut all, mut sign) = (Vec::new(), None);
        loop {
            let is_sign = self.is_sign_next();
            let unit = self.parse_unit()?;
            match is_sign {
                true => sign = Some(unit),
                false => all.push(unit),
            }
            match self.peek() {
                None | Some(MailToken::Close | MailToken::Or | MailToken::Xor) => break,
                Some(MailToken::And) => self.next += 1,
                Some(_) => {}
            }
        }
        Ok(match (all.len(), sign) {
            (0, Some(sign)) => sign,
            (1, _) => all.swap_remove(0),
            _ => MailQuery::And(all),
        })
    }

    /// Returns whether the next term is a sign that stands alone, as in `Sales & Marketing`. No
    /// text has it as a word, so it is left out beside other terms.
    fn is_sign_next(&self) -> bool {
        let rest = self.tokens.get(self.next..).unwrap_or_default();
        let term = rest.iter().map(|(_, token)| token).find(|token| **token != MailToken::Not);
        let Some(MailToken::Word(word)) = term else { return false };
        word.field.is_none()
            && word.unknown_field.is_none()
            && !word.is_quoted
            && !word.value.is_empty()
            && !word.value.chars().any(|c| c.is_alphanumeric() || c == '*')
    }

    /// Parses a term with its negations.
    fn parse_unit(&mut self) -> Result<MailQuery, SyntaxError> {
        let mut is_negated = false;
        while self.peek() == Some(&MailToken::Not) {
            is_negated = !is_negated;
            self.next += 1;
        }
        let at = self.position();
        let query = match self.peek() {
            Some(MailToken::Open) => self.parse_group()?,
            Some(MailToken::Word(word)) => {
                let word = word.clone();
                self.next += 1;
                self.parse_word(at, &word)?
            }
            // Without words on both sides it is a word itself, unless it has a number.
            Some(MailToken::Near { text, .. }) if text.contains('/') => {
                return Err(self
                    .error_here("a word is missing on a side of NEAR or ADJ")
                    .with_hint("both are words of the same field, as in subject:a NEAR/3 b"));
            }
            Some(MailToken::Near { text, .. }) => {
                let text = TextMatch::Words(text.clone());
                self.next += 1;
                MailQuery::Text(TextTest { fields: self.free_fields, text })
            }
            Some(_) => {
                return Err(self.error_here("a term is missing here").with_hint(
                    "to look for the word \"and\", \"or\", \"xor\" or \"not\", quote it",
                ));
            }
            None => {
                return Err(self.error_here("the query ends where a term is expected").with_hint(
                    "to look for the word \"and\", \"or\", \"xor\" or \"not\", quote it",
                ));
            }
        };
        Ok(if is_negated { negate(query) } else { query })
    }

    fn parse_group(&mut self) -> Result<MailQuery, SyntaxError> {
        let at = self.position();
        self.next += 1;
        self.enter(at)?;
        let inner = self.parse_alternatives()?;
        self.depth -= 1;
        if self.peek() != Some(&MailToken::Close) {
            return Err(SyntaxError::new(self.line, at, "unclosed \"(\"")
                .with_hint("add a \")\", or quote the word that contains it"));
        }
        self.next += 1;
        Ok(inner)
    }

    /// Parses a word, and what belongs to it behind it: `field:(group)`, `word NEAR word`.
    fn parse_word(&mut self, at: usize, word: &MailWord) -> Result<MailQuery, SyntaxError> {
        if let Some(MailField::Text(fields)) = word.field
            && word.value.is_empty()
            && !word.is_quoted
            && self.peek() == Some(&MailToken::Open)
            && self.position() == word.end
        {
            let outer = std::mem::replace(&mut self.free_fields, fields);
            let group = self.parse_group();
            self.free_fields = outer;
            return group;
        }
        if word.field.is_none()
            && !word.is_quoted
            && let Some(name) = parse_search_reference(&word.value)
        {
            return self.expand_search(at, name);
        }
        if word.is_quoted && word.value.is_empty() {
            return self.parse_empty_text(at, word);
        }
        self.check_foreign_syntax(at, word)?;
        let query = self.resolve_word(at, word)?;
        match query {
            MailQuery::Text(TextTest { fields, text: TextMatch::Words(left) }) => {
                Ok(self.parse_near(fields, left))
            }
            query => Ok(query),
        }
    }

    /// Refuses what other programs write, and what would quietly mean something else here. Not in
    /// searches of several kinds, whose other kinds may answer.
    fn check_foreign_syntax(&self, at: usize, word: &MailWord) -> Result<(), SyntaxError> {
        if word.is_quoted || self.context.is_among_kinds {
            return Ok(());
        }
        if word.field.is_none() {
            self.check_sign(at, &word.value)?;
        }
        if matches!(word.field, None | Some(MailField::Text(_))) {
            self.check_star(at, &word.value)?;
        }
        self.check_space(at, word)
    }

    /// Refuses signs in place of operators.
    fn check_sign(&self, at: usize, value: &str) -> Result<(), SyntaxError> {
        let is_negation = || {
            let mut rest = value.chars();
            rest.next() == Some('!') && rest.next().is_some_and(char::is_alphanumeric)
        };
        let (sign, operator) = match value {
            _ if value == "|" || value.contains("||") => (value.trim_matches(|c| c != '|'), "or"),
            _ if value.contains("&&") => ("&&", "and"),
            _ if is_negation() => ("!", "not"),
            _ => return Ok(()),
        };
        Err(SyntaxError::new(self.line, at, format!("{sign:?} is no operator"))
            .with_hint(format!("write {operator}; to look for the text, quote it")))
    }

    /// Refuses a star that is not at the beginning or the end of a word.
    fn check_star(&self, at: usize, value: &str) -> Result<(), SyntaxError> {
        let inner = value.trim_matches('*');
        if pattern_text(value).is_some() || !inner.contains('*') {
            return Ok(());
        }
        let parts: Vec<String> = inner.split('*').map(regex::escape).collect();
        Err(SyntaxError::new(self.line, at, "a star stands inside a word").with_hint(format!(
            "stars stand at its beginning and its end; /{}/ is a regular expression",
            parts.join(".*")
        )))
    }

    /// Refuses a text that a space separates from the name of its field, and a group of a field
    /// whose values are no texts. Fields that cannot be empty refuse the empty value themselves.
    fn check_space(&self, at: usize, word: &MailWord) -> Result<(), SyntaxError> {
        let is_group = self.position() == word.end;
        let is_text_next = || match self.peek() {
            Some(MailToken::Word(next)) => {
                next.field.is_none()
                    && next.unknown_field.is_none()
                    && parse_search_reference(&next.value).is_none()
            }
            Some(MailToken::Open) => is_group || matches!(word.field, Some(MailField::Text(_))),
            _ => false,
        };
        if !word.field.is_some_and(MailField::may_be_empty)
            || !word.value.is_empty()
            || !is_text_next()
        {
            return Ok(());
        }
        let name = self.line.get(at..word.end).unwrap_or_default();
        let hint = match word.field {
            _ if is_group && self.peek() == Some(&MailToken::Open) => {
                format!("write the field before each value: {name}a or {name}b")
            }
            Some(MailField::Maildir | MailField::Folder | MailField::Path) => {
                format!("leave out the space behind it; {name}/ is the root")
            }
            _ => format!(
                "leave out the space behind it; {name}* finds each message that has the field"
            ),
        };
        Err(SyntaxError::new(self.line, at, format!("{name:?} has no text")).with_hint(hint))
    }

    /// Parses `field:""`: as in notmuch, the text is empty or missing.
    fn parse_empty_text(&mut self, at: usize, word: &MailWord) -> Result<MailQuery, SyntaxError> {
        let query = self.resolve_word(at, word)?;
        let has_field = match &query {
            MailQuery::Text(_) | MailQuery::Label(_) => true,
            MailQuery::Or(_) => word.field == Some(MailField::FlagOrKeyword),
            _ => false,
        };
        Ok(if has_field { MailQuery::Not(Box::new(query)) } else { query })
    }

    /// Parses the words that must be near a word. With several operators each pair must match.
    fn parse_near(&mut self, fields: MailTextFields, first: String) -> MailQuery {
        let mut pairs = Vec::new();
        let mut left = first;
        while let Some(MailToken::Near { distance, is_ordered, .. }) = self.peek() {
            let (distance, is_ordered) = (*distance, *is_ordered);
            let Some(right) = self.word_of_field(self.next + 1, fields) else { break };
            self.next += 2;
            let previous = std::mem::replace(&mut left, right.clone());
            let text = TextMatch::Near { left: previous, right, distance, is_ordered };
            pairs.push(MailQuery::Text(TextTest { fields, text }));
        }
        match pairs.len() {
            0 => MailQuery::Text(TextTest { fields, text: TextMatch::Words(left) }),
            1 => pairs.swap_remove(0),
            _ => MailQuery::And(pairs),
        }
    }

    /// Returns the words of the token with this number, unless it tests another field, or is a
    /// pattern.
    fn word_of_field(&self, number: usize, fields: MailTextFields) -> Option<String> {
        let Some((_, MailToken::Word(word))) = self.tokens.get(number) else { return None };
        let is_same_field = word.field.is_none_or(|field| field == MailField::Text(fields));
        let is_words = !word.value.is_empty()
            && pattern_text(&word.value).is_none()
            && !word.value.starts_with('*')
            && !word.value.ends_with('*');
        (is_same_field && is_words).then(|| word.value.clone())
    }

    /// Returns the query of a single word.
    fn resolve_word(&mut self, at: usize, word: &MailWord) -> Result<MailQuery, SyntaxError> {
        let value = word.value.as_str();
        if let Some(name) = &word.unknown_field {
            let is_of_other_kind = is_item_field(name) || is_mail_or_commit_field(name);
            return match self.context.is_among_kinds && is_of_other_kind {
                true => Ok(MailQuery::Nothing),
                false => Err(self.unknown_field(at, name)),
            };
        }
        let Some(field) = word.field else {
            let fields = self.free_fields;
            let text = self.parse_field_text(at, fields, value)?;
            return Ok(match text {
                TextMatch::Exists if fields == MailTextFields::FREE => MailQuery::All,
                text => MailQuery::Text(TextTest { fields, text }),
            });
        };
        match field {
            MailField::Text(fields) => {
                let text = self.parse_field_text(at, fields, value)?;
                Ok(MailQuery::Text(TextTest { fields, text }))
            }
            MailField::Date => self.parse_times(at, value).map(MailQuery::Date),
            MailField::Changed => self.parse_times(at, value).map(MailQuery::Changed),
            MailField::Size => self.parse_sizes(at, value).map(MailQuery::Size),
            MailField::Flag => self.parse_flag(at, value).map(MailQuery::Flag),
            MailField::Priority => self.parse_priority(at, value).map(MailQuery::Priority),
            MailField::MessageId => self.parse_id(at, "message-id", value),
            MailField::Reference => self.parse_id(at, "references", value),
            MailField::Related => Ok(MailQuery::Or(vec![
                self.parse_id(at, "message-id", value)?,
                self.parse_id(at, "references", value)?,
            ])),
            MailField::Maildir => self.parse_folder(at, value, FolderTest::Is),
            MailField::Folder => self.parse_folder(at, value, FolderTest::Named),
            MailField::Path => self.parse_path(at, value),
            MailField::Thread => self.parse_thread(at, value),
            MailField::Label => self.parse_text(at, value).map(MailQuery::Label),
            MailField::FlagOrKeyword | MailField::FlagOrLabel => self.parse_tag(at, field, value),
            MailField::Header => self.parse_header(at, value),
            MailField::ChangedPath => {
                if let Some(pattern) = pattern_text(value) {
                    self.check_pattern(at, pattern)?;
                }
                Ok(parse_path_test(value))
            }
            MailField::Hash => self.parse_hash(at, value).map(MailQuery::Hash),
            MailField::Parent => self.parse_hash(at, value).map(MailQuery::Parent),
            MailField::Collection => Ok(MailQuery::Collection(value.to_string())),
            MailField::Source => Ok(MailQuery::Folder(FolderTest::Source(value.to_string()))),
            MailField::Revision => Err(SyntaxError::new(
                self.line,
                at,
                "lastmod: is a revision of the database of notmuch, which Larder does not have",
            )
            .with_hint("files that changed since a time: changed:2026-03-01.. or changed:1h..")),
            MailField::NamedQuery => {
                let text = "query: is a named query of notmuch, which Larder calls a saved search";
                let name = if is_search_name(value) { value } else { "NAME" };
                Err(SyntaxError::new(self.line, at, text).with_hint(format!(
                    "write @{name}; `larder searches` lists them, and `larder adopt notmuch` takes \
                     over those of notmuch"
                )))
            }
            MailField::Unsupported => Err(SyntaxError::new(
                self.line,
                at,
                "the fields property and sexp of notmuch are not available",
            )
            .with_hint("to look for the text itself, put a space or a backslash before the colon")),
        }
    }

    /// Parses the text of fields: their terms are whole values, or words.
    fn parse_field_text(
        &mut self,
        at: usize,
        fields: MailTextFields,
        value: &str,
    ) -> Result<TextMatch, SyntaxError> {
        let with_values = [MailTextFields::LIST, MailTextFields::MIME, MailTextFields::KEYWORD];
        match with_values.iter().any(|field| fields.contains(*field)) {
            true => self.parse_text(at, value),
            false => self.parse_words(at, value),
        }
    }

    /// Parses the id of a thread, or a query in braces for messages in it.
    fn parse_thread(&mut self, at: usize, value: &str) -> Result<MailQuery, SyntaxError> {
        let inner = value.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        let Some(inner) = inner else {
            return Ok(MailQuery::Thread(trim_message_id(value).into_owned()));
        };
        self.enter(at)?;
        let mut parser = MailQueryParser {
            depth: self.depth,
            alternations: self.alternations,
            token_count: self.token_count,
            pattern_count: self.pattern_count,
            expanded: self.expanded.clone(),
            ..MailQueryParser::new(inner, self.context)
        };
        let query = parser.parse().map_err(|error| {
            // Exact unless quotes inside the braces are escaped.
            let start = self.line.get(at..).and_then(|rest| rest.find('{')).unwrap_or_default();
            let before = SyntaxError::new(self.line, at + start + 1, "").at;
            SyntaxError { at: before + error.at - 1, ..error }
        })?;
        self.token_count = parser.token_count;
        self.pattern_count = parser.pattern_count;
        self.depth -= 1;
        Ok(MailQuery::ThreadOf(Box::new(query)))
    }

    /// Parses the line of the saved search with this name.
    fn expand_search(&mut self, at: usize, name: &str) -> Result<MailQuery, SyntaxError> {
        let context = self.context;
        let search = context.saved_searches.resolve(self.line, at, name, &self.expanded)?;
        if Kind::from_saved_search(search) != Some(self.context.kind) {
            return Ok(MailQuery::Nothing);
        }
        self.enter(at)?;
        let mut expanded = self.expanded.clone();
        expanded.push(name.to_string());
        let mut parser = MailQueryParser {
            depth: self.depth,
            alternations: self.alternations,
            token_count: self.token_count,
            pattern_count: self.pattern_count,
            expanded,
            ..MailQueryParser::new(&search.query, context)
        };
        let query = check_length(&search.query).and_then(|()| parser.parse());
        let query = query.map_err(|error| error_in_search(self.line, at, name, error))?;
        self.token_count = parser.token_count;
        self.pattern_count = parser.pattern_count;
        self.depth -= 1;
        // Its negation is every other message, so `negate` must not see the parts. All others who
        // read the query must: the pair is dropped when the line is parsed.
        Ok(match has_part_of_other_kind(&query) {
            true => not(not(query)),
            false => query,
        })
    }
}

/// Negates a query. A part that only items of other kinds match is not negated, as no message is
/// meant.
fn negate(query: MailQuery) -> MailQuery {
    match query {
        MailQuery::Nothing => MailQuery::Nothing,
        MailQuery::And(all) if all.iter().any(has_part_of_other_kind) => {
            MailQuery::Or(all.into_iter().map(negate).collect())
        }
        MailQuery::Or(any) if any.iter().any(has_part_of_other_kind) => {
            MailQuery::And(any.into_iter().map(negate).collect())
        }
        MailQuery::Not(inner) if matches!(*inner, MailQuery::Not(_)) => *inner,
        query => not(query),
    }
}

fn not(query: MailQuery) -> MailQuery {
    MailQuery::Not(Box::new(query))
}

fn drop_double_negations(query: &mut MailQuery) {
    match query {
        MailQuery::And(all) | MailQuery::Or(all) => all.iter_mut().for_each(drop_double_negations),
        MailQuery::Xor(left, right) => {
            drop_double_negations(left);
            drop_double_negations(right);
        }
        MailQuery::Not(inner) => {
            drop_double_negations(inner);
            if let MailQuery::Not(affirmed) = &mut **inner {
                let affirmed = std::mem::replace(&mut **affirmed, MailQuery::Nothing);
                *query = affirmed;
            }
        }
        MailQuery::ThreadOf(inner) | MailQuery::Existing(inner) => drop_double_negations(inner),
        _ => {}
    }
}

fn has_part_of_other_kind(query: &MailQuery) -> bool {
    query.has_test(&|test| *test == MailQuery::Nothing)
}

/// Joins the sides of an operator. The tree of `xor` is balanced, as its depth must be bounded.
fn join_sides(mut sides: Vec<MailQuery>, operator: Option<BinaryOperator>) -> MailQuery {
    match operator {
        _ if sides.len() == 1 => sides.swap_remove(0),
        Some(BinaryOperator::Xor) if !sides.is_empty() => {
            let right = sides.split_off(sides.len() - sides.len() / 2);
            let (left, right) = (join_sides(sides, operator), join_sides(right, operator));
            MailQuery::Xor(Box::new(left), Box::new(right))
        }
        _ => MailQuery::Or(sides),
    }
}
