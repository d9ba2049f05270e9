//! A private home for every test, and functions to run the program in it. Contains no test.
//!
//! The machine does not influence the program: its environment has only the variables set here.
//! Parts of the output that differ between runs (the home's path, times, random names) are masked.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Once};

/// A home directory with a working directory in it; both are deleted with the value.
pub struct Home {
    dir: tempfile::TempDir,
}

/// The result of a run of the program.
pub struct Run {
    /// The exit code; -1 if a signal ended it.
    pub code: i32,
    /// Standard output.
    pub out: Vec<u8>,
    /// Standard error.
    pub err: Vec<u8>,
    home: PathBuf,
}

/// The program under test.
pub const LARDER: &str = env!("CARGO_BIN_EXE_larder");

/// A card as a phone writes it.
pub const ANNA: &str = "BEGIN:VCARD\r\nVERSION:3.0\r\nUID:anna-1\r\nFN:Anna Hölderlin\r\n\
    N:Hölderlin;Anna;;;\r\nEMAIL;TYPE=HOME:anna@example.org\r\nTEL;TYPE=CELL:+49 30 1234567\r\n\
    ORG:Orchard Works\r\nX-KEEP;X-ODD=1:as it is\r\nEND:VCARD\r\n";
/// A card without an e-mail address.
pub const BRUNO: &str = "BEGIN:VCARD\r\nVERSION:4.0\r\nUID:bruno-2\r\nFN:Bruno Álvarez\r\n\
    N:Álvarez;Bruno;;;\r\nTEL;TYPE=home:030 765-43-21\r\nEND:VCARD\r\n";
/// A card without a UID, in the oldest version.
pub const CHLOE: &str = "BEGIN:VCARD\r\nVERSION:2.1\r\nN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:Dupont;Chlo=C3=A9\r\n\
    FN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:Chlo=C3=A9 Dupont\r\n\
    EMAIL;INTERNET:chloe@example.com\r\nEND:VCARD\r\n";

/// Done before the first program starts.
static DEFAULT_SIGNALS: Once = Once::new();

/// Catches the signals that tests send to the program, if they are ignored, as behind `&` of a
/// shell or under `nohup`: the program would inherit that. A caught signal has its default effect
/// in a program that is begun.
fn catch_ignored_signals() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    let mask = u64::from_str_radix(mask.trim(), 16).unwrap();
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        if (mask >> (signal - 1)) & 1 == 1 {
            signal_hook::flag::register(signal, Arc::default()).unwrap();
        }
    }
}

impl Home {
    pub fn new() -> Home {
        DEFAULT_SIGNALS.call_once(catch_ignored_signals);
        let dir = tempfile::Builder::new().prefix("larder-test-").tempdir().unwrap();
        for name in ["home", "work", "tmp"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        Home { dir }
    }

    /// Creates a home whose store holds the three cards.
    pub fn with_book() -> Home {
        let home = Home::new();
        home.write("book.vcf", [ANNA, BRUNO, CHLOE].concat());
        home.ok(&["import", "book.vcf"]);
        home
    }

    /// Returns the root of the private directories.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Returns a path in the working directory.
    pub fn work(&self, name: &str) -> PathBuf {
        self.dir.path().join("work").join(name)
    }

    /// Returns the default directory of the store.
    pub fn data(&self) -> PathBuf {
        self.dir.path().join("home/.local/share/larder")
    }

    /// Returns the directory for temporary files.
    pub fn temporary(&self) -> PathBuf {
        self.dir.path().join("tmp")
    }

    /// Writes a file in the working directory.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.work(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// Writes a file of generated contacts in the working directory.
    pub fn generate(&self, name: &str, number: u64, seed: u64) -> PathBuf {
        let mut bytes = Vec::new();
        larder_generate::write_contacts(number, seed, &mut bytes).unwrap();
        self.write(name, bytes)
    }

    /// Writes a generated calendar in the working directory.
    pub fn generate_calendar(&self, name: &str, number: u64, seed: u64) -> PathBuf {
        let mut bytes = Vec::new();
        larder_generate::write_calendar(number, seed, false, &mut bytes).unwrap();
        self.write(name, bytes)
    }

    /// Writes the configuration file.
    pub fn configure(&self, text: &str) {
        let dir = self.dir.path().join("home/.config/larder");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("config.toml"), text).unwrap();
    }

