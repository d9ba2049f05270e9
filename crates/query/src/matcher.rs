//! What a question means for an item: the plain test of one parsed card or component. The planner's answer is right
//! when it is this one's.
//!
//! A [`Matcher`] is made once a question, and then tests many items: texts are folded, patterns compiled and
//! numbers read when it is made, and of an item only the values are decoded that the question looks at. As the fields of
//! contacts are not those of what is in calendars, it is made ready for each. What is asked of an item is in `item`.
//!
//! The functions mean what they mean to evolution-data-server's own evaluator in memory (`e-book-backend-sexp.c`),
//! with its SQL evaluator's folding on both sides; `tests/eds_functions.rs` lists where they differ on purpose.

use crate::item::{Item, KeptItem, Values};
use crate::query::{Comparison, Number, Op, Query, Subject, Test};
use crate::time::{Stamp, TimeTest};
use larder_format::contact::Contact;
use larder_format::decode::{split_structured, unescape_text};
use larder_format::field::{CALENDAR_FIELDS, FIELDS, Field, Kind, calendar_field, field};
use larder_format::fold::{digits, fold, is_cjk, words};
use larder_format::phone::{Match, Number as PhoneNumber, looks_like_number};
use larder_format::property::Property;
use larder_store::{Family, ItemHead, Kept, Reader, Verdict, Window, can_keep};
use regex::Regex;
use std::cell::Cell;
use std::collections::HashSet;
use std::sync::{LazyLock, OnceLock};

/// Fewer digits than this are no part of a phone number, just a number.
pub(crate) const PHONE_DIGITS: usize = 3;
/// A pattern's program may have so many bytes, and so may the states found while it runs.
const REGEX_SIZE: usize = 1 << 20;
/// A pattern may have so many bytes, and nest so deep.
const REGEX_LENGTH: usize = 4096;
const REGEX_DEPTH: u32 = 64;

/// A question made ready to be put to many items.
#[derive(Debug, Clone)]
pub struct Matcher {
    contacts: OfFamily,
    calendar: OfFamily,
    anew: bool,
}

/// The question as it is put to items of one family.
#[derive(Debug, Clone)]
struct OfFamily {
    node: Node,
    /// The fields that it looks at; `None`: it looks at whole items.
    fields: Option<Vec<&'static Field>>,
    /// It looks at UIDs.
    uids: bool,
}

#[derive(Debug, Clone)]
enum Node {
    Constant(bool),
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>),
    Word(Needle, Family),
    Uids(HashSet<String>),
    Uid(Compare),
    Fields(Fields, Compare),
    Property(String, Compare),
    Any(&'static [&'static Field], Compare),
    Kind(larder_store::Kind),
    In(Window),
    Stamp(Stamp, Window),
    Number(Number, Comparison, i64),
}

/// The fields that a test of one field looks at.
#[derive(Debug, Clone)]
struct Fields {
    of: &'static [&'static Field],
    /// Is no value as good as an empty one? Not so where evolution-data-server has a list.
    or_empty: bool,
}

impl Matcher {
    /// Makes a question ready. A pattern that cannot be compiled, which no parser lets through, matches nothing.
    #[must_use]
    pub fn new(query: &Query) -> Matcher {
        let of = |family| {
            let node = Node::of(query, family);
            let mut fields = Vec::new();
            let fields = node.looks_at(&mut fields).then_some(fields);
            let uids = node.looks_at_uids();
            OfFamily { node, fields, uids }
        };
        Matcher { contacts: of(Family::Contacts), calendar: of(Family::Calendar), anew: false }
    }

    /// Does the card answer the question, kept under this UID? A question about UIDs is about those under which
    /// items are kept, and about those that their cards name.
    #[must_use]
    pub fn matches(&self, uid: &str, card: &Contact<'_>) -> bool {
        self.contacts.node.matches(uid, card)
    }

    /// Does the item answer the question?
    #[must_use]
    pub fn matches_item(&self, item: &Item<'_>) -> bool {
        self.of(item.head).node.matches(&item.head.uid, item)
    }

