//! Truncated, damaged and malicious logs: nothing panics, and every omitted line is reported.

use crate::generated_log;
use crate::query_log::{log, report};
use larder_measure::query_log::log_reader::LogLine;
use larder_measure::query_log::{anonymise, read_log, render_html};
use proptest::prelude::*;

#[test]
fn unreadable_lines_are_reported_by_number() {
    let check = |text: &str, expect: &[(u64, &str)]| {
        let it = report(text).bad_lines;
        let named: Vec<(u64, &str)> =
            it.samples.iter().map(|it| (it.line, it.reason.as_str())).collect();
        assert_eq!(named, expect, "{text}");
        assert_eq!(it.lines, expect.len() as u64);
    };
    let end = r#"{"at_us":1,"pid":2,"event":"end"}"#;
    check("", &[]);
    check(&format!("\n{end}\r\n\n{end}"), &[]);
    check(&format!("{end}\n{{\"at_us\":1,\"pid\":2,\"ev"), &[(2, "incomplete line")]);
    let none = "not a JSON object";
    check("nonsense\n[1,2,\"end\"]\n7", &[(1, none), (2, none), (3, none)]);
    check("{\"at_us\":1,\"pid\":2}", &[(1, "missing field `event`, at column 19")]);
    check(
        "{\"at_us\":1,\"pid\":-2,\"event\":\"end\"}",
        &[(1, "invalid value: integer `-2`, expected u64, at column 19")],
    );
    check(
        "{\"at_us\":1e300,\"pid\":2,\"event\":\"end\"}",
        &[(1, "invalid type: floating point `1e+300`, expected i64, at column 14")],
    );
    let query_with = |field: &str| log(&format!("1 2 query {field}"));
    check(&query_with("us=-1"), &[(1, "invalid value: integer `-1`, expected u64, at column 42")]);
    assert_eq!(report(&query_with("us=many")).bad_lines.lines, 1);
    assert_eq!(report(&query_with("origin=elsewhere")).bad_lines.lines, 1);
    // Unknown fields and events are ignored.
    let later = r#"{"at_us":1,"pid":2,"event":"close","view":3,"us":[],"reason":7}"#;
    check(&format!("{later}\n{{\"at_us\":1,\"pid\":2,\"event\":\"dream\",\"view\":\"x\"}}"), &[]);
    assert_eq!(report("{\"at_us\":1,\"pid\":2,\"event\":\"dream\"}").unknown_lines, 1);
    assert!(report("{\"at_us\":1,\"pid\":2,\"event\":\"dream\"}\nx").is_empty());
    let drop = log("1 2 evict answer=1 reason=tired");
    check(&drop, &[]);
}

#[test]
fn invalid_utf8_and_long_lines_are_reported() {
    let mut text = b"\xff\xfe\n".to_vec();
    text.extend(
        format!("{{\"at_us\":1,\"pid\":2,\"event\":\"{}\"}}\n", "x".repeat(1 << 20)).bytes(),
    );
    text.extend(b"{\"at_us\":1,\"pid\":2,\"event\":\"end\"}");
    let it = read_log(&mut text.as_slice(), None).unwrap();
    assert_eq!((it.lines, it.bad_lines.lines), (1, 2));
    let long = &it.bad_lines.samples[1];
    assert_eq!((long.line, long.reason.as_str()), (2, "longer than 1048576 bytes"));
    let many = "x\n".repeat(1000);
    let it = report(&many).bad_lines;
    assert_eq!((it.lines, it.samples.len()), (1000, 20));
}

/// The largest numbers, times out of order and at the limits of their type, and texts with markup.
#[test]
fn extreme_values_and_markup_are_harmless() {
    let most = u64::MAX;
    let text = log(&format!(
        r#"
        -9223372036854775808 1 start budget={most}
        9223372036854775807 1 query us={most} bytes={most} rows_read={most} returned={most} answer={most}
        0 1 query us={most} bytes={most} rows_read={most} returned={most} answer={most} origin=cache
        5 1 open view={most} us={most} bytes={most} rows_read={most} answer={most} client=<script>
        4 1 open view={most} us={most} bytes={most} answer=7 query=("</title><b>")
        3 1 close view={most}
        2 1 close view={most}
        1 1 change kinds=[[null,null]] items={most} tested={most} notified={most} us={most}
        1 1 change kinds=[["x","y"]] items={most} tested={most} notified={most} us={most}
        1 1 notify added={most} modified={most} removed={most}
        1 1 notify added={most} modified={most} removed={most}
        1 1 evict answer={most} reason=budget
        1 1 end
        1 1 end
        1 1 open view=3
        "#
    ))
    .replace("(\"</title><b>\")", "(\\\"</title><b>\\\")");
    let it = report(&text);
    assert_eq!(it.bad_lines.lines, 0, "{:?}", it.bad_lines);
    let html = render_html(("<b>&", &it), Some(("\u{1b}\u{0}", &it)), &|_| i64::MAX);
    assert!(!html.contains("<script") && !html.contains("<b>&") && !html.contains('\u{0}'));
    assert!(html.contains("&lt;script&gt;"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// A damaged log can be read, rendered and anonymised.
    #[test]
    fn a_damaged_log_does_not_panic(
        from in 0..300_usize,
        damage in prop::collection::vec((0..40_000_usize, any::<u8>()), 0..40),
        cut in 0..60_000_usize,
    ) {
        let day = generated_log::day();
        let mut bytes: Vec<u8> =
            day.lines().skip(from).step_by(7).flat_map(|line| [line, "\n"]).flat_map(str::bytes).collect();
        for (at, byte) in damage {
            let length = bytes.len();
            bytes[at % length] = byte;
        }
        bytes.truncate(cut.max(1));
        let it = read_log(&mut bytes.as_slice(), Some(5000)).unwrap();
        assert!(!render_html(("x", &it), None, &|_| -3600).is_empty());
        let mut out = Vec::new();
        anonymise(&mut bytes.as_slice(), &mut out).unwrap();
        for line in String::from_utf8(out).unwrap().lines() {
            LogLine::parse(line).unwrap();
        }
    }

    /// Lines with any numbers, in any order, can be read and rendered.
    #[test]
    fn any_numbers_are_accepted(lines in prop::collection::vec((any::<i64>(), 0..3_u64, 0..8_usize, any::<u64>(), 0..4_u64), 0..60)) {
        let mut text = String::new();
        for (at, pid, event, number, view) in lines {
            let event = [
                format!("open view={view} bytes={number} answer={view} us={number}"),
                format!("query bytes={number} answer={view} rows_read={number}"),
                format!("query origin=cache bytes={number} answer={view}"),
                format!("close view={view}"),
                format!("evict answer={view} reason=stale"),
                format!("change notified={number} us={number} kinds=[[\"Work\",\"event\"]]"),
                format!("start budget={number}"),
                "end".into(),
            ][event].clone();
            text += &format!("{at} {pid} {event}\n");
        }
        let it = report(&log(&text));
        prop_assert_eq!(it.bad_lines.lines, 0);
        prop_assert_eq!(it.lifetimes.opened, it.lifetimes.closed + it.lifetimes.unclosed_count);
        assert!(!render_html(("x", &it), None, &|_| 7200).is_empty());
    }
}
