//! The tables of fields: one table for contacts and one for calendar items, one row for each field,
//! named as in evolution-data-server (EDS).
//!
//! Parsers, indexes, queries, help and documentation read these tables, so a new field is a new
//! row. The `source` of a row says where an item has the values; [`crate::contact`] and
//! [`crate::component`] read them from there. The table of contact fields is here; the table of
//! calendar fields is in a submodule.

mod calendar;

pub use crate::field::calendar::{CALENDAR_FIELDS, find_calendar_field};

/// A field: a row of [`CONTACT_FIELDS`] or [`CALENDAR_FIELDS`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The number in stored indexes: 1 or more, never changed, never reused.
    pub id: u16,
    /// The name.
    pub name: &'static str,
    /// Alternative names.
    pub aliases: &'static [&'static str],
    /// The type of the values, which decides how they are normalised.
    pub field_type: FieldType,
    /// Whether an item may have several values.
    pub is_multi_valued: bool,
    /// Whether bare words search this field.
    pub is_default_search: bool,
    /// Whether the field has an index of its own. Pictures, keys, and fields that are a subset of
    /// another field have none.
    pub is_indexed: bool,
    /// The indexed field whose values include every value of this one, so that its index serves
    /// both.
    pub subset_of: Option<&'static str>,
    /// The field with the labels of the values, in the order of the values.
    pub label_field: Option<&'static str>,
    /// The description in the manual.
    pub help: &'static str,
    pub(crate) source: FieldSource,
}

/// The type of a field's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldType {
    /// Plain text.
    Text,
    /// A phone number as it was typed, without `tel:`.
    Phone,
    /// An e-mail address, without `mailto:`.
    Email,
    /// A date: `YYYY-MM-DD`, `--MM-DD` for an unknown year, otherwise as written.
    Date,
    /// A web address or another URI.
    Uri,
    /// An identifier: compared as it is, without folding.
    Uid,
    /// `1` or `0`; no value if the item has no such property.
    Flag,
    /// A picture or a key as encoded in the card, or its URI.
    Binary,
}

/// Where an item has the values of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FieldSource {
    /// The values of these properties.
    Properties(&'static [&'static str]),
    /// The values of these properties, each a comma-separated list.
    ListProperties(&'static [&'static str]),
    /// One value of this property, counted from 0.
    NthValue(&'static str, usize),
    /// One component of this structured property, counted from 0.
    StructuredPart(&'static str, usize),
    /// FN, or its substitute.
    FullName,
    /// The name to file the contact under.
    FileAs,
    /// The whole N in spoken order.
    SpokenName,
    /// TEL with all types of the first list and none of the second.
    Phone(&'static [&'static str], &'static [&'static str]),
    /// One such TEL, counted from 0.
    NthPhone(&'static [&'static str], &'static [&'static str], usize),
    /// ADR with all types of the first list and none of the second.
    Address(&'static [&'static str], &'static [&'static str]),
    /// LABEL, or the LABEL of ADR, with these types.
    Label(&'static [&'static str], &'static [&'static str]),
    /// The names at a messenger: its properties, and the schemes and services of IMPP.
    Messenger(&'static [&'static str], &'static [&'static str]),
    /// The names at all messengers.
    AnyMessenger,
    /// The people in these properties: addresses and names.
    Person(&'static [&'static str]),
    /// GEO as `latitude,longitude`.
    Position,
    /// The labels of these properties, in order; `-` for a property without a label.
    ValueLabels(&'static [&'static str]),
    /// Labels that a person made up.
    CustomLabel,
    /// Whether the contact is a list of contacts.
    IsList,
    /// Whether the item has an alarm or a recurrence, is completed, or is all-day.
    HasAlarm,
    Recurs,
    IsDone,
    IsAllDay,
    /// KEY of this type, and its `X-EVOLUTION` property.
    Key(&'static str),
    /// The version of the format.
    Version,
}

pub(crate) const fn field_row(
    id: u16,
    name: &'static str,
    kind: FieldType,
    source: FieldSource,
    help: &'static str,
) -> Field {
    let (aliases, within): (&[&str], _) = (&[], None);
    Field {
        id,
        name,
        aliases,
        field_type: kind,
        is_multi_valued: false,
        is_default_search: false,
        is_indexed: true,
        subset_of: within,
        label_field: None,
        help,
        source,
    }
}

