//! Converters of attachments, their limits, and their texts in the index.

use crate::mail_sync::{check, full_sync, small_batches};
use crate::mail_sync_model::assert_same_as_fresh;
use crate::mailbox::{COLLECTION, Mailbox};
use larder_format::message::Message;
use larder_store::Operation;
use larder_sync::{
    AttachmentConverter, ConverterLimits, ConverterSettings, MailSyncOptions, MailSyncReport,
    sync_maildir,
};
use std::fs;
use std::path::PathBuf;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// A shell script for a media type.
fn converter(media_type: &str, script: &str) -> AttachmentConverter {
    let command = ["sh", "-c", script].map(str::to_string).to_vec();
    AttachmentConverter { media_type: media_type.into(), command }
}

fn options(converters: &[AttachmentConverter]) -> MailSyncOptions {
    let limits = ConverterLimits::default();
    let converters = ConverterSettings { converters: converters.to_vec(), limits };
    MailSyncOptions { converters, ..small_batches(64) }
}

/// Returns a message with a text and an attachment of base64.
fn attachment(id: &str, media_type: &str, base64: &str) -> String {
    format!(
        "Message-ID: <{id}>\nFrom: anna@example.org\nDate: Wed, 01 Jan 2020 10:00:00 +0000\n\
         MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n\
         --b\nContent-Type: text/plain\n\nwalrus\n--b\nContent-Type: {media_type}\n\
         Content-Transfer-Encoding: base64\nContent-Disposition: attachment\n\n{base64}\n--b--\n"
    )
}

/// The bytes `REPORT SEAL`, and `REPORT OTTER`.
const SEAL: &str = "UkVQT1JUIFNFQUw=";
const OTTER: &str = "UkVQT1JUIE9UVEVS";

/// Returns the failures as lines.
fn failures(report: &MailSyncReport) -> Vec<String> {
    let failures = report.conversion_failures.iter();
    failures.map(|one| format!("{}x {}: {}", one.attachments, one.program, one.reason)).collect()
}

#[test]
fn texts_of_attachments_are_found() {
    let mut mailbox = Mailbox::new();
    mailbox.write("cur/1:2,", attachment("m1", "application/pdf", SEAL));
    mailbox.write("cur/2:2,", attachment("m2", "image/png", OTTER));
    mailbox.write("cur/3:2,", attachment("m3", "application/zip", OTTER));
    let settings = [
        converter("application/pdf", "tr A-Z a-z; printf '\\377 frosch'"),
        converter("image/*", "tr A-Z a-z"),
    ];
    assert_eq!(failures(&mailbox.sync_with(&options(&settings))), [""; 0]);
    for (line, expected) in [
        ("seal", vec!["m1"]),
        ("embed:\"report seal\"", vec!["m1"]),
        ("body:seal", vec![]),
        ("frosch", vec!["m1"]),
        ("otter", vec!["m2"]),
        ("walrus", vec!["m1", "m2", "m3"]),
        ("\"walrus report\"", vec![]),
    ] {
        assert_eq!(mailbox.find(line), expected, "{line}");
    }
    check(&mailbox.store);
    // Other converters are other rules: all messages are read again.
    let report = mailbox.sync_with(&options(&settings[..1]));
    assert_eq!(report.reread_files, 3);
    assert_eq!((mailbox.find("otter").len(), mailbox.find("seal").len()), (0, 1));
    assert_eq!(mailbox.sync().reread_files, 3);
    assert_eq!(mailbox.find("seal").len(), 0);
    assert_same_as_fresh(&mailbox);
    check(&mailbox.store);
}

/// What the converters of a synchronisation have no time for is left to the next one.
#[test]
fn converters_of_a_synchronisation_have_a_time_limit() {
    postpone_attachments(64);
    // The message and the mark that it is to be read again are more than one transaction takes.
    postpone_attachments(1);
}

fn postpone_attachments(batch_messages: usize) {
    let mut mailbox = Mailbox::new();
    for number in 0..5 {
        let type_of_all = "application/pdf";
        // Other bytes in each, as a text that is known is not made again.
        let content = format!("{SEAL}{}", "IFg=".repeat(number));
        mailbox.write(
            format!("cur/{number}:2,"),
            attachment(&format!("m{number}"), type_of_all, &content.replace('=', "A")),
        );
    }
    let mut options = options(&[converter("application/pdf", "tr A-Z a-z")]);
    let reason = "the converters of this run had all their time: the next larder sync goes on";
    options.readers = 1;
    options.batch_messages = batch_messages;
    for found in [0, 1, 2] {
        options.converters.limits.run_time = Duration::from_nanos(u64::from(found > 0));
        let report = mailbox.sync_with(&options);
        assert_eq!(failures(&report), [format!("{}x sh: {reason}", 5 - found)]);
        // They were not tried: a watch goes on with them in its next round.
        assert_eq!(report.postponed_files, Vec::<PathBuf>::new());
        assert_eq!(mailbox.find("report").len(), found);
        assert_eq!(mailbox.find("walrus").len(), 5);
    }
    options.converters.limits = ConverterLimits::default();
    assert_eq!(failures(&mailbox.sync_with(&options)), [""; 0]);
    assert_eq!(mailbox.find("report").len(), 5);
    check(&mailbox.store);
}

