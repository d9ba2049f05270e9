use super::{duplicates, item};
use crate::args::Format;
use crate::context::Context;
use crate::failure::{Code, Failure, Kind};
use crate::output::{FAINT, Out, STRONG, count, plain};
use crate::table::{padded, styled};
use anstyle::Style;
use larder_format::field::{Field, field, nearest};
use larder_query::{Answer, Query, Sort};
use larder_store::{ItemHead, Reader};
use serde_json::json;

/// Search everything
///
/// Free words look in names, nicknames, organisations, e-mail addresses and
/// phone numbers; all of them have to match. Case and accents do not matter.
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
///
/// Quote for the shell what has blanks, quotes, stars or parentheses:
///
///   larder find anna
///   larder find 'org:example -has:email' --sort family_name
///   larder find 030 1234 --format json
///   larder find --count
///   larder find --duplicates
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment, after_long_help = super::fields::manual())]
pub(crate) struct Find {
    /// What to look for; several words all have to match
    query: Vec<String>,
    /// Only in this collection
    #[arg(long = "in", value_name = "NAME")]
    collection: Option<String>,
    /// Only items of this kind
    #[arg(long, value_name = "KIND", value_parser = ["contact"])]
    kind: Option<String>,
    /// QUERY is an S-expression of evolution-data-server: (contains "full_name" "anna")
    #[arg(long)]
    sexp: bool,
    /// Sort by a field, -FIELD backwards [default: file_as; `--sort none` leaves the order in which they came]
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
        let fields = fields_named(&self.fields)?;
        let find = self.to_find(context)?;
        let reader = context.reader()?;
        if self.duplicates {
            return duplicates::run(context, &reader, &find, self.count, fields.as_deref());
        }
        let answer = larder_query::find(&reader, &find)?;
        if self.explain {
            explain(context, &answer)?;
        } else if self.count {
            counted(context, answer.len())?;
        } else {
            print(context, &reader, &answer, fields.as_deref())?;
        }
        if answer.is_empty() && !self.count && !self.explain && context.format == Format::Text {
            context.note("nothing was found");
            let words = self.query.join(" ");
            let has_digits = words.contains(|c: char| c.is_ascii_digit());
            if has_digits && context.settings.region.is_none() {
                context.note("a number is found however it is written once your country is known: region = \"AT\" in config.toml");
            } else if !self.sexp && !words.is_empty() && !words.contains(':') {
                context.note("any:WORD looks in all fields, notes and addresses too; larder fields lists them");
            }
        }
        Ok(if answer.is_empty() { Code::NothingFound } else { Code::Done })
    }

    fn to_find(&self, context: &Context) -> Result<larder_query::Find, Failure> {
        let text = self.query.join(" ");
        let query = match self.sexp {
            true => Query::parse_sexp_with(&text, &context.settings)?,
            false => Query::parse_with(&text, &context.settings)?,
        };
        let sort = match self.sort.as_deref() {
            Some("none") if self.from.is_some() => {
                return Err(Failure::new(Kind::Usage, "--sort none leaves no order to start in")
                    .hint("--from TEXT starts in the order of --sort FIELD, or of file_as"));
            }
            Some("none") => None,
            _ if self.count && self.from.is_none() => None,
            Some(name) => Some(Sort::parse(name)?),
            None => Some(Sort::parse("file_as")?),
        };
        Ok(larder_query::Find {
            query,
            collection: self.collection.clone(),
            sort,
            from: self.from.clone(),
            limit: self.limit,
            cards: !self.count
                && !self.explain
                && self.fields.is_empty()
                && context.format != Format::Text,
        })
    }
}

pub(super) fn counted(context: &mut Context, number: usize) -> Result<(), Failure> {
    match context.format {
        Format::Json => context.out.json(&json!({ "count": number }))?,
        _ => context.out.line(number)?,
    }
    Ok(())
}

