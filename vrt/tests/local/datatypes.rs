//! Random nested datatypes against a naive packer: pack, unpack, and messages between unlike types
//! of equal signature.

use proptest::prelude::*;
use vrt::datatype::{ArrayOrder, MutView, UserDatatype, View};
use vrt::traits::*;

/// A datatype as it is written down.
#[derive(Clone, Debug)]
enum Described {
    Byte,
    Short,
    Int,
    Contiguous(i32, Box<Described>),
    Vector(i32, i32, i32, Box<Described>),
    Indexed(Vec<(i32, i32)>, Box<Described>),
    Structured(Vec<(i32, Described)>),
    SubArray([(i32, i32, i32); 2], bool, Box<Described>),
    Resized(i32, Box<Described>),
}

use Described::{Byte, Contiguous, Indexed, Int, Resized, Short, Structured, SubArray, Vector};

impl Described {
    fn build(&self) -> UserDatatype {
        match self {
            Byte => UserDatatype::contiguous(1, &u8::equivalent_datatype()),
            Short => UserDatatype::contiguous(1, &u16::equivalent_datatype()),
            Int => UserDatatype::contiguous(1, &u32::equivalent_datatype()),
            Contiguous(n, old) => UserDatatype::contiguous(*n, &old.build()),
            Vector(n, len, stride, old) => UserDatatype::vector(*n, *len, *stride, &old.build()),
            Indexed(blocks, old) => {
                let (at, lens): (Vec<i32>, Vec<i32>) = blocks.iter().copied().unzip();
                UserDatatype::indexed(&lens, &at, &old.build())
            }
            Structured(fields) => {
                let types: Vec<UserDatatype> = fields.iter().map(|(_, t)| t.build()).collect();
                let lens: Vec<i32> = fields.iter().map(|(n, _)| *n).collect();
                let mut at = 0;
                let places = types.iter().zip(&lens).map(|(t, n)| {
                    let here = at - t.as_ref().lower_bound().min(0);
                    at = here + t.as_ref().extent().max(0) * *n as isize + 3;
                    here
                });
                let places: Vec<isize> = places.collect();
                UserDatatype::structured(&lens, &places, &types)
            }
            SubArray(dims, c, old) => {
                let [a, b] = *dims;
                let order = if *c { ArrayOrder::C } else { ArrayOrder::Fortran };
                let (sizes, parts) = ([a.0, b.0], [a.1, b.1]);
                UserDatatype::subarray(&sizes, &parts, &[a.2, b.2], order, &old.build())
            }
            Resized(more, old) => {
                let t = old.build();
                let (lower, extent) = (t.as_ref().lower_bound(), t.as_ref().extent());
                UserDatatype::resized(lower, extent + *more as isize, &t)
            }
        }
    }

    /// The specification: where each byte of one element lies, in the order of the type map.
    fn bytes(&self, at: isize, out: &mut Vec<isize>) {
        let blocks = |n: i32, at: isize, old: &Described, out: &mut Vec<isize>| {
            let extent = old.build().as_ref().extent();
            (0..n as isize).for_each(|i| old.bytes(at + i * extent, out));
        };
        match self {
            Byte => out.push(at),
            Short => out.extend(at..at + 2),
            Int => out.extend(at..at + 4),
            Contiguous(n, old) => blocks(*n, at, old, out),
            Vector(n, len, stride, old) => {
                let extent = old.build().as_ref().extent();
                for i in 0..*n as isize {
                    blocks(*len, at + i * *stride as isize * extent, old, out);
                }
            }
            Indexed(list, old) => {
                let extent = old.build().as_ref().extent();
                for (place, len) in list {
                    blocks(*len, at + *place as isize * extent, old, out);
                }
            }
            Structured(fields) => {
                let mut end = 0;
                for (n, old) in fields {
                    let t = old.build();
                    let here = end - t.as_ref().lower_bound().min(0);
                    end = here + t.as_ref().extent().max(0) * *n as isize + 3;
                    blocks(*n, at + here, old, out);
                }
            }
            SubArray(dims, c, old) => {
                let [a, b] = *dims;
                let extent = old.build().as_ref().extent();
                let (slow, fast) = if *c { (a, b) } else { (b, a) };
                for i in 0..slow.1 {
                    for j in 0..fast.1 {
                        let place = (slow.2 + i) * fast.0 + fast.2 + j;
                        old.bytes(at + place as isize * extent, out);
                    }
                }
            }
            Resized(_, old) => old.bytes(at, out),
        }
    }

