//! Exports calendar components with a calendar around them: its properties, each time zone once,
//! and as many calendars as needed.
//!
//! Usually one calendar suffices. Items with different definitions of one TZID, or of different
//! versions, need different calendars; so does an item with an undefined TZID that another item's
//! calendar defines. An item without END lasts until its calendar ends, so it gets its own
//! calendar. Separate from `export` because address books need none of it.

use super::{ExportReport, detect_line_end, for_each_item, read_source, write_bytes, write_text};
use crate::error::Error;
use larder_format::component::{CalendarVersion, Component};
use larder_format::content_line::content_lines;
use larder_format::decoding::decode_utf16;
use larder_format::property::Property;
use larder_format::splitter::{Splitter, StreamPiece};
use larder_store::{
    CalendarContext, CalendarContextRow, Collection, ItemMeta, ItemRow, Reader, ZoneDefinition,
    ZoneUse,
};
use larder_time::zone::ZoneMatch;
use std::collections::{BTreeMap, HashMap};
use std::io::Write;
use std::sync::Arc;

/// PRODID of a calendar whose own properties are unknown.
const PRODID: &str = "PRODID:-//Larder//Larder//EN";
/// The number of calendars that are tried for a calendar context.
const MAX_CALENDARS_TRIED: usize = 8;

/// Writes the calendars of a collection, one after the other.
pub(super) fn export_calendar(
    reader: &Reader,
    collection: &Collection,
    out: &mut impl Write,
    summary: &mut ExportReport,
) -> Result<(), Error> {
    let mut objects = OutputCalendars::new();
    // Of a damaged store, contexts that cannot be listed or read are left out: items that need them
    // follow in further calendars, or are named.
    match reader.items().list_calendar_contexts(collection) {
        Ok(rows) => {
            for row in rows {
                if let Err(error) = objects.assign_context(reader, row, 0) {
                    summary.error.get_or_insert(error);
                }
            }
        }
        Err(error) => summary.error = Some(error),
    }
    objects.ensure_not_empty();
    let metas = CalendarHeaders::read(reader, collection, summary)?;
    let first = objects.list.first().map(|object| object.context.clone()).unwrap_or_default();
    metas.write_begin(&first, true, out, summary)?;
    let mut rest = DeferredItems::default();
    let all = for_each_item(reader, collection, summary, &mut |summary, meta| {
        let at = match objects.by_context.get(&meta.calendar_context) {
            Some(at) => *at,
            // It was added during the export, after the zones of the first calendar were written.
            None => match objects.assign_context(reader, meta.calendar_context, 1) {
                Ok(at) => at,
                Err(error) => {
                    summary.add_unreadable(meta, error);
                    return Ok(());
                }
            },
        };
        match objects.list.get_mut(at) {
            Some(first) if at == 0 => {
                write_item(reader, meta, first, &mut rest, out, summary)?;
            }
            Some(object) => object.rows.push(meta.row),
            None => {}
        }
        Ok(())
    })?;
    metas.write_end(out, summary)?;
    let mut gone = 0;
    for object in objects.list.into_iter().skip(1) {
        gone += write_further_calendar(reader, &metas, object, &mut rest, out, summary)?;
    }
    for (calendar_context, rows) in std::mem::take(&mut rest.floating) {
        let calendar_context = CalendarContext::clone(&*read_context(reader, calendar_context)?);
        let object =
            OutputCalendar { context: calendar_context, rows, ..OutputCalendar::default() };
        gone += write_further_calendar(reader, &metas, object, &mut rest, out, summary)?;
    }
    for unclosed in rest.unclosed {
        write_unclosed(reader, &metas, unclosed, out, summary)?;
    }
    summary.count_missing(all.map(|all| all.saturating_sub(gone)));
    Ok(())
}

/// Items that follow the calendars.
#[derive(Default)]
struct DeferredItems {
    unclosed: Vec<UnclosedItem>,
    /// The rows of items, by calendar context, with a TZID that is undefined for them and defined
    /// in the calendar of their version.
    floating: BTreeMap<Option<CalendarContextRow>, Vec<ItemRow>>,
    /// The calendar context that was read last.
    last_context: Option<(Option<CalendarContextRow>, Arc<CalendarContext>)>,
}

/// An item without END.
struct UnclosedItem {
    meta: ItemMeta,
    /// Whether it is outside any calendar.
    is_bare: bool,
}

