//! Tests of the registry: sources that clients and other processes create, change and remove.

use crate::bus::{BOOKS, Bus, EDS, FACTORY, MANAGER, SOURCES, message_summaries};
use larder_store::{BatchChange, Kind, Operation};
use std::collections::BTreeMap;
use zbus::{OwnedObjectPath, OwnedVariant};

type Objects =
    std::collections::HashMap<OwnedObjectPath, BTreeMap<String, BTreeMap<String, OwnedVariant>>>;

/// Returns the UIDs of all objects, each with its path and interfaces.
fn objects(client: &crate::bus::Client) -> BTreeMap<String, (String, Vec<String>)> {
    let interface = "org.freedesktop.DBus.ObjectManager";
    let (_, reply) = client.call_service(SOURCES, MANAGER, interface, "GetManagedObjects", &());
    let objects: Objects = reply.unwrap().body().deserialize().unwrap();
    let entry =
        |(path, interfaces): (OwnedObjectPath, BTreeMap<String, BTreeMap<_, OwnedVariant>>)| {
            let uid = &interfaces[&format!("{EDS}.Source")]["UID"];
            let uid: String = uid.try_clone().unwrap().try_into().unwrap();
            (uid, (path.to_string(), interfaces.into_keys().collect()))
        };
    objects.into_iter().map(entry).collect()
}

#[test]
fn sources_are_created_changed_and_removed() {
    let Some(bus) = Bus::new("sources_are_created_changed_and_removed") else { return };
    let _service = bus.serve(bus.options());
    let client = bus.client();
    let objects_now = objects(&client);
    assert_eq!(objects_now.len(), 18);
    let (_, interfaces) = &objects_now["system-address-book"];
    assert_eq!(*interfaces, [format!("{EDS}.Source"), format!("{EDS}.Source.Writable")]);
    assert_eq!(objects_now["local-stub"].1, [format!("{EDS}.Source")]);

    let text = "[Data Source]\nDisplayName=Friends\n\n[Address Book]\nBackendName=local\n";
    let interface = format!("{EDS}.SourceManager");
    let body = BTreeMap::from([("friends", text)]);
    let (before, made) = client.call_service(SOURCES, MANAGER, &interface, "CreateSources", &body);
    made.unwrap();
    assert_eq!(message_summaries(&before), ["InterfacesAdded"]);
    let (path, interfaces) = objects(&client).remove("friends").unwrap();
    assert_eq!(interfaces.len(), 3);

    let changed = text.replace("Friends", "Foes");
    let (before, _) =
        client.call_service(SOURCES, &path, &format!("{EDS}.Source.Writable"), "Write", &changed);
    assert_eq!(message_summaries(&before), ["PropertiesChanged Data"]);
    let properties = "org.freedesktop.DBus.Properties";
    let arguments = (format!("{EDS}.Source"), "Data");
    let (_, data) = client.call_service(SOURCES, &path, properties, "Get", &arguments);
    let data: OwnedVariant = data.unwrap().body().deserialize().unwrap();
    assert_eq!(String::try_from(data).unwrap(), changed);

    let book = client.open("friends");
    client.add(&book, &[&crate::bus::card("a", "Anna")]).unwrap();
    let (before, removed) =
        client.call_service(SOURCES, &path, &format!("{EDS}.Source.Removable"), "Remove", &());
    removed.unwrap();
    assert_eq!(message_summaries(&before).last().unwrap(), "InterfacesRemoved");
    assert!(!objects(&client).contains_key("friends"));
    assert!(
        client
            .get(&book, "a")
            .is_err_and(|error_reply| error_reply.name.ends_with("UnknownObject"))
    );
}

