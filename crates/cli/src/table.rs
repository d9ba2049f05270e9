//! Aligned columns that fit the width of the terminal.

use anstyle::Style;
use larder_present::safe_text::drop_stranded_chars;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The column of names unless the caller names another. It is shortened last; columns before it are
/// never shortened.
const NAME_COLUMN: usize = 1;
/// The name keeps this width while another column can be narrowed.
pub(crate) const MIN_NAME_WIDTH: usize = 12;
/// No column is narrower than this before the name is shortened to its minimum.
const MIN_COLUMN_WIDTH: usize = 6;
/// A column that cannot have this width is better left out, where columns may be.
const MIN_USEFUL_WIDTH: usize = 10;
/// The number of rows of a long list whose columns are aligned together.
pub(crate) const MAX_ALIGNED_ROWS: usize = 500;
/// Spaces between two columns.
const COLUMN_GAP_WIDTH: usize = 2;

/// Divides a long list into groups whose columns are aligned, so that its lines need not be kept.
pub(crate) fn aligned_groups<T>(rows: &[T]) -> impl Iterator<Item = &[T]> {
    rows.chunks(MAX_ALIGNED_ROWS)
}

/// Formats rows as columns. Columns except the last are padded up to `limits`; longer cells are
/// printed in full. With a `width` the widest columns are shortened until a row fits: never the
/// first, and the second, the name, last.
pub(crate) fn format_columns<const N: usize>(
    rows: &[[String; N]],
    limits: [usize; N],
    width: Option<usize>,
) -> Vec<String> {
    let line = |cells: [String; N]| cells.concat().trim_end().to_string();
    pad_cells(rows, limits, width).into_iter().map(line).collect()
}

/// Like [`format_columns`], but returns cells padded with spaces, so that the caller can style
/// them.
pub(crate) fn pad_cells<const N: usize>(
    rows: &[[String; N]],
    limits: [usize; N],
    width: Option<usize>,
) -> Vec<[String; N]> {
    pad_cells_by_name_column(rows, limits, width, NAME_COLUMN)
}

/// Like [`pad_cells`], but without a `width` the cells of a column are shortened to its limit, too:
/// those of senders, of which few are long.
pub(crate) fn pad_cells_with_bound<const N: usize>(
    rows: &mut [[String; N]],
    limits: [usize; N],
    width: Option<usize>,
    bounded: usize,
) -> Vec<[String; N]> {
    if width.is_none() {
        for row in rows.iter_mut() {
            row[bounded] = shorten_to_width(&row[bounded], limits[bounded]);
        }
    }
    pad_cells(rows, limits, width)
}

/// Like [`pad_cells`], with another column as the name.
pub(crate) fn pad_cells_by_name_column<const N: usize>(
    rows: &[[String; N]],
    limits: [usize; N],
    width: Option<usize>,
    name: usize,
) -> Vec<[String; N]> {
    pad_columns(rows, limits, width, name, [false; N])
}

/// Like [`pad_cells`], but never shortens the fixed columns.
pub(crate) fn pad_cells_with_fixed_columns<const N: usize>(
    rows: &[[String; N]],
    limits: [usize; N],
    width: Option<usize>,
    fixed: [bool; N],
) -> Vec<[String; N]> {
    pad_columns(rows, limits, width, NAME_COLUMN, fixed)
}

/// Returns the width of a row in which the name and the other columns have the least useful width;
/// fixed columns and those before the name are not narrowed.
pub(crate) fn min_row_width<const N: usize>(
    rows: &[[String; N]],
    fixed: &[bool; N],
    min_name_width: usize,
) -> usize {
    let widths = (0..N).map(|column| {
        let widest = max_cell_width(rows.iter().map(|row| row[column].as_str()));
        match column {
            NAME_COLUMN => widest.min(min_name_width),
            column if column > NAME_COLUMN && !fixed[column] => widest.min(MIN_USEFUL_WIDTH),
            _ => widest,
        }
    });
    let used = widths.filter(|width| *width > 0).map(|width| width + COLUMN_GAP_WIDTH);
    used.sum::<usize>().saturating_sub(COLUMN_GAP_WIDTH)
}