/// The script appends a line to a file for each run.
#[test]
fn a_content_is_converted_once() {
    let mut mailbox = Mailbox::new();
    let log = mailbox.outside_path("log");
    let script = format!("echo run >>{}; cat", log.display());
    let settings = [converter("application/pdf", &script)];
    let runs = || fs::read_to_string(&log).unwrap_or_default().lines().count();
    for number in 0..20 {
        let content = if number % 2 == 0 { SEAL } else { OTTER };
        let text = attachment(&format!("m{number}"), "application/pdf", content);
        mailbox.write(format!("cur/{number}:2,"), text);
    }
    mailbox.sync_with(&MailSyncOptions { readers: 1, ..options(&settings) });
    assert_eq!((runs(), mailbox.find("seal").len()), (2, 10));
    // Changed rules and edited files read messages again.
    let own = MailSyncOptions {
        personal_addresses: vec!["anna@example.org".into()],
        ..options(&settings)
    };
    assert_eq!(mailbox.sync_with(&own).reread_files, 20);
    mailbox.write("cur/0:2,", attachment("m0", "application/pdf", SEAL) + "\n\n");
    mailbox.sync_with(&MailSyncOptions { is_full: true, ..own.clone() });
    assert_eq!((runs(), mailbox.find("seal").len()), (2, 10));
    // The text goes with the last message that has it.
    for number in 0..20 {
        if number % 2 == 0 {
            fs::remove_file(mailbox.root().join(format!("cur/{number}:2,"))).unwrap();
        }
    }
    mailbox.sync_with(&own);
    mailbox.write("cur/30:2,", attachment("m30", "application/pdf", SEAL));
    mailbox.write("cur/31:2,", attachment("m31", "application/pdf", OTTER));
    mailbox.sync_with(&own);
    assert_eq!((runs(), mailbox.find("seal").len()), (3, 1));
    check(&mailbox.store);
}

/// A content that fits into no pipe, and converters that do not read it.
#[test]
fn large_contents_pass_through_pipes() {
    let mut mailbox = Mailbox::new();
    let line = "c2VhbCBvdHRlciB3YWxydXMgc2VhbCBvdHRlciB3YWxydXMg";
    let content = vec![line; 20_000].join("\n");
    mailbox.write("cur/1:2,", attachment("m1", "application/pdf", &content));
    mailbox.write("cur/2:2,", attachment("m2", "image/png", &content));
    mailbox.write("cur/3:2,", attachment("m3", "audio/ogg", &content));
    let settings = [
        converter("application/pdf", "cat"),
        converter("image/*", "head -c 5"),
        converter("audio/*", "exec <&-; sleep 0.1; echo frosch"),
    ];
    assert_eq!(failures(&mailbox.sync_with(&options(&settings))), [""; 0]);
    assert_eq!(mailbox.find("embed:walrus"), ["m1"]);
    assert_eq!(mailbox.find("embed:\"walrus seal\""), ["m1"]);
    assert_eq!(mailbox.find("embed:seal"), ["m1", "m2"]);
    assert_eq!(mailbox.find("frosch"), ["m3"]);
}

#[test]
fn failures_are_counted_and_the_messages_indexed() {
    let too_long = "yes seal";
    for (script, reason, has_text) in [
        ("exit 3", "3x sh: the program ended with status 3", false),
        ("cat; exit 1", "3x sh: the program ended with status 1", false),
        ("kill -ABRT $$", "3x sh: the program was ended by signal 6", false),
        (
            too_long,
            "3x sh: the text is longer than mail.converter-limits.output, and was cut off",
            true,
        ),
    ] {
        let mut mailbox = Mailbox::new();
        for (number, content) in [SEAL, OTTER, "d2Fs"].into_iter().enumerate() {
            let text = attachment(&format!("m{number}"), "application/pdf", content);
            mailbox.write(format!("cur/{number}:2,"), text);
        }
        let mut options = options(&[converter("application/pdf", script)]);
        options.converters.limits.output_bytes = 1000;
        assert_eq!(failures(&mailbox.sync_with(&options)), [reason], "{script}");
        assert_eq!(mailbox.find("walrus").len(), 3);
        assert_eq!(mailbox.find("seal").len(), if has_text { 3 } else { 0 }, "{script}");
        // They are not tried again before the user asks for it.
        assert_eq!(failures(&mailbox.sync_with(&options)), [""; 0]);
        let full = MailSyncOptions { is_full: true, ..options };
        assert_eq!(failures(&mailbox.sync_with(&full)), [reason], "{script}");
        check(&mailbox.store);
    }
}