/// Writes a calendar after the first one. Returns the number of its items that were removed in
/// between.
fn write_further_calendar(
    reader: &Reader,
    metas: &CalendarHeaders,
    mut object: OutputCalendar,
    rest: &mut DeferredItems,
    out: &mut impl Write,
    summary: &mut ExportReport,
) -> Result<u64, Error> {
    let mut gone = 0;
    metas.write_begin(&object.context, false, out, summary)?;
    for row in std::mem::take(&mut object.rows) {
        match reader.items().find_by_row(row) {
            Ok(Some(meta)) => {
                write_item(reader, &meta, &object, rest, out, summary)?;
            }
            Ok(None) => gone += 1,
            // It could be read before.
            Err(error) => summary.error = Some(error),
        }
    }
    metas.write_end(out, summary)?;
    Ok(gone)
}

/// Writes an item into a calendar, or defers it.
fn write_item(
    reader: &Reader,
    meta: &ItemMeta,
    object: &OutputCalendar,
    rest: &mut DeferredItems,
    out: &mut impl Write,
    summary: &mut ExportReport,
) -> Result<(), Error> {
    let Some(bytes) = read_source(reader, meta, summary) else { return Ok(()) };
    let context = meta.calendar_context;
    if !object.zone_hashes.is_empty()
        && detect_zone_gain(reader, &bytes, context, object, &mut rest.last_context)?
    {
        rest.floating.entry(context).or_default().push(meta.row);
        return Ok(());
    }
    match detect_end(&bytes) {
        Some(true) => {
            write_text(&bytes, out, summary)?;
            summary.items += 1;
        }
        not => rest.unclosed.push(UnclosedItem { meta: meta.clone(), is_bare: not.is_none() }),
    }
    Ok(())
}

/// Writes an item without END into its own calendar or, if it was outside any calendar, after an
/// empty calendar.
fn write_unclosed(
    reader: &Reader,
    metas: &CalendarHeaders,
    UnclosedItem { meta, is_bare: bare }: UnclosedItem,
    out: &mut impl Write,
    summary: &mut ExportReport,
) -> Result<(), Error> {
    let Some(bytes) = read_source(reader, &meta, summary) else { return Ok(()) };
    let calendar_context = read_context(reader, meta.calendar_context)?;
    if bare {
        // The item ends where the next calendar begins.
        metas.write_begin(&CalendarContext::default(), false, out, summary)?;
        metas.write_end(out, summary)?;
        write_zones(&calendar_context, out, summary)?;
    } else {
        metas.write_begin(&calendar_context, false, out, summary)?;
    }
    write_text(&bytes, out, summary)?;
    summary.items += 1;
    if bare { Ok(()) } else { metas.write_end(out, summary) }
}

fn read_context(
    reader: &Reader,
    row: Option<CalendarContextRow>,
) -> larder_store::Result<Arc<CalendarContext>> {
    Ok(row
        .map(|row| reader.items().calendar_context(row))
        .transpose()?
        .flatten()
        .unwrap_or_default())
}

fn write_zones(
    calendar_context: &CalendarContext,
    out: &mut impl Write,
    summary: &mut ExportReport,
) -> Result<(), Error> {
    for zone in &calendar_context.zone_definitions {
        write_text(zone.bytes(), out, summary)?;
        summary.zones += 1;
    }
    Ok(())
}

/// Returns whether an item has a TZID that is undefined for it and defined in this calendar, so
/// that it means another zone there.
fn detect_zone_gain(
    reader: &Reader,
    bytes: &[u8],
    row: Option<CalendarContextRow>,
    object: &OutputCalendar,
    last: &mut Option<(Option<CalendarContextRow>, Arc<CalendarContext>)>,
) -> Result<bool, Error> {
    let known = &object.zone_hashes;
    let component = Component::parse(bytes);
    let tzids = component.tzids();
    if !tzids.iter().any(|tzid| known.contains_key(&**tzid)) {
        return Ok(false);
    }
    let calendar_context = match last {
        Some((of, calendar_context)) if *of == row => Arc::clone(calendar_context),
        _ => read_context(reader, row)?,
    };
    *last = Some((row, Arc::clone(&calendar_context)));
    let is_new =
        |tzid: &str| known.contains_key(tzid) && calendar_context.zone_definition(tzid).is_none();
    if !tzids.iter().any(|tzid| is_new(tzid)) {
        return Ok(false);
    }
    let uses = reader.extractor().zone_uses(&component, &calendar_context);
    let is_changeable = |zone: &&ZoneUse| can_be_redefined(zone) && is_new(&zone.tzid);
    let changeable: Vec<&ZoneUse> = uses.iter().filter(is_changeable).collect();
    // A definition gives times to those that have none; to compare is costly in a large calendar.
    if changeable.iter().any(|zone| zone.system_zone.is_none()) {
        return Ok(true);
    }
    if changeable.is_empty() {
        return Ok(false);
    }
    let uses_there = reader.extractor().zone_uses(&component, &object.context);
    let is_same = |zone: &&ZoneUse| {
        uses_there
            .iter()
            .any(|there| there.tzid == zone.tzid && there.system_zone == zone.system_zone)
    };
    Ok(!changeable.iter().all(is_same))
}

