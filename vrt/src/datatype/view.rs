//! Buffers seen with another datatype, in parts, or with a type known only when the program runs.

use std::borrow::Borrow;
use std::ffi::c_void;
use std::marker::PhantomData;

use crate::Count;
use crate::datatype::{
    AsDatatype, Buffer, BufferMut, Collection, Datatype, DatatypeRef, Equivalence, Kind,
    OwnedDatatype, Partitioned, PartitionedBuffer, PartitionedBufferMut, Pointer, PointerMut,
    UncommittedDatatype,
};

fn elements(count: Count) -> usize {
    usize::try_from(count).unwrap_or_else(|_| panic!("a buffer of {count} elements"))
}

/// A buffer to send from, with another datatype and count.
///
/// # Examples
///
/// ```
/// use vrt::datatype::{UserDatatype, View};
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let other = world.process_at_rank(1 - world.rank());
///     let every_other = UserDatatype::vector(3, 1, 2, &u8::equivalent_datatype());
///     // SAFETY: the elements 0, 2 and 4 lie in the array.
///     other.send(&unsafe { View::with_count_and_datatype(b"abcde", 1, &every_other) });
///     assert_eq!(other.receive_vec::<u8>().0, b"ace");
/// });
/// ```
#[derive(Debug)]
pub struct View<'d, 'b, D: 'd + Datatype, B: 'b + Pointer + ?Sized> {
    datatype: &'d D,
    count: Count,
    buffer: &'b B,
}

impl<'d, 'b, D: 'd + Datatype, B: 'b + Pointer + ?Sized> View<'d, 'b, D, B> {
    /// The view of a buffer as `count` elements of a datatype.
    ///
    /// # Safety
    /// Those elements lie in the buffer.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::{UserDatatype, View};
    /// use vrt::traits::*;
    ///
    /// let numbers = [1u8, 2, 3, 4];
    /// let pair = UserDatatype::contiguous(2, &u8::equivalent_datatype());
    /// // SAFETY: two pairs lie in the array.
    /// let view = unsafe { View::with_count_and_datatype(&numbers, 2, &pair) };
    /// assert_eq!(view.count(), 2);
    /// ```
    pub unsafe fn with_count_and_datatype(buffer: &'b B, count: Count, datatype: &'d D) -> Self {
        View { datatype, count, buffer }
    }
}

/// A buffer to receive into, with another datatype and count.
///
/// # Examples
///
/// ```
/// use vrt::datatype::{MutView, UserDatatype};
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let other = world.process_at_rank(1 - world.rank());
///     other.send(b"ace");
///     let every_other = UserDatatype::vector(3, 1, 2, &u8::equivalent_datatype());
///     let mut bytes = *b".....";
///     // SAFETY: the elements 0, 2 and 4 lie in the array.
///     let mut view = unsafe { MutView::with_count_and_datatype(&mut bytes, 1, &every_other) };
///     other.receive_into(&mut view);
///     assert_eq!(&bytes, b"a.c.e");
/// });
/// ```
#[derive(Debug)]
pub struct MutView<'d, 'b, D: 'd + Datatype, B: 'b + PointerMut + ?Sized> {
    datatype: &'d D,
    count: Count,
    buffer: &'b mut B,
}

impl<'d, 'b, D: 'd + Datatype, B: 'b + PointerMut + ?Sized> MutView<'d, 'b, D, B> {
    /// The view of a buffer as `count` elements of a datatype.
    ///
    /// # Safety
    /// Those elements lie in the buffer, and what is sent to them makes valid values.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::{MutView, UserDatatype};
    /// use vrt::traits::*;
    ///
    /// let mut numbers = [1u8, 2, 3, 4];
    /// let pair = UserDatatype::contiguous(2, &u8::equivalent_datatype());
    /// // SAFETY: two pairs lie in the array, and all bytes are values.
    /// let view = unsafe { MutView::with_count_and_datatype(&mut numbers, 2, &pair) };
    /// assert_eq!(view.count(), 2);
    /// ```
    pub unsafe fn with_count_and_datatype(
        buffer: &'b mut B,
        count: Count,
        datatype: &'d D,
    ) -> Self {
        MutView { datatype, count, buffer }
    }
}

macro_rules! views {
    ($name:ident, $pointer:ident) => {
        // SAFETY: as whoever made the view promised.
        unsafe impl<'d, D: 'd + Datatype, B: $pointer + ?Sized> AsDatatype for $name<'d, '_, D, B> {
            type Out = &'d D;

            fn as_datatype(&self) -> &'d D {
                self.datatype
            }
        }

        // SAFETY: as above.
        unsafe impl<D: Datatype, B: $pointer + ?Sized> Collection for $name<'_, '_, D, B> {
            fn count(&self) -> Count {
                self.count
            }

            fn len_in_elements(&self) -> usize {
                elements(self.count)
            }
        }
    };
}
views!(View, Pointer);
views!(MutView, PointerMut);

