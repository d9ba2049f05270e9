//! The texts to search for: parts of the values of the cards, selected by a seeded
//! generator.

use crate::Result;
use larder_format::contact::Contact;
use larder_format::field::find_contact_field;
use larder_format::fold::fold;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

/// The number of search terms for a row.
const NEEDLES_PER_ROW: usize = 200;
/// The number of UIDs in one query.
const UIDS_PER_NEEDLE: usize = 100;
/// The maximum number of hits of the rows that have a goal.
const MAX_LIMITED_HITS: usize = 20;
/// The number of contacts on a page of the sorted collection.
const PAGE_CONTACTS: usize = 50;
/// The length of the longest prefix.
const MAX_PREFIX_CHARS: usize = 10;
/// The approximate number of hits of each query in the row `prefix-320`.
const LARGE_PREFIX_HITS: usize = 320;
/// Separates the UIDs of a search term.
pub(crate) const UID_SEPARATOR: char = '\u{1f}';

/// A query and the row that it belongs to.
#[derive(Debug, Clone)]
pub(crate) struct SearchTerm {
    pub(crate) row: String,
    /// The maximum number of hits; 0: all.
    pub(crate) limit: usize,
    pub(crate) text: String,
    pub(crate) sexp: String,
}

impl SearchTerm {
    fn print_line(&self) {
        println!("{}\t{}\t{}\t{}", self.row, self.limit, self.text, self.sexp);
    }
}

/// Reads the output of [`print_search_terms`].
pub(crate) fn read_search_terms(path: &str) -> Result<Vec<SearchTerm>> {
    let mut search_terms = Vec::new();
    for line in std::fs::read_to_string(path)?.lines() {
        let parts: Vec<&str> = line.split('\t').collect();
        let [row, limit, text, sexp] = parts[..] else { return Err("not four parts".into()) };
        let (row, text, sexp) = (row.to_string(), text.to_string(), sexp.to_string());
        search_terms.push(SearchTerm { row, limit: limit.parse()?, text, sexp });
    }
    Ok(search_terms)
}

/// Reads the cards of a file, which must not have blanks before BEGIN and END.
pub(crate) fn read_cards(path: &Path) -> Result<Vec<Vec<u8>>> {
    let book = std::fs::read(path)?;
    let (mut cards, mut card) = (Vec::new(), Vec::new());
    for line in book.split_inclusive(|byte| *byte == b'\n') {
        card.extend_from_slice(line);
        if line.starts_with(b"END:VCARD") {
            cards.push(std::mem::take(&mut card));
        }
    }
    Ok(cards)
}

/// A seeded generator of pseudo-random numbers (splitmix64).
struct NeedleRandom(u64);

impl NeedleRandom {
    fn next_below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end.max(1) as u64) as usize
    }
}

