//! A home of its own for every test, and the program run in it. It holds no test.
//!
//! Nothing of the machine reaches the program: the environment is empty but for what stands here.
//! What differs from run to run (the home's path, moments, random names) is masked in what is
//! compared.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// A home directory with a working directory in it; both go away with the value.
pub struct Home {
    dir: tempfile::TempDir,
}

/// What a run of the program gave.
pub struct Run {
    /// The exit code; -1 where a signal ended it.
    pub code: i32,
    /// Standard output.
    pub out: Vec<u8>,
    /// Standard error.
    pub err: Vec<u8>,
    home: PathBuf,
}

/// The program under test.
pub const LARDER: &str = env!("CARGO_BIN_EXE_larder");

/// A card, as a phone writes it.
pub const ANNA: &str = "BEGIN:VCARD\r\nVERSION:3.0\r\nUID:anna-1\r\nFN:Anna Hölderlin\r\n\
    N:Hölderlin;Anna;;;\r\nEMAIL;TYPE=HOME:anna@example.org\r\nTEL;TYPE=CELL:+49 30 1234567\r\n\
    ORG:Orchard Works\r\nX-KEEP;X-ODD=1:as it is\r\nEND:VCARD\r\n";
/// Another, without an e-mail address.
pub const BRUNO: &str = "BEGIN:VCARD\r\nVERSION:4.0\r\nUID:bruno-2\r\nFN:Bruno Álvarez\r\n\
    N:Álvarez;Bruno;;;\r\nTEL;TYPE=home:030 765-43-21\r\nEND:VCARD\r\n";
/// A third without a UID, in the oldest version.
pub const CHLOE: &str = "BEGIN:VCARD\r\nVERSION:2.1\r\nN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:Dupont;Chlo=C3=A9\r\n\
    FN;CHARSET=UTF-8;ENCODING=QUOTED-PRINTABLE:Chlo=C3=A9 Dupont\r\n\
    EMAIL;INTERNET:chloe@example.com\r\nEND:VCARD\r\n";

impl Home {
    pub fn new() -> Home {
        let dir = tempfile::Builder::new().prefix("larder-test-").tempdir().unwrap();
        for name in ["home", "work", "tmp"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        Home { dir }
    }

    /// A home whose store holds the three cards.
    pub fn with_book() -> Home {
        let home = Home::new();
        home.write("book.vcf", [ANNA, BRUNO, CHLOE].concat());
        home.ok(&["import", "book.vcf"]);
        home
    }

    /// All of it.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// A path in the working directory.
    pub fn work(&self, name: &str) -> PathBuf {
        self.dir.path().join("work").join(name)
    }

    /// Where the store lies if nothing else is said.
    pub fn data(&self) -> PathBuf {
        self.dir.path().join("home/.local/share/larder")
    }

    /// Where temporary files go.
    pub fn temporary(&self) -> PathBuf {
        self.dir.path().join("tmp")
    }

    /// Puts a file into the working directory.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.work(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// A file of so many made contacts in the working directory.
    pub fn generate(&self, name: &str, number: u64, seed: u64) -> PathBuf {
        let mut bytes = Vec::new();
        larder_measure::generate::write_contacts(number, seed, &mut bytes).unwrap();
        self.write(name, bytes)
    }

    /// A generated calendar.
    pub fn generate_calendar(&self, name: &str, number: u64, seed: u64) -> PathBuf {
        let mut bytes = Vec::new();
        larder_measure::generate::write_calendar(number, seed, false, &mut bytes).unwrap();
        self.write(name, bytes)
    }

    /// What the configuration file says.
    pub fn configure(&self, text: &str) {
        let dir = self.dir.path().join("home/.config/larder");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("config.toml"), text).unwrap();
    }

