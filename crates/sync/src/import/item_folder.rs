//! Recognises folders with one file for each item, as vdirsyncer, khal, khard and Radicale keep
//! them: such a folder is one collection.
//!
//! A folder with a file `displayname` or `color` is one, and these files have the name and the
//! colour of the collection. Any other folder is one if each of its files contains a single item:
//! one UID, in a calendar without a name and without METHOD. A lone file must also have the name of
//! its UID, because a folder with one exported event is no calendar. Separate from `files`, which
//! reads no content.

use super::calendar::{OpenCalendar, sanitise_collection_name};
use super::input_origin::{FolderCollection, InputOrigin, has_extension};
use larder_format::collection_type::COLLECTION_TYPES;
use larder_format::component::Component;
use larder_format::splitter::{Splitter, StreamPiece};
use larder_store::{CollectionType, Kind};
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The number of bytes of `displayname` and `color` that are read.
const MAX_MARK_BYTES: u64 = 4 << 10;
/// The number of bytes of a file that are searched for a second item.
const MAX_PEEK_BYTES: usize = 4 << 20;
/// The size of a read call.
const READ_BUFFER_BYTES: usize = 32 << 10;

/// Chooses the collections of folders: no two folders of an import share one.
pub(super) struct FolderCollections<'a> {
    /// Whether a collection of this name can hold items of this type.
    is_usable: &'a dyn Fn(&str, CollectionType) -> bool,
    /// Set when the import is to stop.
    stop: &'a AtomicBool,
    /// The names that folders of this import have.
    chosen: HashSet<String>,
}

impl<'a> FolderCollections<'a> {
    pub(super) fn new(
        is_usable: &'a dyn Fn(&str, CollectionType) -> bool,
        stop: &'a AtomicBool,
    ) -> FolderCollections<'a> {
        FolderCollections { is_usable, stop, chosen: HashSet::new() }
    }

    /// Returns the collection of a folder, given the address books and calendars in it; `None` if
    /// the folder is not a collection.
    pub(super) fn detect(
        &mut self,
        folder: &Path,
        files: &[PathBuf],
    ) -> Option<Arc<FolderCollection>> {
        let is_calendar = |path: &PathBuf| has_extension(path, Kind::is_exported_in_calendar);
        let calendars = files.iter().filter(|path| is_calendar(path)).count();
        let is_mixed = calendars > 0 && calendars < files.len();
        let collection_type = COLLECTION_TYPES
            .iter()
            .map(|row| row.collection_type)
            .find(|collection_type| collection_type.is_exported_in_calendar() == (calendars > 0))?;
        let mark = |name: &str| read_mark(&folder.join(name));
        let (display_name, colour) = (mark("displayname"), mark("color"));
        let is_marked = display_name.is_some() || colour.is_some();
        if files.is_empty() || !is_marked && (is_mixed || !self.contains_single_items(files)) {
            return None;
        }
        let display_name = display_name
            .map(|text| sanitise_collection_name(&text))
            .filter(|name| !name.is_empty());
        let own_name = || Some(folder_name(folder)).filter(|name| !name.is_empty());
        let name = display_name.clone().or_else(own_name)?;
        let name = self.choose_name(name, folder, collection_type);
        let colour = colour.filter(|text| is_colour(text));
        Some(Arc::new(FolderCollection {
            name: Arc::from(name),
            collection_type,
            display_name,
            colour,
        }))
    }

    /// Returns the name, or a longer one if another folder has it, or if a collection of another
    /// type has it.
    fn choose_name(
        &mut self,
        name: String,
        folder: &Path,
        collection_type: CollectionType,
    ) -> String {
        let is_free = |chosen: &HashSet<String>, name: &String| {
            !chosen.contains(name) && (self.is_usable)(name, collection_type)
        };
        let parent = fs::canonicalize(folder)
            .ok()
            .and_then(|real| Some(folder_name(real.parent()?)))
            .filter(|parent| !parent.is_empty());
        let with_parent = parent.map(|parent| format!("{name} ({parent})"));
        let numbered = (2..).map(|number: u32| format!("{name} ({number})"));
        let mut names = [name.clone()].into_iter().chain(with_parent).chain(numbered);
        let found = names.find(|name| is_free(&self.chosen, name)).unwrap_or(name);
        self.chosen.insert(found.clone());
        found
    }

    fn contains_single_items(&self, files: &[PathBuf]) -> bool {
        files.iter().all(|path| {
            !self.stop.load(Ordering::Relaxed)
                && match read_single_item(path) {
                    SingleItem::No => false,
                    SingleItem::WithUid(uid) if files.len() == 1 => {
                        path.file_stem().is_some_and(|stem| stem.to_str() == Some(&*uid))
                    }
                    SingleItem::WithoutUid => files.len() > 1,
                    SingleItem::WithUid(_) => true,
                }
        })
    }
}

/// Returns the text of a file that describes its folder.
fn read_mark(path: &Path) -> Option<String> {
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(MAX_MARK_BYTES).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim().to_string())
}

/// Returns the name of a folder, also of `.` and `..`.
fn folder_name(folder: &Path) -> String {
    let real = || fs::canonicalize(folder).ok()?.file_name().map(ToOwned::to_owned);
    let name = folder.file_name().map(ToOwned::to_owned).or_else(real).unwrap_or_default();
    sanitise_collection_name(&name.to_string_lossy())
}

/// Returns whether a text is `#RRGGBB`, with or without opacity, or a word.
fn is_colour(text: &str) -> bool {
    match text.strip_prefix('#') {
        Some(digits) => {
            matches!(digits.len(), 3 | 6 | 8) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        }
        None => !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphabetic()),
    }
}

/// The content of a file.
enum SingleItem {
    /// Several items, or a calendar with a name or a METHOD.
    No,
    WithUid(String),
    WithoutUid,
}

/// Reads whether a file contains a single item; a series and its overrides are one. Unreadable and
/// empty files decide nothing: the import reports them.
fn read_single_item(path: &Path) -> SingleItem {
    let mut uids: Vec<Option<String>> = Vec::new();
    let mut calendar = OpenCalendar::for_file(Arc::new(InputOrigin::default()));
    let mut handle = |piece: StreamPiece<'_>| match piece {
        StreamPiece::CalendarLines { bytes, utf16_text, .. } => {
            calendar.add_lines(bytes, utf16_text);
        }
        StreamPiece::Component { name, bytes, .. } if name != "VTIMEZONE" => {
            let uid = Component::parse(bytes)
                .properties_named("UID")
                .next()
                .map(|uid| uid.text().trim().to_string());
            if uid.is_none() || !uids.contains(&uid) {
                uids.push(uid);
            }
        }
        _ => {}
    };
    let Ok(mut file) = File::open(path) else { return SingleItem::WithoutUid };
    let mut splitter = Splitter::new(MAX_PEEK_BYTES);
    let mut chunk = vec![0; READ_BUFFER_BYTES];
    let mut read_bytes = 0;
    loop {
        match file.read(&mut chunk) {
            Ok(count) if count > 0 && read_bytes < MAX_PEEK_BYTES => {
                read_bytes += count;
                splitter.push(&chunk[..count], &mut handle);
            }
            _ => break,
        }
    }
    splitter.finish(&mut handle);
    match uids.as_slice() {
        _ if !calendar.is_anonymous() => SingleItem::No,
        [] | [None] => SingleItem::WithoutUid,
        [Some(uid)] => SingleItem::WithUid(uid.clone()),
        _ => SingleItem::No,
    }
}
