//! What `larder watch` prints where it is no list on a terminal: a line a change, for people or for programs.

use super::find::{contact_row, item_row, laid_out, usual_fields};
use super::item::{self, Column};
use super::watch::How;
use super::{expand, item::occurrence_json};
use crate::args::Format;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::{CHANGED, FAINT, GONE, NEW, count};
use anstyle::Style;
use larder_query::views::{Gone, Tell, Told, Views};
use larder_query::when::When;
use larder_query::{Entry, Partial};
use larder_store::{Family, Reader};
use larder_time::zone::Zone;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// Tells changes as lines.
pub(super) struct Lines {
    how: How,
}

/// What becomes of an item.
#[derive(Clone, Copy)]
enum Change {
    Added,
    Modified,
}

impl Change {
    fn name(self) -> &'static str {
        match self {
            Change::Added => "added",
            Change::Modified => "modified",
        }
    }

    fn mark(self) -> (Style, &'static str) {
        match self {
            Change::Added => (NEW, "+"),
            Change::Modified => (CHANGED, "~"),
        }
    }
}

impl Lines {
    /// How often it is looked whether the reader has left.
    pub(super) const PATIENCE: Duration = Duration::from_secs(1);

    pub(super) fn new(how: How) -> Lines {
        Lines { how }
    }

    /// Prints what is told, and hands it over at once.
    pub(super) fn tell(
        &self,
        context: &mut Context,
        views: &Views,
        tell: &Tell,
    ) -> Result<(), Failure> {
        match (tell, context.format) {
            (Tell::Added(told), _) => self.items(context, views, Change::Added, told)?,
            (Tell::Modified(told), _) => self.items(context, views, Change::Modified, told)?,
            (Tell::Removed(gone), _) => {
                for gone in gone {
                    removed(context, views, gone)?;
                }
            }
            (Tell::Fresh, Format::Json) => context.out.json(&json!({ "change": "fresh" }))?,
            (Tell::Fresh, _) => context.out.line("= all of it anew")?,
            (Tell::Complete(seq), Format::Json) => {
                context.out.json(&json!({ "change": "complete", "seq": seq }))?;
            }
            (Tell::Complete(_), _) => {}
        }
        Ok(context.out.flush()?)
    }

    fn items(
        &self,
        context: &mut Context,
        views: &Views,
        change: Change,
        told: &[Told],
    ) -> Result<(), Failure> {
        let is_json = context.format == Format::Json;
        views.read(|reader| match &self.how.columns {
            _ if is_json => {
                told.iter().try_for_each(|told| self.object(context, reader, change, told))
            }
            Some(columns) => {
                told.iter().try_for_each(|told| fields(context, reader, change, told, columns))
            }
            None => self.rows(context, reader, change, told),
        })?
    }

    fn object(
        &self,
        context: &mut Context,
        reader: &Reader,
        change: Change,
        told: &Told,
    ) -> Result<(), Failure> {
        let local = context.settings.asker.local.clone();
        let Told { head: Some(head), bytes: Some(bytes), .. } = told else { return Ok(()) };
        let about = match &self.how.columns {
            None => item::whole(reader, &local, head, bytes)?,
            Some(columns) => {
                let of = Partial::of(reader, head, bytes);
                item::partial_json(reader, &local, head, &of, columns)?
            }
        };
        let mut object = Map::new();
        object.insert("change".into(), json!(change.name()));
        if let Value::Object(about) = about {
            object.extend(about);
        }
        if self.how.expand {
            object.insert("occurrences".into(), occurrences(reader, &local, told)?);
        }
        Ok(context.out.json(&Value::Object(object))?)
    }

