//! The plan of a query and its cost, as `larder find --explain` prints them.

use crate::args::OutputFormat;
use crate::context::CommandContext;
use crate::failure::CommandFailure;
use crate::output::format_count;
use larder_query::ResultSet;
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
