//! Debian's `hg`, with which tests make repositories and which they compare with.

use crate::command_server::SharedServer;
use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

/// Returns whether `hg` is there. If not, says that the test is left out, or fails when all are
/// required (`LARDER_REQUIRE_ALL=1`).
#[track_caller]
pub(crate) fn has_mercurial(test: &str) -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    let found = *FOUND.get_or_init(|| {
        let status = Command::new("hg").arg("version").stdout(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    });
    if !found {
        let required = std::env::var("LARDER_REQUIRE_ALL").is_ok_and(|value| value == "1");
        assert!(!required, "{test} is required here: no hg");
        say_left_out(&format!("left out: {test}: no hg"));
    }
    found
}

#[allow(clippy::print_stderr, reason = "a test that is left out is reported")]
fn say_left_out(line: &str) {
    eprintln!("{line}");
    if let Some(path) = std::env::var_os("LARDER_LEFT_OUT") {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        file.and_then(|mut file| writeln!(file, "{line}")).unwrap();
    }
}

/// Creates a command with the environment in which the outputs of `hg` are the same everywhere.
fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.envs([
        ("HGPLAIN", "1"),
        ("HGRCPATH", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/edge/hgrc")),
        ("HGENCODING", "utf-8"),
        ("LC_ALL", "C.UTF-8"),
        ("HGUSER", "test"),
        ("HGMERGE", ":merge-other"),
    ]);
    command
}

/// Runs a command of `hg` with the environment of [`command`].
fn run_hg(arguments: &[&OsStr]) -> Output {
    static SERVER: SharedServer = SharedServer::new();
    SERVER.run(|| command("hg"), arguments)
}

/// A repository that `hg` works on.
pub(crate) struct Mercurial {
    pub(crate) path: PathBuf,
}

impl Mercurial {
    /// Makes an empty repository. `settings` are those of `hg --config`.
    pub(crate) fn init(path: &Path, settings: &[&str]) -> Mercurial {
        let settings =
            settings.iter().flat_map(|setting| [OsStr::new("--config"), setting.as_ref()]);
        let arguments = settings.chain([OsStr::new("init"), path.as_os_str()]);
        check(run_hg(&arguments.collect::<Vec<_>>()));
        Mercurial { path: path.to_owned() }
    }

    pub(crate) fn output<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Output {
        let settings = ["--config", "phases.publish=0", "--config", "ui.allowemptycommit=1"];
        let path = self.path.as_os_str();
        let mut all: Vec<&OsStr> = settings.map(OsStr::new).to_vec();
        all.extend([OsStr::new("-R"), path, OsStr::new("--cwd"), path]);
        all.extend(arguments.iter().map(AsRef::as_ref));
        run_hg(&all)
    }

    /// Runs `hg`, and returns what it prints.
    #[track_caller]
    pub(crate) fn run<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Vec<u8> {
        check(self.output(arguments))
    }

    /// Runs `hg`, and returns the lines that it prints.
    #[track_caller]
    pub(crate) fn lines<S: AsRef<OsStr>>(&self, arguments: &[S]) -> Vec<String> {
        let text = String::from_utf8_lossy(&self.run(arguments)).into_owned();
        text.lines().map(str::to_owned).collect()
    }

    /// Writes a file of the working copy.
    pub(crate) fn write(&self, path: &str, content: &[u8]) {
        let path = self.path.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Commits all files, and returns the node.
    #[track_caller]
    pub(crate) fn commit(&self, message: &str, date: u32) -> String {
        self.run(&["commit", "-A", "-m", message, "-u", "user", "-d", &format!("{date} 0")]);
        self.lines(&["log", "-r", ".", "-T", "{node}\n"]).remove(0)
    }
}

#[track_caller]
fn check(output: Output) -> Vec<u8> {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Returns the folder of the edge repositories: all kinds of names, branches, merges and phases
/// (`cli`), changesets that no command makes (`raw`), and one repository for each single oddity
/// (`edge/mkedge.py`). They are made once and kept in the folder of the build.
pub(crate) fn edge_repositories() -> PathBuf {
    let scripts = concat!(include_str!("edge/mkedge.py"), include_str!("edge/hgraw.py"));
    let version = check(command("hg").arg("version").output().unwrap());
    let checksum = scripts.bytes().chain(version).fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = parent.join(format!("edge-{checksum:016x}"));
    std::fs::create_dir_all(parent).unwrap();
    let lock = std::fs::File::create(parent.join("edge.lock")).unwrap();
    lock.lock().unwrap();
    if !folder.exists() {
        let unfinished = tempfile::tempdir_in(parent).unwrap();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/edge/mkedge.py");
        let mut python = command("python3");
        // No compiled files beside the sources.
        check(python.args(["-B", script]).arg(unfinished.path()).output().unwrap());
        std::fs::rename(unfinished.path(), &folder).unwrap();
    }
    folder
}

/// Writes a bundle of so many changesets, the same ones in each run (`edge/mkhistory.py`).
pub(crate) fn make_history(bundle: &Path, changesets: usize) {
    run_script("mkhistory.py", &[bundle.to_str().unwrap(), &changesets.to_string()]);
}

/// Runs a script of the folder `edge`.
pub(crate) fn run_script(name: &str, arguments: &[&str]) {
    let script = format!("{}/tests/edge/{name}", env!("CARGO_MANIFEST_DIR"));
    check(command("python3").args(["-B", &script]).args(arguments).output().unwrap());
}

/// Returns the paths of the edge repositories.
pub(crate) fn each_edge_repository() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(edge_repositories()).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.join(".hg").is_dir());
    paths.sort();
    paths
}

impl Mercurial {
    /// Returns what a server answers to commands, each written as the protocol of ssh has it.
    pub(crate) fn ask_server(&self, commands: &str) -> Vec<Vec<u8>> {
        let mut hg = command("hg");
        hg.arg("-R").arg(&self.path).args(["serve", "--stdio"]);
        hg.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = hg.spawn().unwrap();
        server.stdin.take().unwrap().write_all(commands.as_bytes()).unwrap();
        let bytes = server.wait_with_output().unwrap().stdout;
        let mut rest = bytes.as_slice();
        let mut answers = Vec::new();
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let len: usize = str::from_utf8(&rest[..end]).unwrap().parse().unwrap();
            answers.push(rest[end + 1..][..len].to_vec());
            rest = &rest[end + 1 + len..];
        }
        answers
    }
}
