//! Row ids: the number of a row, with the table that the row is in.
//!
//! Numbers of different tables cannot be confused, and there is no number for "no row": if a row
//! can be missing, the type is an `Option`. Rows are valid in one file only. Except for the numbers
//! of operations, they are never shown; an item has a [`Handle`](crate::Handle) for that.

use rusqlite::ToSql;
use rusqlite::types::{FromSql, FromSqlResult, ToSqlOutput, ValueRef};
use std::fmt;

macro_rules! row_id {
    ($(#[$doc:meta])* $visibility:vis $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        $visibility struct $name(i64);

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl ToSql for $name {
            fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
                Ok(ToSqlOutput::from(self.0))
            }
        }

        impl FromSql for $name {
            fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
                value.as_i64().map($name)
            }
        }
    };
}

macro_rules! row_number {
    ($($name:ident)*) => {
        $(impl $name {
            /// Names the row with this number.
            #[must_use]
            pub const fn from_number(number: i64) -> $name {
                $name(number)
            }

            /// Returns the number of the row.
            #[must_use]
            pub const fn to_number(self) -> i64 {
                self.0
            }
        })*
    };
}

row_number! { ItemRow CollectionRow CalendarContextRow OperationId }

row_id! {
    /// A row of the table `item`. No two items ever have the same, and later ones have larger ones.
    pub ItemRow
}

row_id! {
    /// A row of the table `collection`.
    pub CollectionRow
}

row_id! {
    /// A row of the table `calendar_context`.
    pub CalendarContextRow
}

row_id! {
    /// The number of an operation, a row of the table `operation`; `larder log` prints it.
    pub OperationId
}

row_id! {
    /// A row of the table `item_history`.
    pub(crate) ItemHistoryRow
}

row_id! {
    /// A row of the table `zone_definition`.
    pub(crate) ZoneDefinitionRow
}

row_id! {
    /// A row of the table `idx_zone_set`.
    pub(crate) ZoneSetRow
}

impl ZoneDefinitionRow {
    pub(crate) const fn from_number(number: i64) -> ZoneDefinitionRow {
        ZoneDefinitionRow(number)
    }

    pub(crate) const fn to_number(self) -> i64 {
        self.0
    }
}

impl ItemHistoryRow {
    pub(crate) const fn from_number(number: i64) -> ItemHistoryRow {
        ItemHistoryRow(number)
    }

    pub(crate) const fn to_number(self) -> i64 {
        self.0
    }
}

impl ZoneSetRow {
    pub(crate) const fn from_number(number: i64) -> ZoneSetRow {
        ZoneSetRow(number)
    }
}

impl ItemRow {
    /// Returns the next row, which need not have an item.
    pub(crate) const fn next(self) -> ItemRow {
        ItemRow(self.0 + 1)
    }
}
