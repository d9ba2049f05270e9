//! The fields of an item: one table for each kind, one row a field, under the names of evolution-data-server (EDS).
//!
//! Parser, indexes, queries, help and documentation read these tables; a new field is a new row. The
//! `source` of a row says where in an item its values are; [`crate::contact`] and [`crate::component`] read it from
//! there. The table of contacts is here, that of calendars in a module of its own.

mod calendar;

pub use crate::field::calendar::{CALENDAR_FIELDS, calendar_field};

/// A field: a row of [`FIELDS`] or [`CALENDAR_FIELDS`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its number in stored indexes: 1 or more, never changed, never used again for another field.
    pub id: u16,
    /// Its name.
    pub name: &'static str,
    /// Other names that it goes by.
    pub aliases: &'static [&'static str],
    /// What its values are, and so how they are brought into one form.
    pub kind: Kind,
    /// May there be several values?
    pub multi: bool,
    /// Do words without a field's name look here, too?
    pub words: bool,
    /// Is it worth an index of its own? Pictures and keys are not, nor are fields that lie within another.
    pub indexed: bool,
    /// The indexed field that has every value of this one among its own: what finds there finds here.
    pub within: Option<&'static str>,
    /// A line for the manual.
    pub help: &'static str,
    pub(crate) source: Source,
}

/// What the values of a field are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// Plain text.
    Text,
    /// A phone number as it was typed, without `tel:`.
    Phone,
    /// An e-mail address, without `mailto:`.
    Email,
    /// A date: `YYYY-MM-DD`, `--MM-DD` where the year is not known, else as it was written.
    Date,
    /// An address of the web, or another URI.
    Uri,
    /// An identifier: compared as it is, not folded.
    Uid,
    /// `1` or `0`; no value where the card says nothing.
    Flag,
    /// A picture or a key, as it is encoded in the card, or the address it is to be had from.
    Binary,
}

/// Where the values of a field are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The values of these properties.
    Of(&'static [&'static str]),
    /// The values of these properties, each a list with commas.
    ListOf(&'static [&'static str]),
    /// One value of this property: the first is 0.
    Nth(&'static str, usize),
    /// A component of this structured property: the first is 0.
    Component(&'static str, usize),
    /// FN, or what stands in for it.
    FullName,
    /// The name to file under.
    FileAs,
    /// The whole N, in the order it is spoken in.
    SpokenName,
    /// TEL with all of the first types and none of the others.
    Phone(&'static [&'static str], &'static [&'static str]),
    /// One of those: the first is 0.
    NthPhone(&'static [&'static str], &'static [&'static str], usize),
    /// ADR with all of the first types and none of the others.
    Address(&'static [&'static str], &'static [&'static str]),
    /// LABEL, or the LABEL of ADR, with such types.
    Label(&'static [&'static str], &'static [&'static str]),
    /// The names one has at a messenger: its properties, and the schemes and services of IMPP.
    Messenger(&'static [&'static str], &'static [&'static str]),
    /// All of them.
    AnyMessenger,
    /// The people in these properties: their addresses and their names.
    Person(&'static [&'static str]),
    /// GEO as `latitude,longitude`.
    Position,
    /// Is it a list of contacts?
    IsList,
    /// Has it an alarm, a recurrence? Is it done with, or of whole days?
    HasAlarm,
    Recurs,
    IsDone,
    IsAllDay,
    /// KEY of this type, and the `X-EVOLUTION` property of it.
    Key(&'static str),
    /// The version of the format.
    Version,
}

const fn row(id: u16, name: &'static str, kind: Kind, source: Source, help: &'static str) -> Field {
    let (aliases, within): (&[&str], _) = (&[], None);
    Field {
        id,
        name,
        aliases,
        kind,
        multi: false,
        words: false,
        indexed: true,
        within,
        help,
        source,
    }
}

