//! Runs the queries on a store in this process. Parsing and planning a query are part of its time.

use crate::Result;
use crate::search_terms::{SearchTerm, read_cards};
use crate::timing::{cpu_time, print_figures, proc_counter, time_row};
use larder_query::{
    Field, Query, SearchRequest, SortSpec, SortedCursor, find, find_contact_field, visit_uids,
};
use larder_store::{Operation, Reader, Store, StoreOptions};
use std::cell::RefCell;
use std::path::Path;
use std::time::Instant;

const PROGRAM_NAME: &str = "larder";
/// The collection that `larder import` stores cards in.
const COLLECTION_NAME: &str = "contacts";

/// Times every row of the search terms.
pub(crate) fn time_all_rows(
    store: &Path,
    search_terms: &[SearchTerm],
    seconds: f64,
    n: &str,
) -> Result<()> {
    let reader = Reader::open(store)?;
    let cursor = RefCell::new(SortedCursor::new(Query::All, None, SortSpec::parse("file_as")?));
    let fields = |names: &[&str]| {
        names.iter().filter_map(|name| find_contact_field(name)).collect::<Vec<_>>()
    };
    let (revision, three_fields) = (fields(&["rev"]), fields(&["full_name", "email", "phone"]));
    for group in search_terms.group_by_row() {
        let name = group[0].row.as_str();
        time_row(PROGRAM_NAME, n, name, seconds, &group, &mut |search_term| match name {
            "open" => read_bytes(&Reader::open(store)?, search_term),
            "ids" => read_uids(&reader, search_term),
            "ids-rev" => read_fields(&reader, search_term, &revision),
            "fields-3" => read_fields(&reader, search_term, &three_fields),
            "uid" => {
                Ok(usize::from(reader.items().get(COLLECTION_NAME, &search_term.text)?.is_some()))
            }
            "letters" => Ok(cursor.borrow_mut().letters(&reader)?.len()),
            "page-50" | "page-back" | "page-end" => {
                read_page(&reader, &mut cursor.borrow_mut(), search_term)
            }
            _ => read_bytes(&reader, search_term),
        })?;
    }
    Ok(())
}

/// Groups search terms by row, in the order in which the rows first occur.
pub(crate) trait NeedleGroups {
    /// Returns a list for each row.
    fn group_by_row(&self) -> Vec<Vec<SearchTerm>>;
}

impl NeedleGroups for [SearchTerm] {
    fn group_by_row(&self) -> Vec<Vec<SearchTerm>> {
        let mut groups: Vec<Vec<SearchTerm>> = Vec::new();
        for search_term in self {
            match groups.iter_mut().find(|group| group[0].row == search_term.row) {
                Some(group) => group.push(search_term.clone()),
                None => groups.push(vec![search_term.clone()]),
            }
        }
        groups
    }
}

fn search_request(search_term: &SearchTerm) -> Result<SearchRequest> {
    let query = Query::parse_sexp(&search_term.sexp)?;
    let limit = (search_term.limit > 0).then_some(search_term.limit);
    Ok(SearchRequest { query, limit, prefetch: true, ..SearchRequest::default() })
}

fn find_hits(reader: &Reader, search_term: &SearchTerm) -> Result<larder_query::ResultSet> {
    Ok(find(reader, &search_request(search_term)?)?)
}

/// Runs a query and reads the bytes of its hits; returns their number.
fn read_bytes(reader: &Reader, search_term: &SearchTerm) -> Result<usize> {
    let mut count = 0;
    find_hits(reader, search_term)?.for_each_source_bytes(reader, &mut |bytes| {
        count += usize::from(!bytes.is_empty());
        true
    })?;
    Ok(count)
}

/// Runs a query and reads the UIDs of its hits; returns their number.
fn read_uids(reader: &Reader, search_term: &SearchTerm) -> Result<usize> {
    let (mut count, mut length) = (0, 0);
    visit_uids(reader, &search_request(search_term)?, &mut |uid| {
        length += uid.len();
        count += 1;
        true
    })?;
    Ok(if length > 0 { count } else { 0 })
}

/// Runs a query and reads the UID and the first values of some fields of its hits; returns their
/// number.
fn read_fields(reader: &Reader, search_term: &SearchTerm, fields: &[&Field]) -> Result<usize> {
    let (mut count, mut length) = (0, 0);
    find_hits(reader, search_term)?.for_each_projected(reader, fields, &mut |item, part| {
        length += item.uid.len();
        for field in fields {
            length += part.first(field).map_or(0, |value| value.len());
        }
        count += 1;
        true
    })?;
    Ok(if length > 0 { count } else { 0 })
}

