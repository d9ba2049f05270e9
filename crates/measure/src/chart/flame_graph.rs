//! Flame graphs: call paths as bars, each caller above the functions that it calls.

use crate::chart::axis::MeasureUnit;
use crate::chart::{Chart, ColourRole, XmlEscaped, svg_text, text_width_pixels, truncate_to_width};
use std::fmt::{self, Write as _};

/// The height of a row in pixels.
const ROW_PIXELS: f64 = 18.0;
/// Bars that are narrower than this are left out: they cannot be seen.
const MIN_BAR_PIXELS: f64 = 0.5;
/// The most rows; deeper frames are left out, and the graph says how many rows they are.
const MAX_ROWS: usize = 90;
/// The narrowest bar that has a name.
const MIN_NAME_PIXELS: f64 = 24.0;
/// The part of a bar that its name may take by the estimate, as fonts differ and bars adjoin.
const ROOM_SHARE: f64 = 0.9;
/// The fewest characters of a name that is cut.
const MIN_NAME_CHARS: usize = 4;

/// A function with the path of its callers.
#[derive(Debug, Clone)]
pub struct FlameFrame {
    /// The name of the function.
    pub name: String,
    /// Its value, with all functions that it calls.
    pub value: f64,
    /// Its colour.
    pub colour: ColourRole,
    /// The index of its caller, which is before it.
    pub parent: Option<usize>,
}

/// A flame graph, with the outermost functions at the top.
pub struct FlameGraph {
    /// The unit of the values.
    pub unit: MeasureUnit,
    /// The frames.
    pub frames: Vec<FlameFrame>,
    /// The meaning of the colours.
    pub legend: Vec<(ColourRole, String)>,
}

/// A bar: its frame, its place, its row.
struct FlameBar {
    frame: usize,
    left: f64,
    width: f64,
    row: usize,
}

impl Chart for FlameGraph {
    fn draw(&self, width: f64) -> Result<String, fmt::Error> {
        let bars = self.bars(width);
        let rows = bars.iter().map(|bar| bar.row + 1).max().unwrap_or(0);
        let hidden_rows = self.hidden_rows(width);
        let drawn_rows = rows + usize::from(hidden_rows > 0);
        let (total, height) = (self.total(), drawn_rows as f64 * ROW_PIXELS + 2.0);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" height=\"{height:.0}\">\n"
        );
        for bar in bars {
            let frame = &self.frames[bar.frame];
            let tooltip = format!(
                "{} - {}, {}",
                frame.name,
                self.unit.format(frame.value),
                MeasureUnit::Share.format(frame.value / total)
            );
            let top = bar.row as f64 * ROW_PIXELS;
            writeln!(
                out,
                "<g><title>{}</title><rect class=\"{} fill\" opacity=\".4\" x=\"{:.1}\" y=\"{top:.0}\" width=\"{:.1}\" height=\"{:.0}\"/>",
                XmlEscaped(&tooltip),
                frame.colour.css_class(),
                bar.left,
                (bar.width - 0.5).max(MIN_BAR_PIXELS),
                ROW_PIXELS - 1.0
            )?;
            if bar.width >= MIN_NAME_PIXELS
                && let Some(name) = fit_name(&frame.name, (bar.width - 6.0) * ROOM_SHARE)
            {
                out.push_str(&svg_text(bar.left + 3.0, top + 13.0, "start", "", &name));
            }
            out.push_str("</g>\n");
        }
        if hidden_rows > 0 {
            let text = match hidden_rows {
                1 => "1 more row of deeper calls is not shown".into(),
                rows => format!("{rows} more rows of deeper calls are not shown"),
            };
            let top = rows as f64 * ROW_PIXELS;
            out.push_str(&svg_text(3.0, top + 13.0, "start", "faint", &text));
        }
        out.push_str("</svg>");
        Ok(out)
    }

    fn legend(&self) -> Vec<(ColourRole, String)> {
        self.legend.clone()
    }
}

/// Returns as much of the name of a function as has room: without what it is generic over, or its
/// last part alone. `None`: the beginning that has room tells nothing.
fn fit_name(name: &str, room: f64) -> Option<String> {
    let plain = without_generics(name);
    let last = plain.rsplit("::").next().unwrap_or(&plain);
    // A function without a name is its file and its address.
    let last = last.rfind("+0x").and_then(|at| last.get(at..)).unwrap_or(last);
    let fitting = [name, &plain, last].into_iter().find(|text| text_width_pixels(text) <= room);
    let text = fitting.map_or_else(|| truncate_to_width(last, room), String::from);
    (fitting.is_some() || text.chars().count() > MIN_NAME_CHARS).then_some(text)
}

/// Returns a name without what stands in angle brackets; a name in which these do not match, as
/// that of an operator, as it is.
fn without_generics(name: &str) -> String {
    let (mut depth, mut plain, mut before) = (0_usize, String::new(), ' ');
    for c in name.chars() {
        match c {
            '<' => depth += 1,
            // The arrow of a function's type closes nothing.
            '>' if before == '-' => {}
            '>' if depth == 0 => return name.into(),
            '>' => depth -= 1,
            c if depth == 0 => plain.push(c),
            _ => {}
        }
        before = c;
    }
    let plain = plain.trim_start_matches("::");
    if depth == 0 && !plain.is_empty() { plain.into() } else { name.into() }
}

