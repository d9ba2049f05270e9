//! The D-Bus interfaces as tables: the methods, signals and properties of each object, with their
//! types.
//!
//! A call is checked against the tables before it is dispatched, and introspection is generated
//! from them. The behaviour of a method belongs to the module of its object.

use std::fmt::Write as _;

/// A D-Bus interface.
#[derive(Debug)]
pub(super) struct BusInterface {
    pub(super) name: &'static str,
    /// Name, types of the input, types of the output.
    pub(super) methods:
        &'static [(&'static str, &'static [&'static str], &'static [&'static str])],
    /// Name, types.
    pub(super) signals: &'static [(&'static str, &'static [&'static str])],
    /// Name, type, whether clients may set it.
    pub(super) properties: &'static [(&'static str, &'static str, bool)],
}

/// The prefix of all interface names.
macro_rules! eds {
    ($name:literal) => {
        concat!("org.gnome.evolution.dataserver.", $name)
    };
}

pub(super) static PROPERTIES: BusInterface = BusInterface {
    name: "org.freedesktop.DBus.Properties",
    methods: &[
        ("Get", &["s", "s"], &["v"]),
        ("GetAll", &["s"], &["a{sv}"]),
        ("Set", &["s", "s", "v"], &[]),
    ],
    signals: &[("PropertiesChanged", &["s", "a{sv}", "as"])],
    properties: &[],
};

pub(super) static INTROSPECTABLE: BusInterface = BusInterface {
    name: "org.freedesktop.DBus.Introspectable",
    methods: &[("Introspect", &[], &["s"])],
    signals: &[],
    properties: &[],
};

pub(super) static PEER: BusInterface = BusInterface {
    name: "org.freedesktop.DBus.Peer",
    methods: &[("Ping", &[], &[])],
    signals: &[],
    properties: &[],
};

pub(super) static OBJECT_MANAGER: BusInterface = BusInterface {
    name: "org.freedesktop.DBus.ObjectManager",
    methods: &[("GetManagedObjects", &[], &["a{oa{sa{sv}}}"])],
    signals: &[("InterfacesAdded", &["o", "a{sa{sv}}"]), ("InterfacesRemoved", &["o", "as"])],
    properties: &[],
};

pub(super) static SOURCE_MANAGER: BusInterface = BusInterface {
    name: eds!("SourceManager"),
    methods: &[
        ("CreateSources", &["a{ss}"], &[]),
        ("Reload", &[], &[]),
        ("RefreshBackend", &["s"], &[]),
    ],
    signals: &[],
    properties: &[],
};

pub(super) static SOURCE: BusInterface = BusInterface {
    name: eds!("Source"),
    methods: &[
        ("InvokeCredentialsRequired", &["s", "s", "s", "s", "s"], &[]),
        ("GetLastCredentialsRequiredArguments", &[], &["s", "s", "s", "s", "s"]),
        ("UnsetLastCredentialsRequiredArguments", &[], &[]),
        ("InvokeAuthenticate", &["as"], &[]),
    ],
    signals: &[("CredentialsRequired", &["s", "s", "s", "s", "s"]), ("Authenticate", &["as"])],
    properties: &[("UID", "s", false), ("Data", "s", false), ("ConnectionStatus", "s", true)],
};

pub(super) static SOURCE_WRITABLE: BusInterface = BusInterface {
    name: eds!("Source.Writable"),
    methods: &[("Write", &["s"], &[])],
    signals: &[],
    properties: &[],
};

pub(super) static SOURCE_REMOVABLE: BusInterface = BusInterface {
    name: eds!("Source.Removable"),
    methods: &[("Remove", &[], &[])],
    signals: &[],
    properties: &[],
};

pub(super) static ADDRESS_BOOK_FACTORY: BusInterface = BusInterface {
    name: eds!("AddressBookFactory"),
    methods: &[("OpenAddressBook", &["s"], &["s", "s"])],
    signals: &[],
    properties: &[],
};

