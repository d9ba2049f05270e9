//! The sub-expressions of a query by number: equal ones have the same number.
//!
//! A query may name the same term a thousand times. With numbers the duplicates in a list are
//! dropped, and the predicate tests a sub-expression that stands in several lists once for each
//! item. Separate from `query`, whose values say nothing about each other.

use crate::query::Query;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher as _;

/// The number of a sub-expression in its query.
pub(crate) type ExpressionNumber = usize;

/// A query whose sub-expressions are numbered. The lists have no duplicates.
pub(crate) struct NumberedQuery<'q> {
    pub(crate) query: &'q Query,
    pub(crate) number: ExpressionNumber,
    /// The parts of a list or of a negation.
    pub(crate) parts: Vec<NumberedQuery<'q>>,
}

/// The parts of a sub-expression that are equal in equal ones, besides the value of a test.
#[derive(PartialEq, Eq, Hash)]
enum ExpressionKey {
    /// The hash of the text of a test.
    Test(u64),
    And(Vec<ExpressionNumber>),
    Or(Vec<ExpressionNumber>),
    Not(ExpressionNumber),
}

/// The numbers of the sub-expressions of one query.
#[derive(Default)]
pub(crate) struct SubExpressions<'q> {
    /// The queries of one key: tests with equal hashes may differ.
    numbers: HashMap<ExpressionKey, Vec<(&'q Query, ExpressionNumber)>>,
    /// By number: in how many different lists and negations the sub-expression stands.
    uses: Vec<usize>,
}

impl<'q> SubExpressions<'q> {
    /// Numbers a query and its parts.
    pub(crate) fn number(&mut self, query: &'q Query) -> NumberedQuery<'q> {
        match query {
            Query::And(_) | Query::Or(_) | Query::Not(_) => self.number_part(query),
            // A test alone is equal to no other: its text is not needed.
            _ => NumberedQuery { query, number: 0, parts: Vec::new() },
        }
    }

    fn number_part(&mut self, query: &'q Query) -> NumberedQuery<'q> {
        let (key, parts) = match query {
            Query::And(all) => {
                let parts = self.number_list(all);
                (ExpressionKey::And(parts.iter().map(|part| part.number).collect()), parts)
            }
            Query::Or(any) => {
                let parts = self.number_list(any);
                (ExpressionKey::Or(parts.iter().map(|part| part.number).collect()), parts)
            }
            Query::Not(negated) => {
                let part = self.number_part(negated);
                (ExpressionKey::Not(part.number), vec![part])
            }
            test => {
                let hash = self.numbers.hasher().hash_one(test.to_string());
                (ExpressionKey::Test(hash), Vec::new())
            }
        };
        let is_test = matches!(key, ExpressionKey::Test(_));
        let known = self.numbers.entry(key).or_default();
        // Lists with equal keys are equal.
        let equal = known.iter().find(|(other, _)| !is_test || *other == query);
        let number = match equal {
            Some((_, number)) => *number,
            None => {
                let number = self.uses.len();
                known.push((query, number));
                self.uses.push(0);
                for part in &parts {
                    self.uses[part.number] += 1;
                }
                number
            }
        };
        NumberedQuery { query, number, parts }
    }

    fn number_list(&mut self, list: &'q [Query]) -> Vec<NumberedQuery<'q>> {
        let mut parts: Vec<NumberedQuery<'q>> = Vec::with_capacity(list.len());
        let mut seen = HashSet::new();
        for query in list {
            let part = self.number_part(query);
            if seen.insert(part.number) {
                parts.push(part);
            }
        }
        parts
    }

    /// Returns whether a sub-expression stands in several lists.
    pub(crate) fn is_shared(&self, number: ExpressionNumber) -> bool {
        self.uses.get(number).is_some_and(|uses| *uses > 1)
    }
}

impl Query {
    /// Drops the duplicates in the lists of the query.
    pub(crate) fn without_duplicates(&self) -> Cow<'_, Query> {
        match self {
            Query::And(_) | Query::Or(_) | Query::Not(_) => {
                Cow::Owned(SubExpressions::default().number(self).to_query())
            }
            _ => Cow::Borrowed(self),
        }
    }
}

impl NumberedQuery<'_> {
    fn to_query(&self) -> Query {
        let parts = || self.parts.iter().map(NumberedQuery::to_query);
        match self.query {
            Query::And(_) => Query::And(parts().collect()),
            Query::Or(_) => Query::Or(parts().collect()),
            Query::Not(_) => match parts().next() {
                Some(negated) => Query::Not(Box::new(negated)),
                None => self.query.clone(),
            },
            test => test.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let query = Query::parse_sexp(text).unwrap();
        assert_eq!(query.without_duplicates().to_string(), expected);
    }

    #[test]
    fn equal_parts_of_a_list_are_dropped_at_every_level() {
        let (a, b) = (r#"(contains "email" "a")"#, r#"(contains "email" "b")"#);
        check(&format!("(or {a} {b} {a} {a})"), &format!("(or {a} {b})"));
        check(&format!("(not (and {a} {a}))"), &format!("(not (and {a}))"));
        check(
            &format!("(or (and {a} {b}) (and {b} {a}) (and {a} {b} {a}))"),
            &format!("(or (and {a} {b}) (and {b} {a}))"),
        );
    }

    #[test]
    fn a_sub_expression_in_several_lists_is_shared() {
        let (a, b) = (r#"(contains "email" "a")"#, r#"(contains "email" "b")"#);
        let text = format!("(or (and {a} {b}) (and {b} (not {a})) (and {b} (not {a}) #t))");
        let query = Query::parse_sexp(&text).unwrap();
        let mut expressions = SubExpressions::default();
        let numbered = expressions.number(&query);
        let [first, second, third] = &numbered.parts[..] else { panic!("three parts") };
        let shared = |part: &NumberedQuery<'_>| expressions.is_shared(part.number);
        assert!(shared(&first.parts[0]) && shared(&first.parts[1]));
        assert!(shared(&second.parts[1]), "the negation stands in two lists");
        assert_eq!(second.parts[1].number, third.parts[1].number);
        assert!(!shared(&third.parts[2]) && !shared(first) && !shared(&numbered));
    }
}
