//! Labels whose messages are hidden, unless a query names the label.
//!
//! Separate from the parser: which labels hide messages is a setting of the user, and no part of a
//! line.

use super::{MailQuery, TextMatch};

impl MailQuery {
    /// Returns the query without the messages that have one of these labels. A label that the query
    /// names hides none.
    #[must_use]
    pub fn without_labels(self, labels: &[String]) -> MailQuery {
        let hidden = labels.iter().filter(|label| !self.names_label(label));
        let tests: Vec<MailQuery> =
            hidden.map(|label| MailQuery::Label(TextMatch::Words(label.clone()))).collect();
        if tests.is_empty() {
            return self;
        }
        MailQuery::And(vec![self, MailQuery::Not(Box::new(MailQuery::Or(tests)))])
    }

    /// Returns whether the query has a test of this label.
    fn names_label(&self, label: &str) -> bool {
        match self {
            MailQuery::Label(TextMatch::Words(name)) => name == label,
            MailQuery::Label(TextMatch::Prefix(start)) => label.starts_with(start.as_str()),
            MailQuery::Label(TextMatch::Suffix(end)) => label.ends_with(end.as_str()),
            MailQuery::Label(TextMatch::Infix(part)) => label.contains(part.as_str()),
            MailQuery::And(all) | MailQuery::Or(all) => {
                all.iter().any(|query| query.names_label(label))
            }
            MailQuery::Xor(left, right) => left.names_label(label) || right.names_label(label),
            MailQuery::Not(query) | MailQuery::ThreadOf(query) | MailQuery::Existing(query) => {
                query.names_label(label)
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{MailQuery, MailQueryContext, UserLocale};

    #[test]
    fn messages_with_hidden_labels_are_left_out_unless_the_query_names_them() {
        let hidden = ["spam".to_string(), "deleted".to_string()];
        let context = MailQueryContext::from(&UserLocale::default());
        for (line, names) in [
            ("walrus", &["spam", "deleted"][..]),
            ("walrus label:spam", &["deleted"]),
            ("not (tag:spam or is:deleted)", &[]),
            ("label:Spam thread:{label:deleted}", &["spam"]),
            ("label:sp*", &["deleted"]),
            ("label:*pam* or is:*ted", &[]),
            ("label:/spam/ or label:", &["spam", "deleted"]),
        ] {
            let query = MailQuery::parse(line, &context).expect(line);
            let before = query.to_string();
            let after = query.without_labels(&hidden).to_string();
            match names {
                [] => assert_eq!(after, before),
                _ => {
                    let rest = after.strip_prefix(&format!("(and {before} "));
                    let rest = rest.unwrap_or_else(|| panic!("{after}"));
                    assert!(names.iter().all(|name| rest.contains(name)), "{after}");
                    assert_eq!(rest.matches("(label").count(), names.len(), "{after}");
                }
            }
        }
    }
}