impl Field {
    const fn alias(self, aliases: &'static [&'static str]) -> Field {
        Field { aliases, ..self }
    }
    const fn multi(self) -> Field {
        Field { multi: true, ..self }
    }
    const fn words(self) -> Field {
        Field { words: true, ..self }
    }
    const fn unindexed(self) -> Field {
        Field { indexed: false, ..self }
    }
    const fn within(self, name: &'static str) -> Field {
        Field { indexed: false, within: Some(name), ..self }
    }

    /// What stored indexes depend on in this row, in words: whoever stores values of it stores a digest of
    /// this with them. It names all but what is only shown, and the other names.
    #[must_use]
    pub fn rule(&self) -> String {
        let Field { id, name, kind, words, indexed, within, source, .. } = self;
        format!("{id} {name} {kind:?} {words} {indexed} {within:?} {source:?}")
    }
}

use Kind::{Binary, Date, Email, Flag, Phone, Text, Uid, Uri};
use Source::{
    Address, AnyMessenger, Component, FileAs, FullName, IsList, Key, Label, ListOf, Messenger, Nth,
    NthPhone, Of, Phone as Tel, Position, SpokenName, Version,
};

/// Types of TEL that make it no number to be spoken to at home or at work.
const NO_VOICE: &[&str] = &["FAX", "CELL", "PAGER", "CAR", "ISDN", "MODEM"];
/// Types that have a field of their own, so that a number with one of them is no other number.
const SPECIAL: &[&str] = &[
    "HOME",
    "WORK",
    "FAX",
    "CELL",
    "PAGER",
    "CAR",
    "ISDN",
    "MODEM",
    "TTY",
    "TEXTPHONE",
    "PREF",
    "X-EVOLUTION-ASSISTANT",
    "X-EVOLUTION-CALLBACK",
    "X-EVOLUTION-COMPANY",
    "X-EVOLUTION-RADIO",
    "X-EVOLUTION-TELEX",
    "X-EVOLUTION-TTYTDD",
];
const PRIVATE: &[&str] = &["HOME", "WORK"];

