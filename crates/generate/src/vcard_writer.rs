//! Writes contacts as vCards, in the style of the programs that write each version.
//!
//! It supports only the values that the generator produces, and imitates real programs where they
//! differ from the RFC: `TEL;CELL;VOICE` as in Outlook, groups and labels as in Apple's programs,
//! extensions as in Evolution.

use super::contact::{FakeAddress, FakeCardVersion, FakeContact, FakeEmail, FakePhone, PhoneType};
use super::contact_texts;
use super::line_writer::LineWriter;
use super::person_names::NameOrder;

/// Writes a card.
pub(super) fn write_contact(contact: &FakeContact<'_>, card: &mut LineWriter<'_>) {
    match contact.version {
        FakeCardVersion::V2_1 => write_vcard_2_1(contact, card),
        FakeCardVersion::V3_0 => write_vcard_3_0(contact, card),
        FakeCardVersion::V4_0 => write_vcard_4_0(contact, card),
    }
}

/// Writes vCard 2.1 like telephones and older organisers: bare parameters, quoted-printable.
fn write_vcard_2_1(contact: &FakeContact<'_>, card: &mut LineWriter<'_>) {
    let second = contact.middle.map_or("", |name| &name.written);
    card.put("BEGIN:VCARD").end_line();
    card.put("VERSION:2.1").end_line();
    card.put_vcard_2_1_line(
        "N",
        &[&contact.family.written, &contact.given.written, second, "", ""],
    );
    card.put_vcard_2_1_line("FN", &[&contact.display_name]);
    write_contact_points_2_1(contact, card);
    if let Some(organisation) = contact.organisation {
        match contact.department {
            Some(department) => card.put_vcard_2_1_line("ORG", &[organisation, department]),
            None => card.put_vcard_2_1_line("ORG", &[organisation]),
        }
    }
    if let Some(title) = contact.title {
        card.put_vcard_2_1_line("TITLE", &[title]);
    }
    write_birthday(contact, card);
    if let Some(note) = &contact.note {
        card.put_vcard_2_1_line("NOTE", &[note]);
    }
    if let Some(website) = &contact.website {
        card.put_vcard_2_1_line("URL;HOME", &[website]);
    }
    if let Some((property, _, name)) = &contact.account {
        card.put(property).put(":").put(name).end_line();
    }
    if let Some(photo) = &contact.photo {
        card.put("PHOTO;JPEG;ENCODING=BASE64:").put_base64(photo).end_line();
        // In 2.1 a blank line ends base64.
        card.end_line();
    }
    if let Some(uid) = contact.uid {
        card.put(&format!("UID:{:024X}", uid >> 32)).end_line();
    }
    write_revision_and_end(contact, "", card);
}

/// Writes telephone numbers, e-mail addresses and postal addresses of 2.1.
fn write_contact_points_2_1(contact: &FakeContact<'_>, card: &mut LineWriter<'_>) {
    for (at, phone) in contact.phones.iter().enumerate() {
        let head = match phone.phone_type {
            PhoneType::Mobile => "TEL;CELL",
            PhoneType::Home if at == 0 => "TEL;PREF;HOME;VOICE",
            PhoneType::Home => "TEL;HOME",
            PhoneType::Work => "TEL;WORK;VOICE",
            PhoneType::Fax => "TEL;WORK;FAX",
        };
        card.put_vcard_2_1_line(head, &[&phone.number]);
    }
    for (at, email) in contact.emails.iter().enumerate() {
        card.put_vcard_2_1_line(
            if at == 0 { "EMAIL;PREF;INTERNET" } else { "EMAIL;INTERNET" },
            &[&email.address],
        );
    }
    for address in &contact.addresses {
        card.put_vcard_2_1_line(
            if address.is_work { "ADR;WORK" } else { "ADR;HOME" },
            &address_components(address),
        );
    }
}

