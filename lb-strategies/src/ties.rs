//! Ties: objects of equal load are exchangeable, so as many as possible stay at home, and among
//! those that must move the small ones do.

use crate::{model::LoadModel, order::Order};

/// Exchanges objects of equal load in `pes` until as few as possible are away from home, and of each PE's equal objects
/// those with the fewest live bytes. The load of every PE is unchanged.
///
/// In `order`, equal objects are [by home](crate::order::by_home). Cost: `m log m` for `m` objects that have the same
/// load as another.
pub(crate) fn settle(model: &LoadModel, order: &Order, pes: &mut [usize]) {
    let at = |it: u32| &model.objects()[it as usize];
    let mut places: Vec<usize> = vec![];
    let mut homeless: Vec<u32> = vec![];
    for equal in order.equal() {
        let equal = &order.objects()[equal.clone()];
        if at(equal[0]).load == 0.0 || equal.iter().all(|&it| pes[it as usize] == at(it).pe) {
            continue;
        }
        places.clear();
        places.extend(equal.iter().map(|&it| pes[it as usize]));
        places.sort_unstable();
        homeless.clear();
        // Both lists rise by PE: one walk finds who has a place at home.
        let (mut next, mut left) = (0, 0);
        for &it in equal {
            let home = at(it).pe;
            while next < places.len() && places[next] < home {
                places[left] = places[next];
                left += 1;
                next += 1;
            }
            if places.get(next) == Some(&home) {
                pes[it as usize] = home;
                next += 1;
            } else {
                homeless.push(it);
            }
        }
        places.copy_within(next.., left);
        for (&it, &pe) in homeless.iter().zip(&places) {
            pes[it as usize] = pe;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        assignment::pe_loads,
        model::{Object, Pe},
        order::by_home,
    };
    use proptest::prelude::*;

    fn model(pes: usize, objects: &[(u8, usize, u8)]) -> LoadModel {
        let objects = objects
            .iter()
            .map(|&(load, pe, bytes)| Object::new(load.into(), pe).with_bytes(bytes.into()));
        LoadModel::new(vec![Pe::default(); pes], objects.collect(), vec![]).expect("sound")
    }

    #[test]
    fn a_detour_is_cut_short_and_light_ones_travel() {
        let model = model(3, &[(1, 0, 9), (1, 0, 1), (1, 1, 5), (2, 2, 0)]);
        // 0 -> 1 and 1 -> 2 of equal load is one move, 0 -> 2.
        let mut pes = vec![1, 0, 2, 2];
        settle(&model, &Order::falling(&model, by_home(&model)), &mut pes);
        assert_eq!(pes, [0, 2, 1, 2]);
    }

    proptest! {
        #[test]
        fn loads_stay_and_moves_do_not_grow(
            objects in prop::collection::vec((0_u8..3, 0_usize..5, 0_u8..9, 0_usize..5), 0..40),
        ) {
            let mut pes: Vec<usize> = objects.iter().map(|it| it.3).collect();
            let objects: Vec<_> = objects.iter().map(|it| (it.0, it.1, it.2)).collect();
            let model = model(5, &objects);
            let moves = |pes: &[usize]| {
                pes.iter().zip(model.objects()).filter(|(pe, it)| **pe != it.pe).count()
            };
            let (loads, before) = (pe_loads(&model, &pes), moves(&pes));
            let order = Order::falling(&model, by_home(&model));
            settle(&model, &order, &mut pes);
            prop_assert_eq!(pe_loads(&model, &pes), loads);
            prop_assert!(moves(&pes) <= before);
            let once = pes.clone();
            settle(&model, &order, &mut pes);
            prop_assert_eq!(pes, once);
        }
    }
}