/// Reads the page that begins at a name, the page that ends before it, or the last page, and its
/// position in the sorted collection.
fn read_page(
    reader: &Reader,
    cursor: &mut SortedCursor,
    search_term: &SearchTerm,
) -> Result<usize> {
    let size = isize::try_from(search_term.limit)?;
    match search_term.row.as_str() {
        "page-end" => cursor.move_to_end(),
        _ => cursor.move_to_text(reader, &search_term.text),
    }
    let answer = cursor.step(reader, if search_term.row == "page-50" { size } else { -size })?;
    let mut count = 0;
    answer.for_each(reader, &mut |_, bytes| {
        count += usize::from(!bytes.is_empty());
        true
    })?;
    let (before, all) = cursor.position(reader)?;
    // An empty page, after the last name, is a correct answer.
    Ok(if before <= all { count.max(1) } else { 0 })
}

/// Saves cards one at a time, with new UIDs.
pub(crate) fn time_single_saves(store: &Path, book: &Path, number: usize, n: &str) -> Result<()> {
    let mut store = Store::open(store, &StoreOptions::default())?;
    let book = read_cards(book)?;
    let mut times = Vec::new();
    let (before, written) = (cpu_time()?, proc_counter("io", "write_bytes:")?);
    for (place, card) in book.iter().cycle().take(number).enumerate() {
        let card = replace_uid(card, place)?;
        let clock = Instant::now();
        let prepared = store.extractor().parse_contact(card).map_err(|_| "not a contact")?;
        let mut operation = Operation::new("add", "", 0);
        let mut added = 0;
        larder_edit::add_items(
            &mut store,
            &mut operation,
            COLLECTION_NAME,
            vec![prepared],
            &mut |_, one| {
                added += usize::from(one.handle.is_some());
                Ok::<(), larder_store::Error>(())
            },
        )?;
        times.push(clock.elapsed());
        if added != 1 {
            return Err("a single card was not added".into());
        }
    }
    let cpu = cpu_time()?.saturating_sub(before).as_nanos() / times.len().max(1) as u128;
    let written = (proc_counter("io", "write_bytes:")? - written) / times.len().max(1) as u64;
    print_figures(PROGRAM_NAME, n, "save-one", &mut times, cpu, number as f64);
    println!("{PROGRAM_NAME} {n} written-one 1 {written} 0 0 0");
    Ok(())
}

/// Returns the card with a UID for this benchmark.
fn replace_uid(card: &[u8], place: usize) -> Result<Vec<u8>> {
    let card = String::from_utf8_lossy(card);
    let mut out = String::new();
    let mut has_uid = false;
    for line in card.split_inclusive('\n') {
        match line.starts_with("UID:") {
            true => out.push_str(&format!("UID:larder-bench-single-{place}\r\n")),
            false => out.push_str(line),
        }
        has_uid |= line.starts_with("UID:");
        if line.starts_with("VERSION:") && !card.contains("\nUID:") {
            out.push_str(&format!("UID:larder-bench-single-{place}\r\n"));
            has_uid = true;
        }
    }
    if has_uid { Ok(out.into_bytes()) } else { Err("a card without VERSION".into()) }
}

/// Reads and holds all cards, and prints the memory of the process in kB, before and after they are
/// dropped.
pub(crate) fn print_memory_use(store: &Path) -> Result<()> {
    let reader = Reader::open(store)?;
    let mut held = Vec::new();
    let everything = SearchRequest { query: Query::All, ..SearchRequest::default() };
    let answer = find(&reader, &everything)?;
    answer.for_each(&reader, &mut |_, bytes| {
        held.push(bytes.to_vec());
        true
    })?;
    print_memory_counters("held")?;
    let number = held.len();
    drop(held);
    drop(answer);
    print_memory_counters("dropped")?;
    println!("cards {number}");
    Ok(())
}

fn print_memory_counters(when: &str) -> Result<()> {
    let (rss, pss) = (proc_counter("smaps_rollup", "Rss:")?, proc_counter("smaps_rollup", "Pss:")?);
    let (vms, anonymous) =
        (proc_counter("status", "VmSize:")?, proc_counter("status", "RssAnon:")?);
    println!("{when} rss {rss}\n{when} pss {pss}\n{when} vms {vms}\n{when} anonymous {anonymous}");
    Ok(())
}
