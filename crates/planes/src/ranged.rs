//! Reading by ranges: which bytes of a group a query needs, and queries of what was loaded.

use alloc::vec::Vec;

use blocked_bloom::Bitmask;

use crate::error::PlanesError;
use crate::evaluate::{Terms, Window, evaluate};
use crate::layout::{PlaneLocation, PlanesLayout};
use crate::query::Query;

/// Which bytes a query needs of a group: [`PlanesLayout::locate`] has an example.
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
    /// Its planes, ascending.
    pub planes: Vec<PlaneLocation>,
}

/// The planes of one group that were loaded and verified: [`PlanesLayout::open`].
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
    /// By number, ascending.
    planes: Vec<(u32, &'b [u8])>,
}

impl GroupRef<'_> {
    /// Which rows of the group may satisfy the query: the one that was located, or another whose
    /// planes are among its planes.
    ///
    /// # Errors
    ///
    /// [`PlanesError::PlaneNotLoaded`]; the answers are then arbitrary.
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
    /// Which bytes a query needs of a group: of each plane, ascending. Neighbours may be loaded in
    /// one piece, and cut.
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

    /// Opens what was loaded for a location, one piece of bytes for each of its planes, and
    /// verifies that each is the plane that is meant, and undamaged. Cost: reads all of it once.
    ///
    /// # Errors
    ///
    /// [`PlanesError`]. Then answer "maybe" for every row of the group.
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
