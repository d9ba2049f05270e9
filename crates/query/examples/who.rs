//! Who is it? Opens a store in place, asks, and prints names: `cargo run --example who -- DIR
//! QUESTION`.
#![allow(clippy::print_stdout, reason = "that is what it does")]

use larder_query::{Contact, Error, Query, Reader, SearchRequest, SortSpec, find};
use std::path::Path;

fn main() -> Result<(), Error> {
    let mut args = std::env::args().skip(1);
    let (dir, question) = (args.next().unwrap_or_default(), args.next().unwrap_or_default());
    who(Path::new(&dir), &question, &mut |name| println!("{name}"))
}

/// Gives the names of all who answer the question, sorted.
pub fn who(dir: &Path, question: &str, each: &mut dyn FnMut(&str)) -> Result<(), Error> {
    let reader = Reader::open(dir)?;
    let by_name = SortSpec::parse("full_name")?;
    let asked = SearchRequest {
        query: Query::parse(question)?,
        sort: Some(by_name),
        ..SearchRequest::default()
    };
    find(&reader, &asked)?.for_each(&reader, &mut |_item, card| {
        each(&Contact::parse(card).first_value(by_name.field).unwrap_or_default());
        true
    })
}
