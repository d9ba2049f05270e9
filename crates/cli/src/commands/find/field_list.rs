//! Lists of items by their fields: the ID, and the default fields of the kind.
//!
//! Apart from `occurrence_list`, whose items have a time, which needs more than fields.

use crate::commands::show::item_format;
use crate::failure::CommandFailure;
use crate::item_ids::display_title;
use crate::output::{FAINT_STYLE, STRONG_STYLE};
use crate::table::{pad_cells, style_cells};
use anstyle::Style;
use larder_format::field::Field;
use larder_format::kind::{KINDS, ListLayout, MAX_LIST_FIELDS};
use larder_query::ProjectedItem;
use larder_store::{ItemMeta, Kind, Reader};

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

/// Formats rows as lines.
pub(crate) fn format_rows(rows: &[FieldListRow], width: Option<usize>) -> Vec<String> {
    let line = |[handle, name, rest @ ..]: FieldListRow| {
        let cells = [(FAINT_STYLE, handle), (STRONG_STYLE, name), (Style::new(), rest.concat())];
        style_cells(&cells.each_ref().map(|(style, cell)| (*style, cell.as_str())))
    };
    pad_cells(rows, [13, 28, 34, 24, 0], width).into_iter().map(line).collect()
}
