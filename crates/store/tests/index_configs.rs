//! Tests of index configurations: their text form, and collections with another configuration than
//! the default or than before.

use crate::book::{Book, NOW_MS, card, outcome_handle, put, sort_positions};
use larder_format::field::{CONTACT_FIELDS, find_contact_field};
use larder_store::{
    BatchChange, ChangeOutcome, CollectionRow, CollectionType, DerivedIndex, Error, FieldIndex,
    IndexConfig, IndexQuery, IndexedOrder, Kind, OperationId, Precondition, Reader, SortPosition,
    Store, StoreOptions, term_encoding as term,
};

fn index_config(text: &str) -> IndexConfig {
    text.parse().unwrap()
}

fn set(name: &str, text: &str) -> BatchChange {
    BatchChange::SetIndexConfig(name.into(), index_config(text))
}

fn create(name: &str, text: &str) -> Vec<BatchChange> {
    vec![BatchChange::CreateCollection(name.into(), Kind::Contact), set(name, text)]
}

/// Returns the index configuration of a collection as text.
fn stored_config(reader: &Reader, name: &str) -> String {
    let collections = reader.collections().list().unwrap();
    let found = collections.iter().find(|collection| collection.name == name).unwrap();
    assert!(
        reader
            .collections()
            .list_index_configs()
            .unwrap()
            .contains(&(found.row, found.index_config.clone()))
    );
    if found.index_config.is_default() { "default".into() } else { found.index_config.to_string() }
}

/// Returns the number of items with this term.
fn count_by_term(reader: &Reader, term: Vec<u8>) -> usize {
    let _transaction = reader.begin_read().unwrap();
    let found = reader.index().look_up(&IndexQuery::Term(term), &[]).unwrap().unwrap();
    let mut items = 0;
    let counted = reader.index().for_each_candidate(&found, 0, false, &mut |_| {
        items += 1;
        true
    });
    assert_eq!(counted.unwrap(), found.len());
    items
}

fn card_with_name(name: &str) -> Vec<u8> {
    term::value(find_contact_field("full_name").unwrap().id, name)
}

fn put_numbered(book: &mut Book, name: &str, count: usize) {
    let puts = (0..count).map(|n| {
        let lines = "TEL:+43 664 123\r\nNOTE:abc\r\n";
        put(
            &book.store,
            name,
            &card(&format!("u{n}"), &format!("Name {n}"), lines),
            Precondition::Any,
        )
    });
    let puts = puts.collect();
    book.apply(puts);
}

#[test]
fn index_configs_have_a_text_form() {
    let check = |text: &str, expect: &str| {
        let read = index_config(text);
        assert_eq!(read.to_string(), expect, "{text:?}");
        assert_eq!(index_config(expect), read);
    };
    check("", "none");
    check("none", "none");
    check("full_name:prefix", "full_name:exact,prefix");
    check("FN:Exact", "full_name:exact,prefix");
    check("tel:suffix,phone", "phone:suffix,phone");
    check("note:sort,substring email:suffix", "email:suffix note:substring,sort");
    check("note:sort none note:prefix", "note:exact,prefix,sort");
    check(
        &format!("rev:sort {}", IndexConfig::default()),
        &index_config("default rev:sort").to_string(),
    );
    assert!(
        index_config("default").is_default() && index_config("default note:substring").is_default()
    );
    assert!(!index_config("default note:prefix").is_default());
    for kind in ["exact", "suffix", "substring", "sort"] {
        for field in CONTACT_FIELDS.iter().filter(|field| field.is_indexed) {
            let text = format!("{}:{kind}", field.name);
            let again = index_config(&text);
            assert_eq!(index_config(&again.to_string()), again, "{text}");
        }
    }
}

/// The stores in use depend on the default: a change of it needs a new version of the rules in
/// `contact`.
#[test]
fn the_default_index_config_is_stable() {
    let text = concat!(
        "file_as:exact,prefix,substring,sort ",
        "full_name:exact,prefix,suffix,substring,sort name:substring ",
        "given_name:exact,prefix,suffix,substring family_name:exact,prefix,suffix,substring ",
        "nickname:exact,prefix,suffix,substring email:exact,prefix,suffix,substring ",
        "phone:exact,prefix,suffix,phone,substring org:exact,prefix,substring org_unit:substring ",
        "office:substring title:substring role:substring manager:substring assistant:substring ",
        "spouse:substring mailer:substring url:substring blog_url:substring caluri:substring ",
        "fburl:substring icscalendar:substring video_url:substring note:substring ",
        "categories:exact,prefix,substring birth_date:substring anniversary:substring geo:substring ",
        "other_date:substring related:substring social_profile:substring custom_label:substring ",
        "related_type:substring ",
        "address:substring address_label:substring im:substring list:substring member:substring ",
        "wants_html:substring",
    );
    assert_eq!(IndexConfig::default().to_string(), text);
    let sorted: Vec<_> =
        IndexConfig::default().fields_with_index(FieldIndex::Sort).map(|f| f.name).collect();
    assert_eq!(sorted, ["file_as", "full_name"]);
}

