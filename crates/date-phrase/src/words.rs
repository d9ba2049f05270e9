//! The words of dates in thirteen languages: names of days and months, and the small words around them.
//!
//! Facts, in tables of their own, one module a family of languages; what they mean together is the grammar's
//! matter. Every entry lists its forms, divided by `|`: of a name first the long one, then the short one (both are
//! printed), then others that people type. Comparison is by [`folded`] letters, so `Marz`, `märz` and `MÄRZ` are alike.

mod eastern;
mod germanic;
mod romance;

/// The meaning of a small word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Term {
    Now,
    Today,
    Tomorrow,
    Overmorrow,
    Yesterday,
    This,
    Next,
    Last,
    Every,
    /// "every OTHER week"
    Other,
    /// Before a date.
    On,
    /// Before a time.
    At,
    /// Before a place.
    Place,
    From,
    To,
    Until,
    /// Before when a task is to be done, and whatever says that.
    Due,
    /// Before a length.
    For,
    /// Before a distance from now.
    In,
    /// Before those who come along.
    With,
    And,
    /// Between a day and its month.
    Of,
    One,
    Half,
    /// Behind an hour.
    AndHalf,
    /// Before an hour.
    OneAndHalf,
    First,
    Second,
    Third,
    Fourth,
    /// Behind a weekday: "the first monday OF THE MONTH".
    OfMonth,
    Minute,
    Hour,
    Day,
    Week,
    Month,
    Year,
    /// Three months of a year.
    Quarter,
    /// Every two weeks.
    Biweekly,
    /// Every three months.
    Quarterly,
    /// Every day from Monday to Friday.
    Workday,
    Daily,
    Weekly,
    Monthly,
    Yearly,
    Noon,
    Midnight,
    /// Before an hour: half an hour or a quarter of it behind it, or before it.
    HalfPast,
    HalfTo,
    QuarterPast,
    QuarterTo,
    ThreeQuartersTo,
    /// After a number that is an hour.
    Clock,
    AllDay,
    Alarm,
    Before,
    High,
    Medium,
    Low,
    /// Before the number of a week.
    WeekNumber,
    /// Saturday and Sunday.
    Weekend,
    /// Behind a number: how many of what is repeated.
    Times,
    /// A part of a day, behind it or with it in one word.
    Morning,
    /// "mittag", which is no time as "noon" is one: "mittag um 1".
    Midday,
    Afternoon,
    /// And the night, where one goes out in it.
    Evening,
    /// Late or early.
    Night,
    /// Between a weekday and the number of its day.
    The,
    /// Before a month or the like: its last day.
    EndOf,
    /// Behind the city whose clock is meant.
    TimeOf,
    /// Before two times.
    Between,
    /// Behind a distance to what is past.
    Ago,
    /// Before a distance to what is past: "vor 3 Tagen".
    Since,
    /// Before what a repetition leaves out.
    Except,
    /// Days that have a name, and the same date in each year.
    ChristmasEve,
    Christmas,
    SecondChristmas,
    NewYearsEve,
    NewYear,
    /// Days that have a name, and another date in each year.
    Movable,
    /// Two to twelve, in this order; a slash divides forms of one.
    Numbers,
}

/// The words of one language.
#[derive(Debug)]
pub(crate) struct Words {
    /// Its code in ISO 639.
    pub(crate) code: &'static str,
    /// Monday first.
    pub(crate) weekdays: [&'static str; 7],
    pub(crate) months: [&'static str; 12],
    pub(crate) terms: &'static [(Term, &'static str)],
    /// A dot follows the number of a day.
    pub(crate) dotted: bool,
    /// "next" and "last" follow what they belong to.
    pub(crate) trailing: bool,
    /// How a weekday says that it is every one: "mondays", "montags".
    pub(crate) repeated: Option<&'static str>,
}

/// All languages, English first.
pub(crate) const ALL: [&Words; 13] = [
    &germanic::ENGLISH,
    &germanic::GERMAN,
    &romance::FRENCH,
    &romance::SPANISH,
    &romance::ITALIAN,
    &germanic::DUTCH,
    &romance::PORTUGUESE,
    &germanic::SWEDISH,
    &germanic::DANISH,
    &germanic::NORWEGIAN,
    &eastern::FINNISH,
    &eastern::POLISH,
    &eastern::CZECH,
];

impl Words {
    /// English, which is understood whatever the language.
    pub(crate) const ENGLISH: &'static Words = &germanic::ENGLISH;

    /// The forms of a small word, of which a language may have none.
    pub(crate) fn forms(&self, term: Term) -> impl Iterator<Item = &'static str> {
        let found = self.terms.iter().filter(move |(of, _)| *of == term);
        found.flat_map(|(_, forms)| forms.split('|'))
    }
}

/// The first form of a name, which is its long one, or the second, its short one.
pub(crate) fn form(name: &'static str, short: bool) -> &'static str {
    let mut forms = name.split('|');
    let long = forms.next().unwrap_or_default();
    if short { forms.next().unwrap_or(long) } else { long }
}

/// A text in small letters without accents, as words are compared.
pub(crate) fn folded(text: &str) -> String {
    text.chars().flat_map(letters).collect()
}

/// Is a form a word, which is folded already? A dot at the end of either says nothing.
pub(crate) fn is_form(form: &str, word: &str) -> bool {
    let word = word.strip_suffix('.').unwrap_or(word);
    let form = form.strip_suffix('.').unwrap_or(form);
    !word.is_empty() && form.chars().flat_map(letters).eq(word.chars())
}

/// What a letter is folded to.
fn letters(c: char) -> impl Iterator<Item = char> {
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
        // An accent on its own, after the letter it belongs to.
        '\u{300}'..='\u{36f}' => return Folded::None,
        _ => return Folded::Small(c.to_lowercase()),
    };
    Folded::Plain(plain.chars())
}

/// The letters that one letter is folded to.
enum Folded {
    None,
    Plain(std::str::Chars<'static>),
    Small(std::char::ToLowercase),
}

impl Iterator for Folded {
    type Item = char;

    fn next(&mut self) -> Option<char> {
        match self {
            Folded::None => None,
            Folded::Plain(letters) => letters.next(),
            Folded::Small(letters) => letters.next(),
        }
    }
}
