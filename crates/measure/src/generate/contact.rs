//! One invented contact: drawn here, written elsewhere.
//!
//! Knows what people have (a mobile telephone, a second address at work) and nothing of vCard but which
//! version the card will have. Apart from the writer, so that the three versions draw from one population.

use super::names::{Culture, Name, Order};
use super::places::Place;
use super::random::Random;
use super::words;

/// The version a contact is written in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    /// vCard 2.1 (versit).
    V2_1,
    /// vCard 3.0 (RFC 2426).
    V3_0,
    /// vCard 4.0 (RFC 6350).
    V4_0,
}

/// What a telephone is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Line {
    Mobile,
    Home,
    Work,
    Fax,
}

/// A telephone number: as written, and as an RFC 3966 URI.
pub(super) struct Phone {
    pub(super) line: Line,
    pub(super) number: String,
    pub(super) uri: String,
}

/// A mailbox, at work or at home.
pub(super) struct Email {
    pub(super) work: bool,
    pub(super) address: String,
}

/// Where somebody lives, or works.
pub(super) struct Address {
    pub(super) work: bool,
    pub(super) street: String,
    pub(super) city: &'static str,
    pub(super) region: &'static str,
    pub(super) code: String,
    pub(super) country: &'static str,
}

/// Everything that a card says.
pub(super) struct Contact<'c> {
    pub(super) version: Version,
    pub(super) newline: &'static str,
    pub(super) culture: &'c Culture,
    pub(super) given: &'c Name,
    pub(super) second: Option<&'c Name>,
    pub(super) family: &'c Name,
    /// The name as it is shown.
    pub(super) shown: String,
    pub(super) phones: Vec<Phone>,
    pub(super) emails: Vec<Email>,
    pub(super) addresses: Vec<Address>,
    pub(super) organisation: Option<&'static str>,
    pub(super) department: Option<&'static str>,
    pub(super) title: Option<&'static str>,
    pub(super) nickname: Option<&'static str>,
    pub(super) categories: Vec<&'static str>,
    /// Year, month, day.
    pub(super) birthday: Option<(u64, u64, u64)>,
    pub(super) note: Option<String>,
    /// The bytes of something like a JPEG file.
    pub(super) photo: Option<Vec<u8>>,
    /// An account: property, URI scheme, name.
    pub(super) account: Option<(&'static str, &'static str, String)>,
    /// The address of a page about them.
    pub(super) website: Option<String>,
    /// 128 bits that no other contact has.
    pub(super) uid: Option<u128>,
    /// Year, month, day, hour, minute, second.
    pub(super) revised: [u64; 6],
    /// Whether some of its properties stand in groups with a label, and where in the labels it begins.
    pub(super) label: Option<usize>,
    /// A number for small choices of form, such as how the UID is written.
    pub(super) habit: u64,
}

impl<'c> Contact<'c> {
    /// Draws a contact. What `random` yields, and nothing else, decides.
    pub(super) fn draw(cultures: &'c [Culture], random: &mut Random) -> Contact<'c> {
        let version = Version::draw(random);
        let newline = newline(version, random);
        let culture = Culture::pick(cultures, random);
        let place = culture.place;
        let (given, family) =
            (random.pick_early(&culture.given), random.pick_early(&culture.family));
        let second = (culture.order == Order::GivenFirst && random.percent(20))
            .then(|| random.pick(&culture.given));
        let employed = random.percent(60);
        let has_uid = version != Version::V2_1 || random.percent(75);
        Contact {
            version,
            newline,
            culture,
            given,
            second,
            family,
            shown: shown(culture.order, given, second, family),
            phones: phones(place, random),
            emails: emails(given, family, employed, random),
            addresses: addresses(place, random),
            organisation: employed
                .then(|| either(place.organisations, words::ORGANISATIONS, random)),
            department: (employed && random.percent(50)).then(|| random.word(words::DEPARTMENTS)),
            title: (employed && random.percent(67))
                .then(|| either(place.titles, words::TITLES, random)),
            nickname: random.percent(15).then(|| random.word(words::NICKNAMES)),
            categories: categories(random),
            birthday: random.percent(40).then(|| {
                (random.between(1930, 2015), random.between(1, 12), random.between(1, 28))
            }),
            note: random.percent(50).then(|| note(place, random)),
            photo: random.percent(2).then(|| photo(random)),
            account: random.percent(35).then(|| account(given, random)),
            website: random.percent(30).then(|| website(family, random)),
            uid: has_uid.then(|| u128::from(random.bits()) << 64 | u128::from(random.bits())),
            revised: [
                random.between(2009, 2025),
                random.between(1, 12),
                random.between(1, 28),
                random.below(24),
                random.below(60),
                random.below(60),
            ],
            label: (version == Version::V3_0 && random.percent(33))
                .then(|| random.below(words::LABELS.len() as u64) as usize),
            habit: random.bits(),
        }
    }
}

impl Version {
    fn draw(random: &mut Random) -> Version {
        match random.below(100) {
            0..20 => Version::V2_1,
            20..70 => Version::V3_0,
            _ => Version::V4_0,
        }
    }
}

/// The RFCs want CR LF; files that went through a Unix tool have lost the CR.
fn newline(version: Version, random: &mut Random) -> &'static str {
    match version {
        Version::V3_0 | Version::V4_0 if random.below(8) == 0 => "\n",
        _ => "\r\n",
    }
}

