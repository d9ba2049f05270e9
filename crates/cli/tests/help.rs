//! `fields`, `completions`, `man`, `measure`, help and version.

use crate::test_home::Home;
use insta::assert_snapshot;

/// All subcommands, also those of `collections` and `measure`.
const COMMANDS: &[&str] = &[
    "import",
    "find",
    "agenda",
    "watch",
    "show",
    "save",
    "add",
    "edit",
    "merge",
    "remove",
    "undo",
    "log",
    "purge",
    "collections",
    "collections list",
    "collections create",
    "collections rename",
    "collections remove",
    "collections index",
    "export",
    "sources",
    "sources list",
    "sources add",
    "sources remove",
    "sync",
    "searches",
    "searches list",
    "searches add",
    "searches remove",
    "labels",
    "labels list",
    "labels export",
    "labels import",
    "labels rename",
    "labels remove",
    "adopt",
    "fields",
    "check",
    "backup",
    "restore",
    "salvage",
    "serve",
    "hg",
    "hg hg2git",
    "hg git2hg",
    "hg unbundle",
    "hg convert",
    "hg fsck",
    "hg import-cinnabar",
    "hg tags",
    "hg rollback",
    "hg clear",
    "measure",
    "measure generate",
    "measure generate contacts",
    "measure generate calendar",
    "measure generate zones",
    "measure generate queries",
    "measure run",
    "measure queries",
    "measure memory",
    "measure record",
    "measure alloc",
    "measure replay",
    "measure report",
    "measure browse",
    "completions",
    "man",
];

#[test]
fn the_help_lists_the_commands() {
    let home = Home::new();
    assert_snapshot!(home.run(&["-h"]).masked_output(), @"
    Store contacts and calendars, index mail, and search all of it instantly, on your own machine

    Usage: larder [OPTIONS] <COMMAND>

    Commands:
      import       Import address books and calendars from vCard and iCalendar files
      find         Search contacts, events, tasks and memos, messages, and commits
      agenda       Show events and due tasks day by day
      watch        Show a live list that updates as matching items change
      show         Show items in full: as text, JSON, or the original vCard, iCalendar or message
      save         Save the attachments of a mail message as files
      add          Add an event, a task or a memo in words, a contact, or items from a file
      edit         Change an item in your editor ($VISUAL, $EDITOR), with options, or from a file
      merge        Merge duplicate contacts into the first one (`larder undo` reverts it)
      remove       Remove items (`larder undo` restores them)
      undo         Undo an operation
      log          List operations, newest first, or the versions of one item
      purge        Permanently delete items and their whole history from the store
      collections  List, create, rename, index or remove collections
      export       Export a collection; every item is written byte for byte as it is stored
      sources      Register maildirs, files of mail and git repositories, list them, or forget them
      sync         Bring the index of registered maildirs and git repositories up to date
      searches     List saved searches with their counts, define or remove them
      labels       List the labels of messages, export and import them, rename and remove labels
      adopt        Take over labels and saved searches from mu or notmuch (`larder undo` reverts it)
      fields       List the fields for searching, sorting and printing
      check        Check the store for damage
      backup       Copy the store, even while it is in use, into one file, and verify the copy
      restore      Replace the store with a backup; the current store is kept as data.db.before-restore
      salvage      Save everything that can be read of a damaged store into a new file, and name what is
                   missing
      serve        Let GNOME programs use this store (address books over D-Bus)
      hg           Look up changesets of Mercurial in git, import bundles, convert repositories
      measure      Generate test data, benchmark commands, analyse query and allocation logs
      completions  Print completions for a shell
      man          Print the manual page; with --out, write one for each subcommand
      help         Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help (see more with '--help')
      -V, --version  Print version

    Global options:
          --data-dir <DIR>    The data directory [default: $LARDER_DIR, else data-dir in config.toml,
                              else $XDG_DATA_HOME/larder]
          --format <FORMAT>   Output format; json prints one object on each line, see docs/output.md
                              [default: text] [possible values: text, json, raw]
      -q, --quiet             Print no progress, notes or warnings
          --color <WHEN>      When to use colours [possible values: auto, always, never]
          --query-log <FILE>  Append each query and its cost to FILE [default: query-log in config.toml]

    Exit codes: 0 success; 1 nothing found; 2 usage error; 3 some input was invalid and rejected; 4 the
    store cannot be used, or not all of it can be read; 5 a file or server cannot be reached; 130
    interrupted.
    ");
    assert_eq!(home.run(&["help"]).masked_output(), home.run(&["--help"]).masked_output());
}

#[test]
fn every_subcommand_has_help() {
    let home = Home::new();
    let listed = home.ok(&["--help"]);
    for command in COMMANDS {
        let mut args: Vec<&str> = command.split(' ').collect();
        assert!(listed.contains(&format!("\n  {} ", args[0])), "{command} is not in the help");
        args.push("--help");
        let long = home.ok(&args);
        assert!(long.contains(&format!("Usage: larder {command}")), "{long}");
        *args.last_mut().unwrap() = "-h";
        let short = home.ok(&args);
        for line in long.lines().chain(short.lines()) {
            assert!(line.chars().count() <= 100, "{command}: {line}");
        }
    }
    let first = |line: &str| line.split_whitespace().next().unwrap_or_default().to_string();
    let commands = listed
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty());
    for name in
        commands.filter(|line| line.starts_with("  ") && !line.starts_with("   ")).map(first)
    {
        assert!(name == "help" || COMMANDS.contains(&name.as_str()), "{name} is in no test");
    }
}

