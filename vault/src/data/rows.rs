//! Collects rows into columns, batch by batch; bad rows stop the start or become inert, by the same rule for every file format.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;

use super::chosen::Chosen;
use super::error::{DataError, Flaw};
use super::format::Meaning;
use super::persons::Gathering;
use super::piece::{Piece, leave_out, make_inert};
use super::settings::{BadRows, DataConfig, Memory};
use super::shard::Shard;
use super::snapshot::Snapshot;
use super::words::Words;

/// Collects a shard. A batch is read column by column to the columns' ends; then bad rows are made inert, and those beyond a person's limit
/// removed again, so that no value is held twice.
pub(super) struct Rows {
    pub(super) shard: Shard,
    persons: Option<Gathering>,
    /// The columns of the batches before, where they are not kept in memory, and their folder.
    snapshot: Option<(Snapshot, PathBuf)>,
    /// Meaning of persons' names.
    names: Meaning,
    more: &'static str,
}

/// The special rows of a batch, each list ascending; the others are usable.
#[derive(Default)]
struct Fate {
    /// Inert rows, which stay and contribute zero.
    inert: Vec<usize>,
    /// Rows that are removed.
    out: Vec<usize>,
}

/// A row of a batch with the first of its columns that cannot be used.
type Bad = (usize, usize, Flaw);

impl Rows {
    /// `chosen` lists the columns that are read of a file with this header, and `texts` those of them that hold texts.
    ///
    /// # Errors
    /// No snapshot can be made.
    pub(super) fn new(config: &DataConfig, header: Vec<String>, chosen: &Chosen, texts: &[bool]) -> Result<Self, DataError> {
        let names: Vec<String> = chosen.columns.iter().map(|(name, _)| name.clone()).collect();
        let columns = names.iter().map(|_| Vec::new()).collect();
        let all = names.len() + usize::from(chosen.person.is_some()) == header.len();
        let more = if all { ", or name only the columns that jobs may use in [policy] columns" } else { "" };
        let shard = Shard {
            file: PathBuf::from(&config.path),
            header,
            names,
            columns,
            snapshot: None,
            memory: config.memory,
            words: texts.iter().map(|text| text.then(Words::default)).collect(),
            bad_rows: config.bad_rows,
            inert: 0,
            usable: 0,
            unit: config.unit,
            person: config.person.clone(),
            persons: None,
            beyond_limit: 0,
            undeclared_dates: Vec::new(),
            long_field: None,
        };
        let persons = config.unit.records_per_person().map(Gathering::new);
        let folder = &config.snapshot;
        let snapshot = (config.memory == Memory::Stream).then(|| Ok((Snapshot::new(folder, shard.names.len())?, folder.clone())));
        let snapshot = snapshot.transpose().map_err(|e| unsaved(folder, &e))?;
        Ok(Self { shard, persons, snapshot, names: config.format.meaning("", true), more })
    }

    /// Returns the number of kept rows.
    pub(super) fn kept(&self) -> usize {
        self.shard.columns.first().map_or(0, Vec::len)
    }

    /// Makes room for `more` rows where there is less, and no more than that.
    ///
    /// # Errors
    /// Out of memory.
    pub(super) fn reserve(&mut self, more: usize) -> Result<(), DataError> {
        // A batch makes its own room.
        let more = if self.snapshot.is_some() { 0 } else { more };
        self.shard.columns.iter_mut().try_for_each(|column| column.try_reserve_exact(more)).map_err(|_| DataError::Unreadable {
            file: self.shard.file.clone(),
            reason: format!("there is no memory for {more} more rows of {} columns", self.shard.names.len()),
        })
    }