/// Writes vCard 3.0 like most programs: with groups and labels (Apple, Google) or with extensions
/// (Evolution).
fn write_vcard_3_0(contact: &FakeContact<'_>, card: &mut LineWriter<'_>) {
    card.put("BEGIN:VCARD").end_line();
    card.put("VERSION:3.0").end_line();
    card.put("PRODID:-//Example Inc.//Address Book 11.2//EN").end_line();
    write_name(contact, "N:", card);
    card.put("FN:").put_text(&contact.display_name).end_line();
    if let Some(nickname) = contact.nickname {
        card.put("NICKNAME:").put_text(nickname).end_line();
    }
    write_workplace(contact, card);
    let mut groups = PropertyGroups::from_contact(contact);
    for (at, email) in contact.emails.iter().enumerate() {
        groups.begin_property(card);
        write_email_3_0(email, at == 0, card);
        groups.write_label(card);
    }
    for (at, phone) in contact.phones.iter().enumerate() {
        write_phone_3_0(phone, at == 0, card);
    }
    for address in &contact.addresses {
        groups.begin_property(card);
        card.put(if address.is_work { "ADR;TYPE=WORK:" } else { "ADR;TYPE=HOME:" });
        card.put_text_list(";", &address_components(address)).end_line();
        groups.write_label(card);
    }
    write_birthday(contact, card);
    write_categories(contact, card);
    if let Some(note) = &contact.note {
        card.put("NOTE:").put_text(note).end_line();
    }
    if let Some(website) = &contact.website {
        groups.begin_property(card);
        card.put("URL:").put(website).end_line();
        groups.write_label(card);
    }
    if let Some((property, _, name)) = &contact.account {
        card.put(property).put(";TYPE=HOME:").put(name).end_line();
    }
    if let Some(photo) = &contact.photo {
        card.put("PHOTO;ENCODING=b;TYPE=JPEG:").put_base64(photo).end_line();
    }
    write_uid_3_0(contact, card);
    write_revision_and_end(contact, "-", card);
}

/// Writes vCard 4.0 by RFC 6350: URIs, preferences, media in `data:` URIs.
fn write_vcard_4_0(contact: &FakeContact<'_>, card: &mut LineWriter<'_>) {
    card.put("BEGIN:VCARD").end_line();
    card.put("VERSION:4.0").end_line();
    if let Some(uid) = contact.uid {
        card.put("UID:urn:uuid:").put(&format_uuid(uid)).end_line();
    }
    card.put("PRODID:-//Example//Kontakte 5.0//DE").end_line();
    if contact.style_bits.is_multiple_of(4) {
        card.put("KIND:individual").end_line();
    }
    card.put("FN:").put_text(&contact.display_name).end_line();
    if contact.family.written.is_ascii() {
        write_name(contact, "N:", card);
    } else {
        let keys = [contact.family.ascii.as_str(), ",", &contact.given.ascii].concat();
        write_name(contact, &["N;SORT-AS=\"", &keys, "\":"].concat(), card);
    }
    if let Some(nickname) = contact.nickname {
        card.put("NICKNAME:").put_text(nickname).end_line();
    }
    write_contact_points_4_0(contact, card);
    write_workplace(contact, card);
    write_birthday_4_0(contact, card);
    write_categories(contact, card);
    if let Some(note) = &contact.note {
        card.put("NOTE:").put_text(note).end_line();
    }
    if let Some(website) = &contact.website {
        card.put("URL;TYPE=home:").put(website).end_line();
    }
    write_extensions_4_0(contact, card);
    if let Some(photo) = &contact.photo {
        card.put("PHOTO:data:image/jpeg;base64,").put_base64(photo).end_line();
    }
    write_revision_and_end(contact, "", card);
}

/// Writes e-mail addresses, telephone numbers and postal addresses of 4.0.
fn write_contact_points_4_0(contact: &FakeContact<'_>, card: &mut LineWriter<'_>) {
    for (at, email) in contact.emails.iter().enumerate() {
        card.put(if at == 0 && contact.emails.len() > 1 { "EMAIL;PREF=1" } else { "EMAIL" });
        card.put(if email.is_work { ";TYPE=work:" } else { ";TYPE=home:" })
            .put(&email.address)
            .end_line();
    }
    for phone in &contact.phones {
        write_phone_4_0(phone, contact.style_bits, card);
    }
    for address in &contact.addresses {
        card.put(if address.is_work { "ADR;TYPE=work" } else { "ADR;TYPE=home" });
        if contact.style_bits.is_multiple_of(3) {
            write_delivery_label(address, card);
        }
        card.put(":");
        card.put_text_list(";", &address_components(address)).end_line();
    }
}

