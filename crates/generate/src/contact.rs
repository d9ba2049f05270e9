//! Generates the values of a contact.
//!
//! Except for the choice of the vCard version, the values are independent of that version, so that
//! the three versions have the same population. `vcard_writer` writes them.

use super::contact_texts;
use super::countries::Country;
use super::person_names::{Culture, NameOrder, PersonName};
use super::random::SplitMix64;

/// The vCard version of a contact.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FakeCardVersion {
    /// vCard 2.1 (versit).
    V2_1,
    /// vCard 3.0 (RFC 2426).
    V3_0,
    /// vCard 4.0 (RFC 6350).
    V4_0,
}

/// The use of a telephone number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum PhoneType {
    Mobile,
    Home,
    Work,
    Fax,
}

/// A telephone number: as text, and as an RFC 3966 URI.
pub(super) struct FakePhone {
    pub(super) phone_type: PhoneType,
    pub(super) number: String,
    pub(super) uri: String,
}

/// An e-mail address, at work or at home.
pub(super) struct FakeEmail {
    pub(super) is_work: bool,
    pub(super) address: String,
}

/// A postal address, at home or at work.
pub(super) struct FakeAddress {
    pub(super) is_work: bool,
    pub(super) street: String,
    pub(super) city: &'static str,
    pub(super) region: &'static str,
    pub(super) postal_code: String,
    pub(super) country: &'static str,
}

/// The values of a contact.
pub(super) struct FakeContact<'c> {
    pub(super) version: FakeCardVersion,
    pub(super) line_ending: &'static str,
    pub(super) culture: &'c Culture,
    pub(super) given: &'c PersonName,
    pub(super) middle: Option<&'c PersonName>,
    pub(super) family: &'c PersonName,
    /// The display name.
    pub(super) display_name: String,
    pub(super) phones: Vec<FakePhone>,
    pub(super) emails: Vec<FakeEmail>,
    pub(super) addresses: Vec<FakeAddress>,
    pub(super) organisation: Option<&'static str>,
    pub(super) department: Option<&'static str>,
    pub(super) title: Option<&'static str>,
    pub(super) nickname: Option<&'static str>,
    pub(super) categories: Vec<&'static str>,
    /// Year, month, day.
    pub(super) birthday: Option<(u64, u64, u64)>,
    pub(super) note: Option<String>,
    /// Bytes that resemble a JPEG file.
    pub(super) photo: Option<Vec<u8>>,
    /// An account: property, URI scheme, name.
    pub(super) account: Option<(&'static str, &'static str, String)>,
    /// The URL of a web page.
    pub(super) website: Option<String>,
    /// 128 bits that are unique to the contact.
    pub(super) uid: Option<u128>,
    /// Year, month, day, hour, minute, second.
    pub(super) revision_time: [u64; 6],
    /// The index of the first label if properties are written in labelled groups; otherwise `None`.
    pub(super) first_label_index: Option<usize>,
    /// Random bits that select variants of the format, such as the form of the UID.
    pub(super) style_bits: u64,
}

impl<'c> FakeContact<'c> {
    /// Generates a contact. The result depends on `random` only.
    pub(super) fn draw(cultures: &'c [Culture], random: &mut SplitMix64) -> FakeContact<'c> {
        let version = FakeCardVersion::draw(random);
        let line_ending = draw_line_ending(version, random);
        let culture = Culture::pick(cultures, random);
        let place = culture.place;
        let (given, family) =
            (random.pick_early(&culture.given), random.pick_early(&culture.family));
        let middle = (culture.order == NameOrder::GivenFirst && random.roll_percent(20))
            .then(|| random.pick(&culture.given));
        let employed = random.roll_percent(60);
        let has_uid = version != FakeCardVersion::V2_1 || random.roll_percent(75);
        FakeContact {
            version,
            line_ending,
            culture,
            given,
            middle,
            family,
            display_name: join_names(culture.order, given, middle, family),
            phones: draw_phones(place, random),
            emails: draw_emails(given, family, employed, random),
            addresses: draw_addresses(place, random),
            organisation: employed.then(|| {
                pick_from_either(place.organisations, contact_texts::ORGANISATIONS, random)
            }),
            department: (employed && random.roll_percent(50))
                .then(|| random.pick_word(contact_texts::DEPARTMENTS)),
            title: (employed && random.roll_percent(67))
                .then(|| pick_from_either(place.titles, contact_texts::TITLES, random)),
            nickname: random.roll_percent(15).then(|| random.pick_word(contact_texts::NICKNAMES)),
            categories: draw_categories(random),
            birthday: random.roll_percent(40).then(|| {
                (
                    random.next_between(1930, 2015),
                    random.next_between(1, 12),
                    random.next_between(1, 28),
                )
            }),
            note: random.roll_percent(50).then(|| draw_note(place, random)),
            photo: random.roll_percent(2).then(|| draw_photo(random)),
            account: random.roll_percent(35).then(|| draw_account(given, random)),
            website: random.roll_percent(30).then(|| draw_website(family, random)),
            uid: has_uid
                .then(|| u128::from(random.next_bits()) << 64 | u128::from(random.next_bits())),
            revision_time: [
                random.next_between(2009, 2025),
                random.next_between(1, 12),
                random.next_between(1, 28),
                random.next_below(24),
                random.next_below(60),
                random.next_below(60),
            ],
            first_label_index: (version == FakeCardVersion::V3_0 && random.roll_percent(33))
                .then(|| random.next_below(contact_texts::PROPERTY_LABELS.len() as u64) as usize),
            style_bits: random.next_bits(),
        }
    }
}

impl FakeCardVersion {
    fn draw(random: &mut SplitMix64) -> FakeCardVersion {
        match random.next_below(100) {
            0..20 => FakeCardVersion::V2_1,
            20..70 => FakeCardVersion::V3_0,
            _ => FakeCardVersion::V4_0,
        }
    }
}

/// Chooses a line ending. The RFCs require CR LF; files processed by Unix tools have lost the CR.
fn draw_line_ending(version: FakeCardVersion, random: &mut SplitMix64) -> &'static str {
    match version {
        FakeCardVersion::V3_0 | FakeCardVersion::V4_0 if random.next_below(8) == 0 => "\n",
        _ => "\r\n",
    }
}

