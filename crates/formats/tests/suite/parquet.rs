//! Parquet's split-block filters: what real writers wrote is answered as they answer, by every
//! kernel; what is written is what they write; damage is an error or an answer.

mod damage;
mod footer;
mod kernels;
mod rates;
mod systems;
mod threads;
