//! Both copies of the superblock, and what maintenance has left to do, in words.

use super::text_lines::{Hex, Text};
use holdall::frag::{Action, FragReport};
use holdall::inspect::{Superblock, SuperblockCopy, Superblocks};

/// Both copies of the superblock.
pub fn superblocks(found: &Superblocks) -> String {
    let mut text = Text::default();
    text.line(0, format_args!("volume of {} bytes", found.volume_bytes));
    for (slot, (at, copy)) in found.copies.iter().enumerate() {
        let mut head = |what: &str| text.line(0, format_args!("copy {slot} at byte {at}: {what}"));
        let bytes = match copy {
            SuperblockCopy::Whole(sb, features) => {
                head(&format!("number {}", sb.sequence));
                whole(&mut text, sb, *features);
                continue;
            }
            SuperblockCopy::Refused(e, bytes) => {
                head(&e.to_string());
                bytes
            }
            SuperblockCopy::Torn(bytes) => {
                head("damaged: its checksum is wrong");
                bytes
            }
            SuperblockCopy::Other(bytes) => {
                head("damaged: it does not begin as one");
                bytes
            }
            // The file ends before it; a newer engine may know more.
            _ => {
                head("beyond the end of the file");
                continue;
            }
        };
        text.hex(1, bytes, 256);
    }
    text.finish()
}

fn whole(text: &mut Text, sb: &Superblock, features: u64) {
    text.line(1, format_args!("store id {}, incarnation {}", Hex(&sb.store_id), sb.incarnation));
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

/// Both copies of the superblock, the holes of the file, and what maintenance has left to do.
pub fn volume(found: &Superblocks, report: &FragReport) -> String {
    let (g, how) = (&report.geometry, report.geometry.holes_assumed);
    let how = if how { ", by the blocks that the file takes" } else { "" };
    let mut text = superblocks(found);
    text += &format!("holes of the file: {} pages of {} free{how}\n", g.hole_pages, g.free_pages);
    for remedy in &report.remedies {
        let (gain, pieces, cost) = (remedy.gain_bytes, remedy.gain_pieces, remedy.cost_bytes);
        let what = match remedy.action {
            Action::JoinPieces => format!("{pieces} pieces to be joined"),
            Action::EmptyHeapPages => format!("heap pages of {gain} bytes to be emptied"),
            Action::CloseOldestReader => format!("{gain} bytes that the oldest reader keeps"),
            // To be compacted; a newer engine may know more.
            _ => format!("{gain} bytes to be given back"),
        };
        text += &format!("left to do: {what}, {cost} bytes to be moved\n");
    }
    if report.remedies.is_empty() {
        text += "left to do: nothing\n";
    }
    text
}
