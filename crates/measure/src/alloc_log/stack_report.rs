//! Call stacks in a report: tables of functions and of paths.

use super::analysis::OriginBytes;
use super::call_stacks::StackBytes;
use super::end_point::EndPoint;
use super::findings::count_of;
use super::function_names::UNKNOWN_NAME;
use super::stack_profile::{FunctionBytes, PathNode, StackProfile};
use crate::chart::MeasureUnit;
use crate::measure_report::{ReportSection, ReportTable};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Rows of a table of functions.
const MAX_FUNCTION_ROWS: usize = 15;
/// Rows of a table of paths.
const MAX_PATH_ROWS: usize = 30;
/// The share of all bytes from which on a path is in the table.
const MIN_PATH_SHARE: f64 = 0.02;
/// The share of all bytes from which on those of a function have a row that are in no path below
/// it.
const MIN_OWN_SHARE: f64 = 0.05;
/// Functions of a path that are named; of more, the first one and [`INNER_NAMES`] inner ones.
const MAX_PATH_NAMES: usize = 6;
const INNER_NAMES: usize = 4;
/// The functions by which programs and threads begin; what they call has more to say.
const ENTRY_NAMES: [&str; 4] = ["_start", "clone", "clone3", "start_thread"];
/// Two estimates that differ by more than this many standard deviations do so by accident with a
/// probability of at most 5 %.
const ERROR_DEVIATIONS: f64 = 2.0;
/// An estimate with a larger error, as a part of it, names no function: it is from fewer than about
/// 20 samples.
const MAX_ORIGIN_ERROR: f64 = 0.45;

/// Says which function is charged.
const CHARGE_RULE: &str = "Functions of the standard libraries of C, C++ and Rust, also those that \
                           are compiled into the program, count as part of the function that \
                           called them.";

/// The memory that a table is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LiveFigure {
    AtPeak,
    AtEnd,
}

impl LiveFigure {
    fn name(self) -> &'static str {
        match self {
            LiveFigure::AtPeak => "live at the peak",
            LiveFigure::AtEnd => "live at the end",
        }
    }

    fn bytes(self, bytes: &StackBytes) -> u64 {
        match self {
            LiveFigure::AtPeak => bytes.at_peak,
            LiveFigure::AtEnd => bytes.at_end,
        }
    }

    /// Returns the variance of an estimate from samples of this distance.
    fn variance(self, bytes: &StackBytes, interval: u64) -> f64 {
        let variance = match self {
            LiveFigure::AtPeak => bytes.peak_variance,
            LiveFigure::AtEnd => bytes.end_variance,
        };
        variance as f64 * interval as f64
    }

    /// Returns the most by which an estimate is likely off.
    fn error(self, bytes: &StackBytes, interval: u64) -> u64 {
        (ERROR_DEVIATIONS * self.variance(bytes, interval).sqrt()) as u64
    }
}

impl StackProfile {
    /// Returns the section that compares two profiles by function.
    pub(super) fn comparison(before: &StackProfile, after: &StackProfile) -> ReportSection {
        let sides = [before, after];
        let direct = |bytes: &FunctionBytes| bytes.direct;
        // Where both logs are cut, there is no end of a process.
        let end = if before.end == after.end { after.end } else { EndPoint::Process };
        let text = end.phrase(
            "Functions by the larger of the changes of their memory at the peak and at the end. The \
             figures are estimates from samples; changes that are likely within their error are \
             shown as ≈. ",
        );
        ReportSection {
            heading: "Call stacks".into(),
            text: text + CHARGE_RULE,
            charts: Vec::new(),
            tables: vec![
                comparison_table("Functions that ask for memory", sides, direct),
                comparison_table("Functions with all that they call", sides, |bytes| bytes.total),
            ],
        }
    }