#[test]
fn a_missing_program_is_named() {
    let mut mailbox = Mailbox::new();
    mailbox.write("cur/1:2,", attachment("m1", "application/pdf", SEAL));
    let command = vec!["/no/such/program".to_string()];
    let missing = AttachmentConverter { media_type: "application/pdf".into(), command };
    let report = mailbox.sync_with(&options(&[missing]));
    assert_eq!(failures(&report), ["1x /no/such/program: the program was not found"]);
    assert_eq!(report.conversion_failures[0].path, mailbox.root().join("cur/1:2,"));
    assert_eq!(mailbox.find("walrus"), ["m1"]);
}

/// A converter is repaired, and its words come into the index, also when an earlier attempt was
/// interrupted.
#[test]
fn a_full_synchronisation_tries_failures_again() {
    let mut mailbox = Mailbox::new();
    let program = mailbox.outside_path("program");
    fs::write(&program, "exit 1").unwrap();
    let command = vec!["sh".to_string(), program.display().to_string()];
    let settings = [AttachmentConverter { media_type: "application/pdf".into(), command }];
    for number in 0..10 {
        let text = attachment(&format!("m{number}"), "application/pdf", SEAL);
        mailbox.write(format!("cur/{number}:2,"), &text);
        mailbox.write(format!("copies/cur/{number}:2,S"), text);
    }
    mailbox.settle_files();
    mailbox.sync_with(&options(&settings));
    fs::write(&program, "cat").unwrap();
    assert_eq!(mailbox.sync_with(&options(&settings)).reread_files, 0);
    assert_eq!(mailbox.find("seal").len(), 0);
    let full = MailSyncOptions { is_full: true, batch_messages: 4, ..options(&settings) };
    let (root, asked) = (mailbox.root(), std::cell::Cell::new(0));
    let is_cancelled = || asked.replace(asked.get() + 1) > 2;
    let store = &mut mailbox.store;
    let report = sync_maildir(store, &root, COLLECTION, &full, &mut |_| {}, &is_cancelled);
    assert!(report.unwrap().is_interrupted);
    let found = mailbox.find("seal").len();
    assert!(found < 10);
    // A synchronisation that is not full finishes it.
    mailbox.sync_with(&options(&settings));
    assert_eq!(mailbox.find("seal").len(), 10);
    assert_eq!(mailbox.find("walrus flag:seen").len(), 10);
    assert_eq!(mailbox.sync_with(&full).reread_files, 0);
    check(&mailbox.store);
}

/// A converter that hangs is ended with all processes that it started, and is soon not run any
/// more.
#[test]
fn a_converter_that_hangs_is_ended() {
    let mut mailbox = Mailbox::new();
    let pids = mailbox.outside_path("pids");
    let script = format!(
        "sleep 1000 & echo $! >>{0}; setsid sleep 1000 & echo $! >>{0}; echo $$ >>{0}; wait",
        pids.display()
    );
    for number in 0..5 {
        let content = format!("{SEAL}{number}AAA");
        let text = attachment(&format!("m{number}"), "application/pdf", &content);
        mailbox.write(format!("cur/{number}:2,"), text);
    }
    let mut options = options(&[converter("application/pdf", &script)]);
    options.converters.limits.time = Duration::from_millis(200);
    options.readers = 1;
    let report = mailbox.sync_with(&options);
    assert_eq!(
        failures(&report),
        [
            "3x sh: the program took longer than mail.converter-limits.time",
            "2x sh: the program took too long too often, and was not run again",
        ]
    );
    assert_eq!(mailbox.find("walrus").len(), 5);
    // Those that are not to blame are tried by the next one, and no other.
    let report = mailbox.sync_with(&options);
    let reason = "2x sh: the program took longer than mail.converter-limits.time";
    assert_eq!((report.reread_files, failures(&report)), (2, vec![reason.to_string()]));
    let report = mailbox.sync_with(&options);
    assert_eq!((report.reread_files, failures(&report).len()), (0, 0));
    check(&mailbox.store);
    for pid in fs::read_to_string(&pids).unwrap().lines() {
        let status = fs::read_to_string(PathBuf::from("/proc").join(pid).join("stat"));
        // Nobody may have read the status of a process yet that lost its parent.
        let is_gone = status.is_err() || status.unwrap().contains(") Z ");
        assert!(is_gone, "process {pid} is still there");
    }
}

