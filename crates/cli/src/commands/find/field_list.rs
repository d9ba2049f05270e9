//! Lists of items by their fields: the ID, and the default fields of the kind.
//!
//! Apart from `occurrence_list`, whose items have a time, which needs more than fields.

use crate::commands::show::item_format;
use crate::failure::CommandFailure;
use crate::item_ids::display_title;
use crate::output::{FAINT_STYLE, STRONG_STYLE};
use crate::table::{MIN_NAME_WIDTH, min_row_width, pad_cells_with_fixed_columns, style_cells};
use anstyle::Style;
use larder_format::field::{Field, FieldType};
use larder_format::kind::{KINDS, ListLayout, MAX_LIST_FIELDS};
use larder_query::ProjectedItem;
use larder_store::{ItemMeta, Kind, Reader};
use std::sync::LazyLock;

/// The ID and the default fields.
pub(crate) type FieldListRow = [String; MAX_LIST_FIELDS + 1];

/// The default fields of all kinds that are listed by fields.
pub(crate) struct ListFields {
    by_kind: Vec<Option<Vec<&'static Field>>>,
    all: Vec<&'static Field>,
}

impl ListFields {
    pub(crate) fn new() -> ListFields {
        let mut all: Vec<&'static Field> = Vec::new();
        let by_kind = KINDS.iter().map(|row| {
            let ListLayout::Fields(names) = row.list_layout else { return None };
            let find = |name: &&str| row.collection_type.find_field(name);
            let fields: Vec<&'static Field> = names.iter().filter_map(find).collect();
            all.extend(&fields);
            all.extend(fields.iter().filter_map(|field| item_format::label_field(field)));
            Some(fields)
        });
        ListFields { by_kind: by_kind.collect(), all }
    }

    /// Returns the fields of a kind; `None` if it is not listed by fields.
    pub(crate) fn for_kind(&self, kind: Kind) -> Option<&[&'static Field]> {
        self.by_kind[kind.index()].as_deref()
    }

    /// Returns the fields of all kinds.
    pub(crate) fn all(&self) -> &[&'static Field] {
        &self.all
    }
}