/// A collection that another process creates or removes appears and disappears as a source; the
/// book has its contacts.
#[test]
fn collections_of_other_processes_are_sources() {
    let Some(bus) = Bus::new("collections_of_other_processes_are_sources") else { return };
    let _service = bus.serve(bus.options());
    let client = bus.client();
    objects(&client);
    let mut store = bus.store();
    let mut apply = |change| {
        store.apply(&mut Operation::new("collections", "", 0), vec![change]).unwrap();
    };
    apply(BatchChange::CreateCollection("Work \\ life".into(), Kind::Contact));
    apply(BatchChange::CreateCollection("Calendar".into(), Kind::Event));
    let objects_now = objects(&client);
    assert_eq!(objects_now.len(), 19);
    assert!(objects_now.contains_key("Work \\ life"), "{objects_now:?}");
    client.open("Work \\ life");
    apply(BatchChange::RemoveCollection("Work \\ life".into()));
    assert_eq!(objects(&client).len(), 18);
    // The personal book is the collection "contacts", which is not a source of its own.
    apply(BatchChange::CreateCollection("contacts".into(), Kind::Contact));
    assert_eq!(objects(&client).len(), 18);
    client.open("system-address-book");
}

/// A collection may have the name of a built-in source: its book has a UID of its own.
#[test]
fn collections_with_names_of_sources_are_books() {
    let Some(bus) = Bus::new("collections_with_names_of_sources_are_books") else { return };
    let _service = bus.serve(bus.options());
    let client = bus.client();
    let mut store = bus.store();
    for name in ["local", "system-address-book"] {
        let create = BatchChange::CreateCollection(name.into(), Kind::Contact);
        store.apply(&mut Operation::new("collections", "", 0), vec![create]).unwrap();
    }
    let objects_now = objects(&client);
    assert_eq!(objects_now.len(), 20, "{objects_now:?}");
    assert_eq!(objects_now["local"].1, [format!("{EDS}.Source")]);
    let reader = store.open_reader().unwrap();
    for name in ["local", "system-address-book"] {
        let book = client.open(&format!("larder:{name}"));
        client.add(&book, &[&crate::bus::card(name, "Anna")]).unwrap();
        assert!(reader.items().get(name, name).unwrap().is_some(), "{name}");
        assert_eq!(client.uids(&book, "").unwrap(), [name]);
    }
    let personal = client.open("system-address-book");
    assert!(client.uids(&personal, "").unwrap().is_empty());

    let path = &objects_now["larder:local"].0;
    let interface = format!("{EDS}.Source.Removable");
    client.call_service(SOURCES, path, &interface, "Remove", &()).1.unwrap();
    assert!(!objects(&client).contains_key("larder:local"));
    assert!(reader.items().get("local", "local").unwrap().is_none());
}

#[test]
fn the_registry_refuses_malformed_sources() {
    let Some(bus) = Bus::new("the_registry_refuses_malformed_sources") else { return };
    let _service = bus.serve(bus.options());
    let client = bus.client();
    let check = |uid: &str, text: &str, code: &str| {
        let sources = BTreeMap::from([(uid, text)]);
        let error_reply =
            client.call(MANAGER, "SourceManager", "CreateSources", &sources).unwrap_err();
        assert!(error_reply.name.ends_with(code), "{uid}: {error_reply:?}");
    };
    let book = "[Data Source]\nDisplayName=x\n\n[Address Book]\n";
    let (io, key_file) = ("g_2dio_2derror_2dquark.Code", "g_2dkey_2dfile_2derror_2dquark.Code");
    check("a", "garbage", &format!("{key_file}1"));
    check("a", "[X]\nY=1\n", &format!("{key_file}4"));
    check("a", "[Data Source]\nDisplayName=x\n\n[Calendar]\n", &format!("{io}15"));
    check("system-calendar", book, &format!("{io}2"));
    check("contacts", book, &format!("{io}2"));
    check("larder:local", book, &format!("{io}13"));
    check("../escape", book, &format!("{io}13"));
    check("", book, &format!("{io}13"));
    check(&"long".repeat(100), book, &format!("{io}13"));
    // If one source is malformed, none is created.
    let two = BTreeMap::from([("good", book), ("zzz", "garbage")]);
    assert!(client.call(MANAGER, "SourceManager", "CreateSources", &two).is_err());
    assert_eq!(objects(&client).len(), 18);
    let error_reply = client.call(FACTORY, "AddressBookFactory", "OpenAddressBook", &"good");
    assert!(error_reply.unwrap_err().name.ends_with(&format!("{io}1")));
    let error_reply =
        client.call(FACTORY, "AddressBookFactory", "OpenAddressBook", &"system-calendar");
    assert!(error_reply.unwrap_err().name.ends_with(&format!("{io}15")));
}

