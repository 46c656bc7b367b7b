//! Parameter names encoded as Zarr node names: any text becomes a safe, unique folder name. All programs that write, fetch or
//! check draws share this encoding.

/// Names with another meaning inside a Zarr group.
const RESERVED: [&str; 3] = ["zarr.json", "chain", "draw"];
const MAX_LENGTH: usize = 120;

/// Returns the folder name of the `index`-th array, called `name`.
///
/// Characters outside `A-Za-z0-9_.-[]` are percent-encoded. So is the first character of a name that would be hidden,
/// reserved (Zarr v3 core, "Node names", reserves a leading `__`) or equal to a coordinate's. A name too long for a
/// file system is truncated and distinguished by its index.
#[must_use]
pub fn encode(name: &str, index: usize) -> String {
    let mut out = String::with_capacity(name.len());
    let first_unsafe = RESERVED.contains(&name) || name.starts_with('.') || name.starts_with("__");
    for (i, byte) in name.bytes().enumerate() {
        let plain = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-' | b'[' | b']');
        if plain && !(i == 0 && first_unsafe) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    if out.is_empty() || out.len() > MAX_LENGTH {
        out.truncate(MAX_LENGTH);
        out.push_str(&format!("~{index}"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn safe_and_distinct() {
        assert_eq!(encode("age", 0), "age");
        assert_eq!(encode("prior_visits-2.x", 0), "prior_visits-2.x");
        assert_eq!(encode("ward[b]", 0), "ward[b]");
        assert_eq!(encode("a b/ç", 0), "a%20b%2F%C3%A7");
        assert_eq!(encode("..", 0), "%2E.");
        assert_eq!(encode(".tmp", 0), "%2Etmp");
        assert_eq!(encode("zarr.json", 0), "%7Aarr.json");
        assert_eq!(encode("chain", 0), "%63hain");
        assert_eq!(encode("__x", 0), "%5F_x");
        assert_eq!(encode("", 3), "~3");
        assert_eq!(encode("100%", 0), "100%25");
        let long = "x".repeat(400);
        assert!(encode(&long, 1).len() < 130);
        assert_ne!(encode(&long, 1), encode(&long, 2));
    }
}
