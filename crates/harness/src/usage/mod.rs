//! What model responses cost: tokens by kind, and money by a dated price table.
//!
//! Pure. A client's own file says what was used, line by line (`<client>/usage.rs`); here is what
//! all of them have in common. Who reads the files, and which responses were seen before, is the
//! broker's business.

mod calendar;
mod limit;
mod price;
mod price_table;
mod reader;
mod response;
mod standing;
mod sum;
mod tokens;

pub use self::calendar::Day;
pub use self::limit::Limit;
pub use self::price::{Charge, Price, Rates};
pub use self::price_table::{Found, PriceTable};
pub use self::reader::FileReader;
pub(crate) use self::reader::{remembered, spelled};
pub use self::response::{MessageKey, Rank, Reading, Response, ResponseKey, Speed};
pub use self::standing::Standing;
pub use self::sum::Sum;
pub use self::tokens::Tokens;
