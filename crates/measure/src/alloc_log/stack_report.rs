//! Call stacks in a report: tables of functions and of paths, and flame graphs.

use super::call_stacks::StackBytes;
use super::stack_profile::{FunctionBytes, PathNode, StackProfile};
use crate::chart::{ColourRole, FlameFrame, FlameGraph, MeasureUnit};
use crate::measure_report::{ReportSection, ReportTable, SectionChart};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Rows of a table of functions.
const MAX_FUNCTION_ROWS: usize = 15;
/// Rows of a table of paths.
const MAX_PATH_ROWS: usize = 30;
/// The share of all bytes from which on a path is in the table.
const MIN_PATH_SHARE: f64 = 0.02;
/// The colours of the files with the most bytes; all others are grey.
const FILE_COLOURS: [ColourRole; 5] = [
    ColourRole::First,
    ColourRole::Second,
    ColourRole::Third,
    ColourRole::Warning,
    ColourRole::Error,
];

/// Says which function is charged.
const CHARGE_RULE: &str = "Functions of the standard libraries of C, C++ and Rust, also those that \
                           are compiled into the program, count as part of the function that \
                           called them.";

/// A figure of a stack.
type BytesFn = fn(&StackBytes) -> u64;

impl StackProfile {
    /// Returns the section that compares two profiles by function.
    pub(super) fn comparison(before: &StackProfile, after: &StackProfile) -> ReportSection {
        let sides = [before, after];
        let direct = |bytes: &FunctionBytes| bytes.direct;
        ReportSection {
            heading: "Call stacks".into(),
            text: format!(
                "Functions by the larger of the changes of their memory at the peak and at the end. \
                 The figures are estimates from samples. {CHARGE_RULE}"
            ),
            charts: Vec::new(),
            tables: vec![
                comparison_table("Functions that ask for memory", sides, direct),
                comparison_table("Functions with all that they call", sides, |bytes| bytes.total),
            ],
        }
    }

    /// Returns the section of a report.
    ///
    /// `requested` and `at_peak` are the exact bytes, of which the estimates should be about 100 %.
    pub(super) fn section(&self, requested: u64, at_peak: u64) -> ReportSection {
        let all = self.total();
        let part = |estimate: u64, exact: u64| {
            MeasureUnit::Share.format(estimate as f64 / exact.max(1) as f64)
        };
        let mut text = format!(
            "One request in {} on average was sampled with its call stack, {} in all; the figures \
             are estimates from these, which add up to {} of the requested memory and to {} of the \
             peak. A new size counts as a request of its own. Short-lived \
             memory was released within 0.01 % of the calls. {CHARGE_RULE}",
            MeasureUnit::Bytes.format(self.interval as f64),
            MeasureUnit::Count.format(self.samples as f64),
            part(all.requested, requested),
            part(all.at_peak, at_peak)
        );
        if !self.names.changed_files.is_empty() {
            let files = self.names.changed_files.join(", ");
            text.push_str(&format!(
                " Functions of these files have no names, because the files have changed: {files}."
            ));
        }
        let functions = self.by_function.iter().enumerate();
        let direct = functions.clone().map(|(number, bytes)| (number, bytes.direct));
        let with_callees = functions
            .filter(|(number, bytes)| !bytes.is_passed_through() && self.is_listed(*number));
        let with_callees = with_callees.map(|(number, bytes)| (number, bytes.total));
        let mut tables = vec![
            self.function_table(
                "Functions that ask for memory, by the peak",
                direct.clone().collect(),
                |bytes| (bytes.at_peak, bytes.requested),
            ),
            self.function_table(
                "Functions that ask for memory, by what is live at the end",
                direct.filter(|(_, bytes)| bytes.at_end > 0).collect(),
                |bytes| (bytes.at_end, bytes.at_peak),
            ),
            self.function_table(
                "Functions with all that they call, where paths part, by the peak",
                with_callees.collect(),
                |bytes| (bytes.at_peak, bytes.requested),
            ),
            self.file_table(),
            self.path_table(),
        ];
        tables.retain(|table| !table.rows.is_empty());
        ReportSection { heading: "Call stacks".into(), text, charts: self.charts(), tables }
    }