    /// Returns the section of a report.
    ///
    /// `requested` and `live`, at the peak and at the end, are the exact bytes, of which the
    /// estimates should be about 100 %.
    pub(super) fn section(&self, requested: u64, live: &[OriginBytes; 2]) -> ReportSection {
        let all = self.total();
        let part = |estimate: u64, exact: u64| {
            MeasureUnit::Share.format(estimate as f64 / exact.max(1) as f64)
        };
        let mut text = format!(
            "One request in {} on average was sampled with its call stack, {} in all; the figures \
             are estimates from these, which add up to {} of the requested memory and to {} of the \
             peak. 95 of 100 estimates are off by at most the figure after ±; without a sample that \
             was live it is not known. A new size counts as a request of its own. Short-lived memory was released within 0.01 % of the calls. \
             {CHARGE_RULE}",
            MeasureUnit::Bytes.format(self.interval as f64),
            MeasureUnit::Count.format(self.samples as f64),
            part(all.requested, requested),
            part(all.at_peak, live[0].own)
        );
        if live[0].inherited > 0 {
            text.push_str(&format!(
                " The peak is here without the {} that the process inherited.",
                MeasureUnit::Bytes.format(live[0].inherited as f64)
            ));
        }
        if !self.names.changed_files.is_empty() {
            let files = self.names.changed_files.join(", ");
            text.push_str(&format!(
                " Functions of these files have no names, because the files have changed: {files}."
            ));
        }
        text.extend(self.describe_unknown().map(|unknown| format!(" {unknown}")));
        let functions = self.by_function.iter().enumerate();
        let direct = functions.clone().map(|(number, bytes)| (number, bytes.direct));
        let with_callees = functions
            .filter(|(number, bytes)| !bytes.is_passed_through() && self.is_listed(*number));
        let with_callees = with_callees.map(|(number, bytes)| (number, bytes.total));
        let mut tables = vec![
            self.function_table(
                "Functions that ask for memory, by the peak",
                direct.clone().collect(),
                LiveFigure::AtPeak,
            ),
            self.function_table(
                "Functions that ask for memory, by what is live at the end",
                direct.filter(|(_, bytes)| bytes.at_end > 0).collect(),
                LiveFigure::AtEnd,
            ),
            self.function_table(
                "Functions with all that they call, where paths part, by the peak",
                with_callees.collect(),
                LiveFigure::AtPeak,
            ),
            self.file_table(),
            self.path_table("Paths to the memory at the peak", LiveFigure::AtPeak, live[0]),
            self.path_table("Paths to the memory at the end", LiveFigure::AtEnd, live[1]),
        ];
        tables.retain(|table| !table.rows.is_empty());
        ReportSection { heading: "Call stacks".into(), text, charts: self.flame_graphs(), tables }
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
        figure: LiveFigure,
    ) -> ReportTable {
        let name = |number: usize| match self.names.names[number].as_str() {
            UNKNOWN_NAME if self.has_files() => format!("{UNKNOWN_NAME}, no stack could be copied"),
            UNKNOWN_NAME => format!("{UNKNOWN_NAME}, the program ended before its files were read"),
            name => name.to_string(),
        };
        bytes_table((title, "function"), functions, name, (figure, self.interval))
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
        bytes_table((title, "file"), files, name, (LiveFigure::AtPeak, self.interval))
    }

    /// Returns the table of the paths to memory. A row is a function where paths part or end, or
    /// that asks for much itself, with those between it and the row above it.
    fn path_table(&self, title: &str, figure: LiveFigure, origin: OriginBytes) -> ReportTable {
        let live = |node: u32| figure.bytes(&self.nodes[node as usize].total);
        let all = figure.bytes(&self.total()).saturating_add(origin.inherited);
        let share = |bytes: u64| bytes as f64 / all.max(1) as f64;
        let row = |text: String, bytes: u64| {
            let bytes_text = MeasureUnit::Bytes.format(bytes as f64);
            vec![text, bytes_text, MeasureUnit::Share.format(share(bytes))]
        };
        let mut rows = Vec::new();
        let start = |node| (node, 0, Vec::new());
        let mut open: Vec<(u32, usize, Vec<u32>)> =
            self.least_first(&self.roots, figure).map(start).collect();
        while let Some((number, depth, mut between)) = open.pop() {
            if share(live(number)) < MIN_PATH_SHARE || rows.len() >= MAX_PATH_ROWS {
                continue;
            }
            let is_notable = |child: &u32| {
                !self.nodes[*child as usize].is_hidden && share(live(*child)) >= MIN_PATH_SHARE
            };
            let children = self.nodes[number as usize].children.iter().copied();
            let notable: Vec<u32> = children.filter(is_notable).collect();
            let below = notable.iter().fold(0, |sum: u64, child| sum.saturating_add(live(*child)));
            let own = live(number).saturating_sub(below);
            let has_own = !notable.is_empty() && share(own) >= MIN_OWN_SHARE;
            let is_shown = notable.len() != 1 || has_own;
            between.push(number);
            if is_shown {
                let text = self.path_text(&between, depth == 0);
                rows.push(row(format!("{}{text}", "· ".repeat(depth)), live(number)));
            }
            if has_own {
                let indent = "· ".repeat(depth + 1);
                rows.push(row(format!("{indent}itself, and paths with less"), own));
            }
            let (depth, between) =
                if is_shown { (depth + 1, Vec::new()) } else { (depth, between) };
            let notable = self.least_first(&notable, figure);
            open.extend(notable.map(|child| (child, depth, between.clone())));
        }
        let head = ["path", figure.name(), "share"].map(String::from).to_vec();
        ReportTable { title: title.into(), head, rows }
    }