/// Returns the row of an item with these fields. Rows are buffered instead of items, which may have
/// photos of megabytes.
pub(crate) fn list_row(
    reader: &Reader,
    meta: &ItemMeta,
    item: &ProjectedItem<'_>,
    fields: &[&'static Field],
) -> Result<FieldListRow, CommandFailure> {
    let mut cells = item_format::field_cells(item, fields);
    // A list shows one title; `show` shows all.
    if let (Some(cell), Some(field)) = (cells.first_mut(), fields.first()) {
        *cell = display_title(meta.kind, &item.first(field).unwrap_or_default());
    }
    row_with_cells(reader, meta, cells)
}

/// Returns the row of an item with these cells.
pub(crate) fn row_with_cells(
    reader: &Reader,
    meta: &ItemMeta,
    cells: Vec<String>,
) -> Result<FieldListRow, CommandFailure> {
    let letters = reader.items().unique_prefix_len(meta.handle)?;
    let mut cells = std::iter::once(format!("{:.letters$}", meta.handle)).chain(cells);
    Ok(std::array::from_fn(|_| cells.next().unwrap_or_default()))
}

/// The name keeps this width while a column can be left out.
const USUAL_NAME_WIDTH: usize = 20;
/// The name keeps this width rather than the count of the numbers that are not shown.
const LEAST_NAME_WIDTH: usize = 8;

/// The columns with numbers, which are never cut: a part of a number is of no use.
static NUMBER_COLUMNS: LazyLock<[bool; MAX_LIST_FIELDS + 1]> = LazyLock::new(|| {
    let mut columns = [false; MAX_LIST_FIELDS + 1];
    for row in KINDS {
        if let ListLayout::Fields(names) = row.list_layout {
            for (column, name) in columns[1..].iter_mut().zip(names) {
                let field = row.collection_type.find_field(name);
                *column |= field.is_some_and(|field| field.field_type == FieldType::Phone);
            }
        }
    }
    columns
});

/// Formats rows as lines.
pub(crate) fn format_rows(rows: &[FieldListRow], width: Option<usize>) -> Vec<String> {
    let line = |[handle, name, rest @ ..]: FieldListRow| {
        let cells = [(FAINT_STYLE, handle), (STRONG_STYLE, name), (Style::new(), rest.concat())];
        style_cells(&cells.each_ref().map(|(style, cell)| (*style, cell.as_str())))
    };
    let mut rows = rows.to_vec();
    if let Some(width) = width {
        drop_columns(&mut rows, width);
    }
    pad_cells_with_fixed_columns(&rows, [13, 28, 34, 24, 0], width, *NUMBER_COLUMNS)
        .into_iter()
        .map(line)
        .collect()
}

/// Shortens a cell.
type CellChange = fn(&str) -> String;

/// Shortens rows until they fit: leaves out the last column, then all numbers but the first, the
/// other columns, the label of the number, the count of the others, and at last the number.
fn drop_columns(rows: &mut [FieldListRow], width: usize) {
    let is_number = &*NUMBER_COLUMNS;
    let numbers = || (2..=MAX_LIST_FIELDS).filter(|column| is_number[*column]);
    let mut others = (2..=MAX_LIST_FIELDS).rev().filter(|column| !is_number[*column]);
    let leave_out: CellChange = |_| String::new();
    let mut steps: Vec<(usize, CellChange, usize)> = Vec::new();
    let keep_first: CellChange = keep_first_value;
    steps.extend(others.next().map(|column| (column, leave_out, USUAL_NAME_WIDTH)));
    steps.extend(numbers().map(|column| (column, keep_first, USUAL_NAME_WIDTH)));
    steps.extend(others.map(|column| (column, leave_out, USUAL_NAME_WIDTH)));
    let shortenings: [(CellChange, usize); 4] = [
        (remove_label, MIN_NAME_WIDTH),
        (shorten_count, MIN_NAME_WIDTH),
        (remove_count, LEAST_NAME_WIDTH),
        (leave_out, MIN_NAME_WIDTH),
    ];
    for (shorten, name_width) in shortenings {
        steps.extend(numbers().map(|column| (column, shorten, name_width)));
    }
    for (column, shorten, name_width) in steps {
        if min_row_width(rows, is_number, name_width) <= width {
            return;
        }
        rows.iter_mut().for_each(|row| row[column] = shorten(&row[column]));
    }
}

/// The beginning of the number of values that are not shown.
const MORE_MARK: &str = ", +";

/// The end of that number.
const MORE_END: &str = " more";

/// Returns `0664 1234567, +2 more` for three numbers.
fn keep_first_value(cell: &str) -> String {
    match cell.split_once(", ") {
        Some((first, others)) => {
            format!("{first}{MORE_MARK}{}{MORE_END}", others.split(", ").count())
        }
        None => cell.to_string(),
    }
}

fn remove_label(cell: &str) -> String {
    match (cell.find(" ("), cell.find(')')) {
        (Some(start), Some(end)) if start < end => [&cell[..start], &cell[end + 1..]].concat(),
        _ => cell.to_string(),
    }
}

fn shorten_count(cell: &str) -> String {
    cell.strip_suffix(MORE_END).unwrap_or(cell).to_string()
}

fn remove_count(cell: &str) -> String {
    cell.split_once(MORE_MARK).map_or(cell, |(number, _)| number).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers are whole or absent at every width.
    #[test]
    fn numbers_are_never_cut() {
        let row = [
            "h1234567",
            "Anna Maria Schmidt",
            "anna.schmidt@example.org",
            "+43 664 1234567 (mobile), +43 1 2345 (work)",
            "Acme International",
        ];
        let lines = |width| {
            crate::output::strip_styles(&format_rows(&[row.map(String::from)], Some(width))[0])
        };
        for (width, expect) in [
            (
                130,
                "h1234567  Anna Maria Schmidt  anna.schmidt@example.org  +43 664 1234567 (mobile), +43 1 2345 (work)  Acme International",
            ),
            (
                80,
                "h1234567  Anna Maria Schmidt  anna.schmidt@e…  +43 664 1234567 (mobile), +1 more",
            ),
            (70, "h1234567  Anna Maria Schmidt  +43 664 1234567 (mobile), +1 more"),
            (60, "h1234567  Anna Maria Sch…  +43 664 1234567 (mobile), +1 more"),
            (50, "h1234567  Anna Maria Sc…  +43 664 1234567, +1 more"),
            (46, "h1234567  Anna Maria Sch…  +43 664 1234567, +1"),
            (40, "h1234567  Anna Mar…  +43 664 1234567, +1"),
            (30, "h1234567  Anna Maria Schmidt"),
        ] {
            assert_eq!(lines(width), expect, "{width}");
        }
    }
}