    /// Does what is kept of an item answer the question? `None`: it does not tell, and the item has to be asked. Where there is a
    /// doubt, it is said.
    pub(crate) fn matches_kept(
        &self,
        reader: &Reader,
        head: &ItemHead,
        kept: &Kept<'_>,
        doubt: &Cell<bool>,
    ) -> Option<bool> {
        let of = self.of(head);
        let fields = of.fields.as_ref().filter(|_| !(of.uids && head.derived_uid))?;
        let item = KeptItem { reader, head, kept: *kept, doubt };
        fields.iter().all(|field| kept.holds(field)).then(|| of.node.matches(&head.uid, &item))
    }

    /// Can what is kept of an item answer the question?
    pub(crate) fn asks_what_is_kept(&self) -> bool {
        !self.anew && (self.contacts.fields.is_some() || self.calendar.fields.is_some())
    }

    /// The same question, put to items as they are, and not to anything that is derived from them.
    pub(crate) fn by_cards(self) -> Matcher {
        let whole = |of| OfFamily { fields: None, ..of };
        Matcher { contacts: whole(self.contacts), calendar: whole(self.calendar), anew: true }
    }

    /// Is it put to nothing that is derived?
    pub(crate) fn is_anew(&self) -> bool {
        self.anew
    }

    fn of(&self, head: &ItemHead) -> &OfFamily {
        match head.kind.family() {
            Family::Calendar => &self.calendar,
            _ => &self.contacts,
        }
    }
}

impl Node {
    fn of(query: &Query, family: Family) -> Node {
        let all = |of: &[Query]| of.iter().map(|query| Node::of(query, family)).collect();
        match query {
            Query::All => Node::Constant(true),
            Query::And(of) => Node::And(all(of)),
            Query::Or(of) => Node::Or(all(of)),
            Query::Not(query) => Node::Not(Box::new(Node::of(query, family))),
            Query::Word(text) => Node::Word(Needle::of(text), family),
            Query::Uids(uids) => Node::Uids(uids.iter().cloned().collect()),
            Query::Test(test) => Node::test(test, family),
            Query::Kind(kind) if kind.family() == family => Node::Kind(*kind),
            Query::Time(_) | Query::Number(..) | Query::Kind(_) if family != Family::Calendar => {
                Node::Constant(false)
            }
            Query::Kind(_) => Node::Constant(false),
            Query::Time(TimeTest::In(window)) => Node::In(window.clone()),
            Query::Time(TimeTest::Stamp(stamp, window)) => Node::Stamp(*stamp, window.clone()),
            Query::Number(number, comparison, value) => {
                Node::Number(number.clone(), *comparison, *value)
            }
        }
    }

    fn test(test: &Test, family: Family) -> Node {
        let Some(compare) = Compare::of(test) else { return Node::Constant(false) };
        match &test.subject {
            Subject::Nothing => Node::Constant(false),
            Subject::Field(Field { kind: Kind::Uid, .. }) => Node::Uid(compare),
            Subject::Field(field) => match looked_at(field, family) {
                [] => Node::Constant(false),
                of => Node::Fields(Fields { of, or_empty: !is_list(field) }, compare),
            },
            Subject::Property(name) => Node::Property(name.clone(), compare),
            // Some field or other is missing in every card.
            Subject::Any if compare.passes("") => Node::Constant(true),
            Subject::Any => Node::Any(any_fields(family), compare),
        }
    }

    /// Adds the fields that it looks at. False: it looks at more.
    fn looks_at(&self, fields: &mut Vec<&'static Field>) -> bool {
        let of: &[&'static Field] = match self {
            Node::Constant(_) | Node::Uids(_) | Node::Uid(_) | Node::Kind(_) | Node::In(_) => &[],
            Node::Number(Number::Occurrences(_) | Number::Constant(_), ..) => &[],
            Node::And(of) | Node::Or(of) => return of.iter().all(|node| node.looks_at(fields)),
            Node::Not(node) => return node.looks_at(fields),
            Node::Word(_, family) => word_fields(*family),
            Node::Fields(Fields { of, .. }, _) => of,
            Node::Number(Number::Field(field), ..) => {
                fields.push(field);
                return can_keep(field);
            }
            Node::Property(..) | Node::Any(..) | Node::Stamp(..) => return false,
        };
        fields.extend(of);
        of.iter().all(|field| can_keep(field))
    }

