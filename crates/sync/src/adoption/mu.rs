//! The data of mu: bookmarks, and the labels of its later versions.

use super::{ForeignMail, RunProgram};
use crate::error::Error;
use larder_format::label_dump::{LabelDump, LabelDumpFormat};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Reads the data of mu: bookmarks from its file, the maildir and the labels from the program, or
/// the labels from a file that `mu labels export` wrote. `home` is the directory of `--muhome`.
///
/// # Errors
/// The bookmarks cannot be read, the file has no labels, or the directory has no database of mu.
pub fn read_mu(
    bookmarks: &Path,
    home: Option<&Path>,
    labels: Option<&[u8]>,
    run_program: RunProgram<'_>,
) -> Result<ForeignMail, Error> {
    let mut foreign = ForeignMail::default();
    match std::fs::read(bookmarks) {
        Ok(bytes) => {
            foreign.searches = read_bookmarks(&String::from_utf8_lossy(&bytes));
            if foreign.searches.is_empty() {
                let path = bookmarks.display();
                foreign.notices.push(format!("{path} has no bookmarks in a group [mu]"));
            }
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            foreign
                .notices
                .push(format!("mu has no bookmarks: {} is missing", bookmarks.display()));
        }
        Err(source) => return Err(Error::ForeignFile { path: bookmarks.to_path_buf(), source }),
    }
    let with_home = |arguments: &[&str]| -> Vec<OsString> {
        let home = home.map(|home| {
            let mut option = OsString::from("--muhome=");
            option.push(home);
            option
        });
        arguments.iter().map(OsString::from).chain(home).collect()
    };
    if let Some(bytes) = labels {
        let dump = LabelDump::parse(bytes).filter(|dump| dump.format == LabelDumpFormat::Mu);
        foreign.labels = Some(dump.ok_or(Error::NoLabelDump { program: "mu" })?);
        return Ok(foreign);
    }
    // mu would make the directory.
    if let Some(path) = home.map(|home| home.join("xapian")).filter(|path| !path.is_dir()) {
        if !foreign.searches.is_empty() {
            let path = path.display();
            foreign.notices.push(format!("{path} is missing: labels of mu are not read"));
            return Ok(foreign);
        }
        let source = std::io::ErrorKind::NotFound.into();
        return Err(Error::ForeignFile { path, source });
    }
    match run_program("mu", &with_home(&["info"])) {
        Ok(output) => foreign.maildir = find_maildir(&String::from_utf8_lossy(&output)),
        Err(reason) => foreign.notices.push(format!("cannot run mu: {reason}")),
    }
    // Versions before 1.12.13 have no labels. `-` is no name of a file for mu.
    match run_program("mu", &with_home(&["labels", "export", "/dev/fd/1"])) {
        Ok(output) => foreign.labels = LabelDump::parse(&output),
        Err(_) => foreign.notices.push("this version of mu has no labels".to_string()),
    }
    Ok(foreign)
}

/// Reads the lines `NAME=QUERY` of the group `[mu]`; what follows a `#` behind white space is a
/// comment.
fn read_bookmarks(text: &str) -> Vec<(String, String)> {
    let mut is_group = false;
    let mut bookmarks = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with('[') {
            is_group = line == "[mu]";
        } else if is_group
            && !line.starts_with('#')
            && let Some((name, query)) = line.split_once('=')
        {
            let comment = query.match_indices('#').map(|(at, _)| at);
            let mut comment = comment.filter(|at| query[..*at].ends_with(char::is_whitespace));
            let query = comment.next().map_or(query, |at| &query[..at]);
            bookmarks.push((name.trim().to_string(), query.trim().to_string()));
        }
    }
    bookmarks
}

/// Finds the maildir in the table that `mu info` prints.
fn find_maildir(text: &str) -> Option<PathBuf> {
    let cells = |line: &str| -> Vec<String> {
        line.split(['|', '\u{2502}']).map(|cell| cell.trim().to_string()).collect()
    };
    let named = |row: &Vec<String>| {
        row.get(1).is_some_and(|name| name == "maildir" || name == "root-maildir")
    };
    let row = text.lines().map(cells).find(named)?;
    row.get(2).filter(|path| path.starts_with('/')).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bookmarks_are_read() {
        let text = "x=y\n[mu]\n# a comment\ninbox=maildir:/inbox                  # inbox\n\
                    old hat = subject:#1 a=b\n\n[other]\nz=1\n";
        let expect = [("inbox", "maildir:/inbox"), ("old hat", "subject:#1 a=b")];
        assert_eq!(read_bookmarks(text), expect.map(|(a, b)| (a.to_string(), b.to_string())));
    }

    #[test]
    fn the_maildir_is_in_the_table() {
        let table = "+---+\n| maildir           | /home/a/Mail                  |\n+---+\n";
        assert_eq!(find_maildir(table), Some(PathBuf::from("/home/a/Mail")));
        assert_eq!(find_maildir("| messages | 3 |\n"), None);
    }
}