/// Returns whether a definition may change the zone that a TZID means without one.
fn can_be_redefined(zone: &ZoneUse) -> bool {
    match zone.zone_match {
        ZoneMatch::Floating | ZoneMatch::Separator => true,
        ZoneMatch::Name => zone.system_zone.as_deref() != Some(zone.tzid.trim().trim_matches('"')),
        _ => false,
    }
}

/// Returns whether an item ends with its bytes, or only with its calendar. `None`: it does not end
/// even there.
fn detect_end(bytes: &[u8]) -> Option<bool> {
    let text = decode_utf16(bytes).map(String::into_bytes);
    let bytes = text.as_deref().unwrap_or(bytes);
    let (mut found, mut pieces) = (None, 0);
    let mut look = |piece: StreamPiece<'_>| {
        pieces += 1;
        if let StreamPiece::Component { bytes: of, closed, .. } = piece
            && of.len() >= bytes.len()
        {
            found = Some(closed);
        }
    };
    let mut splitter = Splitter::new(usize::MAX);
    for part in [b"BEGIN:VCALENDAR\n", bytes, super::missing_line_end(bytes), b"END:VCALENDAR\n"] {
        splitter.push(part, &mut look);
    }
    splitter.finish(&mut look);
    found.filter(|_| pieces == 3)
}

/// The properties of the calendars.
struct CalendarHeaders {
    own: Option<Vec<u8>>,
    /// The properties with the name of the calendar, which are repeated in each calendar.
    names: Vec<u8>,
    /// The line end of lines that are not part of an item.
    line_end: &'static [u8],
}

impl CalendarHeaders {
    /// Reads the properties of a calendar. Damaged ones are left out and reported.
    fn read(
        reader: &Reader,
        collection: &Collection,
        summary: &mut ExportReport,
    ) -> Result<CalendarHeaders, Error> {
        let own = match reader.collections().properties(collection) {
            Err(error) if error.damaged_file().is_some() => {
                summary.error.get_or_insert(error);
                None
            }
            own => own?,
        };
        let mut end = own.as_deref().and_then(detect_line_end);
        if end.is_none()
            && let Ok(page) = reader.items().list_after(collection, None, 1)
            && let Some(first) = page.first()
        {
            end = reader
                .items()
                .source_bytes(first.row)
                .ok()
                .flatten()
                .as_deref()
                .and_then(detect_line_end);
        }
        let mut names = Vec::new();
        for line in content_lines(own.as_deref().unwrap_or_default()) {
            let raw = line.raw;
            let property = Property::parse(line);
            if property.has_name("X-WR-CALNAME") || property.has_name("NAME") {
                names.extend_from_slice(raw);
                names.extend_from_slice(super::missing_line_end(raw));
            }
        }
        Ok(CalendarHeaders { own, names, line_end: end.unwrap_or(b"\r\n") })
    }

    /// Writes the beginning of a calendar with this context.
    fn write_begin(
        &self,
        calendar_context: &CalendarContext,
        first: bool,
        out: &mut impl Write,
        summary: &mut ExportReport,
    ) -> Result<(), Error> {
        self.write_line("BEGIN:VCALENDAR", out, summary)?;
        let version = if calendar_context.is_vcalendar_1 {
            CalendarVersion::V1_0
        } else {
            CalendarVersion::V2_0
        };
        // The properties of the first calendar need not apply to the others.
        match self
            .own
            .as_deref()
            .filter(|own| first && CalendarVersion::from_calendar_lines(own) == version)
        {
            Some(own) => write_text(own, out, summary)?,
            None => {
                self.write_line(&format!("VERSION:{}", version.name()), out, summary)?;
                self.write_line(PRODID, out, summary)?;
                write_bytes(out, summary, &self.names)?;
            }
        }
        write_zones(calendar_context, out, summary)
    }

