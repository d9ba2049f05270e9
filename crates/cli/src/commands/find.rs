use super::asked::Asked;
use super::item::{self, Column};
use super::{duplicates, expand};
use crate::args::Format;
use crate::context::Context;
use crate::failure::{Code, Failure, Kind};
use crate::output::{FAINT, Out, STRONG, count, plain};
use crate::table::{padded, styled};
use anstyle::Style;
use larder_date_phrase as phrase;
use larder_format::field::{CALENDAR_FIELDS, Field, field, nearest, nearest_in};
use larder_query::when::When;
use larder_query::{About, Answer, Brief, Partial, Query, Sort, TimeTest};
use larder_store::{Family, ItemHead, Reader, What};
use larder_time::zone::Zone;
use serde_json::json;

/// Search everything
///
/// Free words look in names, nicknames, organisations, e-mail addresses and
/// phone numbers, and in all texts of events, tasks and memos; all of them
/// have to match. Case and accents do not matter.
/// Without QUERY everything is found.
///
///   org:example          a field contains (the list of fields is below)
///   full_name:ann*       begins with
///   email:*@example.org  ends with
///   title:=boss          is, as a whole
///   has:photo            is there
///   "anna schmidt"       a phrase, within one value
///   -otto, not otto      does not match
///   anna or (otto berg)  one of them
///   when:2026-03         happens then; also today, tomorrow, 2026-W12, today..+7d
///   due:friday           also start:, end:, completed:, created:, modified:
///   is:recurring         also is:completed, is:overdue, is:cancelled, is:all-day
///
/// Quote for the shell what has blanks, quotes, stars or parentheses:
///
///   larder find anna
///   larder find 'org:example -has:email' --sort family_name
///   larder find 030 1234 --format json
///   larder find --count
///   larder find --duplicates
///   larder find 'when:2026-03 standup' --expand
///   larder find --alarms today..tomorrow
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, after_long_help = super::fields::manual())]
pub(crate) struct Find {
    #[command(flatten)]
    asked: Asked,
    /// Sort by a field, -FIELD backwards [default: file_as, and start for what is in calendars; `--sort
    /// none` leaves the order in which they came]
    #[arg(long, value_name = "FIELD", allow_hyphen_values = true)]
    sort: Option<String>,
    /// Start in this order at the first that begins with TEXT, or comes behind it
    #[arg(long, value_name = "TEXT")]
    from: Option<String>,
    /// At most so many
    #[arg(long, short = 'n', value_name = "N")]
    limit: Option<usize>,
    /// What to print of each, whole, with a tab between two fields
    #[arg(long, value_name = "FIELD,...", value_delimiter = ',')]
    fields: Vec<String>,
    /// Print how many there are, and nothing else
    #[arg(long)]
    count: bool,
    /// Print each time that something happens within when: instead of the item
    #[arg(long, conflicts_with_all = ["sort", "from", "duplicates"])]
    expand: bool,
    /// Print the alarms that ring in a stretch of time, as when: takes it: today..+7d
    #[arg(long, value_name = "FROM..TO", conflicts_with_all = ["expand", "sort", "from", "duplicates"])]
    alarms: Option<String>,
    /// Print how the answer was found instead of the answer
    #[arg(long, conflicts_with = "count")]
    explain: bool,
    /// List what is perhaps the same person, in groups: by e-mail address, phone number or name. With QUERY only groups
    /// in which one is found by it
    #[arg(long, conflicts_with_all = ["explain", "sort"])]
    duplicates: bool,
}

/// Items whose columns are laid out together, and bytes of them: a cell may be of any length.
const TOGETHER: usize = 500;
const TOGETHER_BYTES: usize = 1 << 20;

impl Find {
    /// Does it print items, rather than what there is to say about them?
    pub(super) fn lists(&self) -> bool {
        !self.count && !self.explain && !self.duplicates
    }

