//! The section on query time, for one log and for two.

use crate::chart::{ChartAxis, ChartRange, ColourRole, MeasureUnit, RangeChart};
use crate::html_page::{HtmlPage, TableCell};
use crate::query_log::comparison::format_change;
use crate::query_log::cost::{CollectionCost, CostGroup, CostReport, QueryCost, QueryWork};
use crate::query_log::html_report::{
    MAX_TABLE_ROWS, NamedReport, count_cell, duration_cell, format_short_query,
};
use crate::query_log::text_report;

fn mean_p95_max(work: &QueryWork) -> [f64; 3] {
    [work.us.mean(), work.us.quantile(0.95) as f64, work.us.max as f64]
}

const RANGE_CHART_CAPTION: &str =
    "The dot is the mean; the bar ends at the 95th percentile, the line at the maximum.";

pub(super) fn add_cost(page: &mut HtmlPage, it: &CostReport) {
    page.add_paragraph(&text_report::describe_cost(it));
    if it.collections.is_empty() {
        return;
    }
    let range = |cost: &CollectionCost| ChartRange {
        name: text_report::format_collection_cost(cost),
        values: vec![(ColourRole::First, "time".into(), mean_p95_max(&cost.group.work))],
    };
    let chart = RangeChart {
        x_axis: ChartAxis::log("time of an executed query", MeasureUnit::Time),
        ranges: it.collections.iter().take(2 * MAX_TABLE_ROWS).map(range).collect(),
    };
    page.add_chart("Query time by collection and backend", RANGE_CHART_CAPTION, &chart);
    let row = |name: String, group: &CostGroup| {
        let mut cells = vec![TableCell::Text(name)];
        cells.extend(work_cells(&group.work));
        cells.push(TableCell::Code(format_short_query(&group.slowest_query.query)));
        cells
    };
    let collection_row =
        |cost: &CollectionCost| row(text_report::format_collection_cost(cost), &cost.group);
    let rows: Vec<Vec<TableCell>> =
        it.collections.iter().take(2 * MAX_TABLE_ROWS).map(collection_row).collect();
    let head = [
        "",
        "queries",
        "mean",
        "95th percentile",
        "maximum",
        "rows visited",
        "items returned",
        "rows per item",
        "slowest query",
    ];
    page.add_table("By collection", &head, &rows);
    let rows: Vec<Vec<TableCell>> =
        it.backends.iter().take(MAX_TABLE_ROWS).map(|it| row(it.backend.clone(), it)).collect();
    page.add_table("By backend", &head, &rows);
    let row = |QueryCost { query, work }: &QueryCost| {
        let target = TableCell::Text(text_report::format_query_target(query));
        vec![
            duration_cell(work.us.sum as f64),
            count_cell(work.us.count),
            duration_cell(work.us.mean()),
            duration_cell(work.us.max as f64),
            scan_ratio_cell(work),
            target,
            TableCell::Code(format_short_query(&query.query)),
        ]
    };
    let rows: Vec<Vec<TableCell>> = it.costliest.iter().take(MAX_TABLE_ROWS).map(row).collect();
    let head = ["total", "executions", "mean", "maximum", "rows per item", "collection", "query"];
    page.add_table("The most expensive queries", &head, &rows);
}

fn scan_ratio_cell(work: &QueryWork) -> TableCell {
    TableCell::Number(text_report::format_scan_ratio(work))
}

fn work_cells(work: &QueryWork) -> Vec<TableCell> {
    let [mean, p95, max] = mean_p95_max(work).map(duration_cell);
    vec![
        count_cell(work.us.count),
        mean,
        p95,
        max,
        count_cell(work.rows_read),
        count_cell(work.returned),
        scan_ratio_cell(work),
    ]
}

/// Adds the cost by collection in two logs.
pub(super) fn add_cost_comparison(
    page: &mut HtmlPage,
    (before, a): NamedReport<'_>,
    (after, b): NamedReport<'_>,
) {
    let other = |cost: &CollectionCost| b.cost.collections.iter().find(|it| it.is_same_group(cost));
    let (mut ranges, mut rows) = (Vec::new(), Vec::new());
    for earlier in a.cost.collections.iter().take(2 * MAX_TABLE_ROWS) {
        let Some(later) = other(earlier) else { continue };
        let name = text_report::format_collection_cost(earlier);
        let (earlier, later) = (&earlier.group, &later.group);
        ranges.push(ChartRange {
            name: name.clone(),
            values: vec![
                (ColourRole::Reference, before.into(), mean_p95_max(&earlier.work)),
                (ColourRole::First, after.into(), mean_p95_max(&later.work)),
            ],
        });
        let mean = |it: &CostGroup| it.work.us.mean();
        rows.push(vec![
            TableCell::Text(name),
            duration_cell(mean(earlier)),
            duration_cell(mean(later)),
            TableCell::Number(format_change(mean(earlier), mean(later), MeasureUnit::Time)),
            duration_cell(earlier.work.us.max as f64),
            duration_cell(later.work.us.max as f64),
            scan_ratio_cell(&earlier.work),
            scan_ratio_cell(&later.work),
        ]);
    }
    if ranges.is_empty() {
        page.add_paragraph("The logs have no collection in common.");
        return;
    }
    page.add_subheading("Before and after");
    let x_axis = ChartAxis::log("time of an executed query", MeasureUnit::Time);
    page.add_chart(
        "Query time by collection, before and after",
        RANGE_CHART_CAPTION,
        &RangeChart { x_axis, ranges },
    );
    let head = [
        "",
        "mean before",
        "after",
        "change",
        "maximum before",
        "after",
        "rows per item before",
        "after",
    ];
    page.add_table("Query time by collection, before and after", &head, &rows);
}