fn fields_named(names: &[String]) -> Result<Option<Vec<&'static Field>>, Failure> {
    if names.is_empty() {
        return Ok(None);
    }
    let named = |name: &String| {
        field(name).ok_or_else(|| {
            let failure = Failure::new(Kind::Usage, format!("there is no field {name:?} to print"));
            match nearest(name) {
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
    fields: Option<&[&'static Field]>,
) -> Result<(), Failure> {
    match (context.format, fields) {
        (Format::Text, None) => return table(context, reader, answer),
        (Format::Text | Format::Json, Some(fields)) => {
            return asked(context, reader, answer, fields);
        }
        (Format::Json | Format::Raw, _) => {}
    }
    let (format, out) = (context.format, &mut context.out);
    let (mut failed, mut left) = (None, answer.len());
    answer.each(reader, &mut |head, bytes| {
        left = left.saturating_sub(1);
        let printed = match format {
            Format::Json => out.json(&item::json(head, bytes)).map_err(Failure::from),
            _ => item::raw(out, bytes, left == 0),
        };
        failed = printed.err();
        failed.is_none()
    })?;
    failed.map_or(Ok(()), Err)
}

/// Prints the four fields that are shown by default, in columns.
fn table(context: &mut Context, reader: &Reader, answer: &Answer) -> Result<(), Failure> {
    let fields: Vec<_> =
        ["full_name", "email", "phone", "org"].iter().filter_map(|name| field(name)).collect();
    let (width, out) = (context.out.width(), &mut context.out);
    let (mut failed, mut waiting, mut bytes_waiting) = (None, Vec::new(), 0);
    answer.fields(reader, &fields, &mut |head, of| {
        let mut cells = item::cells(of, &fields);
        // One name in a list; `show` has all.
        if let (Some(cell), Some(field)) = (cells.first_mut(), fields.first()) {
            *cell = plain(&of.first(field).unwrap_or_default());
        }
        let printed = row(reader, head, cells).and_then(|row| {
            bytes_waiting += row.iter().map(String::len).sum::<usize>();
            waiting.push(row);
            if waiting.len() < TOGETHER && bytes_waiting < TOGETHER_BYTES {
                return Ok(());
            }
            bytes_waiting = 0;
            lines(out, &mut waiting, width)
        });
        failed = printed.err();
        failed.is_none()
    })?;
    match failed {
        None => lines(out, &mut waiting, width),
        Some(failure) => Err(failure),
    }
}

/// Prints the fields that were asked for; as text the handle and these, whole, with one tab before each: as many in
/// every line, so that a program finds the third field in the fourth column.
fn asked(
    context: &mut Context,
    reader: &Reader,
    answer: &Answer,
    fields: &[&'static Field],
) -> Result<(), Failure> {
    let (format, out) = (context.format, &mut context.out);
    let mut failed = None;
    answer.fields(reader, fields, &mut |head, of| {
        let mut print = || -> Result<(), Failure> {
            if format == Format::Json {
                return Ok(out.json(&item::partial_json(head, of, fields))?);
            }
            let letters = reader.letters(head.handle)?;
            let (handle, cells) = (format!("{:.letters$}", head.handle), item::cells(of, fields));
            Ok(out.line(format!("{FAINT}{handle}{FAINT:#}\t{}", cells.join("\t")))?)
        };
        failed = print().err();
        failed.is_none()
    })?;
    failed.map_or(Ok(()), Err)
}

/// The handle, and the four fields that are shown by default.
pub(super) type Row = [String; 5];

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
    let rows = padded(&std::mem::take(waiting), [13, 28, 34, 24, 0], width);
    for [handle, name, rest @ ..] in rows {
        let cells = [(FAINT, handle), (STRONG, name), (Style::new(), rest.concat())];
        out.line(styled(&cells.each_ref().map(|(style, cell)| (*style, cell.as_str()))))?;
    }
    Ok(())
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
        ("tested", explain.tested, "item", " parsed, and compared with the query"),
        ("matched", explain.matched, "item", ""),
        ("returned", explain.returned, "item", ""),
    ];
    for (label, number, noun, of) in counts {
        out.line(format!("{label:<8}  {}{of}", count(number, noun)))?;
    }
    Ok(())
}
