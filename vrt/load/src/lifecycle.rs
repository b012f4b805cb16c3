//! Code that runs in an image before and after its program: constructors and destructors of all
//! modules.

use std::ops::Range;

use object::elf;

use crate::LoadError;
use crate::elf::Elf;
use crate::layout::Place;
use crate::memory::WORD;

/// Functions of one module, as offsets in the image.
struct Functions {
    init: Option<usize>,
    /// Words with addresses of functions, in the order of execution.
    init_array: Range<usize>,
    fini: Option<usize>,
    fini_array: Range<usize>,
}

/// Functions of all modules.
#[derive(Default)]
pub(crate) struct Lifecycle {
    /// Functions that a program runs before the constructors of its libraries.
    preinit_array: Range<usize>,
    /// Dependencies first.
    modules: Vec<Functions>,
}

impl Lifecycle {
    /// Finds the functions; `order` is the order in which modules are constructed.
    pub(crate) fn new(
        modules: &[Elf],
        places: &[Place],
        order: &[usize],
    ) -> Result<Lifecycle, LoadError> {
        let mut lifecycle = Lifecycle::default();
        for number in order.iter().copied() {
            let (module, place) = (&modules[number], &places[number]);
            let function = |tag| match module.value(tag) {
                None | Some(0) => Ok(None),
                Some(address) => inside(module, place, address, 1).map(|range| Some(range.start)),
            };
            let array = |address, len| match (module.value(address), module.value(len)) {
                (Some(address), Some(len)) if len > 0 => inside(module, place, address, len),
                _ => Ok(0..0),
            };
            lifecycle.modules.push(Functions {
                init: function(elf::DT_INIT)?,
                init_array: array(elf::DT_INIT_ARRAY, elf::DT_INIT_ARRAYSZ)?,
                fini: function(elf::DT_FINI)?,
                fini_array: array(elf::DT_FINI_ARRAY, elf::DT_FINI_ARRAYSZ)?,
            });
            if number == 0 {
                lifecycle.preinit_array = array(elf::DT_PREINIT_ARRAY, elf::DT_PREINIT_ARRAYSZ)?;
            }
        }
        Ok(lifecycle)
    }

    /// Addresses of constructors, in their order.
    ///
    /// # Safety
    /// The image at `base` stays complete as long as the iterator is used.
    pub(crate) unsafe fn constructors(&self, base: usize) -> impl Iterator<Item = usize> + use<'_> {
        let of_modules = self.modules.iter().flat_map(move |functions| {
            let init = functions.init.map(|offset| base + offset);
            // SAFETY: as the caller promises.
            init.into_iter().chain(unsafe { addresses(base, &functions.init_array) })
        });
        // SAFETY: as the caller promises.
        unsafe { addresses(base, &self.preinit_array) }.chain(of_modules)
    }

    /// Addresses of destructors, in their order.
    ///
    /// # Safety
    /// As [`constructors`](Self::constructors).
    pub(crate) unsafe fn destructors(&self, base: usize) -> impl Iterator<Item = usize> + use<'_> {
        self.modules.iter().rev().flat_map(move |functions| {
            // SAFETY: as the caller promises.
            let array = unsafe { addresses(base, &functions.fini_array) }.rev();
            array.chain(functions.fini.map(|offset| base + offset))
        })
    }
}

/// The range of an image that a module names.
fn inside(module: &Elf, place: &Place, address: u64, len: u64) -> Result<Range<usize>, LoadError> {
    let start = place.offset(address);
    let end = usize::try_from(len).ok().and_then(|len| start.checked_add(len));
    match end {
        Some(end) if place.span.start <= start && end <= place.span.end => Ok(start..end),
        _ => Err(module.malformed(format!("there is no constructor at {address:#x}"))),
    }
}

/// The functions of an array, read one by one as they are needed. 0 and -1 stand for none.
///
/// # Safety
/// The image at `base` stays complete as long as the iterator is used.
unsafe fn addresses(
    base: usize,
    array: &Range<usize>,
) -> impl DoubleEndedIterator<Item = usize> + use<> {
    let start = (base + array.start) as *const usize;
    (0..array.len() / WORD)
        // SAFETY: a word of the image's array.
        .map(move |index| unsafe { start.add(index).read_unaligned() })
        .filter(|address| !matches!(*address, 0 | usize::MAX))
}