    pub(crate) fn run(self, context: &mut Context) -> Result<Code, Failure> {
        let columns = columns_named(&self.fields)?;
        let mut find = self.to_find(context)?;
        let reader = context.reader()?;
        if self.duplicates {
            find.sort = Some(Sort::parse("file_as")?);
            return duplicates::run(context, &reader, &find, self.count, columns.as_deref());
        }
        if (self.expand || self.alarms.is_some()) && !self.explain {
            let how = expand::How { limit: self.limit, count: self.count, columns };
            return expand::run(context, &reader, &find, &how);
        }
        if !self.count || self.from.is_some() {
            self.by_default(&reader, &mut find)?;
        }
        let answer = context.ask("larder find", &reader, &find)?;
        expand::unsure(context, &reader, &larder_query::unsure(&reader, &answer)?)?;
        if self.explain {
            explain(context, &answer)?;
        } else if self.count {
            counted(context, answer.len() as u64)?;
        } else {
            print(context, &reader, &answer, columns.as_deref())?;
        }
        if answer.is_empty() && !self.count && !self.explain && context.format == Format::Text {
            self.advise(context);
        }
        Ok(if answer.is_empty() { Code::NothingFound } else { Code::Done })
    }

    /// What may help where nothing was found.
    fn advise(&self, context: &Context) {
        context.note("nothing was found");
        let words = self.asked.text();
        let has_digits = words.contains(|c: char| c.is_ascii_digit());
        if self.asked.sexp || words.is_empty() || words.contains(':') {
            return;
        }
        if has_digits && context.settings.region.is_none() {
            context.note("a number is found however it is written once your country is known: region = \"AT\" in config.toml");
        } else {
            context.note(
                "any:WORD looks in all fields, notes and addresses too; larder fields lists them",
            );
        }
    }

    fn to_find(&self, context: &Context) -> Result<larder_query::Find, Failure> {
        let query = self.asked.query(&context.settings)?;
        let sort = match self.sort.as_deref() {
            Some("none") if self.from.is_some() => {
                return Err(Failure::new(Kind::Usage, "--sort none leaves no order to start in")
                    .hint("--from TEXT starts in the order of --sort FIELD, or of file_as"));
            }
            None | Some("none") => None,
            Some(_) if self.count && self.from.is_none() => None,
            Some(name) => Some(Sort::parse(name)?),
        };
        Ok(larder_query::Find {
            query: self.narrowed(query, context)?,
            collection: self.asked.collection.clone(),
            sort,
            from: self.from.clone(),
            limit: self.limit,
            cards: self.lists() && self.fields.is_empty() && context.format != Format::Text,
        })
    }

    /// The question, with what options ask besides.
    fn narrowed(&self, query: Query, context: &Context) -> Result<Query, Failure> {
        let mut all = Vec::new();
        if query != Query::All {
            all.push(query);
        }
        all.extend(self.asked.kind.map(Query::Kind));
        if let Some(text) = &self.alarms {
            let asker = &context.settings.asker;
            let phrase = phrase::Window::parse(text, asker.local.civil(asker.now), &asker.language)
                .map_err(|error| Failure::new(Kind::Usage, error))?;
            // It comes first, as it is what the answer is expanded in.
            all.insert(0, Query::Time(TimeTest::In(asker.window(&phrase, What::Alarms))));
        }
        Ok(match all.len() {
            0 => Query::All,
            1 => all.swap_remove(0),
            _ => Query::And(all),
        })
    }

    /// The order where none was asked for: contacts by name, what is in calendars by when it begins.
    fn by_default(&self, reader: &Reader, find: &mut larder_query::Find) -> Result<(), Failure> {
        if self.sort.is_none() {
            find.sort = Some(usual_sort(reader, find)?);
        }
        if self.from.is_some() && find.sort.is_some_and(|sort| sort.field.name == "start") {
            return Err(Failure::new(
                Kind::Usage,
                "--from starts in an order of text, which --sort start is not",
            )
            .hint("when:2026-03.. is what happens from a day on"));
        }
        Ok(())
    }
}

/// The order where none was asked for.
pub(super) fn usual_sort(reader: &Reader, find: &larder_query::Find) -> Result<Sort, Failure> {
    let about = larder_query::about(reader, find)?;
    Ok(Sort::parse(if about == About::Calendar { "start" } else { "file_as" })?)
}

pub(super) fn counted(context: &mut Context, number: u64) -> Result<(), Failure> {
    match context.format {
        Format::Json => context.out.json(&json!({ "count": number }))?,
        _ => context.out.line(number)?,
    }
    Ok(())
}