/// Writes `BDAY` with dashes, for 2.1 and 3.0.
fn write_birthday(contact: &FakeContact<'_>, card: &mut LineWriter<'_>) {
    if let Some((year, month, day)) = contact.birthday {
        card.put(&format!("BDAY:{year:04}-{month:02}-{day:02}")).end_line();
    }
}

/// Writes the account as IMPP or as X-SOCIALPROFILE, and an extension property of one program.
fn write_extensions_4_0(contact: &FakeContact<'_>, card: &mut LineWriter<'_>) {
    if let Some((_, scheme, name)) = &contact.account {
        if contact.style_bits.is_multiple_of(3) {
            card.put("X-SOCIALPROFILE;TYPE=").put(scheme).put(":https://social.example/");
            card.put(name).end_line();
        } else {
            card.put("IMPP:").put(scheme).put(":").put(name).put("@chat.example").end_line();
        }
    }
    if contact.style_bits % 7 < 2 {
        card.put("X-ACCOUNT-COLOUR:#").put(&format!("{:06x}", contact.style_bits >> 40)).end_line();
    }
}

/// Writes `BDAY` of 4.0, in which the year may be omitted (RFC 6350 section 4.3.1).
fn write_birthday_4_0(contact: &FakeContact<'_>, card: &mut LineWriter<'_>) {
    if let Some((year, month, day)) = contact.birthday {
        // Some people omit the year.
        let known = !contact.style_bits.is_multiple_of(5);
        let year = if known { format!("{year:04}") } else { "--".to_owned() };
        card.put(&format!("BDAY:{year}{month:02}{day:02}")).end_line();
    }
}

/// Writes `REV`, in the extended form of ISO 8601 with a `dash`, else in the basic form, and `END`.
fn write_revision_and_end(contact: &FakeContact<'_>, dash: &str, card: &mut LineWriter<'_>) {
    let colon = if dash.is_empty() { "" } else { ":" };
    let [year, month, day, hour, minute, second] = contact.revision_time;
    card.put(&format!("REV:{year:04}{dash}{month:02}{dash}{day:02}"));
    card.put(&format!("T{hour:02}{colon}{minute:02}{colon}{second:02}Z")).end_line();
    card.put("END:VCARD").end_line();
}

/// Writes `N` of 3.0 and 4.0.
fn write_name(contact: &FakeContact<'_>, head: &str, card: &mut LineWriter<'_>) {
    let second = contact.middle.map_or("", |name| &name.written);
    let parts = [contact.family.written.as_str(), &contact.given.written, second, "", ""];
    card.put(head).put_text_list(";", &parts).end_line();
}

/// Writes `ORG` and `TITLE` of 3.0 and 4.0.
fn write_workplace(contact: &FakeContact<'_>, card: &mut LineWriter<'_>) {
    if let Some(organisation) = contact.organisation {
        card.put("ORG:").put_text(organisation);
        if let Some(department) = contact.department {
            card.put(";").put_text(department);
        }
        card.end_line();
    }
    if let Some(title) = contact.title {
        card.put("TITLE:").put_text(title).end_line();
    }
}

fn write_categories(contact: &FakeContact<'_>, card: &mut LineWriter<'_>) {
    if !contact.categories.is_empty() {
        card.put("CATEGORIES:").put_text_list(",", &contact.categories).end_line();
    }
}

/// Returns the components of an address: post box, extended address, street, city, region, postal
/// code, country.
fn address_components(address: &FakeAddress) -> [&str; 7] {
    ["", "", &address.street, address.city, address.region, &address.postal_code, address.country]
}

/// Writes the `LABEL` of an address in 4.0: as on an envelope, with line breaks by RFC 6868.
fn write_delivery_label(address: &FakeAddress, card: &mut LineWriter<'_>) {
    card.put(";LABEL=\"").put(&address.street).put("^n").put(&address.postal_code).put(" ");
    card.put(address.city).put("^n").put(address.country).put("\"");
}

fn write_email_3_0(email: &FakeEmail, first: bool, card: &mut LineWriter<'_>) {
    card.put("EMAIL;TYPE=INTERNET").put(if email.is_work { ";TYPE=WORK" } else { ";TYPE=HOME" });
    card.put(if first { ";TYPE=pref:" } else { ":" }).put(&email.address).end_line();
}

