//! Contacts as vCards, in the manners of the programs that write each version.
//!
//! Not a conforming serialiser: it writes only what [`Contact::draw`] makes, and where programs differ from
//! the RFC (an Outlook-like `TEL;CELL;VOICE`, Apple's groups and labels, Evolution's extensions) it does
//! as they do.

use super::card::Card;
use super::contact::{Address, Contact, Email, Line, Phone, Version};
use super::names::Order;
use super::words;

/// Writes one card.
pub(super) fn card(contact: &Contact<'_>, card: &mut Card<'_>) {
    match contact.version {
        Version::V2_1 => version_2_1(contact, card),
        Version::V3_0 => version_3_0(contact, card),
        Version::V4_0 => version_4_0(contact, card),
    }
}

/// As telephones and older organisers do: bare parameters, quoted-printable.
fn version_2_1(contact: &Contact<'_>, card: &mut Card<'_>) {
    let second = contact.second.map_or("", |name| &name.written);
    card.put("BEGIN:VCARD").end();
    card.put("VERSION:2.1").end();
    card.old("N", &[&contact.family.written, &contact.given.written, second, "", ""]);
    card.old("FN", &[&contact.shown]);
    reach_2_1(contact, card);
    if let Some(organisation) = contact.organisation {
        match contact.department {
            Some(department) => card.old("ORG", &[organisation, department]),
            None => card.old("ORG", &[organisation]),
        }
    }
    if let Some(title) = contact.title {
        card.old("TITLE", &[title]);
    }
    birthday(contact, card);
    if let Some(note) = &contact.note {
        card.old("NOTE", &[note]);
    }
    if let Some(website) = &contact.website {
        card.old("URL;HOME", &[website]);
    }
    if let Some((property, _, name)) = &contact.account {
        card.put(property).put(":").put(name).end();
    }
    if let Some(photo) = &contact.photo {
        card.put("PHOTO;JPEG;ENCODING=BASE64:").base64(photo).end();
        // A blank line ends base64 in 2.1.
        card.end();
    }
    if let Some(uid) = contact.uid {
        card.put(&format!("UID:{:024X}", uid >> 32)).end();
    }
    finish(contact, "", card);
}

/// Telephones, mailboxes and addresses in 2.1.
fn reach_2_1(contact: &Contact<'_>, card: &mut Card<'_>) {
    for (at, phone) in contact.phones.iter().enumerate() {
        let head = match phone.line {
            Line::Mobile => "TEL;CELL",
            Line::Home if at == 0 => "TEL;PREF;HOME;VOICE",
            Line::Home => "TEL;HOME",
            Line::Work => "TEL;WORK;VOICE",
            Line::Fax => "TEL;WORK;FAX",
        };
        card.old(head, &[&phone.number]);
    }
    for (at, email) in contact.emails.iter().enumerate() {
        card.old(if at == 0 { "EMAIL;PREF;INTERNET" } else { "EMAIL;INTERNET" }, &[&email.address]);
    }
    for address in &contact.addresses {
        card.old(if address.work { "ADR;WORK" } else { "ADR;HOME" }, &components(address));
    }
}

/// As most programs do: with groups and labels (Apple, Google), or with extensions (Evolution).
fn version_3_0(contact: &Contact<'_>, card: &mut Card<'_>) {
    card.put("BEGIN:VCARD").end();
    card.put("VERSION:3.0").end();
    card.put("PRODID:-//Example Inc.//Address Book 11.2//EN").end();
    name(contact, "N:", card);
    card.put("FN:").text(&contact.shown).end();
    if let Some(nickname) = contact.nickname {
        card.put("NICKNAME:").text(nickname).end();
    }
    workplace(contact, card);
    let mut groups = Groups::of(contact);
    for (at, email) in contact.emails.iter().enumerate() {
        groups.begin(card);
        email_3_0(email, at == 0, card);
        groups.end(card);
    }
    for (at, phone) in contact.phones.iter().enumerate() {
        phone_3_0(phone, at == 0, card);
    }
    for address in &contact.addresses {
        groups.begin(card);
        card.put(if address.work { "ADR;TYPE=WORK:" } else { "ADR;TYPE=HOME:" });
        card.texts(";", &components(address)).end();
        groups.end(card);
    }
    birthday(contact, card);
    categories(contact, card);
    if let Some(note) = &contact.note {
        card.put("NOTE:").text(note).end();
    }
    if let Some(website) = &contact.website {
        groups.begin(card);
        card.put("URL:").put(website).end();
        groups.end(card);
    }
    if let Some((property, _, name)) = &contact.account {
        card.put(property).put(";TYPE=HOME:").put(name).end();
    }
    if let Some(photo) = &contact.photo {
        card.put("PHOTO;ENCODING=b;TYPE=JPEG:").base64(photo).end();
    }
    uid_3_0(contact, card);
    finish(contact, "-", card);
}

