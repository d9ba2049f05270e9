//! The sessions in README.md and docs/tour.md are what the programs print, the links of all
//! documents lead to files, and the picture in README.md is up to date.
//!
//! A ```console block that begins with `$ make demo` is compared with the output of
//! `scripts/demo.sh`, run beside the repository's samples with the program under test in place of a
//! build. In all other blocks of a document each `$ larder ...`, with or without variables before
//! it, is run in order in one new home, and the following lines are compared with its output. A
//! line `...` stands for any lines. Times, memory, sizes, dates, scratch paths and the IDs of new
//! items are masked on both sides.

use crate::test_home::{Home, LARDER, left_out};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

const DEMO: &str = "$ make demo";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The documents with sessions.
const DOCUMENTS: &[&str] = &["README.md", "docs/tour.md"];

/// Returns the lines of every console block, each with the number of its first line.
fn blocks(document: &str) -> Vec<(usize, Vec<String>)> {
    let mut blocks: Vec<(usize, Vec<String>)> = Vec::new();
    let mut inside = None;
    for (number, line) in document.lines().enumerate() {
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

/// Returns whether a word has this shape, where `d` is any digit.
fn has_shape(word: &str, shape: &str) -> bool {
    let alike = |(byte, shape): (u8, u8)| {
        if shape == b'd' { byte.is_ascii_digit() } else { byte == shape }
    };
    word.len() == shape.len() && word.bytes().zip(shape.bytes()).all(alike)
}

/// Returns whether the line is a command that this test runs.
fn is_larder(line: &str) -> bool {
    let mut words = line.strip_prefix("$ ").unwrap_or_default().split(' ');
    words.find(|word| !word.contains('=')) == Some("larder")
}

/// Masks the parts of a line that differ between runs and machines.
fn mask_line(line: &str) -> String {
    const UNITS: &[&str] = &["s", "ms", "µs", "bytes", "kB", "MB", "GB", "%"];
    let edge = |c: char| "(),;[]".contains(c);
    // The ID is derived from the UID, which is random.
    if let Some((id, rest)) = line.split_once("  ")
        && id.len() == 8
        && rest.contains("  added to ")
    {
        return format!("[ID]  {rest}");
    }
    // So are the IDs at the end of the lines of an agenda.
    let is_agenda = ["all day", "due ", "-", "0", "1", "2"]
        .iter()
        .any(|start| line.strip_prefix("  ").is_some_and(|line| line.starts_with(start)));
    if let Some((rest, id)) = line.rsplit_once("  ")
        && is_agenda
        && id.len() == 8
    {
        return format!("{}  [ID]", rest.trim_end());
    }
    let mut words: Vec<String> = Vec::new();
    let mut any = false;
    for word in line.split_whitespace() {
        let bare = word.trim_matches(edge);
        let number = |text: &String| text.trim_start_matches(edge).parse::<f64>().is_ok();
        let mask = if UNITS.contains(&bare) && words.last().is_some_and(number) {
            words.pop();
            Some("[MEASURED]".to_string())
        } else if has_shape(bare, "dddd-dd-dd") || has_shape(bare, "dd:dd:dd") {
            Some("[MOMENT]".to_string())
        } else if [".local/share/larder", "larder-demo."].iter().any(|part| bare.contains(part))
            || bare.ends_with("/store")
        {
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

/// Returns whether the lines match, where `...` stands for any lines.
fn matches(expect: &[String], got: &[String]) -> bool {
    match expect.split_first() {
        None => got.is_empty(),
        Some((first, rest)) if first == "..." || first == "…" => {
            (0..=got.len()).any(|skipped| matches(rest, &got[skipped..]))
        }
        Some((first, rest)) => {
            got.first().is_some_and(|line| mask_line(line) == mask_line(first))
                && matches(rest, &got[1..])
        }
    }
}

/// Returns the lines without the empty ones at the end.
fn lines(text: &str) -> Vec<String> {
    text.trim_end().lines().map(|line| line.trim_end().to_string()).collect()
}

#[track_caller]
fn assert_output(place: &str, command: &str, expect: &[String], got: &str) {
    let (expect, got) = (lines(&expect.join("\n")), lines(got));
    let (documented, printed) = (expect.join("\n"), got.join("\n"));
    assert!(
        matches(&expect, &got),
        "{place}: {command}\n--- documented\n{documented}\n--- printed by {LARDER}\n{printed}\n"
    );
}

/// Runs the demo script in a private directory, with a `cargo` that does nothing.
fn run_demo(home: &Home) -> String {
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
    assert_eq!(run.code, 0, "{}", run.masked_output());
    let text = run.stdout();
    // The lines before the first command are about building.
    text.find("\n$ ").map_or(text.clone(), |at| text[at + 1..].to_string())
}

#[test]
fn sessions_are_what_is_printed() {
    for name in DOCUMENTS {
        check_sessions(name);
    }
}

fn check_sessions(name: &str) {
    let document = std::fs::read_to_string(root().join(name)).expect(name);
    let blocks = blocks(&document);
    let has_session = blocks.iter().flat_map(|(_, lines)| lines).any(|line| is_larder(line));
    assert!(has_session, "{name} has no session");
    let home = Home::new();
    symlink(root().join("samples"), home.work("samples")).unwrap();
    for (start, lines) in blocks {
        if lines.first().is_some_and(|first| first == DEMO) {
            let begin =
                lines[1..].iter().position(|line| line.starts_with("$ ")).map_or(1, |at| at + 1);
            let printed = run_demo(&Home::new());
            assert_output(&format!("{name}:{start}"), DEMO, &lines[begin..], &printed);
            continue;
        }
        let commands = lines.iter().enumerate().filter(|(_, line)| line.starts_with("$ "));
        for (at, command) in commands.filter(|(_, line)| is_larder(line)) {
            let rest = &lines[at + 1..];
            let end = rest.iter().position(|line| line.starts_with("$ ")).unwrap_or(rest.len());
            let run = home.shell(&format!("{{ {}\n}} 2>&1", &command[2..]));
            let place = format!("{name}:{}", start + at);
            assert_output(&place, command, &rest[..end], &run.stdout());
        }
    }
}

/// Compares the pictures with the output of their script, except for the IDs of new items.
#[test]
fn the_pictures_are_up_to_date() {
    ["demo", "mail"].into_iter().for_each(check_picture);
}

fn check_picture(name: &str) {
    let script = root().join("scripts/terminal-picture.py");
    let drawn = match Command::new("python3").arg(script).args([name, LARDER]).output() {
        Err(error) => return left_out("the_pictures_are_up_to_date", &error.to_string()),
        Ok(output) => {
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{stderr}");
            String::from_utf8(output.stdout).unwrap()
        }
    };
    let path = format!("docs/{name}.svg");
    let picture = std::fs::read_to_string(root().join(&path)).unwrap();
    let mask = |svg: &str| -> Vec<String> {
        let is_id = |text: &str| text.len() == 8 && text.bytes().all(|b| b.is_ascii_alphanumeric());
        let line =
            |line: &str| match line.split_once('>').and_then(|(_, it)| it.split_once(['<', ' '])) {
                Some((id, _)) if is_id(id) => line.replacen(id, "[ID]", 1),
                _ => line.to_string(),
            };
        svg.lines().map(line).collect()
    };
    let command = format!("run scripts/terminal-picture.py {name} > {path}");
    assert_eq!(mask(&picture), mask(&drawn), "{command}");
}

/// The demo accepts a file of the user, and names one that does not exist.
#[test]
fn the_demo_takes_a_file() {
    let home = Home::new();
    assert!(run_demo(&home).contains("\n$ larder find "));
    let book = home.write("own.vcf", crate::test_home::ANNA);
    let script = "PATH=\"$PWD/repository/bin:$PATH\" sh repository/scripts/demo.sh";
    let run = home.shell(&format!("{script} '{}' 2>&1", book.display()));
    assert!(run.code == 0 && run.stdout().contains("Anna Hölderlin"), "{}", run.masked_output());
    let run = home.shell(&format!("{script} missing.vcf 2>&1"));
    assert!(run.code != 0 && run.stdout().contains("missing.vcf"), "{}", run.masked_output());
}

/// Every link in README.md, and in the documents that it links to, leads to a file.
#[test]
fn links_lead_to_files() {
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
            assert!(root.join(&path).exists(), "{name} links to {link}, which does not exist");
            let next = path.to_str().unwrap().to_string();
            if link.ends_with(".md") && !link.contains("..") && !documents.contains(&next) {
                documents.push(next);
            }
        }
    }
}