impl Field {
    pub(crate) const fn with_aliases(self, aliases: &'static [&'static str]) -> Field {
        Field { aliases, ..self }
    }
    pub(crate) const fn multi_valued(self) -> Field {
        Field { is_multi_valued: true, ..self }
    }
    pub(crate) const fn searched_by_default(self) -> Field {
        Field { is_default_search: true, ..self }
    }
    const fn with_labels(self, name: &'static str) -> Field {
        Field { label_field: Some(name), ..self }
    }
    const fn without_index(self) -> Field {
        Field { is_indexed: false, ..self }
    }
    const fn subset_of(self, name: &'static str) -> Field {
        Field { is_indexed: false, subset_of: Some(name), ..self }
    }

    /// Returns whether the field is a state that every item has or has not: an item without a value
    /// is known not to have it.
    #[must_use]
    pub fn is_state(&self) -> bool {
        use FieldSource::{HasAlarm, IsAllDay, IsDone, Recurs};
        matches!(self.source, HasAlarm | IsAllDay | IsDone | Recurs)
    }

    /// Returns the names of the properties that have the values of the field; none if the values
    /// are parts of properties, or computed.
    #[must_use]
    pub fn property_names(&self) -> &'static [&'static str] {
        match self.source {
            FieldSource::Properties(names) | FieldSource::ListProperties(names) => names,
            _ => &[],
        }
    }

    /// Returns the parts of the row that stored indexes depend on, as text. A digest of this text
    /// is stored with the indexes. It leaves out help and aliases.
    #[must_use]
    pub fn fingerprint_text(&self) -> String {
        let Field {
            id,
            name,
            field_type: kind,
            is_default_search: words,
            is_indexed: indexed,
            subset_of: within,
            source,
            ..
        } = self;
        format!("{id} {name} {kind:?} {words} {indexed} {within:?} {source:?}")
    }
}

use FieldSource::{
    Address, AnyMessenger, CustomLabel, FileAs, FullName, IsList, Key, Label, ListProperties,
    Messenger, NthPhone, NthValue, Phone as Tel, Position, Properties, SpokenName, StructuredPart,
    ValueLabels, Version,
};
use FieldType::{Binary, Date, Email, Flag, Phone, Text, Uid, Uri};
use strsim::osa_distance;