/// All fields of contacts.
#[rustfmt::skip] // A table is read by its columns.
pub const FIELDS: &[Field] = &[
    row(1, "uid", Uid, Of(&["UID"]), "the contact's identifier").alias(&["id"]),
    row(2, "rev", Text, Of(&["REV"]), "when it was last revised, as the card says").alias(&["Rev", "revision"]),
    row(3, "file_as", Text, FileAs, "the name it is filed under; else family name, given name").words(),
    row(4, "full_name", Text, FullName, "the name shown; else made of the parts of the name, the organisation or the e-mail address").alias(&["fn", "fullname"]).multi().words(),
    row(5, "name", Text, SpokenName, "all parts of the name: prefix, given, additional, family, suffix").multi(),
    row(6, "given_name", Text, Component("N", 1), "first name").alias(&["given", "firstname", "first_name"]).multi().words(),
    row(7, "family_name", Text, Component("N", 0), "last name").alias(&["family", "surname", "lastname", "last_name"]).multi().words(),
    row(8, "nickname", Text, ListOf(&["NICKNAME", "X-NICKNAME"]), "nicknames").alias(&["nick"]).multi().words(),
    row(9, "name_or_org", Text, FullName, "the name shown, or the organisation").multi().within("full_name"),
    row(10, "email", Email, Of(&["EMAIL"]), "e-mail addresses").alias(&["mail", "e_mail"]).multi().words(),
    row(11, "email_1", Email, Nth("EMAIL", 0), "the first e-mail address").within("email"),
    row(12, "email_2", Email, Nth("EMAIL", 1), "the second e-mail address").within("email"),
    row(13, "email_3", Email, Nth("EMAIL", 2), "the third e-mail address").within("email"),
    row(14, "email_4", Email, Nth("EMAIL", 3), "the fourth e-mail address").within("email"),

    row(20, "phone", Phone, Of(&["TEL"]), "phone and fax numbers").alias(&["tel", "telephone"]).multi().words(),
    row(21, "assistant_phone", Phone, Tel(&["X-EVOLUTION-ASSISTANT"], &[]), "the assistant's number").multi().within("phone"),
    row(22, "business_phone", Phone, Tel(&["WORK"], NO_VOICE), "numbers at work").alias(&["work_phone"]).multi().within("phone"),
    row(23, "business_phone_2", Phone, NthPhone(&["WORK"], NO_VOICE, 1), "the second number at work").within("phone"),
    row(24, "business_fax", Phone, Tel(&["WORK", "FAX"], &[]), "fax numbers at work").alias(&["work_fax"]).multi().within("phone"),
    row(25, "callback_phone", Phone, Tel(&["X-EVOLUTION-CALLBACK"], &[]), "number to call back").multi().within("phone"),
    row(26, "car_phone", Phone, Tel(&["CAR"], &[]), "number in the car").multi().within("phone"),
    row(27, "company_phone", Phone, Tel(&["X-EVOLUTION-COMPANY"], &[]), "the company's number").multi().within("phone"),
    row(28, "home_phone", Phone, Tel(&["HOME"], NO_VOICE), "numbers at home").multi().within("phone"),
    row(29, "home_phone_2", Phone, NthPhone(&["HOME"], NO_VOICE, 1), "the second number at home").within("phone"),
    row(30, "home_fax", Phone, Tel(&["HOME", "FAX"], &[]), "fax numbers at home").multi().within("phone"),
    row(31, "isdn_phone", Phone, Tel(&["ISDN"], &[]), "ISDN numbers").multi().within("phone"),
    row(32, "mobile_phone", Phone, Tel(&["CELL"], &[]), "mobile numbers").alias(&["mobile", "cell"]).multi().within("phone"),
    row(33, "other_phone", Phone, Tel(&[], SPECIAL), "numbers of no other kind").multi().within("phone"),
    row(34, "other_fax", Phone, Tel(&["FAX"], PRIVATE), "fax numbers neither at home nor at work").multi().within("phone"),
    row(35, "pager", Phone, Tel(&["PAGER"], &[]), "pager numbers").multi().within("phone"),
    row(36, "primary_phone", Phone, Tel(&["PREF"], &[]), "the number to prefer").multi().within("phone"),
    row(37, "radio", Phone, Tel(&["X-EVOLUTION-RADIO"], &[]), "radio").multi().within("phone"),
    row(38, "telex", Phone, Tel(&["X-EVOLUTION-TELEX"], &[]), "telex").multi().within("phone"),
    row(39, "tty", Phone, Tel(&["X-EVOLUTION-TTYTDD"], &[]), "text telephone").multi().within("phone"),

    row(50, "org", Text, Component("ORG", 0), "organisation").alias(&["organisation", "organization", "company"]).multi().words(),
    row(51, "org_unit", Text, Component("ORG", 1), "department").alias(&["department", "unit"]).multi().words(),
    row(52, "office", Text, Component("ORG", 2), "office").multi(),
    row(53, "title", Text, Of(&["TITLE"]), "job title").alias(&["job"]).multi(),
    row(54, "role", Text, Of(&["ROLE"]), "what the person does there").alias(&["profession"]).multi(),
    row(55, "manager", Text, Of(&["X-EVOLUTION-MANAGER", "X-MANAGER", "X-KADDRESSBOOK-X-MANAGERSNAME"]), "the manager's name"),
    row(56, "assistant", Text, Of(&["X-EVOLUTION-ASSISTANT", "X-ASSISTANT", "X-KADDRESSBOOK-X-ASSISTANTSNAME"]), "the assistant's name"),
    row(57, "spouse", Text, Of(&["X-EVOLUTION-SPOUSE", "X-SPOUSE", "X-KADDRESSBOOK-X-SPOUSESNAME"]), "the spouse's name").alias(&["partner"]),
    row(58, "mailer", Text, Of(&["MAILER"]), "the mail program used"),

    row(60, "url", Uri, Of(&["URL"]), "web pages").alias(&["web", "website"]).multi(),
    row(61, "homepage_url", Uri, Nth("URL", 0), "the first web page").alias(&["homepage"]).within("url"),
    row(62, "blog_url", Uri, Of(&["X-EVOLUTION-BLOG-URL", "X-KADDRESSBOOK-BLOGFEED"]), "web log").alias(&["blog"]),
    row(63, "caluri", Uri, Of(&["CALURI"]), "where the calendar is").alias(&["calurl"]).multi(),
    row(64, "fburl", Uri, Of(&["FBURL"]), "where free and busy times are").multi(),
    row(65, "icscalendar", Uri, Of(&["ICSCALENDAR"]), "where the calendar is, as iCalendar"),
    row(66, "video_url", Uri, Of(&["X-EVOLUTION-VIDEO-URL"]), "where to talk by video"),

    row(70, "note", Text, Of(&["NOTE"]), "notes").alias(&["notes", "comment"]).multi(),
    row(71, "categories", Text, ListOf(&["CATEGORIES"]), "categories").alias(&["category_list", "category", "tag"]).multi(),
    row(72, "birth_date", Date, Of(&["BDAY", "X-LARDER-BDAY"]), "date of birth").alias(&["birthday", "bday"]),
    row(73, "anniversary", Date, Of(&["ANNIVERSARY", "X-EVOLUTION-ANNIVERSARY", "X-ANNIVERSARY", "X-KADDRESSBOOK-X-ANNIVERSARY"]), "wedding, or another anniversary"),
    row(74, "geo", Text, Position, "where on earth: latitude,longitude").multi(),

    row(80, "address", Text, Address(&[], &[]), "postal addresses").alias(&["adr"]).multi(),
    row(81, "address_home", Text, Address(&["HOME"], &[]), "postal addresses at home").multi().within("address"),
    row(82, "address_work", Text, Address(&["WORK"], &[]), "postal addresses at work").multi().within("address"),
    row(83, "address_other", Text, Address(&[], PRIVATE), "postal addresses neither at home nor at work").multi().within("address"),
    row(84, "address_label", Text, Label(&[], &[]), "addresses as they are printed on letters").alias(&["label"]).multi(),
    row(85, "address_label_home", Text, Label(&["HOME"], &[]), "printed addresses at home").multi().within("address_label"),
    row(86, "address_label_work", Text, Label(&["WORK"], &[]), "printed addresses at work").multi().within("address_label"),
    row(87, "address_label_other", Text, Label(&[], PRIVATE), "printed addresses neither at home nor at work").multi().within("address_label"),

    row(100, "im", Text, AnyMessenger, "names at all messengers").multi(),
    row(101, "im_aim", Text, Messenger(&["X-AIM", "X-messaging/aim-All"], &["aim"]), "AIM").multi().within("im"),
    row(102, "im_groupwise", Text, Messenger(&["X-GROUPWISE", "X-messaging/groupwise-All"], &["groupwise"]), "GroupWise").multi().within("im"),
    row(103, "im_jabber", Text, Messenger(&["X-JABBER", "X-messaging/xmpp-All"], &["xmpp", "jabber"]), "XMPP").alias(&["xmpp"]).multi().within("im"),
    row(104, "im_yahoo", Text, Messenger(&["X-YAHOO", "X-YAHOO-ID", "X-messaging/yahoo-All"], &["ymsgr", "yahoo"]), "Yahoo").multi().within("im"),
    row(105, "im_msn", Text, Messenger(&["X-MSN", "X-messaging/msn-All"], &["msn", "msnim"]), "MSN").multi().within("im"),
    row(106, "im_icq", Text, Messenger(&["X-ICQ", "X-messaging/icq-All"], &["icq"]), "ICQ").multi().within("im"),
    row(107, "im_gadugadu", Text, Messenger(&["X-GADUGADU", "X-GADU-GADU", "X-messaging/gadu-All"], &["gg", "gadugadu"]), "Gadu-Gadu").multi().within("im"),
    row(108, "im_skype", Text, Messenger(&["X-SKYPE", "X-SKYPE-USERNAME", "X-messaging/skype-All"], &["skype"]), "Skype").multi().within("im"),
    row(109, "im_google_talk", Text, Messenger(&["X-GOOGLE-TALK", "X-GTALK"], &["gtalk", "googletalk"]), "Google Talk").multi().within("im"),
    row(110, "im_twitter", Text, Messenger(&["X-TWITTER"], &["twitter"]), "Twitter").multi().within("im"),
    row(111, "im_matrix", Text, Messenger(&["X-MATRIX"], &["matrix"]), "Matrix").multi().within("im"),
    row(112, "sip", Text, Messenger(&["X-SIP"], &["sip", "sips"]), "internet telephony").multi().within("im"),

    row(120, "list", Flag, IsList, "1: a list of contacts"),
    row(121, "list_show_addresses", Flag, Of(&["X-EVOLUTION-LIST-SHOW-ADDRESSES", "X-EVOLUTION-LIST-SHOW_ADDRESSES"]), "1: mail to the list names all its members").unindexed(),
    row(122, "wants_html", Flag, Of(&["X-MOZILLA-HTML"]), "1: wants mail as HTML"),
    row(130, "photo", Binary, Of(&["PHOTO"]), "picture of the person").alias(&["picture"]).multi().unindexed(),
    row(131, "logo", Binary, Of(&["LOGO"]), "the organisation's logo").multi().unindexed(),
    row(132, "x509Cert", Binary, Key("X509"), "certificates").alias(&["x509"]).multi().unindexed(),
    row(133, "pgpCert", Binary, Key("PGP"), "PGP keys").alias(&["pgp"]).multi().unindexed(),
    row(140, "version", Text, Version, "version of the card's format: 2.1, 3.0 or 4.0").unindexed(),
];

