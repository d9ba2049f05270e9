//! The questions, put to a store in place. Reading the question and planning are timed, too.

use crate::Outcome;
use crate::clock::{counter, print, processor_time, row};
use crate::needles::{Needle, cards};
use larder_query::{Cursor, Field, Find, Query, Sort, field, find};
use larder_store::{Operation, Options, Reader, Store};
use std::cell::RefCell;
use std::path::Path;
use std::time::Instant;

const WHO: &str = "larder";
/// Where `larder import` puts cards.
const INTO: &str = "contacts";

/// Times every row of the needles.
pub(crate) fn ask(store: &Path, needles: &[Needle], seconds: f64, n: &str) -> Outcome<()> {
    let reader = Reader::open(store)?;
    let cursor = RefCell::new(Cursor::new(Query::All, None, Sort::parse("file_as")?));
    let of = |names: &[&str]| names.iter().filter_map(|name| field(name)).collect::<Vec<_>>();
    let (revision, three) = (of(&["rev"]), of(&["full_name", "email", "phone"]));
    for group in needles.chunk_by_rows() {
        let name = group[0].row.as_str();
        row(WHO, n, name, seconds, &group, &mut |needle| match name {
            "open" => bytes(&Reader::open(store)?, needle),
            "ids" => fields(&reader, needle, &[]),
            "ids-rev" => fields(&reader, needle, &revision),
            "fields-3" => fields(&reader, needle, &three),
            "uid" => Ok(usize::from(reader.get(INTO, &needle.text)?.is_some())),
            "letters" => Ok(cursor.borrow_mut().letters(&reader)?.len()),
            "page-50" | "page-back" | "page-end" => page(&reader, &mut cursor.borrow_mut(), needle),
            _ => bytes(&reader, needle),
        })?;
    }
    Ok(())
}

/// Needles by their rows, in the order in which the rows come first.
pub(crate) trait ByRows {
    /// One list for each row.
    fn chunk_by_rows(&self) -> Vec<Vec<Needle>>;
}

impl ByRows for [Needle] {
    fn chunk_by_rows(&self) -> Vec<Vec<Needle>> {
        let mut groups: Vec<Vec<Needle>> = Vec::new();
        for needle in self {
            match groups.iter_mut().find(|group| group[0].row == needle.row) {
                Some(group) => group.push(needle.clone()),
                None => groups.push(vec![needle.clone()]),
            }
        }
        groups
    }
}

fn found(reader: &Reader, needle: &Needle) -> Outcome<larder_query::Answer> {
    let query = Query::parse_sexp(&needle.sexp)?;
    let limit = (needle.limit > 0).then_some(needle.limit);
    Ok(find(reader, &Find { query, limit, cards: true, ..Find::default() })?)
}

/// The hits, with their bytes.
fn bytes(reader: &Reader, needle: &Needle) -> Outcome<usize> {
    let mut given = 0;
    found(reader, needle)?.cards(reader, &mut |bytes| {
        given += usize::from(!bytes.is_empty());
        true
    })?;
    Ok(given)
}

/// The hits, with their UIDs and the first values of these fields.
fn fields(reader: &Reader, needle: &Needle, fields: &[&Field]) -> Outcome<usize> {
    let (mut given, mut length) = (0, 0);
    found(reader, needle)?.fields(reader, fields, &mut |item, part| {
        length += item.uid.len();
        for field in fields {
            length += part.first(field).map_or(0, |value| value.len());
        }
        given += 1;
        true
    })?;
    Ok(if length > 0 { given } else { 0 })
}

/// The page that begins with a name, or ends before it, or at the end; with its place in the book.
fn page(reader: &Reader, cursor: &mut Cursor, needle: &Needle) -> Outcome<usize> {
    let size = isize::try_from(needle.limit)?;
    match needle.row.as_str() {
        "page-end" => cursor.last(),
        _ => cursor.move_to(reader, &needle.text),
    }
    let answer = cursor.step(reader, if needle.row == "page-50" { size } else { -size })?;
    let mut given = 0;
    answer.each(reader, &mut |_, bytes| {
        given += usize::from(!bytes.is_empty());
        true
    })?;
    let (before, all) = cursor.position(reader)?;
    // Behind the last name there is nothing, which is an answer, too.
    Ok(if before <= all { given.max(1) } else { 0 })
}

/// Saves cards one by one, under UIDs of their own.
pub(crate) fn single(store: &Path, book: &Path, number: usize, n: &str) -> Outcome<()> {
    let mut store = Store::open(store, &Options::default())?;
    let book = cards(book)?;
    let mut times = Vec::new();
    let (before, written) = (processor_time()?, counter("io", "write_bytes:")?);
    for (place, card) in book.iter().cycle().take(number).enumerate() {
        let card = renamed(card, place)?;
        let clock = Instant::now();
        let prepared = store.deriver().contact(card).map_err(|_| "not a contact")?.0;
        let mut operation = Operation::new("add", "", 0);
        let mut added = 0;
        larder_sync::add(&mut store, &mut operation, INTO, vec![prepared], &mut |_, one| {
            added += usize::from(one.handle.is_some());
            Ok::<(), larder_store::Error>(())
        })?;
        times.push(clock.elapsed());
        if added != 1 {
            return Err("a single card was left out".into());
        }
    }
    let cpu = processor_time()?.saturating_sub(before).as_nanos() / times.len().max(1) as u128;
    let written = (counter("io", "write_bytes:")? - written) / times.len().max(1) as u64;
    print(WHO, n, "save-one", &mut times, cpu, number as f64);
    println!("{WHO} {n} written-one 1 {written} 0 0 0");
    Ok(())
}

/// The card under another UID.
fn renamed(card: &[u8], place: usize) -> Outcome<Vec<u8>> {
    let card = String::from_utf8_lossy(card);
    let mut out = String::new();
    let mut named = false;
    for line in card.split_inclusive('\n') {
        match line.starts_with("UID:") {
            true => out.push_str(&format!("UID:larder-bench-single-{place}\r\n")),
            false => out.push_str(line),
        }
        named |= line.starts_with("UID:");
        if line.starts_with("VERSION:") && !card.contains("\nUID:") {
            out.push_str(&format!("UID:larder-bench-single-{place}\r\n"));
            named = true;
        }
    }
    if named { Ok(out.into_bytes()) } else { Err("a card without VERSION".into()) }
}

/// Asks for everything, holds it, and prints what the process takes, in kB.
pub(crate) fn memory(store: &Path) -> Outcome<()> {
    let reader = Reader::open(store)?;
    let mut held = Vec::new();
    let everything = Find { query: Query::All, ..Find::default() };
    let answer = find(&reader, &everything)?;
    answer.each(&reader, &mut |_, bytes| {
        held.push(bytes.to_vec());
        true
    })?;
    print_memory("held")?;
    let number = held.len();
    drop(held);
    drop(answer);
    print_memory("dropped")?;
    println!("cards {number}");
    Ok(())
}

fn print_memory(when: &str) -> Outcome<()> {
    let (rss, pss) = (counter("smaps_rollup", "Rss:")?, counter("smaps_rollup", "Pss:")?);
    let (vms, anonymous) = (counter("status", "VmSize:")?, counter("status", "RssAnon:")?);
    println!("{when} rss {rss}\n{when} pss {pss}\n{when} vms {vms}\n{when} anonymous {anonymous}");
    Ok(())
}
