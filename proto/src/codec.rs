//! The protobuf codec of tonic, with buffers that fit a round's frames.

use std::marker::PhantomData;

use prost::Message;
use tonic::codec::{BufferSettings, Codec};
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
    type Encoder = <ProstCodec<T, U> as Codec>::Encoder;
    type Decoder = <ProstCodec<T, U> as Codec>::Decoder;

    fn encoder(&mut self) -> Self::Encoder {
        ProstCodec::<T, U>::raw_encoder(BufferSettings::new(BUFFER, YIELD_AT))
    }

    fn decoder(&mut self) -> Self::Decoder {
        ProstCodec::<T, U>::raw_decoder(BufferSettings::new(BUFFER, YIELD_AT))
    }
}
