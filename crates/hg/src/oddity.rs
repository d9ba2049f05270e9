//! The report of unusual changesets and files, and of their form in git, for archivists.
//!
//! Nothing of it is an error. Kinds are found where a conversion meets them anyway; a report keeps
//! the number of each kind and the first examples.

mod dot_git;

use crate::changeset::Changeset;
use crate::commit::{has_bounded_time, whole_number};
use crate::object_id::Node;
use crate::path_text::path_text;
use dot_git::is_refused_name;
use std::collections::BTreeMap;

/// How many examples of a kind are kept.
const MAX_EXAMPLES: usize = 5;
/// The fields beside the date that are read: `committer` becomes the commit's, the others are the
/// branch, which has refs.
const KNOWN_FIELDS: [&[u8]; 3] = [b"branch", b"close", b"committer"];

/// The folder in which the extension largefiles keeps the hashes of files.
const LARGE_FILE_FOLDER: &[u8] = b".hglf/";
/// The places of subrepositories, and their states.
const SUBREPOSITORY_FILES: [&[u8]; 2] = [b".hgsub", b".hgsubstate"];

/// A kind of what is unusual.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Oddity {
    /// A changeset that would be one commit with another, and has a newline more.
    PaddedTwin,
    /// A time before 1970, which is 0 in the commit, in UTC.
    EarlyTime,
    /// A time or a zone with a fraction, or a zone with seconds; these are cut off.
    CutTime,
    /// A time or a zone of more digits than git takes, also of a committer; it is the last one that
    /// git takes.
    BoundedTime,
    /// A user without a character.
    EmptyUser,
    /// A user with text after the address, which is not in the commit.
    CutUser,
    /// An extra field that is only in the metadata.
    ExtraField,
    /// A path with an empty name, which is left out.
    EmptyPathName,
    /// A path of a manifest that is not in its tree.
    LostPath,
    /// A path that git does not check out, such as `.git/config`, `git~1` or `../x`.
    RefusedPath,
    /// A path that differs from another one only in upper and lower case, at any time.
    CaseClash,
    /// A file revision whose text was removed on the server.
    CensoredFile,
    /// A file revision that is a pointer (LFS).
    FilePointer,
    /// A path of the extension largefiles: a file with the hash of another one.
    LargeFile,
    /// A file that names subrepositories, or their states.
    Subrepository,
    /// A branch or a bookmark whose ref has an encoded name.
    EncodedRef,
    /// A tag whose ref has an encoded name.
    EncodedTag,
    /// A tag of a changeset that is not there; it has no ref.
    UnknownTag,
    /// A tag whose name git has for another one, which was kept.
    KeptTag,
    /// A branch of the converted repository that leads to commits of git, or is a folder of another
    /// branch or below it, and was kept.
    KeptBranch,
    /// A changeset that is not converted, because it is secret or obsolete.
    HiddenChangeset,
}

impl Oddity {
    /// Returns the name in machine-readable output.
    pub fn name(self) -> &'static str {
        match self {
            Oddity::PaddedTwin => "padded-twin",
            Oddity::EarlyTime => "early-time",
            Oddity::CutTime => "cut-time",
            Oddity::BoundedTime => "bounded-time",
            Oddity::EmptyUser => "empty-user",
            Oddity::CutUser => "cut-user",
            Oddity::ExtraField => "extra-field",
            Oddity::EmptyPathName => "empty-path-name",
            Oddity::LostPath => "lost-path",
            Oddity::RefusedPath => "refused-path",
            Oddity::CaseClash => "case-clash",
            Oddity::CensoredFile => "censored-file",
            Oddity::FilePointer => "file-pointer",
            Oddity::LargeFile => "large-file",
            Oddity::Subrepository => "subrepository",
            Oddity::EncodedRef => "encoded-ref",
            Oddity::EncodedTag => "encoded-tag",
            Oddity::UnknownTag => "unknown-tag",
            Oddity::KeptTag => "kept-tag",
            Oddity::KeptBranch => "kept-branch",
            Oddity::HiddenChangeset => "hidden-changeset",
        }
    }

    /// Returns whether git has a pointer, and the content is elsewhere.
    pub(crate) fn is_pointer(self) -> bool {
        matches!(self, Oddity::FilePointer | Oddity::LargeFile | Oddity::Subrepository)
    }

    /// Returns the things that are counted, and what became of them, for people.
    pub fn description(self) -> &'static str {
        match self {
            Oddity::PaddedTwin => {
                "changesets that would be one commit with another: a newline was added"
            }
            Oddity::EarlyTime => "times before 1970: 0 in the commit, in UTC",
            Oddity::CutTime => "times or zones that git does not have: fractions are cut off",
            Oddity::BoundedTime => {
                "times or zones that git refuses: the last ones that it takes are in the commit"
            }
            Oddity::EmptyUser => "changesets without a user",
            Oddity::CutUser => "users with text after the address: it is not in the commit",
            Oddity::ExtraField => "extra fields: only in the metadata",
            Oddity::EmptyPathName => "paths with an empty name in them: it is left out",
            Oddity::LostPath => {
                "paths that are not in a tree, because another path or an empty name is in their way"
            }
            Oddity::RefusedPath => "paths that git does not check out",
            Oddity::CaseClash => "paths that differ from others only in upper and lower case",
            Oddity::CensoredFile => "censored file revisions: the text in their place was taken",
            Oddity::FilePointer => "file revisions in LFS: the pointer was taken",
            Oddity::LargeFile => "paths of largefiles: git has the hashes in .hglf, not the files",
            Oddity::Subrepository => {
                "files about subrepositories: git has these files, not the subrepositories"
            }
            Oddity::EncodedRef => "branches and bookmarks with percent-encoded refs",
            Oddity::EncodedTag => "tags with percent-encoded refs",
            Oddity::UnknownTag => "tags of changesets that are not there: without refs",
            Oddity::KeptTag => "tags whose names other tags of git have: those of git were kept",
            Oddity::KeptBranch => {
                "branches that have commits of git, or are in the way of another: they were kept"
            }
            Oddity::HiddenChangeset => "secret or obsolete changesets: not converted",
        }
    }
}

