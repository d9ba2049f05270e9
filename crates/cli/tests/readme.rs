//! The README's transcripts are what the programs print, and its links lead somewhere.
//!
//! A ```console block that begins with `$ make demo` is held against what `scripts/demo.sh` prints,
//! run beside the repository's samples with the program under test in the place of a build. In all
//! other blocks each `$ larder ...`, with variables before it or without, is run, in order, in one
//! fresh home, and what follows is held against what it prints. A line `...` stands for any lines.
//! Times, memory, sizes, moments, scratch paths and the letters of what is new are masked on both
//! sides.

use crate::home::{Home, LARDER};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

const DEMO: &str = "$ make demo";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn readme() -> String {
    std::fs::read_to_string(root().join("README.md")).expect("there is a README.md")
}

/// The lines of every console block, each with the number of its first line.
fn blocks(readme: &str) -> Vec<(usize, Vec<String>)> {
    let mut blocks: Vec<(usize, Vec<String>)> = Vec::new();
    let mut inside = None;
    for (number, line) in readme.lines().enumerate() {
        match (line.trim_end(), inside) {
            ("```console", None) => {
                blocks.push((number + 2, Vec::new()));
                inside = Some(true);
            }
            (fence, None) if fence.starts_with("```") => inside = Some(false),
            ("```", Some(_)) => inside = None,
            (line, Some(true)) => blocks.last_mut().unwrap().1.push(line.to_string()),
            _ => {}
        }
    }
    blocks
}

/// Does a word of this shape stand there? `d` is any digit.
fn shaped(word: &str, shape: &str) -> bool {
    let alike = |(byte, shape): (u8, u8)| {
        if shape == b'd' { byte.is_ascii_digit() } else { byte == shape }
    };
    word.len() == shape.len() && word.bytes().zip(shape.bytes()).all(alike)
}

/// Is it a command that is run here?
fn is_larder(line: &str) -> bool {
    let mut words = line.strip_prefix("$ ").unwrap_or_default().split(' ');
    words.find(|word| !word.contains('=')) == Some("larder")
}

/// The line with what differs from run to run and from machine to machine made equal.
fn masked(line: &str) -> String {
    const UNITS: &[&str] = &["s", "ms", "µs", "bytes", "kB", "MB", "GB", "%"];
    let edge = |c: char| "(),;[]".contains(c);
    // The letters are made of a UID, which chance makes.
    if let Some((letters, rest)) = line.split_once("  ")
        && letters.len() == 8
        && rest.contains("  added to ")
    {
        return format!("[LETTERS]  {rest}");
    }
    let mut words: Vec<String> = Vec::new();
    let mut any = false;
    for word in line.split_whitespace() {
        let bare = word.trim_matches(edge);
        let number = |text: &String| text.trim_start_matches(edge).parse::<f64>().is_ok();
        let mask = if UNITS.contains(&bare) && words.last().is_some_and(number) {
            words.pop();
            Some("[MEASURED]".to_string())
        } else if shaped(bare, "dddd-dd-dd") || shaped(bare, "dd:dd:dd") {
            Some("[MOMENT]".to_string())
        } else if bare.contains(".local/share/larder") || bare.ends_with("/store") {
            Some("[STORE]".to_string())
        } else {
            bare.rsplit_once('/')
                .filter(|(_, name)| *name == "rejects.vcf")
                .map(|_| "rejects.vcf".into())
        };
        any |= mask.is_some();
        words.push(mask.unwrap_or_else(|| word.to_string()));
    }
    // Columns move where numbers do.
    if any { words.join(" ") } else { line.trim_end().to_string() }
}

/// Do the lines match, where `...` stands for any lines?
fn matches(expect: &[String], got: &[String]) -> bool {
    match expect.split_first() {
        None => got.is_empty(),
        Some((first, rest)) if first == "..." || first == "…" => {
            (0..=got.len()).any(|skipped| matches(rest, &got[skipped..]))
        }
        Some((first, rest)) => {
            got.first().is_some_and(|line| masked(line) == masked(first))
                && matches(rest, &got[1..])
        }
    }
}

/// Lines without the empty ones at the end.
fn lines(text: &str) -> Vec<String> {
    text.trim_end().lines().map(|line| line.trim_end().to_string()).collect()
}

