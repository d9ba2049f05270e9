use super::item_format::{self, OutputColumn};
use super::query_args::QueryArgs;
use super::{duplicate_groups, occurrence_list};
use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus, FailureKind};
use crate::output::{FAINT_STYLE, OutputStream, STRONG_STYLE, format_count, sanitize_line};
use crate::table::{pad_cells, style_cells};
use anstyle::Style;
use larder_date_phrase::DateRange;
use larder_format::field::{
    CALENDAR_FIELDS, Field, find_contact_field, suggest_contact_field, suggest_field,
};
use larder_query::{
    ItemSummary, ProjectedItem, Query, ResultDomain, ResultSet, SortSpec, TimeTest,
};
use larder_store::{CollectionType, ItemMeta, Reader, TimeTarget};
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
#[command(verbatim_doc_comment, after_long_help = super::fields::fields_manual())]
pub(crate) struct FindArgs {
    #[command(flatten)]
    query_args: QueryArgs,
    /// Sort by a field, -FIELD backwards [default: file_as, and start for what is in calendars;
    /// `--sort none` leaves the order in which they came]
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
    /// List what is perhaps the same person, in groups: by e-mail address, phone number or name.
    /// With QUERY only groups in which one is found by it
    #[arg(long, conflicts_with_all = ["explain", "sort"])]
    duplicates: bool,
}

/// Items whose columns are laid out together, and bytes of them: a cell may be of any length.
const MAX_BUFFERED_ROWS: usize = 500;
const MAX_BUFFERED_BYTES: usize = 1 << 20;

impl FindArgs {
    /// Does it print items, rather than what there is to say about them?
    pub(super) fn is_item_list(&self) -> bool {
        !self.count && !self.explain && !self.duplicates
    }

    pub(crate) fn run(self, context: &mut CommandContext) -> Result<CommandStatus, CommandFailure> {
        let columns = parse_columns(&self.fields)?;
        let mut find = self.to_search_request(context)?;
        let reader = context.open_reader()?;
        if self.duplicates {
            find.sort = Some(SortSpec::parse("file_as")?);
            return duplicate_groups::print_duplicates(
                context,
                &reader,
                &find,
                self.count,
                columns.as_deref(),
            );
        }
        if (self.expand || self.alarms.is_some()) && !self.explain {
            let how =
                occurrence_list::ExpandOptions { limit: self.limit, count: self.count, columns };
            return occurrence_list::print_occurrences(context, &reader, &find, &how);
        }
        if !self.count || self.from.is_some() {
            self.set_default_sort(&reader, &mut find)?;
        }
        let answer = context.run_query("larder find", &reader, &find)?;
        occurrence_list::warn_of_uncertain_items(
            context,
            &reader,
            &larder_query::find_uncertain_rows(&reader, &answer)?,
        )?;
        if self.explain {
            print_explanation(context, &answer)?;
        } else if self.count {
            print_count(context, answer.len() as u64)?;
        } else {
            print_answer(context, &reader, &answer, columns.as_deref())?;
        }
        if answer.is_empty() && !self.count && !self.explain && context.format == OutputFormat::Text
        {
            self.print_advice(context);
        }
        Ok(if answer.is_empty() { CommandStatus::NothingFound } else { CommandStatus::Done })
    }

    /// What may help where nothing was found.
    fn print_advice(&self, context: &CommandContext) {
        context.print_note("nothing was found");
        let words = self.query_args.query_text();
        let has_digits = words.contains(|c: char| c.is_ascii_digit());
        if self.query_args.sexp || words.is_empty() || words.contains(':') {
            return;
        }
        if has_digits && context.settings.region.is_none() {
            context.print_note("a number is found however it is written once your country is known: region = \"AT\" in config.toml");
        } else {
            context.print_note(
                "any:WORD looks in all fields, notes and addresses too; larder fields lists them",
            );
        }
    }

