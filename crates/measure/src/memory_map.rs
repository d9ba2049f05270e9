//! The memory of a process by mapping, as `/proc/PID/smaps` tells it: files, heap, stacks.
//!
//! Separate from `memory_timeline`, which samples a tree of processes over time, because reading a
//! map walks the page tables, which takes about 90 ns for each resident page and holds up the
//! process that is measured. It is read where the memory has grown.

use crate::process_cost::read_memory_file;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;

/// Bytes of memory, by the ways to count it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct MemoryBytes {
    /// Mapped addresses, resident or not (VMS).
    pub mapped: u64,
    /// Resident, clean: can be read again from its file.
    pub resident_clean: u64,
    /// Resident, dirty: has to be kept.
    pub resident_dirty: u64,
    /// Resident in this process only (USS).
    pub private: u64,
    /// Resident and shared with other processes.
    pub shared: u64,
    /// Resident, shared pages divided by the number of their processes (PSS).
    pub proportional: u64,
    /// On the swap device.
    pub swapped: u64,
}

impl MemoryBytes {
    /// Returns resident bytes (RSS).
    #[must_use]
    pub fn resident(&self) -> u64 {
        self.resident_clean + self.resident_dirty
    }

    /// Adds the bytes of another.
    pub(crate) fn add(&mut self, other: &MemoryBytes) {
        self.mapped += other.mapped;
        self.resident_clean += other.resident_clean;
        self.resident_dirty += other.resident_dirty;
        self.private += other.private;
        self.shared += other.shared;
        self.proportional += other.proportional;
        self.swapped += other.swapped;
    }

    /// Adds the value of a line of `smaps` or `smaps_rollup`.
    fn add_line(&mut self, name: &str, bytes: u64) {
        match name {
            "Size" => self.mapped += bytes,
            "Pss" => self.proportional += bytes,
            "Shared_Clean" | "Private_Clean" => self.resident_clean += bytes,
            "Shared_Dirty" | "Private_Dirty" => self.resident_dirty += bytes,
            "Swap" => self.swapped += bytes,
            _ => {}
        }
        match name {
            "Shared_Clean" | "Shared_Dirty" => self.shared += bytes,
            "Private_Clean" | "Private_Dirty" => self.private += bytes,
            _ => {}
        }
    }
}

/// The memory of one or more processes, by the names of their mappings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct MemoryMap {
    /// Bytes of all mappings of each name: a path, `[heap]`, `[stack]`, `[anonymous]`.
    pub mappings: BTreeMap<String, MemoryBytes>,
}

impl MemoryMap {
    /// Reads the map of a process.
    ///
    /// # Errors
    /// The process has ended, or belongs to somebody else.
    pub fn read(pid: u32) -> io::Result<MemoryMap> {
        read_memory_file(pid, "smaps", |text| {
            Some(MemoryMap::parse(text)).filter(|map| !map.mappings.is_empty())
        })
    }

    /// Parses the text of `smaps`. Lines that are not understood are left out.
    #[must_use]
    pub fn parse(text: &str) -> MemoryMap {
        let mut map = MemoryMap::default();
        let mut current: Option<&mut MemoryBytes> = None;
        for line in text.lines() {
            match parse_value(line) {
                Some((name, bytes)) => {
                    if let Some(current) = &mut current {
                        current.add_line(name, bytes);
                    }
                }
                None => {
                    if let Some(name) = mapping_name(line) {
                        current = Some(map.mappings.entry(name).or_default());
                    }
                }
            }
        }
        map
    }

    /// Adds the mappings of another process.
    pub fn add(&mut self, other: MemoryMap) {
        for (name, bytes) in other.mappings {
            self.mappings.entry(name).or_default().add(&bytes);
        }
    }

    /// Returns the sum of all mappings.
    #[must_use]
    pub fn total(&self) -> MemoryBytes {
        let mut total = MemoryBytes::default();
        self.mappings.values().for_each(|bytes| total.add(bytes));
        total
    }

