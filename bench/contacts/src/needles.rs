//! What to ask for: parts of the cards' own values, drawn by a seed.

use crate::Outcome;
use larder_format::contact::Contact;
use larder_format::field::field;
use larder_format::fold::fold;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::Path;

/// Needles for a row.
const NUMBER: usize = 200;
/// UIDs that are asked for at once.
const TOGETHER: usize = 100;
/// The most hits of the rows that have a goal.
const HITS: usize = 20;
/// Contacts on a page of a sorted book.
const PAGE: usize = 50;
/// Beginnings have up to so many letters.
const LETTERS: usize = 10;
/// Of one row, all hits are asked for, and there are about so many.
const MANY: usize = 320;
/// Between the UIDs of one needle.
pub(crate) const BETWEEN: char = '\u{1f}';

/// A question.
#[derive(Debug, Clone)]
pub(crate) struct Needle {
    pub(crate) row: String,
    /// At most so many hits; 0: all.
    pub(crate) limit: usize,
    pub(crate) text: String,
    pub(crate) sexp: String,
}

impl Needle {
    fn print(&self) {
        println!("{}\t{}\t{}\t{}", self.row, self.limit, self.text, self.sexp);
    }
}

/// Reads what [`print()`] printed.
pub(crate) fn read(path: &str) -> Outcome<Vec<Needle>> {
    let mut needles = Vec::new();
    for line in std::fs::read_to_string(path)?.lines() {
        let parts: Vec<&str> = line.split('\t').collect();
        let [row, limit, text, sexp] = parts[..] else { return Err("not four parts".into()) };
        let (row, text, sexp) = (row.to_string(), text.to_string(), sexp.to_string());
        needles.push(Needle { row, limit: limit.parse()?, text, sexp });
    }
    Ok(needles)
}

/// Cuts a book whose lines begin where they should.
pub(crate) fn cards(path: &Path) -> Outcome<Vec<Vec<u8>>> {
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

/// Numbers by a seed (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end.max(1) as u64) as usize
    }
}

/// Picks the needles of all rows and prints them.
pub(crate) fn print(path: &Path) -> Outcome<()> {
    let cards = cards(path)?;
    let mut random = Random(2);
    let values = |name: &str| -> Outcome<Vec<String>> {
        let field = field(name).ok_or("no such field")?;
        let of = |card: &Vec<u8>| -> Vec<String> {
            Contact::parse(card).values(field).into_iter().map(|value| value.to_string()).collect()
        };
        let values = cards.iter().flat_map(of);
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
        Needle { row: row.into(), limit: 0, text: String::new(), sexp: sexp.into() }.print();
    }
    for _ in 0..NUMBER {
        let uid = &uids[random.below(uids.len())];
        let sexp = format!("(is \"id\" {})", quoted(uid));
        Needle { row: "uid".into(), limit: 0, text: uid.clone(), sexp }.print();
    }
    for _ in 0..NUMBER / 4 {
        let mut several = HashSet::new();
        while several.len() < TOGETHER.min(uids.len()) {
            several.insert(uids[random.below(uids.len())].as_str());
        }
        let mut several: Vec<&str> = several.into_iter().collect();
        several.sort_unstable();
        let sexp: String =
            several.iter().map(|uid| format!(" (is \"id\" {})", quoted(uid))).collect();
        let text = several.join(&BETWEEN.to_string());
        Needle { row: "uids-100".into(), limit: 0, text, sexp: format!("(or{sexp})") }.print();
    }
    for row in ["page-50", "page-back", "page-end"] {
        for _ in 0..NUMBER {
            // The place is for whoever counts places, the name for whoever looks it up.
            let place = random.below(cards.len().saturating_sub(PAGE)) + PAGE / 2;
            let text = names[random.below(names.len())].clone();
            Needle { row: row.into(), limit: PAGE, text, sexp: place.to_string() }.print();
        }
    }
    for text in shared_beginnings(&cards) {
        let sexp = format!("(beginswith \"full_name\" {})", quoted(&text));
        Needle { row: "prefix-320".into(), limit: 0, text, sexp }.print();
    }

    let mut part =
        |row: &str,
         of: &[String],
         test: &str,
         pick: &mut dyn FnMut(&mut Random, &[char]) -> Option<String>| {
            let mut left = NUMBER;
            for _ in 0..NUMBER * 50 {
                let whole: Vec<char> = of[random.below(of.len())].chars().collect();
                let Some(text) = pick(&mut random, &whole) else { continue };
                let sexp = format!("({test} {})", quoted(&text));
                let needle = Needle { row: row.to_string(), limit: 0, text, sexp };
                needle.print();
                if row != "open" {
                    Needle { row: format!("{row}/{HITS}"), limit: HITS, ..needle }.print();
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
    for letters in 1..=LETTERS {
        let row = format!("prefix-{letters}");
        part(&row, &names, "beginswith \"full_name\"", &mut |_, name| {
            let text = name.get(..letters)?;
            // A blank at the end may or may not be compared.
            (!text.last()?.is_whitespace()).then(|| text.iter().collect())
        });
    }
    part("suffix", &names, "endswith \"full_name\"", &mut |_, name| whole(name, name.len(), 5));
    part("suffix-email", &emails, "endswith \"email\"", &mut |_, all| whole(all, all.len(), 22));
    part("substring", &names, "contains \"full_name\"", &mut |random, name| {
        let end = 5 + random.below(name.len());
        whole(name, end.min(name.len().checked_sub(1)?), 4)
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
        let end = 8 + random.below(text.len());
        whole(text, end.min(text.len()), 7)
    });
    Ok(())
}

/// Beginnings that about [`MANY`] contacts have, where possible in their full name alone: Larder looks into the other
/// names, too, and evolution-data-server does not.
fn shared_beginnings(cards: &[Vec<u8>]) -> Vec<String> {
    let mut known: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for card in cards {
        let card = Contact::parse(card);
        let beginnings = |name: &str| -> BTreeSet<String> {
            let values = field(name).map(|field| card.values(field)).unwrap_or_default();
            values.iter().flat_map(|value| beginnings(value)).collect()
        };
        let full = beginnings("full_name");
        let others = ["given_name", "family_name", "nickname"].map(beginnings);
        for text in others.iter().fold(full.clone(), |all, more| &all | more) {
            let counts = known.entry(text).or_default();
            counts.0 += 1;
        }
        for text in full {
            known.entry(text).or_default().1 += 1;
        }
    }
    let fits = |all: usize| (MANY * 4 / 5..=MANY * 6 / 5).contains(&all);
    let mut known: Vec<_> = known.into_iter().filter(|(_, (all, _))| fits(*all)).collect();
    known.sort_by_key(|(_, (all, full))| (all - full, all.abs_diff(MANY)));
    known.into_iter().take(HITS).map(|(text, _)| text).collect()
}

/// The beginnings of a name, folded, of up to ten letters.
fn beginnings(name: &str) -> Vec<String> {
    let folded = fold(name);
    let ends = folded.char_indices().take(LETTERS).filter(|(_, c)| c.is_alphanumeric());
    ends.map(|(at, c)| folded[..at + c.len_utf8()].to_string()).collect()
}

/// The `length` characters before `end`, if there is no blank or mark among them.
fn whole(text: &[char], end: usize, length: usize) -> Option<String> {
    let part = text.get(end.checked_sub(length)?..end)?;
    let plain = |c: &char| c.is_alphanumeric() || matches!(c, '.' | '@' | '_' | '-');
    part.iter().all(plain).then(|| part.iter().collect())
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