    fn write_end(&self, out: &mut impl Write, summary: &mut ExportReport) -> Result<(), Error> {
        self.write_line("END:VCALENDAR", out, summary)
    }

    fn write_line(
        &self,
        line: &str,
        out: &mut impl Write,
        summary: &mut ExportReport,
    ) -> Result<(), Error> {
        write_bytes(out, summary, line.as_bytes())?;
        write_bytes(out, summary, self.line_end)
    }
}

/// A calendar of the export: calendar contexts of one version, with at most one definition of each
/// TZID.
#[derive(Default)]
struct OutputCalendar {
    context: CalendarContext,
    /// The hashes of the definitions, by TZID.
    zone_hashes: HashMap<String, [u8; 32]>,
    /// The rows of the items to write.
    rows: Vec<ItemRow>,
}

/// The calendars of the export, and the assignment of calendar contexts to them.
struct OutputCalendars {
    list: Vec<OutputCalendar>,
    by_context: HashMap<Option<CalendarContextRow>, usize>,
    /// The calendar of each definition, and the last calendar with each TZID.
    by_definition: HashMap<[u8; 32], usize>,
    last_by_tzid: HashMap<String, usize>,
}

impl OutputCalendars {
    fn new() -> OutputCalendars {
        let (by_context, by_definition, last_by_tzid) =
            (HashMap::new(), HashMap::new(), HashMap::new());
        OutputCalendars { list: Vec::new(), by_context, by_definition, last_by_tzid }
    }

    fn ensure_not_empty(&mut self) {
        if self.list.is_empty() {
            self.list.push(OutputCalendar::default());
        }
    }

    /// Assigns a calendar context to a calendar with a number of at least `from`. Thousands of
    /// contexts may define one TZID, so only likely calendars are tried.
    fn assign_context(
        &mut self,
        reader: &Reader,
        row: Option<CalendarContextRow>,
        from: usize,
    ) -> larder_store::Result<usize> {
        let calendar_context = read_context(reader, row)?;
        let holders = calendar_context
            .zone_definitions
            .iter()
            .filter_map(|zone| self.by_definition.get(zone.hash()))
            .copied();
        let behind = calendar_context
            .zone_definitions
            .iter()
            .filter_map(|zone| self.last_by_tzid.get(zone.tzid()));
        let behind = behind.max().map_or(0, |last| last + 1).max(from);
        let mut likely: Vec<usize> = holders.filter(|holder| *holder >= from).collect();
        likely.extend(behind..behind + MAX_CALENDARS_TRIED);
        let fits = |at: &usize| {
            self.list.get(*at).is_some_and(|object| object.has_room(&calendar_context))
        };
        let at = match likely.into_iter().find(fits) {
            Some(at) => at,
            None => {
                let calendar_context = CalendarContext {
                    is_vcalendar_1: calendar_context.is_vcalendar_1,
                    ..CalendarContext::default()
                };
                self.list.push(OutputCalendar {
                    context: calendar_context,
                    ..OutputCalendar::default()
                });
                self.list.len() - 1
            }
        };
        for zone in &calendar_context.zone_definitions {
            self.by_definition.entry(*zone.hash()).or_insert(at);
            let last = self.last_by_tzid.entry(zone.tzid().to_string()).or_default();
            *last = (*last).max(at);
        }
        if let Some(object) = self.list.get_mut(at) {
            object.add_zones(&calendar_context.zone_definitions);
        }
        self.by_context.insert(row, at);
        Ok(at)
    }
}

impl OutputCalendar {
    fn has_room(&self, calendar_context: &CalendarContext) -> bool {
        let same = |zone: &Arc<ZoneDefinition>| {
            self.zone_hashes.get(zone.tzid()).is_none_or(|known| known == zone.hash())
        };
        self.context.is_vcalendar_1 == calendar_context.is_vcalendar_1
            && calendar_context.zone_definitions.iter().all(same)
    }

    fn add_zones(&mut self, zones: &[Arc<ZoneDefinition>]) {
        for zone in zones {
            if self.zone_hashes.insert(zone.tzid().to_string(), *zone.hash()).is_none() {
                self.context.zone_definitions.push(Arc::clone(zone));
            }
        }
    }
}