impl FlameGraph {
    fn total(&self) -> f64 {
        let roots = self.frames.iter().filter(|frame| frame.parent.is_none());
        roots.map(|frame| frame.value).sum::<f64>().max(1.0)
    }

    /// Returns the number of rows beyond the last one of frames that could be seen.
    fn hidden_rows(&self, width: f64) -> usize {
        let min_value = MIN_BAR_PIXELS * self.total() / width;
        let mut rows: Vec<usize> = Vec::with_capacity(self.frames.len());
        for frame in &self.frames {
            let above = frame.parent.and_then(|parent| rows.get(parent));
            rows.push(above.map_or(0, |row| row + 1));
        }
        let visible = rows.iter().zip(&self.frames).filter(|(_, frame)| frame.value >= min_value);
        visible.map(|(row, _)| (row + 1).saturating_sub(MAX_ROWS)).max().unwrap_or(0)
    }

    /// Places the bars: those with one caller from the left, the widest first.
    fn bars(&self, width: f64) -> Vec<FlameBar> {
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); self.frames.len()];
        let mut roots = Vec::new();
        for (index, frame) in self.frames.iter().enumerate() {
            match frame.parent {
                Some(parent) => children[parent].push(index),
                None => roots.push(index),
            }
        }
        let pixels = width / self.total();
        let mut bars = Vec::new();
        let mut open = vec![(roots, 0.0, 0)];
        while let Some((mut group, mut left, row)) = open.pop() {
            group.sort_by(|one, other| {
                self.frames[*other].value.total_cmp(&self.frames[*one].value).then(one.cmp(other))
            });
            for frame in group {
                let width = self.frames[frame].value * pixels;
                if width < MIN_BAR_PIXELS {
                    break;
                }
                bars.push(FlameBar { frame, left, width, row });
                if row + 1 < MAX_ROWS && !children[frame].is_empty() {
                    open.push((std::mem::take(&mut children[frame]), left, row + 1));
                }
                left += width;
            }
        }
        bars
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_wide_as_their_values() {
        let frame = |name: &str, value, parent| FlameFrame {
            name: name.into(),
            value,
            colour: ColourRole::First,
            parent,
        };
        let frames = vec![
            frame("main", 100.0, None),
            frame("small<T>", 25.0, Some(0)),
            frame("large", 75.0, Some(0)),
            frame("invisible", 0.001, Some(2)),
        ];
        let graph = FlameGraph { unit: MeasureUnit::Bytes, frames, legend: Vec::new() };
        let bars: Vec<(usize, f64, f64, usize)> =
            graph.bars(400.0).iter().map(|bar| (bar.frame, bar.left, bar.width, bar.row)).collect();
        assert_eq!(bars, [(0, 0.0, 400.0, 0), (2, 0.0, 300.0, 1), (1, 300.0, 100.0, 1)]);
        let picture = graph.draw(400.0).unwrap();
        assert!(picture.contains("<title>small&lt;T&gt; - 25 bytes, 25 %</title>"), "{picture}");
        assert!(picture.contains("height=\"38\""), "{picture}");
        assert!(!picture.contains("not shown"), "{picture}");
    }

    #[test]
    fn a_name_is_shortened_to_its_last_part() {
        let fit = |name: &str, chars: f64| fit_name(name, chars * 6.6 + 1.0);
        let name = "std::vector<Item, std::allocator<Item> >::push_back";
        assert_eq!(fit(name, 60.0).unwrap(), name);
        assert_eq!(fit(name, 30.0).unwrap(), "std::vector::push_back");
        assert_eq!(fit(name, 12.0).unwrap(), "push_back");
        assert_eq!(fit(name, 7.0).unwrap(), "push_b…");
        assert_eq!(fit(name, 4.0), None);
        assert_eq!(fit("<T as shop::Encode>::encode", 10.0).unwrap(), "encode");
        assert_eq!(fit("Item::operator<", 12.0).unwrap(), "operator<");
        assert_eq!(fit("git+0x1ba580", 10.0).unwrap(), "+0x1ba580");
        assert_eq!(fit("<F: Fn(u8) -> u8>::call", 10.0).unwrap(), "call");
    }

    #[test]
    fn rows_that_are_cut_are_named() {
        let frame = |index: usize| FlameFrame {
            name: format!("level {index}"),
            value: if index < 110 { 50.0 } else { 0.001 },
            colour: ColourRole::First,
            parent: index.checked_sub(1),
        };
        let frames = (0..120).map(frame).collect();
        let graph = FlameGraph { unit: MeasureUnit::Bytes, frames, legend: Vec::new() };
        let picture = graph.draw(400.0).unwrap();
        assert_eq!(picture.matches("<rect").count(), MAX_ROWS);
        assert!(
            picture.contains(">20 more rows of deeper calls are not shown</text>"),
            "{picture}"
        );
    }
}
