//! Prints the names of the contacts that match a query, from a store that other programs may be
//! using: `cargo run --example contact_names -- DIRECTORY QUERY`.
#![allow(clippy::print_stdout, reason = "the program prints names")]

use larder_query::{Contact, Error, Query, Reader, SearchRequest, SortSpec, find};
use std::path::Path;

fn main() -> Result<(), Error> {
    let mut args = std::env::args().skip(1);
    let (directory, query) = (args.next().unwrap_or_default(), args.next().unwrap_or_default());
    for_each_name(Path::new(&directory), &query, &mut |name| println!("{name}"))
}

/// Calls `visit` with the name of every contact that matches a search line, sorted.
pub fn for_each_name(
    directory: &Path,
    search_line: &str,
    visit: &mut dyn FnMut(&str),
) -> Result<(), Error> {
    let reader = Reader::open(directory)?;
    let by_name = SortSpec::parse("full_name")?;
    let request = SearchRequest {
        query: Query::parse(search_line)?,
        sort: Some(by_name),
        ..SearchRequest::default()
    };
    find(&reader, &request)?.for_each(&reader, &mut |_item, source| {
        visit(&Contact::parse(source).first_value(by_name.field).unwrap_or_default());
        true
    })
}