    /// The bytes of the built-in values, in their order.
    fn signature(&self, out: &mut Vec<u8>) {
        let mut repeat = |n: i32, old: &Described| (0..n).for_each(|_| old.signature(out));
        match self {
            Byte => out.push(1),
            Short => out.push(2),
            Int => out.push(4),
            Contiguous(n, old) => repeat(*n, old),
            Vector(n, len, _, old) => repeat(n * len, old),
            Indexed(list, old) => repeat(list.iter().map(|(_, len)| len).sum(), old),
            Structured(fields) => fields.iter().for_each(|(n, old)| repeat(*n, old)),
            SubArray([a, b], _, old) => repeat(a.1 * b.1, old),
            Resized(_, old) => old.signature(out),
        }
    }
}

fn described() -> impl Strategy<Value = Described> {
    let leaf = prop_oneof![Just(Byte), Just(Short), Just(Int)];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let boxed = inner.clone().prop_map(Box::new);
        let dim = (0i32..3, 0i32..2, 0i32..2)
            .prop_map(|(part, before, after)| (part + before + after, part, before));
        prop_oneof![
            (0..4i32, boxed.clone()).prop_map(|(n, t)| Contiguous(n, t)),
            (0..4i32, 0..3i32, 3..5i32, boxed.clone()).prop_map(|(n, l, s, t)| Vector(n, l, s, t)),
            (prop::collection::vec(0..3i32, 0..4), boxed.clone()).prop_map(|(lens, t)| {
                let blocks = lens.into_iter().enumerate();
                Indexed(blocks.map(|(i, len)| (4 * (3 - i as i32), len)).collect(), t)
            }),
            prop::collection::vec((0..3i32, inner), 0..4).prop_map(Structured),
            ([dim.clone(), dim], any::<bool>(), boxed.clone())
                .prop_map(|(dims, c, t)| SubArray(dims, c, t)),
            (0..9i32, boxed).prop_map(|(more, t)| Resized(more, t)),
        ]
    })
}

/// Where the bytes of `count` elements lie, and how much memory they need in front and in all.
fn places(described: &Described, count: usize) -> Vec<isize> {
    let extent = described.build().as_ref().extent();
    let mut all = Vec::new();
    (0..count as isize).for_each(|i| described.bytes(i * extent, &mut all));
    all
}

fn memory_for(places: &[isize]) -> usize {
    assert!(places.iter().all(|place| *place >= 0));
    places.iter().max().map_or(0, |last| *last as usize + 1)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn packing_follows_the_type_map(described in described(), count in 0usize..4) {
        let (t, places) = (described.build(), places(&described, count));
        prop_assert_eq!(t.as_ref().size() * count, places.len());
        let memory: Vec<u8> = (0..memory_for(&places)).map(|i| (i * 7 + 3) as u8).collect();
        let wanted: Vec<u8> = places.iter().map(|place| memory[*place as usize]).collect();
        if count == 1 && !places.is_empty() {
            let low = places.iter().min().unwrap();
            prop_assert_eq!(t.as_ref().true_lower_bound(), *low);
            prop_assert_eq!(t.as_ref().true_extent(), memory.len() as isize - low);
        }
        vrt::run_local(1, |world| {
            // SAFETY: the elements lie in the memory.
            let view = unsafe { View::with_count_and_datatype(&memory[..], count as i32, &t) };
            let packed = world.pack(&view);
            assert_eq!(packed, wanted);
            let mut back = vec![0xEEu8; memory.len()];
            // SAFETY: as above; the data was packed from the same type.
            unsafe {
                let mut view = MutView::with_count_and_datatype(&mut back[..], count as i32, &t);
                assert_eq!(world.unpack_into(&packed, &mut view, 0) as usize, packed.len());
            }
            for (i, byte) in back.iter().enumerate() {
                let covered = places.contains(&(i as isize));
                assert_eq!(*byte, if covered { memory[i] } else { 0xEE });
            }
        });
    }

    #[test]
    fn messages_go_between_unlike_types(one in described(), count in 1usize..4, large in any::<bool>()) {
        // The same signature, written down as a structure of all its parts.
        let mut parts = Vec::new();
        (0..count).for_each(|_| one.signature(&mut parts));
        let leaf = |part: &u8| match part { 1 => Byte, 2 => Short, _ => Int };
        let other = Structured(parts.iter().map(|part| (1, leaf(part))).collect());
        let repeat = if large { 600 } else { 1 };
        let (mine, theirs) = (places(&one, count * repeat), places(&other, repeat));
        prop_assert_eq!(mine.len(), theirs.len());
        let (one, other) = (one.build(), other.build());
        let memory: Vec<u8> = (0..memory_for(&mine)).map(|i| (i * 5 + 1) as u8).collect();
        let len = memory_for(&theirs);
        vrt::run_local(2, |world| {
            let partner = world.process_at_rank(1 - world.rank());
            if world.rank() == 0 {
                let count = (count * repeat) as i32;
                // SAFETY: the elements lie in the memory.
                let view = unsafe { View::with_count_and_datatype(&memory[..], count, &one) };
                partner.send(&view);
                return;
            }
            let mut got = vec![0xEEu8; len];
            // SAFETY: as above.
            let mut view =
                unsafe { MutView::with_count_and_datatype(&mut got[..], repeat as i32, &other) };
            let status = partner.receive_into(&mut view);
            assert_eq!(status.bytes() as usize, mine.len());
            for (from, to) in mine.iter().zip(&theirs) {
                assert_eq!(got[*to as usize], memory[*from as usize]);
            }
        });
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Equivalence)]
struct Inner(f64, u16);

