//! Addresses in the formats of other programs: mail programs, organisers and address books.
//!
//! Names come from mail, so anybody may have written them. Each format escapes what its reader
//! would take for anything but text.

use crate::safe_text::escape_line;
use larder_format::writer::ComponentBuilder;
use std::collections::HashSet;
use std::fmt::Write as _;

/// The first line of [`AddressFormat::Mutt`], which mutt shows in its status line.
const MUTT_TITLE: &str = "Correspondents of Larder";

/// A format for addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressFormat {
    /// The answer to the `query_command` of mutt: a title, then address, name and note.
    Mutt,
    /// `alias` commands of mutt.
    MuttAlias,
    /// Name and address, as comma-separated values (RFC 4180).
    Csv,
    /// Headings of org-contacts.
    Org,
    /// Records of BBDB, version 6.
    Bbdb,
    /// vCard 4.0.
    Vcard,
}

/// An address with the values that formats show.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AddressEntry {
    /// The address.
    pub address: String,
    /// The name; empty: none.
    pub name: String,
    /// A remark for people.
    pub note: String,
    /// The day on which it was last met, as `2026-03-06`.
    pub last_seen: String,
}

/// Returns addresses in a format. `today` is the current day, as `2026-03-06`.
#[must_use]
pub fn format_addresses(format: AddressFormat, entries: &[AddressEntry], today: &str) -> String {
    let mut text = String::new();
    let mut aliases = HashSet::new();
    match format {
        AddressFormat::Mutt => text.push_str(&format!("{MUTT_TITLE}\n")),
        AddressFormat::Bbdb => {
            text.push_str(";; -*-coding: utf-8-emacs;-*-\n;;; file-version: 6\n");
        }
        _ => {}
    }
    for entry in entries {
        let name = match format {
            AddressFormat::Csv | AddressFormat::Vcard => one_line(&entry.name),
            // People read these.
            _ => one_line(&escape_line(&entry.name)),
        };
        let AddressEntry { address, .. } = entry;
        let _infallible = match format {
            AddressFormat::Mutt => {
                writeln!(text, "{address}\t{name}\t{}", one_line(&entry.note))
            }
            AddressFormat::MuttAlias => {
                let alias = choose_alias(&name, address, &mut aliases);
                writeln!(text, "alias {alias} {}", mutt_mailbox(&name, address))
            }
            AddressFormat::Csv => {
                writeln!(text, "{},{}", quote_csv(&name), quote_csv(address))
            }
            AddressFormat::Org => {
                let title = if name.is_empty() { address } else { &name };
                writeln!(text, "* {title}\n:PROPERTIES:\n:EMAIL: {address}\n:END:\n")
            }
            AddressFormat::Bbdb => write_bbdb_record(&mut text, &name, entry, today),
            AddressFormat::Vcard => {
                let title = if name.is_empty() { address } else { &name };
                let card = ComponentBuilder::new("VCARD")
                    .add_property("VERSION", &[], "4.0")
                    .add_text("FN", title)
                    .add_text("EMAIL", address);
                text.push_str(&card.finish());
                Ok(())
            }
        };
    }
    text
}

/// Returns a text without characters that end or divide a line.
fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