    fn looks_at_uids(&self) -> bool {
        match self {
            Node::Uids(_) | Node::Uid(_) => true,
            Node::And(of) | Node::Or(of) => of.iter().any(Node::looks_at_uids),
            Node::Not(node) => node.looks_at_uids(),
            _ => false,
        }
    }

    fn matches(&self, uid: &str, item: &impl Values) -> bool {
        match self {
            Node::Constant(answer) => *answer,
            Node::And(all) => all.iter().all(|node| node.matches(uid, item)),
            Node::Or(any) => any.iter().any(|node| node.matches(uid, item)),
            Node::Not(node) => !node.matches(uid, item),
            Node::Word(needle, family) => needle.matches(item, *family),
            Node::Uids(uids) => {
                uids.contains(uid) || item.uid().is_some_and(|uid| uids.contains(&uid))
            }
            Node::Uid(compare) => {
                compare.passes(uid) || item.uid().is_some_and(|uid| compare.passes(&uid))
            }
            Node::Fields(fields, compare) => fields.pass(compare, item),
            Node::Property(name, compare) => property_passes(name, compare, item.properties()),
            Node::Any(fields, compare) => fields.iter().any(|field| {
                item.any(field, &mut |value| compare.passes_in(field, value)).unwrap_or_default()
            }),
            Node::Kind(kind) => item.kind() == *kind,
            Node::In(window) => item.times().is_some_and(|times| {
                let verdict = times.meets(window);
                if verdict == Verdict::Unknown {
                    item.doubt();
                }
                verdict == Verdict::Yes
            }),
            Node::Stamp(stamp, window) => item
                .stamp(*stamp, &window.local)
                .is_some_and(|at| window.from <= at && at < window.to),
            Node::Number(number, comparison, value) => {
                comparison.holds(number_of(number, item), *value)
            }
        }
    }
}

/// The number that an item has; -1 where it has none.
fn number_of(number: &Number, item: &impl Values) -> i64 {
    match number {
        Number::Constant(number) => *number,
        Number::Field(field) => {
            let mut found = -1;
            item.any(field, &mut |value| {
                found = value.trim().parse().unwrap_or(-1);
                true
            });
            found
        }
        Number::Occurrences(None) => -1,
        Number::Occurrences(Some(window)) => item.times().map_or(0, |times| {
            let (count, whole) = times.count(window);
            if !whole {
                item.doubt();
            }
            count as i64
        }),
    }
}

impl Fields {
    fn pass(&self, compare: &Compare, item: &impl Values) -> bool {
        self.of.iter().any(|field| {
            let passes = item.any(field, &mut |value| compare.passes_in(field, value));
            passes.unwrap_or_else(|| self.or_empty && compare.passes(""))
        })
    }
}

/// What any-field looks at: no UID and no time of revision, which nobody means; pictures and keys are not
/// indexed, and `1` is no word for a list.
pub(crate) fn any_fields(family: Family) -> &'static [&'static Field] {
    let all = |fields: &'static [Field]| -> Vec<&'static Field> {
        let meant = |field: &&Field| {
            field.indexed && !matches!(field.kind, Kind::Uid | Kind::Flag) && field.name != "rev"
        };
        fields.iter().filter(meant).collect()
    };
    static CONTACTS: OnceLock<Vec<&'static Field>> = OnceLock::new();
    static CALENDAR: OnceLock<Vec<&'static Field>> = OnceLock::new();
    match family {
        Family::Calendar => CALENDAR.get_or_init(|| all(CALENDAR_FIELDS)),
        _ => CONTACTS.get_or_init(|| all(FIELDS)),
    }
}

/// Where free words look.
pub(crate) fn word_fields(family: Family) -> &'static [&'static Field] {
    let all = |fields: &'static [Field]| -> Vec<&'static Field> {
        fields.iter().filter(|field| field.words).collect()
    };
    static CONTACTS: OnceLock<Vec<&'static Field>> = OnceLock::new();
    static CALENDAR: OnceLock<Vec<&'static Field>> = OnceLock::new();
    match family {
        Family::Calendar => CALENDAR.get_or_init(|| all(CALENDAR_FIELDS)),
        _ => CONTACTS.get_or_init(|| all(FIELDS)),
    }
}