    /// Returns the names of nodes from caller to callee; the middle of a long path is left out, and
    /// so is the start of the program or thread at the beginning of a whole one.
    fn path_text(&self, nodes: &[u32], is_whole: bool) -> String {
        let name = |node: &u32| self.name(&self.nodes[*node as usize]);
        let is_entry = |node: &&u32| is_whole && self.is_entry(**node);
        let entries = nodes.iter().take_while(is_entry).count();
        let nodes = nodes.get(entries.min(nodes.len().saturating_sub(1))..).unwrap_or_default();
        let names = |nodes: &[u32]| nodes.iter().map(name).collect::<Vec<_>>().join(" > ");
        match nodes {
            [first, inner @ ..] if nodes.len() > MAX_PATH_NAMES => {
                let inner = inner.get(inner.len() - INNER_NAMES..).unwrap_or_default();
                format!("{} > … > {}", name(first), names(inner))
            }
            _ => names(nodes),
        }
    }

    /// Returns whether a node is one by which a program or thread begins, if it is at the beginning
    /// of a path.
    fn is_entry(&self, node: u32) -> bool {
        let node = &self.nodes[node as usize];
        self.names.is_library[node.function as usize] || ENTRY_NAMES.contains(&self.name(node))
    }

    /// Returns nodes in the order of their bytes, the least first.
    fn least_first(&self, nodes: &[u32], figure: LiveFigure) -> impl Iterator<Item = u32> {
        let mut nodes = nodes.to_vec();
        let live = |node: u32| figure.bytes(&self.nodes[node as usize].total);
        nodes.sort_by_key(|node| (live(*node), *node));
        nodes.into_iter()
    }

    /// Names the functions that asked for the most of the peak, and of what is live at the end,
    /// with the path of the calls that have the most of it. `live` is the exact memory at both
    /// times; `interval` is a distance of samples that suffices.
    pub(super) fn describe_origins(&self, live: &[OriginBytes; 2], interval: &str) -> String {
        let [peak, end] = live;
        let at_peak = self.origin(LiveFigure::AtPeak, peak);
        let at_end = self.origin(LiveFigure::AtEnd, end);
        let too_few = |time: &str| {
            format!(
                "too few samples are of {time} to say which function asked for the most of it \
                 (`--stacks {interval}` takes more)"
            )
        };
        let mut text = match &at_peak {
            Some((_, peak)) => format!("By the call stacks, {peak}."),
            None if self.is_mostly_unknown(LiveFigure::AtPeak) => String::new(),
            None => format!("Of the call stacks, {}.", too_few("the memory at the peak")),
        };
        let at_the_end = self.end.phrase("At the end");
        match (&at_peak, &at_end) {
            (Some((function, _)), Some((at_end, _))) if at_end == function => {
                text.push_str(&self.end.phrase(" It also holds the most at the end."));
            }
            (_, Some((_, end))) => text.push_str(&format!(" {at_the_end}, {end}.")),
            (None, None) => {}
            (_, None) if end.own == 0 || self.is_mostly_unknown(LiveFigure::AtEnd) => {}
            (_, None) => {
                let end = too_few("the memory that is live then");
                text.push_str(&format!(" {at_the_end}, {end}."));
            }
        }
        text.extend(self.describe_unknown().map(|unknown| format!(" {unknown}")));
        text.trim_start().to_string()
    }

