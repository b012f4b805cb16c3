//! Ranks as a grid (MPI-4.1 section 8.5). The last coordinate runs fastest.

use crate::Count;
use crate::operation::Site;
use crate::operation::site;
use crate::operation::{At, OrRefuse, block_on_or_refuse};
use crate::topology::{Communicator, Rank, SimpleCommunicator};
use vrt_core::comm::CommunicatorHandle;
use vrt_core::comm::create;
use vrt_core::comm::dims;
use vrt_core::comm::grid::Grid;
use vrt_core::comm::shape::Shape;

/// A grid and the calling rank's place in it.
///
/// # Examples
///
/// ```
/// use vrt::topology::CartesianLayout;
/// use vrt::traits::*;
///
/// vrt::run_local(2, |world| {
///     let ring = world.create_cartesian_communicator(&[2], &[true], false).unwrap();
///     let CartesianLayout { dims, periods, coords } = ring.get_layout();
///     assert_eq!((dims, periods, coords), (vec![2], vec![true], vec![ring.rank()]));
/// });
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CartesianLayout {
    /// Ranks along each dimension.
    pub dims: Vec<Count>,
    /// Whether each dimension is closed to a ring.
    pub periods: Vec<bool>,
    /// The calling rank's coordinates.
    pub coords: Vec<Count>,
}

/// A communicator whose ranks are a grid.
///
/// # Examples
///
/// ```
/// use vrt::traits::*;
///
/// vrt::run_local(6, |world| {
///     let mut dims = [0, 0];
///     vrt::topology::dimensions(world.size(), &mut dims);
///     assert_eq!(dims, [3, 2]);
///     // Closed in the second dimension.
///     let grid = world.create_cartesian_communicator(&dims, &[false, true], false).unwrap();
///     let place = grid.get_layout().coords;
///     assert_eq!(grid.coordinates_to_rank(&[place[0], place[1] + 2]), grid.rank());
///     assert_eq!(grid.shift(0, 1).0.is_none(), place[0] == 0);
/// });
/// ```
#[derive(Clone, Debug)]
pub struct CartesianCommunicator(pub(crate) SimpleCommunicator);

/// Factors of a number of ranks, as near to each other as can be, in decreasing order
/// (`MPI_Dims_create`, section 8.5.2). Dimensions that are not 0 stay as they are.
///
/// # Panics
/// When there are no ranks, a dimension is negative, or the given ones do not divide the number of ranks.
///
/// # Examples
///
/// ```
/// let (mut free, mut given) = ([0, 0], [0, 3, 0]);
/// vrt::topology::dimensions(6, &mut free);
/// vrt::topology::dimensions(6, &mut given);
/// assert_eq!((free, given), ([3, 2], [2, 3, 1]));
/// ```
#[track_caller]
pub fn dimensions(ranks: Rank, dims: &mut [Count]) {
    if let Err(error) = dims::fill(ranks, dims) {
        panic!("{error}");
    }
}

#[track_caller]
pub(crate) fn expect_parallel(dims: &[Count], periods: &[bool]) {
    assert!(
        dims.len() == periods.len(),
        "a grid with {} dimensions and {} periods",
        dims.len(),
        periods.len()
    );
}

pub(crate) fn create(
    comm: &CommunicatorHandle,
    dims: &[Count],
    periods: &[bool],
    site: Site,
) -> Option<CartesianCommunicator> {
    expect_parallel(dims, periods);
    let places = match dims::places(dims, 1, comm.size) {
        Ok(places) => places,
        Err(error) => panic!("rank {} in {site}: {error}", comm.rank),
    };
    let shape = Shape::Cartesian(Grid { dims: dims.to_vec(), periods: periods.to_vec() });
    let make = create::in_shape(comm, places.unsigned_abs() as usize, shape, site);
    let handle = block_on_or_refuse(make, site)?;
    Some(CartesianCommunicator(SimpleCommunicator(handle)))
}