#[test]
fn texts_that_are_no_summaries() {
    let check = |text: &str, expect: &str, hint: &str| {
        let error = text.parse::<IndexConfig>().unwrap_err();
        assert_eq!(error.to_string(), expect);
        assert!(error.hint().contains(hint), "{}", error.hint());
    };
    check("emial:prefix", "unknown field \"emial\"", "did you mean email?");
    check("qqqqqqqqq:prefix", "unknown field \"qqqqqqqqq\"", "larder fields");
    check("mobile:phone", "the field mobile_phone cannot be indexed", "index of phone");
    check("photo:exact", "the field photo cannot be indexed", "larder fields");
    check("title", "no index given for \"title\"", "FIELD:INDEX");
    check("title:prefx", "unknown index \"prefx\" for title", "exact, prefix, suffix, phone");
    check("title:", "unknown index \"\" for title", "FIELD:INDEX");
    check("title:prefix,,sort", "unknown index \"\" for title", "FIELD:INDEX");
    check("title:phone", "title is not a phone field", "phone:phone");
}

#[test]
fn a_collection_has_the_index_it_was_made_with() {
    let mut book = Book::new();
    book.apply(create("work", "phone:phone note:prefix"));
    book.apply(create("bare", "none"));
    put_numbered(&mut book, "work", 3);
    put_numbered(&mut book, "bare", 3);
    put_numbered(&mut book, "contacts", 3);
    book.assert_sound();
    let reader = book.reader();
    assert_eq!(stored_config(&reader, "work"), "phone:phone note:exact,prefix");
    assert_eq!(stored_config(&reader, "bare"), "none");
    assert_eq!(stored_config(&reader, "contacts"), "default");
    let of = |name: &str| find_contact_field(name).unwrap().id;
    assert_eq!(count_by_term(&reader, card_with_name("name 1")), 1);
    assert_eq!(count_by_term(&reader, term::value(of("note"), "abc")), 3);
    assert_eq!(count_by_term(&reader, term::phone(of("phone"), "43664123")), 6);
    assert_eq!(count_by_term(&reader, term::trigram("abc")), 3);
    assert_eq!(count_by_term(&reader, term::presence(of("note"))), 9, "presence is always there");
    // A sort order exists if all requested collections have it.
    let rows: Vec<CollectionRow> =
        reader.collections().list().unwrap().iter().map(|c| c.row).collect();
    let [_bare, contacts, work] = rows[..] else { panic!("three: {rows:?}") };
    let place = |collections: Vec<CollectionRow>| {
        let order = IndexedOrder { field: of("full_name"), collections, backwards: false };
        let places = sort_positions(&reader, &order, None, 9).map(|places| places.len());
        assert_eq!(
            places.is_some(),
            reader
                .index()
                .rank(&order, &SortPosition { key: Vec::new(), row: 0 })
                .unwrap()
                .is_some()
        );
        places
    };
    assert_eq!(place(vec![contacts]), Some(3));
    assert_eq!((place(vec![work]), place(vec![contacts, work])), (None, None));
    assert_eq!(
        **book
            .store
            .extractor_for_collection("work", CollectionType::AddressBook)
            .unwrap()
            .index_config(),
        index_config("phone:phone note:prefix")
    );
    assert!(
        book.store
            .extractor_for_collection("none such", CollectionType::AddressBook)
            .unwrap()
            .index_config()
            .is_default()
    );
    // Edits and removals use the configuration of the collection, too.
    let outcome = book.put_into("work", &card("u1", "Edited", "NOTE:xyz\r\n")).1;
    book.put_into("bare", &card("u1", "Edited", ""));
    book.assert_sound();
    book.remove(outcome_handle(&outcome));
    book.assert_sound();
    assert_eq!(book.store.rebuild_and_check().unwrap().faults, []);
}