/// Selects the search terms of all rows and prints them.
pub(crate) fn print_search_terms(path: &Path) -> Result<()> {
    let cards = read_cards(path)?;
    let mut random = NeedleRandom(2);
    let values = |name: &str| -> Result<Vec<String>> {
        let field = find_contact_field(name).ok_or("no such field")?;
        let values_of_card = |card: &Vec<u8>| -> Vec<String> {
            Contact::parse(card).values(field).into_iter().map(|value| value.to_string()).collect()
        };
        let values = cards.iter().flat_map(values_of_card);
        Ok(values.filter(|value| !value.contains(|c: char| c.is_control())).collect())
    };
    let (uids, names) = (values("uid")?, values("full_name")?);
    let everything = [
        ("all", "#t"),
        ("ids", "#t"),
        ("ids-rev", "#t"),
        ("fields-3", "#t"),
        ("letters", ""),
        ("all-eds", "(contains \"x-evolution-any-field\" \"\")"),
    ];
    for (row, sexp) in everything {
        SearchTerm { row: row.into(), limit: 0, text: String::new(), sexp: sexp.into() }
            .print_line();
    }
    for _ in 0..NEEDLES_PER_ROW {
        let uid = &uids[random.next_below(uids.len())];
        let sexp = format!("(is \"id\" {})", quote(uid));
        SearchTerm { row: "uid".into(), limit: 0, text: uid.clone(), sexp }.print_line();
    }
    for _ in 0..NEEDLES_PER_ROW / 4 {
        let mut selected = HashSet::new();
        while selected.len() < UIDS_PER_NEEDLE.min(uids.len()) {
            selected.insert(uids[random.next_below(uids.len())].as_str());
        }
        let mut selected: Vec<&str> = selected.into_iter().collect();
        selected.sort_unstable();
        let sexp: String =
            selected.iter().map(|uid| format!(" (is \"id\" {})", quote(uid))).collect();
        let text = selected.join(&UID_SEPARATOR.to_string());
        SearchTerm { row: "uids-100".into(), limit: 0, text, sexp: format!("(or{sexp})") }
            .print_line();
    }
    for row in ["page-50", "page-back", "page-end"] {
        for _ in 0..NEEDLES_PER_ROW {
            // Evolution-data-server moves to the position, Larder and the floor to the name.
            let position =
                random.next_below(cards.len().saturating_sub(PAGE_CONTACTS)) + PAGE_CONTACTS / 2;
            let text = names[random.next_below(names.len())].clone();
            SearchTerm { row: row.into(), limit: PAGE_CONTACTS, text, sexp: position.to_string() }
                .print_line();
        }
    }
    for text in shared_prefixes(&cards) {
        let sexp = format!("(beginswith \"full_name\" {})", quote(&text));
        SearchTerm { row: "prefix-320".into(), limit: 0, text, sexp }.print_line();
    }

    let mut part =
        |row: &str,
         values: &[String],
         test: &str,
         pick: &mut dyn FnMut(&mut NeedleRandom, &[char]) -> Option<String>| {
            let mut left = NEEDLES_PER_ROW;
            for _ in 0..NEEDLES_PER_ROW * 50 {
                let value: Vec<char> = values[random.next_below(values.len())].chars().collect();
                let Some(text) = pick(&mut random, &value) else { continue };
                let sexp = format!("({test} {})", quote(&text));
                let search_term = SearchTerm { row: row.to_string(), limit: 0, text, sexp };
                search_term.print_line();
                if row != "open" {
                    SearchTerm {
                        row: format!("{row}/{MAX_LIMITED_HITS}"),
                        limit: MAX_LIMITED_HITS,
                        ..search_term
                    }
                    .print_line();
                }
                left -= 1;
                if left == 0 {
                    break;
                }
            }
        };
    part("open", &names, "is \"full_name\"", &mut |_, name| Some(name.iter().collect()));
    part("exact", &names, "is \"full_name\"", &mut |_, name| Some(name.iter().collect()));
    let emails = values("email")?;
    part("exact-email", &emails, "is \"email\"", &mut |_, all| Some(all.iter().collect()));
    for letters in 1..=MAX_PREFIX_CHARS {
        let row = format!("prefix-{letters}");
        part(&row, &names, "beginswith \"full_name\"", &mut |_, name| {
            let text = name.get(..letters)?;
            // Programs differ in whether they compare a blank at the end.
            (!text.last()?.is_whitespace()).then(|| text.iter().collect())
        });
    }
    part("suffix", &names, "endswith \"full_name\"", &mut |_, name| {
        word_slice(name, name.len(), 5)
    });
    part("suffix-email", &emails, "endswith \"email\"", &mut |_, all| {
        word_slice(all, all.len(), 22)
    });
    part("substring", &names, "contains \"full_name\"", &mut |random, name| {
        let end = 5 + random.next_below(name.len());
        word_slice(name, end.min(name.len().checked_sub(1)?), 4)
    });
    let phones = values("phone")?;
    part("phone", &phones, "eqphone_national \"phone\"", &mut |_, number| {
        let ascii = number.iter().all(char::is_ascii) && number.first() == Some(&'+');
        let digits = number.iter().filter(|c| c.is_ascii_digit()).count();
        (ascii && digits >= 10).then(|| number.iter().collect())
    });
    let mut texts = values("note")?;
    texts.extend(values("title")?);
    texts.extend(values("org")?);
    part("any", &texts, "contains \"x-evolution-any-field\"", &mut |random, text| {
        let end = 8 + random.next_below(text.len());
        word_slice(text, end.min(text.len()), 7)
    });
    Ok(())
}

/// Returns prefixes that about [`LARGE_PREFIX_HITS`] contacts have, preferably in the full name
/// only, because Larder also searches the other names and evolution-data-server does not.
fn shared_prefixes(cards: &[Vec<u8>]) -> Vec<String> {
    let mut known: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for card in cards {
        let card = Contact::parse(card);
        let prefixes = |name: &str| -> BTreeSet<String> {
            let values =
                find_contact_field(name).map(|field| card.values(field)).unwrap_or_default();
            values.iter().flat_map(|value| folded_prefixes(value)).collect()
        };
        let full = prefixes("full_name");
        let others = ["given_name", "family_name", "nickname"].map(prefixes);
        for text in others.iter().fold(full.clone(), |all, more| &all | more) {
            let counts = known.entry(text).or_default();
            counts.0 += 1;
        }
        for text in full {
            known.entry(text).or_default().1 += 1;
        }
    }
    let fits = |all: usize| (LARGE_PREFIX_HITS * 4 / 5..=LARGE_PREFIX_HITS * 6 / 5).contains(&all);
    let mut known: Vec<_> = known.into_iter().filter(|(_, (all, _))| fits(*all)).collect();
    known.sort_by_key(|(_, (all, full))| (all - full, all.abs_diff(LARGE_PREFIX_HITS)));
    known.into_iter().take(MAX_LIMITED_HITS).map(|(text, _)| text).collect()
}

/// Returns the folded prefixes of a name, up to [`MAX_PREFIX_CHARS`] long.
fn folded_prefixes(name: &str) -> Vec<String> {
    let folded = fold(name);
    let ends = folded.char_indices().take(MAX_PREFIX_CHARS).filter(|(_, c)| c.is_alphanumeric());
    ends.map(|(at, c)| folded[..at + c.len_utf8()].to_string()).collect()
}

/// Returns the `length` characters before `end`, unless one of them is a blank or punctuation.
fn word_slice(text: &[char], end: usize, length: usize) -> Option<String> {
    let part = text.get(end.checked_sub(length)?..end)?;
    let plain = |c: &char| c.is_alphanumeric() || matches!(c, '.' | '@' | '_' | '-');
    part.iter().all(plain).then(|| part.iter().collect())
}

fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
