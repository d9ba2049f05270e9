//! The flame graphs of a report: the bytes of each call path.

use super::call_stacks::StackBytes;
use super::stack_profile::{PathNode, StackProfile};
use crate::chart::{ColourRole, FlameFrame, FlameGraph, MeasureUnit};
use crate::measure_report::SectionChart;

/// The colours of the files with the most bytes; all others are grey.
const FILE_COLOURS: [ColourRole; 5] = [
    ColourRole::First,
    ColourRole::Second,
    ColourRole::Third,
    ColourRole::Warning,
    ColourRole::Error,
];

/// A figure of a stack.
type BytesFn = fn(&StackBytes) -> u64;

impl StackProfile {
    /// Returns a graph of each figure that is not zero.
    pub(super) fn flame_graphs(&self) -> Vec<SectionChart> {
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
}
