//! Damage of the tables of mail: a check finds each wrong row.

use crate::mail_index::{self, apply, open_index as open};
use larder_store::{
    DataDirectory, FileComparison, MailBatchBuilder, MailChange, Reader, StoreFile,
};
use rusqlite::Connection;
use std::path::Path;

/// Three messages, two of which are a thread: name of the file, header and body.
const MESSAGES: [(&str, &str, &str); 3] = [
    ("1.host:2,S", "Message-ID: <a>\nSubject: walrus\n", "The walrus is due."),
    ("2.host:2,", "Message-ID: <b>\nReferences: <a>\n", "Yes, a walrus."),
    ("3.host:2,FS", "Message-ID: <c>\n", "Nothing."),
];

fn text_of(row: u32) -> String {
    let (_, header, body) = MESSAGES[row as usize - 1];
    format!("{header}Date: 0{row} Jan 2020 10:00:00 +0000\n\n{body}\n")
}

/// Writes an index of the messages.
fn write_index(dir: &Path) {
    let messages: Vec<(&str, String)> =
        (1..).zip(MESSAGES).map(|(row, (name, ..))| (name, text_of(row))).collect();
    mail_index::write_index(dir, &messages);
}

/// Returns the faults of the index after a change by another program.
fn faults_after(change: &dyn Fn(&Connection)) -> Vec<String> {
    let scratch = tempfile::tempdir().unwrap();
    write_index(scratch.path());
    {
        let conn = Connection::open(scratch.path().join("index.db")).unwrap();
        change(&conn);
    }
    match open(scratch.path()).check() {
        Ok(report) => report.faults.iter().map(ToString::to_string).collect(),
        Err(error) => vec![error.to_string()],
    }
}

#[test]
fn wrong_rows_are_found() {
    assert_eq!(faults_after(&|_| {}), [""; 0]);
    for (sql, expected) in [
        ("DELETE FROM mail_file WHERE item = 2", "messages without a file"),
        ("UPDATE mail_file SET item = 9 WHERE item = 2", "files whose message is missing"),
        ("UPDATE mail_file SET item = -9 WHERE item = 2", "files whose message is missing"),
        ("UPDATE mail_file SET item = 1 WHERE item = 2", "messages without a file"),
        ("UPDATE mail_file SET rank = rank + 1 WHERE item = 2", "values of none of their files"),
        ("UPDATE mail_file SET name = CAST('2.host:2,R' AS BLOB) WHERE item = 2", "other flags"),
        ("UPDATE mail_file SET changed = 9000000000 WHERE item = 2", "wrong time of change"),
        ("UPDATE mail_file SET directory = 7 WHERE item = 2", "files whose directory is missing"),
        ("UPDATE mail_file SET base = base + 1 WHERE item = 2", "the key of another name"),
        (
            "INSERT INTO mail_file SELECT directory, base, place + 1, name, inode, 3, size, modified,
               changed, rank FROM mail_file WHERE item = 2",
            "1 files that more than one row names",
        ),
        ("INSERT INTO mail_other_text VALUES(2, 'm')", "1 further texts under another Message-ID"),
        ("INSERT INTO mail_other_text VALUES(2, 'm')", "1 further texts of a Message-ID that"),
        ("INSERT INTO mail_state_change VALUES(9, 1, 1)", "changes of states without a message"),
        ("INSERT INTO mail_state_change VALUES(2, 9, 1)", "changes of states in an unknown batch"),
        (
            "INSERT INTO mail_state_change VALUES(2, 1, 0)",
            "1 changes of states that are not after their message",
        ),
        (
            "INSERT INTO mail_state_change SELECT 1, seq, ordinal FROM item WHERE id = 3",
            "1 changes of states in the place of a message",
        ),
        ("DELETE FROM mail_directory", "files whose directory is missing"),
        ("DELETE FROM mail_folder", "directories whose folder is missing"),
        ("UPDATE mail_directory SET collection = 5", "files of another source"),
        ("DELETE FROM item WHERE id = 2", "files whose message is missing"),
        ("DELETE FROM mail_column WHERE id >> 32 = 1", "wrong date"),
        ("DELETE FROM mail_column WHERE id >> 32 = 2", "other flags"),
        ("DELETE FROM mail_column WHERE id >> 32 = 3", "wrong thread"),
        ("DELETE FROM mail_column WHERE id >> 32 = 4", "wrong size"),
        ("DELETE FROM mail_column WHERE id >> 32 = 5", "wrong time of change"),
        ("UPDATE mail_column SET data = x'09' WHERE id >> 32 = 1", "malformed"),
        ("INSERT INTO mail_column SELECT (9 << 32), data FROM mail_column LIMIT 1", "columns"),
        (
            "INSERT INTO mail_column SELECT (1 << 32) + 5, data FROM mail_column
          WHERE id >> 32 = 1",
            "wrong date",
        ),
        ("UPDATE mail_set SET rows = zeroblob(128)", "other folders"),
        ("DELETE FROM mail_set", "other folders"),
        ("INSERT INTO mail_set SELECT (1 << 62) + 1, rows FROM mail_set", "labels without a name"),
        (
            "INSERT INTO mail_set SELECT (1 << 62) + (7 << 24) + 1, rows FROM mail_set",
            "labels of rows",
        ),
        ("INSERT INTO mail_set SELECT 7, rows FROM mail_set", "marks of known mail in rows"),
        ("UPDATE mail_block SET newest = newest - 1", "blocks of messages with wrong dates"),
        ("UPDATE mail_block SET oldest = -1", "blocks of messages with wrong dates"),
        ("DELETE FROM mail_block", "blocks of messages with wrong dates"),
        ("DELETE FROM mail_thread WHERE item = 2", "messages without a thread"),
        ("UPDATE mail_thread SET thread = 3 WHERE item = 2", "wrong thread"),
        ("UPDATE mail_thread SET item = 9 WHERE item = 2", "members of threads without a message"),
        ("DELETE FROM mail_thread_id", "Message-IDs lead to another thread"),
        ("INSERT INTO mail_thread_alias VALUES(1, 3)", "Message-IDs lead to another thread"),
        ("INSERT INTO mail_conversion VALUES(1, x'01', x'', NULL, 0)", "converted texts"),
        (
            "UPDATE item SET stored_fields = substr(stored_fields, 1, 30) WHERE id = 2",
            "values are malformed",
        ),
        ("UPDATE item SET stored_fields = NULL WHERE id = 2", "values are malformed"),
        ("UPDATE meta SET value = 2 WHERE key = 'last_item'", "rows after the last one"),
        (
            "DELETE FROM idx_block WHERE id IN (SELECT id << 24 FROM idx_segment WHERE derived_index = 4)",
            "word index is malformed",
        ),
        ("DELETE FROM idx_segment WHERE derived_index = 4", "messages without words"),
        (
            "INSERT INTO idx_segment VALUES(99, -98, 1, 0, 0, x'', 0, 0, NULL)",
            "lists of parts of words without a segment of the dictionary",
        ),
        (
            "DELETE FROM idx_segment WHERE derived_index = 5",
            "words that the dictionary does not have",
        ),
    ] {
        let faults = faults_after(&|conn| {
            assert!(conn.execute(sql, []).unwrap() > 0, "{sql}");
        });
        assert!(faults.iter().any(|fault| fault.contains(expected)), "{sql}: {faults:?}");
    }
}

