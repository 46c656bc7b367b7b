//! tonic's protobuf codec with buffers sized for the frames of a round.

use std::marker::PhantomData;

use prost::Message;
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, EncodeBuf, Encoder};
use tonic_prost::ProstCodec;

/// Initial size of a stream's buffer in each direction; it grows as needed. A coordinator has two for each party, and a
/// round of a few chains takes a few hundred bytes. tonic starts with 8 KiB.
const BUFFER: usize = 1 << 10;
/// Ready frames are sent together up to this number of bytes, which is tonic's default.
const YIELD_AT: usize = 32 << 10;

/// Encodes `T`, decodes `U`.
pub struct FrameCodec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for FrameCodec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> Codec for FrameCodec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = FrameEncoder<T>;
    type Decoder = <ProstCodec<T, U> as Codec>::Decoder;

    fn encoder(&mut self) -> Self::Encoder {
        FrameEncoder(PhantomData)
    }

    fn decoder(&mut self) -> Self::Decoder {
        ProstCodec::<T, U>::raw_decoder(BufferSettings::new(BUFFER, YIELD_AT))
    }
}

/// Encodes each frame into exactly the space it needs. A buffer grown by doubling would keep the spare room after a long
/// frame, and with it the frame's memory, for as long as short frames fit into the rest.
pub struct FrameEncoder<T>(PhantomData<T>);

impl<T: Message> Encoder for FrameEncoder<T> {
    type Item = T;
    type Error = Status;

    fn encode(&mut self, item: T, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.reserve(item.encoded_len());
        item.encode(buffer).map_err(|e| Status::internal(e.to_string()))
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(BUFFER, YIELD_AT)
    }
}