#[test]
fn indexed_otherwise_in_steps() {
    let mut book = Book::new();
    put_numbered(&mut book, "contacts", 30);
    put_numbered(&mut book, "work", 5);
    let usable = |book: &Book| {
        [DerivedIndex::Text, DerivedIndex::Sort]
            .map(|set| book.store.is_index_current(set).unwrap())
    };
    // Only the indexes that change are refilled; none if there are no items.
    book.apply(vec![set("contacts", "default note:sort")]);
    assert_eq!(usable(&book), [true, false]);
    book.store.refresh().unwrap();
    book.apply(vec![set("contacts", "note:sort")]);
    assert_eq!(usable(&book), [false, false]);
    book.store.refresh().unwrap();
    book.apply(vec![set("contacts", "note:sort,suffix")]);
    assert_eq!(usable(&book), [false, true]);
    book.store.refresh().unwrap();
    book.apply(create("new", "phone:phone"));
    let (_, again) = book.apply(vec![set("new", "phone:phone")]);
    assert_eq!((again.outcomes, usable(&book)), (vec![ChangeOutcome::Done], [true, true]));
    assert_eq!(again.seq, book.store.last_seq().unwrap(), "nothing was written");
    book.assert_sound();
    // In steps, with writes in between, and with another configuration in the middle.
    book.apply(vec![set("contacts", "full_name:prefix,sort")]);
    assert!(
        book.reader()
            .index()
            .look_up(&IndexQuery::Term(card_with_name("name 1")), &[])
            .unwrap()
            .is_none()
    );
    let mut steps = 0;
    while book.store.refresh_step(4).unwrap().is_some() {
        steps += 1;
        book.put(&card(&format!("u{steps}"), "Edited", ""));
        book.put_into("work", &card(&format!("new{steps}"), "New", ""));
        if steps == 5 {
            book.apply(vec![set("contacts", "default"), set("work", "full_name:prefix")]);
        }
    }
    assert!(steps > 10, "{steps} steps");
    book.assert_sound();
    assert_eq!(book.store.rebuild_and_check().unwrap().faults, []);
}

/// A rebuild that was interrupted is continued by the next one.
#[test]
fn a_rebuild_killed_between_steps_is_continued() {
    for done in 0..8 {
        let mut book = Book::new();
        put_numbered(&mut book, "contacts", 20);
        book.apply(vec![set("contacts", "full_name:suffix note:sort")]);
        for _ in 0..done {
            book.store.refresh_step(5).unwrap();
        }
        let book = book.reopen(&StoreOptions::default());
        assert!(book.store.is_index_current(DerivedIndex::Text).unwrap());
        assert!(book.store.is_index_current(DerivedIndex::Sort).unwrap());
        book.assert_sound();
    }
}

/// A change of the configuration within a batch, with items before and after it.
#[test]
fn in_one_batch_with_items() {
    let mut book = Book::new();
    put_numbered(&mut book, "contacts", 3);
    let one = |book: &Book, uid: &str| {
        put(&book.store, "contacts", &card(uid, "New", ""), Precondition::Any)
    };
    let batch = vec![
        one(&book, "u1"),
        one(&book, "a"),
        set("contacts", "full_name:sort"),
        one(&book, "u2"),
        one(&book, "b"),
    ];
    book.apply(batch);
    book.store.refresh().unwrap();
    book.assert_sound();
    let batch = vec![
        set("contacts", "full_name:sort,prefix"),
        one(&book, "c"),
        set("contacts", "full_name:sort,suffix"),
    ];
    book.apply(batch);
    book.put(&card("u1", "Edited", ""));
    book.store.refresh().unwrap();
    book.assert_sound();
    let batch = vec![
        BatchChange::CreateCollection("x".into(), Kind::Contact),
        put(&book.store, "x", &card("a", "A", ""), Precondition::Any),
        set("x", "none"),
    ];
    book.apply(batch);
    book.store.refresh().unwrap();
    book.assert_sound();
}

fn undo(book: &mut Book, id: OperationId) -> OperationId {
    let by = book.store.undo(id, NOW_MS).unwrap().operation.unwrap();
    book.store.refresh().unwrap();
    book.assert_sound();
    by
}

