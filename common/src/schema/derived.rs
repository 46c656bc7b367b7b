//! Derived columns: quantities that a party computes from the columns of a record, such as a logarithm or the basis of a spline.

use super::operation::Operation;

/// A column that is computed from others, by operations on a stack. Its public bounds stand beside those of the declared columns.
#[derive(Debug, Clone, PartialEq)]
pub struct Derived {
    /// The name, as the formula writes it: `log(age)`, `ns(age)[2]`.
    pub name: String,
    /// The declared columns that it is computed from, each once.
    pub columns: Vec<String>,
    /// The operations, in order. [`Operation::Column`] names a column by its number.
    pub operations: Vec<Operation>,
}

impl Derived {
    /// Computes the quantity of each record from its columns' values in the data's units, within their declared bounds.
    ///
    /// The function is total: a record of which a value is not a number has a quantity that is not a number.
    pub fn fill(&self, columns: &[&[f64]], out: &mut [f64]) {
        let mut stack: Vec<Vec<f64>> = Vec::new();
        for operation in &self.operations {
            match operation {
                Operation::Column(at) => stack.push(columns.get(*at).map(|column| column.to_vec()).unwrap_or_default()),
                Operation::Number(number) => stack.push(vec![*number; out.len()]),
                operation if operation.is_binary() => {
                    let (Some(right), Some(left)) = (stack.pop(), stack.last_mut()) else { continue };
                    left.iter_mut().zip(right).for_each(|(left, right)| *left = operation.of_two(*left, right));
                }
                operation => {
                    stack.last_mut().into_iter().flatten().for_each(|value| *value = operation.of_one(*value));
                }
            }
        }
        let result = stack.pop().unwrap_or_default();
        out.iter_mut().zip(result.into_iter().chain(std::iter::repeat(f64::NAN))).for_each(|(out, value)| *out = value);
    }
}