    /// Returns the bytes that are charged to no function, because the stacks could not be unwound.
    fn unknown(&self) -> Option<&StackBytes> {
        let number = self.names.names.iter().position(|name| name == UNKNOWN_NAME)?;
        Some(&self.by_function[number].direct).filter(|bytes| bytes.samples > 0)
    }

    /// Returns whether the stacks that could not be unwound have more of the memory than any
    /// function.
    fn is_mostly_unknown(&self, figure: LiveFigure) -> bool {
        let most = self.by_function.iter().map(|bytes| figure.bytes(&bytes.direct)).max();
        self.unknown().is_some_and(|unknown| Some(figure.bytes(unknown)) == most)
    }

    /// Returns whether the files of the program were read.
    fn has_files(&self) -> bool {
        self.files.len() > 1
    }

    /// Says that the functions of some samples are not known, and why.
    fn describe_unknown(&self) -> Option<String> {
        let unknown = self.unknown()?.samples;
        let reason = match self.has_files() {
            true => {
                "the stack could not be copied, as in a program that forbids itself the calls for it"
            }
            false => {
                "the program had ended, or begun another one, before larder had read its files, \
                 which takes some milliseconds"
            }
        };
        Some(format!(
            "{} of {} no functions ({UNKNOWN_NAME}): {reason}.",
            match unknown == self.samples {
                true => "All".to_string(),
                false => MeasureUnit::Count.format(unknown as f64),
            },
            match self.samples {
                1 => "1 call stack has".to_string(),
                samples => format!("{} have", count_of(samples, "call stack")),
            }
        ))
    }

    /// Returns the function that asked for the most memory, and a text about it; `None` if there
    /// are too few samples to say.
    fn origin(&self, figure: LiveFigure, live: &OriginBytes) -> Option<(usize, String)> {
        let direct = |number: usize| &self.by_function[number].direct;
        let mut functions: Vec<usize> = (0..self.by_function.len()).collect();
        functions.sort_by_key(|number| std::cmp::Reverse(figure.bytes(direct(*number))));
        let function = *functions.first()?;
        if self.is_mostly_unknown(figure) {
            return None;
        }
        let bytes = figure.bytes(direct(function));
        let error = figure.error(direct(function), self.interval);
        if bytes == 0 || error as f64 > bytes as f64 * MAX_ORIGIN_ERROR {
            return None;
        }
        let is_of_function =
            |node: &&PathNode| !node.is_hidden && node.function as usize == function;
        let nodes = self.nodes.iter().filter(is_of_function);
        let mut next = nodes.max_by_key(|node| figure.bytes(&node.total));
        let mut path = Vec::new();
        while let Some(node) = next {
            path.extend(node.parent);
            next = node.parent.map(|parent| &self.nodes[parent as usize]);
        }
        path.reverse();
        // Inherited memory has no stacks, but is a part of the whole.
        let all = figure.bytes(&self.total()).saturating_add(live.inherited).max(1) as f64;
        let share = |bytes: u64| MeasureUnit::Share.format(bytes as f64 / all);
        // The start of the program is no caller that tells anything.
        let mut text = match path.iter().all(|node| self.is_entry(*node)) {
            true => String::new(),
            false => format!(", mostly when called by {}", self.path_text(&path, true)),
        };
        if let Some(second) = functions.get(1).filter(|second| {
            let variance = [function, **second]
                .map(|number| figure.variance(direct(number), self.interval))
                .iter()
                .sum::<f64>();
            let difference = bytes - figure.bytes(direct(**second));
            (difference as f64) < ERROR_DEVIATIONS * variance.sqrt()
        }) {
            let second_share = share(figure.bytes(direct(*second)));
            text.push_str(&format!(
                "; with {second_share}, {} may have asked for more",
                self.names.names[*second]
            ));
        }
        let margin = if error == 0 { String::new() } else { format!(" ± {}", share(error)) };
        let text = format!(
            "{} asked for the most memory: {}{margin} of {}{text}",
            self.names.names[function],
            share(bytes),
            match figure {
                LiveFigure::AtPeak => "the peak",
                LiveFigure::AtEnd => "the memory that is live then",
            },
        );
        Some((function, text))
    }