    /// Returns the mappings, those with the most proportional memory first.
    #[must_use]
    pub fn largest(&self) -> Vec<(&str, &MemoryBytes)> {
        let mut mappings: Vec<_> =
            self.mappings.iter().map(|(name, bytes)| (name.as_str(), bytes)).collect();
        mappings.sort_by_key(|(name, bytes)| (std::cmp::Reverse(bytes.proportional), *name));
        mappings
    }
}

/// Reads the sums over all mappings of a process, which is cheaper than its map.
///
/// # Errors
/// The process has ended, or belongs to somebody else.
pub fn read_memory_sums(pid: u32) -> io::Result<MemoryBytes> {
    read_memory_file(pid, "smaps_rollup", |text| {
        let mut sums = MemoryBytes::default();
        for (name, bytes) in text.lines().filter_map(parse_value) {
            sums.add_line(name, bytes);
        }
        Some(sums).filter(|sums| sums.resident() > 0)
    })
}

/// Parses a line such as `Rss:  12 kB`.
fn parse_value(line: &str) -> Option<(&str, u64)> {
    let (name, value) = line.split_once(':')?;
    let number = value.trim().strip_suffix(" kB")?.parse::<u64>().ok()?;
    Some((name, number * 1024))
}

/// Returns the name in the first line of a mapping: addresses, rights, offset, device, inode, path.
fn mapping_name(line: &str) -> Option<String> {
    let mut words = line.split_ascii_whitespace();
    let (range, rights) = (words.next()?, words.next()?);
    if !range.contains('-') || rights.len() != 4 {
        return None;
    }
    // A path may contain blanks: it is the rest after the inode.
    let rest = (0..5).try_fold(line, |rest, _| {
        let rest = rest.trim_start();
        Some(&rest[rest.find(' ')?..])
    });
    match rest.map(str::trim).unwrap_or_default() {
        "" => Some("[anonymous]".into()),
        name => Some(name.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
55d0-55d4 r--p 00000000 fe:00 1234                       /usr/bin/a program
Size:                 16 kB
KernelPageSize:        4 kB
Rss:                  12 kB
Pss:                   6 kB
Shared_Clean:          8 kB
Shared_Dirty:          0 kB
Private_Clean:         4 kB
Private_Dirty:         0 kB
Swap:                  0 kB
VmFlags: rd mr mw me sd
7f00-7f10 rw-p 00000000 00:00 0
Size:                 64 kB
Rss:                  20 kB
Pss:                  20 kB
Private_Dirty:        20 kB
Swap:                  4 kB
";

    #[test]
    fn mappings_are_summed_by_name() {
        let map = MemoryMap::parse(&format!("{SMAPS}{SMAPS}"));
        let program = map.mappings["/usr/bin/a program"];
        let expected = MemoryBytes {
            mapped: 2 * 16_384,
            resident_clean: 2 * 12_288,
            resident_dirty: 0,
            private: 2 * 4_096,
            shared: 2 * 8_192,
            proportional: 2 * 6_144,
            swapped: 0,
        };
        assert_eq!(program, expected);
        assert_eq!(map.mappings["[anonymous]"].resident_dirty, 2 * 20_480);
        assert_eq!(map.mappings.len(), 2);
        assert_eq!(map.largest()[0].0, "[anonymous]");
        assert_eq!(map.total().resident(), 2 * 32_768);
    }

    #[test]
    fn the_map_of_this_process_has_its_program_and_its_sums() {
        let map = MemoryMap::read(std::process::id()).unwrap();
        let program = std::env::current_exe().unwrap();
        assert!(map.mappings.contains_key(program.to_str().unwrap()));
        assert!(map.mappings["[heap]"].private > 0);
        let sums = read_memory_sums(std::process::id()).unwrap();
        assert!(sums.private > 0 && sums.proportional >= sums.private / 2);
    }
}