fn join_names(
    order: NameOrder,
    given: &PersonName,
    second: Option<&PersonName>,
    family: &PersonName,
) -> String {
    let (given, family) = (given.written.as_str(), family.written.as_str());
    match (order, second) {
        (NameOrder::GivenFirst, Some(second)) => {
            [given, " ", &second.written, " ", family].concat()
        }
        (NameOrder::GivenFirst, None) => [given, " ", family].concat(),
        (NameOrder::FamilyFirst, _) => [family, " ", given].concat(),
        (NameOrder::FamilyFirstUnspaced, _) => [family, given].concat(),
    }
}

/// Returns a word of one of two lists, with equal probability.
fn pick_from_either(
    one: &'static [&'static str],
    other: &'static [&'static str],
    random: &mut SplitMix64,
) -> &'static str {
    if random.roll_percent(50) { random.pick_word(one) } else { random.pick_word(other) }
}

fn draw_phones(place: &Country, random: &mut SplitMix64) -> Vec<FakePhone> {
    const PHONE_TYPE_SEQUENCE: [PhoneType; 6] = [
        PhoneType::Mobile,
        PhoneType::Home,
        PhoneType::Work,
        PhoneType::Mobile,
        PhoneType::Work,
        PhoneType::Fax,
    ];
    let count = random.roll_one_to_three(30, 20);
    // Takes consecutive elements of the list, so that every contact has a mobile number before it
    // has two numbers of one type.
    let first = if random.roll_percent(75) { 0 } else { random.next_below(4) as usize };
    PHONE_TYPE_SEQUENCE[first..]
        .iter()
        .take(count)
        .map(|&line| {
            let patterns = if line == PhoneType::Mobile {
                place.mobile_patterns
            } else {
                place.landline_patterns
            };
            let number = fill_pattern(random.pick_word(patterns), random);
            FakePhone { phone_type: line, uri: phone_uri(&number, place), number }
        })
        .collect()
}

/// Replaces the placeholders of a pattern: `#` is a digit, `~` a digit from 2 to 9, `٠` an Arabic
/// digit, `%` a house number.
pub(super) fn fill_pattern(pattern: &str, random: &mut SplitMix64) -> String {
    let mut text = String::with_capacity(pattern.len() + 4);
    let digit = |first: u8, from: u64, random: &mut SplitMix64| {
        char::from(first + random.next_between(from, 9) as u8)
    };
    for sign in pattern.chars() {
        match sign {
            '#' => text.push(digit(b'0', 0, random)),
            '~' => text.push(digit(b'0', 2, random)),
            '٠' => text.extend(char::from_u32('٠' as u32 + random.next_below(10) as u32)),
            '%' => text.push_str(&random.next_between(1, 199).to_string()),
            _ => text.push(sign),
        }
    }
    text
}

/// Returns a number as a `tel:` URI, in international form without punctuation; an extension is a
/// parameter.
fn phone_uri(number: &str, place: &Country) -> String {
    let (main, extension) = match number.find(char::is_alphabetic) {
        Some(at) => number.split_at(at),
        None => (number, ""),
    };
    let digits = |text: &str| text.chars().filter_map(to_ascii_digit).collect::<String>();
    // "(0)" is dialled inside the country only.
    let dialled = digits(&main.replace("(0)", ""));
    let national = dialled.strip_prefix("00").map(str::to_owned);
    let mut uri = match national {
        _ if main.trim_start_matches('(').starts_with('+') => format!("tel:+{dialled}"),
        Some(international) => format!("tel:+{international}"),
        None if place.calling_code == "+1" && dialled.len() == 11 => format!("tel:+{dialled}"),
        None => {
            let rest = dialled.strip_prefix(place.trunk_prefix).unwrap_or(&dialled);
            format!("tel:{}{rest}", place.calling_code)
        }
    };
    if !extension.is_empty() {
        uri.push_str(";ext=");
        uri.push_str(&digits(extension));
    }
    uri
}

