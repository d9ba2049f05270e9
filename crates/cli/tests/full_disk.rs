//! A full disk ends an import with exit code 4 and loses nothing that was committed.
//!
//! Each size is a tmpfs in its own mount namespace, which ends with the shell that created it. This
//! needs root privileges or user namespaces. A directory that cannot be written, for whatever
//! reason, can be read and rescued.

use crate::error_messages::as_anybody;
use crate::test_home::{Home, LARDER, Run, cards, components, left_out};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

/// Sizes of the disk in kilobytes: too small for the store itself, then full later and later.
const SIZES: &[u64] = &[64, 400, 1000, 2500, 4000, 6000];
const CONTACTS: u64 = 3000;

/// The script that runs on the disk: $1 is the program, $2 the disk, $3 its size, $4 the file, $5
/// the folder for the output, $6 the collection.
const SCRIPT: &str = r#"
larder=$1 disk=$2 size=$3 book=$4 answers=$5 collection=$6
mount -t tmpfs -o size="$size"k none "$disk" || exit 77
said() { "$larder" --data-dir "$disk/store" "$@"; echo "exit $?"; }
said import "$book" --batch 100 >"$answers/import" 2>&1
said check >"$answers/check" 2>&1
said find --count >"$answers/count" 2>&1
said export "$collection" >"$answers/export" 2>&1
mount -o remount,size=256m "$disk" || exit 78
said check >"$answers/check-with-room" 2>&1
said import "$book" --batch 100 >"$answers/again" 2>&1
said export "$collection" >"$answers/whole" 2>/dev/null
said check >"$answers/check-at-last" 2>&1
"#;

/// Restores on a disk with little room. $1 is the program, $2 the disk, $4 the file, $5 the folder
/// for the output; the others are not used. Each attempt has 64 KB and half as much again more than
/// the last one.
const RESTORE_SCRIPT: &str = r#"
larder=$1 disk=$2 book=$4 answers=$5
mount -t tmpfs -o size=64m none "$disk" || exit 77
said() { "$larder" --data-dir "$disk/store" "$@"; echo "exit $?"; }
names() { ls "$disk/store" | grep -v -e '-wal$' -e '-shm$'; }
said import "$book" >"$answers/import" 2>&1
said backup "$answers/backup.db" >"$answers/backup" 2>&1
said remove --query email:a >"$answers/remove" 2>&1
said find --count >"$answers/count" 2>&1
names >"$answers/names"
used=$(du -sk "$disk" | cut -f1)
room=64 attempt=0
while [ $room -lt 40000 ]; do
	mount -o remount,size=$((used + room))k "$disk" || exit 78
	said restore "$answers/backup.db" >"$answers/restore-$attempt" 2>&1
	names >"$answers/names-$attempt"
	mount -o remount,size=64m "$disk" || exit 78
	said find --count >"$answers/count-$attempt" 2>&1
	said check >"$answers/check-$attempt" 2>&1
	grep -q '^exit 0' "$answers/restore-$attempt" && break
	attempt=$((attempt + 1)) room=$((room * 3 / 2))
done
"#;