/// The fields of a family that a test of this field looks at: of the full name also the parts of the name and the
/// nicknames; and where a field of contacts is asked for that has a namesake in calendars, that one.
pub(crate) fn looked_at(one: &'static Field, family: Family) -> &'static [&'static Field] {
    static NAMES: LazyLock<Vec<&'static Field>> = LazyLock::new(|| {
        ["full_name", "family_name", "given_name", "nickname"]
            .into_iter()
            .filter_map(field)
            .collect()
    });
    static EACH: LazyLock<Vec<(u16, [&'static Field; 1])>> = LazyLock::new(|| {
        FIELDS.iter().chain(CALENDAR_FIELDS).map(|field| (field.id, [field])).collect()
    });
    let is_of_calendar = calendar_field(one.name).is_some_and(|of| of.id == one.id);
    let one = match (family, is_of_calendar) {
        (Family::Calendar, false) => calendar_field(one.name),
        (Family::Contacts, true) => None,
        _ => Some(one),
    };
    let Some(one) = one else { return &[] };
    if one.name == "full_name" {
        return &NAMES;
    }
    EACH.iter().find(|(id, _)| *id == one.id).map_or(&[], |(_, one)| one)
}

/// Has evolution-data-server a list of values here? Then a missing value is none; else it is an empty text.
fn is_list(field: &Field) -> bool {
    let lists = ["full_name", "email", "phone", "address", "categories", "photo", "logo"];
    lists.contains(&field.name) || field.name.starts_with("im")
}