fn write_phone_3_0(phone: &FakePhone, first: bool, card: &mut LineWriter<'_>) {
    card.put(match (phone.phone_type, first) {
        (PhoneType::Mobile, true) => "TEL;TYPE=CELL;TYPE=VOICE;TYPE=pref:",
        (PhoneType::Mobile, false) => "TEL;TYPE=CELL:",
        (PhoneType::Home, true) => "TEL;TYPE=HOME,VOICE,pref:",
        (PhoneType::Home, false) => "TEL;TYPE=HOME,VOICE:",
        (PhoneType::Work, _) => "TEL;TYPE=WORK,VOICE:",
        (PhoneType::Fax, _) => "TEL;TYPE=WORK,FAX:",
    });
    card.put_text(&phone.number).end_line();
}

/// Writes a telephone number: two thirds of the cards have a URI, as the RFC recommends; the others
/// have the number as typed.
fn write_phone_4_0(phone: &FakePhone, habit: u64, card: &mut LineWriter<'_>) {
    let uri = habit % 3 < 2;
    card.put(if uri { "TEL;VALUE=uri;" } else { "TEL;" });
    card.put(match (phone.phone_type, uri) {
        (PhoneType::Mobile, true) => "TYPE=\"cell,voice\":",
        (PhoneType::Mobile, false) => "TYPE=cell:",
        (PhoneType::Home, _) => "TYPE=home:",
        (PhoneType::Work, _) => "TYPE=work:",
        (PhoneType::Fax, true) => "TYPE=\"work,fax\":",
        (PhoneType::Fax, false) => "TYPE=work,fax:",
    });
    if uri {
        card.put(&phone.uri).end_line();
    } else {
        card.put_text(&phone.number).end_line();
    }
}

/// Writes the UID in one of four forms, with the extensions of the program that uses the form.
fn write_uid_3_0(contact: &FakeContact<'_>, card: &mut LineWriter<'_>) {
    let Some(uid) = contact.uid else { return };
    let labelled = contact.first_label_index.is_some();
    match contact.style_bits % 4 {
        _ if labelled => {
            if contact.culture.order != NameOrder::GivenFirst {
                card.put("X-PHONETIC-LAST-NAME:").put(&contact.family.ascii).end_line();
            }
            card.put("UID:")
                .put(&format_uuid(uid).to_ascii_uppercase())
                .put(":ABPerson")
                .end_line();
        }
        0 | 1 => {
            card.put("X-EVOLUTION-FILE-AS:").put_text(&contact.family.written).put("\\, ");
            card.put_text(&contact.given.written).end_line();
            card.put(&format!("UID:pas-id-{uid:032X}")).end_line();
        }
        2 => card.put("UID:").put(&format_uuid(uid)).end_line(),
        _ => card.put(&format!("UID:{uid:032x}@contacts.example")).end_line(),
    }
}

/// The groups of a card: `item1.` before a property, and a line with its label.
struct PropertyGroups {
    first_label_index: Option<usize>,
    count: usize,
}

impl PropertyGroups {
    fn from_contact(contact: &FakeContact<'_>) -> PropertyGroups {
        PropertyGroups { first_label_index: contact.first_label_index, count: 0 }
    }

    /// Begins the line of a property with the next group, if the card has groups.
    fn begin_property(&mut self, card: &mut LineWriter<'_>) {
        if self.first_label_index.is_some() {
            self.count += 1;
            card.put("item").put(&self.count.to_string()).put(".");
        }
    }

    /// Writes the label of the last group.
    fn write_label(&self, card: &mut LineWriter<'_>) {
        if let Some(first) = self.first_label_index {
            let label = contact_texts::PROPERTY_LABELS
                [(first + self.count) % contact_texts::PROPERTY_LABELS.len()];
            card.put("item")
                .put(&self.count.to_string())
                .put(".X-ABLabel:")
                .put_text(label)
                .end_line();
        }
    }
}

/// Formats 128 bits as a version 4 UUID (RFC 9562 section 5.4), which keeps 122 of them.
fn format_uuid(bits: u128) -> String {
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
