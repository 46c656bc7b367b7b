//! The protobuf codec of tonic, with buffers that fit a round's frames.

use std::marker::PhantomData;

use prost::Message;
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, EncodeBuf, Encoder};
use tonic_prost::ProstCodec;

/// What a stream's buffer begins with, each way; it grows with what it has to hold. A coordinator has two for each of its parties, and a
/// round of a few chains is some hundred bytes. tonic's own begin with 8 KiB.
const BUFFER: usize = 1 << 10;
/// Frames that are ready leave together, up to so many bytes: tonic's own default.
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

/// Encodes into just the room that a frame needs: a buffer that grew by doubling would keep what a long frame left over, and with it the
/// frame's memory, for as long as short ones fit into the rest.
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
