//! Columns for people: as wide as what is in them, up to a limit.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// Lays rows out in columns; the last one is as long as it is. `limits` are the widest that the others may be.
pub(crate) fn columns<const N: usize>(rows: &[[String; N]], limits: [usize; N]) -> Vec<String> {
    let line = |cells: [String; N]| cells.concat().trim_end().to_string();
    padded(rows, limits).into_iter().map(line).collect()
}

/// The same as cells, each with the blanks that stand behind it, for who wants to style them.
pub(crate) fn padded<const N: usize>(rows: &[[String; N]], limits: [usize; N]) -> Vec<[String; N]> {
    let mut widths = [0; N];
    for row in rows {
        for (width, (cell, limit)) in widths.iter_mut().zip(row.iter().zip(limits)) {
            *width = (*width).max(cell.width().min(limit));
        }
    }
    let last = N - 1;
    let cell = |row: &[String; N], column: usize| {
        if column == last {
            return row[column].clone();
        }
        let mut cell = shorten(&row[column], widths[column]);
        if widths[column] > 0 {
            cell.push_str(&" ".repeat((widths[column] + 2).saturating_sub(cell.width())));
        }
        cell
    };
    rows.iter().map(|row| std::array::from_fn(|column| cell(row, column))).collect()
}

/// A text in at most `width` columns of the terminal, with an ellipsis where it was cut.
fn shorten(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_string();
    }
    let mut short = String::new();
    let mut used = 0;
    for c in text.chars() {
        let wide = c.width().unwrap_or(0);
        if used + wide + 1 > width {
            break;
        }
        used += wide;
        short.push(c);
    }
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_take_two_columns() {
        let rows = [["王小明", "x"], ["Anna", "y"], ["a very long name", "z"]]
            .map(|row| row.map(String::from));
        let lines = columns(&rows, [8, 80]);
        assert_eq!(lines, ["王小明    x", "Anna      y", "a very …  z"]);
    }
}
