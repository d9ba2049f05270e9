//! The report of an instrument: the same sections for text and for a page.
//!
//! A section has a sentence that says what its figures mean, charts, and tables with the figures of
//! the charts, so that nothing is only in a picture.

use crate::chart::{Chart, render_svg_file};
use crate::html_page::{HtmlPage, TableCell};

/// The columns of charts in a picture.
const SVG_COLUMNS: usize = 2;

/// A report.
pub struct MeasureReport {
    /// The title.
    pub title: String,
    /// Says for whom the report is, and what it answers.
    pub audience: &'static str,
    /// Sentences that say what stands out.
    pub findings: Vec<String>,
    /// The sections.
    pub sections: Vec<ReportSection>,
}

/// A chart of a section: title, caption, picture.
pub type SectionChart = (String, String, Box<dyn Chart>);

/// A section of a report.
pub struct ReportSection {
    /// Its heading.
    pub heading: String,
    /// A sentence.
    pub text: String,
    /// Charts: title, caption, picture.
    pub charts: Vec<SectionChart>,
    /// Tables.
    pub tables: Vec<ReportTable>,
}

/// A table of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportTable {
    /// Its title.
    pub title: String,
    /// The names of the columns; the first is a text, the others are numbers.
    pub head: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<String>>,
}

impl ReportTable {
    /// Returns whether the rows are about functions, paths or commands, whose names are long: on a
    /// narrow screen each has a line of its own.
    fn has_code(&self) -> bool {
        let subject = self.head.first().map(String::as_str);
        matches!(subject, Some("function" | "path" | "command"))
    }
}

impl MeasureReport {
    /// Returns the charts of the first section, which are those over time, as a picture for a
    /// document.
    #[must_use]
    pub fn render_svg(&self) -> String {
        let charts = self.sections.first().into_iter().flat_map(|section| &section.charts);
        let charts: Vec<(&str, &dyn Chart)> =
            charts.map(|(title, _, chart)| (title.as_str(), chart.as_ref())).collect();
        render_svg_file(&self.title, SVG_COLUMNS.min(charts.len()), &charts)
    }

    /// Returns the report as a self-contained page.
    #[must_use]
    pub fn render_html(&self) -> String {
        let mut page = HtmlPage::new(&self.title);
        page.add_audience(self.audience);
        for finding in &self.findings {
            page.add_paragraph(finding);
        }
        for section in &self.sections {
            page.add_heading(&section.heading);
            page.add_paragraph(&section.text);
            for (title, caption, chart) in &section.charts {
                page.add_chart(title, caption, chart.as_ref());
            }
            for table in &section.tables {
                let head: Vec<&str> = table.head.iter().map(String::as_str).collect();
                let is_code = table.has_code();
                let cell = |(column, text): (usize, &String)| match column {
                    0 if is_code => TableCell::Code(text.clone()),
                    0 => TableCell::Text(text.clone()),
                    _ => TableCell::Number(text.clone()),
                };
                let row = |row: &Vec<String>| row.iter().enumerate().map(cell).collect();
                let rows: Vec<Vec<TableCell>> = table.rows.iter().map(row).collect();
                page.add_table(&table.title, &head, &rows);
            }
        }
        page.into_html()
    }
}
