//! The data of notmuch: tags, named queries, and settings.
//!
//! The tags are those of `notmuch dump`. Named queries are in the configuration (`query.NAME`), of
//! which a dump has the part that is in the database.

use super::notmuch_query::{find_differences, replace_references, translate_query};
use super::{ForeignMail, RunProgram};
use crate::error::Error;
use larder_format::label_dump::{LabelDump, LabelDumpFormat, decode_hex};
use std::ffi::OsString;
use std::path::PathBuf;

/// Reads the data of notmuch: from the program, as its configuration says, or from a dump that it
/// wrote.
///
/// # Errors
/// notmuch cannot be run, or the dump is none.
pub fn read_notmuch(
    dump: Option<&[u8]>,
    run_program: RunProgram<'_>,
) -> Result<ForeignMail, Error> {
    let run = |arguments: &[&str]| {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        run_program("notmuch", &arguments)
            .map_err(|reason| Error::Program { program: "notmuch".to_string(), reason })
    };
    let mut foreign = ForeignMail::default();
    let ran;
    let bytes = match dump {
        Some(bytes) => {
            read_dumped_queries(bytes, &mut foreign);
            bytes
        }
        None => {
            let config = run(&["config", "list"])?;
            read_config(&String::from_utf8_lossy(&config), &mut foreign);
            ran = run(&["dump"])?;
            &ran
        }
    };
    let labels = LabelDump::parse(bytes);
    if dump.is_some() && labels.as_ref().is_none_or(|one| one.format != LabelDumpFormat::Notmuch) {
        return Err(Error::NoLabelDump { program: "notmuch" });
    }
    foreign.labels = labels;
    Ok(foreign)
}

/// Reads the lines of `notmuch config list`.
fn read_config(text: &str, foreign: &mut ForeignMail) {
    for (key, value) in text.lines().filter_map(|line| line.split_once('=')) {
        match key {
            "search.exclude_tags" => {
                let tags = value.split(';').filter(|tag| !tag.is_empty());
                foreign.excluded_labels = tags.map(str::to_string).collect();
            }
            "database.mail_root" => foreign.maildir = Some(PathBuf::from(value)),
            "database.path" if foreign.maildir.is_none() => {
                foreign.maildir = Some(PathBuf::from(value));
            }
            _ => add_query(key, value, foreign),
        }
    }
}

/// Reads the lines `#@ query.NAME QUERY` of a dump.
fn read_dumped_queries(bytes: &[u8], foreign: &mut ForeignMail) {
    for line in String::from_utf8_lossy(bytes).lines() {
        let Some((key, value)) = line.strip_prefix("#@ ").and_then(|rest| rest.split_once(' '))
        else {
            continue;
        };
        if let (Some(key), Some(value)) = (decode_hex(key), decode_hex(value)) {
            add_query(&key, &value, foreign);
        }
    }
}

fn add_query(key: &str, value: &str, foreign: &mut ForeignMail) {
    if let Some(name) = key.strip_prefix("query.") {
        let query = translate_query(value);
        if query != replace_references(value) {
            foreign
                .notices
                .push(format!("the query {name:?} is now {query:?}, with the same meaning"));
        }
        for difference in find_differences(value) {
            foreign.notices.push(format!("the query {name:?}: {difference}"));
        }
        foreign.searches.push((name.to_string(), query));
    } else if let Some(name) = key.strip_prefix("squery.") {
        foreign.notices.push(format!("the query {name:?} is an S-expression of notmuch: left out"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_is_read() {
        let mut foreign = ForeignMail::default();
        let text = "database.path=/x\ndatabase.mail_root=/mail\nquery.work=a = b\n\
                    search.exclude_tags=deleted;spam\nsquery.s=(and)\nuser.name=A\n";
        read_config(text, &mut foreign);
        assert_eq!(foreign.maildir, Some(PathBuf::from("/mail")));
        assert_eq!(foreign.excluded_labels, ["deleted", "spam"]);
        assert_eq!(foreign.searches, [("work".to_string(), "a = b".to_string())]);
        assert_eq!(foreign.notices.len(), 1);
    }

    #[test]
    fn a_dump_has_queries() {
        let dump = b"#notmuch-dump batch-tag:3 config,properties,tags\n\
                     #@ query.db subject%3awalrus%20%22a%20b%22\n#= m1@x a=b\n+inbox -- id:m1@x\n";
        let run: RunProgram<'_> = &|_, _| Err("not run".to_string());
        let foreign = read_notmuch(Some(dump), run).expect("dump");
        assert_eq!(foreign.searches, [("db".into(), "subject:walrus \"a b\"".into())]);
        assert_eq!(foreign.labels.expect("labels").messages.len(), 1);
        assert!(read_notmuch(Some(b"no dump"), run).is_err());
    }
}
