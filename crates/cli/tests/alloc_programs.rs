//! The recording of programs that go their own ways: they run as they do unrecorded.

use crate::alloc_log::{compile, record};
use crate::test_home::{Home, left_out};

/// A library with operators of its own, which other libraries see first, or not, and a program with
/// some. Operators that it has not replaced call its own.
#[test]
fn a_program_keeps_its_operators() {
    let home = Home::new();
    let test = "a_program_keeps_its_operators";
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/pool.cpp");
    let library = home.work("libpool.so");
    let library = library.to_str().unwrap();
    let shared = ["-shared", "-fPIC"];
    for options in [&[][..], &["-Wl,-Bsymbolic-functions"], &["-Wl,-Bsymbolic"], &["static"]] {
        let linked = if options == ["static"] {
            source
        } else {
            let options = [&shared, options].concat();
            let Some(pool) = compile(&home, "pool.cpp", "g++", &options) else {
                return left_out(test, "no g++");
            };
            std::fs::rename(pool, library).unwrap();
            library
        };
        let Some(program) = compile(&home, "pool_user.cpp", "g++", &[linked]) else {
            return left_out(test, "no g++");
        };
        let analysis = record(&home, &program.display().to_string());
        assert_eq!(analysis["calls_by_function"]["calloc"], 1, "{options:?}");
        assert!(analysis["calls_by_function"]["operator new"].is_null(), "{options:?}");
        assert_eq!(analysis["end"]["anomalies"], 0, "{options:?}");
    }
}

/// An operator that fails asks the new-handler, also one that throws nothing.
#[test]
fn operators_call_the_new_handler() {
    let home = Home::new();
    let Some(program) = compile(&home, "new_handler.cpp", "g++", &["-std=c++17"]) else {
        return left_out("operators_call_the_new_handler", "no g++");
    };
    record(&home, &program.display().to_string());
}
