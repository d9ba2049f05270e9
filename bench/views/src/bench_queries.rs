//! The queries of the benchmarks: months, and a mix for ten thousand views.

use crate::Result;
use jiff::tz::TimeZoneDatabase;
use larder_query::views::{
    QuerySyntax, View, ViewEvent, ViewInterest, ViewOptions, ViewQuery, Views, ViewsOptions,
};
use larder_query::{QueryContext, UserLocale};
use larder_store::{Kind, Reader};
use larder_time::civil::{Date, Instant};
use larder_time::zone::ZoneDatabase;
use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// The first of the ten years of the calendar.
const FIRST_YEAR: i64 = 2017;
/// Of a thousand views this number is open on a word of two letters, which has no trigram.
const SHORT_PREFIX_VIEWS_PER_THOUSAND: usize = 2;

/// The time zones of this system, with their version, as `larder` has them.
pub(crate) fn system_zones() -> Arc<ZoneDatabase> {
    static SYSTEM_ZONES: OnceLock<Arc<ZoneDatabase>> = OnceLock::new();
    Arc::clone(SYSTEM_ZONES.get_or_init(|| {
        let database = TimeZoneDatabase::from_env();
        let first = fs::read_to_string("/usr/share/zoneinfo/tzdata.zi").unwrap_or_default();
        let version = first.lines().next().and_then(|line| line.strip_prefix("# version "));
        Arc::new(match version {
            Some(version) => ZoneDatabase::with_version(database, format!("tzdata {version}")),
            None => ZoneDatabase::new(database),
        })
    }))
}

/// The current time of the benchmarks: the middle of the calendar.
pub(crate) fn bench_now() -> Instant {
    Instant::from_seconds_clamped(1_640_995_200)
}

pub(crate) fn views_config(cache_bytes: usize) -> ViewsOptions {
    ViewsOptions {
        zones: system_zones(),
        cache_bytes,
        clock: Arc::new(bench_now),
        watch: false,
        ..ViewsOptions::default()
    }
}

/// The context of all queries, in UTC.
pub(crate) fn bench_settings() -> Arc<QueryContext> {
    static BENCH_SETTINGS: OnceLock<Arc<QueryContext>> = OnceLock::new();
    let settings = || {
        let user_locale =
            UserLocale { now: bench_now(), zones: system_zones(), ..UserLocale::default() };
        Arc::new(QueryContext { user_locale, ..QueryContext::default() })
    };
    Arc::clone(BENCH_SETTINGS.get_or_init(settings))
}

pub(crate) fn line_query(text: &str) -> ViewQuery {
    ViewQuery::new(QuerySyntax::Line, text, bench_settings())
}

pub(crate) fn sexp_query(text: &str) -> ViewQuery {
    ViewQuery::new(QuerySyntax::Sexp, text, bench_settings())
}

pub(crate) fn format_iso_date(day: i64) -> String {
    let date = Date::from_day_number(day);
    format!("{:04}-{:02}-{:02}", date.year, date.month, date.day)
}

/// The range from the beginning of one day to the beginning of another, both `earlier` hours
/// before.
pub(crate) fn time_range_sexp(from: i64, to: i64, earlier: i64) -> String {
    let at = |day: i64| {
        let (day, hour) = if earlier > 0 { (day - 1, 24 - earlier) } else { (day, 0) };
        format!("{}T{hour:02}0000Z", format_iso_date(day).replace('-', ""))
    };
    format!("(occur-in-time-range? (make-time \"{}\") (make-time \"{}\"))", at(from), at(to))
}

/// The first day of a month, counted from the beginning of the calendar.
pub(crate) fn month_start(number: i64) -> i64 {
    let (year, month) = (FIRST_YEAR + number.div_euclid(12), 1 + number.rem_euclid(12));
    let date = Date::new(year as i32, month as u8, 1);
    date.map_or(0, Date::day_number)
}

