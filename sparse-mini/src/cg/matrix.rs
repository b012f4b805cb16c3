//! Sparse matrices: generated ones, and those of Matrix Market files.

use std::io::{BufRead, Read};
use std::path::Path;

/// A limit that no line of a valid file reaches, in bytes.
const LONGEST_LINE: u64 = 64 << 10;

/// The most rows of a matrix that may have fewer elements than rows.
const FEW_ROWS: usize = 1 << 20;

/// A square matrix, by rows.
#[derive(Clone, Debug, PartialEq)]
pub enum Matrix {
    /// -Δ on a square with this many points per side, by differences to 4 neighbours.
    Laplace2d(u32),
    /// The same on a cube, to 6 neighbours.
    Laplace3d(u32),
    /// A cube whose points are coupled to all 26 around them.
    Box3d(u32),
    /// A matrix from a file.
    Stored(Stored),
}

/// Stored row by row.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    begins: Vec<usize>,
    entries: Vec<(u32, f64)>,
}

/// Why a matrix cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MatrixError {
    /// The file cannot be read.
    #[error("cannot read {file}: {source}")]
    Io {
        /// The file.
        file: String,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file is not a supported matrix.
    #[error("{file}, line {line}: {why}")]
    Format {
        /// The file.
        file: String,
        /// Number of the line, from 1 on.
        line: usize,
        /// What is wrong, and what is allowed.
        why: String,
    },
}

impl Matrix {
    /// Number of rows and columns.
    pub fn rows(&self) -> usize {
        match self {
            Matrix::Laplace2d(n) => (*n as usize).pow(2),
            Matrix::Laplace3d(n) | Matrix::Box3d(n) => (*n as usize).pow(3),
            Matrix::Stored(stored) => stored.begins.len() - 1,
        }
    }

    /// Calls `entry` with the column and the value of each stored element of a row.
    pub fn row(&self, row: usize, mut entry: impl FnMut(usize, f64)) {
        match self {
            Matrix::Laplace2d(n) => {
                let n = *n as i64;
                stencil(
                    [n, n, 1],
                    row,
                    |step| match step.iter().map(|s| s.abs()).sum::<i64>() {
                        0 => Some(4.0),
                        1 => Some(-1.0),
                        _ => None,
                    },
                    entry,
                );
            }
            Matrix::Laplace3d(n) => {
                let n = *n as i64;
                stencil(
                    [n; 3],
                    row,
                    |step| match step.iter().map(|s| s.abs()).sum::<i64>() {
                        0 => Some(6.0),
                        1 => Some(-1.0),
                        _ => None,
                    },
                    entry,
                );
            }
            Matrix::Box3d(n) => {
                let n = *n as i64;
                let value = |step: [i64; 3]| Some(if step == [0; 3] { 26.0 } else { -1.0 });
                stencil([n; 3], row, value, entry);
            }
            Matrix::Stored(stored) => {
                let entries = &stored.entries[stored.begins[row]..stored.begins[row + 1]];
                entries.iter().for_each(|(column, value)| entry(*column as usize, *value));
            }
        }
    }

    /// Number of stored elements of a row.
    pub fn row_len(&self, row: usize) -> usize {
        if let Matrix::Stored(stored) = self {
            return stored.begins[row + 1] - stored.begins[row];
        }
        let mut len = 0;
        self.row(row, |_, _| len += 1);
        len
    }

    /// The first row of each of this many parts with numbers of elements as equal as possible,
    /// followed by the number of rows.
    pub fn balanced(&self, parts: usize) -> Vec<usize> {
        let lens: Vec<usize> = (0..self.rows()).map(|row| self.row_len(row)).collect();
        let all: usize = lens.iter().sum();
        let (mut firsts, mut before) = (Vec::with_capacity(parts + 1), 0);
        for (row, len) in lens.iter().enumerate() {
            // A part begins with the first row that has its share of the elements before it.
            while firsts.len() < parts && before * parts >= firsts.len() * all {
                firsts.push(row);
            }
            before += len;
        }
        firsts.resize(parts, self.rows());
        firsts.push(self.rows());
        firsts
    }