/// The number of one kind, and the first examples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OddityCount {
    /// How many there are.
    pub count: u64,
    /// The first ones: nodes, paths, names.
    pub examples: Vec<String>,
}

/// The kinds of what was unusual in a conversion, with their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OddityReport {
    kinds: BTreeMap<Oddity, OddityCount>,
}

impl OddityReport {
    /// Returns whether nothing was unusual.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Returns the kinds that occurred.
    pub fn kinds(&self) -> impl Iterator<Item = (Oddity, &OddityCount)> {
        self.kinds.iter().map(|(oddity, count)| (*oddity, count))
    }

    /// Counts one more; the example is made only if it is kept.
    pub(crate) fn add(&mut self, oddity: Oddity, example: impl FnOnce() -> String) {
        let kind = self.kinds.entry(oddity).or_default();
        kind.count += 1;
        if kind.examples.len() < MAX_EXAMPLES {
            kind.examples.push(example());
        }
    }

    /// Counts many without examples.
    pub(crate) fn add_count(&mut self, oddity: Oddity, count: u64) {
        if count > 0 {
            self.kinds.entry(oddity).or_default().count += count;
        }
    }

    /// Adds those of another part of the conversion.
    pub(crate) fn merge(&mut self, other: OddityReport) {
        for (oddity, mut other) in other.kinds {
            let kind = self.kinds.entry(oddity).or_default();
            kind.count += other.count;
            let room = MAX_EXAMPLES.saturating_sub(kind.examples.len());
            other.examples.truncate(room);
            kind.examples.append(&mut other.examples);
        }
    }

    /// Adds what is unusual in the text of a changeset.
    pub(crate) fn add_changeset(&mut self, node: Node, changeset: &Changeset<'_>) {
        let Changeset { user, time, zone, .. } = *changeset;
        if time.starts_with(b"-") {
            self.add(Oddity::EarlyTime, || format!("{node}: {}", time.escape_ascii()));
        }
        if time.contains(&b'.') || !is_whole_zone(zone) {
            let example = || format!("{node}: {} {}", time.escape_ascii(), zone.escape_ascii());
            self.add(Oddity::CutTime, example);
        }
        if has_bounded_time(changeset) {
            let example = || format!("{node}: {} {}", time.escape_ascii(), zone.escape_ascii());
            self.add(Oddity::BoundedTime, example);
        }
        if user.is_empty() {
            self.add(Oddity::EmptyUser, || node.to_string());
        }
        let address_end = memchr::memchr(b'<', user)
            .and_then(|start| Some(start + memchr::memchr(b'>', user.get(start..)?)? + 1));
        if address_end.is_some_and(|end| end < user.len()) {
            self.add(Oddity::CutUser, || format!("{node}: {}", String::from_utf8_lossy(user)));
        }
        for name in changeset.extra_names().filter(|name| !KNOWN_FIELDS.contains(name)) {
            self.add(Oddity::ExtraField, || format!("{node}: {}", String::from_utf8_lossy(name)));
        }
    }