    /// Returns a command for any program in this home.
    pub fn program(&self, program: impl AsRef<OsStr>) -> Command {
        let home = self.dir.path().join("home");
        let mut command = Command::new(program);
        command.env_clear().current_dir(self.dir.path().join("work")).stdin(Stdio::null());
        // A coverage run collects the profiles of child processes through LLVM_PROFILE_FILE.
        for kept in ["PATH", "LLVM_PROFILE_FILE"] {
            if let Some(value) = std::env::var_os(kept) {
                command.env(kept, value);
            }
        }
        command
            .env("HOME", &home)
            .env("XDG_DATA_HOME", home.join(".local/share"))
            .env("XDG_CONFIG_HOME", home.join(".config"))
            .env("XDG_STATE_HOME", home.join(".local/state"))
            .env("XDG_CACHE_HOME", home.join(".cache"))
            .env("TMPDIR", self.temporary())
            .env("TZ", "UTC")
            .env("LC_ALL", "C.UTF-8");
        command
    }

    /// Returns a command for the program under test.
    pub fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = self.program(LARDER);
        command.args(args);
        command
    }

    /// Runs the program to its end.
    pub fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Run {
        self.finish(self.command(args).output().unwrap())
    }

    /// Runs the program with this standard input.
    pub fn run_with(&self, args: &[&str], input: &[u8]) -> Run {
        let mut child = self.spawn(self.command(args).stdin(Stdio::piped()));
        // A program that rejects its arguments ends before it reads.
        let _left_early = child.stdin.take().unwrap().write_all(input);
        self.finish(child.wait_with_output().unwrap())
    }

    /// Runs a shell script in which the program is `larder`.
    pub fn shell(&self, script: &str) -> Run {
        let mut command = self.program("/bin/sh");
        let bin = Path::new(LARDER).parent().unwrap().to_str().unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        command.arg("-c").arg(script).env("PATH", format!("{bin}:{path}"));
        self.finish(command.output().unwrap())
    }

    /// Starts a command with captured output.
    pub fn spawn(&self, command: &mut Command) -> Child {
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Returns the result of a finished process.
    pub fn finish(&self, output: Output) -> Run {
        let home = self.dir.path().to_path_buf();
        Run {
            code: output.status.code().unwrap_or(-1),
            out: output.stdout,
            err: output.stderr,
            home,
        }
    }

    /// Runs the program, which must succeed, and returns its standard output.
    #[track_caller]
    pub fn ok(&self, args: &[&str]) -> String {
        let run = self.run(args);
        assert_eq!(run.code, 0, "larder {args:?}\n{}", run.masked_output());
        run.stdout()
    }

    /// Runs the program, which must end with this exit code.
    #[track_caller]
    pub fn code(&self, args: &[&str], code: i32) -> Run {
        let run = self.run(args);
        assert_eq!(run.code, code, "larder {args:?}\n{}", run.masked_output());
        run
    }

    /// Returns the objects that the program prints with `--format json`.
    #[track_caller]
    pub fn json(&self, args: &[&str]) -> Vec<serde_json::Value> {
        let text = self.ok(&[&["--format", "json"], args].concat());
        text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }

    /// Fails unless `larder check` finds no damage.
    #[track_caller]
    pub fn assert_store_is_sound(&self) {
        let run = self.run(&["check"]);
        assert!(run.code == 0 && run.stdout().starts_with("OK: "), "{}", run.masked_output());
    }
}