// SAFETY: as whoever made the view promised.
unsafe impl<D: Datatype, B: Pointer + ?Sized> Pointer for View<'_, '_, D, B> {
    fn pointer(&self) -> *const c_void {
        self.buffer.pointer()
    }
}

// SAFETY: as above.
unsafe impl<D: Datatype, B: PointerMut + ?Sized> PointerMut for MutView<'_, '_, D, B> {
    fn pointer_mut(&mut self) -> *mut c_void {
        self.buffer.pointer_mut()
    }
}

// SAFETY: as above.
unsafe impl<D: Datatype, B: Pointer + ?Sized> Buffer for View<'_, '_, D, B> {}
// SAFETY: as above.
unsafe impl<D: Datatype, B: PointerMut + ?Sized> BufferMut for MutView<'_, '_, D, B> {}

/// A buffer to send parts of; counts and displacements are in its elements.
///
/// # Examples
///
/// ```
/// use vrt::datatype::{Partition, PartitionMut};
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     // One value for rank 0, two for rank 1.
///     let (values, me) = ([7, 8, 9], world.rank() as usize);
///     let parts = Partition::new(&values, &[1, 2][..], &[0, 1][..]);
///
///     let len = 1 + me as i32;
///     let mut mine = vec![0; 2 * len as usize];
///     let mut room = PartitionMut::new(&mut mine, [len; 2], [0, len]);
///     world.all_to_all_varcount_into(&parts, &mut room);
///     assert_eq!(mine, [&values[me..][..=me]; 2].concat());
/// });
/// ```
#[derive(Debug)]
pub struct Partition<'b, B: 'b + ?Sized, C, D> {
    buf: &'b B,
    counts: Box<[Count]>,
    displs: Box<[Count]>,
    given: PhantomData<(C, D)>,
}

/// A buffer to receive parts of; counts and displacements are in its elements.
///
/// # Examples
///
/// ```
/// use vrt::datatype::PartitionMut;
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let mut all = [-1; 4];
///     let mut places = PartitionMut::new(&mut all, [1, 1], [0, 3]);
///     world.all_gather_varcount_into(&world.rank(), &mut places);
///     assert_eq!(all, [0, -1, -1, 1]);
/// });
/// ```
#[derive(Debug)]
pub struct PartitionMut<'b, B: 'b + ?Sized, C, D> {
    buf: &'b mut B,
    counts: Box<[Count]>,
    displs: Box<[Count]>,
    given: PhantomData<(C, D)>,
}

/// Counts and displacements of parts that lie in a buffer of this length. They are copied: a [`Borrow`] may give other
/// numbers the next time.
#[track_caller]
fn parts_inside(
    len: usize,
    counts: impl Borrow<[Count]>,
    displs: impl Borrow<[Count]>,
) -> (Box<[Count]>, Box<[Count]>) {
    let counts: Box<[Count]> = counts.borrow().into();
    let displs: Box<[Count]> = displs.borrow().into();
    assert!(
        counts.len() == displs.len(),
        "a partition with {} counts and {} displacements",
        counts.len(),
        displs.len()
    );
    for (part, (count, at)) in counts.iter().zip(&displs).enumerate() {
        assert!(
            *count >= 0 && *at >= 0 && *count as usize + *at as usize <= len,
            "part {part}, {count} elements from {at} on, does not lie in a buffer of {len}"
        );
    }
    (counts, displs)
}

impl<'b, B, C, D> Partition<'b, B, C, D>
where
    B: 'b + Buffer + ?Sized,
    C: Borrow<[Count]>,
    D: Borrow<[Count]>,
{
    /// Parts of a buffer.
    ///
    /// # Panics
    /// When a part does not lie in the buffer.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::Partition;
    /// use vrt::traits::*;
    ///
    /// // One element, and the two behind it.
    /// let parts = Partition::new(b"abc", [1, 2], [0, 1]);
    /// assert_eq!(parts.counts(), [1, 2]);
    /// ```
    #[track_caller]
    pub fn new(buf: &'b B, counts: C, displs: D) -> Self {
        let (counts, displs) = parts_inside(buf.len_in_elements(), counts, displs);
        Partition { buf, counts, displs, given: PhantomData }
    }
}

