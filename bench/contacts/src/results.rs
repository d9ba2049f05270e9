//! The figures as rows of results, as `result` in bench/lib.sh writes them: measure, unit, program,
//! size, value and `less`, separated by tabs.

use crate::index_cost;
use crate::table::{FigureTable, RowFigure, TABLE_ROWS, is_per_contact};

/// Rows that are not in the table: row, name, unit, and whether the value is for all contacts.
const OTHER_ROWS: [(&str, &str, &str, bool); 18] = [
    ("bytes-store", "size of the store, per contact", "bytes", true),
    ("written-batch", "written, saved in batches, per contact", "bytes", true),
    ("written-one", "written, saved singly, per contact", "bytes", false),
    ("memory-rss", "memory to hold a contact, RSS", "bytes", false),
    ("memory-pss", "memory to hold a contact, PSS", "bytes", false),
    ("memory-vms", "memory to hold a contact, VMS", "bytes", false),
    ("memory-anonymous", "memory to hold a contact, anonymous", "bytes", false),
    ("peak-import", "anonymous memory of import", "MB", false),
    ("peak-find-name", "anonymous memory of find, one name", "MB", false),
    ("peak-find-word", "anonymous memory of find, two letters", "MB", false),
    ("peak-find-any", "anonymous memory of find, any field", "MB", false),
    ("peak-find-count", "anonymous memory of find --count", "MB", false),
    ("peak-find-all", "anonymous memory of find, all, sorted", "MB", false),
    ("peak-remove", "anonymous memory of remove, all", "MB", false),
    ("peak-undo", "anonymous memory of undo, all", "MB", false),
    ("store-share", "size of the store for each byte of the cards", "bytes", false),
    ("index-0-store", "size of the store without indexes, per contact", "bytes", true),
    ("index-7-store", "size of the store with all indexes, per contact", "bytes", true),
];

/// Prints the rows of all figures.
pub(crate) fn print_results(figures: &FigureTable) {
    for (row, name, _) in TABLE_ROWS {
        print_row(figures, row, name, "ns", is_per_contact(row));
    }
    for (row, name, unit, is_for_all) in OTHER_ROWS {
        print_row(figures, row, name, unit, is_for_all);
    }
    for (name, program, n, value) in index_cost::result_rows(figures) {
        println!("{name}\tus\t{program}\t{n}\t{value}\tless");
    }
}

/// Prints a row for each program and number of contacts.
fn print_row(figures: &FigureTable, row: &str, name: &str, unit: &str, is_for_all: bool) {
    let mut found: Vec<(u64, &str, &RowFigure)> = figures
        .iter()
        .filter(|((_, _, other), figure)| other == row && figure.median >= 0.0)
        .map(|((program, n, _), figure)| (*n, program.as_str(), figure))
        .collect();
    found.sort_by_key(|(n, program, _)| (*n, *program));
    for (n, program, figure) in found {
        let value = if is_for_all { figure.median / n as f64 } else { figure.median };
        println!("{name}\t{unit}\t{program}\t{n}\t{value}\tless");
    }
}
