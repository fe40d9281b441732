//! Parquet files: what real writers wrote is answered as they answer; damage is an error or an
//! answer. The filters by themselves are tested in their own package.

mod damage;
mod footer;
mod logical;
mod systems;
