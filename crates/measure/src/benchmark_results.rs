//! The results that benchmark scripts leave: one JSON file for each run of a script.
//!
//! `bench/README.md` describes the files. Runs are compared with runs of the same script on the
//! same machine only, because times of two machines say nothing about two versions.
//!
//! | module | purpose |
//! |---|---|
//! | `script_history` | the runs of a script on a machine, and its regressions |
//! | `report` | the report, for text and for a page |
//! | `json_report` | the report as JSON |

mod json_report;
mod report;
mod script_history;

pub use self::json_report::results_json;
pub use self::report::results_report;
pub use self::script_history::{BenchmarkRegression, ScriptHistory};

use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// The value of `format` in a file of results.
const FORMAT_NAME: &str = "larder-benchmark";
/// The version of the files.
const FORMAT_VERSION: u32 = 1;
/// The ending of their names.
const FILE_EXTENSION: &str = "json";
/// The largest file.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// The program whose regressions are named.
const OWN_PROGRAM: &str = "larder";

/// A run of a script.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct BenchmarkRun {
    /// The name of the script.
    pub script: String,
    /// The time at which the run began: `2026-11-28T17:40:21Z`.
    pub date: String,
    /// The commit of Larder.
    pub commit: String,
    /// The version of Larder.
    pub larder: String,
    /// The machine.
    pub machine: String,
    /// The number of its processors.
    pub processors: u32,
    /// The operating system.
    #[serde(default)]
    pub system: String,
    /// The load of the machine when the run began.
    #[serde(default)]
    pub load: Option<f64>,
    /// The things that sizes count: `messages`.
    #[serde(default)]
    pub size_of: String,
    /// The figures.
    pub rows: Vec<BenchmarkRow>,
}

/// A figure of a run.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
pub struct BenchmarkRow {
    /// The name of the measure.
    pub measure: String,
    /// Its unit: `ns`, `us`, `ms`, `s`, `bytes`, `kB`, `MB`, `%`, or a word for anything else.
    pub unit: String,
    /// The program that was measured.
    pub program: String,
    /// Its version.
    #[serde(default)]
    pub version: String,
    /// The size of the input.
    #[serde(default)]
    pub size: Option<u64>,
    /// The value.
    pub value: f64,
    /// Whether a smaller value is better.
    #[serde(default = "default_less_is_better")]
    pub less_is_better: bool,
}

fn default_less_is_better() -> bool {
    true
}

/// A file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ResultFileError {
    /// The file cannot be read.
    #[error("{0}")]
    Read(#[from] io::Error),
    /// The file is too large.
    #[error("larger than {} MB", MAX_FILE_BYTES >> 20)]
    TooLarge,
    /// The text is not JSON, or a field is missing or has another type.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// The JSON is something else.
    #[error("not the result of a benchmark: its format is not {FORMAT_NAME}")]
    Format,
    /// The version is unknown.
    #[error("version {0}; this program reads version {FORMAT_VERSION}")]
    Version(u32),
    /// A field that has to have a value is empty.
    #[error("{0} is empty")]
    Empty(&'static str),
    /// The date is not in the one form that is allowed.
    #[error("the date {0:?} is not like 2026-11-28T17:40:21Z")]
    Date(String),
    /// A row has a value below zero.
    #[error("{0}: a value is below zero")]
    Value(String),
    /// Two rows are about the same thing.
    #[error("{0}: two values for one program and size")]
    Duplicate(String),
    /// Another file has the same run.
    #[error("the same run is in {}", .0.display())]
    SameRun(PathBuf),
}

/// The results in a folder.
#[derive(Debug, Default)]
pub struct ResultFolder {
    /// The runs, in order of their dates.
    pub runs: Vec<BenchmarkRun>,
    /// Files that cannot be used, with the reason.
    pub rejected: Vec<(PathBuf, ResultFileError)>,
}

impl ResultFolder {
    /// Reads all files of a folder whose names end in `.json`.
    ///
    /// # Errors
    /// The folder cannot be read. Files that cannot be used are listed in the result.
    pub fn read(folder: &Path) -> io::Result<ResultFolder> {
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == FILE_EXTENSION) {
                paths.push(path);
            }
        }
        paths.sort();
        let mut results = ResultFolder::default();
        let mut sources: Vec<PathBuf> = Vec::new();
        for path in paths {
            let run = read_run(&path).and_then(|run| {
                let same = results.runs.iter().position(|known| known.is_same_run(&run));
                match same.and_then(|index| sources.get(index)) {
                    Some(source) => Err(ResultFileError::SameRun(source.clone())),
                    None => Ok(run),
                }
            });
            match run {
                Ok(run) => {
                    results.runs.push(run);
                    sources.push(path);
                }
                Err(error) => results.rejected.push((path, error)),
            }
        }
        // Dates of this form are in order as texts.
        results.runs.sort_by(|a, b| a.date.cmp(&b.date));
        Ok(results)
    }
}

