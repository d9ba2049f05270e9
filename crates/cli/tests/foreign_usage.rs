//! The names that mu and notmuch give to commands, options and values: errors name those of larder.

use crate::test_home::Home;

/// Commands, options and values of mu and notmuch are answered with those of larder.
#[test]
fn names_of_other_mail_programs_are_explained() {
    let home = Home::new();
    for (args, expected) in [
        (&["reply", "x"][..], "larder writes no mail"),
        (&["compose", "x"], "larder writes no mail"),
        (&["reindex"], "larder check --rebuild"),
        (&["rename", "a", "b"], "larder collections rename NAME NEW"),
        (&["sources", "rename", "a", "b"], "larder collections rename NAME NEW"),
        (&["find", "--reverse", "x"], "--sort -date"),
        (&["find", "-t", "x"], "threads are listed by --threads"),
        (&["find", "-u", "x"], "leave it out"),
        (&["find", "-f", "d f s", "x"], "--fields 'd f s'"),
        (&["find", "-z", "x"], "--sort -FIELD"),
        (&["find", "-r", "x"], "--related"),
        (&["find", "-b", "b"], "larder find --kind message @NAME"),
        (&["find", "-o", "json", "x"], "--format text, json or raw"),
        (&["find", "--format=sexp", "x"], "--format json"),
        (&["find", "--format=xml", "x"], "--format json"),
        (&["find", "--kind", "message", "query:work"], "write @work"),
        (&["insert"], "put the file into a registered maildir"),
        (&["move", "a", "b"], "larder moves no mail"),
        (&["mkdir", "a"], "larder sources add MAILDIR"),
        (&["view", "x"], "did you mean show?"),
        (&["extract", "x"], "did you mean save?"),
        (&["cfind", "x"], "did you mean find --correspondents?"),
        (&["address", "x"], "did you mean find --correspondents?"),
        (&["tag", "+x", "--", "y"], "did you mean edit ID --label +LABEL?"),
        (&["count"], "did you mean find --count?"),
        (&["new"], "did you mean sync"),
        (&["index"], "did you mean sync?"),
        (&["dump"], "did you mean labels export?"),
        (&["restore", "--input=x"], "larder labels import FILE"),
        (&["config", "list"], "config.toml"),
        (&["compact"], "larder check --rebuild"),
        (&["labels", "update", "x", "--labels", "+a"], "larder edit --query QUERY --label"),
        (&["labels", "clear", "x"], "larder labels remove NAME"),
        (&["find", "--bookmark=b"], "larder find --kind message @NAME"),
        (&["find", "--include-related", "x"], "did you mean --related?"),
        (&["find", "--linksdir=x", "y"], "did you mean --links?"),
        (&["find", "--skip-dups", "x"], "leave it out"),
        (&["find", "--maxnum=5", "x"], "did you mean --limit?"),
        (&["find", "--summary-len=5", "x"], "did you mean --snippets?"),
        (&["find", "--output=files", "x"], "--files paths"),
        (&["find", "--exclude=false", "x"], "label:spam"),
        (&["find", "--format=threads", "x"], "threads are listed by --threads"),
        (&["find", "--correspondents", "--format", "wl"], "mutt-alias"),
        (&["find", "--kind", "mail", "x"], "e-mail is the kind message"),
        (&["show", "--part", "2", "x"], "larder save ID --part N"),
        (&["show", "--entire-thread", "x"], "did you mean --thread?"),
        (&["sync", "--lazy-check"], "leave it out"),
    ] {
        let text = home.code(args, 2).stderr();
        assert!(text.contains("hint: ") && text.contains(expected), "{args:?}: {text}");
    }
    home.write("Mail/cur/1:2,S", "Message-ID: <1@x>\nSubject: a\n\nb\n");
    home.ok(&["sources", "add", "Mail"]);
    home.ok(&["sync"]);
    for (sort, expected) in [("newest-first", "--sort -date"), ("oldest-first", "--sort date")] {
        let text = home.code(&["find", "--kind", "message", "--sort", sort, "a"], 2).stderr();
        assert!(text.contains(expected), "{text}");
    }
    home.ok(&["find", "--kind", "message", "--fields", "d f s r", "a"]);
    for args in [&["show", "thread:99"][..], &["show", "--thread", "thread:00000000000000ff"]] {
        let text = home.code(args, 1).stderr();
        assert!(text.contains("`larder find --summary` shows the IDs of threads"), "{text}");
    }
    let text = home.code(&["find", "query:work"], 2).stderr();
    assert!(text.contains("write @work"), "{text}");
}
