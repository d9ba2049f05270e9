//! The code of a program or library, as its file describes it: where its parts are in memory, how
//! its functions are unwound, and which build it is.
//!
//! The files are those of arbitrary programs, so nothing in them is trusted: a file that is not as
//! it should be has no code, and the frames in it have no names.

use object::read::elf::{ElfFile64, FileHeader as _, ProgramHeader as _};
use object::{Endianness, Object as _, ObjectSection as _, ReadCache, elf};
use std::fs::{File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;

/// A larger section is not read.
const MAX_SECTION_BYTES: u64 = 256 << 20;

/// An ELF file that is read as far as it is needed.
pub(super) type ProgramElf<'a> = ElfFile64<'a, Endianness, &'a ReadCache<File>>;

/// A section with its addresses in the file's own numbering.
#[derive(Debug, Clone)]
pub(super) struct CodeSection {
    pub(super) addresses: Range<u64>,
    pub(super) bytes: Arc<[u8]>,
}

/// The code of a file.
#[derive(Debug, Default)]
pub(super) struct ProgramCode {
    /// The build id, in hexadecimal; empty: the file has none.
    pub(super) build_id: String,
    /// The file, so that its symbols can be read when another one has its name; `None` for some of
    /// very many.
    pub(super) file: Option<File>,
    /// The inode of the file, and the time of its last change in nanoseconds since 1970.
    pub(super) version: (u64, i64),
    /// The segments with code: their bytes in the file, and the address of the first.
    segments: Vec<(Range<u64>, u64)>,
    /// The table by which functions are unwound.
    pub(super) eh_frame: Option<CodeSection>,
    /// The index of that table.
    pub(super) eh_frame_hdr: Option<CodeSection>,
    /// The addresses of `.text` and of `.got`, to which entries of the table may refer.
    pub(super) text: Option<Range<u64>>,
    pub(super) got: Option<Range<u64>>,
}

/// Opens the file of a program. Only a regular file is opened, because others may block.
pub(super) fn open_program(path: &Path) -> Option<File> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    file.metadata().ok()?.is_file().then_some(file)
}

/// Returns the inode of a file, and the time of its last change in nanoseconds since 1970.
fn file_version(found: &std::fs::Metadata) -> (u64, i64) {
    (found.ino(), found.mtime().saturating_mul(1_000_000_000).saturating_add(found.mtime_nsec()))
}

impl ProgramCode {
    /// Reads the code of a file; one that cannot be read has none.
    pub(super) fn read(path: &Path) -> ProgramCode {
        let Some(file) = open_program(path) else { return ProgramCode::default() };
        let version = file.metadata().map(|found| file_version(&found)).unwrap_or_default();
        let copy = file.try_clone().ok();
        let code = ProgramCode::parse(&ReadCache::new(file)).unwrap_or_default();
        ProgramCode { file: copy, version, ..code }
    }

    fn parse(cache: &ReadCache<File>) -> Option<ProgramCode> {
        let file = ProgramElf::parse(cache).ok()?;
        let endian = file.endian();
        let header = file.elf_header();
        let mut segments = Vec::new();
        for segment in header.program_headers(endian, cache).ok()? {
            // Only code: two segments may share a page of the file.
            let is_code = segment.p_flags(endian).0 & elf::PF_X.0 != 0;
            if is_code && segment.p_type(endian) == elf::PT_LOAD {
                let (offset, bytes) = segment.file_range(endian);
                segments.push((offset..offset.checked_add(bytes)?, segment.p_vaddr(endian)));
            }
        }
        let section = |name: &str| {
            let section = file.section_by_name(name)?;
            let start = section.address();
            Some((start..start.checked_add(section.size())?, section))
        };
        let with_bytes = |name: &str| {
            let (addresses, section) = section(name)?;
            // The size of a section that a file only claims is not allocated.
            if section.size() > MAX_SECTION_BYTES {
                return None;
            }
            let bytes = section.data().ok()?;
            Some(CodeSection { addresses, bytes: Arc::from(bytes) })
        };
        Some(ProgramCode {
            build_id: build_id(&file),
            file: None,
            version: (0, 0),
            segments,
            eh_frame: with_bytes(".eh_frame"),
            eh_frame_hdr: with_bytes(".eh_frame_hdr"),
            text: section(".text").map(|(addresses, _)| addresses),
            got: section(".got").map(|(addresses, _)| addresses),
        })
    }

    /// Returns whether the file at a path is still the one that was read, or is gone.
    pub(super) fn is_unchanged(&self, path: &Path) -> bool {
        std::fs::metadata(path).map_or(true, |found| file_version(&found) == self.version)
    }

    /// Returns whether the file could not be read.
    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Returns the difference between addresses in memory and addresses in the file, of a mapping
    /// that begins at an address with an offset of the file.
    pub(super) fn load_bias(&self, start: u64, offset: u64) -> Option<u64> {
        // A mapping begins at a page, its segment anywhere in that page.
        const PAGE_MASK: u64 = 4095;
        let (bytes, address) = self
            .segments
            .iter()
            .find(|(bytes, _)| (bytes.start & !PAGE_MASK..bytes.end).contains(&offset))?;
        Some(start.wrapping_sub(address.wrapping_add(offset.wrapping_sub(bytes.start))))
    }
}

/// Returns the build id of a file in hexadecimal, or an empty text.
pub(super) fn build_id(file: &ProgramElf<'_>) -> String {
    let id = file.build_id().ok().flatten().unwrap_or_default();
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_was_written_anew_is_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        std::fs::write(&path, "one").unwrap();
        let code = ProgramCode::read(&path);
        assert!(code.is_empty() && code.is_unchanged(&path));
        // In place, so that it has the same inode.
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        file.set_modified(std::time::UNIX_EPOCH).unwrap();
        assert!(!code.is_unchanged(&path));
        std::fs::remove_file(&path).unwrap();
        assert!(code.is_unchanged(&path));
    }
}