/// Calls that no object handles.
#[test]
fn calls_without_a_target_are_errors() {
    let Some(bus) = Bus::new("calls_without_a_target_are_errors") else { return };
    let _service = bus.serve(bus.options());
    let client = bus.client();
    let check = |path: &str, interface: &str, method: &str, error: &str| {
        let (_, reply) = client.call_service(BOOKS, path, interface, method, &());
        let name = reply.map(|_| String::new()).unwrap_or_else(|error_reply| error_reply.name);
        let expect = match error {
            "" => String::new(),
            error => format!("org.freedesktop.DBus.Error.{error}"),
        };
        assert_eq!(name, expect, "{path} {interface} {method}");
    };
    let factory = format!("{EDS}.AddressBookFactory");
    check("/nowhere", &factory, "OpenAddressBook", "UnknownObject");
    check(FACTORY, &format!("{EDS}.AddressBook"), "Open", "UnknownInterface");
    check(FACTORY, &factory, "Dance", "UnknownMethod");
    check(FACTORY, &factory, "OpenAddressBook", "InvalidArgs");
    check(FACTORY, "org.freedesktop.DBus.Peer", "Ping", "");
    check("/", "org.freedesktop.DBus.Introspectable", "Introspect", "");
    for path in ["Source", "Source_1", "Source_99", "Source_", "Source_x", "Source_1/2"] {
        let error = if ["Source", "Source_1"].contains(&path) { "" } else { "UnknownObject" };
        let path = format!("{MANAGER}/{path}");
        if !path.ends_with('_') {
            check(&path, &format!("{EDS}.Source"), "UnsetLastCredentialsRequiredArguments", error);
        }
    }
    let set = |property: &str| {
        let value = zbus::Variant::from("x");
        let body = (format!("{EDS}.Source"), property, value);
        let path = format!("{MANAGER}/Source");
        let (_, reply) =
            client.call_service(SOURCES, &path, "org.freedesktop.DBus.Properties", "Set", &body);
        reply.map(drop).map_err(|error_reply| error_reply.name)
    };
    assert_eq!(set("ConnectionStatus"), Ok(()));
    assert_eq!(set("UID"), Err("org.freedesktop.DBus.Error.PropertyReadOnly".into()));
    assert_eq!(set("Colour"), Err("org.freedesktop.DBus.Error.UnknownProperty".into()));
}

/// Introspection leads from the root to every object, and names its methods.
#[test]
fn introspection_lists_every_object() {
    let Some(bus) = Bus::new("introspection_lists_every_object") else { return };
    let _service = bus.serve(bus.options());
    let client = bus.client();
    client.open("system-address-book");
    let (mut paths, mut interfaces) = (vec![String::new()], std::collections::BTreeSet::new());
    let mut leaves = 0;
    while let Some(path) = paths.pop() {
        let at = if path.is_empty() { "/" } else { &path };
        let introspectable = "org.freedesktop.DBus.Introspectable";
        let (_, reply) = client.call_service(SOURCES, at, introspectable, "Introspect", &());
        let xml: String = reply.unwrap().body().deserialize().unwrap();
        let named = |tag: &str| -> Vec<String> {
            let lines = xml.lines().filter_map(|line| line.trim().strip_prefix(tag));
            lines.map(|rest| rest.split('"').next().unwrap().to_string()).collect()
        };
        interfaces.extend(named("<interface name=\""));
        let children = named("<node name=\"");
        leaves += usize::from(children.is_empty());
        paths.extend(children.into_iter().map(|child| format!("{path}/{child}")));
    }
    // Eighteen sources, the factory, a book.
    assert_eq!(leaves, 20, "{interfaces:?}");
    for one in ["SourceManager", "Source", "Source.Writable", "AddressBookFactory", "AddressBook"] {
        assert!(interfaces.contains(&format!("{EDS}.{one}")), "{one}: {interfaces:?}");
    }
}