    fn to_search_request(
        &self,
        context: &CommandContext,
    ) -> Result<larder_query::SearchRequest, CommandFailure> {
        let query = self.query_args.parse_query(&context.settings)?;
        let sort = match self.sort.as_deref() {
            Some("none") if self.from.is_some() => {
                return Err(CommandFailure::new(
                    FailureKind::Usage,
                    "--sort none leaves no order to start in",
                )
                .with_hint("--from TEXT starts in the order of --sort FIELD, or of file_as"));
            }
            None | Some("none") => None,
            Some(_) if self.count && self.from.is_none() => None,
            Some(name) => Some(SortSpec::parse(name)?),
        };
        Ok(larder_query::SearchRequest {
            query: self.add_option_terms(query, context)?,
            collection: self.query_args.collection.clone(),
            sort,
            start_text: self.from.clone(),
            limit: self.limit,
            prefetch: self.is_item_list()
                && self.fields.is_empty()
                && context.format != OutputFormat::Text,
        })
    }

    /// The question, with what options ask besides.
    fn add_option_terms(
        &self,
        query: Query,
        context: &CommandContext,
    ) -> Result<Query, CommandFailure> {
        let mut all = Vec::new();
        if query != Query::All {
            all.push(query);
        }
        all.extend(self.query_args.kind.map(Query::Kind));
        if let Some(text) = &self.alarms {
            let asker = &context.settings.user_locale;
            let phrase = DateRange::parse(text, asker.zone.to_civil(asker.now), &asker.language)
                .map_err(|error| CommandFailure::new(FailureKind::Usage, error))?;
            // It comes first, as it is what the answer is expanded in.
            all.insert(
                0,
                Query::Time(TimeTest::InRange(asker.to_time_range(&phrase, TimeTarget::Alarms))),
            );
        }
        Ok(match all.len() {
            0 => Query::All,
            1 => all.swap_remove(0),
            _ => Query::And(all),
        })
    }

    /// The order where none was asked for: contacts by name, what is in calendars by when it
    /// begins.
    fn set_default_sort(
        &self,
        reader: &Reader,
        find: &mut larder_query::SearchRequest,
    ) -> Result<(), CommandFailure> {
        if self.sort.is_none() {
            find.sort = Some(default_sort(reader, find)?);
        }
        if self.from.is_some() && find.sort.is_some_and(|sort| sort.field.name == "start") {
            return Err(CommandFailure::new(
                FailureKind::Usage,
                "--from starts in an order of text, which --sort start is not",
            )
            .with_hint("when:2026-03.. is what happens from a day on"));
        }
        Ok(())
    }
}

/// The order where none was asked for.
pub(super) fn default_sort(
    reader: &Reader,
    find: &larder_query::SearchRequest,
) -> Result<SortSpec, CommandFailure> {
    let about = larder_query::resolve_domain(reader, find)?;
    Ok(SortSpec::parse(if about == ResultDomain::Calendar { "start" } else { "file_as" })?)
}

pub(super) fn print_count(context: &mut CommandContext, number: u64) -> Result<(), CommandFailure> {
    match context.format {
        OutputFormat::Json => context.out.print_json(&json!({ "count": number }))?,
        _ => context.out.print_line(number)?,
    }
    Ok(())
}

pub(super) fn parse_columns(names: &[String]) -> Result<Option<Vec<OutputColumn>>, CommandFailure> {
    if names.is_empty() {
        return Ok(None);
    }
    let named = |name: &String| {
        OutputColumn::from_name(name).ok_or_else(|| {
            let failure = CommandFailure::new(
                FailureKind::Usage,
                format!("there is no field {name:?} to print"),
            );
            match suggest_contact_field(name).or_else(|| suggest_field(CALENDAR_FIELDS, name)) {
                _ if name.eq_ignore_ascii_case("zone") => {
                    failure.with_hint("larder show and --format json tell the zone")
                }
                Some(near) => failure.with_hint(format!("did you mean {near}?")),
                None => failure.with_hint("larder fields lists them"),
            }
        })
    };
    names.iter().map(named).collect::<Result<_, _>>().map(Some)
}