/// The field of contacts that has this name, or this other name: in any case, and with `-` for `_`.
#[must_use]
pub fn field(name: &str) -> Option<&'static Field> {
    in_table(FIELDS, name)
}

fn in_table(fields: &'static [Field], name: &str) -> Option<&'static Field> {
    let same = |other: &str| {
        name.len() == other.len() && name.bytes().map(plain).eq(other.bytes().map(plain))
    };
    fields.iter().find(|field| same(field.name) || field.aliases.iter().any(|alias| same(alias)))
}

/// The field that evolution-data-server means by this name: its own names, and only as it writes them. Of
/// the three places that it has for names at home and at work at each messenger (`im_aim_home_1`), the field is
/// all names at that messenger.
#[must_use]
pub fn eds_field(name: &str) -> Option<&'static Field> {
    const OTHER_NAMES: &[&str] = &["id", "Rev", "category_list", "calurl"];
    let found = |name: &str| {
        FIELDS.iter().find(|field| {
            field.name == name || (OTHER_NAMES.contains(&name) && field.aliases.contains(&name))
        })
    };
    found(name).or_else(|| {
        let (place, nth) = name.strip_prefix("im_")?.rsplit_once('_')?;
        let service = place.strip_suffix("_home").or_else(|| place.strip_suffix("_work"))?;
        let field = FIELDS.iter().find(|field| field.name.strip_prefix("im_") == Some(service));
        field.filter(|_| matches!(nth, "1" | "2" | "3"))
    })
}

