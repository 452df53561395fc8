//! The drawing as PNG: the SVG, rendered by resvg with the font that comes along, so that it
//! looks the same on a machine without fonts.

use std::sync::{Arc, LazyLock};

use anyhow::{Context, Result, bail};
use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::{self, fontdb};

use super::Panel;
use super::layout::WIDTH;

/// Most pixels along a side.
const LARGEST: u32 = 16_384;

static FONTS: LazyLock<Arc<fontdb::Database>> = LazyLock::new(|| {
    let mut fonts = fontdb::Database::new();
    fonts.load_font_data(dejavu::sans::regular().to_vec());
    fonts.load_font_data(dejavu::sans::bold().to_vec());
    fonts.set_sans_serif_family("DejaVu Sans");
    Arc::new(fonts)
});

impl Panel {
    /// The drawing as a PNG of `width` × `height` pixels, on white. The plot takes the height
    /// that title, labels and legend leave; if they leave too little, all is drawn smaller,
    /// in the middle. Twice [`Self::size`] looks good.
    ///
    /// # Errors
    /// A side of zero or of more than 16,384 pixels.
    pub fn png(&self, width: u32, height: u32) -> Result<Vec<u8>> {
        if !(1..=LARGEST).contains(&width) || !(1..=LARGEST).contains(&height) {
            bail!("a picture of {width} × {height} pixels: sides must be 1 to {LARGEST}");
        }
        let zoom = f64::from(width) / WIDTH;
        let (svg, tall) = self.svg_of(Some(f64::from(height) / zoom));
        let options = usvg::Options {
            font_family: "DejaVu Sans".to_string(),
            fontdb: Arc::clone(&FONTS),
            ..usvg::Options::default()
        };
        let tree = usvg::Tree::from_str(&svg, &options).context("reading our own drawing")?;
        let mut pixels = Pixmap::new(width, height).context("no memory for the picture")?;
        pixels.fill(Color::WHITE);
        let zoom = zoom.min(f64::from(height) / tall);
        let (dx, dy) = (f64::from(width) - WIDTH * zoom, f64::from(height) - tall * zoom);
        let place = Transform::from_translate(dx as f32 / 2.0, dy as f32 / 2.0)
            .pre_scale(zoom as f32, zoom as f32);
        resvg::render(&tree, place, &mut pixels.as_mut());
        pixels.encode_png().context("encoding the picture")
    }
}