    /// For each of this many parts, the number of other parts of which it needs elements of the
    /// vector: the k of the paper's table 3.
    pub fn neighbors(&self, parts: usize) -> Vec<usize> {
        let firsts = self.balanced(parts);
        let of_part = |part: usize| {
            let mut owners = Vec::new();
            for row in firsts[part]..firsts[part + 1] {
                self.row(row, |column, _| {
                    let owner = firsts.partition_point(|first| *first <= column) - 1;
                    if owner != part && owners.last() != Some(&owner) {
                        owners.push(owner);
                    }
                });
            }
            owners.sort_unstable();
            owners.dedup();
            owners.len()
        };
        (0..parts).map(of_part).collect()
    }

    /// Reads a Matrix Market file: a square coordinate matrix, real, integer or pattern (whose
    /// elements are 1), general or symmetric.
    ///
    /// # Errors
    /// The file cannot be read, or has another format.
    pub fn read(path: &Path) -> Result<Matrix, MatrixError> {
        let file = path.display().to_string();
        let io = |source| MatrixError::Io { file: file.clone(), source };
        let reader = std::io::BufReader::new(std::fs::File::open(path).map_err(io)?);
        let mut reader = reader;
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if reader.by_ref().take(LONGEST_LINE).read_line(&mut line).map_err(io)? == 0 {
                break;
            }
            if line.len() as u64 == LONGEST_LINE {
                let why = format!("the line has {LONGEST_LINE} bytes or more");
                return Err(MatrixError::Format { file, line: lines.len() + 1, why });
            }
            lines.push(line);
        }
        parse(&lines).map_err(|(line, why)| MatrixError::Format { file, line, why })
    }
}

/// The entries of a row of a matrix that couples points of a grid with those around them.
fn stencil(
    shape: [i64; 3],
    row: usize,
    value: impl Fn([i64; 3]) -> Option<f64>,
    mut entry: impl FnMut(usize, f64),
) {
    let row = row as i64;
    let at = [row % shape[0], row / shape[0] % shape[1], row / (shape[0] * shape[1])];
    for z in -1..=1 {
        for y in -1..=1 {
            for x in -1..=1 {
                let to = [at[0] + x, at[1] + y, at[2] + z];
                let inside = to.iter().zip(&shape).all(|(to, n)| (0..*n).contains(to));
                if let Some(value) = value([x, y, z]).filter(|_| inside) {
                    entry(((to[2] * shape[1] + to[1]) * shape[0] + to[0]) as usize, value);
                }
            }
        }
    }
}

