//! Checksums: CRC-32C, chosen because processors compute it (docs/design.md).

/// CRC-32C (Castagnoli) of `bytes`.
pub fn crc(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes)
}

/// Continues a CRC-32C with more bytes.
pub fn crc_append(crc: u32, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc, bytes)
}