/// As RFC 6350 asks: URIs, preferences, media inside a `data:` URI.
fn version_4_0(contact: &Contact<'_>, card: &mut Card<'_>) {
    card.put("BEGIN:VCARD").end();
    card.put("VERSION:4.0").end();
    if let Some(uid) = contact.uid {
        card.put("UID:urn:uuid:").put(&uuid(uid)).end();
    }
    card.put("PRODID:-//Example//Kontakte 5.0//DE").end();
    if contact.habit.is_multiple_of(4) {
        card.put("KIND:individual").end();
    }
    card.put("FN:").text(&contact.shown).end();
    if contact.family.written.is_ascii() {
        name(contact, "N:", card);
    } else {
        let keys = [contact.family.ascii.as_str(), ",", &contact.given.ascii].concat();
        name(contact, &["N;SORT-AS=\"", &keys, "\":"].concat(), card);
    }
    if let Some(nickname) = contact.nickname {
        card.put("NICKNAME:").text(nickname).end();
    }
    reach_4_0(contact, card);
    workplace(contact, card);
    birthday_4_0(contact, card);
    categories(contact, card);
    if let Some(note) = &contact.note {
        card.put("NOTE:").text(note).end();
    }
    if let Some(website) = &contact.website {
        card.put("URL;TYPE=home:").put(website).end();
    }
    extensions_4_0(contact, card);
    if let Some(photo) = &contact.photo {
        card.put("PHOTO:data:image/jpeg;base64,").base64(photo).end();
    }
    finish(contact, "", card);
}

/// Mailboxes, telephones and addresses in 4.0.
fn reach_4_0(contact: &Contact<'_>, card: &mut Card<'_>) {
    for (at, email) in contact.emails.iter().enumerate() {
        card.put(if at == 0 && contact.emails.len() > 1 { "EMAIL;PREF=1" } else { "EMAIL" });
        card.put(if email.work { ";TYPE=work:" } else { ";TYPE=home:" }).put(&email.address).end();
    }
    for phone in &contact.phones {
        phone_4_0(phone, contact.habit, card);
    }
    for address in &contact.addresses {
        card.put(if address.work { "ADR;TYPE=work" } else { "ADR;TYPE=home" });
        if contact.habit.is_multiple_of(3) {
            delivery_label(address, card);
        }
        card.put(":");
        card.texts(";", &components(address)).end();
    }
}

/// `BDAY` with dashes, in 2.1 and 3.0.
fn birthday(contact: &Contact<'_>, card: &mut Card<'_>) {
    if let Some((year, month, day)) = contact.birthday {
        card.put(&format!("BDAY:{year:04}-{month:02}-{day:02}")).end();
    }
}

/// The account in 4.0, registered or not, and what one program keeps for itself.
fn extensions_4_0(contact: &Contact<'_>, card: &mut Card<'_>) {
    if let Some((_, scheme, name)) = &contact.account {
        if contact.habit.is_multiple_of(3) {
            card.put("X-SOCIALPROFILE;TYPE=").put(scheme).put(":https://social.example/");
            card.put(name).end();
        } else {
            card.put("IMPP:").put(scheme).put(":").put(name).put("@chat.example").end();
        }
    }
    if contact.habit % 7 < 2 {
        card.put("X-ACCOUNT-COLOUR:#").put(&format!("{:06x}", contact.habit >> 40)).end();
    }
}

/// `BDAY` in 4.0, where the year may be left out (RFC 6350 section 4.3.1).
fn birthday_4_0(contact: &Contact<'_>, card: &mut Card<'_>) {
    if let Some((year, month, day)) = contact.birthday {
        // The year is what people leave out.
        let known = !contact.habit.is_multiple_of(5);
        let year = if known { format!("{year:04}") } else { "--".to_owned() };
        card.put(&format!("BDAY:{year}{month:02}{day:02}")).end();
    }
}

/// `REV` in ISO 8601's extended form if there is a `dash`, else in its basic form; and `END`.
fn finish(contact: &Contact<'_>, dash: &str, card: &mut Card<'_>) {
    let colon = if dash.is_empty() { "" } else { ":" };
    let [year, month, day, hour, minute, second] = contact.revised;
    card.put(&format!("REV:{year:04}{dash}{month:02}{dash}{day:02}"));
    card.put(&format!("T{hour:02}{colon}{minute:02}{colon}{second:02}Z")).end();
    card.put("END:VCARD").end();
}

/// `N`, in 3.0 and 4.0.
fn name(contact: &Contact<'_>, head: &str, card: &mut Card<'_>) {
    let second = contact.second.map_or("", |name| &name.written);
    let parts = [contact.family.written.as_str(), &contact.given.written, second, "", ""];
    card.put(head).texts(";", &parts).end();
}

/// `ORG` and `TITLE`, in 3.0 and 4.0.
fn workplace(contact: &Contact<'_>, card: &mut Card<'_>) {
    if let Some(organisation) = contact.organisation {
        card.put("ORG:").text(organisation);
        if let Some(department) = contact.department {
            card.put(";").text(department);
        }
        card.end();
    }
    if let Some(title) = contact.title {
        card.put("TITLE:").text(title).end();
    }
}

