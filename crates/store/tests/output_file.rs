//! Tests of the files that a user names as outputs.

use crate::book::{Book, card};
use larder_store::{DataDirectory, FilePrivacy, OutputError, OutputFile, OutputTarget};
use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

fn create(directory: &DataDirectory, path: &Path) -> Result<OutputFile, OutputError> {
    OutputFile::create(directory, &path.into(), FilePrivacy::Private)
}

fn write(directory: &DataDirectory, path: &Path, bytes: &[u8]) -> Result<u64, OutputError> {
    let mut output = create(directory, path)?;
    output.write_all(bytes).unwrap();
    output.commit()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

/// The outputs are in a folder of their own beside the data directory.
fn folder(book: &Book) -> PathBuf {
    let folder = book.sibling_path("outputs");
    fs::create_dir(&folder).unwrap();
    folder
}

fn names(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn every_file_of_the_store_is_refused_under_any_name() {
    let mut book = Book::new();
    book.put(&card("a", "Anna", ""));
    let folder = folder(&book);
    let directory = DataDirectory::new(book.dir());
    let refused = |path: &Path| {
        let result = create(&directory, path);
        assert!(matches!(result, Err(OutputError::FileOfStore { .. })), "{result:?}");
        let result = OutputFile::append(&directory, path, FilePrivacy::Private);
        assert!(matches!(result, Err(OutputError::FileOfStore { .. })), "{result:?}");
    };
    for (n, name) in names(&book.dir()).iter().enumerate() {
        let own = book.dir().join(name);
        refused(&own);
        let (link, hard) = (folder.join(format!("link{n}")), folder.join(format!("hard{n}")));
        symlink(&own, &link).unwrap();
        refused(&link);
        fs::hard_link(&own, &hard).unwrap();
        refused(&hard);
    }
    // Names that the store may use later, and a link to one.
    for name in ["data.db-journal", "data.db.before-restore", "book.vcf"] {
        refused(&book.dir().join(name));
    }
    symlink(book.dir().join("new"), folder.join("to-new")).unwrap();
    refused(&folder.join("to-new"));
    symlink(book.dir(), folder.join("to-dir")).unwrap();
    refused(&folder.join("to-dir/new"));
    assert!(OutputFile::check_folder(&directory, &folder.join("to-dir")).is_err());
    OutputFile::check_folder(&directory, &folder).unwrap();
    assert!(!book.dir().join("new").exists());
    // A folder below the data directory is the user's.
    let below = book.dir().join("exports");
    fs::create_dir(&below).unwrap();
    write(&directory, &below.join("book.vcf"), b"x").unwrap();
}

/// The database may be a link to a file elsewhere; then SQLite's files are there as well.
#[test]
fn files_beside_a_linked_database_are_refused() {
    let book = Book::new();
    let folder = folder(&book);
    let (_scratch, ()) = book.with_store_closed(|dir| {
        let real = folder.join("real.db");
        fs::rename(dir.join("data.db"), &real).unwrap();
        symlink(&real, dir.join("data.db")).unwrap();
        let directory = DataDirectory::new(dir);
        for name in ["real.db", "real.db-wal", "real.db-shm", "real.db-journal"] {
            let result = create(&directory, &folder.join(name));
            assert!(matches!(result, Err(OutputError::FileOfStore { .. })), "{name}: {result:?}");
        }
        write(&directory, &folder.join("real.vcf"), b"x").unwrap();
    });
}

#[test]
fn a_file_is_replaced_only_when_it_is_complete() {
    let book = Book::new();
    let folder = folder(&book);
    let directory = DataDirectory::new(book.dir());
    let path = folder.join("book.vcf");
    fs::write(&path, "old").unwrap();
    let mut output = create(&directory, &path).unwrap();
    output.write_all(b"half").unwrap();
    assert!(!output.is_direct());
    drop(output);
    assert_eq!(
        (fs::read(&path).unwrap(), names(&folder)),
        (b"old".to_vec(), vec!["book.vcf".into()])
    );
    assert_eq!(write(&directory, &path, b"whole").unwrap(), 5);
    assert_eq!(
        (fs::read(&path).unwrap(), names(&folder)),
        (b"whole".to_vec(), vec!["book.vcf".into()])
    );
    let mut output = create(&directory, &path).unwrap();
    output.write_all(b"part").unwrap();
    let (partial, bytes) = output.commit_with_suffix(".partial").unwrap();
    assert_eq!((partial, bytes), (folder.join("book.vcf.partial"), 4));
    assert_eq!(fs::read(&path).unwrap(), b"whole");
}

#[test]
fn an_existing_file_keeps_its_mode_and_a_new_one_is_private() {
    let book = Book::new();
    let folder = folder(&book);
    let directory = DataDirectory::new(book.dir());
    let path = folder.join("book.vcf");
    write(&directory, &path, b"x").unwrap();
    assert_eq!(mode(&path), 0o600);
    for kept in [0o644, 0o640, 0o600] {
        fs::set_permissions(&path, Permissions::from_mode(kept)).unwrap();
        write(&directory, &path, b"y").unwrap();
        assert_eq!(mode(&path), kept);
    }
    let page = folder.join("larder.1");
    OutputFile::create(&directory, &(&page).into(), FilePrivacy::Public).unwrap().commit().unwrap();
    assert_eq!(mode(&page) & 0o600, 0o600);
}

#[test]
fn links_are_followed_and_stay() {
    let book = Book::new();
    let folder = folder(&book);
    let directory = DataDirectory::new(book.dir());
    for (link, target) in [("link", "there.vcf"), ("dangling", "new.vcf")] {
        symlink(target, folder.join(link)).unwrap();
    }
    fs::write(folder.join("there.vcf"), "old").unwrap();
    for (link, target) in [("link", "there.vcf"), ("dangling", "new.vcf")] {
        write(&directory, &folder.join(link), b"new").unwrap();
        assert!(folder.join(link).is_symlink(), "{link}");
        assert_eq!(fs::read(folder.join(target)).unwrap(), b"new", "{link}");
    }
    symlink("b", folder.join("a")).unwrap();
    symlink("a", folder.join("b")).unwrap();
    assert!(matches!(create(&directory, &folder.join("a")), Err(OutputError::File { .. })));
}

#[test]
fn a_folder_is_refused_and_a_device_is_written_directly() {
    let book = Book::new();
    let directory = DataDirectory::new(book.dir());
    let folder = folder(&book);
    match create(&directory, &folder) {
        Err(OutputError::File { source, .. }) => {
            assert_eq!(source.kind(), std::io::ErrorKind::IsADirectory);
        }
        result => panic!("{result:?}"),
    }
    let mut null = create(&directory, Path::new("/dev/null")).unwrap();
    null.write_all(b"x").unwrap();
    assert!(null.is_direct());
    assert_eq!(null.commit().unwrap(), 0);
}

#[test]
fn a_stream_is_written_directly() {
    let book = Book::new();
    let file = std::sync::Arc::new(tempfile::tempfile().unwrap());
    let target = OutputTarget::Stream {
        name: "standard output".into(),
        file: std::sync::Arc::clone(&file),
        temporary_folder: std::env::temp_dir(),
    };
    let directory = DataDirectory::new(book.dir());
    let mut output = OutputFile::create(&directory, &target, FilePrivacy::Private).unwrap();
    output.write_all(b"bytes").unwrap();
    output.commit().unwrap();
    assert_eq!(file.metadata().unwrap().len(), 5);
    // A backup is a database, which cannot be written to a stream, so a copy is.
    let file = std::sync::Arc::new(tempfile::tempfile().unwrap());
    let target = OutputTarget::Stream {
        name: "standard output".into(),
        file: std::sync::Arc::clone(&file),
        temporary_folder: std::env::temp_dir(),
    };
    let size = book.store.backup(target).unwrap();
    assert_eq!(file.metadata().unwrap().len(), size);
    assert_eq!(names(&book.dir()).iter().filter(|name| name.contains("partial")).count(), 0);
}

/// A killed command leaves its temporary file, which the next output in the folder deletes; in a
/// folder for everybody, such a name may be somebody else's.
#[test]
fn leftovers_beside_outputs_are_deleted() {
    let book = Book::new();
    let directory = DataDirectory::new(book.dir());
    let folder = folder(&book);
    for (mode, left) in [(0o1777, 2), (0o700, 1)] {
        fs::set_permissions(&folder, Permissions::from_mode(mode)).unwrap();
        fs::write(folder.join(".larder-0123456789abcdef.partial"), "left").unwrap();
        write(&directory, &folder.join("book.vcf"), b"x").unwrap();
        assert_eq!(names(&folder).len(), left, "{mode:o}");
    }
}