/// Runs a script in a mount namespace of its own.
pub fn on_a_disk(home: &Home, script: &str, size: u64, file: &str, collection: &str) -> Run {
    for name in ["disk", "answers"] {
        std::fs::create_dir_all(home.work(name)).unwrap();
    }
    let mut command = home.program("unshare");
    let root = std::fs::metadata("/proc/self")
        .is_ok_and(|me| std::os::unix::fs::MetadataExt::uid(&me) == 0);
    if !root {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--mount", "/bin/sh", "-c", script, "sh", LARDER]);
    command.arg(home.work("disk")).arg(size.to_string());
    command.arg(home.work(file)).arg(home.work("answers")).arg(collection);
    match command.output() {
        Ok(output) => home.finish(output),
        Err(error) => {
            let text = error.to_string().into_bytes();
            let mut run = home.run(&["--version"]);
            (run.code, run.err) = (77, text);
            run
        }
    }
}

#[test]
fn a_disk_that_fills_up() {
    check_full_disk("book.vcf", "contacts", cards, SIZES);
}

/// Includes zones and an interval index in the same transactions.
#[test]
fn a_disk_that_fills_up_with_a_calendar() {
    check_full_disk("book.ics", "Calendar", components, &SIZES[1..4]);
}

fn check_full_disk(file: &str, collection: &str, items: fn(&[u8]) -> Vec<Vec<u8>>, sizes: &[u64]) {
    for &size in sizes {
        let home = Home::new();
        match file.ends_with(".vcf") {
            true => home.generate(file, CONTACTS, 11),
            false => home.generate_calendar(file, CONTACTS, 11),
        };
        let run = on_a_disk(&home, SCRIPT, size, file, collection);
        if run.code != 0 {
            let why = run.stderr();
            return left_out("full disk", &format!("cannot mount a tmpfs ({})", why.trim()));
        }
        let answer = |name: &str| std::fs::read(home.work("answers").join(name)).unwrap();
        let text = |name: &str| String::from_utf8_lossy(&answer(name)).into_owned();
        let import = text("import");
        assert!(import.ends_with("exit 4\n"), "{size} kB: {import}");
        assert!(
            import.contains("error: no space left on the disk that holds "),
            "{size} kB: {import}"
        );
        assert!(import.contains("\nhint: committed changes are safe"), "{size} kB: {import}");
        let check = text("check-with-room");
        let none = check.contains("no store in") && check.ends_with("exit 1\n");
        assert!(none || check.starts_with("OK: "), "{size} kB: {check}");
        // While the disk was full, the store had complete batches of the file.
        let count = text("count");
        if !count.contains("no store in") {
            let found: u64 = count.lines().next().unwrap().parse().expect(&count);
            assert!(found.is_multiple_of(100), "{size} kB: {found} items");
            let kept = items(&answer("export"));
            assert_eq!(kept.len() as u64, found, "{size} kB");
        }
        assert!(text("again").ends_with("exit 0\n"), "{size} kB: {}", text("again"));
        assert!(text("check-at-last").starts_with("OK: "), "{size} kB: {}", text("check-at-last"));
        let original = items(&std::fs::read(home.work(file)).unwrap());
        assert!(items(&answer("whole")) == original, "{size} kB: the export differs");
    }
}

/// A restore that does not fit leaves the store as it was, and no file that takes room.
#[test]
fn a_disk_that_is_too_small_for_a_restore() {
    let home = Home::new();
    home.generate("book.vcf", 1000, 12);
    let run = on_a_disk(&home, RESTORE_SCRIPT, 0, "book.vcf", "contacts");
    if run.code != 0 {
        let why = run.stderr();
        return left_out("restore on a full disk", &format!("cannot mount a tmpfs ({why})"));
    }
    let answer = |name: &str| {
        std::fs::read_to_string(home.work("answers").join(name)).expect(name).trim().to_string()
    };
    let (names, count) = (answer("names"), answer("count"));
    let mut failed = 0;
    for attempt in 0.. {
        let restore = answer(&format!("restore-{attempt}"));
        let check = answer(&format!("check-{attempt}"));
        assert!(check.starts_with("OK: "), "{attempt}: {check}");
        if restore.ends_with("exit 0") {
            assert_ne!(answer(&format!("count-{attempt}")), count);
            break;
        }
        assert!(restore.contains("error: no space left on the disk"), "{attempt}: {restore}");
        assert!(restore.ends_with("exit 4"), "{attempt}: {restore}");
        assert_eq!(answer(&format!("names-{attempt}")), names, "{attempt}");
        assert_eq!(answer(&format!("count-{attempt}")), count, "{attempt}");
        failed += 1;
    }
    assert!(failed > 3, "only {failed} disks were too small");
}

/// Operations of an index are not in the log.
#[test]
fn a_failed_synchronisation_names_no_operation() {
    if !std::path::Path::new("/dev/full").exists() {
        return left_out("output that cannot be written", "there is no /dev/full");
    }
    let home = Home::new();
    home.write("Mail/cur/1:2,S", "Message-ID: <1@x>\nSubject: a\n\nb\n");
    home.ok(&["sources", "add", "Mail"]);
    let run = home.shell("larder sync >/dev/full");
    assert_eq!(run.code, 5, "{}", run.stderr());
    assert!(!run.stderr().contains("operation"), "{}", run.stderr());
}

/// The copy of labels in the index of mail has operations of its own, with other numbers.
#[test]
fn a_failed_change_of_labels_names_its_operation() {
    if !std::path::Path::new("/dev/full").exists() {
        return left_out("output that cannot be written", "there is no /dev/full");
    }
    let home = Home::new();
    home.write("Mail/cur/1:2,S", "Message-ID: <1@x>\nSubject: a\n\nb\n");
    home.ok(&["sources", "add", "Mail"]);
    home.ok(&["sync"]);
    for (verb, operation) in [("edit mid:1@x --label +tax", 2), ("undo 2", 3)] {
        let run = home.shell(&format!("larder {verb} >/dev/full"));
        assert_eq!(run.code, 5, "{verb}: {}", run.stderr());
        let named = format!("operation {operation}");
        assert!(run.stderr().contains(&named), "{verb}: {}", run.stderr());
    }
    home.ok(&["edit", "mid:1@x", "--label", "+late"]);
    let found = home.shell("larder find label:late >/dev/full");
    assert!(!found.stderr().contains("operation"), "{}", found.stderr());
}

/// Writes standard output to /dev/full.
#[test]
fn output_that_cannot_be_written() {
    let home = Home::with_book();
    if !std::path::Path::new("/dev/full").exists() {
        return left_out("output that cannot be written", "there is no /dev/full");
    }
    for verb in ["find", "export contacts", "fields", "find --format json", "man", "log"] {
        let run = home.shell(&format!("larder {verb} >/dev/full"));
        assert_eq!(run.code, 5, "{verb}: {}", run.masked_output());
        assert!(run.stderr().contains("no space left"), "{verb}: {}", run.masked_output());
    }
}

/// Reads a store on a disk without room, and then on one that is read-only: $1 is the program, $2
/// the disk, $3 its file system, $4 a file, $5 a folder on another disk.
const READING_SCRIPT: &str = r#"
larder=$1 disk=$2 system=$3 book=$4 other=$5
if [ "$system" = tmpfs ]; then mount -t tmpfs -o size=8m none "$disk" || exit 77
else
    truncate -s 8m "$other/image" && mkfs.ext4 -q -m 0 -b 1024 -F "$other/image" || exit 77
    mount -o loop "$other/image" "$disk" || exit 77
fi
trap 'umount "$disk"' EXIT
said() { timeout 120 "$larder" --quiet --data-dir "$disk/store" "$@" 2>&1; echo "exit $?"; }
fill() { rm -f "$disk/fill"; dd if=/dev/zero of="$disk/fill" bs=1k 2>/dev/null; truncate -s "-$1k" "$disk/fill"; sync; }
read_all() {
    said find anna; said show uid:a; said agenda 2026-06-01; said log --format json
    said export contacts; said check; said watch --changes 0 anna
    rm -f "$other/backup.db"; said backup "$other/backup.db"
    rm -f "$other/salvaged.db"; said salvage "$other/salvaged.db"
    rm -f "$other"/*.db
    "$larder" --data-dir "$disk/store" backup - >"$other/stream.db"; echo "exit $?"
    "$larder" --data-dir "$disk/store" salvage - >"$other/saved.db"; echo "exit $?"
    for copy in stream saved; do
        rm -rf "$other/copy"; "$larder" --data-dir "$other/copy" restore "$other/$copy.db"; echo "exit $?"
        "$larder" --data-dir "$other/copy" find anna; echo "exit $?"
    done
}
said import "$book"
echo "= full"; fill 0; read_all
for free in 0 4 8 12 16 24 32 48 64 96 128 160; do
    fill $free; echo "= $free kB free"; said find anna; said add --kind event "x 2026-06-01 12:30"
done
rm -f "$disk/fill"; said add --kind event "y 2026-06-01 12:30"
mount -o remount,ro "$disk" || exit 77
echo "= read-only"; read_all; said add --kind event "z 2026-06-01 12:30"
mount -o remount,rw "$disk" && rm -f "$disk"/store/data.db-* && mount -o remount,ro "$disk" || exit 77
echo "= closed"; read_all
mount -o remount,rw "$disk" && rm "$disk"/store/data.[ln]* && mount -o remount,ro "$disk" || exit 77
echo "= alone"; read_all
mount -o remount,rw "$disk" && cp "$disk/store/data.db" "$other/old" || exit 77
said add --kind event "w 2026-06-01 12:30"
cp "$other/old" "$disk/store/data.db" && rm -f "$disk"/store/data.db-* || exit 77
mount -o remount,ro "$disk" || exit 77
echo "= behind"; said find anna; said check; said backup "$other/behind.db"
"#;

fn check_reading(file_system: &str) {
    let home = Home::new();
    home.write("book.vcf", b"BEGIN:VCARD\r\nVERSION:3.0\r\nUID:a\r\nFN:Anna\r\nEND:VCARD\r\n");
    for name in ["disk", "other"] {
        std::fs::create_dir_all(home.work(name)).unwrap();
    }
    let mut command = home.program("unshare");
    command.args(["--mount", "/bin/sh", "-c", READING_SCRIPT, "sh", LARDER]);
    command.arg(home.work("disk")).arg(file_system);
    command.arg(home.work("book.vcf")).arg(home.work("other"));
    let left_out = |why: &str| left_out(&format!("reading on {file_system}"), why);
    let run = match command.output() {
        Ok(output) => home.finish(output),
        Err(error) => return left_out(&error.to_string()),
    };
    if run.code != 0 {
        return left_out(&format!("cannot mount it ({})", run.stderr().trim()));
    }
    let text = run.stdout();
    for part in text.split("= ").skip(1) {
        let (name, part) = part.split_once('\n').unwrap();
        let exits: Vec<&str> = part.lines().filter_map(|line| line.strip_prefix("exit ")).collect();
        if name.ends_with("free") {
            assert!(matches!(exits[..], ["0", "0" | "4", ..]), "{file_system}, {name}: {part}");
            continue;
        }
        if name == "behind" {
            // An older database, as without the log that had the last batch.
            assert_eq!(exits, ["0", "4", "4"], "{file_system}, {name}: {part}");
            assert!(part.contains("1 committed batch is missing"), "{name}: {part}");
            continue;
        }
        let agenda = if name == "full" { "1" } else { "0" };
        let reads = ["0", "0", agenda, "0", "0", "0", "0", "0", "0"];
        let copies = ["0"; 6];
        assert_eq!(exits[..9], reads, "{file_system}, {name}: {part}");
        assert_eq!(exits[9..15], copies, "{file_system}, {name}: {part}");
        assert!(part.contains("Anna") && part.contains("OK: "), "{name}: {part}");
        if name == "read-only" {
            assert!(part.contains("is on a read-only file system"), "{part}");
            assert_eq!(exits[15..], ["4"]);
        }
    }
    assert_eq!(text.matches("= ").count(), 17, "{text}");
}

#[test]
fn a_disk_without_room_can_be_read() {
    check_reading("tmpfs");
}

/// With small blocks, the shared memory may have blocks that the disk does not.
#[test]
fn a_disk_of_small_blocks_can_be_read() {
    check_reading("ext4 of 1 KiB blocks");
}

/// A user who may read a store, but not write it, can rescue it.
#[test]
fn a_directory_without_write_permission_is_salvaged() {
    let home = Home::with_book();
    for name in ["", "data.db", "data.db-wal", "data.db-shm", "data.lock", "data.notify"] {
        let path = home.data().join(name);
        let mode = if name.is_empty() { 0o555 } else { 0o444 };
        if path.exists() {
            std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
    }
    for dir in home.data().ancestors().skip(1).take_while(|dir| *dir != home.path()) {
        std::fs::set_permissions(dir, Permissions::from_mode(0o755)).unwrap();
    }
    std::fs::set_permissions(home.temporary(), Permissions::from_mode(0o777)).unwrap();
    let Some(run) = as_anybody(&home, &["salvage", "-"]) else {
        return left_out("salvage without write permission", "there is no setpriv");
    };
    std::fs::set_permissions(home.data(), Permissions::from_mode(0o755)).unwrap();
    assert_eq!(run.code, 0, "{}", run.stderr());
    home.write("saved.db", &run.out);
    home.ok(&["--data-dir", "copy", "restore", "saved.db"]);
    assert_eq!(home.ok(&["--data-dir", "copy", "find", "--count"]), "3\n");
    assert_eq!(std::fs::read_dir(home.temporary()).unwrap().count(), 0);
}
