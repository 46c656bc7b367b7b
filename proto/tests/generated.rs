//! Checks that the checked-in protobuf code matches its `.proto` file, so that a build needs no generator.
//!
//! After a change of the `.proto` file, `CONCLAVE_GENERATE=1 cargo test -p conclave-proto --test generated` regenerates it.

use std::fs;
use std::path::Path;

use protox::prost::Message;

/// Attribute of the generated clients and servers: a crate that needs the messages alone compiles no transport.
const TRANSPORT: &str = "#[cfg(feature = \"transport\")]";

#[test]
fn the_generated_code_is_that_of_the_proto_file() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let descriptors = protox::compile(["conclave/v1/conclave.proto"], [root.join("proto")]).expect("a valid proto file");
    let fresh = tempfile::tempdir().expect("a folder");
    fs::write(fresh.path().join("conclave_descriptor.bin"), descriptors.encode_to_vec()).expect("a file");
    tonic_prost_build::configure()
        .build_client(true)
        .build_server(true)
        .codec_path("crate::codec::FrameCodec")
        .client_mod_attribute(".", TRANSPORT)
        .server_mod_attribute(".", TRANSPORT)
        .out_dir(fresh.path())
        .emit_rerun_if_changed(false)
        .compile_fds(descriptors)
        .expect("generated code");
    for name in ["conclave.v1.rs", "conclave_descriptor.bin"] {
        let made = fs::read(fresh.path().join(name)).expect("what was generated");
        let kept = root.join("src/generated").join(name);
        if std::env::var_os("CONCLAVE_GENERATE").is_some() {
            fs::write(&kept, &made).expect("the generated code is written");
        }
        let same = fs::read(&kept).is_ok_and(|kept| kept == made);
        assert!(same, "{} is older than the .proto file; see this test's file", kept.display());
    }
}