/// Each byte of the changes of states. The index of these rows has all their columns, so that one
/// wrong byte contradicts a right one.
#[test]
fn each_changed_byte_of_a_state_change_is_found() {
    let scratch = tempfile::tempdir().unwrap();
    write_index(scratch.path());
    let path = scratch.path().join("index.db");
    rename_files(scratch.path());
    let roots: Vec<(String, u32)> = {
        let conn = Connection::open(&path).unwrap();
        let sql = "SELECT name, rootpage FROM sqlite_schema WHERE tbl_name = 'mail_state_change'";
        let mut select = conn.prepare(sql).unwrap();
        let roots = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        roots.map(Result::unwrap).collect()
    };
    assert_eq!(roots.len(), 2);
    let whole = std::fs::read(&path).unwrap();
    let faults_of = |bytes: &[u8]| {
        let scratch = tempfile::tempdir().unwrap();
        std::fs::write(scratch.path().join("index.db"), bytes).unwrap();
        match open(scratch.path()).check() {
            Ok(report) => report.faults.iter().map(ToString::to_string).collect(),
            Err(error) => vec![error.to_string()],
        }
    };
    assert_eq!(faults_of(&whole), [""; 0]);
    let mut bytes_of_rows = 0;
    for (name, root) in roots {
        let end_of_page = root as usize * 4096;
        for at in (end_of_page - 40..end_of_page).filter(|at| whole[*at] != 0) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 7);
            assert_ne!(faults_of(&bytes), [""; 0], "{name}, byte {at}");
            bytes_of_rows += 1;
        }
    }
    assert!(bytes_of_rows > 20, "{bytes_of_rows}");
}

/// Renames the files of the messages, each in a batch of its own.
fn rename_files(dir: &Path) {
    let mut store = open(dir);
    for (inode, (name, ..)) in (1..).zip(MESSAGES) {
        let file = mail_index::file(&format!("{name}T"), inode, 1);
        let from = (b"cur".to_vec(), name.as_bytes().to_vec());
        apply(&mut store, vec![MailChange::RenameFile { from, file }]);
    }
}