    /// Adds a batch of `count` rows.
    ///
    /// `read` appends the values of each column, one for every row, with one reader for each column; columns are read side by side.
    /// `person` returns the name in a row of the batch as the file holds it, where a column names persons, and `place` the position of a
    /// bad row.
    pub(super) fn batch<'p, R: Send>(
        &mut self,
        count: usize,
        readers: &mut [R],
        read: impl Fn(&mut R, &mut Vec<f64>) -> Result<Piece, DataError> + Sync,
        person: impl Fn(usize) -> Option<&'p [u8]>,
        place: impl Fn(usize) -> String,
    ) -> Result<(), DataError> {
        let columns = self.shard.columns.par_iter_mut().zip(readers);
        let pieces: Vec<_> = columns.map(|(column, reader)| read(reader, column)).collect();
        // The first column's error, whichever was met first.
        let mut pieces = pieces.into_iter().collect::<Result<Vec<_>, _>>()?;
        let flaws = pieces.iter_mut().enumerate();
        let mut bad: Vec<Bad> = flaws
            .flat_map(|(at, piece)| std::mem::take(&mut piece.flaws).into_iter().map(move |(row, flaw)| (row, at, flaw)))
            .collect();
        bad.sort_unstable_by_key(|(row, at, _)| (*row, *at));
        bad.dedup_by_key(|(row, ..)| *row);
        let Fate { inert, out } = self.fate(count, bad, person, place)?;
        let texts = self.shard.words.iter_mut().zip(&pieces);
        for (column, (words, piece)) in self.shard.columns.iter_mut().zip(texts) {
            let start = column.len() - count;
            make_inert(column, start, inert.iter().copied());
            leave_out(column, start, out.iter().copied());
            if let Some(words) = words {
                // The word of an unusable row is not added.
                words.renumber(&piece.words, &mut column[start..]);
            }
        }
        match &mut self.snapshot {
            Some((snapshot, folder)) => snapshot.append(&mut self.shard.columns).map_err(|e| unsaved(folder, &e)),
            None => Ok(()),
        }
    }

    /// Decides on the rows of a batch. A bad row stays, inert; it need not for a person with usable rows, since the public number counts
    /// persons.
    fn fate<'p>(
        &mut self,
        count: usize,
        bad: Vec<Bad>,
        person: impl Fn(usize) -> Option<&'p [u8]>,
        place: impl Fn(usize) -> String,
    ) -> Result<Fate, DataError> {
        let Some(mut persons) = self.persons.take() else {
            bad.iter().try_for_each(|(row, at, flaw)| self.bad(|| place(*row), self.shard.names[*at].clone(), *flaw))?;
            self.shard.usable += (count - bad.len()) as u64;
            return Ok(Fate { inert: bad.into_iter().map(|(row, ..)| row).collect(), out: Vec::new() });
        };
        let mut bad = bad.into_iter().peekable();
        let mut fate = Fate::default();
        for row in 0..count {
            let name = person(row).and_then(|name| self.names.present(name));
            let flaw = bad.next_if(|(bad, ..)| *bad == row).map(|(_, at, flaw)| (Some(at), flaw));
            if let Some((at, flaw)) = flaw.or(name.is_none().then_some((None, Flaw::Missing))) {
                let column = at.map_or_else(|| self.shard.person.clone().unwrap_or_default(), |at| self.shard.names[at].clone());
                self.bad(|| place(row), column, flaw)?;
                if persons.keep_inert(name) { &mut fate.inert } else { &mut fate.out }.push(row);
            } else if persons.keep(name.unwrap_or_default()) {
                self.shard.usable += 1;
            } else {
                self.shard.beyond_limit += 1;
                fate.out.push(row);
            }
        }
        self.persons = Some(persons);
        Ok(fate)
    }

    fn bad(&mut self, place: impl FnOnce() -> String, column: String, flaw: Flaw) -> Result<(), DataError> {
        match self.shard.bad_rows {
            BadRows::Stop => {
                Err(DataError::BadValue { file: self.shard.file.clone(), place: place(), column, flaw, more: self.more })
            }
            BadRows::Drop => {
                self.shard.inert += 1;
                Ok(())
            }
        }
    }

    /// # Errors
    /// The snapshot cannot be written.
    pub(super) fn finish(self) -> Result<Shard, DataError> {
        let Self { mut shard, persons, mut snapshot, .. } = self;
        if let Some((grouped, persons)) = persons.map(Gathering::group) {
            shard.persons = persons;
            shard.columns.iter_mut().for_each(|column| *column = grouped.of(column));
            if let Some((snapshot, folder)) = &mut snapshot {
                snapshot.map(folder, |column| grouped.of(column)).map_err(|e| unsaved(folder, &e))?;
            }
        }
        shard.columns.iter_mut().for_each(Vec::shrink_to_fit);
        if let Some((snapshot, _)) = snapshot {
            (shard.columns, shard.snapshot) = (Vec::new(), Some(Arc::new(snapshot)));
        }
        Ok(shard)
    }
}

fn unsaved(folder: &Path, e: &std::io::Error) -> DataError {
    let reason = format!(
        "the columns can't be kept here for memory = \"stream\": {e}; `data.snapshot` names a folder with room for 8 bytes a number"
    );
    DataError::Unreadable { file: folder.to_owned(), reason }
}