pub(super) fn columns_named(names: &[String]) -> Result<Option<Vec<Column>>, Failure> {
    if names.is_empty() {
        return Ok(None);
    }
    let named = |name: &String| {
        Column::named(name).ok_or_else(|| {
            let failure = Failure::new(Kind::Usage, format!("there is no field {name:?} to print"));
            match nearest(name).or_else(|| nearest_in(CALENDAR_FIELDS, name)) {
                _ if name.eq_ignore_ascii_case("zone") => {
                    failure.hint("larder show and --format json tell the zone")
                }
                Some(near) => failure.hint(format!("did you mean {near}?")),
                None => failure.hint("larder fields lists them"),
            }
        })
    };
    names.iter().map(named).collect::<Result<_, _>>().map(Some)
}

pub(super) fn print(
    context: &mut Context,
    reader: &Reader,
    answer: &Answer,
    columns: Option<&[Column]>,
) -> Result<(), Failure> {
    match (context.format, columns) {
        (Format::Text, None) => return table(context, reader, answer),
        (Format::Text | Format::Json, Some(columns)) => {
            return asked(context, reader, answer, columns);
        }
        (Format::Json | Format::Raw, _) => {}
    }
    let (format, out, local) = (context.format, &mut context.out, &context.settings.asker.local);
    let (mut failed, mut left) = (None, answer.len());
    answer.each(reader, &mut |head, bytes| {
        left = left.saturating_sub(1);
        let printed = match format {
            Format::Json => {
                item::whole(reader, local, head, bytes).and_then(|object| Ok(out.json(&object)?))
            }
            _ => item::raw(out, bytes, left == 0),
        };
        failed = printed.err();
        failed.is_none()
    })?;
    failed.map_or(Ok(()), Err)
}

/// Rows that wait until there are enough to be laid out together: of contacts, or of what is in calendars.
#[derive(Default)]
struct Waiting {
    contacts: Vec<Row>,
    bytes: usize,
    items: Vec<i64>,
}

impl Waiting {
    /// Prints what waits.
    fn print(&mut self, reader: &Reader, out: &mut Out, local: &Zone) -> Result<(), Failure> {
        let width = out.width();
        self.bytes = 0;
        lines(out, &mut self.contacts, width)?;
        let items = std::mem::take(&mut self.items);
        let briefs = larder_query::briefs(reader, &items, local)?;
        let mut rows = Vec::new();
        for brief in items.iter().filter_map(|row| briefs.get(row)) {
            rows.push(item_row(reader, brief)?);
        }
        expand::lines(out, &rows)
    }
}

/// Prints what is shown by default, in columns: of contacts four fields, else when it is, and what, and where.
fn table(context: &mut Context, reader: &Reader, answer: &Answer) -> Result<(), Failure> {
    let fields = usual_fields();
    let (local, out) = (&context.settings.asker.local, &mut context.out);
    let (mut failed, mut waiting) = (None, Waiting::default());
    answer.fields(reader, &fields, &mut |head, of| {
        let mut take = || -> Result<(), Failure> {
            let is_item = head.kind.family() == Family::Calendar;
            let other = if is_item { waiting.contacts.len() } else { waiting.items.len() };
            if other > 0 {
                waiting.print(reader, out, local)?;
            }
            if is_item {
                waiting.items.push(head.row);
            } else {
                let row = contact_row(reader, head, of, &fields)?;
                waiting.bytes += row.iter().map(String::len).sum::<usize>();
                waiting.contacts.push(row);
            }
            let number = waiting.contacts.len().max(waiting.items.len());
            if number < TOGETHER && waiting.bytes < TOGETHER_BYTES {
                return Ok(());
            }
            waiting.print(reader, out, local)
        };
        failed = take().err();
        failed.is_none()
    })?;
    match failed {
        None => waiting.print(reader, out, local),
        Some(failure) => Err(failure),
    }
}