/// Like [`pad_cells_with_fixed_columns`], with another column as the name.
pub(crate) fn pad_columns<const N: usize>(
    rows: &[[String; N]],
    limits: [usize; N],
    width: Option<usize>,
    name: usize,
    fixed: [bool; N],
) -> Vec<[String; N]> {
    let mut widths: [usize; N] =
        std::array::from_fn(|column| max_cell_width(rows.iter().map(|row| row[column].as_str())));
    match width {
        Some(width) => fit_widths(&mut widths, limits, width, name, fixed),
        None => {
            for (width, limit) in widths.iter_mut().zip(limits) {
                *width = (*width).min(limit);
            }
        }
    }
    let cell = |row: &[String; N], column: usize| {
        let mut cell = match width {
            Some(_) => shorten_to_width(&row[column], widths[column]),
            None => row[column].clone(),
        };
        if column < N - 1 && widths[column] > 0 {
            let blanks = widths[column].saturating_sub(cell.width()) + COLUMN_GAP_WIDTH;
            cell.push_str(&" ".repeat(blanks));
        }
        cell
    };
    rows.iter().map(|row| std::array::from_fn(|column| cell(row, column))).collect()
}

/// Formats rows of any number of columns: a name, and figures that are aligned to the right. The
/// name is shortened until a row fits.
pub(crate) fn format_figure_rows(rows: &[Vec<String>], width: Option<usize>) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let mut widths: Vec<usize> = (0..columns)
        .map(|column| max_cell_width(rows.iter().filter_map(|row| Some(row.get(column)?.as_str()))))
        .collect();
    let total: usize = widths.iter().map(|width| width + COLUMN_GAP_WIDTH).sum();
    let excess =
        width.map_or(0, |width| (total - COLUMN_GAP_WIDTH.min(total)).saturating_sub(width));
    if let Some(name) = widths.first_mut() {
        *name = name.saturating_sub(excess).max(MIN_NAME_WIDTH.min(*name));
    }
    let line = |row: &Vec<String>| {
        let mut line = String::new();
        for (number, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let cell = if number == 0 { shorten_to_width(cell, *width) } else { cell.clone() };
            let blanks = " ".repeat(width.saturating_sub(cell.width()));
            match number {
                0 => line.push_str(&format!("{cell}{blanks}")),
                _ => line.push_str(&format!("{:COLUMN_GAP_WIDTH$}{blanks}{cell}", "")),
            }
        }
        line.trim_end().to_string()
    };
    rows.iter().map(line).collect()
}

fn max_cell_width<'a>(cells: impl Iterator<Item = &'a str>) -> usize {
    cells.map(|cell| cell.width()).max().unwrap_or_default()
}

/// Narrows the widest column until the row fits or no column can be narrowed.
fn fit_widths<const N: usize>(
    widths: &mut [usize; N],
    limits: [usize; N],
    width: usize,
    named: usize,
    fixed: [bool; N],
) {
    let total = |widths: &[usize]| -> usize {
        let used = widths.iter().filter(|width| **width > 0);
        used.map(|width| width + COLUMN_GAP_WIDTH).sum::<usize>().saturating_sub(COLUMN_GAP_WIDTH)
    };
    // The minimum widths of the name and of the other columns, in each round.
    let rounds = [
        (limits[named], MIN_COLUMN_WIDTH),
        (MIN_NAME_WIDTH, MIN_COLUMN_WIDTH),
        (MIN_NAME_WIDTH, 1),
        (MIN_COLUMN_WIDTH, 1),
    ];
    for (name, others) in rounds {
        let least = |column| if column == named { name } else { others };
        while total(widths) > width {
            let able = widths.iter_mut().enumerate().skip(named);
            let able = able.filter(|(column, width)| !fixed[*column] && **width > least(*column));
            let Some((_, widest)) = able.max_by_key(|(_, width)| **width) else { break };
            *widest -= 1;
        }
    }
}

