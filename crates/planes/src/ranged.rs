//! Range reads: locates the bytes of a group that a query needs, and queries the loaded bytes.

use alloc::vec::Vec;

use blocked_bloom::Bitmask;

use crate::error::PlanesError;
use crate::evaluate::{Terms, Window, evaluate};
use crate::layout::{PlaneLocation, PlanesLayout};
use crate::query::Query;

/// The bytes of a group that a query needs. [`PlanesLayout::locate`] returns it.
///
/// ```
/// # use blocked_bloom_planes::{Planes, PlanesOptions, Query, Shape};
/// let options = PlanesOptions::new(Shape::new(1, 128, 4)?);
/// let planes = Planes::from_hashes(&options, [[42]])?;
/// let at = planes.layout().locate(&Query::all([42, 43]), 0)?;
/// assert!(at.group == 0 && at.planes.len() <= 8);
/// # Ok::<(), blocked_bloom_planes::PlanesError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GroupLocation {
    /// Number of the group.
    pub group: u64,
    /// The planes that the query needs, ascending.
    pub planes: Vec<PlaneLocation>,
}

/// Loaded and verified planes of one group. [`PlanesLayout::open`] returns it.
///
/// ```
/// # use blocked_bloom_planes::{Planes, PlanesOptions, Query, Shape};
/// let options = PlanesOptions::new(Shape::new(1, 128, 4)?);
/// let planes = Planes::from_hashes(&options, [[42], [7 << 60]])?;
/// let (layout, query) = (*planes.layout(), Query::all([42]));
/// let at = layout.locate(&query, 0)?;
/// let loaded: Vec<&[u8]> =
///     at.planes
///         .iter()
///         .map(|at| &planes.as_bytes()[at.offset as usize..][..at.length as usize])
///         .collect();
/// let mut hits = blocked_bloom::Bitmask::new();
/// layout.open(&at, &loaded)?.query(&query, &mut hits)?;
/// assert!(hits.hits().eq([0]));
/// # Ok::<(), blocked_bloom_planes::PlanesError>(())
/// ```
#[derive(Clone, Debug)]
pub struct GroupRef<'b> {
    layout: PlanesLayout,
    group: u64,
    /// Number and bytes of each plane, ascending.
    planes: Vec<(u32, &'b [u8])>,
}

impl GroupRef<'_> {
    /// Determines which rows of the group may match the query. The query is the one that was
    /// located, or any other that needs no further planes.
    ///
    /// # Errors
    ///
    /// [`PlanesError::PlaneNotLoaded`]; the contents of `hits` are then unspecified.
    pub fn query(&self, query: &Query, hits: &mut Bitmask) -> Result<(), PlanesError> {
        let terms = Terms::new(query, self.layout.options());
        let find = |plane| self.planes.binary_search_by_key(&plane, |&(number, _)| number);
        if let Some(plane) = terms.planes().into_iter().find(|&plane| find(plane).is_err()) {
            return Err(PlanesError::PlaneNotLoaded { plane });
        }
        let rows = self.layout.rows_of(self.group);
        // A group has at most 2^24 rows.
        let rows = (rows.end - rows.start) as usize;
        hits.write(rows, |words| {
            let plane = |number, window: &Window| {
                let (_, bytes) = self.planes[find(number).ok()?];
                if window.group == 0 { bytes.get(window.bytes()) } else { None }
            };
            evaluate(&terms, 0, self.layout.plane_bytes(rows as u64) / 8, plane, words);
        });
        Ok(())
    }
}

impl PlanesLayout {
    /// Locates the planes of a group that a query needs, in ascending order. Neighbouring planes
    /// may be loaded with one read and then split.
    ///
    /// # Errors
    ///
    /// [`PlanesError::GroupOutOfRange`].
    pub fn locate(&self, query: &Query, group: u64) -> Result<GroupLocation, PlanesError> {
        self.check_group(group)?;
        let planes = Terms::new(query, self.options()).planes();
        let planes = planes.into_iter().map(|plane| self.location(group, plane)).collect();
        Ok(GroupLocation { group, planes })
    }

    /// Opens the bytes loaded for a location, one slice per plane, and verifies that each slice is
    /// the located plane and undamaged. Cost: reads all bytes once.
    ///
    /// # Errors
    ///
    /// [`PlanesError`]. Treat every row of the group as "maybe" in that case.
    pub fn open<'b>(
        &self,
        at: &GroupLocation,
        loaded: &'b [impl AsRef<[u8]>],
    ) -> Result<GroupRef<'b>, PlanesError> {
        self.check_group(at.group)?;
        if at.planes.len() != loaded.len() {
            let (found, expected) = (loaded.len(), at.planes.len());
            return Err(PlanesError::PlaneCount { found, expected });
        }
        let planes = at.planes.iter().zip(loaded).map(|(&PlaneLocation { plane, .. }, bytes)| {
            Ok((plane, self.checked(at.group, plane, bytes.as_ref())?))
        });
        let planes = planes.collect::<Result<_, PlanesError>>()?;
        Ok(GroupRef { layout: *self, group: at.group, planes })
    }

    fn check_group(&self, group: u64) -> Result<(), PlanesError> {
        let groups = self.groups();
        if group < groups { Ok(()) } else { Err(PlanesError::GroupOutOfRange { group, groups }) }
    }
}
