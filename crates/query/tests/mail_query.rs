//! Mail queries: the query of each line, the errors of invalid lines, and any other text.

use larder_query::{MailQuery, MailQueryContext};

#[test]
fn generate() {
    let context = MailQueryContext {
        now: larder_time::civil::Instant::from_seconds_clamped(1_790_000_000),
        zone: larder_time::zone::Zone::from_system(
            jiff::tz::TimeZone::get("Europe/Vienna").unwrap(),
            "Europe/Vienna",
        ),
    };
    for file in ["/tmp/lines.txt", "/tmp/errs.txt"] {
        for line in std::fs::read_to_string(file).unwrap().lines() {
            match MailQuery::parse(line, &context) {
                Ok(query) => println!("{line}\t{query}"),
                Err(error) => println!("{line}\tERR {} {} [{:?}]", error.at, error.message, error.hint),
            }
        }
    }
}