/// A converter that is limited in memory cannot take what it wants.
#[test]
fn the_memory_of_a_converter_is_limited() {
    let mut mailbox = Mailbox::new();
    mailbox.write("cur/1:2,", attachment("m1", "application/pdf", SEAL));
    // `dd` takes a buffer of this size.
    let script = "cat >/dev/null; exec dd if=/dev/zero of=/dev/null bs=200M count=1";
    let mut settings = options(&[converter("application/pdf", script)]);
    assert_eq!(failures(&mailbox.sync_with(&settings)), [""; 0]);
    // Another command, whose text is not known.
    settings.converters.converters = vec![converter("application/pdf", &format!("{script} 2>&1"))];
    settings.converters.limits.memory_bytes = 100 << 20;
    let report = mailbox.sync_with(&settings);
    assert_eq!(failures(&report), ["1x sh: the program ended with status 1"]);
}

/// The end of a synchronisation does not wait for a converter.
#[test]
fn an_interruption_ends_converters() {
    let mut mailbox = Mailbox::new();
    for number in 0..20 {
        let content = format!("{SEAL}{number:03}A");
        let text = attachment(&format!("m{number}"), "application/pdf", &content);
        mailbox.write(format!("cur/{number}:2,"), text);
    }
    let program = mailbox.outside_path("program");
    fs::write(&program, "exec sleep 1000").unwrap();
    let command = vec!["sh".to_string(), program.display().to_string()];
    let settings = [AttachmentConverter { media_type: "application/pdf".into(), command }];
    let mut options = options(&settings);
    options.converters.limits.time = Duration::from_secs(600);
    options.batch_messages = 1;
    let (sender, receiver) = channel();
    let interrupted = options.clone();
    let thread = std::thread::spawn(move || {
        let began = Instant::now();
        let root = mailbox.root();
        let store = &mut mailbox.store;
        let report = sync_maildir(store, &root, COLLECTION, &interrupted, &mut |_| {}, &|| true);
        sender.send((report.unwrap().is_interrupted, began.elapsed())).unwrap();
        mailbox
    });
    let (is_interrupted, elapsed) = receiver.recv_timeout(Duration::from_secs(60)).unwrap();
    assert!(is_interrupted && elapsed < Duration::from_secs(30), "{elapsed:?}");
    let mut mailbox = thread.join().unwrap();
    // A conversion that was ended gave no text, and is made again.
    fs::write(&program, "cat; echo otter").unwrap();
    assert_eq!(failures(&mailbox.sync_with(&options)), [""; 0]);
    assert_eq!(mailbox.find("otter").len(), 20);
}

/// Returns a message with these contents as attachments, in base64.
fn attachments(id: &str, contents: &[&str]) -> String {
    let text = attachment(id, "application/pdf", contents[0]);
    let text = text.strip_suffix("--b--\n").unwrap();
    let others = contents[1..].iter().map(|content| {
        format!(
            "--b\nContent-Type: application/pdf\nContent-Transfer-Encoding: base64\n\n{content}\n"
        )
    });
    format!("{text}{}--b--\n", others.collect::<String>())
}

/// All attachments of a message together have a limit, which says nothing about their contents.
#[test]
fn the_texts_of_a_message_have_a_budget() {
    let mut mailbox = Mailbox::new();
    let contents: Vec<String> = (0..6).map(|number| format!("{SEAL}{number:03}A")).collect();
    let contents: Vec<&str> = contents.iter().map(String::as_str).collect();
    mailbox.write("cur/1:2,", attachments("m1", &contents));
    mailbox.settle_files();
    let mut options = options(&[converter("application/pdf", "cat; printf ' %0900d' 7")]);
    options.converters.limits.output_bytes = 1000;
    let reason = "2x sh: the other attachments of the message have too much text";
    assert_eq!(failures(&mailbox.sync_with(&options)), [reason]);
    assert_eq!(mailbox.find("seal").len(), 1);
    let text = attachments("m1", &contents);
    let message = Message::parse(text.as_bytes());
    let reader = mailbox.store.open_reader().unwrap();
    let (_, last) = message.attachments().last().unwrap();
    let found = options.converters.find_indexed_text(&reader, last).unwrap().unwrap();
    let shown = "the other attachments of the message have too much text";
    assert_eq!(found.converted.unwrap().failure.as_deref(), Some(shown));
    drop(reader);
    mailbox.write("cur/2:2,", attachments("m2", &contents[5..]));
    mailbox.settle_files();
    assert_eq!(failures(&mailbox.sync_with(&options)), [""; 0]);
    assert_eq!(mailbox.find("embed:seal"), ["m1", "m2"]);
    // The first message has no text of what the second one has.
    assert_eq!(mailbox.verify(&options).files, 2);
    let full = MailSyncOptions { is_full: true, ..options };
    let report = mailbox.sync_with(&full);
    assert_eq!((report.reread_files, failures(&report)), (1, vec![reason.to_string()]));
    check(&mailbox.store);
}