impl Run {
    /// Returns standard output as text.
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.out).into_owned()
    }

    /// Returns standard error as masked text.
    pub fn stderr(&self) -> String {
        mask(&String::from_utf8_lossy(&self.err), &self.home)
    }

    /// Returns all output, masked: standard output, then standard error with `! ` before each line,
    /// then the exit code unless it is 0.
    pub fn masked_output(&self) -> String {
        let mut shown = mask(&self.stdout(), &self.home);
        for line in self.stderr().lines() {
            shown.push_str(&format!("! {line}\n"));
        }
        if self.code != 0 {
            shown.push_str(&format!("exit {}\n", self.code));
        }
        shown
    }
}

/// Replaces the home's path by `[HOME]` and times by `[TIME]`.
pub fn mask(text: &str, home: &Path) -> String {
    let text = text.replace(home.to_str().unwrap(), "[HOME]");
    let mut masked = String::new();
    let mut rest = text.as_str();
    while let Some(c) = rest.chars().next() {
        let moment = "dddd-dd-dd dd:dd:dd";
        if rest.len() >= moment.len() && has_shape(&rest.as_bytes()[..moment.len()], moment) {
            masked.push_str("[TIME]");
            rest = &rest[moment.len()..];
        } else {
            masked.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    masked
}

/// Returns whether the text has this shape, where `d` is any digit.
fn has_shape(text: &[u8], shape: &str) -> bool {
    text.iter().zip(shape.bytes()).all(|(byte, shape)| match shape {
        b'd' => byte.is_ascii_digit(),
        _ => *byte == shape,
    })
}

/// Reports that a test was left out on this machine, and why. It fails if all tests are required
/// (`LARDER_REQUIRE_ALL=1`, as in continuous integration).
#[track_caller]
pub fn left_out(name: &str, why: &str) {
    assert!(!are_all_required(), "{name} is required here: {why}");
    say_left_out(&format!("left out: {name}: {why}"));
}

/// Reports missing corpora, which are not part of the project and never required.
pub fn no_corpora(name: &str) {
    say_left_out(&format!("left out: {name} (no corpora; set LARDER_CORPORA)"));
}

fn are_all_required() -> bool {
    std::env::var("LARDER_REQUIRE_ALL").is_ok_and(|value| value == "1")
}

/// Prints a line on standard error and appends it to the file in `LARDER_LEFT_OUT`, as a test
/// runner may hide standard error.
fn say_left_out(line: &str) {
    eprintln!("{line}");
    if let Some(path) = std::env::var_os("LARDER_LEFT_OUT").filter(|_| !are_all_required()) {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        file.and_then(|mut file| writeln!(file, "{line}")).unwrap();
    }
}

/// Returns the number of repetitions: that of the variable, else the default.
pub fn times(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Pseudo-random numbers (SplitMix64) from a seed, which a failing test prints.
pub struct Random(pub u64);

impl Random {
    pub fn next_below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end.max(1)
    }
}

/// Returns the sorted cards of a file in which each begins and ends on a line of its own.
pub fn cards(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut cards = Vec::new();
    let mut card = Vec::new();
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        card.extend_from_slice(line);
        if line.trim_ascii_end().eq_ignore_ascii_case(b"END:VCARD") {
            cards.push(std::mem::take(&mut card));
        }
    }
    cards.sort();
    cards
}

/// Returns the sorted events, tasks and memos of a calendar in which each begins and ends on a line
/// of its own.
pub fn components(bytes: &[u8]) -> Vec<Vec<u8>> {
    let kinds: [&[u8]; 3] = [b"VEVENT", b"VTODO", b"VJOURNAL"];
    let (mut components, mut component, mut inside) = (Vec::new(), Vec::new(), false);
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        let is = |word: &[u8]| {
            line.trim_ascii_end().strip_prefix(word).is_some_and(|kind| kinds.contains(&kind))
        };
        inside |= is(b"BEGIN:");
        if inside {
            component.extend_from_slice(line);
        }
        if is(b"END:") {
            components.push(std::mem::take(&mut component));
            inside = false;
        }
    }
    components.sort();
    components
}
