//! Folding of letters: words are compared in lower case and without accents, so that `Marz`, `märz`
//! and `MÄRZ` are equal.
//!
//! Separate from the vocabularies because user input and vocabulary forms are folded alike.

/// Returns the text in lower case and without accents.
pub(crate) fn fold(text: &str) -> String {
    text.chars().flat_map(fold_letter).collect()
}

/// Returns whether a vocabulary form equals a word that is folded already. A dot at the end of
/// either is ignored.
pub(crate) fn is_form(form: &str, word: &str) -> bool {
    let word = word.strip_suffix('.').unwrap_or(word);
    let form = form.strip_suffix('.').unwrap_or(form);
    !word.is_empty() && form.chars().flat_map(fold_letter).eq(word.chars())
}

/// Returns the letters that one letter is folded to.
fn fold_letter(c: char) -> impl Iterator<Item = char> {
    let plain = match c {
        'à'..='å' | 'À'..='Å' | 'ą' | 'Ą' => "a",
        'æ' | 'Æ' => "ae",
        'ç' | 'Ç' | 'ć' | 'Ć' | 'č' | 'Č' => "c",
        'ď' | 'Ď' => "d",
        'è'..='ë' | 'È'..='Ë' | 'ę' | 'Ę' | 'ě' | 'Ě' => "e",
        'ì'..='ï' | 'Ì'..='Ï' => "i",
        'ł' | 'Ł' => "l",
        'ñ' | 'Ñ' | 'ń' | 'Ń' | 'ň' | 'Ň' => "n",
        'ò'..='ö' | 'Ò'..='Ö' | 'ø' | 'Ø' => "o",
        'ř' | 'Ř' => "r",
        'ś' | 'Ś' | 'š' | 'Š' => "s",
        'ß' | 'ẞ' => "ss",
        'ť' | 'Ť' => "t",
        'ù'..='ü' | 'Ù'..='Ü' | 'ů' | 'Ů' => "u",
        'ý' | 'ÿ' | 'Ý' => "y",
        'ź' | 'Ź' | 'ż' | 'Ż' | 'ž' | 'Ž' => "z",
        '’' => "'",
        // A combining accent, after the letter that it belongs to.
        '\u{300}'..='\u{36f}' => return FoldedLetters::None,
        _ => return FoldedLetters::LowerCase(c.to_lowercase()),
    };
    FoldedLetters::Plain(plain.chars())
}

/// The letters that one letter is folded to.
enum FoldedLetters {
    None,
    Plain(std::str::Chars<'static>),
    LowerCase(std::char::ToLowercase),
}

impl Iterator for FoldedLetters {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        match self {
            FoldedLetters::None => None,
            FoldedLetters::Plain(letters) => letters.next(),
            FoldedLetters::LowerCase(letters) => letters.next(),
        }
    }
}
