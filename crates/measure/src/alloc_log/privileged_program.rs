//! Programs with rights of their own (setuid, setgid, capabilities): the loader loads no other
//! library into them.

use super::static_program::find_program;
use crate::process_cost::read_proc_file;
use rustix::fs::getxattr;
use rustix::process::{getgid, getuid};
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The mode of a program that runs with the rights of its owner.
const SETUID: u32 = 0o4000;
/// The mode of one with the rights of its group; without the right to execute, it is for locks.
const SETGID: u32 = 0o2010;
/// The entry of the auxiliary vector that tells the loader to be careful.
const ENTRY_SECURE: u64 = 23;

/// Returns whether a command, found in the folders of `PATH`, gets other rights than this process
/// has. `false` if it is not known.
#[must_use]
pub fn is_privileged_program(program: &OsStr, folders: &OsStr) -> bool {
    find_program(program, folders).is_some_and(|path| has_own_rights(&path))
}

fn has_own_rights(path: &Path) -> bool {
    let Ok(found) = std::fs::metadata(path) else { return false };
    let (mode, user, group) = (found.mode(), getuid(), getgid());
    let is_setuid = mode & SETUID == SETUID && found.uid() != user.as_raw();
    let is_setgid = mode & SETGID == SETGID && found.gid() != group.as_raw();
    let has_capabilities =
        || !user.is_root() && getxattr(path, "security.capability", &mut [0; 64]).is_ok();
    is_setuid || is_setgid || has_capabilities()
}

/// Returns whether a process has got rights by its program.
pub(super) fn is_privileged_process(pid: u32) -> bool {
    match std::fs::read(format!("/proc/{pid}/auxv")) {
        Ok(vector) => is_secure(&vector),
        // This may be read with the rights of the process only.
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            let status = |pid: u32| read_proc_file(pid, "status").ok();
            let (own, other) = (status(std::process::id()), status(pid));
            own.zip(other).is_some_and(|(own, other)| has_other_rights(&own, &other))
        }
        Err(_) => false,
    }
}

/// Returns whether an auxiliary vector, of pairs of numbers of 64 bits, tells of other rights.
fn is_secure(vector: &[u8]) -> bool {
    let is_entry = |entry: &[u8]| entry.starts_with(&ENTRY_SECURE.to_le_bytes());
    let entry = vector.chunks_exact(16).find(|entry| is_entry(entry));
    entry.is_some_and(|entry| entry.iter().skip(8).any(|byte| *byte != 0))
}

/// Returns whether a process with a `status` has a user, a group or a capability that another one
/// lacks.
fn has_other_rights(own: &str, other: &str) -> bool {
    let field = |text: &str, name: &str| -> Option<String> {
        text.lines().find_map(|line| line.strip_prefix(name)).map(|rest| rest.trim().to_string())
    };
    let has_other = |name: &str| {
        let Some((own, other)) = field(own, name).zip(field(other, name)) else { return false };
        let own: Vec<&str> = own.split_ascii_whitespace().collect();
        other.split_ascii_whitespace().any(|id| !own.contains(&id))
    };
    let capabilities = |text: &str| u64::from_str_radix(&field(text, "CapPrm:")?, 16).ok();
    let has_more =
        capabilities(own).zip(capabilities(other)).is_some_and(|(own, other)| other & !own != 0);
    has_other("Uid:") || has_other("Gid:") || has_more
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn programs_with_own_rights_are_known_by_their_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("program");
        std::fs::write(&path, "").unwrap();
        let is_privileged = |mode| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            is_privileged_program(path.as_os_str(), OsStr::new(""))
        };
        // These are the rights of this process.
        assert!(!is_privileged(0o755) && !is_privileged(0o6755));
        if getuid().is_root() {
            std::os::unix::fs::chown(&path, Some(65534), Some(65534)).unwrap();
            assert!(is_privileged(0o4755) && is_privileged(0o2755));
            assert!(!is_privileged(0o755) && !is_privileged(0o2745));
        }
        assert!(!is_privileged_program(OsStr::new("/no/such/program"), OsStr::new("")));
    }

    #[test]
    fn rights_of_processes_are_compared() {
        assert!(!is_privileged_process(std::process::id()));
        let vector = |value: u64| [6, 4096, 23, value, 0, 0].map(u64::to_le_bytes).concat();
        assert!(is_secure(&vector(1)) && !is_secure(&vector(0)) && !is_secure(&[23, 0]));
        let status = |user: &str, group: &str, capabilities: &str| {
            format!("Name:\tx\nUid:\t{user}\nGid:\t{group}\nCapPrm:\t{capabilities}\n")
        };
        let own = status("7\t7\t7\t7", "8\t8\t8\t8", "0000000000000001");
        assert!(!has_other_rights(&own, &own));
        assert!(has_other_rights(&own, &status("7\t0\t0\t0", "8\t8\t8\t8", "0")));
        assert!(has_other_rights(&own, &status("7\t7\t7\t7", "8\t9\t9\t9", "0")));
        assert!(has_other_rights(&own, &status("7\t7\t7\t7", "8\t8\t8\t8", "3")));
        assert!(!has_other_rights(&own, "") && !has_other_rights("", &own));
    }
}