fn read_run(path: &Path) -> Result<BenchmarkRun, ResultFileError> {
    let mut bytes = Vec::new();
    // Others, such as a named pipe, may never end.
    if !std::fs::metadata(path)?.is_file() {
        return Err(std::io::Error::other("not a regular file").into());
    }
    std::fs::File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(ResultFileError::TooLarge);
    }
    BenchmarkRun::parse(&bytes)
}

impl BenchmarkRun {
    /// Parses a file.
    ///
    /// # Errors
    /// The file is no result of a benchmark, or a value is not as it has to be.
    pub fn parse(json: &[u8]) -> Result<BenchmarkRun, ResultFileError> {
        #[derive(Deserialize)]
        struct FileHead {
            #[serde(default)]
            format: String,
            #[serde(default)]
            version: u32,
        }
        let head: FileHead = serde_json::from_slice(json)?;
        if head.format != FORMAT_NAME {
            return Err(ResultFileError::Format);
        }
        if head.version != FORMAT_VERSION {
            return Err(ResultFileError::Version(head.version));
        }
        let run: BenchmarkRun = serde_json::from_slice(json)?;
        run.check()?;
        Ok(run)
    }

    fn check(&self) -> Result<(), ResultFileError> {
        let filled =
            [("script", &self.script), ("commit", &self.commit), ("machine", &self.machine)];
        if let Some((name, _)) = filled.into_iter().find(|(_, text)| text.trim().is_empty()) {
            return Err(ResultFileError::Empty(name));
        }
        if parse_date(&self.date).is_none() {
            return Err(ResultFileError::Date(self.date.clone()));
        }
        let mut known = HashSet::new();
        for row in &self.rows {
            if row.measure.trim().is_empty() {
                return Err(ResultFileError::Empty("measure"));
            }
            if row.value < 0.0 {
                return Err(ResultFileError::Value(row.measure.clone()));
            }
            if !known.insert((&row.measure, &row.unit, &row.program, row.size)) {
                return Err(ResultFileError::Duplicate(row.measure.clone()));
            }
        }
        Ok(())
    }

    fn is_same_run(&self, other: &BenchmarkRun) -> bool {
        (&self.script, &self.date, &self.machine, &self.commit)
            == (&other.script, &other.date, &other.machine, &other.commit)
    }

    /// Returns the time of the run in microseconds since 1970.
    fn time_us(&self) -> i64 {
        parse_date(&self.date).unwrap_or_default()
    }

    /// Returns the day and the commit, which name the run.
    fn label(&self) -> String {
        format!("{} {}", self.date.get(..10).unwrap_or_default(), self.short_commit())
    }

    /// Returns the first digits of the commit, and a mark if there were changes on top of it.
    fn short_commit(&self) -> String {
        let (hash, mark) = self.commit.split_once('-').unwrap_or((&self.commit, ""));
        let short: String = hash.chars().take(8).collect();
        if mark.is_empty() { short } else { format!("{short}-{mark}") }
    }
}

/// Parses `2026-11-28T17:40:21Z`; returns microseconds since 1970.
fn parse_date(text: &str) -> Option<i64> {
    let digits = |from: usize, length: usize| -> Option<i64> {
        let part = text.get(from..from + length)?;
        part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok())?
    };
    let marks = [(4, "-"), (7, "-"), (10, "T"), (13, ":"), (16, ":"), (19, "Z")];
    let has_marks = marks.iter().all(|(at, mark)| text.get(*at..at + 1) == Some(mark));
    let (year, month, day) = (digits(0, 4)?, digits(5, 2)?, digits(8, 2)?);
    let (hour, minute, second) = (digits(11, 2)?, digits(14, 2)?, digits(17, 2)?);
    let is_time = hour < 24 && minute < 60 && second <= 60;
    if text.len() != 20 || !has_marks || !is_time || !(1..=12).contains(&month) {
        return None;
    }
    let days = days_since_1970(year, month, day);
    if larder_generate::civil_date(days) != (year, month.unsigned_abs(), day.unsigned_abs()) {
        return None;
    }
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000)
}

/// Returns the number of a day, by the usual rule of the Gregorian calendar.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March, so that the leap day is their last.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + (month * 153 + 2) / 5 + day - 719_469
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_have_one_form() {
        assert_eq!(parse_date("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(parse_date("2024-02-29T12:00:01Z"), Some(1_709_208_001_000_000));
        for text in [
            "",
            "2026-11-28",
            "2023-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-11-28T24:00:00Z",
            "2026-11-28 17:40:21Z",
            "2026-11-28T17:40:21+01",
            "2026-11-2éT17:40:21Z",
            "+026-11-28T17:40:21Z",
        ] {
            assert_eq!(parse_date(text), None, "{text}");
        }
    }
}
