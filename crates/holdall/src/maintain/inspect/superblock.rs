//! Both copies of the superblock.

use super::text::{Hex, Text};
use holdall_core::superblock::{MAGIC, SLOT_AT, SLOT_BYTES, Superblock};
use holdall_core::{Error, Result};
use holdall_io::Disk;

pub(super) fn dump(disk: &dyn Disk) -> Result<String> {
    let mut text = Text::default();
    let length = disk.len().map_err(|e| Error::io("reading the volume's length", e))?;
    text.line(0, format_args!("volume of {length} bytes"));
    for (slot, at) in SLOT_AT.into_iter().enumerate() {
        if at + SLOT_BYTES as u64 > length {
            text.line(0, format_args!("copy {slot} at byte {at}: beyond the end of the file"));
            continue;
        }
        let mut bytes = vec![0; SLOT_BYTES];
        disk.read_at(at, &mut bytes)
            .map_err(|e| Error::io(format!("reading the superblock at {at}"), e))?;
        match Superblock::decode(&bytes) {
            Ok(Some(sb)) => {
                text.line(0, format_args!("copy {slot} at byte {at}: number {}", sb.sequence));
                show(&mut text, &sb, &bytes);
            }
            other => {
                let why = match other {
                    Err(e) => e.to_string(),
                    _ if bytes.starts_with(&MAGIC) => "damaged: its checksum is wrong".into(),
                    _ => "damaged: it does not begin as one".into(),
                };
                text.line(0, format_args!("copy {slot} at byte {at}: {why}"));
                text.hex(1, &bytes, 256);
            }
        }
    }
    Ok(text.finish())
}

fn show(text: &mut Text, sb: &Superblock, bytes: &[u8]) {
    text.line(1, format_args!("store id {}, incarnation {}", Hex(&sb.store_id), sb.incarnation));
    let features = Superblock::compatible_features(bytes);
    text.line(1, format_args!("epoch {}, compatible features {features:#x}", sb.epoch));
    text.line(1, format_args!("page size {}, pages of a space {}", sb.page_size, sb.space_pages));
    text.line(1, format_args!("pages of the volume {}, spaces {}", sb.volume_pages, sb.spaces));
    text.line(1, format_args!("root page {}", sb.root));
    text.line(1, format_args!("replay from LSN {}, in place up to LSN {}", sb.replay, sb.in_place));
    let required = if sb.log_required { "required" } else { "not required" };
    text.line(1, format_args!("log of {} bytes, {required}", sb.log_bytes));
    if sb.holes {
        text.line(1, format_args!("free runs may be holes of the file"));
    }
    text.line(1, format_args!("OID numbers given out below {}", sb.unique_ceiling));
}
