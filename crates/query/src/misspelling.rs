//! The similarity of a word to a known name, for hints.

/// The number of changed letters up to which a word may be the misspelling of another.
pub(crate) const MAX_MISSPELLING: usize = 2;

/// Returns the number of letters to add, remove or replace in one word to get the other one.
pub(crate) fn count_changes(word: &str, name: &str) -> usize {
    // A long word is none of the names.
    let word: Vec<char> = word.chars().take(32).flat_map(char::to_lowercase).collect();
    let mut row: Vec<usize> = (0..=word.len()).collect();
    for (line, letter) in name.chars().flat_map(char::to_lowercase).enumerate() {
        let mut next = vec![line + 1];
        for ((above, pair), other) in row.iter().skip(1).zip(&row).zip(&word) {
            let left = next.last().copied().unwrap_or_default();
            let replaced = pair + usize::from(*other != letter);
            next.push(replaced.min(above + 1).min(left + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}

/// Returns the name that a text is most likely a misspelling of.
pub(crate) fn nearest_name<'n>(text: &str, names: &[&'n str]) -> Option<&'n str> {
    find_nearest(text, names, |name| MAX_MISSPELLING.min(name.len() / 2))
}

/// Returns the host name that a text is most likely meant for: another top-level domain is more
/// than a misspelling.
pub(crate) fn nearest_host<'n>(text: &str, names: &[&'n str]) -> Option<&'n str> {
    let most = |name: &str| MAX_MISSPELLING.min(name.len() / 2).max(name.len() / 6);
    find_nearest(text, names, most)
}

/// Returns the nearest name with at most so many changes as a function says for the name.
fn find_nearest<'n>(
    text: &str,
    names: &[&'n str],
    most: impl Fn(&str) -> usize,
) -> Option<&'n str> {
    let changes = names.iter().map(|name| (count_changes(text, name), *name));
    let near = changes.filter(|(changes, name)| *changes <= most(name));
    near.min().map(|(_, name)| name)
}

/// Names that other mail programs have for flags, and the names here.
const FLAG_SYNONYMS: [(&str, &str); 4] =
    [("read", "seen"), ("starred", "flagged"), ("answered", "replied"), ("deleted", "trashed")];

/// Returns the flag, or label, that a text most likely means.
pub(crate) fn nearest_flag<'n>(text: &str, names: &[&'n str]) -> Option<&'n str> {
    let synonym = FLAG_SYNONYMS.iter().find(|(other, _)| other.eq_ignore_ascii_case(text));
    nearest_name(synonym.map_or(text, |(_, name)| name), names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_domain_is_near_a_long_host_name() {
        let names = ["dev.lists.example.org", "sea.example.org"];
        assert_eq!(nearest_host("dev.lists.example.com", &names), Some(names[0]));
        assert_eq!(nearest_host("sea.example.com", &names), None);
        assert_eq!(nearest_host("saa.example.org", &names), Some(names[1]));
        assert_eq!(nearest_name("dev.lists.example.com", &names), None);
    }
}
