//! The mappings of a recorded process, as `/proc` shows them.
//!
//! While they are read, the process may begin another program, or end, and its id may be given to
//! another one. A program image is known by its ring, which is a mapping that no other image has,
//! and an open file of `/proc/PID/maps` is of the image that was there when it was opened. So
//! addresses of one program are never looked up in the files of another.

use crate::process_cost::threads_of;
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The path of a file, its device and its inode.
pub(super) type FileKey = (PathBuf, String, String);

/// The mappings of a program image.
pub(super) struct ProcessMaps {
    file: File,
    /// The mappings when they were read.
    pub(super) text: String,
}

impl ProcessMaps {
    /// Reads the mappings of the program image with this inode of a ring; `None` if it is gone.
    pub(super) fn read(pid: u32, ring: u64) -> Option<ProcessMaps> {
        let maps = ProcessMaps::open(format!("/proc/{pid}/maps"))?;
        // Where the first thread has ended (`pthread_exit` in `main`), its file is empty.
        let mut maps = match maps.text.is_empty() {
            true => threads_of(pid).into_iter().find_map(|thread| {
                let maps = ProcessMaps::open(format!("/proc/{pid}/task/{thread}/maps"));
                maps.filter(|maps| !maps.text.is_empty())
            })?,
            false => maps,
        };
        // The text of an image that ended meanwhile may be cut.
        (has_ring(&maps.text, ring) && maps.has_image()).then_some(maps)
    }

    fn open(path: String) -> Option<ProcessMaps> {
        let mut file = File::open(path).ok()?;
        let text = read_text(&mut file).ok()?;
        Some(ProcessMaps { file, text })
    }

    /// Returns whether the image is still there.
    fn has_image(&mut self) -> bool {
        let mut byte = [0];
        self.file.rewind().is_ok() && matches!(self.file.read(&mut byte), Ok(1))
    }

    /// Returns whether the image is still there and has a mapping as it was.
    pub(super) fn still_has(&mut self, line: &MappingLine<'_>) -> bool {
        let text = self.file.rewind().and_then(|()| read_text(&mut self.file));
        text.is_ok_and(|text| text.lines().any(|it| parse_code_mapping(it).as_ref() == Some(line)))
    }
}

fn read_text(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns whether a ring is among the mappings.
pub(super) fn has_ring(text: &str, ring: u64) -> bool {
    text.lines().any(|line| {
        let mut fields = line.split_ascii_whitespace().skip(4);
        let inode = fields.next().map(str::parse);
        inode == Some(Ok(ring)) && fields.next().is_some_and(|path| path.starts_with("/memfd:"))
    })
}

/// A line of `/proc/PID/maps`: a mapping of the code of a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct MappingLine<'a> {
    pub(super) addresses: Range<u64>,
    /// The offset in the file.
    pub(super) offset: u64,
    device: &'a str,
    inode: &'a str,
    /// The path as it is written.
    pub(super) text: &'a str,
    pub(super) path: &'a Path,
    pub(super) is_deleted: bool,
}

impl MappingLine<'_> {
    pub(super) fn file_key(&self) -> FileKey {
        (self.path.to_path_buf(), self.device.into(), self.inode.into())
    }

    /// Returns whether a file has the inode of the mapping.
    pub(super) fn has_inode(&self, inode: u64) -> bool {
        self.inode.parse() == Ok(inode)
    }
}

