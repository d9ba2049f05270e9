//! The operators that notmuch reads between terms that have none.
//!
//! Terms of one field are joined by `or`, all others by `and`, and `not` negates all terms up to
//! the next operator. Separate from `notmuch_query`, which translates single terms: here only the
//! operators and parentheses change.

/// The fields whose terms notmuch joins by `or`. Words, and terms of `to:`, `body:`, `attachment:`
/// and `mimetype:`, must all match.
const JOINED_FIELDS: &[&str] = &[
    "date", "folder", "from", "id", "is", "lastmod", "mid", "path", "property", "query", "subject",
    "tag", "thread",
];

/// The maximum depth of parentheses.
const MAX_DEPTH: usize = 100;

/// Returns a query with the operators of notmuch written down. A query that has the same meaning
/// without them, or that is not balanced, stays as it is.
pub(super) fn write_operators(line: &str) -> String {
    let mut reader = OperatorReader { rest: line, is_changed: false };
    match reader.read_line(0) {
        Some(text) if reader.rest.is_empty() && reader.is_changed => text,
        _ => line.to_string(),
    }
}

/// The terms between two operators.
#[derive(Debug, Default)]
struct TermRun<'a> {
    /// The terms and groups. A field: terms of it are joined by `or`.
    terms: Vec<(Option<&'a str>, String)>,
    is_negated: bool,
    /// NEAR or ADJ is among the terms, which then keep their places.
    has_distance: bool,
}

struct OperatorReader<'a> {
    rest: &'a str,
    is_changed: bool,
}

impl<'a> OperatorReader<'a> {
    /// Reads up to a closing parenthesis or the end. `None`: the query is not balanced.
    fn read_line(&mut self, depth: usize) -> Option<String> {
        if depth > MAX_DEPTH {
            return None;
        }
        let (mut parts, mut run) = (Vec::new(), TermRun::default());
        loop {
            self.rest = self.rest.trim_start();
            if self.rest.is_empty() || self.rest.starts_with(')') {
                break;
            }
            if let Some(inner) = self.rest.strip_prefix('(') {
                self.rest = inner;
                let group = self.read_line(depth + 1)?;
                self.rest = self.rest.strip_prefix(')')?;
                run.terms.push((None, format!("({group})")));
                continue;
            }
            let (term, behind) = self.rest.split_at(term_length(self.rest)?);
            self.rest = behind;
            let is_operator =
                ["and", "or", "xor", "not"].iter().any(|name| name.eq_ignore_ascii_case(term));
            if is_operator {
                parts.extend(self.finish_run(std::mem::take(&mut run)));
                parts.push(term.to_string());
                run.is_negated = term.eq_ignore_ascii_case("not");
                continue;
            }
            run.has_distance |= ["NEAR", "ADJ"].contains(&term.split('/').next().unwrap_or(term));
            let loved = term.strip_prefix('+').filter(|rest| is_field_term(rest));
            self.is_changed |= loved.is_some();
            let term = loved.unwrap_or(term);
            run.terms.push((field_of(term), term.to_string()));
        }
        parts.extend(self.finish_run(run));
        Some(self.join_parts(&parts))
    }

    /// Joins terms and operators. In notmuch, `xor` joins its sides before `or` does; in Larder
    /// they join from left to right.
    fn join_parts(&mut self, parts: &[String]) -> String {
        let is_operator = |part: &String, name: &str| part.eq_ignore_ascii_case(name);
        let sides = parts.split(|part| is_operator(part, "or")).enumerate();
        let sides = sides.map(|(number, side)| {
            let text = side.join(" ");
            match number > 0 && side.iter().any(|part| is_operator(part, "xor")) {
                true => {
                    self.is_changed = true;
                    format!("({text})")
                }
                false => text,
            }
        });
        sides.collect::<Vec<_>>().join(" or ").trim().to_string()
    }

    /// Returns the text of the terms between two operators; `None`: there are none.
    fn finish_run(&mut self, run: TermRun<'a>) -> Option<String> {
        let mut joined: Vec<(Option<&str>, Vec<String>)> = Vec::new();
        for (field, term) in run.terms {
            let field = field.filter(|_| !run.has_distance);
            match joined.iter_mut().find(|(known, _)| field.is_some() && *known == field) {
                Some((_, terms)) => terms.push(term),
                None => joined.push((field, vec![term])),
            }
        }
        let count = joined.len();
        let groups = joined.into_iter().map(|(_, terms)| match terms.len() {
            1 => terms.concat(),
            _ => {
                self.is_changed = true;
                format!("({})", terms.join(" or "))
            }
        });
        let text = groups.collect::<Vec<_>>().join(" ");
        if run.is_negated && count > 1 {
            self.is_changed = true;
            return Some(format!("({text})"));
        }
        (count > 0).then_some(text)
    }
}