#[track_caller]
fn hold(at: usize, command: &str, expect: &[String], got: &str) {
    let (expect, got) = (lines(&expect.join("\n")), lines(got));
    let (says, prints) = (expect.join("\n"), got.join("\n"));
    assert!(
        matches(&expect, &got),
        "README.md:{at}: {command}\n--- it says\n{says}\n--- {LARDER} prints\n{prints}\n"
    );
}

/// The demo's script in a directory of its own, with a `cargo` that has nothing to do.
fn demo(home: &Home) -> String {
    let (root, here) = (root(), home.work("repository"));
    for folder in ["scripts", "target/release", "bin"] {
        std::fs::create_dir_all(here.join(folder)).unwrap();
    }
    std::fs::copy(root.join("scripts/demo.sh"), here.join("scripts/demo.sh")).unwrap();
    symlink(root.join("samples"), here.join("samples")).unwrap();
    symlink(LARDER, here.join("target/release/larder")).unwrap();
    let cargo = home.write("repository/bin/cargo", "#!/bin/sh\n");
    std::fs::set_permissions(&cargo, std::fs::Permissions::from_mode(0o755)).unwrap();
    let run = home.shell("PATH=\"$PWD/repository/bin:$PATH\" sh repository/scripts/demo.sh 2>&1");
    assert_eq!(run.code, 0, "{}", run.shown());
    let text = run.stdout();
    // What is said before the first command is about building.
    text.find("\n$ ").map_or(text.clone(), |at| text[at + 1..].to_string())
}

#[test]
fn transcripts_are_what_is_printed() {
    let readme = readme();
    let blocks = blocks(&readme);
    let shown = blocks.iter().flat_map(|(_, lines)| lines).any(|line| is_larder(line));
    assert!(shown, "the README shows no transcript");
    let home = Home::new();
    symlink(root().join("samples"), home.work("samples")).unwrap();
    for (start, lines) in blocks {
        if lines.first().is_some_and(|first| first == DEMO) {
            let begin =
                lines[1..].iter().position(|line| line.starts_with("$ ")).map_or(1, |at| at + 1);
            hold(start, DEMO, &lines[begin..], &demo(&Home::new()));
            continue;
        }
        let commands = lines.iter().enumerate().filter(|(_, line)| line.starts_with("$ "));
        for (at, command) in commands.filter(|(_, line)| is_larder(line)) {
            let rest = &lines[at + 1..];
            let end = rest.iter().position(|line| line.starts_with("$ ")).unwrap_or(rest.len());
            let run = home.shell(&format!("{{ {}\n}} 2>&1", &command[2..]));
            hold(start + at, command, &rest[..end], &run.stdout());
        }
    }
}

/// The demo goes well with a book of one's own, too, and names one that is not there.
#[test]
fn the_demo_takes_a_book() {
    let home = Home::new();
    assert!(demo(&home).contains("\n$ larder find "));
    let book = home.write("own.vcf", crate::home::ANNA);
    let script = "PATH=\"$PWD/repository/bin:$PATH\" sh repository/scripts/demo.sh";
    let run = home.shell(&format!("{script} '{}' 2>&1", book.display()));
    assert!(run.code == 0 && run.stdout().contains("Anna Hölderlin"), "{}", run.shown());
    let run = home.shell(&format!("{script} missing.vcf 2>&1"));
    assert!(run.code != 0 && run.stdout().contains("missing.vcf"), "{}", run.shown());
}

/// Every file that the README, and the documents that it names, point at is there.
#[test]
fn no_link_is_dead() {
    let root = root();
    let mut documents = vec!["README.md".to_string()];
    let mut at = 0;
    while at < documents.len() {
        let name = documents[at].clone();
        at += 1;
        let text = std::fs::read_to_string(root.join(&name))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        for link in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            if link.is_empty() || link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            let path = Path::new(&name).parent().unwrap().join(link);
            assert!(root.join(&path).exists(), "{name} points at {link}, which is not there");
            let next = path.to_str().unwrap().to_string();
            if link.ends_with(".md") && !link.contains("..") && !documents.contains(&next) {
                documents.push(next);
            }
        }
    }
}
