//! The texts of contacts that do not depend on the country.
//!
//! Domains are reserved by RFC 2606, so that no mail can leave a test.

/// The domains of private addresses.
pub(super) static HOME_DOMAINS: &[&str] = &[
    "example.com",
    "mail.example",
    "example.org",
    "post.example.net",
    "webmail.example",
    "inbox.example",
];

/// The domains of addresses at work.
pub(super) static WORK_DOMAINS: &[&str] = &[
    "corp.example.com",
    "firma.example",
    "office.example.org",
    "uni.example",
    "hq.example.net",
    "stadt.example",
    "lab.example",
];

/// Organisations known in many countries.
pub(super) static ORGANISATIONS: &[&str] = &[
    "Example Ltd",
    "Brightwater Systems",
    "Cormorant Shipping, S.A.",
    "Institute of Applied Botany",
    "Redgate & Pine Consulting",
    "Halcyon Instruments",
    "Mapleton University",
    "International Society of Kite Makers",
];

/// Departments.
pub(super) static DEPARTMENTS: &[&str] = &[
    "Sales",
    "Research and Development",
    "IT",
    "Human Resources",
    "Accounts; Payroll",
    "Kundendienst",
    "Logistics",
    "Support",
];

/// Job titles in English.
pub(super) static TITLES: &[&str] = &[
    "Engineer",
    "Project Manager",
    "Software Developer",
    "Account Manager",
    "Professor, Department of History",
    "Assistant to the Director",
    "CTO",
    "Consultant",
];

/// Nicknames.
pub(super) static NICKNAMES: &[&str] = &[
    "Bear",
    "Mimi",
    "Doc",
    "Ace",
    "Señor T",
    "Pünktchen",
    "Boss",
    "Kiki",
    "Red",
    "Тёма",
    "Zuzu",
    "小宝",
    "Momo",
    "Skip",
];

/// Categories of address books.
pub(super) static CONTACT_CATEGORIES: &[&str] = &[
    "Friends",
    "Work",
    "Family",
    "myContacts",
    "Holiday Cards",
    "Club",
    "Neighbours",
    "School",
    "Suppliers",
    "VIP",
    "Chor",
];

/// Sentences of notes.
pub(super) static NOTE_SENTENCES: &[&str] = &[
    "Met at the conference in spring, talked about sailing and old maps.",
    "Has two children and a dog called Biscuit.",
    "Do not call before ten o'clock; works nights.",
    "Recommended by the accountant, very thorough, a little slow to answer.",
    "Old address book says a different number - check next time.",
    "Allergic to nuts, likes walnuts anyway.",
    "Customer number 40-17, contract runs until the end of the year.",
    "Moved in May.",
    "Plays second violin in the orchestra, rehearsals every Thursday.",
    "Sends postcards from every journey and would like some in return.",
];

/// Labels of numbers and addresses.
pub(super) static PROPERTY_LABELS: &[&str] =
    &["_$!<Other>!$_", "Cottage", "Ferienhaus", "Weekend only", "実家", "Дача"];

/// Services with accounts: property and URI scheme.
pub(super) static ACCOUNT_SERVICES: &[(&str, &str)] = &[
    ("X-SKYPE", "skype"),
    ("X-JABBER", "xmpp"),
    ("X-ICQ", "icq"),
    ("X-AIM", "aim"),
    ("X-MATRIX", "matrix"),
    ("X-TWITTER", "twitter"),
];