pub(super) static ADDRESS_BOOK: BusInterface = BusInterface {
    name: eds!("AddressBook"),
    methods: &[
        ("RetrieveProperties", &[], &["as"]),
        ("Open", &[], &["as"]),
        ("Close", &[], &[]),
        ("Refresh", &[], &[]),
        ("CreateContacts", &["as", "u"], &["as"]),
        ("ModifyContacts", &["as", "u"], &[]),
        ("RemoveContacts", &["as", "u"], &[]),
        ("GetContact", &["s"], &["s"]),
        ("GetContactList", &["s"], &["as"]),
        ("GetContactListUids", &["s"], &["as"]),
        ("GetView", &["s"], &["o"]),
        ("ContainsEmail", &["s"], &["b"]),
    ],
    signals: &[("Error", &["s"])],
    properties: &[
        ("Online", "b", false),
        ("Revision", "s", false),
        ("Locale", "s", false),
        ("Writable", "b", false),
        ("CacheDir", "s", false),
        ("Capabilities", "as", false),
        ("RequiredFields", "as", false),
        ("SupportedFields", "as", false),
    ],
};

pub(super) static ADDRESS_BOOK_VIEW: BusInterface = BusInterface {
    name: eds!("AddressBookView"),
    methods: &[
        ("Start", &[], &[]),
        ("Stop", &[], &[]),
        ("SetFlags", &["u"], &[]),
        ("SetFieldsOfInterest", &["as"], &[]),
        ("Dispose", &[], &[]),
    ],
    signals: &[
        ("ObjectsAdded", &["as"]),
        ("ObjectsModified", &["as"]),
        ("ObjectsRemoved", &["as"]),
        ("Progress", &["u", "s"]),
        ("Complete", &["s", "s"]),
    ],
    properties: &[],
};

impl BusInterface {
    /// Returns the concatenated types of a method's input.
    pub(super) fn input_signature(&self, method: &str) -> Option<String> {
        let (_, takes, _) = self.methods.iter().find(|(name, ..)| *name == method)?;
        Some(takes.concat())
    }

    fn write_xml(&self, xml: &mut String) {
        let mut write = |text: std::fmt::Arguments<'_>| {
            let _infallible = xml.write_fmt(text);
        };
        write(format_args!("  <interface name=\"{}\">\n", self.name));
        for (name, takes, gives) in self.methods {
            write(format_args!("    <method name=\"{name}\">\n"));
            for (direction, types) in [("in", takes), ("out", gives)] {
                for value_type in *types {
                    write(format_args!(
                        "      <arg type=\"{value_type}\" direction=\"{direction}\"/>\n"
                    ));
                }
            }
            write(format_args!("    </method>\n"));
        }
        for (name, types) in self.signals {
            write(format_args!("    <signal name=\"{name}\">\n"));
            for value_type in *types {
                write(format_args!("      <arg type=\"{value_type}\"/>\n"));
            }
            write(format_args!("    </signal>\n"));
        }
        for (name, value_type, is_writable) in self.properties {
            let access = if *is_writable { "readwrite" } else { "read" };
            write(format_args!(
                "    <property name=\"{name}\" type=\"{value_type}\" access=\"{access}\"/>\n"
            ));
        }
        write(format_args!("  </interface>\n"));
    }
}

/// Returns the introspection of an object with these interfaces and child nodes.
pub(super) fn introspection_xml(interfaces: &[&BusInterface], children: &[String]) -> String {
    let mut xml = String::from(concat!(
        "<!DOCTYPE node PUBLIC \"-//freedesktop//DTD D-BUS Object Introspection 1.0//EN\"\n",
        "  \"http://www.freedesktop.org/standards/dbus/1.0/introspect.dtd\">\n<node>\n",
    ));
    for interface in interfaces {
        interface.write_xml(&mut xml);
    }
    for child in children {
        let _infallible = writeln!(xml, "  <node name=\"{child}\"/>");
    }
    xml + "</node>\n"
}