impl<'b, B, C, D> PartitionMut<'b, B, C, D>
where
    B: 'b + BufferMut + ?Sized,
    C: Borrow<[Count]>,
    D: Borrow<[Count]>,
{
    /// Parts of a buffer.
    ///
    /// # Panics
    /// When a part does not lie in the buffer.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::PartitionMut;
    /// use vrt::traits::*;
    ///
    /// let mut room = [0u8; 3];
    /// // One element, and the two behind it.
    /// let parts = PartitionMut::new(&mut room, [1, 2], [0, 1]);
    /// assert_eq!(parts.counts(), [1, 2]);
    /// ```
    #[track_caller]
    pub fn new(buf: &'b mut B, counts: C, displs: D) -> Self {
        let (counts, displs) = parts_inside(buf.len_in_elements(), counts, displs);
        PartitionMut { buf, counts, displs, given: PhantomData }
    }
}

macro_rules! partitions {
    ($name:ident) => {
        // SAFETY: the parts lie in the buffer, whose elements they have.
        unsafe impl<B: AsDatatype + ?Sized, C, D> AsDatatype for $name<'_, B, C, D> {
            type Out = B::Out;

            fn as_datatype(&self) -> B::Out {
                self.buf.as_datatype()
            }
        }

        impl<B: ?Sized, C, D> Partitioned for $name<'_, B, C, D> {
            fn counts(&self) -> &[Count] {
                &self.counts
            }

            fn displs(&self) -> &[Count] {
                &self.displs
            }
        }
    };
}
partitions!(Partition);
partitions!(PartitionMut);

// SAFETY: the buffer's own pointer.
unsafe impl<B: Pointer + ?Sized, C, D> Pointer for Partition<'_, B, C, D> {
    fn pointer(&self) -> *const c_void {
        self.buf.pointer()
    }
}

// SAFETY: the buffer's own pointer.
unsafe impl<B: PointerMut + ?Sized, C, D> PointerMut for PartitionMut<'_, B, C, D> {
    fn pointer_mut(&mut self) -> *mut c_void {
        self.buf.pointer_mut()
    }
}

// SAFETY: `parts_inside` has checked them, and they do not change.
unsafe impl<B, C, D> PartitionedBuffer for Partition<'_, B, C, D> where
    B: Pointer + AsDatatype + ?Sized
{
}

// SAFETY: as above.
unsafe impl<B, C, D> PartitionedBufferMut for PartitionMut<'_, B, C, D> where
    B: PointerMut + AsDatatype + ?Sized
{
}

/// A buffer to send from whose type is known when the program runs.
///
/// # Examples
///
/// ```
/// use vrt::datatype::DynBuffer;
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let other = world.process_at_rank(1 - world.rank());
///     for column in [DynBuffer::new(&[1.5f64, 2.5]), DynBuffer::new(b"abc")] {
///         other.send(&column);
///     }
///     assert_eq!(other.receive_vec::<f64>().0, [1.5, 2.5]);
///     assert_eq!(other.receive_vec::<u8>().0, b"abc");
/// });
/// ```
#[derive(Clone, Copy, Debug)]
pub struct DynBuffer<'a> {
    ptr: *const c_void,
    len: Count,
    datatype: DatatypeRef<'a>,
}

/// A buffer to receive into whose type is known when the program runs.
///
/// # Examples
///
/// ```
/// use vrt::datatype::DynBufferMut;
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let other = world.process_at_rank(1 - world.rank());
///     other.send(&[1.5f64, 2.5]);
///     let mut numbers = [0f64; 2];
///     other.receive_into(&mut DynBufferMut::new(&mut numbers));
///     assert_eq!(numbers, [1.5, 2.5]);
/// });
/// ```
#[derive(Debug)]
pub struct DynBufferMut<'a> {
    ptr: *mut c_void,
    len: Count,
    datatype: DatatypeRef<'a>,
}

// SAFETY: it stands for a shared slice of plain data.
unsafe impl Send for DynBuffer<'_> {}
// SAFETY: as above.
unsafe impl Sync for DynBuffer<'_> {}
// SAFETY: it stands for a slice of plain data that nobody else has.
unsafe impl Send for DynBufferMut<'_> {}
// SAFETY: as above.
unsafe impl Sync for DynBufferMut<'_> {}