fn shown(order: Order, given: &Name, second: Option<&Name>, family: &Name) -> String {
    let (given, family) = (given.written.as_str(), family.written.as_str());
    match (order, second) {
        (Order::GivenFirst, Some(second)) => [given, " ", &second.written, " ", family].concat(),
        (Order::GivenFirst, None) => [given, " ", family].concat(),
        (Order::FamilyFirst, _) => [family, " ", given].concat(),
        (Order::Joined, _) => [family, given].concat(),
    }
}

/// One of either list, tossed for.
fn either(
    one: &'static [&'static str],
    other: &'static [&'static str],
    random: &mut Random,
) -> &'static str {
    if random.percent(50) { random.word(one) } else { random.word(other) }
}

fn phones(place: &Place, random: &mut Random) -> Vec<Phone> {
    const LINES: [Line; 6] =
        [Line::Mobile, Line::Home, Line::Work, Line::Mobile, Line::Work, Line::Fax];
    let count = random.one_to_three(30, 20);
    // Neighbours in the list, so that nobody has two of a kind before they have a mobile telephone.
    let first = if random.percent(75) { 0 } else { random.below(4) as usize };
    LINES[first..]
        .iter()
        .take(count)
        .map(|&line| {
            let patterns = if line == Line::Mobile { place.mobile } else { place.fixed };
            let number = fill(random.word(patterns), random);
            Phone { line, uri: phone_uri(&number, place), number }
        })
        .collect()
}

/// Makes a text of a pattern: `#` is a digit, `~` one from 2 to 9, `٠` an Arabic digit, `%` a house number.
pub(super) fn fill(pattern: &str, random: &mut Random) -> String {
    let mut text = String::with_capacity(pattern.len() + 4);
    let digit = |first: u8, from: u64, random: &mut Random| {
        char::from(first + random.between(from, 9) as u8)
    };
    for sign in pattern.chars() {
        match sign {
            '#' => text.push(digit(b'0', 0, random)),
            '~' => text.push(digit(b'0', 2, random)),
            '٠' => text.extend(char::from_u32('٠' as u32 + random.below(10) as u32)),
            '%' => text.push_str(&random.between(1, 199).to_string()),
            _ => text.push(sign),
        }
    }
    text
}

/// The number as `tel:` URI: international, without what is only for the eye; an extension apart.
fn phone_uri(number: &str, place: &Place) -> String {
    let (main, extension) = match number.find(char::is_alphabetic) {
        Some(at) => number.split_at(at),
        None => (number, ""),
    };
    let digits = |text: &str| text.chars().filter_map(decimal).collect::<String>();
    // "(0)" is for those who dial from within.
    let dialled = digits(&main.replace("(0)", ""));
    let national = dialled.strip_prefix("00").map(str::to_owned);
    let mut uri = match national {
        _ if main.trim_start_matches('(').starts_with('+') => format!("tel:+{dialled}"),
        Some(international) => format!("tel:+{international}"),
        None if place.code == "+1" && dialled.len() == 11 => format!("tel:+{dialled}"),
        None => {
            let rest = dialled.strip_prefix(place.trunk).unwrap_or(&dialled);
            format!("tel:{}{rest}", place.code)
        }
    };
    if !extension.is_empty() {
        uri.push_str(";ext=");
        uri.push_str(&digits(extension));
    }
    uri
}