/// Returns the field of a term, if terms of it are joined by `or`.
fn field_of(term: &str) -> Option<&str> {
    let (name, _) = term.split_once(':').filter(|(_, value)| !value.is_empty())?;
    JOINED_FIELDS.contains(&name).then_some(name)
}

/// Returns whether a text begins with the name of a field and has a value.
fn is_field_term(term: &str) -> bool {
    term.split_once(':').is_some_and(|(name, value)| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase()) && !value.is_empty()
    })
}

/// Returns the length of the term that a text begins with: up to white space or a parenthesis
/// outside of quotes. The group of a field, as in `body:(a b)`, is a part of the term. `None`: the
/// group has no end.
fn term_length(text: &str) -> Option<usize> {
    let (mut is_quoted, mut depth, mut last) = (false, 0_usize, ' ');
    for (at, c) in text.char_indices() {
        match c {
            '"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            '(' if depth > 0 || last == ':' => depth += 1,
            ')' if depth > 0 => depth -= 1,
            _ if depth > 0 => {}
            '(' | ')' => return Some(at),
            _ if c.is_whitespace() => return Some(at),
            _ => {}
        }
        last = c;
    }
    (depth == 0).then_some(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The meanings are those of notmuch 0.37.
    #[test]
    fn operators_of_notmuch_are_written_down() {
        for (line, expect) in [
            ("tag:a tag:b", "(tag:a or tag:b)"),
            ("tag:a walrus tag:b", "(tag:a or tag:b) walrus"),
            ("from:a tag:x from:b tag:y", "(from:a or from:b) (tag:x or tag:y)"),
            ("tag:a is:b", "tag:a is:b"),
            ("to:a to:b body:c body:d", "to:a to:b body:c body:d"),
            ("mimetype:a mimetype:b attachment:c attachment:d", ""),
            ("tag:a and tag:b", "tag:a and tag:b"),
            ("tag:a AND tag:b tag:c", "tag:a AND (tag:b or tag:c)"),
            ("tag:a or tag:b tag:c", "tag:a or (tag:b or tag:c)"),
            ("tag:a (tag:b)", "tag:a (tag:b)"),
            ("(tag:a tag:b) walrus", "((tag:a or tag:b)) walrus"),
            ("tag:a -tag:b -tag:c", "tag:a -tag:b -tag:c"),
            ("tag:a +tag:b", "(tag:a or tag:b)"),
            ("walrus +tag:b +c", "walrus tag:b +c"),
            ("+to:a +http://b", "to:a http://b"),
            ("a or b xor c", "a or (b xor c)"),
            ("a xor b or c", "a xor b or c"),
            ("a OR not b c XOR d or e", "a or (not (b c) XOR d) or e"),
            ("not tag:a tag:b", "not (tag:a or tag:b)"),
            ("walrus not a b", "walrus not (a b)"),
            ("not tag:a tag:b walrus", "not ((tag:a or tag:b) walrus)"),
            ("not a and b", "not a and b"),
            ("not a (b)", "not (a (b))"),
            ("subject:a NEAR subject:b", "subject:a NEAR subject:b"),
            ("subject:\"a b\" subject:/c/", "(subject:\"a b\" or subject:/c/)"),
            ("subject:(a b) body:(c tag:d tag:e)", "subject:(a b) body:(c tag:d tag:e)"),
            ("query:a query:b", "(query:a or query:b)"),
            ("tag:a tag:b)", "tag:a tag:b)"),
            ("(tag:a tag:b", "(tag:a tag:b"),
            ("body:(a tag:b tag:c", "body:(a tag:b tag:c"),
            ("tag: tag:", "tag: tag:"),
            ("", ""),
        ] {
            let expect = if expect.is_empty() { line } else { expect };
            assert_eq!(write_operators(line), expect, "{line}");
        }
        let nested = format!("{}tag:a tag:b{}", "(".repeat(300), ")".repeat(300));
        assert_eq!(write_operators(&nested), nested);
    }
}