impl CartesianCommunicator {
    fn grid(&self) -> &Grid {
        match &self.0.0.shape {
            Shape::Cartesian(grid) => grid,
            _ => unreachable!("only grids are made Cartesian communicators"),
        }
    }

    #[track_caller]
    fn expect_dimensions(&self, what: &str, got: usize) {
        let dimensions = self.grid().dims.len();
        assert!(got == dimensions, "{got} {what} for a grid of {dimensions} dimensions");
    }

    /// Number of dimensions.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(2, |world| {
    ///     let grid = world.create_cartesian_communicator(&[2, 1], &[false; 2], false).unwrap();
    ///     assert_eq!(grid.num_dimensions(), 2);
    /// });
    /// ```
    pub fn num_dimensions(&self) -> Count {
        self.grid().dims.len() as Count
    }

    /// The grid and the calling rank's place in it.
    ///
    /// Example: [`CartesianLayout`].
    pub fn get_layout(&self) -> CartesianLayout {
        let Grid { dims, periods } = self.grid().clone();
        CartesianLayout { dims, periods, coords: self.rank_to_coordinates(self.rank()) }
    }

    /// [`get_layout`](Self::get_layout) into slices.
    ///
    /// # Panics
    /// When one of them is not as long as the grid has dimensions.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(6, |world| {
    ///     let grid = world.create_cartesian_communicator(&[3, 2], &[false, true], false).unwrap();
    ///     let (mut dims, mut periods, mut coords) = ([0; 2], [false; 2], [0; 2]);
    ///     grid.get_layout_into(&mut dims, &mut periods, &mut coords);
    ///     assert_eq!((dims, periods), ([3, 2], [false, true]));
    ///     assert_eq!(coords, [grid.rank() / 2, grid.rank() % 2]);
    /// });
    /// ```
    #[track_caller]
    pub fn get_layout_into(&self, dims: &mut [Count], periods: &mut [bool], coords: &mut [Count]) {
        self.expect_dimensions("dims", dims.len());
        self.expect_dimensions("periods", periods.len());
        self.expect_dimensions("coords", coords.len());
        let layout = self.get_layout();
        dims.copy_from_slice(&layout.dims);
        periods.copy_from_slice(&layout.periods);
        coords.copy_from_slice(&layout.coords);
    }

    /// The rank at coordinates; those of closed dimensions may be any numbers.
    ///
    /// # Panics
    /// When there are not as many as the grid has dimensions, or one lies outside of an open one.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(6, |world| {
    ///     let grid = world.create_cartesian_communicator(&[3, 2], &[false, true], false).unwrap();
    ///     assert_eq!(grid.coordinates_to_rank(&[2, 0]), 4);
    ///     // The second dimension is closed.
    ///     assert_eq!(grid.coordinates_to_rank(&[2, -1]), 5);
    /// });
    /// ```
    #[track_caller]
    pub fn coordinates_to_rank(&self, coords: &[Count]) -> Rank {
        self.expect_dimensions("coordinates", coords.len());
        match self.grid().rank(coords) {
            Some(rank) => rank,
            None => panic!("coordinates {coords:?} are not in a grid of {:?}", self.grid().dims),
        }
    }

    /// The coordinates of a rank.
    ///
    /// # Panics
    /// When there is no such rank.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(6, |world| {
    ///     let grid = world.create_cartesian_communicator(&[3, 2], &[false; 2], false).unwrap();
    ///     assert_eq!(grid.rank_to_coordinates(4), [2, 0]);
    /// });
    /// ```
    #[track_caller]
    pub fn rank_to_coordinates(&self, rank: Rank) -> Vec<Count> {
        self.0.0.job_rank(rank).at(site!("rank_to_coordinates")).or_refuse();
        self.grid().coordinates_of(rank)
    }