    /// Adds what is unusual in paths, each of which comes once.
    pub(crate) fn add_paths<'p>(&mut self, paths: impl Iterator<Item = &'p [u8]> + Clone) {
        let mut folded: Vec<(u64, u32)> = Vec::new();
        for (number, path) in (0..).zip(paths.clone()) {
            let mut names = path.split(|byte| *byte == b'/');
            if names.clone().any(<[u8]>::is_empty) {
                self.add(Oddity::EmptyPathName, || path_text(path));
            }
            if path.starts_with(LARGE_FILE_FOLDER) {
                self.add(Oddity::LargeFile, || path_text(path));
            }
            if SUBREPOSITORY_FILES.contains(&path) {
                self.add(Oddity::Subrepository, || path_text(path));
            }
            if names.any(is_refused_name) {
                self.add(Oddity::RefusedPath, || path_text(path));
            }
            folded.push((hash_folded(path), number));
        }
        folded.sort_unstable();
        let mut clashing: Vec<u32> = Vec::new();
        for pair in folded.windows(2) {
            if let [(first, number), (second, other)] = pair
                && first == second
            {
                clashing.extend([*number, *other]);
            }
        }
        clashing.sort_unstable();
        clashing.dedup();
        // In the order of the numbers, so that one pass finds their paths.
        let mut clashing = clashing.into_iter().peekable();
        for (number, path) in (0..).zip(paths) {
            if clashing.next_if_eq(&number).is_some() {
                self.add(Oddity::CaseClash, || path_text(path));
            }
        }
    }

    /// Adds the refs whose names are encoded.
    pub(crate) fn add_refs<'n>(&mut self, oddity: Oddity, names: impl Iterator<Item = &'n [u8]>) {
        for name in names.filter(|name| name.contains(&b'%')) {
            self.add(oddity, || String::from_utf8_lossy(name).into_owned());
        }
    }
}

/// Returns whether a zone is a number of whole minutes.
fn is_whole_zone(zone: &[u8]) -> bool {
    whole_number(zone).is_some_and(|seconds| seconds % 60 == 0)
}

/// Hashes a path without regard to upper and lower case (FNV-1a); two paths with one hash differ by
/// chance once in many billions.
fn hash_folded(path: &[u8]) -> u64 {
    path.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(report: &OddityReport) -> Vec<(&'static str, u64)> {
        report.kinds().map(|(oddity, kind)| (oddity.name(), kind.count)).collect()
    }

    #[test]
    fn changesets_are_looked_at() {
        let check = |user: &str, date: &str, expected: &[(&str, u64)]| {
            let text = format!("{}\n{user}\n{date}\nfile\n\nmessage", "1".repeat(40));
            let changeset = Changeset::parse(text.as_bytes()).unwrap();
            let mut report = OddityReport::default();
            report.add_changeset(Node([2; 20]), &changeset);
            assert_eq!(counts(&report), expected, "{user} {date}");
        };
        check("Ann <a@b>", "1 -7200 branch:x\0close:1\0committer:Bob", &[]);
        check("Ann <a@b> (work)", "1 0", &[("cut-user", 1)]);
        check("", "-1 0", &[("early-time", 1), ("empty-user", 1)]);
        check("Ann", "1.5 0", &[("cut-time", 1)]);
        check("Ann", "1 -29", &[("cut-time", 1)]);
        check("Ann", "9223372036854775808 0", &[("bounded-time", 1)]);
        check("Ann", "1 360000", &[("bounded-time", 1)]);
        check("Ann", "1 0 committer:Bob <b@c> 7 +9999", &[("bounded-time", 1)]);
        check("Ann", "1 0 rebase_source:1\0topic:t", &[("extra-field", 2)]);
    }

    #[test]
    fn paths_are_looked_at() {
        let paths: [&[u8]; 10] = [
            b"a",
            b"d/B",
            b"d//c",
            b".Git/x",
            b"A",
            b"x/../y",
            b"d/b",
            b"e",
            b".gitignore",
            b"dir/git~1/x",
        ];
        let mut report = OddityReport::default();
        report.add_paths(paths.into_iter());
        let expected = [("empty-path-name", 1), ("refused-path", 3), ("case-clash", 4)];
        assert_eq!(counts(&report), expected);
        let clashes = report.kinds().last().unwrap().1;
        assert_eq!(clashes.examples, ["a", "d/B", "A", "d/b"]);
    }

    /// Control characters could be commands to a terminal.
    #[test]
    fn paths_of_large_files_are_escaped() {
        let mut report = OddityReport::default();
        report.add_paths([b".hglf/a\x1b[2J".as_slice()].into_iter());
        let kinds: Vec<_> = report.kinds().collect();
        let [(Oddity::LargeFile, kind)] = kinds.as_slice() else { panic!("{kinds:?}") };
        assert_eq!(kind.examples, [".hglf/a\\u{1b}[2J"]);
    }

    #[test]
    fn reports_are_merged_with_few_examples() {
        let mut report = OddityReport::default();
        for part in 0..3_u32 {
            let mut other = OddityReport::default();
            (0..4).for_each(|number| {
                other.add(Oddity::UnknownTag, || format!("{part}.{number}"));
            });
            report.merge(other);
        }
        report.add_count(Oddity::HiddenChangeset, 0);
        let kinds: Vec<_> = report.kinds().collect();
        let [(Oddity::UnknownTag, kind)] = kinds.as_slice() else { panic!("{kinds:?}") };
        assert_eq!(kind.count, 12);
        assert_eq!(kind.examples, ["0.0", "0.1", "0.2", "0.3", "1.0"]);
    }
}