/// Prints the fields that were asked for; as text the handle and these, whole, with one tab before each: as many in
/// every line, so that a program finds the third field in the fourth column.
fn asked(
    context: &mut Context,
    reader: &Reader,
    answer: &Answer,
    columns: &[Column],
) -> Result<(), Failure> {
    let (format, out, local) = (context.format, &mut context.out, &context.settings.asker.local);
    let (fields, mut failed) = (Column::fields(columns), None);
    answer.fields(reader, &fields, &mut |head, of| {
        let mut print = || -> Result<(), Failure> {
            if format == Format::Json {
                return Ok(out.json(&item::partial_json(reader, local, head, of, columns)?)?);
            }
            let letters = reader.letters(head.handle)?;
            let handle = format!("{:.letters$}", head.handle);
            let cells = item::column_cells(reader, local, head, of, columns)?;
            Ok(out.line(format!("{FAINT}{handle}{FAINT:#}\t{}", cells.join("\t")))?)
        };
        failed = print().err();
        failed.is_none()
    })?;
    failed.map_or(Ok(()), Err)
}

/// The handle, and the four fields that are shown by default.
pub(super) type Row = [String; 5];

/// The fields of contacts that are shown by default.
pub(super) fn usual_fields() -> Vec<&'static Field> {
    ["full_name", "email", "phone", "org"].into_iter().filter_map(field).collect()
}

/// The row of a contact, with these fields.
pub(super) fn contact_row(
    reader: &Reader,
    head: &ItemHead,
    of: &Partial<'_>,
    fields: &[&'static Field],
) -> Result<Row, Failure> {
    let mut cells = item::cells(of, fields);
    // One name in a list; `show` has all.
    if let (Some(cell), Some(field)) = (cells.first_mut(), fields.first()) {
        *cell = plain(&of.first(field).unwrap_or_default());
    }
    row(reader, head, cells)
}

/// The row of what is in calendars.
pub(super) fn item_row(reader: &Reader, brief: &Brief) -> Result<expand::Row, Failure> {
    let start = brief.first.as_ref().map(When::listed).unwrap_or_default();
    expand::row(reader, brief, start, item::place(&brief.location), true)
}

/// A row waits for others, and not the card, which may have a photo of megabytes.
pub(super) fn row(reader: &Reader, head: &ItemHead, cells: Vec<String>) -> Result<Row, Failure> {
    let letters = reader.letters(head.handle)?;
    let mut cells = cells.into_iter();
    let mut next = || cells.next().unwrap_or_default();
    let name = next();
    let name = if name.is_empty() { "(no name)".into() } else { name };
    Ok([format!("{:.letters$}", head.handle), name, next(), next(), next()])
}

/// Prints the rows that wait.
pub(super) fn lines(
    out: &mut Out,
    waiting: &mut Vec<Row>,
    width: Option<usize>,
) -> Result<(), Failure> {
    for line in laid_out(&std::mem::take(waiting), width) {
        out.line(line)?;
    }
    Ok(())
}

/// These rows as lines.
pub(super) fn laid_out(rows: &[Row], width: Option<usize>) -> Vec<String> {
    let line = |[handle, name, rest @ ..]: Row| {
        let cells = [(FAINT, handle), (STRONG, name), (Style::new(), rest.concat())];
        styled(&cells.each_ref().map(|(style, cell)| (*style, cell.as_str())))
    };
    padded(rows, [13, 28, 34, 24, 0], width).into_iter().map(line).collect()
}

fn explain(context: &mut Context, answer: &Answer) -> Result<(), Failure> {
    let explain = &answer.explain;
    if context.format == Format::Json {
        context.out.json(&json!({
            "query": explain.query, "plan": explain.plan, "order": explain.order,
            "visited": explain.visited, "tested": explain.tested, "matched": explain.matched,
            "returned": explain.returned,
        }))?;
        return Ok(());
    }
    let out = &mut context.out;
    out.line(format!("query     {}", explain.query))?;
    for (step, label) in explain.plan.iter().zip(["plan"].into_iter().chain(std::iter::repeat("")))
    {
        out.line(format!("{label:<8}  {step}"))?;
    }
    out.line(format!("order     {}", explain.order))?;
    let counts = [
        ("visited", explain.visited, "row", " of the index, or of the scan"),
        ("tested", explain.tested, "item", " compared with the query, one by one"),
        ("matched", explain.matched, "item", ""),
        ("returned", explain.returned, "item", ""),
    ];
    for (label, number, noun, of) in counts {
        out.line(format!("{label:<8}  {}{of}", count(number, noun)))?;
    }
    Ok(())
}
