//! Listings: the content of a tree object of git.

use crate::manifest::FileFlag;
use crate::object_id::GitId;
use memchr::memchr;
use std::cmp::Ordering;
use std::ops::Range;

/// The mode of a folder.
const FOLDER_MODE: &[u8] = b"40000";

/// An entry of a listing.
#[derive(Clone, Copy)]
pub(crate) struct ListingEntry<'l> {
    pub(crate) name: &'l [u8],
    pub(crate) is_folder: bool,
    pub(crate) id: GitId,
    pub(crate) mode: &'l [u8],
    /// Where the next entry begins.
    pub(crate) end: usize,
}

/// Reads the entry at a position; `None` at the end, or where the bytes are not one.
pub(crate) fn entry_at(listing: &[u8], position: usize) -> Option<ListingEntry<'_>> {
    let rest = listing.get(position..)?;
    let space = memchr(b' ', rest)?;
    let nul = memchr(0, rest)?;
    let mode = rest.get(..space)?;
    let name = rest.get(space + 1..nul)?;
    let id = rest.get(nul + 1..nul + 21)?.try_into().ok().map(GitId)?;
    Some(ListingEntry { name, is_folder: mode == FOLDER_MODE, id, mode, end: position + nul + 21 })
}

/// Returns the entries of a listing.
pub(super) fn entries(listing: &[u8]) -> impl Iterator<Item = ListingEntry<'_>> {
    entries_from(listing, 0)
}

/// Returns the entries from a position on.
fn entries_from(listing: &[u8], mut position: usize) -> impl Iterator<Item = ListingEntry<'_>> {
    std::iter::from_fn(move || {
        let entry = entry_at(listing, position)?;
        position = entry.end;
        Some(entry)
    })
}

/// Compares names as git does, which takes a folder's name as one with a slash at its end.
pub(crate) fn compare_names(a: (&[u8], bool), b: (&[u8], bool)) -> Ordering {
    let common = a.0.len().min(b.0.len());
    let next = |(name, is_folder): (&[u8], bool)| {
        name.get(common).copied().unwrap_or(if is_folder { b'/' } else { 0 })
    };
    a.0.get(..common).cmp(&b.0.get(..common)).then_with(|| next(a).cmp(&next(b)))
}

fn file_mode(flag: FileFlag) -> &'static [u8] {
    match flag {
        FileFlag::Plain => b"100644",
        FileFlag::Executable => b"100755",
        FileFlag::Link => b"120000",
    }
}

pub(super) fn write_entry(listing: &mut Vec<u8>, mode: &[u8], name: &[u8], id: GitId) {
    listing.extend_from_slice(mode);
    listing.push(b' ');
    listing.extend_from_slice(name);
    listing.push(0);
    listing.extend_from_slice(&id.0);
}

/// The change of a name in a folder: of the file, or of the folder that has it.
pub(super) enum EntryChange {
    File(Option<(GitId, FileFlag)>),
    /// The id of the folder.
    Folder(Option<GitId>),
}

impl EntryChange {
    pub(super) fn is_folder(&self) -> bool {
        matches!(self, EntryChange::Folder(_))
    }
}

/// A part of a changed listing.
pub(super) enum ListingRun {
    /// Bytes of the former listing: where they begin, and how many.
    Copy(usize, usize),
    /// Bytes that are new: where they begin in the changed listing, and how many.
    Insert(usize, usize),
}

/// A listing after changes.
pub(super) struct ListingEdit {
    pub(super) listing: Vec<u8>,
    /// The parts of the former listing that are in it, and the new ones.
    pub(super) runs: Vec<ListingRun>,
    /// The changes of files whose names folders of the former listing have.
    pub(super) taken: Vec<usize>,
}

/// Makes a listing from another one and changes that are sorted as git sorts.
pub(super) fn edit_listing(base: &[u8], changes: &[(&[u8], EntryChange)]) -> ListingEdit {
    let mut listing = Vec::with_capacity(base.len() + 64);
    let (mut runs, mut taken) = (Vec::new(), Vec::new());
    let (mut copied_to, mut position) = (0, 0);
    for (number, (name, change)) in changes.iter().enumerate() {
        let is_folder = change.is_folder();
        let mut replaced_to = None;
        while let Some(entry) = entry_at(base, position) {
            match compare_names((entry.name, entry.is_folder), (name, is_folder)) {
                Ordering::Less => position = entry.end,
                Ordering::Equal => {
                    replaced_to = Some(entry.end);
                    break;
                }
                Ordering::Greater => break,
            }
        }
        if !is_folder && replaced_to.is_none() && has_folder(base, position, name) {
            taken.push(number);
        }
        push_copy(base, copied_to..position, &mut listing, &mut runs);
        let start = listing.len();
        match change {
            EntryChange::File(Some((id, flag))) => {
                write_entry(&mut listing, file_mode(*flag), name, *id);
            }
            EntryChange::Folder(Some(id)) => write_entry(&mut listing, FOLDER_MODE, name, *id),
            EntryChange::File(None) | EntryChange::Folder(None) => {}
        }
        match runs.last_mut() {
            Some(ListingRun::Insert(_, len)) => *len += listing.len() - start,
            _ if listing.len() > start => {
                runs.push(ListingRun::Insert(start, listing.len() - start));
            }
            _ => {}
        }
        position = replaced_to.unwrap_or(position);
        copied_to = position;
    }
    push_copy(base, copied_to..base.len(), &mut listing, &mut runs);
    ListingEdit { listing, runs, taken }
}

/// Returns whether a folder has a name that no file has: between the places of both are only longer
/// names.
fn has_folder(listing: &[u8], position: usize, name: &[u8]) -> bool {
    entries_from(listing, position)
        .take_while(|entry| entry.name.starts_with(name))
        .any(|entry| entry.is_folder && entry.name == name)
}

fn push_copy(base: &[u8], range: Range<usize>, listing: &mut Vec<u8>, runs: &mut Vec<ListingRun>) {
    if !range.is_empty() {
        runs.push(ListingRun::Copy(range.start, range.len()));
        listing.extend_from_slice(base.get(range).unwrap_or_default());
    }
}
