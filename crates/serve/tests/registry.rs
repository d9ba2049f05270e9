//! The registry of sources: what there is, made, changed and removed, by clients and by others.

use crate::bus::{BOOKS, Bus, EDS, FACTORY, MANAGER, SOURCES, shown};
use larder_store::{BatchChange, Kind, Operation};
use std::collections::BTreeMap;
use zbus::{OwnedObjectPath, OwnedVariant};

type Objects =
    std::collections::HashMap<OwnedObjectPath, BTreeMap<String, BTreeMap<String, OwnedVariant>>>;

/// UIDs and interfaces of all objects.
fn objects(client: &crate::bus::Client) -> BTreeMap<String, (String, Vec<String>)> {
    let interface = "org.freedesktop.DBus.ObjectManager";
    let (_, reply) = client.ask(SOURCES, MANAGER, interface, "GetManagedObjects", &());
    let objects: Objects = reply.unwrap().body().deserialize().unwrap();
    let of =
        |(path, interfaces): (OwnedObjectPath, BTreeMap<String, BTreeMap<_, OwnedVariant>>)| {
            let uid = &interfaces[&format!("{EDS}.Source")]["UID"];
            let uid: String = uid.try_clone().unwrap().try_into().unwrap();
            (uid, (path.to_string(), interfaces.into_keys().collect()))
        };
    objects.into_iter().map(of).collect()
}

#[test]
fn sources_come_and_go() {
    let Some(bus) = Bus::new("sources_come_and_go") else { return };
    let _service = bus.serve(bus.options());
    let client = bus.client();
    let there = objects(&client);
    assert_eq!(there.len(), 18);
    let (_, interfaces) = &there["system-address-book"];
    assert_eq!(*interfaces, [format!("{EDS}.Source"), format!("{EDS}.Source.Writable")]);
    assert_eq!(there["local-stub"].1, [format!("{EDS}.Source")]);

    let text = "[Data Source]\nDisplayName=Friends\n\n[Address Book]\nBackendName=local\n";
    let interface = format!("{EDS}.SourceManager");
    let body = BTreeMap::from([("friends", text)]);
    let (before, made) = client.ask(SOURCES, MANAGER, &interface, "CreateSources", &body);
    made.unwrap();
    assert_eq!(shown(&before), ["InterfacesAdded"]);
    let (path, interfaces) = objects(&client).remove("friends").unwrap();
    assert_eq!(interfaces.len(), 3);

    let changed = text.replace("Friends", "Foes");
    let (before, _) =
        client.ask(SOURCES, &path, &format!("{EDS}.Source.Writable"), "Write", &changed);
    assert_eq!(shown(&before), ["PropertiesChanged Data"]);
    let properties = "org.freedesktop.DBus.Properties";
    let asked = (format!("{EDS}.Source"), "Data");
    let (_, data) = client.ask(SOURCES, &path, properties, "Get", &asked);
    let data: OwnedVariant = data.unwrap().body().deserialize().unwrap();
    assert_eq!(String::try_from(data).unwrap(), changed);

    let book = client.open("friends");
    client.add(&book, &[&crate::bus::card("a", "Anna")]).unwrap();
    let (before, removed) =
        client.ask(SOURCES, &path, &format!("{EDS}.Source.Removable"), "Remove", &());
    removed.unwrap();
    assert_eq!(shown(&before).last().unwrap(), "InterfacesRemoved");
    assert!(!objects(&client).contains_key("friends"));
    assert!(client.get(&book, "a").is_err_and(|refused| refused.name.ends_with("UnknownObject")));
}

