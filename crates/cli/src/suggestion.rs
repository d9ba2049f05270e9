//! The known word nearest to a mistyped one. A suggestion that is not near misleads, so there is
//! one rule for all messages.

/// Returns the known word that a mistyped word probably stands for: at most one edit for every
/// three letters, or a word that begins with what was typed.
pub(crate) fn find_nearest<'a>(
    typed: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let typed = typed.to_lowercase();
    let letters = typed.chars().count();
    let distance = |word: &str| match letters >= 2 && word.starts_with(&typed) {
        true => 0,
        false => strsim::damerau_levenshtein(word, &typed),
    };
    let nearest = known.into_iter().map(|word| (distance(word), word)).min();
    nearest.filter(|(distance, _)| distance * 3 <= letters).map(|(_, word)| word)
}

#[cfg(test)]
mod tests {
    use super::find_nearest;

    #[test]
    fn only_near_words_are_suggested() {
        let known = ["find", "import", "export", "undo", "restore", "remove", "watch"];
        let check = |typed: &str, expect: Option<&str>| {
            assert_eq!(find_nearest(typed, known), expect, "{typed}");
        };
        check("fnd", Some("find"));
        check("imprt", Some("import"));
        check("Find", Some("find"));
        check("exp", Some("export"));
        check("redo", None);
        check("search", None);
        check("x", None);
        check("", None);
    }
}