/// Each letter of a word, in the dictionary and in the index.
#[test]
fn changed_words_are_found() {
    for index in [4, 5] {
        let faults = faults_after(&|conn| {
            let sql = "SELECT b.id, b.data FROM idx_block b JOIN idx_segment s
                 ON b.id >> 24 = s.id WHERE s.derived_index = ?1";
            let (id, mut data): (i64, Vec<u8>) =
                conn.query_row(sql, [index], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
            let at = data.windows(6).rposition(|word| word == b"walrus").unwrap();
            data[at + 3] = b'x';
            conn.execute("UPDATE idx_block SET data = ?2 WHERE id = ?1", (id, data)).unwrap();
        });
        let expected = "words that the dictionary does not have";
        assert!(faults.iter().any(|fault| fault.contains(expected)), "{index}: {faults:?}");
    }
}

/// Compares the texts of all messages with the index. Returns the results that are not `Same`.
fn compare(dir: &Path) -> Vec<FileComparison> {
    let reader = Reader::open(DataDirectory::new(dir).with_store_file(StoreFile::Index)).unwrap();
    let mail = reader.mail().unwrap();
    let Ok(words) = mail.digest_words() else {
        return vec![FileComparison::Different(vec!["words"])];
    };
    let files = mail.indexed_files("mail", None).unwrap();
    assert_eq!(mail.indexed_files("mail", files.last()).unwrap().len(), 0);
    let mut builder = MailBatchBuilder::new(&[]);
    let results = files
        .iter()
        .map(|file| builder.compare(file, &words, text_of(file.row).as_bytes(), &mut |_| None))
        .map(|compared| compared.comparison);
    results.filter(|result| *result != FileComparison::Same).collect()
}

/// Each byte of the words, in one bit that is another one for each, and in the lowest: it takes the
/// only row from an entry.
#[test]
fn each_changed_posting_is_found() {
    let scratch = tempfile::tempdir().unwrap();
    write_index(scratch.path());
    assert_eq!(compare(scratch.path()), []);
    let conn = Connection::open(scratch.path().join("index.db")).unwrap();
    let sql = "SELECT b.id, b.data FROM idx_block b JOIN idx_segment s ON b.id >> 24 = s.id
         WHERE s.derived_index = 4";
    let (id, data): (i64, Vec<u8>) =
        conn.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let write = |data: &[u8]| {
        conn.execute("UPDATE idx_block SET data = ?2 WHERE id = ?1", (id, data)).unwrap();
    };
    for (at, bit) in (0..data.len()).flat_map(|at| [(at, at % 8), (at, 0)]) {
        let mut changed = data.clone();
        changed[at] ^= 1 << bit;
        write(&changed);
        assert_ne!(compare(scratch.path()), [], "byte {at} of {}", data.len());
    }
    write(&data);
    assert_eq!(compare(scratch.path()), []);
}

/// Replaces a part of the values that lists show of the first message.
fn replace_values(conn: &Connection, from: &[u8], to: &[u8]) {
    let sql = "SELECT stored_fields FROM item WHERE id = 1";
    let mut data: Vec<u8> = conn.query_row(sql, [], |row| row.get(0)).unwrap();
    let at = data.windows(from.len()).position(|part| part == from).unwrap();
    data[at..at + to.len()].copy_from_slice(to);
    conn.execute("UPDATE item SET stored_fields = ?1 WHERE id = 1", [data]).unwrap();
}

/// A change by another program.
type ConnectionChange = dyn Fn(&Connection);

#[test]
fn files_are_compared_with_the_values_of_the_index() {
    let execute = |sql: &'static str| {
        move |conn: &Connection| assert!(conn.execute(sql, []).unwrap() > 0, "{sql}")
    };
    let different = |what| vec![FileComparison::Different(vec![what])];
    let cases: [(&ConnectionChange, Vec<FileComparison>); 6] = [
        (&|conn| replace_values(conn, b"walrus", b"walrux"), different("header values")),
        (&execute("UPDATE item SET uid = 'x' WHERE id = 1"), different("name")),
        (
            &execute("UPDATE mail_thread SET ids = zeroblob(16) WHERE item = 2"),
            different("references"),
        ),
        (&execute("DELETE FROM mail_thread WHERE item = 2"), different("references")),
        (
            &execute("UPDATE mail_file SET rank = NULL WHERE item = 2"),
            vec![FileComparison::Expired],
        ),
        (
            &execute("UPDATE mail_file SET rank = rank + 1 WHERE item = 2"),
            vec![FileComparison::OtherContent],
        ),
    ];
    for (at, (change, expected)) in cases.iter().enumerate() {
        let scratch = tempfile::tempdir().unwrap();
        write_index(scratch.path());
        change(&Connection::open(scratch.path().join("index.db")).unwrap());
        assert_eq!(compare(scratch.path()), *expected, "{at}");
    }
}