fn plain(byte: u8) -> u8 {
    if byte == b'-' { b'_' } else { byte.to_ascii_lowercase() }
}

/// The field's name that was probably meant by a name that no field of contacts has.
#[must_use]
pub fn nearest(name: &str) -> Option<&'static str> {
    nearest_in(FIELDS, name)
}

/// The field's name that was probably meant by a name that no field of this table has.
#[must_use]
pub fn nearest_in(fields: &'static [Field], name: &str) -> Option<&'static str> {
    if name.len() > 40 {
        return None;
    }
    let name: Vec<u8> = name.bytes().map(plain).collect();
    let far = |other: &str| distance(&name, &other.bytes().map(plain).collect::<Vec<_>>());
    let (score, found) = fields
        .iter()
        .flat_map(|field| {
            field.aliases.iter().chain([&field.name]).map(move |known| (known, field.name))
        })
        .map(|(known, meant)| (far(known), meant))
        .min_by_key(|(score, _)| *score)?;
    (score <= (name.len() / 3).clamp(1, 3)).then_some(found)
}

/// How many letters must be put in, taken out, replaced, or swapped with their neighbour.
fn distance(from: &[u8], to: &[u8]) -> usize {
    let mut before = vec![0; to.len() + 1];
    let mut above: Vec<usize> = (0..=to.len()).collect();
    for (row, a) in from.iter().enumerate() {
        let mut here = vec![row + 1; to.len() + 1];
        for (column, b) in to.iter().enumerate() {
            let replaced = above[column] + usize::from(a != b);
            here[column + 1] = replaced.min(above[column + 1] + 1).min(here[column] + 1);
            if row > 0 && column > 0 && *a == to[column - 1] && from[row - 1] == *b {
                here[column + 1] = here[column + 1].min(before[column - 1] + 1);
            }
        }
        before = std::mem::replace(&mut above, here);
    }
    above[to.len()]
}