/// The value of a decimal digit, Western or Arabic, as a Western one.
fn decimal(sign: char) -> Option<char> {
    match sign {
        '0'..='9' => Some(sign),
        '٠'..='٩' => char::from_digit(sign as u32 - '٠' as u32, 10),
        _ => None,
    }
}

pub(super) fn emails(
    given: &Name,
    family: &Name,
    employed: bool,
    random: &mut Random,
) -> Vec<Email> {
    let count = random.one_to_three(30, 15);
    let (given, family) = (given.ascii.as_str(), family.ascii.as_str());
    (0..count)
        .map(|at| {
            let work = employed && at == 0;
            let number = random.below(10_000).to_string();
            // The first may be the plain name, as only one mailbox of a person is.
            let name = match random.below(if at == 0 { 6 } else { 4 }) {
                4 | 5 => [given, ".", family].concat(),
                0 => [&given[..1], ".", family, &number].concat(),
                1 => [given, "_", family, &number].concat(),
                2 => [family, &number].concat(),
                _ => [given, ".", family, &number].concat(),
            };
            let domains = if work { words::WORK_DOMAINS } else { words::HOME_DOMAINS };
            Email { work, address: [&name, "@", random.word(domains)].concat() }
        })
        .collect()
}

fn addresses(place: &'static Place, random: &mut Random) -> Vec<Address> {
    let count = if random.percent(25) { 2 } else { 1 };
    (0..count)
        .map(|at| {
            let &(city, region, code) = random.pick(place.cities);
            Address {
                work: at > 0,
                street: fill(random.word(place.streets), random),
                city,
                region,
                code: fill(code, random),
                country: place.country,
            }
        })
        .collect()
}

fn categories(random: &mut Random) -> Vec<&'static str> {
    if !random.percent(35) {
        return Vec::new();
    }
    // A run of the list: different ones without having to look.
    let count = random.one_to_three(30, 15);
    let first = random.below((words::CATEGORIES.len() - count) as u64) as usize;
    words::CATEGORIES[first..first + count].to_vec()
}

/// A run of the sentences, in different places of the list, and perhaps one in their own language.
pub(super) fn note(place: &Place, random: &mut Random) -> String {
    let mut note = String::new();
    let first = random.below(words::SENTENCES.len() as u64) as usize;
    for at in 0..random.between(1, 4) as usize {
        if at > 0 {
            note.push_str(if random.percent(30) { "\n" } else { " " });
        }
        note.push_str(words::SENTENCES[(first + at) % words::SENTENCES.len()]);
    }
    if random.percent(50) {
        note.push('\n');
        note.push_str(random.word(place.phrases));
    }
    note
}

/// Noise of the size of a small portrait, beginning and ending as a JPEG file does.
fn photo(random: &mut Random) -> Vec<u8> {
    let size = random.between(2_048, 12_288) as usize;
    let mut bytes = b"\xFF\xD8\xFF\xE0\x00\x10JFIF\x00\x01".to_vec();
    bytes.reserve(size);
    while bytes.len() < size - 2 {
        bytes.extend_from_slice(&random.bits().to_le_bytes());
    }
    bytes.truncate(size - 2);
    bytes.extend_from_slice(b"\xFF\xD9");
    bytes
}

fn account(given: &Name, random: &mut Random) -> (&'static str, &'static str, String) {
    let &(property, scheme) = random.pick(words::SERVICES);
    let number = random.below(1_000);
    (property, scheme, format!("{}{number}", given.ascii))
}

fn website(family: &Name, random: &mut Random) -> String {
    let pages = ["https://www.", "https://blog.", "http://"];
    let site = [random.pick(&pages), family.ascii.as_str()].concat();
    format!("{site}.example/people/{}", random.below(100_000))
}
