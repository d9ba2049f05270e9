//! The corpora: each file is split and parsed, nothing panics, and no byte is lost. Files are read
//! in place.

use crate::split::split;
use larder_format::contact::Contact;
use larder_format::edit::insert_uid;
use larder_format::field::{CONTACT_FIELDS, find_contact_field};
use std::path::{Path, PathBuf};

/// Returns the vCard files of the corpora. Without the corpora it returns none and prints that.
pub(crate) fn vcards(test: &str) -> Vec<(PathBuf, Vec<u8>)> {
    files(test, "vcf", &["vcf", "vcard"], 200)
}

/// Returns the calendars of the corpora.
pub(crate) fn calendars(test: &str) -> Vec<(PathBuf, Vec<u8>)> {
    files(test, "ics", &["ics", "ical", "vcs"], 2700)
}

/// Returns the files with mail.
pub(crate) fn messages(test: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = files(test, "mail", &[], 4100);
    files.retain(|(path, _)| !path.ends_with("README.md"));
    files
}

/// Returns the files with one of these extensions, or all if there are none.
fn files(test: &str, folder: &str, endings: &[&str], least: usize) -> Vec<(PathBuf, Vec<u8>)> {
    let near = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpora");
    let folder = std::env::var_os("LARDER_CORPORA").map_or_else(near, PathBuf::from).join(folder);
    if !folder.is_dir() {
        eprintln!("left out: {test} (no corpora; set LARDER_CORPORA)");
        return Vec::new();
    }
    let (mut files, mut folders) = (Vec::new(), vec![folder]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if endings.is_empty()
                || path.extension().is_some_and(|is| endings.iter().any(|ending| is == *ending))
            {
                files.push((path.clone(), std::fs::read(path).expect("a file")));
            }
        }
    }
    files.sort();
    assert!(files.len() > least, "the corpora have changed");
    files
}

#[test]
fn no_byte_is_lost() {
    let files = [vcards("no_byte_is_lost"), calendars("no_byte_is_lost")].concat();
    for (path, bytes) in files {
        let found = split([&bytes[..]], 32 << 20);
        assert_eq!(found, split(bytes.chunks(97), 32 << 20), "{}", path.display());
        let mut rest = &bytes[..];
        // Byte order marks, and the zero bytes of blanks in UTF-16.
        let skips =
            |byte: &u8| byte.is_ascii_whitespace() || b"\0\xef\xbb\xbf\xfe\xff".contains(byte);
        for piece in found.iter().filter(|piece| !piece.bytes.is_empty()) {
            let at = rest.windows(piece.bytes.len()).position(|window| window == piece.bytes);
            let (skipped, tail) = rest.split_at(at.expect("a part of the file"));
            assert!(skipped.iter().all(skips), "{}", path.display());
            rest = &tail[piece.bytes.len()..];
        }
        assert!(rest.iter().all(skips), "{}", path.display());
    }
}

/// All components that the files have BEGIN lines for are found, except those inside other
/// components: in polls, and in components of unknown name.
#[test]
fn every_component_is_found() {
    let mut counts = std::collections::BTreeMap::new();
    let files = calendars("every_component_is_found");
    for (_, bytes) in &files {
        for piece in split([&bytes[..]], 32 << 20) {
            *counts.entry(piece.name).or_insert(0) += 1;
        }
    }
    let expected = [
        ("VEVENT", 6226),
        ("VTODO", 534),
        ("VJOURNAL", 131),
        ("VFREEBUSY", 318),
        ("VTIMEZONE", 1788),
        ("VPOLL", 14),
        ("VAVAILABILITY", 10),
    ];
    for (name, count) in expected.iter().filter(|_| !files.is_empty()) {
        assert_eq!(counts.get(*name), Some(count), "{name} in {counts:?}");
    }
    assert_eq!(counts.get("begins"), counts.get("ends"));
}

#[test]
fn every_card_is_parsed() {
    let (mut taken, mut refused) = (0, 0);
    for (path, bytes) in vcards("every_card_is_parsed") {
        for piece in split([&bytes[..]], 32 << 20).iter().filter(|piece| piece.name == "VCARD") {
            let card = Contact::parse(&piece.bytes);
            for row in CONTACT_FIELDS {
                let values = card.values(row);
                let outer =
                    row.subset_of.and_then(find_contact_field).map(|outer| card.values(outer));
                assert!(
                    outer.is_none_or(|outer| values.iter().all(|value| outer.contains(value))),
                    "{}: {} is not within {:?}",
                    path.display(),
                    row.name,
                    row.subset_of,
                );
                assert!(row.is_multi_valued || values.len() <= 1);
            }
            match card.fatal_problem() {
                Some(_) => refused += 1,
                None => taken += 1,
            }
            if card.uid().is_none() {
                let with = insert_uid(&piece.bytes, "fresh");
                assert_eq!(
                    Contact::parse(&with).uid().as_deref(),
                    Some("fresh"),
                    "{}",
                    path.display()
                );
            }
        }
    }
    assert!(taken == 0 || (taken > 280 && refused < 20), "{taken} taken, {refused} refused");
}