#[derive(Clone, Copy, Debug, Default, PartialEq, Equivalence)]
struct Outer {
    flag: bool,
    inner: [Inner; 2],
    pair: (i8, (u32, bool)),
}

#[test]
fn derived_types_go_through_every_kind_of_message() {
    vrt::run_local(2, |world| {
        let value = |i: u16| Outer {
            flag: true,
            inner: [Inner(f64::from(i), i), Inner(0.5, 9)],
            pair: (-1, (7, false)),
        };
        assert_eq!(Outer::equivalent_datatype().size(), 1 + 2 * 10 + 1 + 4 + 1);
        assert_eq!(Outer::equivalent_datatype().extent(), size_of::<Outer>() as isize);
        let other = world.process_at_rank(1 - world.rank());
        let many: Vec<Outer> = (0..1000).map(value).collect();
        let sent = many.clone();
        vrt::request::scope(|scope| {
            let mut into = vec![Outer::default(); 1000];
            let send = other.immediate_send(scope, &sent);
            other.receive_into(&mut into);
            assert_eq!(into, many);
            send.wait();
        });
        other.buffered_send(&value(3));
        assert_eq!(other.receive::<Outer>().0, value(3));
        other.buffered_send(&many);
        assert_eq!(other.receive_vec::<Outer>().0, many);
        other.buffered_send(&value(4));
        assert_eq!(other.immediate_receive::<Outer>().get().0, value(4));
        other.buffered_send(&value(5));
        assert_eq!(other.matched_probe().0.matched_receive::<Outer>().0, value(5));
        let mut swapped = [value(world.rank() as u16)];
        vrt::point_to_point::send_receive_replace_into(&mut swapped, &other, &other);
        assert_eq!(swapped[0], value(1 - world.rank() as u16));
    });
}

#[test]
fn sparse_exchanges_carry_values_of_derived_types() {
    #[derive(Clone, Debug, PartialEq, Equivalence)]
    struct Particle {
        mark: u8,
        place: [f64; 3],
    }
    for protocol in vrt::exchange::Protocol::all() {
        vrt::run_local(3, |world| {
            let me = world.rank();
            let particle = |i: i32| Particle { mark: i as u8, place: [f64::from(i), 0.5, -1.0] };
            let sent = [((me + 1) % 3, vec![particle(me), particle(me + 7)]), (me, vec![])];
            let came = world.sparse_exchange_by(protocol, &sent);
            let left = (me + 2) % 3;
            let mut expected = vec![(me, vec![]), (left, vec![particle(left), particle(left + 7)])];
            expected.sort_by_key(|(source, _)| *source);
            assert_eq!(came, expected);
        });
    }
}