pub(super) fn print_answer(
    context: &mut CommandContext,
    reader: &Reader,
    answer: &ResultSet,
    columns: Option<&[OutputColumn]>,
) -> Result<(), CommandFailure> {
    match (context.format, columns) {
        (OutputFormat::Text, None) => return print_table(context, reader, answer),
        (OutputFormat::Text | OutputFormat::Json, Some(columns)) => {
            return print_columns(context, reader, answer, columns);
        }
        (OutputFormat::Json | OutputFormat::Raw, _) => {}
    }
    let (format, out, local) =
        (context.format, &mut context.out, &context.settings.user_locale.zone);
    let (mut failed, mut left) = (None, answer.len());
    answer.for_each(reader, &mut |head, bytes| {
        left = left.saturating_sub(1);
        let printed = match format {
            OutputFormat::Json => item_format::item_json(reader, local, head, bytes)
                .and_then(|object| Ok(out.print_json(&object)?)),
            _ => item_format::print_raw(out, bytes, left == 0),
        };
        failed = printed.err();
        failed.is_none()
    })?;
    failed.map_or(Ok(()), Err)
}

/// Rows that wait until there are enough to be laid out together: of contacts, or of what is in
/// calendars.
#[derive(Default)]
struct RowBuffer {
    contacts: Vec<ContactListRow>,
    bytes: usize,
    items: Vec<i64>,
}

impl RowBuffer {
    /// Prints what waits.
    fn flush(
        &mut self,
        reader: &Reader,
        out: &mut OutputStream,
        local: &Zone,
    ) -> Result<(), CommandFailure> {
        let width = out.line_width();
        self.bytes = 0;
        print_buffered_rows(out, &mut self.contacts, width)?;
        let items = std::mem::take(&mut self.items);
        let briefs = larder_query::read_item_summaries(reader, &items, local)?;
        let mut rows = Vec::new();
        for brief in items.iter().filter_map(|row| briefs.get(row)) {
            rows.push(calendar_item_row(reader, brief)?);
        }
        occurrence_list::print_rows(out, &rows)
    }
}

/// Prints what is shown by default, in columns: of contacts four fields, else when it is, and what,
/// and where.
fn print_table(
    context: &mut CommandContext,
    reader: &Reader,
    answer: &ResultSet,
) -> Result<(), CommandFailure> {
    let fields = default_contact_fields();
    let (local, out) = (&context.settings.user_locale.zone, &mut context.out);
    let (mut failed, mut waiting) = (None, RowBuffer::default());
    answer.for_each_projected(reader, &fields, &mut |head, of| {
        let mut take = || -> Result<(), CommandFailure> {
            let is_item = head.kind.collection_type() == CollectionType::Calendar;
            let other = if is_item { waiting.contacts.len() } else { waiting.items.len() };
            if other > 0 {
                waiting.flush(reader, out, local)?;
            }
            if is_item {
                waiting.items.push(head.row);
            } else {
                let row = contact_row_from_fields(reader, head, of, &fields)?;
                waiting.bytes += row.iter().map(String::len).sum::<usize>();
                waiting.contacts.push(row);
            }
            let number = waiting.contacts.len().max(waiting.items.len());
            if number < MAX_BUFFERED_ROWS && waiting.bytes < MAX_BUFFERED_BYTES {
                return Ok(());
            }
            waiting.flush(reader, out, local)
        };
        failed = take().err();
        failed.is_none()
    })?;
    match failed {
        None => waiting.flush(reader, out, local),
        Some(failure) => Err(failure),
    }
}

/// Prints the fields that were asked for; as text the handle and these, whole, with one tab before
/// each: as many in every line, so that a program finds the third field in the fourth column.
fn print_columns(
    context: &mut CommandContext,
    reader: &Reader,
    answer: &ResultSet,
    columns: &[OutputColumn],
) -> Result<(), CommandFailure> {
    let (format, out, local) =
        (context.format, &mut context.out, &context.settings.user_locale.zone);
    let (fields, mut failed) = (OutputColumn::fields_of_columns(columns), None);
    answer.for_each_projected(reader, &fields, &mut |head, of| {
        let mut print = || -> Result<(), CommandFailure> {
            if format == OutputFormat::Json {
                return Ok(out.print_json(&item_format::item_columns_json(
                    reader, local, head, of, columns,
                )?)?);
            }
            let letters = reader.unique_prefix_len(head.handle)?;
            let handle = format!("{:.letters$}", head.handle);
            let cells = item_format::column_cells(reader, local, head, of, columns)?;
            Ok(out.print_line(format!(
                "{FAINT_STYLE}{handle}{FAINT_STYLE:#}\t{}",
                cells.join("\t")
            ))?)
        };
        failed = print().err();
        failed.is_none()
    })?;
    failed.map_or(Ok(()), Err)
}