/// Types of TEL that are not voice numbers at home or at work.
const NON_VOICE_TYPES: &[&str] = &["FAX", "CELL", "PAGER", "CAR", "ISDN", "MODEM"];
/// Types of TEL with a field of their own, which exclude a number from the other numbers.
const PHONE_TYPES_WITH_FIELD: &[&str] = &[
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
const HOME_WORK_TYPES: &[&str] = &["HOME", "WORK"];

/// All fields of contacts.
#[rustfmt::skip] // A table is read by its columns.
pub const CONTACT_FIELDS: &[Field] = &[
    field_row(1, "uid", Uid, Properties(&["UID"]), "the contact's identifier").with_aliases(&["id"]),
    field_row(2, "rev", Text, Properties(&["REV"]), "the time of the last revision, as written (REV)").with_aliases(&["Rev", "revision"]),
    field_row(3, "file_as", Text, FileAs, "the name for sorting (default: family name, given name)").searched_by_default(),
    field_row(4, "full_name", Text, FullName, "the displayed name (default: built from the parts of the name, the organisation or the e-mail address)").with_aliases(&["fn", "fullname"]).multi_valued().searched_by_default(),
    field_row(5, "name", Text, SpokenName, "all parts of the name: prefix, given, additional, family, suffix").multi_valued(),
    field_row(6, "given_name", Text, StructuredPart("N", 1), "first name").with_aliases(&["given", "firstname", "first_name"]).multi_valued().searched_by_default(),
    field_row(7, "family_name", Text, StructuredPart("N", 0), "last name").with_aliases(&["family", "surname", "lastname", "last_name"]).multi_valued().searched_by_default(),
    field_row(8, "nickname", Text, ListProperties(&["NICKNAME", "X-NICKNAME"]), "nicknames").with_aliases(&["nick"]).multi_valued().searched_by_default(),
    field_row(9, "name_or_org", Text, FullName, "the displayed name, or the organisation").multi_valued().subset_of("full_name"),
    field_row(10, "email", Email, Properties(&["EMAIL"]), "e-mail addresses").with_aliases(&["mail", "e_mail"]).multi_valued().searched_by_default().with_labels("email_type"),
    field_row(11, "email_1", Email, NthValue("EMAIL", 0), "the first e-mail address").subset_of("email"),
    field_row(12, "email_2", Email, NthValue("EMAIL", 1), "the second e-mail address").subset_of("email"),
    field_row(13, "email_3", Email, NthValue("EMAIL", 2), "the third e-mail address").subset_of("email"),
    field_row(14, "email_4", Email, NthValue("EMAIL", 3), "the fourth e-mail address").subset_of("email"),
    field_row(15, "email_type", Text, ValueLabels(&["EMAIL"]), "the labels of the e-mail addresses, in their order: home, work, a custom label, or - without a label").multi_valued().without_index(),

    field_row(20, "phone", Phone, Properties(&["TEL"]), "phone and fax numbers").with_aliases(&["tel", "telephone"]).multi_valued().searched_by_default().with_labels("phone_type"),
    field_row(21, "assistant_phone", Phone, Tel(&["X-EVOLUTION-ASSISTANT"], &[]), "the assistant's number").multi_valued().subset_of("phone"),
    field_row(22, "business_phone", Phone, Tel(&["WORK"], NON_VOICE_TYPES), "numbers at work").with_aliases(&["work_phone"]).multi_valued().subset_of("phone"),
    field_row(23, "business_phone_2", Phone, NthPhone(&["WORK"], NON_VOICE_TYPES, 1), "the second number at work").subset_of("phone"),
    field_row(24, "business_fax", Phone, Tel(&["WORK", "FAX"], &[]), "fax numbers at work").with_aliases(&["work_fax"]).multi_valued().subset_of("phone"),
    field_row(25, "callback_phone", Phone, Tel(&["X-EVOLUTION-CALLBACK"], &[]), "number to call back").multi_valued().subset_of("phone"),
    field_row(26, "car_phone", Phone, Tel(&["CAR"], &[]), "number in the car").multi_valued().subset_of("phone"),
    field_row(27, "company_phone", Phone, Tel(&["X-EVOLUTION-COMPANY"], &[]), "the company's number").multi_valued().subset_of("phone"),
    field_row(28, "home_phone", Phone, Tel(&["HOME"], NON_VOICE_TYPES), "numbers at home").multi_valued().subset_of("phone"),
    field_row(29, "home_phone_2", Phone, NthPhone(&["HOME"], NON_VOICE_TYPES, 1), "the second number at home").subset_of("phone"),
    field_row(30, "home_fax", Phone, Tel(&["HOME", "FAX"], &[]), "fax numbers at home").multi_valued().subset_of("phone"),
    field_row(31, "isdn_phone", Phone, Tel(&["ISDN"], &[]), "ISDN numbers").multi_valued().subset_of("phone"),
    field_row(32, "mobile_phone", Phone, Tel(&["CELL"], &[]), "mobile numbers").with_aliases(&["mobile", "cell"]).multi_valued().subset_of("phone"),
    field_row(33, "other_phone", Phone, Tel(&[], PHONE_TYPES_WITH_FIELD), "phone numbers without a type").multi_valued().subset_of("phone"),
    field_row(34, "other_fax", Phone, Tel(&["FAX"], HOME_WORK_TYPES), "fax numbers neither at home nor at work").multi_valued().subset_of("phone"),
    field_row(35, "pager", Phone, Tel(&["PAGER"], &[]), "pager numbers").multi_valued().subset_of("phone"),
    field_row(36, "primary_phone", Phone, Tel(&["PREF"], &[]), "the preferred number").multi_valued().subset_of("phone"),
    field_row(37, "radio", Phone, Tel(&["X-EVOLUTION-RADIO"], &[]), "radio").multi_valued().subset_of("phone"),
    field_row(38, "telex", Phone, Tel(&["X-EVOLUTION-TELEX"], &[]), "telex").multi_valued().subset_of("phone"),
    field_row(39, "tty", Phone, Tel(&["X-EVOLUTION-TTYTDD"], &[]), "text telephone").multi_valued().subset_of("phone"),
    field_row(40, "phone_type", Text, ValueLabels(&["TEL"]), "the labels of the numbers, in their order: mobile, work fax, a custom label, or - without a label").multi_valued().without_index(),

    field_row(50, "org", Text, StructuredPart("ORG", 0), "organisation").with_aliases(&["organisation", "organization", "company"]).multi_valued().searched_by_default(),
    field_row(51, "org_unit", Text, StructuredPart("ORG", 1), "department").with_aliases(&["department", "unit"]).multi_valued().searched_by_default(),
    field_row(52, "office", Text, StructuredPart("ORG", 2), "office").multi_valued(),
    field_row(53, "title", Text, Properties(&["TITLE"]), "job title").with_aliases(&["job"]).multi_valued(),
    field_row(54, "role", Text, Properties(&["ROLE"]), "the person's role in the organisation").with_aliases(&["profession"]).multi_valued(),
    field_row(55, "manager", Text, Properties(&["X-EVOLUTION-MANAGER", "X-MANAGER", "X-KADDRESSBOOK-X-MANAGERSNAME"]), "the manager's name"),
    field_row(56, "assistant", Text, Properties(&["X-EVOLUTION-ASSISTANT", "X-ASSISTANT", "X-KADDRESSBOOK-X-ASSISTANTSNAME"]), "the assistant's name"),
    field_row(57, "spouse", Text, Properties(&["X-EVOLUTION-SPOUSE", "X-SPOUSE", "X-KADDRESSBOOK-X-SPOUSESNAME"]), "the spouse's name").with_aliases(&["partner"]),
    field_row(58, "mailer", Text, Properties(&["MAILER"]), "the mail program used"),

    field_row(60, "url", Uri, Properties(&["URL"]), "web pages").with_aliases(&["web", "website"]).multi_valued(),
    field_row(61, "homepage_url", Uri, NthValue("URL", 0), "the first web page").with_aliases(&["homepage"]).subset_of("url"),
    field_row(62, "blog_url", Uri, Properties(&["X-EVOLUTION-BLOG-URL", "X-KADDRESSBOOK-BLOGFEED"]), "web log").with_aliases(&["blog"]),
    field_row(63, "caluri", Uri, Properties(&["CALURI"]), "the URL of the calendar").with_aliases(&["calurl"]).multi_valued(),
    field_row(64, "fburl", Uri, Properties(&["FBURL"]), "the URL of the free and busy times").multi_valued(),
    field_row(65, "icscalendar", Uri, Properties(&["ICSCALENDAR"]), "the URL of the calendar in iCalendar format"),
    field_row(66, "video_url", Uri, Properties(&["X-EVOLUTION-VIDEO-URL"]), "the address for video calls"),

    field_row(70, "note", Text, Properties(&["NOTE"]), "notes").with_aliases(&["notes", "comment"]).multi_valued(),
    field_row(71, "categories", Text, ListProperties(&["CATEGORIES"]), "categories").with_aliases(&["category_list", "category", "tag"]).multi_valued(),
    field_row(72, "birth_date", Date, Properties(&["BDAY", "X-LARDER-BDAY"]), "date of birth").with_aliases(&["birthday", "bday"]),
    field_row(73, "anniversary", Date, Properties(&["ANNIVERSARY", "X-EVOLUTION-ANNIVERSARY", "X-ANNIVERSARY", "X-KADDRESSBOOK-X-ANNIVERSARY"]), "wedding, or another anniversary"),
    field_row(74, "geo", Text, Position, "the geographic position: latitude,longitude").multi_valued(),

    field_row(75, "other_date", Date, Properties(&["X-ABDATE"]), "other dates, with a label").multi_valued(),
    field_row(76, "related", Text, Properties(&["RELATED", "X-ABRELATEDNAMES"]), "related people: spouse, children, friends").with_aliases(&["relation", "relations"]).multi_valued(),
    field_row(77, "social_profile", Uri, Properties(&["X-SOCIALPROFILE", "SOCIALPROFILE"]), "profiles in social networks").with_aliases(&["social"]).multi_valued(),
    field_row(78, "custom_label", Text, CustomLabel, "labels of numbers, addresses and dates that a person made up (X-ABLabel)").multi_valued(),
    field_row(79, "related_type", Text, ValueLabels(&["RELATED", "X-ABRELATEDNAMES"]), "the labels of related people, in their order: spouse, child, a custom label, or - without a label").multi_valued(),

    field_row(80, "address", Text, Address(&[], &[]), "postal addresses").with_aliases(&["adr"]).multi_valued(),
    field_row(81, "address_home", Text, Address(&["HOME"], &[]), "postal addresses at home").multi_valued().subset_of("address"),
    field_row(82, "address_work", Text, Address(&["WORK"], &[]), "postal addresses at work").multi_valued().subset_of("address"),
    field_row(83, "address_other", Text, Address(&[], HOME_WORK_TYPES), "postal addresses neither at home nor at work").multi_valued().subset_of("address"),
    field_row(84, "address_label", Text, Label(&[], &[]), "addresses as they are printed on letters").with_aliases(&["label"]).multi_valued(),
    field_row(85, "address_label_home", Text, Label(&["HOME"], &[]), "printed addresses at home").multi_valued().subset_of("address_label"),
    field_row(86, "address_label_work", Text, Label(&["WORK"], &[]), "printed addresses at work").multi_valued().subset_of("address_label"),
    field_row(87, "address_label_other", Text, Label(&[], HOME_WORK_TYPES), "printed addresses neither at home nor at work").multi_valued().subset_of("address_label"),

    field_row(100, "im", Text, AnyMessenger, "names at all messengers").multi_valued(),
    field_row(101, "im_aim", Text, Messenger(&["X-AIM", "X-messaging/aim-All"], &["aim"]), "AIM").multi_valued().subset_of("im"),
    field_row(102, "im_groupwise", Text, Messenger(&["X-GROUPWISE", "X-messaging/groupwise-All"], &["groupwise"]), "GroupWise").multi_valued().subset_of("im"),
    field_row(103, "im_jabber", Text, Messenger(&["X-JABBER", "X-messaging/xmpp-All"], &["xmpp", "jabber"]), "XMPP").with_aliases(&["xmpp"]).multi_valued().subset_of("im"),
    field_row(104, "im_yahoo", Text, Messenger(&["X-YAHOO", "X-YAHOO-ID", "X-messaging/yahoo-All"], &["ymsgr", "yahoo"]), "Yahoo").multi_valued().subset_of("im"),
    field_row(105, "im_msn", Text, Messenger(&["X-MSN", "X-messaging/msn-All"], &["msn", "msnim"]), "MSN").multi_valued().subset_of("im"),
    field_row(106, "im_icq", Text, Messenger(&["X-ICQ", "X-messaging/icq-All"], &["icq"]), "ICQ").multi_valued().subset_of("im"),
    field_row(107, "im_gadugadu", Text, Messenger(&["X-GADUGADU", "X-GADU-GADU", "X-messaging/gadu-All"], &["gg", "gadugadu"]), "Gadu-Gadu").multi_valued().subset_of("im"),
    field_row(108, "im_skype", Text, Messenger(&["X-SKYPE", "X-SKYPE-USERNAME", "X-messaging/skype-All"], &["skype"]), "Skype").multi_valued().subset_of("im"),
    field_row(109, "im_google_talk", Text, Messenger(&["X-GOOGLE-TALK", "X-GTALK"], &["gtalk", "googletalk"]), "Google Talk").multi_valued().subset_of("im"),
    field_row(110, "im_twitter", Text, Messenger(&["X-TWITTER"], &["twitter"]), "Twitter").multi_valued().subset_of("im"),
    field_row(111, "im_matrix", Text, Messenger(&["X-MATRIX"], &["matrix"]), "Matrix").multi_valued().subset_of("im"),
    field_row(112, "sip", Text, Messenger(&["X-SIP"], &["sip", "sips"]), "SIP addresses").multi_valued().subset_of("im"),

    field_row(120, "list", Flag, IsList, "1: a list of contacts"),
    field_row(123, "member", Uri, Properties(&["MEMBER", "X-ADDRESSBOOKSERVER-MEMBER"]), "the members of a list").with_aliases(&["members"]).multi_valued(),
    field_row(121, "list_show_addresses", Flag, Properties(&["X-EVOLUTION-LIST-SHOW-ADDRESSES", "X-EVOLUTION-LIST-SHOW_ADDRESSES"]), "1: mail to the list names all its members").without_index(),
    field_row(122, "wants_html", Flag, Properties(&["X-MOZILLA-HTML"]), "1: wants mail as HTML"),
    field_row(130, "photo", Binary, Properties(&["PHOTO"]), "picture of the person").with_aliases(&["picture"]).multi_valued().without_index(),
    field_row(131, "logo", Binary, Properties(&["LOGO"]), "the organisation's logo").multi_valued().without_index(),
    field_row(132, "x509Cert", Binary, Key("X509"), "certificates").with_aliases(&["x509"]).multi_valued().without_index(),
    field_row(133, "pgpCert", Binary, Key("PGP"), "PGP keys").with_aliases(&["pgp"]).multi_valued().without_index(),
    field_row(140, "version", Text, Version, "version of the card's format: 2.1, 3.0 or 4.0").without_index(),
];

/// Returns the contact field with this name or alias, in any case, with `-` for `_`.
#[must_use]
pub fn find_contact_field(name: &str) -> Option<&'static Field> {
    find_field(CONTACT_FIELDS, name)
}