/// Converts a Western or Arabic decimal digit to ASCII.
fn to_ascii_digit(sign: char) -> Option<char> {
    match sign {
        '0'..='9' => Some(sign),
        '٠'..='٩' => char::from_digit(sign as u32 - '٠' as u32, 10),
        _ => None,
    }
}

pub(super) fn draw_emails(
    given: &PersonName,
    family: &PersonName,
    employed: bool,
    random: &mut SplitMix64,
) -> Vec<FakeEmail> {
    let count = random.roll_one_to_three(30, 15);
    let (given, family) = (given.ascii.as_str(), family.ascii.as_str());
    (0..count)
        .map(|at| {
            let work = employed && at == 0;
            let number = random.next_below(10_000).to_string();
            // Only the first address may be the name without a number, so that addresses differ.
            let name = match random.next_below(if at == 0 { 6 } else { 4 }) {
                4 | 5 => [given, ".", family].concat(),
                0 => [&given[..1], ".", family, &number].concat(),
                1 => [given, "_", family, &number].concat(),
                2 => [family, &number].concat(),
                _ => [given, ".", family, &number].concat(),
            };
            let domains =
                if work { contact_texts::WORK_DOMAINS } else { contact_texts::HOME_DOMAINS };
            FakeEmail { is_work: work, address: [&name, "@", random.pick_word(domains)].concat() }
        })
        .collect()
}

fn draw_addresses(place: &'static Country, random: &mut SplitMix64) -> Vec<FakeAddress> {
    let count = if random.roll_percent(25) { 2 } else { 1 };
    (0..count)
        .map(|at| {
            let &(city, region, code) = random.pick(place.cities);
            FakeAddress {
                is_work: at > 0,
                street: fill_pattern(random.pick_word(place.streets), random),
                city,
                region,
                postal_code: fill_pattern(code, random),
                country: place.name,
            }
        })
        .collect()
}

fn draw_categories(random: &mut SplitMix64) -> Vec<&'static str> {
    if !random.roll_percent(35) {
        return Vec::new();
    }
    // Consecutive elements of the list are distinct without a check.
    let count = random.roll_one_to_three(30, 15);
    let first =
        random.next_below((contact_texts::CONTACT_CATEGORIES.len() - count) as u64) as usize;
    contact_texts::CONTACT_CATEGORIES[first..first + count].to_vec()
}

/// Generates a note: consecutive sentences from a random position of the list, and sometimes a
/// sentence in the language of the country.
pub(super) fn draw_note(place: &Country, random: &mut SplitMix64) -> String {
    let mut note = String::new();
    let first = random.next_below(contact_texts::NOTE_SENTENCES.len() as u64) as usize;
    for at in 0..random.next_between(1, 4) as usize {
        if at > 0 {
            note.push_str(if random.roll_percent(30) { "\n" } else { " " });
        }
        note.push_str(
            contact_texts::NOTE_SENTENCES[(first + at) % contact_texts::NOTE_SENTENCES.len()],
        );
    }
    if random.roll_percent(50) {
        note.push('\n');
        note.push_str(random.pick_word(place.note_sentences));
    }
    note
}

/// Generates noise of the size of a small portrait, with the first and last bytes of a JPEG file.
fn draw_photo(random: &mut SplitMix64) -> Vec<u8> {
    let size = random.next_between(2_048, 12_288) as usize;
    let mut bytes = b"\xFF\xD8\xFF\xE0\x00\x10JFIF\x00\x01".to_vec();
    bytes.reserve(size);
    while bytes.len() < size - 2 {
        bytes.extend_from_slice(&random.next_bits().to_le_bytes());
    }
    bytes.truncate(size - 2);
    bytes.extend_from_slice(b"\xFF\xD9");
    bytes
}

fn draw_account(
    given: &PersonName,
    random: &mut SplitMix64,
) -> (&'static str, &'static str, String) {
    let &(property, scheme) = random.pick(contact_texts::ACCOUNT_SERVICES);
    let number = random.next_below(1_000);
    (property, scheme, format!("{}{number}", given.ascii))
}

fn draw_website(family: &PersonName, random: &mut SplitMix64) -> String {
    let pages = ["https://www.", "https://blog.", "http://"];
    let site = [random.pick(&pages), family.ascii.as_str()].concat();
    format!("{site}.example/people/{}", random.next_below(100_000))
}
