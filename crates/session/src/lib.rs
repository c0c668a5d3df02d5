pub mod decision;
pub mod id;
pub mod limits;
pub mod moment;
pub mod monitor;
pub mod operator;
pub mod seed;
pub mod view;