    /// Returns whether tables list a function: unless it is part of its callers.
    fn is_listed(&self, function: usize) -> bool {
        !self.names.is_library[function] || self.by_function[function].direct.samples > 0
    }

    /// Returns the table of the functions with the highest figures.
    fn function_table(
        &self,
        title: &str,
        functions: Vec<(usize, StackBytes)>,
        figures: fn(&StackBytes) -> (u64, u64),
    ) -> ReportTable {
        let name = |number: usize| self.names.names[number].clone();
        bytes_table((title, "function"), functions, name, figures)
    }

    /// Returns the table of the program's files by the functions in them; none if there is but one.
    fn file_table(&self) -> ReportTable {
        let mut by_file = vec![StackBytes::default(); self.files.len()];
        for (file, bytes) in self.names.modules.iter().zip(&self.by_function) {
            by_file[*file as usize] += bytes.direct;
        }
        let mut files: Vec<(usize, StackBytes)> = by_file.into_iter().enumerate().collect();
        files.retain(|(_, bytes)| bytes.samples > 0);
        if files.len() < 2 {
            files.clear();
        }
        let name = |file: usize| match file {
            0 => "no file".into(),
            _ => self.files[file].clone(),
        };
        let title = "Files whose functions ask for memory";
        bytes_table((title, "file"), files, name, |bytes| (bytes.at_peak, bytes.requested))
    }

    /// Returns the table of the paths to the memory at the peak. A row is a function where paths
    /// part or end, with those between it and the row above it.
    fn path_table(&self) -> ReportTable {
        let all = self.total().at_peak;
        let mut rows = Vec::new();
        let start = |node| (node, 0, Vec::new());
        let mut open: Vec<(u32, usize, Vec<u32>)> = self.by_peak(&self.roots).map(start).collect();
        while let Some((number, depth, mut between)) = open.pop() {
            let node = &self.nodes[number as usize];
            let share = node.total.at_peak as f64 / all.max(1) as f64;
            if share < MIN_PATH_SHARE || rows.len() >= MAX_PATH_ROWS {
                continue;
            }
            let is_notable = |child: &u32| {
                let child = &self.nodes[*child as usize];
                !child.is_hidden && child.total.at_peak as f64 >= MIN_PATH_SHARE * all as f64
            };
            let notable: Vec<u32> = node.children.iter().copied().filter(is_notable).collect();
            let is_shown = notable.len() != 1;
            between.push(number);
            if is_shown {
                rows.push(vec![
                    format!("{}{}", "· ".repeat(depth), self.path_text(&between)),
                    MeasureUnit::Bytes.format(node.total.at_peak as f64),
                    MeasureUnit::Share.format(share),
                ]);
            }
            let (depth, between) =
                if is_shown { (depth + 1, Vec::new()) } else { (depth, between) };
            open.extend(self.by_peak(&notable).map(|child| (child, depth, between.clone())));
        }
        let title = "Paths to the memory at the peak";
        let head = ["path", "live at the peak", "share"].map(String::from).to_vec();
        ReportTable { title: title.into(), head, rows }
    }

    /// Returns the names of nodes from caller to callee; the middle of a long path is left out.
    fn path_text(&self, nodes: &[u32]) -> String {
        let name = |node: &u32| self.name(&self.nodes[*node as usize]);
        match nodes {
            [first, _, _, .., last] => format!("{} > … > {}", name(first), name(last)),
            _ => nodes.iter().map(name).collect::<Vec<_>>().join(" > "),
        }
    }

    /// Returns nodes in the order of their bytes at the peak, the least first.
    fn by_peak(&self, nodes: &[u32]) -> impl Iterator<Item = u32> {
        let mut nodes = nodes.to_vec();
        nodes.sort_by_key(|node| (self.nodes[*node as usize].total.at_peak, *node));
        nodes.into_iter()
    }

