//! Lines redrawn in place on a terminal. Not a full screen: earlier output stays above them.
//!
//! Computes the bytes that replace the current lines, and prints nothing.

use crate::output::strip_styles;
use unicode_width::UnicodeWidthStr as _;

/// Clears the rest of the line, and everything below.
const CLEAR_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";
/// Clears the terminal and moves to the top.
pub(crate) const CLEAR_SCREEN: &str = "\x1b[H\x1b[J";

/// The lines on the terminal.
#[derive(Debug, Default)]
pub(crate) struct TerminalScreen {
    lines: Vec<String>,
}

impl TerminalScreen {
    /// Returns the bytes that replace the current lines by these, on a terminal that now has this
    /// many columns. Returns `None` if the lines are the same.
    pub(crate) fn redraw(&mut self, lines: Vec<String>, columns: usize) -> Option<String> {
        if lines == self.lines {
            return None;
        }
        let mut drawn = String::new();
        if !self.lines.is_empty() {
            drawn.push('\r');
        }
        // The cursor is at the end of the last line. The current lines may be wider than the
        // terminal is now.
        let above = self.lines.iter().map(|line| wrapped_height(line, columns)).sum::<usize>();
        if above > 1 {
            drawn.push_str(&format!("\x1b[{}A", above - 1));
        }
        for (place, line) in lines.iter().enumerate() {
            drawn.push_str(if place > 0 { "\n" } else { "" });
            // Before the line: after a line that fills the terminal the cursor is still on its last
            // letter.
            drawn.push_str(CLEAR_LINE);
            drawn.push_str(line);
        }
        drawn.push_str(CLEAR_BELOW);
        self.lines = lines;
        Some(drawn)
    }
}

/// Returns the number of terminal lines that a text takes.
fn wrapped_height(line: &str, columns: usize) -> usize {
    strip_styles(line).width().div_ceil(columns.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_drawn_in_their_place() {
        let mut screen = TerminalScreen::default();
        let mut check = |lines: &[&str], columns, expect: Option<&str>| {
            let lines = lines.iter().map(|line| (*line).to_string()).collect();
            assert_eq!(screen.redraw(lines, columns).as_deref(), expect);
        };
        check(&["one", "two"], 80, Some("\x1b[Kone\n\x1b[Ktwo\x1b[J"));
        check(&["one", "two"], 80, None);
        check(&["three"], 80, Some("\r\x1b[1A\x1b[Kthree\x1b[J"));
        check(
            &["a", "b", "\x1b[1mccc\x1b[0m"],
            80,
            Some("\r\x1b[Ka\n\x1b[Kb\n\x1b[K\x1b[1mccc\x1b[0m\x1b[J"),
        );
        // The terminal is narrower now: the last line has been wrapped.
        check(&["d"], 2, Some("\r\x1b[3A\x1b[Kd\x1b[J"));
        check(&["王小"], 3, Some("\r\x1b[K王小\x1b[J"));
        check(&["e"], 3, Some("\r\x1b[1A\x1b[Ke\x1b[J"));
    }
}
