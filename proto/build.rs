//! Compiles the wire's `.proto` file in pure Rust, so that nobody has to install `protoc`.

use std::error::Error;
use std::path::PathBuf;

use protox::prost::Message;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=proto");
    let descriptors = protox::compile(["conclave/v1/conclave.proto"], ["proto"])?;
    let out = PathBuf::from(std::env::var("OUT_DIR")?);
    std::fs::write(out.join("conclave_descriptor.bin"), descriptors.encode_to_vec())?;
    tonic_prost_build::configure()
        .build_client(true)
        .build_server(true)
        .codec_path("crate::codec::FrameCodec")
        .compile_fds(descriptors)?;
    Ok(())
}
