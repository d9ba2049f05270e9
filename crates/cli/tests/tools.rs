//! `fields`, `completions`, `man`, `measure`, help and version.

use crate::home::Home;
use insta::assert_snapshot;

/// All subcommands, those of `collections` and `measure` too.
const COMMANDS: &[&str] = &[
    "import",
    "find",
    "agenda",
    "watch",
    "show",
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
    "export",
    "fields",
    "check",
    "backup",
    "restore",
    "serve",
    "measure",
    "measure generate",
    "measure generate contacts",
    "measure generate calendar",
    "measure generate zones",
    "measure generate queries",
    "measure run",
    "measure queries",
    "measure browse",
    "completions",
    "man",
];

#[test]
fn the_help() {
    let home = Home::new();
    assert_snapshot!(home.run(&["-h"]).shown(), @r"
    Keeps what you own - address books and calendars, for now - on your own machine, and answers any
    question about it at once

    Usage: larder [OPTIONS] <COMMAND>

    Commands:
      import       Take in address books and calendars: vCard files (2.1, 3.0, 4.0), iCalendar files,
                   folders of them, or standard input
      find         Search everything
      agenda       Show what is on, day by day
      watch        Keep a question open, and see what changes in its answer
      show         Show items: on a page of their own, as JSON, or (--format raw) as they came
      add          Add an event, a task or a memo in words; or contacts and events from a file or
                   standard input
      edit         Change an item in your editor ($VISUAL, $EDITOR), by options, or take its new text
                   from a file
      merge        Join items that are the same person; `larder undo` takes them apart again
      remove       Take items away; `larder undo` brings them back
      undo         Put back what an operation changed
      log          List what was done, newest first; with ID, what an item was before
      purge        Erase items for good: they, and all their former versions, are then in no file of the
                   store
      collections  List collections, or create, rename, index and remove them
      export       Write a collection out again, every card byte for byte as it came
      fields       List the fields that can be searched, sorted by and printed
      check        Verify the store: pages, references, and that the indexes are what the items give
      backup       Copy the store into one file while it is in use, and verify the copy
      restore      Put a backup in the store's place; what is there now is copied aside first
      serve        Stand in for another program's service, so that its clients use this store
      measure      The instruments
      completions  Print the completions for a shell
      man          Print the man page; with --out, write one for every subcommand
      help         Print this message or the help of the given subcommand(s)

    Options:
      -h, --help     Print help (see more with '--help')
      -V, --version  Print version

    Global options:
          --data-dir <DIR>    Where the store lies [default: $LARDER_DIR, else the configuration, else
                              $XDG_DATA_HOME/larder]
          --format <FORMAT>   How answers are printed; json is one object a line, its fields are
                              documented in docs/output.md [default: text] [possible values: text, json,
                              raw]
      -q, --quiet             Print no progress, notes or warnings
          --color <WHEN>      Colour the output [possible values: auto, always, never]
          --query-log <FILE>  Note in FILE what is asked, and what it costs [default: as the
                              configuration says]

    Exit codes: 0 done; 1 nothing found; 2 wrong usage; 3 some input was left out because it was bad; 4
    the store could not be used; 5 a source could not be reached; 130 interrupted.
    ");
    assert_eq!(home.run(&["help"]).shown(), home.run(&["--help"]).shown());
}

#[test]
fn the_help_of_everything() {
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
fn the_version() {
    let home = Home::new();
    assert_eq!(home.ok(&["--version"]), concat!("larder ", env!("CARGO_PKG_VERSION"), "\n"));
    assert_eq!(home.ok(&["-V"]), concat!("larder ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn the_fields() {
    let home = Home::with_book();
    let text = home.ok(&["fields"]);
    assert!(text.contains("\nfull_name             "), "{text}");
    let rows = home.json(&["fields"]);
    // Each table has a heading, and a line without anything is between them.
    assert_eq!(rows.len() + 3, text.lines().count());
    let windows = ["start", "end", "due", "created", "modified", "alarm"];
    for row in rows {
        let name = row["name"].as_str().unwrap();
        let query = match row["kind"].as_str() {
            Some("binary") => format!("has:{name}"),
            _ if windows.contains(&name) => format!("{name}:1999"),
            _ => format!("{name}:qqq"),
        };
        let run = home.run(&["find", "--count", &query]);
        assert!(run.code == 1 && run.stdout() == "0\n", "{query}: {}", run.shown());
    }
}

#[test]
fn completions_of_every_shell() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = home.ok(&["completions", shell]);
        assert!(script.contains("collections"), "{shell}");
    }
    assert_snapshot!(home.run(&["completions", "tcsh"]).shown(), @r"
    ! error: invalid value 'tcsh' for '<SHELL>'
    !   [possible values: bash, elvish, fish, powershell, zsh]
    ! 
    !   tip: a similar value exists: 'zsh'
    ! 
    ! For more information, try '--help'.
    exit 2
    ");
    home.write("script", home.ok(&["completions", "bash"]));
    let run = home.shell("command -v bash >/dev/null || exit 0; bash -n script");
    assert_eq!(run.shown(), "");
}

#[test]
fn man_pages() {
    let home = Home::new();
    let page = home.ok(&["man"]);
    assert!(page.contains(".TH larder 1"), "{page}");
    assert_eq!(home.ok(&["man", "--out", "pages"]), "");
    for command in COMMANDS {
        let name = format!("pages/larder-{}.1", command.replace(' ', "-"));
        assert!(home.work(&name).exists(), "{name}");
    }
    home.write("file", "");
    assert_snapshot!(home.run(&["man", "--out", "file/pages"]).shown(), @r"
    ! error: file/pages: a file stands where a folder should be
    ! hint: check the folder's name
    exit 5
    ");
}

#[test]
fn made_contacts() {
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
    assert_snapshot!(home.run(&["measure", "generate", "contacts", "1", "-o", "no/such/folder"]).shown(), @r"
    ! error: no/such/folder: there is no such file or folder
    ! hint: check its name
    exit 5
    ");
    assert_snapshot!(home.run(&["measure", "generate", "contacts", "many"]).shown(), @r"
    ! error: invalid value 'many' for '<NUMBER>': invalid digit found in string
    ! 
    ! For more information, try '--help'.
    exit 2
    ");
}

/// It keeps the command's exit code, and names a command that there is none of.
#[test]
fn what_a_command_costs() {
    let home = Home::new();
    let text = home.ok(&["measure", "run", "--repeat", "2", "--", "true"]);
    for cost in ["wall", "user", "sys"] {
        assert!(text.contains(cost), "{text}");
    }
    let object = &home.json(&["measure", "run", "--", "true"])[0];
    assert_eq!((&object["runs"], &object["code"]), (&1.into(), &0.into()), "{object}");
    let shown = home.ok(&["measure", "run", "--show", "--", "echo", "what it prints"]);
    assert!(shown.starts_with("what it prints\n[") && shown.ends_with(" of memory]\n"), "{shown}");
    home.code(&["measure", "run", "--", "sh", "-c", "exit 42"], 42);
    assert_snapshot!(home.run(&["measure", "run", "--", "no-such-command"]).shown(), @r"
    ! error: no-such-command: there is no such file or folder
    ! hint: check its name
    exit 5
    ");
    assert_snapshot!(home.run(&["measure", "run"]).shown(), @r"
    ! error: the following required arguments were not provided:
    !   <COMMAND>...
    ! 
    ! Usage: larder measure run -- <COMMAND>...
    ! 
    ! For more information, try '--help'.
    exit 2
    ");
}