    fn charts(&self) -> Vec<SectionChart> {
        let figures: [(&str, BytesFn); 4] = [
            ("Memory at the peak, by call path", |bytes| bytes.at_peak),
            ("Requested memory, by call path", |bytes| bytes.requested),
            ("Short-lived memory, by call path", |bytes| bytes.short_lived),
            ("Memory at the end, by call path", |bytes| bytes.at_end),
        ];
        let caption = "Each bar is a function, as wide as the memory that it and the functions below \
                       it asked for. Its caller is above it. The colour is the file of its code.";
        let total = self.total();
        let drawn = figures.into_iter().filter(|(_, figure)| figure(&total) > 0);
        drawn
            .map(|(title, figure)| {
                (title.to_string(), caption.to_string(), Box::new(self.flame_graph(figure)) as _)
            })
            .collect()
    }

    fn flame_graph(&self, figure: BytesFn) -> FlameGraph {
        let colours = self.file_colours();
        let frame = |node: &PathNode| FlameFrame {
            name: self.name(node).to_string(),
            value: figure(&node.total) as f64,
            colour: colours[self.names.modules[node.function as usize] as usize],
            parent: node.parent.map(|parent| parent as usize),
        };
        let files = self.files.iter().zip(&colours);
        let named = files.filter(|(_, colour)| **colour != ColourRole::Reference);
        let mut legend: Vec<(ColourRole, String)> =
            named.map(|(file, colour)| (*colour, file.clone())).collect();
        legend.sort_by_key(|(colour, _)| FILE_COLOURS.iter().position(|known| known == colour));
        if self.names.modules.iter().any(|file| colours[*file as usize] == ColourRole::Reference) {
            legend.push((ColourRole::Reference, "other files".into()));
        }
        FlameGraph {
            unit: MeasureUnit::Bytes,
            frames: self.nodes.iter().map(frame).collect(),
            legend,
        }
    }

    /// Returns the colour of each file, the same in all charts: those with the most functions in
    /// the samples have one of their own.
    fn file_colours(&self) -> Vec<ColourRole> {
        let mut samples = vec![0; self.files.len()];
        for (file, bytes) in self.names.modules.iter().zip(&self.by_function) {
            samples[*file as usize] += bytes.total.samples;
        }
        let mut files: Vec<usize> = (1..samples.len()).filter(|file| samples[*file] > 0).collect();
        files.sort_by_key(|file| (std::cmp::Reverse(samples[*file]), *file));
        let mut colours = vec![ColourRole::Reference; samples.len()];
        for (file, colour) in files.into_iter().zip(FILE_COLOURS) {
            colours[file] = colour;
        }
        colours
    }

    /// Returns the tree as JSON: functions with their files and the bytes that are charged to them,
    /// and the nodes, each after its parent.
    pub(super) fn to_json(&self) -> Value {
        let bytes_json = |bytes: &StackBytes| {
            json!({
                "samples": bytes.samples,
                "requested_bytes": bytes.requested,
                "bytes_at_peak": bytes.at_peak,
                "end_bytes": bytes.at_end,
                "short_lived_bytes": bytes.short_lived,
            })
        };
        let functions = self.by_function.iter().enumerate().map(|(number, bytes)| {
            json!({
                "name": self.names.names[number],
                "file": self.files[self.names.modules[number] as usize],
                "is_library": self.names.is_library[number],
                "direct": bytes_json(&bytes.direct),
                "with_callees": bytes_json(&bytes.total),
            })
        });
        let nodes = self.nodes.iter().map(|node| {
            json!({
                "function": node.function,
                "parent": node.parent,
                "samples": node.own.samples,
                "requested_bytes": node.own.requested,
                "bytes_at_peak": node.own.at_peak,
                "end_bytes": node.own.at_end,
                "short_lived_bytes": node.own.short_lived,
            })
        });
        json!({
            "interval": self.interval,
            "samples": self.samples,
            "functions": functions.collect::<Vec<_>>(),
            "nodes": nodes.collect::<Vec<_>>(),
        })
    }
}

