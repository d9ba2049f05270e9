//! The plan of a query and its cost, as `larder find --explain` prints them.

use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::{CommandFailure, CommandStatus};
use crate::output::{format_count, sanitize_line};
use larder_query::{MailExplanation, ResultSet};
use serde_json::json;

pub(super) fn print_explanation(
    context: &mut CommandContext,
    answer: &ResultSet,
) -> Result<(), CommandFailure> {
    let explain = &answer.explain;
    if context.format == OutputFormat::Json {
        context.out.print_json(&json!({
            "query": explain.query, "plan": explain.plan, "order": explain.order,
            "rows_read": explain.rows_read, "verified": explain.verified, "matched": explain.matched,
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
        ("read", explain.rows_read, "row", " of the index, or of the full scan"),
        ("verified", explain.verified, "item", ""),
        ("matched", explain.matched, "item", ""),
        ("returned", explain.returned, "item", ""),
    ];
    for (label, number, noun, suffix) in counts {
        out.print_line(format!("{label:<8}  {}{suffix}", format_count(number, noun)))?;
    }
    Ok(())
}

/// Prints the plan of a search for messages.
pub(super) fn print_mail_explanation(
    context: &mut CommandContext,
    explained: &MailExplanation,
    is_by_date: bool,
) -> Result<CommandStatus, CommandFailure> {
    let order = match is_by_date {
        true => "blocks by date, until the limit is reached",
        false => "the row of each match, sorted",
    };
    let status = match explained.matched {
        Some(0) => CommandStatus::NothingFound,
        _ => CommandStatus::Done,
    };
    if context.format == OutputFormat::Json {
        context.out.print_json(&json!({
            "query": explained.query, "plan": explained.plan, "order": order,
            "blocks": explained.blocks, "dated_blocks": explained.dated_blocks,
            "matched": explained.matched,
        }))?;
        return Ok(status);
    }
    let out = &mut context.out;
    out.print_line(format!("query     {}", sanitize_line(&explained.query)))?;
    let labels = ["plan"].into_iter().chain(std::iter::repeat(""));
    for (step, label) in explained.plan.iter().zip(labels) {
        out.print_line(format!("{label:<8}  {}", sanitize_line(step)))?;
    }
    out.print_line(format!("order     {order}"))?;
    let (dated, blocks) = (explained.dated_blocks, format_count(explained.blocks, "block"));
    out.print_line(format!("read      {dated} of {blocks} of rows, by their dates"))?;
    let matched = match explained.matched {
        Some(count) => format_count(count, "message"),
        None => "too expensive to be counted".to_string(),
    };
    out.print_line(format!("matched   {matched}"))?;
    Ok(status)
}
