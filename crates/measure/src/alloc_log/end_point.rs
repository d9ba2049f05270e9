//! The point at which the calls of a process end in its log, in the words of a report: the end of
//! the process, or of a log that ends before.

use super::log_file::LoggedProcess;
use crate::measure_report::ReportSection;

/// The words for the end of a process, and those for the end of its log in their place.
const WORDS: [(&str, &str); 2] =
    [("at the end", "where the log ends"), ("At the end", "Where the log ends")];

/// The point at which the calls of a process end in its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum EndPoint {
    /// The process ended.
    #[default]
    Process,
    /// The log ends: what is live there may have been released later.
    Log,
}

impl LoggedProcess {
    /// Returns whether calls up to the end of the process are missing in the log: it is damaged or
    /// not finished, or the process went on unrecorded.
    pub(super) fn is_cut(&self) -> bool {
        self.end.is_none_or(|end| end.is_abandoned || end.calls > self.calls)
    }

    pub(super) fn end_point(&self) -> EndPoint {
        if self.is_cut() { EndPoint::Log } else { EndPoint::Process }
    }
}

impl EndPoint {
    /// Returns a text of the report, which holds no names of the program, in the words for this
    /// point.
    pub(super) fn phrase(self, text: &str) -> String {
        match self {
            EndPoint::Process => text.to_string(),
            EndPoint::Log => {
                WORDS.iter().fold(text.to_string(), |text, (from, to)| text.replace(from, to))
            }
        }
    }

    /// Puts the titles of charts and tables, and the heads of these, into the words for this point.
    pub(super) fn phrase_titles(self, section: &mut ReportSection) {
        for (title, _, _) in &mut section.charts {
            *title = self.phrase(title);
        }
        for table in &mut section.tables {
            let heads = table.head.iter_mut();
            heads.chain([&mut table.title]).for_each(|text| *text = self.phrase(text));
        }
    }
}