/// A collection that another program makes or removes is a source that comes or goes; what lies in
/// it already is in the book.
#[test]
fn collections_of_others_are_sources() {
    let Some(bus) = Bus::new("collections_of_others_are_sources") else { return };
    let _service = bus.serve(bus.options());
    let client = bus.client();
    objects(&client);
    let mut store = bus.store();
    let mut apply = |change| {
        store.apply(&mut Operation::new("collections", "", 0), vec![change]).unwrap();
    };
    apply(BatchChange::CreateCollection("Work \\ life".into(), Kind::Contact));
    apply(BatchChange::CreateCollection("Calendar".into(), Kind::Event));
    let there = objects(&client);
    assert_eq!(there.len(), 19);
    assert!(there.contains_key("Work \\ life"), "{there:?}");
    client.open("Work \\ life");
    apply(BatchChange::RemoveCollection("Work \\ life".into()));
    assert_eq!(objects(&client).len(), 18);
    // The one that is always there is a collection of its own name.
    apply(BatchChange::CreateCollection("contacts".into(), Kind::Contact));
    assert_eq!(objects(&client).len(), 18);
    client.open("system-address-book");
}

#[test]
fn what_the_registry_refuses() {
    let Some(bus) = Bus::new("what_the_registry_refuses") else { return };
    let _service = bus.serve(bus.options());
    let client = bus.client();
    let check = |uid: &str, text: &str, code: &str| {
        let sources = BTreeMap::from([(uid, text)]);
        let refused = client.call(MANAGER, "SourceManager", "CreateSources", &sources).unwrap_err();
        assert!(refused.name.ends_with(code), "{uid}: {refused:?}");
    };
    let book = "[Data Source]\nDisplayName=x\n\n[Address Book]\n";
    let (io, key_file) = ("g_2dio_2derror_2dquark.Code", "g_2dkey_2dfile_2derror_2dquark.Code");
    check("a", "garbage", &format!("{key_file}1"));
    check("a", "[X]\nY=1\n", &format!("{key_file}4"));
    check("a", "[Data Source]\nDisplayName=x\n\n[Calendar]\n", &format!("{io}15"));
    check("system-calendar", book, &format!("{io}2"));
    check("contacts", book, &format!("{io}2"));
    check("../escape", book, &format!("{io}13"));
    check("", book, &format!("{io}13"));
    check(&"long".repeat(100), book, &format!("{io}13"));
    // One that is wrong, and none is made.
    let two = BTreeMap::from([("good", book), ("zzz", "garbage")]);
    assert!(client.call(MANAGER, "SourceManager", "CreateSources", &two).is_err());
    assert_eq!(objects(&client).len(), 18);
    let refused = client.call(FACTORY, "AddressBookFactory", "OpenAddressBook", &"good");
    assert!(refused.unwrap_err().name.ends_with(&format!("{io}1")));
    let refused = client.call(FACTORY, "AddressBookFactory", "OpenAddressBook", &"system-calendar");
    assert!(refused.unwrap_err().name.ends_with(&format!("{io}15")));
}

/// Calls that no object takes.
#[test]
fn calls_that_go_nowhere() {
    let Some(bus) = Bus::new("calls_that_go_nowhere") else { return };
    let _service = bus.serve(bus.options());
    let client = bus.client();
    let check = |path: &str, interface: &str, method: &str, error: &str| {
        let (_, reply) = client.ask(BOOKS, path, interface, method, &());
        let name = reply.map(|_| String::new()).unwrap_or_else(|refused| refused.name);
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
            client.ask(SOURCES, &path, "org.freedesktop.DBus.Properties", "Set", &body);
        reply.map(drop).map_err(|refused| refused.name)
    };
    assert_eq!(set("ConnectionStatus"), Ok(()));
    assert_eq!(set("UID"), Err("org.freedesktop.DBus.Error.PropertyReadOnly".into()));
    assert_eq!(set("Colour"), Err("org.freedesktop.DBus.Error.UnknownProperty".into()));
}

/// What introspection says leads from the root to every object, and names its methods.
#[test]
fn introspection_leads_everywhere() {
    let Some(bus) = Bus::new("introspection_leads_everywhere") else { return };
    let _service = bus.serve(bus.options());
    let client = bus.client();
    client.open("system-address-book");
    let (mut paths, mut interfaces) = (vec![String::new()], std::collections::BTreeSet::new());
    let mut leaves = 0;
    while let Some(path) = paths.pop() {
        let at = if path.is_empty() { "/" } else { &path };
        let introspectable = "org.freedesktop.DBus.Introspectable";
        let (_, reply) = client.ask(SOURCES, at, introspectable, "Introspect", &());
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