    /// [`rank_to_coordinates`](Self::rank_to_coordinates) into a slice.
    ///
    /// # Panics
    /// When there is no such rank, or the slice is not as long as the grid has dimensions.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(6, |world| {
    ///     let grid = world.create_cartesian_communicator(&[3, 2], &[false; 2], false).unwrap();
    ///     let mut coords = [0; 2];
    ///     grid.rank_to_coordinates_into(4, &mut coords);
    ///     assert_eq!(coords, [2, 0]);
    /// });
    /// ```
    #[track_caller]
    pub fn rank_to_coordinates_into(&self, rank: Rank, coords: &mut [Count]) {
        self.expect_dimensions("coordinates", coords.len());
        self.0.0.job_rank(rank).at(site!("rank_to_coordinates")).or_refuse();
        self.grid().coordinates(rank, coords);
    }

    /// From whom and to whom data goes that is moved along a dimension.
    ///
    /// # Panics
    /// When there is no such dimension.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(3, |world| {
    ///     let row = world.create_cartesian_communicator(&[3], &[false], false).unwrap();
    ///     let (left, right) = row.shift(0, 1);
    ///     // The row is open: the first rank has nobody to its left, the last nobody to its right.
    ///     assert_eq!(left, (row.rank() > 0).then(|| row.rank() - 1));
    ///     assert_eq!(right, (row.rank() < 2).then(|| row.rank() + 1));
    /// });
    /// ```
    #[track_caller]
    pub fn shift(&self, dimension: Count, displacement: Count) -> (Option<Rank>, Option<Rank>) {
        let dimensions = self.num_dimensions();
        assert!(
            (0..dimensions).contains(&dimension),
            "dimension {dimension} is out of range: 0 to {} are allowed",
            dimensions - 1
        );
        self.grid().shift(self.rank(), dimension as usize, displacement)
    }

    /// The grid of the ranks that differ from this one in the retained dimensions only.
    /// Collective.
    ///
    /// # Panics
    /// When there are not as many as the grid has dimensions.
    ///
    /// # Examples
    ///
    /// ```
    /// use vrt::traits::*;
    ///
    /// vrt::run_local(6, |world| {
    ///     let grid = world.create_cartesian_communicator(&[3, 2], &[false; 2], false).unwrap();
    ///     let row = grid.subgroup(&[false, true]);
    ///     assert_eq!((row.size(), row.rank()), (2, grid.rank() % 2));
    /// });
    /// ```
    #[track_caller]
    pub fn subgroup(&self, retain: &[bool]) -> CartesianCommunicator {
        let site = site!("subgroup");
        self.expect_dimensions("retained dimensions", retain.len());
        let part = self.grid().sub(retain, self.rank());
        let make = create::part_of_grid(&self.0.0, part, site);
        match block_on_or_refuse(make, site) {
            Some(handle) => CartesianCommunicator(SimpleCommunicator(handle)),
            None => unreachable!("every rank has a color"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dimensions_are_balanced() {
        for (ranks, given, wanted) in [
            (6, vec![0, 0], vec![3, 2]),
            (7, vec![0, 0], vec![7, 1]),
            (6, vec![0, 3, 0], vec![2, 3, 1]),
            (64, vec![0, 0, 0], vec![4, 4, 4]),
            (12, vec![0, 0, 0], vec![3, 2, 2]),
            (1, vec![0], vec![1]),
            (360, vec![0, 0, 0], vec![10, 6, 6]),
        ] {
            let mut dims = given;
            dimensions(ranks, &mut dims);
            assert_eq!(dims, wanted, "{ranks} ranks");
        }
    }

    #[test]
    #[should_panic(expected = "7 ranks cannot fill a grid of [0, 3, 0]")]
    fn dimensions_that_do_not_divide_are_refused() {
        dimensions(7, &mut [0, 3, 0]);
    }

    #[test]
    #[should_panic(expected = "4 ranks cannot fill a grid of [65536, 65536, 65536, 65536, 0]")]
    fn dimensions_whose_product_is_beyond_all_numbers_are_refused() {
        dimensions(4, &mut [65536, 65536, 65536, 65536, 0]);
    }
}