/// Reads a line of `/proc/PID/maps`; `None` if it is not the code of a file.
pub(super) fn parse_code_mapping(line: &str) -> Option<MappingLine<'_>> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let is_code = fields.next()?.as_bytes().get(2) == Some(&b'x');
    let (offset, device, inode) = (fields.next()?, fields.next()?, fields.next()?);
    let text = fields.next()?.trim_start();
    if !is_code || !text.starts_with('/') {
        return None;
    }
    let number = |text| u64::from_str_radix(text, 16).ok();
    let path = text.strip_suffix(" (deleted)");
    Some(MappingLine {
        addresses: number(start)?..number(end)?,
        offset: number(offset)?,
        device,
        inode,
        text,
        path: Path::new(path.unwrap_or(text)),
        is_deleted: path.is_some(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, fstat, memfd_create};
    use std::io::{BufRead as _, BufReader};
    use std::process::Stdio;

    #[test]
    fn code_mappings_are_read() {
        let line = "7f00-8000 r-xp 00001000 fe:01 12   /usr/lib/a b.so";
        let found = parse_code_mapping(line).unwrap();
        assert_eq!((found.addresses.clone(), found.offset), (0x7f00..0x8000, 0x1000));
        assert_eq!((found.path, found.is_deleted), (Path::new("/usr/lib/a b.so"), false));
        let deleted_line = format!("{line} (deleted)");
        let deleted = parse_code_mapping(&deleted_line).unwrap();
        assert_eq!((deleted.path, deleted.is_deleted), (found.path, true));
        assert_eq!(deleted.file_key(), found.file_key());
        let other = line.replace(" 12 ", " 13 ");
        assert_ne!(parse_code_mapping(&other).unwrap().file_key(), found.file_key());
        for line in [
            "7f00-8000 r--p 00001000 fe:01 12   /usr/lib/a.so",
            "7f00-8000 r-xp 00000000 00:00 0",
            "7f00-8000 r-xp 00000000 00:00 0    [vdso]",
            "",
        ] {
            assert_eq!(parse_code_mapping(line), None, "{line}");
        }
    }

    #[test]
    fn an_image_is_known_by_its_ring() {
        let ring =
            |inode: u64| format!("7f-80 rw-s 0 00:01 {inode}  /memfd:larder-alloclog (deleted)\n");
        let text = format!("55-56 r-xp 00 fe:01 12 /bin/x\n{}7f-80 rw-p 0 00:00 0\n", ring(7));
        assert!(has_ring(&text, 7));
        assert!(!has_ring(&text, 12) && !has_ring(&text, 0) && !has_ring("", 7));
        // This process has no such ring: it is as one that has begun another program.
        let file = memfd_create("ring", MemfdFlags::CLOEXEC).unwrap();
        let inode = fstat(&file).unwrap().st_ino;
        assert!(ProcessMaps::read(std::process::id(), inode).is_none());
    }

    /// A process whose first thread has ended has the mappings of its other threads.
    #[test]
    fn a_process_without_its_first_thread_has_mappings() {
        let program = "import ctypes, mmap, os, sys, threading\n\
                       ring = os.memfd_create('ring')\n\
                       os.ftruncate(ring, 4096)\n\
                       memory = mmap.mmap(ring, 4096)\n\
                       threading.Thread(target=sys.stdin.read).start()\n\
                       print(os.fstat(ring).st_ino, flush=True)\n\
                       ctypes.CDLL(None).syscall(60, 0)\n";
        let mut command = std::process::Command::new("python3");
        let command = command.args(["-c", program]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let ring = line.trim().parse().unwrap();
        assert!(ProcessMaps::read(child.id(), ring).is_some());
        let stat = format!("/proc/{}/stat", child.id());
        while !std::fs::read_to_string(&stat).unwrap().contains(") Z ") {
            assert_eq!(child.try_wait().unwrap(), None);
            std::thread::yield_now();
        }
        let mut maps = ProcessMaps::read(child.id(), ring).unwrap();
        assert!(maps.has_image());
        drop(child.stdin.take());
        child.wait().unwrap();
        assert!(!maps.has_image() && ProcessMaps::read(child.id(), ring).is_none());
    }

    #[test]
    fn the_mappings_of_an_image_are_gone_with_it() {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        // A program that has just begun has no mappings.
        let mut maps = loop {
            let mut file = File::open(format!("/proc/{}/maps", child.id())).unwrap();
            let text = read_text(&mut file).unwrap();
            if text.lines().any(|line| parse_code_mapping(line).is_some()) {
                break ProcessMaps { file, text };
            }
        };
        assert!(maps.has_image());
        let text = maps.text.clone();
        let line = text.lines().find_map(parse_code_mapping).unwrap();
        assert!(maps.still_has(&line));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!maps.has_image() && !maps.still_has(&line));
    }
}