/// The values of a property that is no field: its components, and those of all properties of that name.
fn property_passes(name: &str, compare: &Compare, properties: &[Property<'_>]) -> bool {
    let mut of_name = properties.iter().filter(|property| property.is(name));
    let separator = if name.eq_ignore_ascii_case("CATEGORIES") { ',' } else { ';' };
    let first = |text: &str| {
        split_structured(text, separator).first().is_some_and(|value| !value.trim().is_empty())
    };
    let pass = |text: &str| {
        // Also the whole, as people see it: `1;2` may be no list at all.
        compare.passes(unescape_text(text).trim())
            || split_structured(text, separator).iter().any(|value| compare.passes(value.trim()))
    };
    match compare {
        Compare::FirstExists => of_name.next().is_some_and(|property| first(&property.text())),
        _ => of_name.any(|property| pass(&property.text())),
    }
}

/// How a value is compared, with what made ready.
#[derive(Debug, Clone)]
enum Compare {
    /// It is there and not empty.
    Exists,
    /// The first component of the first property of the name is not empty.
    FirstExists,
    /// As it is, not folded: a UID.
    Raw(Op, String),
    /// These in their order, folded; or these digits, of a phone number.
    Contains(Vec<String>, Option<String>),
    Is(String),
    BeginsWith(String),
    EndsWith(String),
    Includes(String),
    Normal(Regex),
    Unfolded(Regex),
    /// Such a number, that agrees so well; the value is read in this region.
    Phone(Dialled, Match),
}

impl Compare {
    /// `None`: nothing can pass.
    fn of(test: &Test) -> Option<Compare> {
        if let Subject::Field(Field { kind: Kind::Uid, .. }) = &test.subject
            && matches!(test.op, Op::Contains | Op::Is | Op::BeginsWith | Op::EndsWith)
        {
            return Some(Compare::Raw(test.op, test.text.clone()));
        }
        let folded = || fold(&test.text).into_owned();
        let phone = |wanted: Match| {
            let (text, region) = (test.text.clone(), test.region.clone());
            Compare::Phone(Dialled { text, region, number: OnceLock::new() }, wanted)
        };
        Some(match test.op {
            Op::Contains => Compare::Contains(pieces(&folded()), phone_digits(&test.text)),
            Op::Is => Compare::Is(folded()),
            Op::BeginsWith => Compare::BeginsWith(folded()),
            Op::EndsWith => Compare::EndsWith(folded()),
            Op::Includes => Compare::Includes(folded()),
            Op::Exists => Compare::Exists,
            Op::ExistsVcard => Compare::FirstExists,
            Op::RegexNormal => Compare::Normal(pattern(&test.text).ok()?),
            Op::RegexRaw => Compare::Unfolded(pattern(&test.text).ok()?),
            Op::EqPhone => phone(Match::Exact),
            Op::EqPhoneNational => phone(Match::National),
            Op::EqPhoneShort => phone(Match::Short),
        })
    }

    /// Does a value of this field pass?
    fn passes_in(&self, field: &Field, value: &str) -> bool {
        match self {
            Compare::Contains(_, Some(number)) if field.kind == Kind::Phone => {
                self.passes(value) || digits(value).contains(number)
            }
            _ => self.passes(value),
        }
    }

    fn passes(&self, value: &str) -> bool {
        match self {
            Compare::Exists | Compare::FirstExists => !value.is_empty(),
            Compare::Raw(Op::Contains, text) => value.contains(text.as_str()),
            Compare::Raw(Op::BeginsWith, text) => value.starts_with(text.as_str()),
            Compare::Raw(Op::EndsWith, text) => value.ends_with(text.as_str()),
            Compare::Raw(_, text) => value == text,
            Compare::Contains(pieces, _) if is_plain(value) => in_order(value, pieces, find_plain),
            Compare::Contains(pieces, _) => contains_pieces(&fold(value), pieces),
            Compare::Is(text) if is_plain(value) => value.eq_ignore_ascii_case(text),
            Compare::Is(text) => fold(value) == text.as_str(),
            Compare::BeginsWith(text) if is_plain(value) => {
                value.get(..text.len()).is_some_and(|start| start.eq_ignore_ascii_case(text))
            }
            Compare::BeginsWith(text) => fold(value).starts_with(text.as_str()),
            Compare::EndsWith(text) if is_plain(value) => value
                .len()
                .checked_sub(text.len())
                .and_then(|start| value.get(start..))
                .is_some_and(|end| end.eq_ignore_ascii_case(text)),
            Compare::EndsWith(text) => fold(value).ends_with(text.as_str()),
            Compare::Includes(text) => fold(value).contains(text.as_str()),
            Compare::Normal(pattern) => pattern.is_match(&fold(value)),
            Compare::Unfolded(pattern) => pattern.is_match(value),
            Compare::Phone(dialled, wanted) => dialled.agrees(value, *wanted),
        }
    }
}

/// A number that is looked for. It is read when a value is there to compare: the numbering plans take longer to load
/// than a whole answer may.
#[derive(Debug, Clone)]
struct Dialled {
    text: String,
    /// Where numbers are dialled, this one and the values.
    region: Option<String>,
    number: OnceLock<Option<PhoneNumber>>,
}

impl Dialled {
    fn agrees(&self, value: &str, wanted: Match) -> bool {
        let read = |text: &str| PhoneNumber::parse(text, self.region.as_deref());
        let Some(number) = self.number.get_or_init(|| read(&self.text)) else { return false };
        read(value).is_some_and(|found| found.compare(number) >= wanted)
    }
}

/// Compiles a pattern, within bounds.
///
/// It is the `regex` crate's language, not all of PCRE's: no pattern of libebook's own looks around or back, and
/// without those a match takes time linear in the text, whoever wrote the pattern. PCRE's backtracking would
/// have to be stopped by a budget in mid-card, and a live view would then miss a contact now and then.
pub(crate) fn pattern(text: &str) -> Result<Regex, String> {
    if text.len() > REGEX_LENGTH {
        return Err(format!("it has more than {REGEX_LENGTH} bytes"));
    }
    let built = regex::RegexBuilder::new(text)
        .size_limit(REGEX_SIZE)
        .dfa_size_limit(REGEX_SIZE)
        .nest_limit(REGEX_DEPTH)
        .build();
    built.map_err(|error| match error {
        regex::Error::CompiledTooBig(_) => "it is too large when compiled".into(),
        // The crate draws the pattern and points into it; what is wrong stands in the last line.
        error => {
            let drawn = error.to_string();
            let last = drawn.lines().last().unwrap_or_default();
            last.strip_prefix("error: ").unwrap_or(last).to_string()
        }
    })
}

/// What a folded text has to contain, in this order: the first blank behind a word stands for anything, or for
/// nothing; so does one at the end. Other blanks belong to the words behind them.
pub(crate) fn pieces(folded: &str) -> Vec<String> {
    let (mut pieces, mut piece) = (Vec::new(), String::new());
    let (mut in_word, mut after_blank) = (false, false);
    for c in folded.chars() {
        if c == ' ' && in_word && !after_blank {
            after_blank = true;
            pieces.push(std::mem::take(&mut piece));
        } else {
            if c != ' ' {
                (in_word, after_blank) = (true, false);
            }
            piece.push(c);
        }
    }
    match pieces.last_mut() {
        Some(last) if after_blank => last.push_str(&piece),
        _ => pieces.push(piece),
    }
    pieces
}

/// Are the pieces in the text, each beginning behind the beginning of the one before? They may overlap:
/// `an nn` is in `anna`, as in evolution-data-server.
fn in_order(text: &str, pieces: &[String], find: fn(&str, &str) -> Option<usize>) -> bool {
    let mut rest = text;
    for (nth, piece) in pieces.iter().enumerate() {
        let Some(at) = find(rest, piece) else { return false };
        if nth + 1 < pieces.len() {
            let next = rest[at..].chars().next().map_or(0, char::len_utf8);
            rest = &rest[at + next..];
        }
    }
    true
}

/// Are the pieces in a folded value, in their order?
pub(crate) fn contains_pieces(folded: &str, pieces: &[String]) -> bool {
    in_order(folded, pieces, |text, piece| text.find(piece))
}

/// Is folding no more than making letters small? Then that can be done while comparing, without another text.
fn is_plain(value: &str) -> bool {
    value.bytes().all(|byte| byte.is_ascii() && byte != 0)
}

/// Where in a [plain](is_plain) text a folded piece begins.
fn find_plain(text: &str, piece: &str) -> Option<usize> {
    let (text, piece) = (text.as_bytes(), piece.as_bytes());
    let Some(first) = piece.first() else { return Some(0) };
    let last = text.len().checked_sub(piece.len())?;
    let starts = text[..=last].iter().enumerate();
    starts
        .filter(|(_, byte)| byte.eq_ignore_ascii_case(first))
        .map(|(at, _)| at)
        .find(|at| text[*at..*at + piece.len()].eq_ignore_ascii_case(piece))
}

/// A free word as it is looked for.
#[derive(Debug, Clone)]
pub(crate) enum Needle {
    /// One or two letters: the beginning of a word.
    Beginning(String),
    /// Anything else: anywhere in a value; the digits of what looks like a phone number also among a
    /// number's digits.
    Anywhere(String, Option<String>),
}

impl Needle {
    pub(crate) fn of(text: &str) -> Needle {
        let folded = fold(text).into_owned();
        let short = folded.chars().count() <= 2
            && !folded.is_empty()
            && folded.chars().all(|c| c.is_alphanumeric() && !is_cjk(c))
            && words(&folded).eq([folded.as_str()]);
        if short { Needle::Beginning(folded) } else { Needle::Anywhere(folded, phone_digits(text)) }
    }

    fn matches(&self, item: &impl Values, family: Family) -> bool {
        let has = |field: &&'static Field| {
            item.any(field, &mut |value| self.is_in(field, value)).unwrap_or_default()
        };
        word_fields(family).iter().any(has)
    }

    /// Is it in a value of this field?
    fn is_in(&self, field: &Field, value: &str) -> bool {
        match self {
            Needle::Beginning(beginning) => {
                words(&fold(value)).any(|word| word.starts_with(beginning.as_str()))
            }
            Needle::Anywhere(text, _) if is_plain(value) && find_plain(value, text).is_some() => {
                true
            }
            Needle::Anywhere(_, None) if is_plain(value) => false,
            Needle::Anywhere(text, number) => {
                let folded = fold(value);
                let has_digits = |number: &String| digits(&folded).contains(number);
                folded.contains(text.as_str())
                    || (field.kind == Kind::Phone && number.as_ref().is_some_and(has_digits))
            }
        }
    }
}

/// The digits of a text that can be read as (part of) a phone number.
pub(crate) fn phone_digits(text: &str) -> Option<String> {
    let digits = digits(text);
    (looks_like_number(text) && digits.len() >= PHONE_DIGITS).then_some(digits)
}