#[test]
fn a_summary_comes_back() {
    let mut book = Book::new();
    put_numbered(&mut book, "contacts", 3);
    let (first, _) = book.apply(vec![set("contacts", "full_name:prefix")]);
    let by = undo(&mut book, first);
    assert_eq!(stored_config(&book.reader(), "contacts"), "default");
    undo(&mut book, by);
    assert_eq!(stored_config(&book.reader(), "contacts"), "full_name:exact,prefix");
    // A later rename is no conflict, another configuration is.
    let (second, _) = book.apply(vec![set("contacts", "note:sort")]);
    let (rename, _) =
        book.apply(vec![BatchChange::RenameCollection("contacts".into(), "people".into())]);
    undo(&mut book, second);
    assert_eq!(stored_config(&book.reader(), "people"), "full_name:exact,prefix");
    let (third, _) = book.apply(vec![set("people", "note:sort")]);
    book.apply(vec![set("people", "none")]);
    let refused = book.store.undo(third, NOW_MS);
    assert!(matches!(refused, Err(Error::CollectionChanged { .. })), "{refused:?}");
    undo(&mut book, rename);
    assert_eq!(stored_config(&book.reader(), "contacts"), "none");
    // A change that was reverted by hand is no conflict, either.
    book.apply(vec![set("contacts", "note:sort")]);
    let (all, _) = book.apply(vec![
        set("contacts", "default"),
        BatchChange::RenameCollection("contacts".into(), "b".into()),
    ]);
    undo(&mut book, all);
    assert_eq!(stored_config(&book.reader(), "contacts"), "note:sort");
}

#[test]
fn a_removed_collection_keeps_its_summary() {
    let mut book = Book::new();
    let (made, _) = book.apply(create("work", "full_name:prefix"));
    let by = undo(&mut book, made);
    undo(&mut book, by);
    assert_eq!(stored_config(&book.reader(), "work"), "full_name:exact,prefix");
    let outcome = book.put_into("work", &card("a", "Anna", "")).1;
    let id = book.batches(vec![
        vec![BatchChange::Remove(outcome_handle(&outcome), Precondition::Any)],
        vec![BatchChange::RemoveCollection("work".into())],
    ]);
    undo(&mut book, id);
    assert_eq!(stored_config(&book.reader(), "work"), "full_name:exact,prefix");
    assert_eq!(count_by_term(&book.reader(), card_with_name("anna")), 1);
    book.remove(outcome_handle(&outcome));
    book.apply(vec![BatchChange::RemoveCollection("work".into())]);
    // Created again, it has the new configuration; restored by a put, the former one.
    book.put_into("work", &card("b", "Berta", ""));
    assert_eq!(stored_config(&book.reader(), "work"), "full_name:exact,prefix");
    book.assert_sound();
    let missing = book
        .store
        .apply(&mut larder_store::Operation::new("index", "", NOW_MS), vec![set("no", "none")]);
    assert!(matches!(missing, Err(Error::NoCollection { .. })), "{missing:?}");
}

#[test]
fn a_backup_has_the_summaries() {
    let mut book = Book::new();
    book.apply(create("work", "full_name:prefix"));
    put_numbered(&mut book, "work", 3);
    let copy = book.sibling_path("copy.db");
    book.store.backup(&copy).unwrap();
    book.apply(vec![set("work", "none")]);
    book.store.restore(&copy).unwrap();
    assert_eq!(stored_config(&book.reader(), "work"), "full_name:exact,prefix");
    book.assert_sound();
}

/// One process has extracted items for the index when another sets a new configuration and begins
/// again, so that the rebuild is at the same position as before.
#[test]
fn another_summary_while_a_step_is_under_way() {
    let mut book = Book::new();
    put_numbered(&mut book, "contacts", 400);
    let dir = book.dir();
    let (go, began) = std::sync::mpsc::channel();
    let (done, ended) = std::sync::mpsc::channel();
    let (next, wait) = std::sync::mpsc::channel::<()>();
    let filling = std::thread::spawn(move || {
        let mut store = Store::open(&dir, &StoreOptions::default()).unwrap();
        while wait.recv().is_ok() {
            go.send(()).unwrap();
            store.refresh_step(400).unwrap();
            done.send(()).unwrap();
        }
    });
    for _ in 0..3 {
        book.apply(vec![set("contacts", "full_name:prefix,sort note:prefix")]);
        book.store.refresh_step(1).unwrap();
        next.send(()).unwrap();
        began.recv().unwrap();
        book.apply(vec![set("contacts", "full_name:suffix,sort note:suffix")]);
        book.store.refresh_step(1).unwrap();
        ended.recv().unwrap();
        book.store.refresh().unwrap();
        book.assert_sound();
    }
    drop(next);
    filling.join().unwrap();
}