/// 180 different months: the months of the calendar in UTC, and half of them one hour east of it.
pub(crate) fn month_query_lines() -> Vec<String> {
    let line = |number: i64, earlier: i64| {
        let (from, to) = (month_start(number), month_start(number + 1));
        format!(
            "month\twhen:{}\t{}",
            &format_iso_date(from)[..7],
            time_range_sexp(from, to, earlier)
        )
    };
    let utc = (0..120).map(|number| line(number, 0));
    utc.chain((0..60).map(|number| line(2 * number, 1))).collect()
}

/// The words and ids that queries are made of.
#[derive(Default)]
struct SearchTerms {
    words: Vec<String>,
    addresses: Vec<String>,
    uids: Vec<String>,
}

impl SearchTerms {
    fn from_store(store: &Path) -> Result<SearchTerms> {
        let reader = Reader::open_with_zones(store, system_zones())?;
        let mut search_terms = SearchTerms::default();
        for collection in reader.collections().list()? {
            if collection.name.starts_with("planted") {
                continue;
            }
            for meta in reader.items().list_after(&collection, None, 4000)? {
                search_terms.uids.push(meta.uid.clone());
                if meta.kind != Kind::Contact {
                    continue;
                }
                let card = reader.items().source_bytes(meta.row)?.unwrap_or_default();
                search_terms.add_card(&String::from_utf8_lossy(&card));
            }
        }
        Ok(search_terms)
    }

    fn add_card(&mut self, card: &str) {
        for line in card.lines() {
            let Some((name, value)) = line.split_once(':') else { continue };
            if name == "FN" || name.starts_with("FN;CHARSET") {
                let long = |word: &&str| word.chars().count() >= 4 && !word.contains('=');
                self.words.extend(value.split_whitespace().filter(long).map(str::to_lowercase));
            }
            if name.contains("EMAIL") && value.contains('@') {
                self.addresses.push(value.trim().to_string());
            }
        }
    }
}

/// Returns `number` different queries, in the shares in which the programs of a desktop have them
/// open.
pub(crate) fn query_mix(store: &Path, number: usize) -> Result<Vec<ViewQuery>> {
    let search_terms = SearchTerms::from_store(store)?;
    let (mut all, mut known) = (Vec::new(), HashSet::new());
    let mut put = |share: usize, queries: &mut dyn Iterator<Item = ViewQuery>| {
        let before = all.len();
        let wanted = number * share / 1000;
        for query in queries {
            if all.len() - before >= wanted {
                break;
            }
            if known.insert(query_key(&query)) {
                all.push(query);
            }
        }
    };
    let first = month_start(0);
    let restrict = |query: ViewQuery, number: i64| match number % 2 {
        0 => query.with_collection("calendar"),
        _ => query.with_kind(Kind::Event),
    };
    let day = |n: i64| restrict(line_query(&format!("when:{}", format_iso_date(first + n))), n);
    put(250, &mut (0..3650).map(day));
    let week =
        |n: i64| restrict(sexp_query(&time_range_sexp(first + 1 + 7 * n, first + 8 + 7 * n, 0)), n);
    put(50, &mut (0..520).map(week));
    let month = |n: i64| {
        restrict(
            sexp_query(&time_range_sexp(month_start(n % 120), month_start(n % 120 + 1), n / 120)),
            n,
        )
    };
    put(30, &mut (0..600).map(month));
    let prefixes = |letters: usize| {
        let words = search_terms.words.iter().cycle().take(4 * search_terms.words.len());
        words.enumerate().filter_map(move |(n, word)| {
            let letters = if letters == 0 { 3 + n % 5 } else { letters };
            let prefix: String = word.chars().take(letters).collect();
            is_word(&prefix).then_some(prefix)
        })
    };
    put(
        SHORT_PREFIX_VIEWS_PER_THOUSAND,
        &mut prefixes(2).map(|text| line_query(&text).with_kind(Kind::Contact)),
    );
    put(
        300 - SHORT_PREFIX_VIEWS_PER_THOUSAND,
        &mut prefixes(0).map(|text| line_query(&text).with_kind(Kind::Contact)),
    );
    let completion = |text: String| {
        sexp_query(&format!(
            "(or (beginswith \"full_name\" \"{text}\") (beginswith \"email\" \"{text}\"))"
        ))
    };
    put(110, &mut prefixes(0).map(|text| completion(text).with_kind(Kind::Contact)));
    let mut addresses = search_terms.addresses.iter();
    put(120, &mut addresses.by_ref().map(|address| line_query(&format!("email:={address}"))));
    let lines = ["has:email", "has:phone", "has:birthday", "has:nickname", "", "has:note"];
    let large = lines.iter().map(|text| line_query(text).with_collection("contacts"));
    let large = large.chain([
        line_query("").with_collection("calendar"),
        line_query("alarm:any").with_collection("calendar"),
    ]);
    put(2, &mut large.filter(is_valid_query));
    put(1000, &mut search_terms.uids.iter().map(|uid| line_query(&format!("uid:={uid}"))));
    if all.len() < number {
        return Err(format!("only {} different queries", all.len()).into());
    }
    all.truncate(number);
    Ok(all)
}