/// Joins padded cells, each in its style, without trailing spaces.
pub(crate) fn style_cells(cells: &[(Style, &str)]) -> String {
    let last = cells.iter().rposition(|(_, cell)| !cell.trim_end().is_empty()).unwrap_or_default();
    let mut line = String::new();
    for (place, (style, cell)) in cells.iter().enumerate().take(last + 1) {
        let (text, blanks) = cell.split_at(cell.trim_end().len());
        line.push_str(&format!("{style}{text}{style:#}"));
        if place < last {
            line.push_str(blanks);
        }
    }
    line
}

/// Shortens an escaped text to `width` columns of the terminal; an ellipsis marks the cut.
pub(crate) fn shorten_to_width(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_string();
    }
    let mut end = width;
    loop {
        let mut used = 0;
        let is_kept = |c: &char| {
            used += c.width().unwrap_or(0);
            used < end
        };
        let short = drop_stranded_chars(&text.chars().take_while(is_kept).collect::<String>());
        // A character and a selector behind it may be wider than both.
        let excess = (short.width() + 1).saturating_sub(width);
        if excess == 0 || end == 0 {
            return format!("{short}…");
        }
        end = end.saturating_sub(excess);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_take_two_columns() {
        let rows = [["王小明", "x"], ["Anna", "y"], ["a very long name", "z"]]
            .map(|row| row.map(String::from));
        let check =
            |width, expect: [&str; 3]| assert_eq!(format_columns(&rows, [8, 80], width), expect);
        check(None, ["王小明    x", "Anna      y", "a very long name  z"]);
        check(Some(80), ["王小明            x", "Anna              y", "a very long name  z"]);
    }

    #[test]
    fn a_cut_leaves_no_character_that_needs_the_rest() {
        let check = |text: &str, width, expect| assert_eq!(shorten_to_width(text, width), expect);
        let family = "👨\u{200d}👩\u{200d}👧 Berg";
        check(family, 3, "👨…");
        check(family, 5, "👨\u{200d}👩…");
        check("a\u{200f} bcd שלום", 5, "a bc…");
        check("ש\u{200f} bcd efgh", 5, "ש\u{200f} bc…");
        check("می\u{200c}خواهم", 3, "می…");
        // A name that is hostile takes no longer than others.
        let marks = "☺\u{fe0f}".repeat(40) + &"\u{301}".repeat(100_000) + &"x".repeat(200);
        assert!(shorten_to_width(&marks, 78).width() <= 78);
        for width in 0..12 {
            let short = shorten_to_width("☺\u{fe0f}☺\u{fe0f}☺\u{fe0f}☺\u{fe0f} smile", width);
            assert!(short.width() <= width.max(1), "{short:?} in {width}");
        }
    }

    #[test]
    fn a_bounded_column_is_aligned_in_a_pipe() {
        let rows = [["1", "anna.berg@a-long-host.example", "x"], ["22", "王小明", "y"]];
        let mut rows = rows.map(|row| row.map(String::from));
        let padded = pad_cells_with_bound(&mut rows, [13, 12, 0], None, 1);
        let lines: Vec<String> = padded.iter().map(|cells| cells.concat()).collect();
        assert_eq!(lines, ["1   anna.berg@a…  x", "22  王小明        y"]);
    }

    #[test]
    fn the_widest_column_is_shortened_first() {
        let rows = [
            ["h1", "Anna Schmidt", "anna.schmidt@example.org", ""],
            ["h2", "王小明王小明", "w@x", "é"],
        ]
        .map(|row| row.map(String::from));
        for (width, expect) in [
            (
                45,
                [
                    "h1  Anna Schmidt  anna.schmidt@example.org",
                    "h2  王小明王小明  w@x                       é",
                ],
            ),
            (34, ["h1  Anna Schmidt  anna.schmidt…", "h2  王小明王小明  w@x            é"]),
            (24, ["h1  Anna Schmidt  an…", "h2  王小明王小明  w@x  é"]),
            (20, ["h1  Anna Schm…  …", "h2  王小明王…   …  é"]),
            (5, ["h1  Anna …  …", "h2  王小…   …  é"]),
        ] {
            assert_eq!(format_columns(&rows, [13, 28, 34, 0], Some(width)), expect, "{width}");
        }
    }
}