    /// Any program in this home.
    pub fn program(&self, program: impl AsRef<OsStr>) -> Command {
        let home = self.dir.path().join("home");
        let mut command = Command::new(program);
        command.env_clear().current_dir(self.dir.path().join("work")).stdin(Stdio::null());
        // LLVM_PROFILE_FILE is how a coverage run collects what child processes did.
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

    /// The program with these arguments, not started yet.
    pub fn command<S: AsRef<OsStr>>(&self, args: &[S]) -> Command {
        let mut command = self.program(LARDER);
        command.args(args);
        command
    }

    /// Runs it to its end.
    pub fn run<S: AsRef<OsStr>>(&self, args: &[S]) -> Run {
        self.finish(self.command(args).output().unwrap())
    }

    /// Runs it with this on standard input.
    pub fn run_with(&self, args: &[&str], input: &[u8]) -> Run {
        let mut child = self.spawn(self.command(args).stdin(Stdio::piped()));
        // A program that refuses its arguments leaves before it reads.
        let _left_early = child.stdin.take().unwrap().write_all(input);
        self.finish(child.wait_with_output().unwrap())
    }

    /// Runs it through a shell, for pipes and redirections; the program is `larder` there.
    pub fn shell(&self, script: &str) -> Run {
        let mut command = self.program("/bin/sh");
        let bin = Path::new(LARDER).parent().unwrap().to_str().unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        command.arg("-c").arg(script).env("PATH", format!("{bin}:{path}"));
        self.finish(command.output().unwrap())
    }

    /// Starts a command with its output caught.
    pub fn spawn(&self, command: &mut Command) -> Child {
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// What a finished process gave.
    pub fn finish(&self, output: Output) -> Run {
        let home = self.dir.path().to_path_buf();
        Run {
            code: output.status.code().unwrap_or(-1),
            out: output.stdout,
            err: output.stderr,
            home,
        }
    }

    /// Runs what has to go well, and gives its standard output.
    #[track_caller]
    pub fn ok(&self, args: &[&str]) -> String {
        let run = self.run(args);
        assert_eq!(run.code, 0, "larder {args:?}\n{}", run.shown());
        run.stdout()
    }

    /// Runs it, and compares the exit code.
    #[track_caller]
    pub fn code(&self, args: &[&str], code: i32) -> Run {
        let run = self.run(args);
        assert_eq!(run.code, code, "larder {args:?}\n{}", run.shown());
        run
    }

    /// The objects that it prints with `--format json`.
    #[track_caller]
    pub fn json(&self, args: &[&str]) -> Vec<serde_json::Value> {
        let text = self.ok(&[&["--format", "json"], args].concat());
        text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }

    /// Fails unless the check finds the store sound.
    #[track_caller]
    pub fn sound(&self) {
        let run = self.run(&["check"]);
        assert!(run.code == 0 && run.stdout().starts_with("sound: "), "{}", run.shown());
    }
}

impl Run {
    /// Standard output as text.
    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.out).into_owned()
    }

    /// Standard error as text, masked.
    pub fn stderr(&self) -> String {
        masked(&String::from_utf8_lossy(&self.err), &self.home)
    }

    /// Everything, masked: standard output, then standard error with `! ` before each line, then
    /// the code where it is not 0.
    pub fn shown(&self) -> String {
        let mut shown = masked(&self.stdout(), &self.home);
        for line in self.stderr().lines() {
            shown.push_str(&format!("! {line}\n"));
        }
        if self.code != 0 {
            shown.push_str(&format!("exit {}\n", self.code));
        }
        shown
    }
}

/// A text with `[HOME]` for the home's path and `[TIME]` for moments.
pub fn masked(text: &str, home: &Path) -> String {
    let text = text.replace(home.to_str().unwrap(), "[HOME]");
    let mut masked = String::new();
    let mut rest = text.as_str();
    while let Some(c) = rest.chars().next() {
        let moment = "dddd-dd-dd dd:dd:dd";
        if rest.len() >= moment.len() && shaped(&rest.as_bytes()[..moment.len()], moment) {
            masked.push_str("[TIME]");
            rest = &rest[moment.len()..];
        } else {
            masked.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    masked
}

/// Is the text of this shape, where `d` is any digit?
fn shaped(text: &[u8], shape: &str) -> bool {
    text.iter().zip(shape.bytes()).all(|(byte, shape)| match shape {
        b'd' => byte.is_ascii_digit(),
        _ => *byte == shape,
    })
}

/// Says what was not tested on this machine, and why; where everything is required
/// (`LARDER_REQUIRE_ALL=1`, as in continuous integration) that is a failure.
#[track_caller]
pub fn left_out(name: &str, why: &str) {
    assert!(!everything(), "{name} is required here: {why}");
    say_left_out(&format!("left out: {name}: {why}"));
}

/// The same for the corpora, which are no part of the project and required nowhere.
pub fn no_corpora(name: &str) {
    say_left_out(&format!("left out: {name} (no corpora; set LARDER_CORPORA)"));
}

fn everything() -> bool {
    std::env::var("LARDER_REQUIRE_ALL").is_ok_and(|value| value == "1")
}

/// On standard error and, since a runner of tests may keep that to itself, in the file that
/// `LARDER_LEFT_OUT` names.
fn say_left_out(line: &str) {
    eprintln!("{line}");
    if let Some(path) = std::env::var_os("LARDER_LEFT_OUT").filter(|_| !everything()) {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        file.and_then(|mut file| writeln!(file, "{line}")).unwrap();
    }
}

/// How many times a repeated test is to be run: the variable's number, else the default.
pub fn times(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// Pseudo-random numbers (SplitMix64), from a seed that is printed where a test fails.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % end.max(1)
    }
}

/// The cards of a file whose cards all begin and end on lines of their own, in any order but
/// sorted.
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

/// The events, tasks and memos of a calendar that all begin and end on lines of their own, in any
/// order but sorted.
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