/// A matrix from the lines of a file, or the number of a line and what is wrong with it.
fn parse(lines: &[String]) -> Result<Matrix, (usize, String)> {
    let header = lines.first().map(|line| line.to_ascii_lowercase()).unwrap_or_default();
    let words: Vec<&str> = header.split_whitespace().collect();
    let (field, symmetry) = match words[..] {
        ["%%matrixmarket", "matrix", "coordinate", field, symmetry] => (field, symmetry),
        _ => return Err((1, "`%%MatrixMarket matrix coordinate ..` is expected".to_owned())),
    };
    if !["real", "integer", "pattern"].contains(&field) {
        return Err((1, format!("field `{field}`: real, integer and pattern are allowed")));
    }
    if !["general", "symmetric"].contains(&symmetry) {
        return Err((1, format!("symmetry `{symmetry}`: general and symmetric are allowed")));
    }
    let mut rest = lines.iter().enumerate().skip(1).map(|(i, line)| (i + 1, line.trim()));
    let mut data = rest.by_ref().filter(|(_, line)| !line.is_empty() && !line.starts_with('%'));
    let (at, sizes) = data.next().ok_or((lines.len(), "the sizes are missing".to_owned()))?;
    let sizes: Vec<usize> = sizes.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let &[rows, columns, entries] = &sizes[..] else {
        return Err((at, "three numbers are expected: rows, columns, entries".to_owned()));
    };
    if rows != columns || rows == 0 || rows > u32::MAX as usize {
        return Err((at, format!("{rows} rows and {columns} columns: a square is expected")));
    }
    let mut all: Vec<(u32, u32, f64)> = Vec::with_capacity(entries.min(lines.len()));
    let mut last = at;
    for (at, line) in data {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |i: usize| words.get(i).and_then(|word| word.parse::<usize>().ok());
        let value = if field == "pattern" {
            Some(1.0)
        } else {
            words.get(2).and_then(|word| word.parse::<f64>().ok()).filter(|v| v.is_finite())
        };
        let (Some(row), Some(column), Some(value)) = (number(0), number(1), value) else {
            return Err((at, format!("`{line}`: row, column and value are expected")));
        };
        if !(1..=rows).contains(&row) || !(1..=rows).contains(&column) {
            return Err((at, format!("element {row}, {column}: 1 to {rows} are allowed")));
        }
        all.push((row as u32 - 1, column as u32 - 1, value));
        if symmetry == "symmetric" && row != column {
            all.push((column as u32 - 1, row as u32 - 1, value));
        }
        last = at;
    }
    let stored = if symmetry == "symmetric" {
        all.iter().filter(|(row, column, _)| row >= column).count()
    } else {
        all.len()
    };
    if stored != entries {
        return Err((last, format!("{stored} elements, {entries} were announced")));
    }
    if rows > all.len().max(FEW_ROWS) {
        let why = format!("{rows} rows, but only {} elements: most rows have none", all.len());
        return Err((at, why));
    }
    all.sort_unstable_by_key(|(row, column, _)| (*row, *column));
    let mut begins = vec![0; rows + 1];
    all.iter().for_each(|(row, _, _)| begins[*row as usize + 1] += 1);
    for i in 1..begins.len() {
        begins[i] += begins[i - 1];
    }
    let entries = all.into_iter().map(|(_, column, value)| (column, value)).collect();
    Ok(Matrix::Stored(Stored { begins, entries }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Matrix, (usize, String)> {
        parse(&text.lines().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn files_are_read() {
        let text = "%%MatrixMarket matrix coordinate real symmetric\n% a comment\n\n\
                    3 3 4\n1 1 2.5\n2 1 -1\n2 2 3e0\n3 3 1\n";
        let Ok(Matrix::Stored(stored)) = parsed(text) else { panic!("{:?}", parsed(text)) };
        assert_eq!(stored.begins, [0, 2, 4, 5]);
        assert_eq!(stored.entries, [(0, 2.5), (1, -1.0), (0, -1.0), (1, 3.0), (2, 1.0)]);
        let pattern = "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n";
        assert_eq!(parsed(pattern).unwrap().row_len(0), 1);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        let head = "%%MatrixMarket matrix coordinate real general\n";
        for (text, line, words) in [
            ("", 1, "%%MatrixMarket"),
            ("%%MatrixMarket matrix array real general\n", 1, "coordinate"),
            ("%%MatrixMarket matrix coordinate complex general\n", 1, "`complex`"),
            (&format!("{head}2 3 1\n1 1 1\n"), 2, "square"),
            (&format!("{head}2 2 1\n1 3 1\n"), 3, "1 to 2"),
            (&format!("{head}2 2 1\n1 x 1\n"), 3, "`1 x 1`"),
            (&format!("{head}2 2 2\n1 1 1\n"), 3, "2 were announced"),
            (&format!("{head}2 2 18446744073709551615\n1 1 1\n"), 3, "1 elements, 18446744073"),
            (&format!("{head}2 2 99999999999999\n1 1 1\n"), 3, "99999999999999 were announced"),
            (&format!("{head}2 2 99999999999999999999\n1 1 1\n"), 2, "three numbers"),
            (&format!("{head}4294967295 4294967295 1\n1 1 1\n"), 2, "most rows have none"),
        ] {
            let (at, why) = parsed(text).unwrap_err();
            assert!(at == line && why.contains(words), "{text}: {at} {why}");
        }
    }

    #[test]
    fn parts_are_balanced_and_neighbors_counted() {
        let matrix = Matrix::Laplace2d(16);
        let firsts = matrix.balanced(4);
        assert_eq!((firsts[0], firsts[4]), (0, 256));
        assert!(firsts.windows(2).all(|pair| (60..=68).contains(&(pair[1] - pair[0]))));
        assert_eq!(matrix.neighbors(4), [1, 2, 2, 1]);
        assert_eq!(Matrix::Laplace2d(2).neighbors(1), [0]);
        // More parts than rows: some have nothing.
        assert_eq!(Matrix::Laplace2d(2).balanced(9).len(), 10);
    }
}