/// An attachment that has less than all the time of a message is not to blame.
#[test]
fn an_attachment_without_time_is_tried_again() {
    let mut mailbox = Mailbox::new();
    mailbox.write("cur/1:2,", attachments("m1", &[SEAL, OTTER]));
    let script = "text=$(cat); case $text in *SEAL) echo seal;; *) exec sleep 1000;; esac";
    let mut options = options(&[converter("application/pdf", script)]);
    options.converters.limits.time = Duration::from_secs(1);
    let reason = vec!["1x sh: the program took longer than mail.converter-limits.time".to_string()];
    assert_eq!(failures(&mailbox.sync_with(&options)), reason);
    assert_eq!(mailbox.find("seal"), ["m1"]);
    let report = mailbox.sync_with(&options);
    assert_eq!((report.reread_files, failures(&report)), (1, reason));
    let report = mailbox.sync_with(&options);
    assert_eq!((report.reread_files, failures(&report)), (0, vec![]));
    check(&mailbox.store);
}

/// Mail programs send files whose type they do not know as bytes.
#[test]
fn the_ending_of_a_file_name_tells_its_type() {
    let mut mailbox = Mailbox::new();
    for (number, media_type) in [
        "application/octet-stream; name=\"report.PDF\"",
        "application/x-download; name=report.pdf",
        "application/octet-stream; name=report.xyz",
        "application/octet-stream",
        "image/png; name=report.pdf",
    ]
    .into_iter()
    .enumerate()
    {
        let text = attachment(&format!("m{number}"), media_type, SEAL);
        mailbox.write(format!("cur/{number}:2,"), text);
    }
    let settings = [
        converter("application/pdf", "echo found"),
        converter("application/octet-stream", "echo other"),
    ];
    mailbox.sync_with(&options(&settings));
    assert_eq!(mailbox.find("embed:found"), ["m0", "m1"]);
    assert_eq!(mailbox.find("embed:other"), ["m2", "m3"]);
}

/// No word of a purged message stays, neither in the index nor in a converted text.
#[test]
fn a_purge_erases_converted_texts() {
    let mut mailbox = Mailbox::new();
    // The word is not in the file, nor in the command, which the rules name.
    let script = "sed \"s/REPORT/$(echo zebra)stripe/\"";
    let settings = [converter("application/pdf", script)];
    mailbox.write("cur/1:2,", attachment("m1", "application/pdf", SEAL));
    mailbox.write("cur/2:2,", attachment("m2", "application/pdf", SEAL));
    mailbox.sync_with(&options(&settings));
    let purge = |mailbox: &mut Mailbox, uid: &str| {
        let reader = mailbox.store.open_reader().unwrap();
        let handle = {
            let mail = reader.mail().unwrap();
            mail.message(mail.rows_with_uid(uid).unwrap()[0]).unwrap().unwrap().handle
        };
        drop(reader);
        mailbox.store.purge(&mut Operation::new("purge", "", 0), &[handle]).unwrap();
    };
    let has_text = |mailbox: &Mailbox| {
        fs::read_dir(mailbox.outside_path("index")).unwrap().any(|entry| {
            let bytes = fs::read(entry.unwrap().path()).unwrap();
            bytes.windows(11).any(|window| window == b"zebrastripe")
        })
    };
    assert!(has_text(&mailbox));
    // The other message has the same text.
    purge(&mut mailbox, "m1");
    assert_eq!(mailbox.find("zebrastripe"), ["m2"]);
    purge(&mut mailbox, "m2");
    assert!(!has_text(&mailbox));
    check(&mailbox.store);
    mailbox
        .sync_with(&MailSyncOptions { converters: options(&settings).converters, ..full_sync() });
    assert_eq!(mailbox.find("zebrastripe"), ["m1", "m2"]);
}