macro_rules! dynamic {
    ($name:ident) => {
        // SAFETY: as whoever made it promised.
        unsafe impl Collection for $name<'_> {
            fn count(&self) -> Count {
                self.len
            }

            fn len_in_elements(&self) -> usize {
                elements(self.len)
            }
        }

        // SAFETY: as above.
        unsafe impl Pointer for $name<'_> {
            fn pointer(&self) -> *const c_void {
                self.ptr as *const c_void
            }
        }

        // SAFETY: as above.
        unsafe impl<'a> AsDatatype for $name<'a> {
            type Out = DatatypeRef<'a>;

            fn as_datatype(&self) -> DatatypeRef<'a> {
                self.datatype
            }
        }

        // SAFETY: as above.
        unsafe impl Buffer for $name<'_> {}

        impl $name<'_> {
            /// Whether its elements are of a Rust type: whether that type's datatype is this one.
            ///
            /// # Examples
            ///
            /// ```
            /// use vrt::datatype::DynBuffer;
            ///
            /// let buffer = DynBuffer::new(b"abc");
            /// assert!(buffer.is::<u8>() && !buffer.is::<i8>());
            /// ```
            pub fn is<T: Equivalence>(&self) -> bool {
                self.datatype == T::equivalent_datatype().datatype_ref()
            }

            /// Number of elements.
            ///
            /// # Examples
            ///
            /// ```
            /// use vrt::datatype::DynBuffer;
            ///
            /// assert_eq!(DynBuffer::new(&[1.5f64, 2.5]).len(), 2);
            /// ```
            pub fn len(&self) -> usize {
                self.len_in_elements()
            }

            /// Whether there are none.
            ///
            /// # Examples
            ///
            /// ```
            /// use vrt::datatype::DynBuffer;
            ///
            /// assert!(DynBuffer::new::<f64>(&[]).is_empty());
            /// ```
            pub fn is_empty(&self) -> bool {
                self.len == 0
            }

            /// Where the first element lies.
            ///
            /// # Examples
            ///
            /// ```
            /// use vrt::datatype::DynBuffer;
            ///
            /// let numbers = [1.5f64, 2.5];
            /// assert_eq!(DynBuffer::new(&numbers).as_ptr().cast(), numbers.as_ptr());
            /// ```
            pub fn as_ptr(&self) -> *const c_void {
                self.ptr as *const c_void
            }
        }
    };
}
dynamic!(DynBuffer);
dynamic!(DynBufferMut);

// SAFETY: as whoever made it promised.
unsafe impl PointerMut for DynBufferMut<'_> {
    fn pointer_mut(&mut self) -> *mut c_void {
        self.ptr
    }
}

// SAFETY: as above.
unsafe impl BufferMut for DynBufferMut<'_> {}

/// The datatype of a Rust type, for as long as anybody wants it. One that is made anew each time it
/// is asked for stays in the rank's heap.
fn forever<T: Equivalence>() -> DatatypeRef<'static> {
    match T::equivalent_datatype().datatype_ref().to_owned_type() {
        OwnedDatatype::System(scalar) => DatatypeRef(Kind::System(scalar)),
        OwnedDatatype::Derived(derived) => DatatypeRef(Kind::Derived(derived)),
        OwnedDatatype::User(layout) => DatatypeRef(Kind::User(Box::leak(Box::new(layout)))),
    }
}

/// A slice, empty ones with a good address whatever the pointer says.
unsafe fn slice<'a, T>(at: *const c_void, len: usize) -> &'a [T] {
    // SAFETY: as the caller promises.
    if len == 0 { &[] } else { unsafe { std::slice::from_raw_parts(at.cast(), len) } }
}

impl<'a> DynBuffer<'a> {
    /// A slice, its type forgotten.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::DynBuffer;
    ///
    /// let columns = [DynBuffer::new(&[1.5f64, 2.5]), DynBuffer::new(b"abc")];
    /// assert_eq!(columns.map(|column| column.len()), [2, 3]);
    /// ```
    pub fn new<T: Equivalence>(buf: &'a [T]) -> Self {
        // SAFETY: the elements of a slice.
        unsafe { Self::from_raw(buf.as_ptr(), buf.count(), forever::<T>()) }
    }

    /// The slice, if its elements are of this type.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::DynBuffer;
    ///
    /// let buffer = DynBuffer::new(b"abc");
    /// assert_eq!(buffer.downcast::<u8>(), Some(&b"abc"[..]));
    /// assert_eq!(buffer.downcast::<i8>(), None);
    /// ```
    pub fn downcast<T: Equivalence>(self) -> Option<&'a [T]> {
        // SAFETY: the datatype is the one of `T`.
        self.is::<T>().then(|| unsafe { slice(self.ptr, self.len()) })
    }

    /// `len` elements of a datatype.
    ///
    /// # Safety
    /// They are readable as long as the result lives.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::DynBuffer;
    /// use vrt::traits::*;
    ///
    /// let numbers = [1u32, 2, 3];
    /// // SAFETY: the first two numbers of the array, which lives longer.
    /// let buffer = unsafe { DynBuffer::from_raw(numbers.as_ptr(), 2, u32::equivalent_datatype()) };
    /// assert_eq!(buffer.downcast::<u32>(), Some(&[1, 2][..]));
    /// ```
    pub unsafe fn from_raw<T>(ptr: *const T, len: Count, datatype: DatatypeRef<'a>) -> Self {
        DynBuffer { ptr: ptr.cast(), len, datatype }
    }
}

