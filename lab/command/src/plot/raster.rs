//! A plot as PNG: the SVG document, drawn with the fonts of the machine.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

/// What makes a PNG of an SVG document.
pub(super) struct Raster {
    options: Options<'static>,
}

impl Raster {
    /// With the fonts of the machine.
    ///
    /// # Errors
    /// There are none.
    pub(super) fn new() -> Result<Self, String> {
        let mut options = Options::default();
        let fonts = options.fontdb_mut();
        fonts.load_system_fonts();
        let families: Vec<String> =
            fonts.faces().filter_map(|face| face.families.first()).map(|(name, _)| name.clone()).collect();
        let is_plain = |name: &&String| name.contains("Sans") && !name.contains("Mono");
        let Some(family) = families.iter().find(is_plain).or(families.first()) else {
            return Err("no fonts for a PNG (install fonts-dejavu-core, or name the file .svg)".into());
        };
        fonts.set_sans_serif_family(family);
        Ok(Self { options })
    }

    /// The PNG of `svg`.
    pub(super) fn draw(&self, svg: &str) -> Result<Vec<u8>, String> {
        let tree = Tree::from_str(svg, &self.options).map_err(|error| error.to_string())?;
        let size = tree.size().to_int_size();
        let mut pixels = Pixmap::new(size.width(), size.height()).ok_or("the picture has no size")?;
        resvg::render(&tree, Transform::default(), &mut pixels.as_mut());
        pixels.encode_png().map_err(|error| error.to_string())
    }
}
