//! D-Bus messages: parses calls, and builds replies and signals.
//!
//! The module sends nothing. A call results in a list of messages, which the caller sends together
//! and in order.

use super::call_error::{CallError, SIZE_LIMIT};
use super::interface::PROPERTIES;
use serde::Serialize;
use std::collections::BTreeMap;
use zbus::message::{Body, Flags, Header};
use zbus::wire::DynamicDeserialize;
use zbus::{DynamicType, Message, Variant};

/// The largest message to send: D-Bus closes connections that send larger messages.
const MAX_MESSAGE_BYTES: usize = 100 << 20;
/// The largest array to send; the limit of D-Bus is 64 MiB.
pub(super) const MAX_ARRAY_BYTES: usize = 60 << 20;

/// Properties of an interface, by name.
pub(super) type PropertyValues = BTreeMap<&'static str, Variant<'static>>;

/// A method call.
pub(super) struct MethodCall<'m> {
    message: &'m Message,
    header: Header<'m>,
    body: Body,
}

impl<'m> MethodCall<'m> {
    pub(super) fn new(message: &'m Message) -> MethodCall<'m> {
        MethodCall { message, header: message.header(), body: message.body() }
    }

    /// Returns the message of the call, for an answer that follows later.
    pub(super) fn message(&self) -> Message {
        self.message.clone()
    }

    /// Returns the caller's unique name on the bus.
    pub(super) fn sender(&self) -> &str {
        self.header.sender().map_or("", |sender| sender.as_str())
    }

    pub(super) fn path(&self) -> &str {
        self.header.path().map_or("", |path| path.as_str())
    }

    /// Returns the interface; empty if the call names none.
    pub(super) fn interface(&self) -> &str {
        self.header.interface().map_or("", |interface| interface.as_str())
    }

    pub(super) fn member(&self) -> &str {
        self.header.member().map_or("", |member| member.as_str())
    }

    /// Returns the concatenated types of the arguments.
    pub(super) fn signature(&self) -> String {
        self.body.signature().to_string_no_parens()
    }

    /// Returns whether the caller waits for a reply.
    pub(super) fn wants_reply(&self) -> bool {
        !self.header.primary().flags().contains(Flags::NO_REPLY_EXPECTED)
    }

    /// Returns the arguments.
    pub(super) fn arguments<'s, T: DynamicDeserialize<'s>>(&'s self) -> Result<T, CallError> {
        self.body
            .deserialize()
            .map_err(|error| CallError::from_bus_error("InvalidArgs", error.to_string()))
    }

    /// Builds the reply with this body.
    pub(super) fn reply<T: Serialize + DynamicType>(&self, body: &T) -> Result<Message, CallError> {
        let reply = Message::method_return(&self.header).build(body);
        reply
            .ok()
            .filter(is_sendable)
            .ok_or_else(|| CallError::new(SIZE_LIMIT, "the answer is too large for one message"))
    }

    /// Builds the reply that reports an error.
    pub(super) fn reply_error(&self, failure: &CallError) -> Option<Message> {
        let error = Message::error(&self.header, failure.name.as_str());
        error.build(&replace_nul(&failure.message)).ok()
    }
}

fn is_sendable(message: &Message) -> bool {
    message.data().len() <= MAX_MESSAGE_BYTES
}

/// Replaces NUL, the only character that a D-Bus string cannot contain.
pub(super) fn replace_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

/// Builds a signal to one client, or to all.
pub(super) fn build_signal<T: Serialize + DynamicType>(
    path: &str,
    interface: &'static str,
    member: &'static str,
    to: Option<&str>,
    body: &T,
) -> Option<Message> {
    let mut signal = Message::signal(path, interface, member);
    if let Some(to) = to {
        signal = signal.destination(to);
    }
    signal.build(body).ok().filter(is_sendable)
}

/// Builds the signal that a property of an object has changed.
pub(super) fn build_properties_changed(
    path: &str,
    interface: &'static str,
    name: &'static str,
    value: String,
) -> Option<Message> {
    let values = PropertyValues::from([(name, Variant::from(value))]);
    let body = (interface, values, Vec::<&str>::new());
    build_signal(path, PROPERTIES.name, "PropertiesChanged", None, &body)
}