/// Returns a table of the rows with the highest figures, by the numbers of what they are about.
fn bytes_table(
    (title, subject): (&str, &str),
    mut rows: Vec<(usize, StackBytes)>,
    name: impl Fn(usize) -> String,
    figures: fn(&StackBytes) -> (u64, u64),
) -> ReportTable {
    rows.retain(|(_, bytes)| bytes.samples > 0);
    rows.sort_by_key(|(number, bytes)| (std::cmp::Reverse(figures(bytes)), *number));
    let others = rows.split_off(rows.len().min(MAX_FUNCTION_ROWS));
    let head =
        [subject, "live at the peak", "requested", "short-lived", "live at the end", "samples"];
    let samples = |bytes: &StackBytes| MeasureUnit::Count.format(bytes.samples as f64);
    let cells = rows.into_iter().map(|(number, bytes)| {
        let figures = [bytes.at_peak, bytes.requested, bytes.short_lived, bytes.at_end];
        let figures = figures.map(|figure| MeasureUnit::Bytes.format(figure as f64));
        let name = std::iter::once(name(number));
        name.chain(figures).chain([samples(&bytes)]).collect()
    });
    let mut rows: Vec<Vec<String>> = cells.collect();
    if !others.is_empty() {
        let mut row = vec![format!("and {} more", others.len())];
        row.resize(head.len(), String::new());
        rows.push(row);
    }
    ReportTable { title: title.into(), head: head.map(String::from).to_vec(), rows }
}

/// Returns a table that compares functions of two profiles by one of their figures.
fn comparison_table(
    title: &str,
    sides: [&StackProfile; 2],
    figure: fn(&FunctionBytes) -> StackBytes,
) -> ReportTable {
    let mut functions: BTreeMap<&str, [StackBytes; 2]> = BTreeMap::new();
    for (side, profile) in sides.into_iter().enumerate() {
        for (number, bytes) in profile.by_function.iter().enumerate() {
            if profile.is_listed(number) {
                let name = &profile.names.names[number];
                functions.entry(name).or_default()[side] += figure(bytes);
            }
        }
    }
    let mut functions: Vec<(&str, [StackBytes; 2])> = functions.into_iter().collect();
    functions.retain(|(_, sides)| sides.iter().any(|bytes| bytes.samples > 0));
    let change = |[before, after]: [StackBytes; 2]| {
        let at_end = before.at_end.abs_diff(after.at_end);
        (before.at_peak.abs_diff(after.at_peak).max(at_end), after.requested)
    };
    functions.sort_by_key(|(name, sides)| (std::cmp::Reverse(change(*sides)), *name));
    functions.truncate(MAX_FUNCTION_ROWS);
    let head = [
        "function",
        "peak before",
        "peak after",
        "change of the peak",
        "end before",
        "end after",
        "change at the end",
        "requested before",
        "requested after",
    ];
    let row = |(name, [before, after]): (&str, [StackBytes; 2])| {
        let bytes = |figure: u64| MeasureUnit::Bytes.format(figure as f64);
        let change = |before: u64, after: u64| match before.abs_diff(after) {
            0 => "=".to_string(),
            difference if after > before => format!("+{}", bytes(difference)),
            difference => format!("-{}", bytes(difference)),
        };
        vec![
            name.to_string(),
            bytes(before.at_peak),
            bytes(after.at_peak),
            change(before.at_peak, after.at_peak),
            bytes(before.at_end),
            bytes(after.at_end),
            change(before.at_end, after.at_end),
            bytes(before.requested),
            bytes(after.requested),
        ]
    };
    ReportTable {
        title: title.into(),
        head: head.map(String::from).to_vec(),
        rows: functions.into_iter().map(row).collect(),
    }
}