/// Returns the field of a table with this name or alias, in any case, with `-` for `_`.
#[must_use]
pub fn find_field(fields: &'static [Field], name: &str) -> Option<&'static Field> {
    let same = |other: &str| {
        name.len() == other.len()
            && name.bytes().map(normalise_name_byte).eq(other.bytes().map(normalise_name_byte))
    };
    fields.iter().find(|field| same(field.name) || field.aliases.iter().any(|alias| same(alias)))
}

/// Returns the field that has this name in evolution-data-server, spelled as there. Its three slots
/// for names at home and at work of each messenger (`im_aim_home_1`) map to the field with all
/// names at that messenger.
#[must_use]
pub fn find_eds_field(name: &str) -> Option<&'static Field> {
    const EDS_ALIASES: &[&str] = &["id", "Rev", "category_list", "calurl"];
    let found = |name: &str| {
        CONTACT_FIELDS.iter().find(|field| {
            field.name == name || (EDS_ALIASES.contains(&name) && field.aliases.contains(&name))
        })
    };
    found(name).or_else(|| {
        let (place, nth) = name.strip_prefix("im_")?.rsplit_once('_')?;
        let service = place.strip_suffix("_home").or_else(|| place.strip_suffix("_work"))?;
        let field =
            CONTACT_FIELDS.iter().find(|field| field.name.strip_prefix("im_") == Some(service));
        field.filter(|_| matches!(nth, "1" | "2" | "3"))
    })
}

fn normalise_name_byte(byte: u8) -> u8 {
    if byte == b'-' { b'_' } else { byte.to_ascii_lowercase() }
}

/// Returns the nearest name of a contact field to a misspelt one.
#[must_use]
pub fn suggest_contact_field(name: &str) -> Option<&'static str> {
    suggest_field(CONTACT_FIELDS, name)
}

/// Returns the nearest name in a table of fields to a misspelt one.
#[must_use]
pub fn suggest_field(fields: &'static [Field], name: &str) -> Option<&'static str> {
    if name.len() > 40 {
        return None;
    }
    let normalise = |name: &str| name.to_ascii_lowercase().replace('-', "_");
    let name = normalise(name);
    let (distance, nearest) = fields
        .iter()
        .flat_map(|field| {
            field.aliases.iter().chain([&field.name]).map(move |known| (known, field.name))
        })
        .map(|(known, field)| (osa_distance(&name, &normalise(known)), field))
        .min_by_key(|(distance, _)| *distance)?;
    (distance <= (name.len() / 3).clamp(1, 3)).then_some(nearest)
}