/// Formats a query as a line of a file.
pub(crate) fn format_query_line(query: &ViewQuery) -> String {
    let syntax = if query.text().starts_with('(') { "sexp" } else { "line" };
    let (kind, collection) = (query.kind().map_or("", Kind::name), query.collection());
    format!("{syntax}\t{kind}\t{}\t{}", collection.unwrap_or_default(), query.text())
}

/// Parses a line of [`format_query_line`].
pub(crate) fn parse_query_line(line: &str) -> Option<ViewQuery> {
    let mut parts = line.splitn(4, '\t');
    let (syntax, kind, collection, text) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let query = if syntax == "sexp" { sexp_query(text) } else { line_query(text) };
    let query = match kind {
        "event" => query.with_kind(Kind::Event),
        "contact" => query.with_kind(Kind::Contact),
        _ => query,
    };
    Some(if collection.is_empty() { query } else { query.with_collection(collection) })
}

/// The parts in which different queries differ.
fn query_key(query: &ViewQuery) -> (String, Option<Kind>, Option<String>) {
    let collection = query.collection().map(str::to_string);
    (query.text().to_string(), query.kind(), collection)
}

/// Queries for words of two letters, as a person types them on the way to longer ones.
pub(crate) fn two_letter_queries(store: &Path, number: usize) -> Result<Vec<ViewQuery>> {
    let search_terms = SearchTerms::from_store(store)?;
    let prefixes =
        search_terms.words.iter().rev().map(|word| word.chars().take(2).collect::<String>());
    let words: HashSet<String> = prefixes.filter(|prefix| is_word(prefix)).collect();
    Ok(words.iter().take(number).map(|text| line_query(text).with_kind(Kind::Contact)).collect())
}

/// Returns whether a text is a word of letters, and no operator.
fn is_word(text: &str) -> bool {
    text.chars().all(char::is_alphabetic) && !["and", "or", "not"].contains(&text)
}

fn is_valid_query(query: &ViewQuery) -> bool {
    larder_query::Query::parse_with(query.text(), &bench_settings()).is_ok()
}

/// Opens a view, and takes its first answer. Returns the view and the number of items.
pub(crate) fn open_view(
    views: &Views,
    query: ViewQuery,
    interest: ViewInterest,
    client: &Arc<str>,
) -> Result<(View, usize)> {
    let options = ViewOptions { client: Arc::clone(client), interest, ..ViewOptions::default() };
    let mut view = views.open_view(query, options)?;
    let mut count = 0;
    loop {
        match view.try_next()? {
            Some(ViewEvent::Added(items)) => count += items.len(),
            Some(ViewEvent::Complete(_)) => return Ok((view, count)),
            Some(_) => {}
            None => return Err("the first answer is not complete".into()),
        }
    }
}