fn quote_csv(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

fn quote_lisp(text: &str) -> String {
    match text.is_empty() {
        true => "nil".into(),
        false => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}

fn write_bbdb_record(
    text: &mut String,
    name: &str,
    entry: &AddressEntry,
    today: &str,
) -> std::fmt::Result {
    let (first, last) = name.rsplit_once(' ').unwrap_or((name, ""));
    let (first, last, address) = (quote_lisp(first), quote_lisp(last), quote_lisp(&entry.address));
    let last_seen = if entry.last_seen.is_empty() { today } else { &entry.last_seen };
    writeln!(
        text,
        "[{first} {last} nil nil nil nil ({address}) \
         ((creation-date . \"{today}\") (time-stamp . \"{last_seen}\")) nil]"
    )
}

/// Returns a mailbox as mutt reads it in a configuration file, where a backquote begins a command,
/// a dollar sign a variable and a number sign a comment, in quotes, too.
fn mutt_mailbox(name: &str, address: &str) -> String {
    let plain: String = name.chars().filter(|c| !matches!(c, '"' | '\\')).collect();
    let is_special = |c: char| "()<>[]:;@,.".contains(c);
    let mailbox = match plain.is_empty() {
        true => address.to_string(),
        false if plain.contains(is_special) => format!("\"{plain}\" <{address}>"),
        false => format!("{plain} <{address}>"),
    };
    mailbox.replace('`', "\\`").replace('$', "\\$").replace('#', "\\#")
}

/// Returns an alias that is in no other line: the first name and the initial of the last one, else
/// the address up to the `@`.
fn choose_alias(name: &str, address: &str, aliases: &mut HashSet<String>) -> String {
    let letters = |text: &str| -> String { text.chars().filter(|c| c.is_alphanumeric()).collect() };
    let mut words = name.split(' ').map(letters).filter(|word| !word.is_empty());
    let mut alias = words.next().unwrap_or_default();
    alias.extend(words.next_back().and_then(|last| last.chars().next()));
    if alias.is_empty() {
        alias = letters(address.split('@').next().unwrap_or_default());
    }
    if alias.is_empty() {
        alias.push_str("address");
    }
    let mut number = 1;
    let mut chosen = alias.clone();
    while !aliases.insert(chosen.clone()) {
        number += 1;
        chosen = format!("{alias}{number}");
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_are_text_in_each_format() {
        let entry = |name: &str, address: &str| AddressEntry {
            address: address.into(),
            name: name.into(),
            note: "12 messages".into(),
            last_seen: "2026-03-06".into(),
        };
        let entries = [
            entry("Anna Berg", "anna@b.example"),
            entry("Anna \"B\" Berg, `id` $HOME\\", "a`id`$x@b.example"),
            entry("x\ty\nz\u{202e};", "x@b.example"),
            entry("", "=@b.example"),
            entry("Ticket #12, x", "x#y@b.example"),
        ];
        let check = |format, expect: &str| {
            let found = format_addresses(format, &entries, "2026-11-24").replace('\r', "");
            assert_eq!(found, expect);
        };
        check(
            AddressFormat::Mutt,
            "Correspondents of Larder\n\
             anna@b.example\tAnna Berg\t12 messages\n\
             a`id`$x@b.example\tAnna \"B\" Berg, `id` $HOME\\\t12 messages\n\
             x@b.example\tx y z<U+202E>;\t12 messages\n\
             =@b.example\t\t12 messages\n\
             x#y@b.example\tTicket #12, x\t12 messages\n",
        );
        check(
            AddressFormat::MuttAlias,
            "alias AnnaB Anna Berg <anna@b.example>\n\
             alias AnnaH \"Anna B Berg, \\`id\\` \\$HOME\" <a\\`id\\`\\$x@b.example>\n\
             alias xz \"x y z<U+202E>;\" <x@b.example>\n\
             alias address =@b.example\n\
             alias Ticketx \"Ticket \\#12, x\" <x\\#y@b.example>\n",
        );
        check(
            AddressFormat::Csv,
            "\"Anna Berg\",\"anna@b.example\"\n\
             \"Anna \"\"B\"\" Berg, `id` $HOME\\\",\"a`id`$x@b.example\"\n\
             \"x y z\u{202e};\",\"x@b.example\"\n\
             \"\",\"=@b.example\"\n\
             \"Ticket #12, x\",\"x#y@b.example\"\n",
        );
        check(
            AddressFormat::Org,
            "* Anna Berg\n:PROPERTIES:\n:EMAIL: anna@b.example\n:END:\n\n\
             * Anna \"B\" Berg, `id` $HOME\\\n:PROPERTIES:\n:EMAIL: a`id`$x@b.example\n:END:\n\n\
             * x y z<U+202E>;\n:PROPERTIES:\n:EMAIL: x@b.example\n:END:\n\n\
             * =@b.example\n:PROPERTIES:\n:EMAIL: =@b.example\n:END:\n\n\
             * Ticket #12, x\n:PROPERTIES:\n:EMAIL: x#y@b.example\n:END:\n\n",
        );
        let dates = "((creation-date . \"2026-11-24\") (time-stamp . \"2026-03-06\")) nil]\n";
        check(
            AddressFormat::Bbdb,
            &format!(
                ";; -*-coding: utf-8-emacs;-*-\n;;; file-version: 6\n\
                 [\"Anna\" \"Berg\" nil nil nil nil (\"anna@b.example\") {dates}\
                 [\"Anna \\\"B\\\" Berg, `id`\" \"$HOME\\\\\" nil nil nil nil \
                 (\"a`id`$x@b.example\") {dates}\
                 [\"x y\" \"z<U+202E>;\" nil nil nil nil (\"x@b.example\") {dates}\
                 [nil nil nil nil nil nil (\"=@b.example\") {dates}\
                 [\"Ticket #12,\" \"x\" nil nil nil nil (\"x#y@b.example\") {dates}"
            ),
        );
        check(
            AddressFormat::Vcard,
            "BEGIN:VCARD\nVERSION:4.0\nFN:Anna Berg\nEMAIL:anna@b.example\nEND:VCARD\n\
             BEGIN:VCARD\nVERSION:4.0\nFN:Anna \"B\" Berg\\, `id` $HOME\\\\\n\
             EMAIL:a`id`$x@b.example\nEND:VCARD\n\
             BEGIN:VCARD\nVERSION:4.0\nFN:x y z\u{202e}\\;\nEMAIL:x@b.example\nEND:VCARD\n\
             BEGIN:VCARD\nVERSION:4.0\nFN:=@b.example\nEMAIL:=@b.example\nEND:VCARD\n\
             BEGIN:VCARD\nVERSION:4.0\nFN:Ticket #12\\, x\nEMAIL:x#y@b.example\nEND:VCARD\n",
        );
    }

    #[test]
    fn aliases_are_unique() {
        let mut aliases = HashSet::new();
        let mut choose = |name: &str| choose_alias(name, "anna.berg@b.example", &mut aliases);
        assert_eq!(
            ["Anna Berg", "Anna Bo", "Anna", "", ""].map(&mut choose),
            ["AnnaB", "AnnaB2", "Anna", "annaberg", "annaberg2"]
        );
    }
}