    /// Returns the tree as JSON: functions with their files and the bytes that are charged to them,
    /// and the nodes, each after its parent.
    pub(super) fn to_json(&self) -> Value {
        let bytes_json = |bytes: &StackBytes| {
            json!({
                "samples": bytes.samples,
                "requests": bytes.requests(),
                "requested_bytes": bytes.requested,
                "bytes_at_peak": bytes.at_peak,
                "error_at_peak": LiveFigure::AtPeak.error(bytes, self.interval),
                "end_bytes": bytes.at_end,
                "error_at_end": LiveFigure::AtEnd.error(bytes, self.interval),
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

fn format_bytes(value: u64) -> String {
    MeasureUnit::Bytes.format(value as f64)
}

/// Returns a table of the rows with the highest figures, by the numbers of what they are about.
fn bytes_table(
    (title, subject): (&str, &str),
    mut rows: Vec<(usize, StackBytes)>,
    name: impl Fn(usize) -> String,
    (figure, interval): (LiveFigure, u64),
) -> ReportTable {
    let other = match figure {
        LiveFigure::AtPeak => LiveFigure::AtEnd,
        LiveFigure::AtEnd => LiveFigure::AtPeak,
    };
    let rank = |bytes: &StackBytes| (figure.bytes(bytes), bytes.requested);
    rows.retain(|(_, bytes)| bytes.samples > 0);
    rows.sort_by_key(|(number, bytes)| (std::cmp::Reverse(rank(bytes)), *number));
    let others = rows.split_off(rows.len().min(MAX_FUNCTION_ROWS));
    let head = [
        subject,
        figure.name(),
        "±",
        other.name(),
        "requested",
        "short-lived",
        "requests",
        "samples",
    ];
    let cells = rows.into_iter().map(|(number, bytes)| {
        let live = figure.bytes(&bytes);
        let figures = [other.bytes(&bytes), bytes.requested, bytes.short_lived];
        let figures = figures.map(format_bytes);
        // Without a sample that is live, there is no estimate, which would have an error.
        let error = match live {
            0 => "-".into(),
            _ => format_bytes(figure.error(&bytes, interval)),
        };
        let figures = [format_bytes(live), error].into_iter().chain(figures);
        let counts = [bytes.requests(), bytes.samples];
        let counts = counts.map(|count| MeasureUnit::Count.format(count as f64));
        std::iter::once(name(number)).chain(figures).chain(counts).collect()
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
    let intervals = sides.map(|side| side.interval);
    let is_clear = |figure: LiveFigure, [before, after]: &[StackBytes; 2]| {
        let variance = figure.variance(before, intervals[0]) + figure.variance(after, intervals[1]);
        let difference = figure.bytes(before).abs_diff(figure.bytes(after));
        difference as f64 > ERROR_DEVIATIONS * variance.sqrt()
    };
    let change = |sides: [StackBytes; 2]| {
        let clear = [LiveFigure::AtPeak, LiveFigure::AtEnd].map(|figure| {
            let [before, after] = sides.map(|bytes| figure.bytes(&bytes));
            if is_clear(figure, &sides) { before.abs_diff(after) } else { 0 }
        });
        (clear[0].max(clear[1]), sides[1].requested)
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
        "samples before",
        "samples after",
    ];
    let row = |(name, sides): (&str, [StackBytes; 2])| {
        let bytes = |figure: u64| MeasureUnit::Bytes.format(figure as f64);
        let count = |number: u64| MeasureUnit::Count.format(number as f64);
        let change = |figure: LiveFigure| {
            let [before, after] = sides.map(|bytes| figure.bytes(&bytes));
            match before.abs_diff(after) {
                0 => "=".to_string(),
                _ if !is_clear(figure, &sides) => "≈".to_string(),
                difference if after > before => format!("+{}", bytes(difference)),
                difference => format!("-{}", bytes(difference)),
            }
        };
        let [before, after] = sides;
        vec![
            name.to_string(),
            bytes(before.at_peak),
            bytes(after.at_peak),
            change(LiveFigure::AtPeak),
            bytes(before.at_end),
            bytes(after.at_end),
            change(LiveFigure::AtEnd),
            bytes(before.requested),
            bytes(after.requested),
            count(before.samples),
            count(after.samples),
        ]
    };
    ReportTable {
        title: title.into(),
        head: head.map(String::from).to_vec(),
        rows: functions.into_iter().map(row).collect(),
    }
}