    /// The lines of a list, as `larder find` has them, each with its mark.
    fn rows(
        &self,
        context: &mut Context,
        reader: &Reader,
        change: Change,
        told: &[Told],
    ) -> Result<(), Failure> {
        let fields = usual_fields();
        let is_item = |told: &&Told| {
            told.head.as_ref().is_some_and(|head| head.kind.family() == Family::Calendar)
        };
        let mut contacts = Vec::new();
        for told in told.iter().filter(|told| !is_item(told)) {
            if let (Some(head), Some(bytes)) = (&told.head, &told.bytes) {
                let of = Partial::of(reader, head, bytes);
                contacts.push(contact_row(reader, head, &of, &fields)?);
            }
        }
        let local = &context.settings.asker.local;
        let rows: Vec<i64> = told.iter().filter(is_item).map(|told| told.row).collect();
        let briefs = larder_query::briefs(reader, &rows, local)?;
        let mut items = Vec::new();
        for told in told.iter().filter(is_item) {
            // What was removed since is told as removed next.
            let Some(brief) = briefs.get(&told.row) else { continue };
            let mut row = item_row(reader, brief)?;
            if let [_, when, .., marks] = &mut row
                && let Some(first) = told.occurrences.first()
            {
                *when = When::of(first, local).listed();
                if told.occurrences.len() > 1 {
                    let times = count(told.occurrences.len() as u64, "time");
                    marks.push_str(if marks.is_empty() { "" } else { ", " });
                    marks.push_str(&times);
                }
            }
            items.push(row);
        }
        let (style, mark) = change.mark();
        let width = context.out.width().map(|width| width.saturating_sub(2));
        for line in laid_out(&contacts, width).iter().chain(&expand::laid_out(&items, width)) {
            context.out.line(format!("{style}{mark}{style:#} {line}"))?;
        }
        Ok(())
    }
}

/// When an item happens within the window that is asked for.
fn occurrences(reader: &Reader, local: &Zone, told: &Told) -> Result<Value, Failure> {
    let briefs = larder_query::briefs(reader, &[told.row], local)?;
    // What was removed since is told as removed next.
    let Some(brief) = briefs.get(&told.row) else { return Ok(json!([])) };
    let of = |occurring: &larder_store::Occurring| {
        let (item, when) = (brief.clone(), When::of(occurring, local));
        let mut of = occurrence_json(&Entry { item, occurring: *occurring, when }, local);
        if let Value::Object(of) = &mut of {
            of.retain(|name, _| IN_TIME.contains(&name.as_str()));
        }
        of
    };
    Ok(told.occurrences.iter().map(of).collect())
}

/// What is told of an occurrence beside its item.
const IN_TIME: &[&str] = &["occurrence", "start", "end", "due", "all_day", "alarm"];

/// The fields that were asked for, with a tab before each.
fn fields(
    context: &mut Context,
    reader: &Reader,
    change: Change,
    told: &Told,
    columns: &[Column],
) -> Result<(), Failure> {
    let Told { head: Some(head), bytes: Some(bytes), .. } = told else { return Ok(()) };
    let letters = reader.letters(head.handle)?;
    let handle = format!("{:.letters$}", head.handle);
    let of = Partial::of(reader, head, bytes);
    let cells = item::column_cells(reader, &context.settings.asker.local, head, &of, columns)?;
    let (style, mark) = change.mark();
    Ok(context
        .out
        .line(format!("{style}{mark}{style:#} {FAINT}{handle}{FAINT:#}\t{}", cells.join("\t")))?)
}

fn removed(context: &mut Context, views: &Views, gone: &Gone) -> Result<(), Failure> {
    if context.format == Format::Json {
        let mut object = Map::new();
        object.insert("change".into(), json!("removed"));
        object.insert("id".into(), json!(gone.handle.to_string()));
        object.insert("uid".into(), json!(gone.uid));
        if !gone.recurrence.is_empty() {
            object.insert("recurrence".into(), json!(gone.recurrence));
        }
        return Ok(context.out.json(&Value::Object(object))?);
    }
    let letters = views.read(|reader| reader.letters(gone.handle))??;
    Ok(context.out.line(format!("{GONE}-{GONE:#} {FAINT}{:.letters$}{FAINT:#}", gone.handle))?)
}