/// The handle, and the four fields that are shown by default.
pub(super) type ContactListRow = [String; 5];

/// The fields of contacts that are shown by default.
pub(super) fn default_contact_fields() -> Vec<&'static Field> {
    ["full_name", "email", "phone", "org"].into_iter().filter_map(find_contact_field).collect()
}

/// The row of a contact, with these fields.
pub(super) fn contact_row_from_fields(
    reader: &Reader,
    head: &ItemMeta,
    of: &ProjectedItem<'_>,
    fields: &[&'static Field],
) -> Result<ContactListRow, CommandFailure> {
    let mut cells = item_format::field_cells(of, fields);
    // One name in a list; `show` has all.
    if let (Some(cell), Some(field)) = (cells.first_mut(), fields.first()) {
        *cell = sanitize_line(&of.first(field).unwrap_or_default());
    }
    contact_list_row(reader, head, cells)
}

/// The row of what is in calendars.
pub(super) fn calendar_item_row(
    reader: &Reader,
    brief: &ItemSummary,
) -> Result<occurrence_list::ItemListRow, CommandFailure> {
    let start =
        brief.first.as_ref().map(larder_present::local_time::format_list_start).unwrap_or_default();
    occurrence_list::item_list_row(
        reader,
        brief,
        start,
        item_format::first_location_line(&brief.location),
        true,
    )
}

/// A row waits for others, and not the card, which may have a photo of megabytes.
pub(super) fn contact_list_row(
    reader: &Reader,
    head: &ItemMeta,
    cells: Vec<String>,
) -> Result<ContactListRow, CommandFailure> {
    let letters = reader.unique_prefix_len(head.handle)?;
    let mut cells = cells.into_iter();
    let mut next = || cells.next().unwrap_or_default();
    let name = next();
    let name = if name.is_empty() { "(no name)".into() } else { name };
    Ok([format!("{:.letters$}", head.handle), name, next(), next(), next()])
}

/// Prints the rows that wait.
pub(super) fn print_buffered_rows(
    out: &mut OutputStream,
    waiting: &mut Vec<ContactListRow>,
    width: Option<usize>,
) -> Result<(), CommandFailure> {
    for line in format_rows(&std::mem::take(waiting), width) {
        out.print_line(line)?;
    }
    Ok(())
}

/// These rows as lines.
pub(super) fn format_rows(rows: &[ContactListRow], width: Option<usize>) -> Vec<String> {
    let line = |[handle, name, rest @ ..]: ContactListRow| {
        let cells = [(FAINT_STYLE, handle), (STRONG_STYLE, name), (Style::new(), rest.concat())];
        style_cells(&cells.each_ref().map(|(style, cell)| (*style, cell.as_str())))
    };
    pad_cells(rows, [13, 28, 34, 24, 0], width).into_iter().map(line).collect()
}

fn print_explanation(
    context: &mut CommandContext,
    answer: &ResultSet,
) -> Result<(), CommandFailure> {
    let explain = &answer.explain;
    if context.format == OutputFormat::Json {
        context.out.print_json(&json!({
            "query": explain.query, "plan": explain.plan, "order": explain.order,
            "visited": explain.visited, "tested": explain.tested, "matched": explain.matched,
            "returned": explain.returned,
        }))?;
        return Ok(());
    }
    let out = &mut context.out;
    out.print_line(format!("query     {}", explain.query))?;
    for (step, label) in explain.plan.iter().zip(["plan"].into_iter().chain(std::iter::repeat("")))
    {
        out.print_line(format!("{label:<8}  {step}"))?;
    }
    out.print_line(format!("order     {}", explain.order))?;
    let counts = [
        ("visited", explain.visited, "row", " of the index, or of the scan"),
        ("tested", explain.tested, "item", " compared with the query, one by one"),
        ("matched", explain.matched, "item", ""),
        ("returned", explain.returned, "item", ""),
    ];
    for (label, number, noun, of) in counts {
        out.print_line(format!("{label:<8}  {}{of}", format_count(number, noun)))?;
    }
    Ok(())
}