fn categories(contact: &Contact<'_>, card: &mut Card<'_>) {
    if !contact.categories.is_empty() {
        card.put("CATEGORIES:").texts(",", &contact.categories).end();
    }
}

/// Post box, extended address, street, city, region, code, country.
fn components(address: &Address) -> [&str; 7] {
    ["", "", &address.street, address.city, address.region, &address.code, address.country]
}

/// `LABEL` of an address in 4.0: as on an envelope, line breaks written as RFC 6868 says.
fn delivery_label(address: &Address, card: &mut Card<'_>) {
    card.put(";LABEL=\"").put(&address.street).put("^n").put(&address.code).put(" ");
    card.put(address.city).put("^n").put(address.country).put("\"");
}

fn email_3_0(email: &Email, first: bool, card: &mut Card<'_>) {
    card.put("EMAIL;TYPE=INTERNET").put(if email.work { ";TYPE=WORK" } else { ";TYPE=HOME" });
    card.put(if first { ";TYPE=pref:" } else { ":" }).put(&email.address).end();
}

fn phone_3_0(phone: &Phone, first: bool, card: &mut Card<'_>) {
    card.put(match (phone.line, first) {
        (Line::Mobile, true) => "TEL;TYPE=CELL;TYPE=VOICE;TYPE=pref:",
        (Line::Mobile, false) => "TEL;TYPE=CELL:",
        (Line::Home, true) => "TEL;TYPE=HOME,VOICE,pref:",
        (Line::Home, false) => "TEL;TYPE=HOME,VOICE:",
        (Line::Work, _) => "TEL;TYPE=WORK,VOICE:",
        (Line::Fax, _) => "TEL;TYPE=WORK,FAX:",
    });
    card.text(&phone.number).end();
}

/// Two of three write a URI, as the RFC recommends; the third the number as it was typed.
fn phone_4_0(phone: &Phone, habit: u64, card: &mut Card<'_>) {
    let uri = habit % 3 < 2;
    card.put(if uri { "TEL;VALUE=uri;" } else { "TEL;" });
    card.put(match (phone.line, uri) {
        (Line::Mobile, true) => "TYPE=\"cell,voice\":",
        (Line::Mobile, false) => "TYPE=cell:",
        (Line::Home, _) => "TYPE=home:",
        (Line::Work, _) => "TYPE=work:",
        (Line::Fax, true) => "TYPE=\"work,fax\":",
        (Line::Fax, false) => "TYPE=work,fax:",
    });
    if uri {
        card.put(&phone.uri).end();
    } else {
        card.text(&phone.number).end();
    }
}

/// The UID in one of four shapes, and what the program with that shape adds.
fn uid_3_0(contact: &Contact<'_>, card: &mut Card<'_>) {
    let Some(uid) = contact.uid else { return };
    let labelled = contact.label.is_some();
    match contact.habit % 4 {
        _ if labelled => {
            if contact.culture.order != Order::GivenFirst {
                card.put("X-PHONETIC-LAST-NAME:").put(&contact.family.ascii).end();
            }
            card.put("UID:").put(&uuid(uid).to_ascii_uppercase()).put(":ABPerson").end();
        }
        0 | 1 => {
            card.put("X-EVOLUTION-FILE-AS:").text(&contact.family.written).put("\\, ");
            card.text(&contact.given.written).end();
            card.put(&format!("UID:pas-id-{uid:032X}")).end();
        }
        2 => card.put("UID:").put(&uuid(uid)).end(),
        _ => card.put(&format!("UID:{uid:032x}@contacts.example")).end(),
    }
}

/// The groups of one card: `item1.` before a property, and its label after it.
struct Groups {
    labels: Option<usize>,
    count: usize,
}

impl Groups {
    fn of(contact: &Contact<'_>) -> Groups {
        Groups { labels: contact.label, count: 0 }
    }

    /// Opens a property's line with the next group, if this card has groups.
    fn begin(&mut self, card: &mut Card<'_>) {
        if self.labels.is_some() {
            self.count += 1;
            card.put("item").put(&self.count.to_string()).put(".");
        }
    }

    /// The label line of the group that was opened last.
    fn end(&self, card: &mut Card<'_>) {
        if let Some(first) = self.labels {
            let label = words::LABELS[(first + self.count) % words::LABELS.len()];
            card.put("item").put(&self.count.to_string()).put(".X-ABLabel:").text(label).end();
        }
    }
}

/// 128 bits in the form of a version 4 UUID (RFC 9562 section 5.4), which leaves 122 of them.
fn uuid(bits: u128) -> String {
    let version = bits & !(0xF << 76) | 0x4 << 76;
    let uuid = version & !(0x3 << 62) | 0x2 << 62;
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        uuid >> 96,
        uuid >> 80 & 0xFFFF,
        uuid >> 64 & 0xFFFF,
        uuid >> 48 & 0xFFFF,
        uuid & 0xFFFF_FFFF_FFFF
    )
}