impl<'a> DynBufferMut<'a> {
    /// A slice, its type forgotten.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::DynBufferMut;
    ///
    /// let (mut numbers, mut bytes) = ([0f64; 2], [0u8; 3]);
    /// let columns = [DynBufferMut::new(&mut numbers), DynBufferMut::new(&mut bytes)];
    /// assert_eq!(columns.map(|column| column.len()), [2, 3]);
    /// ```
    pub fn new<T: Equivalence>(buf: &'a mut [T]) -> Self {
        // SAFETY: the elements of a slice.
        unsafe { Self::from_raw(buf.as_mut_ptr(), buf.count(), forever::<T>()) }
    }

    /// The slice, if its elements are of this type.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::DynBufferMut;
    ///
    /// let mut numbers = [1, 2];
    /// if let Some(numbers) = DynBufferMut::new(&mut numbers).downcast::<i32>() {
    ///     numbers[0] = 7;
    /// }
    /// assert_eq!(numbers, [7, 2]);
    /// ```
    pub fn downcast<T: Equivalence>(self) -> Option<&'a mut [T]> {
        if !self.is::<T>() {
            return None;
        }
        if self.len == 0 {
            return Some(&mut []);
        }
        // SAFETY: the datatype is the one of `T`, and the elements are this buffer's alone.
        Some(unsafe { std::slice::from_raw_parts_mut(self.ptr.cast(), self.len()) })
    }

    /// `len` elements of a datatype.
    ///
    /// # Safety
    /// They are writable, and nobody else uses them, as long as the result lives.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::DynBufferMut;
    /// use vrt::traits::*;
    ///
    /// let mut numbers = [1u32, 2, 3];
    /// let (at, number) = (numbers.as_mut_ptr(), u32::equivalent_datatype());
    /// // SAFETY: the first two numbers of the array, which lives longer and is not used meanwhile.
    /// let buffer = unsafe { DynBufferMut::from_raw(at, 2, number) };
    /// assert_eq!(buffer.len(), 2);
    /// ```
    pub unsafe fn from_raw<T>(ptr: *mut T, len: Count, datatype: DatatypeRef<'a>) -> Self {
        DynBufferMut { ptr: ptr.cast(), len, datatype }
    }

    /// Where the first element lies.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::DynBufferMut;
    ///
    /// let mut numbers = [1.5f64, 2.5];
    /// let at = numbers.as_mut_ptr();
    /// assert_eq!(DynBufferMut::new(&mut numbers).as_mut_ptr().cast(), at);
    /// ```
    pub fn as_mut_ptr(&mut self) -> *mut c_void {
        self.ptr
    }

    /// The same for reading, for a while.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::DynBufferMut;
    ///
    /// let mut bytes = *b"abc";
    /// let buffer = DynBufferMut::new(&mut bytes);
    /// assert_eq!(buffer.reborrow().downcast::<u8>(), Some(&b"abc"[..]));
    /// assert_eq!(buffer.len(), 3);
    /// ```
    pub fn reborrow(&self) -> DynBuffer<'_> {
        DynBuffer { ptr: self.ptr, len: self.len, datatype: self.datatype }
    }

    /// The same, for a while.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::DynBufferMut;
    ///
    /// let mut numbers = [1, 2];
    /// let mut buffer = DynBufferMut::new(&mut numbers);
    /// if let Some(numbers) = buffer.reborrow_mut().downcast::<i32>() {
    ///     numbers[0] = 7;
    /// }
    /// assert_eq!(buffer.downgrade().downcast::<i32>(), Some(&[7, 2][..]));
    /// ```
    pub fn reborrow_mut(&mut self) -> DynBufferMut<'_> {
        DynBufferMut { ptr: self.ptr, len: self.len, datatype: self.datatype }
    }

    /// The same for reading.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::datatype::DynBufferMut;
    ///
    /// let mut bytes = *b"abc";
    /// let buffer = DynBufferMut::new(&mut bytes).downgrade();
    /// assert_eq!(buffer.downcast::<u8>(), Some(&b"abc"[..]));
    /// ```
    pub fn downgrade(self) -> DynBuffer<'a> {
        DynBuffer { ptr: self.ptr, len: self.len, datatype: self.datatype }
    }
}