#[test]
fn the_version_is_printed() {
    let home = Home::new();
    assert_eq!(home.ok(&["--version"]), concat!("larder ", env!("CARGO_PKG_VERSION"), "\n"));
    assert_eq!(home.ok(&["-V"]), concat!("larder ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn the_fields_can_be_searched() {
    let home = Home::with_book();
    let text = home.ok(&["fields"]);
    assert!(text.contains("\nfull_name             "), "{text}");
    let rows = home.json(&["fields"]);
    // Each table has a heading, and an empty line is between them.
    assert_eq!(rows.len() + 9, text.lines().count());
    let windows = ["start", "end", "due", "created", "modified", "alarm"];
    for row in rows {
        let name = row["name"].as_str().unwrap();
        let query = match row["type"].as_str() {
            Some("query") => continue,
            Some("binary") => format!("has:{name}"),
            _ if windows.contains(&name) => format!("{name}:1999"),
            // Anything but a number or a word of priority is an error.
            _ if name == "priority" => "priority:9".to_string(),
            _ => format!("{name}:qqq"),
        };
        let run = home.run(&["find", "--count", &query]);
        assert!(run.code == 1 && run.stdout() == "0\n", "{query}: {}", run.masked_output());
    }
}

#[test]
fn completions_exist_for_every_shell() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = home.ok(&["completions", shell]);
        assert!(script.contains("collections"), "{shell}");
        let script = home.ok(&["completions", shell, "--program", "git-cinnabar"]);
        assert!(script.contains("hg2git") && !script.contains("collections"), "{shell}");
    }
    assert_snapshot!(home.run(&["completions", "tcsh"]).masked_output(), @r#"
    ! error: invalid value "tcsh" for <SHELL>
    ! hint: possible values: bash, elvish, fish, powershell, zsh
    exit 2
    "#);
    home.write("script", home.ok(&["completions", "bash"]));
    let run = home.shell("command -v bash >/dev/null || exit 0; bash -n script");
    assert_eq!(run.masked_output(), "");
    // The function that git calls.
    home.write("of-git", home.ok(&["completions", "bash", "--program", "git-cinnabar"]));
    home.write("complete-git", "source ./of-git; COMP_WORDS=(git cinnabar f); COMP_CWORD=2; _git_cinnabar; echo ${COMPREPLY[*]}");
    let run =
        home.shell("command -v bash >/dev/null || { echo fetch fsck; exit 0; }; bash complete-git");
    assert_eq!(run.masked_output().trim(), "fetch fsck");
    // Only values that are files are completed by file names.
    home.write("complete", "compopt() { :; }; source ./script; COMP_WORDS=(larder $1 $2 scr); COMP_CWORD=3; _larder larder scr $2; echo ${COMPREPLY[*]}");
    for (line, expect) in
        [("find --in", "scr"), ("watch --sort", "scr"), ("import --rejects", "script")]
    {
        let run = home.shell(&format!(
            "command -v bash >/dev/null || {{ echo {expect}; exit 0; }}; bash complete {line}"
        ));
        assert_eq!(run.masked_output().trim(), expect, "{line}");
    }
}

#[test]
fn manual_pages_are_written() {
    let home = Home::new();
    let page = home.ok(&["man"]);
    assert!(page.contains(".TH LARDER 1"), "{page}");
    assert_eq!(home.ok(&["man", "--out", "pages"]), "");
    for command in COMMANDS {
        let name = format!("pages/larder-{}.1", command.replace(' ', "-"));
        assert!(home.work(&name).exists(), "{name}");
    }
    for (name, words) in
        [("git-remote-hg", ".SH SERVERS\n"), ("git-cinnabar", "git cinnabar fetch [OPTIONS]")]
    {
        let page = std::fs::read_to_string(home.work(&format!("pages/{name}.1"))).unwrap();
        assert!(page.contains(words), "{page}");
        assert_eq!(home.ok(&["man", "--page", name]), page);
    }
    let written = std::fs::read_dir(home.work("pages")).unwrap();
    for page in written.map(|entry| entry.unwrap().file_name().into_string().unwrap()) {
        let Some(name) = page.strip_prefix("larder-").and_then(|name| name.strip_suffix(".1"))
        else {
            continue;
        };
        assert!(COMMANDS.iter().any(|of| of.replace(' ', "-") == name), "{page} is in no test");
    }
    home.write("file", "");
    assert_snapshot!(home.run(&["man", "--out", "file/pages"]).masked_output(), @"
    ! error: file/pages: not a directory
    ! hint: check the name of the directory
    exit 5
    ");
}

#[test]
fn contacts_are_generated() {
    let home = Home::new();
    let ten = home.ok(&["measure", "generate", "contacts", "10", "--seed", "5"]);
    assert_eq!(ten.matches("BEGIN:VCARD").count(), 10);
    assert_eq!(home.ok(&["measure", "generate", "contacts", "10", "--seed", "5"]), ten);
    assert_ne!(home.ok(&["measure", "generate", "contacts", "10"]), ten);
    assert_eq!(
        home.ok(&["measure", "generate", "contacts", "10", "--seed", "5", "-o", "ten.vcf"]),
        ""
    );
    assert_eq!(std::fs::read_to_string(home.work("ten.vcf")).unwrap(), ten);
    assert_eq!(home.ok(&["measure", "generate", "contacts", "0"]), "");
    assert_snapshot!(home.run(&["measure", "generate", "contacts", "1", "-o", "no/such/folder"]).masked_output(), @"
    ! error: no/such/folder: no such file or directory
    ! hint: check the name
    exit 5
    ");
    assert_snapshot!(home.run(&["measure", "generate", "contacts", "many"]).masked_output(), @r#"
    ! error: invalid value "many" for <NUMBER>: not a number
    exit 2
    "#);
}

/// The exit code is that of the command; a missing command is named.
#[test]
fn the_cost_of_a_command_is_printed() {
    let home = Home::new();
    let text = home.ok(&["measure", "run", "--repeat", "2", "--", "true"]);
    for cost in ["wall", "user", "sys"] {
        assert!(text.contains(cost), "{text}");
    }
    let object = &home.json(&["measure", "run", "--", "true"])[0];
    assert_eq!((&object["runs"], &object["code"]), (&1.into(), &0.into()), "{object}");
    let command = ["sh", "-c", "echo what it prints; sleep 0.05"];
    let shown = home.ok(&[&["measure", "run", "--show", "--"][..], &command].concat());
    assert!(shown.starts_with("what it prints\n[") && shown.ends_with(" of memory]\n"), "{shown}");
    // The memory of a run that is too short for samples is not shown as none.
    let text = home.ok(&["measure", "run", "--", "true"]);
    let memory = text.lines().find(|line| line.contains("largest process, sampled")).unwrap();
    assert!(!memory.contains(" 0 bytes") && !memory.contains(" 4.1 kB"), "{text}");
    let run = home.code(&["measure", "run", "--repeat", "3", "--", "sh", "-c", "exit 42"], 42);
    let warning = "run 1 of 3 ended with exit code 42; no further run was started";
    assert!(run.stderr().contains(warning), "{}", run.masked_output());
    // The third of five runs fails, or is interrupted: the figures are those of the others.
    let third =
        |end: &str| format!("echo >> runs; [ $(wc -l < runs) -lt 3 ] || {{ rm runs; {end}; }}");
    for (end, code, runs) in [("exit 7", 7, 2), ("kill -INT $PPID", 130, 2)] {
        let command = third(end);
        let options = ["--format", "json", "measure", "run", "--repeat", "5", "--", "sh", "-c"];
        let run = home.code(&[&options[..], &[&command]].concat(), code);
        let cost: serde_json::Value = serde_json::from_str(&run.stdout()).unwrap();
        assert_eq!((&cost["runs"], &cost["code"]), (&runs.into(), &(code % 130).into()), "{cost}");
    }
    let run = home.code(&["measure", "run", "--", "sh", "-c", "kill -SEGV $$"], 139);
    assert!(run.stderr().contains("run 1 of 1 ended by SIGSEGV\n"), "{}", run.masked_output());
    assert_snapshot!(home.run(&["measure", "run", "--", "no-such-command"]).masked_output(), @"
    ! error: no-such-command: no such file or directory
    ! hint: check the name
    exit 5
    ");
    assert_snapshot!(home.run(&["measure", "run"]).masked_output(), @"
    ! error: missing <COMMAND>...
    ! hint: usage: larder measure run [OPTIONS] -- <COMMAND>...
    exit 2
    ");
}
